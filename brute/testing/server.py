"""A provider in a box: a local HTTP server that says what a script tells it to.

It speaks OpenAI Chat Completions and Anthropic Messages, plain and streamed, to the vendors' own
SDK clients, and refuses what the providers refuse. docs/reference/scripted-server.md shows how to
test an agent with it.

    >>> from brute.testing import Reply, ScriptedServer
    >>> with ScriptedServer([Reply("Hello.")]) as server:
    ...     server.base_url("anthropic") == server.url
    True
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from types import TracebackType
from typing import Literal, NoReturn, Self, TypeAlias

from brute.testing.wire_http import Incoming, Listener, Wire
from brute.testing.wire_protocols import BASES, BY_API, protocol_of, stranger
from brute.testing.wire_script import (
    JSON,
    Answer,
    Exchange,
    Failure,
    JSONObject,
    Refused,
    Request,
    Settings,
    WireProtocol,
    compact,
    is_object,
)

Respond: TypeAlias = Callable[[Request], Answer]

Script: TypeAlias = Sequence[Answer] | Respond
"""The answers in their order, or a function from a request to its answer."""

_SECRETS = ("auth", "cookie", "key", "secret", "token")
"""A header whose name holds one of these is shown as `<redacted>`."""

_NO_RETRY = (("x-should-retry", "false"),)
"""Both SDKs obey it: a mistake in a test fails at once, not after two pauses."""


def provider_refusal(
    api: str,
    body: Mapping[str, object],
    *,
    reasoning_field: str | None = None,
    foreign_thinking: bool = False,
) -> Refused | None:
    """What the provider would say to a request body: the first rule it breaks, or None.

    `api` is `openai.chat` or `anthropic.messages`. These are the rules of a strict server, without
    a server, and the same two settings.
    """
    try:
        text = compact(body)
    except ValueError as error:
        return Refused("U2", f"The request body is not valid JSON: {error}")
    settings = Settings(reasoning_field=reasoning_field, foreign_thinking=foreign_thinking)
    return BY_API[api].refusal(json.loads(text), text.encode(), settings)


class ScriptedServer:
    """Serves a script to real SDK clients from 127.0.0.1, in a thread of its own.

    Args:
        script: The answers in their order; or a function from a request to its answer, called in
            the request's thread; or either of them for each API, as
            `{"openai.chat": […], "anthropic.messages": […]}`.
        strict: Refuse what the provider refuses. A refused request takes no answer of the script.
        delta_chars: How many characters a stream says in one event.
        reasoning_field: OpenAI's own Chat Completions shows no reasoning. Compatible servers do,
            under a field of theirs: give its name (`reasoning_content`, `reasoning`) and the server
            sends a reply's thinking there, and takes it back.
        foreign_thinking: Take Anthropic's thinking blocks from a history that was recorded
            elsewhere, whose signatures this server cannot know.

    A function that raises answers its request with an error 500; the exception is raised again at
    the end of the `with` block, so that an `assert` in it fails the test.
    """

    def __init__(
        self,
        script: Script | Mapping[str, Script],
        *,
        strict: bool = True,
        delta_chars: int = 16,
        reasoning_field: str | None = None,
        foreign_thinking: bool = False,
    ) -> None:
        if delta_chars < 1:
            raise ValueError(f"delta_chars is {delta_chars}: an event says 1 character or more")
        self._scripts = _scripts(script)
        self._strict = strict
        self._settings = Settings(
            delta_chars=delta_chars,
            reasoning_field=reasoning_field,
            foreign_thinking=foreign_thinking,
        )
        self._counter = count(1)
        self._lock = threading.Lock()
        self._requests: list[Request] = []
        self._refusals: list[Refused] = []
        self._error: BaseException | None = None
        self._listener: Listener | None = None

    def start(self) -> Self:
        """Take a free port and serve until `close`; the `with` statement does both.

        Raises:
            RuntimeError: The server was started before.
        """
        if self._listener is not None:
            raise RuntimeError("a ScriptedServer serves once: make another one")
        self._listener = Listener(self._answer)
        return self

    def close(self) -> None:
        """Close every connection and end every thread; a second call does nothing.

        Raises:
            RuntimeError: A function of the script has not returned for 10 seconds.
        """
        if self._listener is not None:
            self._listener.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
        if self._error is None:
            return
        if error is None:
            raise self._error
        error.add_note(f"The script of the ScriptedServer raised {self._error!r}")

    @property
    def url(self) -> str:
        """`http://127.0.0.1:PORT`.

        Raises:
            RuntimeError: The server was not started.
        """
        if self._listener is None:
            raise RuntimeError("the server has no address yet: use `with`, or call start()")
        return f"http://127.0.0.1:{self._listener.port}"

    def base_url(self, sdk: Literal["openai", "anthropic"]) -> str:
        """The `base_url` to give to this SDK's client."""
        if sdk not in BASES:
            raise ValueError(f"no SDK {sdk!r}: the server speaks to {', '.join(BASES)}")
        return self.url + BASES[sdk]

    @property
    def requests(self) -> list[Request]:
        """Every request so far, the refused ones included, in the order of arrival."""
        with self._lock:
            return list(self._requests)

    @property
    def refusals(self) -> list[Refused]:
        """Every request that strict rules refused; an agent may have hidden it from the test."""
        with self._lock:
            return list(self._refusals)

    @property
    def remaining(self) -> int:
        """How many answers of the script nobody has asked for yet; a function has none."""
        lists = {id(one): one for one in self._scripts.values() if isinstance(one, _InOrder)}
        return sum(one.remaining for one in lists.values())

    def _answer(self, incoming: Incoming) -> Wire:
        """The whole of a request's way: record it, check it, let the script answer it."""
        path = incoming.target.split("?", 1)[0]
        protocol = protocol_of(path)
        body, problem = _parse(incoming.body)
        with self._lock:
            request = Request(
                number=len(self._requests) + 1,
                method=incoming.method,
                path=path,
                api=None if protocol is None else protocol.api,
                headers={name: _shown(name, value) for name, value in incoming.headers.items()},
                body=body,
                raw=incoming.body,
            )
            self._requests.append(request)
        exchange = Exchange(
            request=request,
            protocol=protocol or stranger(incoming.headers),
            settings=self._settings,
            counter=self._counter,
        )
        failure = _misdirected(request, protocol) or problem or self._refused(exchange)
        return exchange.failure(failure) if failure else self._scripted(exchange)

    def _refused(self, exchange: Exchange) -> Failure | None:
        """What the provider says to a request that breaks a rule of its."""
        request = exchange.request
        if not self._strict:
            return None
        found = exchange.protocol.refusal(request.body, request.raw, self._settings)
        if found is None:
            return None
        with self._lock:
            self._refusals.append(replace(found, request=request.number))
        rule = (("x-scripted-rule", found.rule),)
        return Failure(400, found.message, param=found.param, headers=rule)

    def _scripted(self, exchange: Exchange) -> Wire:
        """The script's answer as bytes; what the script does wrong becomes an error 500."""
        try:
            respond = self._scripts.get(exchange.protocol.api, _nothing)
            return _checked(respond(exchange.request), "the script's function").wire(exchange)
        except _Exhausted as error:
            message = str(error)
        except BaseException as error:  # noqa: BLE001 - pytest's own failures are no Exceptions
            message = f"the script raised {type(error).__name__}: {error}"
            with self._lock:
                self._error = self._error or error
        return exchange.failure(Failure(500, f"ScriptedServer: {message}", headers=_NO_RETRY))


class _Exhausted(Exception):
    """The script has no answer for this request."""


class _InOrder:
    """A list of answers as a function that gives one after the other."""

    def __init__(self, answers: Sequence[Answer]) -> None:
        self._answers = tuple(
            _checked(answer, f"script[{place}]") for place, answer in enumerate(answers)
        )
        self._asked = 0
        self._lock = threading.Lock()

    def __call__(self, request: Request) -> Answer:
        with self._lock:
            place, self._asked = self._asked, self._asked + 1
        if place >= len(self._answers):
            replies = "1 reply" if len(self._answers) == 1 else f"{len(self._answers)} replies"
            raise _Exhausted(f"the script had {replies}, this is request {place + 1}")
        return self._answers[place]

    @property
    def remaining(self) -> int:
        return max(0, len(self._answers) - self._asked)


def _nothing(request: Request) -> Answer:
    raise _Exhausted(f"the script has no replies for {request.api}")


def _scripts(script: Script | Mapping[str, Script]) -> dict[str, Respond]:
    """A function for each API; one for all of them when the script does not tell them apart."""
    if callable(script) or isinstance(script, Sequence | Answer):
        return dict.fromkeys(BY_API, _respond(script))
    if unknown := sorted(script.keys() - BY_API.keys()):
        raise ValueError(f"no API {', '.join(unknown)}: the server speaks {', '.join(BY_API)}")
    return {api: _respond(one) for api, one in script.items()}


def _respond(script: Script) -> Respond:
    if callable(script):
        return script
    if isinstance(script, str | Answer):
        raise TypeError(
            f"the script is a list of answers, not one {type(script).__name__}: [{script!r}]"
        )
    return _InOrder(script)


def _checked(answer: object, where: str) -> Answer:
    """The answer, if it is one."""
    if isinstance(answer, Answer):
        return answer
    raise TypeError(
        f"{where} gives {answer!r}, which is neither a Reply nor a fault (HttpError, …)"
    )


def _shown(name: str, value: str) -> str:
    return "<redacted>" if any(word in name for word in _SECRETS) else value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _parse(raw: bytes) -> tuple[JSONObject, Failure | None]:
    """The body, and what a provider says when it is none."""
    try:
        body: JSON = json.loads(raw, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        return {}, Failure(400, f"The request body is not valid JSON: {error}")
    if not is_object(body):
        return {}, Failure(400, "The request body is not a JSON object")
    return body, None


def _misdirected(request: Request, protocol: WireProtocol | None) -> Failure | None:
    """What a provider says to a path or a method it does not have."""
    if protocol is None:
        known = " and ".join(f"POST {path}" for path in (one.path for one in BY_API.values()))
        return Failure(
            404,
            f"Invalid URL ({request.method} {request.path}): the scripted server speaks {known}",
        )
    if request.method != "POST":
        return Failure(405, f"Not allowed to {request.method} on {request.path}.")
    return None

"""Histories that others wrote, as sessions: request bodies, and files of chat messages.

A body is loaded by the transport of its API; its model, tools and parameters become the settings
of a turn, so that the session goes on as the body stood. What it says is not judged: a history
whose calls and results do not pair is kept as it is, and repaired in each request made of it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec

from brute.events.events import (
    Event,
    Link,
    ModelRef,
    SessionOpened,
    Settings,
    ToolSpec,
    TurnStarted,
)
from brute.events.jsontext import loads
from brute.events.jsontypes import is_array, is_object
from brute.intake import Imported, ImportFailure, Lines, copy_session, require_free
from brute.log import open as open_log
from brute.transports import Anthropic, OpenAI

if TYPE_CHECKING:
    from brute.events.jsontypes import JSON, JSONObject
    from brute.log import Log
    from brute.transports.base import MessageTransport

Format: TypeAlias = Literal["openai", "anthropic"]


class History(msgspec.Struct, frozen=True, kw_only=True):
    """A history as it was found in a file."""

    format: Format
    body: JSONObject
    """A request body; `messages` and nothing else where the file held only messages."""
    whole: bool
    """Whether it was a body."""


# -- reading ---------------------------------------------------------------------------------------


def read_history(lines: Lines, first: bytes, format: Format | None = None) -> History:
    """The history in a file whose first line was read: a body, or messages.

    `format` None: find out which. Raises `ImportFailure`, with the place and what was found there.
    """
    try:
        value = loads(first)
    except (ValueError, RecursionError):
        value = _document(lines, first)
    else:
        if not is_object(value) and not is_array(value):
            raise lines.fail(f"this is JSON and no history: {_excerpt(first)}", _LOOKED_FOR)
        if _is_message(value):
            value = [value, *_further_messages(lines)]
        elif rest := lines.next():
            raise lines.fail(
                f"something else stands behind the first value: {_excerpt(rest)}",
                "give one request body; or messages, one JSON object a line",
            )
    whole = is_object(value)
    body: JSONObject = value if whole else {"messages": value}
    _check_body(lines, body, whole=whole)
    return History(format=format or _format_of(body), body=body, whole=whole)


def _is_message(value: JSON) -> bool:
    return is_object(value) and "role" in value and "messages" not in value


def _document(lines: Lines, first: bytes) -> JSON:
    """The one value that a file holds over many lines."""
    start = lines.number
    data = first + lines.rest(first)
    return _parse(data, lines.name, start)


def _further_messages(lines: Lines) -> Iterator[JSON]:
    for line in lines:
        value = _parse(line, lines.name, lines.number)
        if not _is_message(value):
            raise lines.fail(f"this is no message: {_excerpt(line)}", "give each message its role")
        yield value


def _parse(data: bytes, name: str, line: int) -> JSON:
    """The value in some lines of a file, the first of which has the number `line`."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        where = f"{name}, line {line + data.count(10, 0, error.start):,}"
        found = f"the byte 0x{data[error.start]:02x} begins no character of UTF-8"
        raise ImportFailure(where, found, "give a text file of JSON") from error
    try:
        return loads(text)
    except (ValueError, RecursionError) as error:
        place, found = _trouble(text, error)
        number = line + text.count("\n", 0, place)
        column = place - text.rfind("\n", 0, place)
        where = f"{name}, line {number:,}, column {column:,}"
        raise ImportFailure(where, found, "mend it, or export it again") from error


_WORD: Final = re.compile(r'"(?:[^"\\]|\\.)*"|NaN|-?Infinity|-?\d[\d.eE+-]*')


def _trouble(text: str, error: Exception) -> tuple[int, str]:
    """Where JSON goes wrong, and how."""
    try:
        json.loads(text)
    except json.JSONDecodeError as found:
        there = text[found.pos : found.pos + 1]
        seen = repr(there) if there.strip() else "a blank" if there else "the end of the text"
        return found.pos, f"this is not JSON: {found.msg}, found {seen}"
    except (ValueError, RecursionError):
        return 0, f"this is not JSON that can be kept: {error}"
    # Python reads numbers that JSON does not have, or that no float holds.
    words = (w for w in _WORD.finditer(text) if not w[0].startswith('"'))
    place = next((w.start() for w in words if not math.isfinite(_number(w[0]))), 0)
    return place, f"this is not JSON that can be kept: {error}"


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        return 0.0


def _excerpt(line: bytes) -> str:
    text = line[:60].decode(errors="replace").strip()
    return f"{text}…" if len(line) > 60 else text


# -- what it is ------------------------------------------------------------------------------------

_STRANGERS: Final = {
    "contents": "it looks like a body of Gemini's generateContent",
    "input": "it looks like a body of OpenAI's Responses",
    "choices": "it looks like a reply of Chat Completions, and a request is wanted",
    "content": "it looks like a reply of Messages, and a request is wanted",
}

_LOOKED_FOR: Final = (
    "wanted is a request body of OpenAI's Chat Completions or Anthropic's Messages (an object with "
    "`messages`), chat messages (objects with a `role`, one a line), or an export of brute"
)


def _check_body(lines: Lines, body: JSONObject, *, whole: bool) -> None:
    messages: JSON = body.get("messages")
    if not is_array(messages):
        keys = ", ".join(list(body)[:6])
        hints = [hint for key, hint in _STRANGERS.items() if key in body]
        found = f"an object with the keys {keys or '(none)'} is no history"
        raise ImportFailure(lines.name, "; ".join([found, *hints[:1]]), _LOOKED_FOR)
    for index, message in enumerate(messages):
        if not is_object(message) or not isinstance(message.get("role"), str):
            pointer = f"/messages/{index}" if whole else f"/{index}"
            raise ImportFailure(
                f"{lines.name}: {pointer}", "this is no message with a role", _LOOKED_FOR
            )


_OPENAI_KEYS: Final = frozenset(
    [
        "max_completion_tokens",
        "response_format",
        "frequency_penalty",
        "presence_penalty",
        "logprobs",
        "logit_bias",
        "n",
        "stream_options",
        "reasoning_effort",
        "parallel_tool_calls",
        "functions",
    ]
)
_ANTHROPIC_KEYS: Final = frozenset(
    [
        "system",
        "stop_sequences",
        "thinking",
        "top_k",
        "anthropic_version",
        "anthropic_beta",
        "context_management",
    ]
)
_OPENAI_ROLES: Final = frozenset({"developer", "tool", "function"})
_OPENAI_FIELDS: Final = frozenset(
    {"tool_calls", "function_call", "tool_call_id", "reasoning_content"}
)
_OPENAI_BLOCKS: Final = frozenset({"image_url", "input_audio", "file", "refusal"})
_ANTHROPIC_BLOCKS: Final = frozenset(
    [
        "tool_use",
        "tool_result",
        "thinking",
        "redacted_thinking",
        "server_tool_use",
        "image",
        "document",
    ]
)


def _format_of(body: JSONObject) -> Format:
    """Whose shape a body has; one that could be either is told by its model, else OpenAI's."""
    openai = bool(_OPENAI_KEYS & body.keys())
    anthropic = bool(_ANTHROPIC_KEYS & body.keys())
    for tool in _objects(body.get("tools")):
        openai = openai or "function" in tool
        anthropic = anthropic or "input_schema" in tool
    for message in _objects(body["messages"]):
        blocks = {block.get("type") for block in _objects(message.get("content"))}
        openai = openai or message["role"] in _OPENAI_ROLES
        openai = openai or bool(_OPENAI_FIELDS & message.keys() or _OPENAI_BLOCKS & blocks)
        anthropic = anthropic or bool(_ANTHROPIC_BLOCKS & blocks)
    if openai != anthropic:
        return "openai" if openai else "anthropic"
    return "anthropic" if not openai and "claude" in str(body.get("model")) else "openai"


def _objects(value: JSON) -> list[JSONObject]:
    return [item for item in value if is_object(item)] if is_array(value) else []


# -- adopting --------------------------------------------------------------------------------------


TRANSPORTS: Final[dict[Format, type[MessageTransport]]] = {
    "openai": OpenAI,
    "anthropic": Anthropic,
}

_TRAVEL: Final = frozenset({"stream", "stream_options"})
"""How a reply was to travel, which the code that calls decides anew."""


def import_history(log: Log, history: History, *, id: str | None = None) -> Imported:
    """Begin a session that says what the history says, in one transaction.

    Raises `UsageError` if there is a session of that id.
    """
    transport = TRANSPORTS[history.format]
    session = id or log.events.new_id()
    require_free(log, session)
    with open_log(":memory:") as scratch:  # so that the session appears whole or not at all
        events = scratch.events
        opened = SessionOpened(link=Link(kind="import", source=transport.api))
        drafts: list[Event] = [opened]
        changes = Settings().changes_to(_settings(history))
        if changes != TurnStarted():
            drafts.append(changes)
        events.append(session, drafts, expect=-1)
        adopted = scratch.session(session)
        messages = transport.load_all(history.body if history.whole else history.body["messages"])
        if messages:
            adopted.append(*messages)
        last = copy_session(scratch, session, log)
        request = transport.request(adopted)
        notes = [f"a request made of it is mended: {loss}" for loss in request.losses]
        kept = transport.settings(request)
    asked = {k: v for k, v in history.body.items() if k not in {"messages", "system"} | _TRAVEL}
    notes += [f"{pointer} could not be kept as it stands" for pointer in _unlike(asked, kept, "")]
    source = history.format if history.whole else "messages"
    return Imported(session=session, source=source, entries=last + 1, notes=tuple(notes))


def _unlike(was: JSON, now: JSON, pointer: str) -> list[str]:
    """The places of a JSON value that another one does not have as they stand."""
    if is_object(was) and is_object(now):
        return [
            found
            for key, value in was.items()
            for found in _unlike(value, now.get(key), f"{pointer}/{key}")
        ]
    if is_array(was) and is_array(now) and len(was) == len(now):
        pairs = enumerate(zip(was, now, strict=True))
        return [found for n, (a, b) in pairs for found in _unlike(a, b, f"{pointer}/{n}")]
    return [] if was == now else [pointer]


def _settings(history: History) -> Settings:
    body = history.body
    model = body.get("model")
    tools = tuple(_TOOLS[history.format](tool) for tool in _objects(body.get("tools")))
    own = {"messages", "model", "tools", "system"} | _TRAVEL
    parameters = {k: v for k, v in body.items() if k not in own and v is not None}
    return Settings(
        model=ModelRef(id=model) if isinstance(model, str) else None,
        tools=tools or None,
        parameters=parameters or None,
    )


def _openai_tool(tool: JSONObject) -> ToolSpec:
    kind = str(tool.get("type", "function"))
    said: JSON = tool.get(kind)
    if not is_object(said):  # what only this API offers
        rest = {k: v for k, v in tool.items() if k != "type"}
        return ToolSpec(name=kind, kind=kind, extras={"openai.chat": rest})
    return _tool("openai.chat", kind, said, "parameters" if kind == "function" else "")


def _anthropic_tool(tool: JSONObject) -> ToolSpec:
    if "input_schema" in tool:
        return _tool("anthropic.messages", "function", tool, "input_schema")
    kind, name = str(tool.get("type", "custom")), str(tool.get("name", ""))
    rest = {k: v for k, v in tool.items() if k not in ("type", "name")}
    return ToolSpec(name=name, kind=kind, extras={"anthropic.messages": rest} if rest else None)


def _tool(api: str, kind: str, said: JSONObject, schema: str) -> ToolSpec:
    rest = {k: v for k, v in said.items() if k not in ("name", "description", schema)}
    return ToolSpec(
        name=str(said.get("name", "")),
        description=said.get("description"),
        schema=said.get(schema),
        kind=kind,
        extras={api: rest} if rest else None,
    )


_TOOLS: Final[dict[Format, Callable[[JSONObject], ToolSpec]]] = {
    "openai": _openai_tool,
    "anthropic": _anthropic_tool,
}

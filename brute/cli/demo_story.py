"""The story that `brute demo` tells. It does all that it claims, and stops where a claim fails."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from importlib.metadata import version
from itertools import count as counting
from itertools import zip_longest
from shlex import quote
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Final, cast

import click

from brute.agent import Agent
from brute.cli.demo_outline import outline
from brute.cli.log import line
from brute.cli.screen import clip, count, muted, pad, screen_width, size
from brute.effects import Run, run
from brute.events.errors import BruteError
from brute.events.events import PromptAppended
from brute.log import Log
from brute.log import open as open_log
from brute.testing import Call, Reply, ScriptedServer, provider_refusal
from brute.transports import Anthropic, OpenAI

if TYPE_CHECKING:
    from brute.events.jsontypes import JSONObject
    from brute.session import Session
    from brute.transports.base import MessageTransport
    from brute.view import View

Say = Callable[[str], None]
Create = Callable[..., Awaitable[object]]

WIDTH: Final = 100

SYSTEM: Final = "You plan trips. Look things up before you answer."

SCRIPT: Final = {
    "openai.chat": [
        Reply(calls=[Call("weather", {"city": "Kyoto"}), Call("weather", {"city": "Nara"})]),
        Reply("Nara: it will be sunny there, while it rains in Kyoto."),
    ],
    "anthropic.messages": [
        Reply(
            thinking="Nara it is. Which hotels there have a room?",
            calls=[Call("hotels", {"city": "Nara", "guests": 2})],
        ),
        Reply("The Deer Park Inn has a room for two. Shall I book it?"),
        Reply(
            thinking="They agreed: two nights.",
            calls=[Call("book", {"hotel": "Deer Park Inn", "nights": 2})],
        ),
        Reply("I cannot tell whether that went through. Please ask the hotel before I try again."),
    ],
}
"""What the models say. All the rest of this file happens."""

THINKING: Final[dict[str, Any]] = {"thinking": {"type": "enabled", "budget_tokens": 1_024}}
"""What Anthropic's call is given besides the request."""


# -- the tools -------------------------------------------------------------------------------------


def weather(city: str) -> str:
    """Say what the weather of a city will be on Saturday."""
    time.sleep(0.06 if city == "Kyoto" else 0.02)  # so that the one asked first answers last
    return "rain, 17 degrees" if city == "Kyoto" else "sun, 21 degrees"


def hotels(city: str, guests: int) -> list[str]:
    """List the hotels of a city with a room free."""
    return [f"Deer Park Inn, {guests} beds", f"{city} Palace, full"]


def book(hotel: str, nights: int) -> str:
    """Book a hotel."""
    return f"{hotel} is booked for {nights} nights"


TOOLS: Final = (weather, hotels, book)


def die_while_booking(db: str, session: str) -> None:
    """Run the calls that wait in a session, with a tool that kills its own process."""

    def book(hotel: str, nights: int) -> str:
        os.kill(os.getpid(), signal.SIGKILL)
        return f"{hotel} is booked for {nights} nights, and nobody will ever read this"

    with open_log(db) as log:
        log.session(session).run_calls(tools=[book])


# -- the story -------------------------------------------------------------------------------------


class DemoFailed(BruteError):
    """Something that the demo was about to claim is not so."""

    def __init__(self, claim: str) -> None:
        super().__init__(claim)
        self.claim = claim

    def __str__(self) -> str:
        return f"the demo failed: it is not so that {self.claim}; please report it"


def _require(holds: bool, claim: str) -> None:
    if not holds:
        raise DemoFailed(claim)


def tell(db: str, say: Say) -> None:
    """Tell the whole story, and record it in the log at `db`.

    Raises `DemoFailed` where something is not so.
    """
    began = time.perf_counter()
    with ScriptedServer(SCRIPT) as server:
        story = Story(db, server, say)
        story.head()
        for step in Story.steps:
            step(story)
        story.tail(time.perf_counter() - began)


class Story:
    """One telling of the story."""

    def __init__(self, db: str, server: ScriptedServer, say: Say) -> None:
        self.db, self.server, self.say = db, server, say
        self.width = min(screen_width() or WIDTH, WIDTH)
        with open_log(db) as log:
            self.id = _free(log, "demo")
        self._numbers = counting(1)
        self._shown = -1
        self._messages = 0

    # -- what is written ---------------------------------------------------------------------------

    def head(self) -> None:
        """Say what this is."""
        where = f"  a scripted provider at {self.server.url}; no key, no network"
        self.say(click.style("brute demo", bold=True) + muted(where))

    def _title(self, text: str, explained: str) -> None:
        number = click.style(f"{next(self._numbers)}", fg="cyan", bold=True)
        self.say("")
        self.say(f"{number}  {click.style(text, bold=True)}")
        for words in wrap(explained, self.width - 3, break_on_hyphens=False):
            self.say(f"   {words}")

    def _show_new(self, session: Session, killed_at: int | None = None) -> None:
        """Show the lines of the log that have not been shown yet."""
        rows = [row for row in session.timeline.rows if row.position > self._shown]
        lane = max(len(row.lane) for row in rows)
        for row in rows:
            self.say(line(row, self.width, lane))
            if row.position == killed_at:
                self.say(click.style("       -- here the process was killed --", fg="red"))
        self._shown = rows[-1].position

    @contextmanager
    def _session(self) -> Generator[tuple[Log, Session]]:
        """The log, opened anew, and the session in it."""
        with open_log(self.db) as log:
            yield log, log.session(self.id)

    # -- the steps ---------------------------------------------------------------------------------

    def works(self) -> None:
        """An agent works through the openai client; its tools run at once."""
        self._title(
            f"An agent works, through openai {version('openai')}",
            "Each line is an event, durable before the next thing happens. The model wants two "
            "tools at once: each runs in a lane of its own, and the first one asked answers last.",
        )
        with open_log(self.db) as log:
            session = log.start(agent="trips", id=self.id)
            asyncio.run(self._ask_openai(session, "Kyoto or Nara on Saturday?"))
            self._show_new(session)
            self._before = session.messages

    async def _ask_openai(self, session: Session, prompt: str) -> None:
        from openai import AsyncOpenAI

        base_url = self.server.base_url("openai")
        async with AsyncOpenAI(base_url=base_url, api_key="none", max_retries=0) as client:

            @run(OpenAI)
            async def gpt(request: dict[str, Any]) -> object:
                create = cast("Create", client.chat.completions.create)
                return await create(**request)

            await Agent(gpt, TOOLS, system=SYSTEM, model="gpt-5")(session, prompt)

    def rebuilds(self) -> None:
        """The file alone gives the same messages."""
        began = time.perf_counter()
        with self._session() as (log, session):
            messages = session.messages
            took = (time.perf_counter() - began) * 1_000
            stored = sum(len(state) for *_, state in log.events.states(self.id))
        _require(messages == self._before, "the file gives the messages that were in memory")
        results = [m.content for m in messages if m.role == "tool"]
        _require(results == [weather("Kyoto"), weather("Nara")], "results stand in call order")
        self._title(
            "The file was closed; opened again, it says the same",
            f"{count(self._shown + 1, 'event')} of {size(stored)}, opened and folded in "
            f"{took:.0f} ms into {count(len(messages), 'message')}: equal to those in memory, and "
            "the results stand in the order of their calls, whoever finished first.",
        )

    def goes_back(self) -> None:
        """Any earlier position can be read."""
        with self._session() as (_, session):
            reply = next(call.reply for call in session.calls)
            view = session.at(reply)
            names = [f"{call.call.name}({call.call.arguments['city']})" for call in view.calls.open]
        _require(len(names) == 2, "both calls were open then")
        self._title(
            "Any earlier position can be read",
            f"At {reply}, before a tool had run: {count(len(view.messages), 'message')}, and "
            f"{count(len(names), 'open call')}, {' and '.join(names)}.",
        )

    def switches(self) -> None:
        """The session goes on at the other provider."""
        self._title(
            f"The session goes on at another provider, through anthropic {version('anthropic')}",
            "Streamed, with thinking. The calls of OpenAI's model go along, in Anthropic's words.",
        )
        with self._session() as (_, session), self._claude() as claude:
            agent = Agent(claude, TOOLS, model="claude-opus-4-8", max_tokens=4_000)
            agent(session, "Then find us a hotel there.")
            self._show_new(session)

    @contextmanager
    def _claude(self) -> Generator[Run[object]]:
        from anthropic import Anthropic as Client

        base_url = self.server.base_url("anthropic")
        with Client(base_url=base_url, api_key="none", max_retries=0) as client:

            @run(Anthropic)
            def claude(request: dict[str, Any]) -> object:
                return client.messages.create(**request, **THINKING, stream=True)

            yield claude

    def translates(self) -> None:
        """One list, both bodies; both would be taken."""
        with self._session() as (_, session):
            asked = session.at(session.requests.requests[-1].position)
            openai, anthropic = _body(OpenAI, asked), _body(Anthropic, asked)
        _require(provider_refusal("openai.chat", openai) is None, "OpenAI would take it")
        _require(_claude_refuses(anthropic) is None, "Anthropic would take it")
        self._title(
            "One list of messages, as each provider would get it",
            f"It stands at {asked.position}. By the rules of both APIs, each would take its own.",
        )
        column = (self.width - 4) // 2
        both = outline("openai", openai), outline("anthropic", anthropic)
        for number, pair in enumerate(zip_longest(*both, fillvalue=("", ""))):
            cells = [clip(f"{pad(role, 9)} {said}".rstrip(), column) for role, said in pair]
            text = f"   {pad(cells[0], column)} {cells[1]}".rstrip()
            self.say(muted(text) if number == 0 else text)

    def is_killed(self) -> None:
        """The process is killed while a tool runs, and the next request is good all the same."""
        with self._session() as (_, session), self._claude() as claude:
            session.user("Yes, two nights.")
            session.complete(claude)
        self._let_a_process_die()
        with self._session() as (_, session):
            (call,) = session.calls.started
        self._title(
            "The process is killed while a tool runs (by kill -9, not in play)",
            f"The call at {call.intent} has no outcome: nobody can know whether the room is "
            "booked. So it is not run again. The model is told so, and the session goes on.",
        )
        with self._session() as (_, session), self._claude() as claude:
            Agent(claude, TOOLS)(session)
            self._show_new(session, killed_at=call.intent)
            body = _body(Anthropic, session.at(session.requests.requests[-1].position))
        refusal = _claude_refuses({**body, "messages": body["messages"][:-1]})
        if refusal is None:
            raise DemoFailed("a request without that result would be refused")
        said = f"HTTP 400: {refusal}"
        self.say("   Without that result: " + click.style(clip(said, self.width - 24), fg="red"))

    def _let_a_process_die(self) -> None:
        code = f"from {__name__} import die_while_booking as die; die(*__import__('sys').argv[1:])"
        child = subprocess.run(
            [sys.executable, "-c", code, self.db, self.id],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            check=False,
        )
        _require(child.returncode == -signal.SIGKILL, "the process was killed")

    def forks(self) -> None:
        """A fork shares the past by reference."""
        with self._session() as (log, session):
            asked = next(e.position for e in session.entries if _is_question(e.event))
            fork = session.fork(at=asked, id=_free(log, f"{self.id}-fork"))
            fork.user("Or rather Osaka?")
            own = [state for stream, *_, state in log.events.states(fork.id) if stream == fork.id]
            said = [message.content for message in fork.messages if message.role == "user"]
        _require(said[:1] == ["Kyoto or Nara on Saturday?"], "the fork begins as its parent does")
        self._title(
            f"A fork at {asked} asks something else: {' '.join(said)!r}",
            f"It has {count(len(fork.entries), 'event')}, {len(own)} of them its own "
            f"({size(sum(map(len, own)))}); the others are its parent's, not copies.",
        )

    steps: Final = (works, rebuilds, goes_back, switches, translates, is_killed, forks)

    def tail(self, seconds: float) -> None:
        """Say where all of it is."""
        _require(not self.server.refusals, "no request was refused")
        asked = count(len(self.server.requests), "request")
        self.say("")
        self.say(f"{asked} to a server as strict as the providers, none refused. {seconds:.1f} s.")
        self.say("All of it is in the log; look at it:")
        for verb in (f"log {self.id}", f"show {self.id}@turn:3 --as wire:openai", "stats"):
            self.say(click.style(f"   brute --db {quote(self.db)} {verb}", fg="cyan"))


def _free(log: Log, name: str) -> str:
    """An id that no session has: the name, or the name with a number."""
    taken = {info.id for info in log.sessions()}
    names = (name if number == 1 else f"{name}-{number}" for number in counting(1))
    return next(one for one in names if one not in taken)


def _is_question(event: object) -> bool:
    return isinstance(event, PromptAppended) and event.message.role == "user"


def _body(transport: type[MessageTransport], view: View) -> JSONObject:
    return transport.body(transport.request(view))


def _claude_refuses(body: JSONObject) -> str | None:
    refusal = provider_refusal("anthropic.messages", {**body, **THINKING})
    return None if refusal is None else refusal.message

"""`show --as wire:` is what the SDKs really sent."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from click.testing import Result

import brute
from brute.events.events import RequestSent
from brute.testing import Call, Reply, ScriptedServer
from brute.transports import Anthropic, OpenAI
from tests.brute.cli.sample import search

Run = Callable[..., Result]

SCRIPT = [
    Reply(thinking="Two cities.", calls=[Call("search", {"city": "Uji"}), Call("search", {})]),
    Reply("Uji, then. \u2028 \U0001f375"),
    Reply("Gladly."),
]


def worked(run: brute.Run[Any], db: Path, **settings: Any) -> None:
    """Record a session of three requests, with a hook that says something for one of them."""
    agent = brute.Agent(run=run, tools=[search], system="You plan trips.", **settings)
    with brute.open(db) as log:
        session = log.start(id="s")
        agent(session, "Tea?")
        with session.turn() as turn:
            turn.append("user", "Answer in one word.")
            turn.send(run)


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(SCRIPT) as running:
        yield running


def of_openai(server: ScriptedServer, db: Path) -> None:
    with openai.OpenAI(base_url=server.base_url("openai"), api_key="any") as client:

        @brute.run(OpenAI)
        def ask(request: dict[str, Any]) -> Any:
            return client.chat.completions.create(**request)

        worked(ask, db, model="gpt-5", temperature=0.5)


def of_anthropic(server: ScriptedServer, db: Path) -> None:
    with anthropic.Anthropic(base_url=server.base_url("anthropic"), api_key="any") as client:

        @brute.run(Anthropic)
        def ask(request: dict[str, Any]) -> Any:
            return client.messages.create(**request)

        thinking = {"type": "enabled", "budget_tokens": 1_024}
        worked(ask, db, model="claude-opus-4-8", max_tokens=2_000, thinking=thinking)


@pytest.mark.parametrize(("wire", "work"), [("openai", of_openai), ("anthropic", of_anthropic)])
def test_the_body_at_a_request_is_the_one_that_was_sent(
    folder: Path,
    run: Run,
    server: ScriptedServer,
    wire: str,
    work: Callable[[ScriptedServer, Path], None],
) -> None:
    work(server, folder / "brute.db")
    with brute.open("brute.db") as log:
        entries = log.session("s").entries
        asked = [entry.position for entry in entries if isinstance(entry.event, RequestSent)]

    shown = [run("show", f"s@{position}", "--as", f"wire:{wire}") for position in asked]

    assert [json.loads(one.stdout) for one in shown] == [r.body for r in server.requests]
    assert len(shown) == 3
    assert {one.stderr for one in shown} == {""}


def test_what_the_other_provider_cannot_get_is_told(
    folder: Path, run: Run, server: ScriptedServer
) -> None:
    of_anthropic(server, folder / "brute.db")

    result = run("show", "s", "--as", "wire:openai")

    assert result.exit_code == 0
    assert "Two cities." not in result.stdout
    assert "brute: note: message 2, part 0: omitted" in result.stderr

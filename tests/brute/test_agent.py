"""The common loop."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import brute
from brute.transports import Anthropic, OpenAI
from tests.brute.replies import chat


def search(q: str) -> str:
    """Search."""
    return q.upper()


def test_an_agent_asks_and_runs_until_there_is_nothing_to_run(
    log: brute.Log, scripted: Any
) -> None:
    model = scripted(chat("look", ("search", {"q": "kyoto"})), chat("done"))
    agent = brute.Agent(model, [search], system="Be brief.", model="m", max_tokens=9)
    session = log.start()

    reply = agent(session, "Where?")

    assert reply.text == "done"
    assert [m.role for m in session.messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    assert model.requests[0]["max_tokens"] == 9
    assert model.requests[0]["tools"][0]["function"]["name"] == "search"


def test_the_system_text_is_said_once(log: brute.Log, scripted: Any) -> None:
    agent = brute.Agent(scripted(chat("a"), chat("b")), system="Be brief.", model="m")
    session = log.start()

    agent(session, "one")
    agent(session, "two")

    assert [m.role for m in session.messages].count("system") == 1


def test_an_agent_that_never_ends_is_stopped_and_can_go_on(log: brute.Log, scripted: Any) -> None:
    model = scripted(*(chat(None, ("search", {"q": "x"})) for _ in range(3)), chat("done"))
    session = log.start()

    with pytest.raises(brute.TurnLimit, match="3 turns"):
        brute.Agent(model, [search], max_turns=3, model="m")(session, "go")

    assert brute.Agent(model, [search], max_turns=3)(session).text == "done"


def test_an_agent_without_a_prompt_runs_the_open_calls_first(log: brute.Log, scripted: Any) -> None:
    model = scripted(chat(None, ("search", {"q": "x"})), chat("done"))
    session = log.start()
    session.user("go")
    session.complete(model, model="m", tools=[search])

    reply = brute.Agent(model, [search])(log.session(session.id))

    assert reply.text == "done"
    assert [m.content for m in log.session(session.id).messages if m.role == "tool"] == ["X"]


def test_an_async_agent_is_the_same_agent(log: brute.Log) -> None:
    replies = iter([chat(None, ("search", {"q": "x"})), chat("done")])

    @brute.run(OpenAI)
    async def model(request: dict[str, Any]) -> Any:
        return next(replies)

    agent = brute.Agent(model, [search], model="m")

    reply = asyncio.run(brute.record(agent, log, "t1", prompt="go"))

    assert reply.text == "done"
    assert asyncio.run(brute.replay(agent, log, "t1")).text == "done"


def test_a_reply_that_was_only_paused_goes_back_to_the_model(log: brute.Log) -> None:
    said: list[Any] = []

    @brute.run(Anthropic)
    def model(request: dict[str, Any]) -> Any:
        said.append(request["messages"])
        paused = len(said) == 1
        text = {"type": "text", "text": "I look." if paused else "There."}
        look = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-x",
            "content": [text, look] if paused else [text],
            "stop_reason": "pause_turn" if paused else "end_turn",
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }

    reply = brute.Agent(model, model="claude-x", max_tokens=9)(log.start(), "Where?")

    assert reply.text == "There."
    assert [message["role"] for message in said[1]] == ["user", "assistant"]

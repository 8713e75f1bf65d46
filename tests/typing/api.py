"""What a user's type checker sees. Checked by mypy and pyright, never run."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from typing import Any, assert_type

import brute
from brute.events.messages import Message
from brute.projections.calls import Calls
from brute.projections.usage import UsageTotals
from brute.transports import Anthropic, OpenAI
from brute.transports.base import Delta


@brute.run(Anthropic)
def claude(request: dict[str, Any]) -> dict[str, Any]:
    return request


@brute.run(OpenAI)
async def gpt(request: dict[str, Any]) -> dict[str, Any]:
    return request


@brute.effect(idempotent=True)
def rate(currency: str) -> float:
    return len(currency)


@brute.effect
async def fetch(url: str) -> bytes:
    return url.encode()


def search(query: str) -> list[str]:
    return [query]


async def lookup(query: str) -> list[str]:
    return [query]


def reading(session: brute.Session) -> None:
    assert_type(session.id, str)
    assert_type(session.messages, list[Message])
    assert_type(session.calls, Calls)
    assert_type(session.usage, UsageTotals)
    assert_type(session.at(3), brute.View)
    assert_type(session.fork(at=3), brute.Session)
    assert_type(session.user("hello"), brute.Entry)


def plain(session: brute.Session) -> None:
    reply = session.complete(claude, model="m", tools=[search], max_tokens=10)
    assert_type(reply, brute.Reply)
    assert_type(session.run_calls(reply), list[brute.ToolResult])
    for call in session.calls.open:
        assert_type(session.call(call, search), brute.ToolResult)
        assert_type(session.returned(call, "x"), brute.ToolResult)
    with session.turn(model="m") as turn:
        assert_type(turn.stream(claude), Generator[Delta, None, brute.Reply])
        assert_type(turn.receive(OpenAI, {}), brute.Reply)
    assert_type(rate("JPY"), float)
    assert_type(session.call(rate, "JPY"), float)
    assert_type(session.value("n", lambda: 3), int)


async def awaited(session: brute.Session) -> None:
    for call in session.calls.open:
        assert_type(await session.call(call, lookup), brute.ToolResult)
    reply = await session.complete(gpt)
    assert_type(reply, brute.AsyncReply)
    assert_type(await session.run_calls(reply), list[brute.ToolResult])
    assert_type(await session.run_calls(is_async=True), list[brute.ToolResult])
    assert_type(session.turn().stream(gpt), AsyncGenerator[Delta, None])
    assert_type(await fetch("https://example.org"), bytes)


def plan(session: brute.Session, city: str) -> str:
    return city


async def plan_async(session: brute.Session) -> int:
    return 1


async def runs(log: brute.Log) -> None:
    assert_type(brute.record(plan, log, "t1", city="Kyoto"), str)
    assert_type(brute.resume(plan, log, "t1"), str)
    assert_type(brute.replay(plan, log, "t1"), str)
    assert_type(await brute.record(plan_async, log), int)


def opening() -> None:
    with brute.open("a.db") as log:
        assert_type(log, brute.Log)
        assert_type(log.start(agent="build"), brute.Session)
        assert_type(log.session("last"), brute.Session)

"""Plain typed functions, as the model is told of them and as they are run."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from typing import Annotated, Any, Literal

import msgspec
import pytest

import brute
from brute.tools import describe, name_of, to_content
from brute.transports import OpenAI
from tests.brute.replies import chat


@dataclasses.dataclass
class Place:
    name: str
    stars: int = 3


def book(
    place: Place,
    nights: Annotated[int, msgspec.Meta(description="how many nights", ge=1)],
    board: Literal["none", "half"] = "none",
    tags: list[str] | None = None,
) -> str:
    """Book a room.

    This paragraph is for people.
    """
    return f"{place.name} {nights} {board} {tags}"


def test_the_model_is_told_what_the_signature_says() -> None:
    spec = describe(book)

    assert (spec.name, spec.description) == ("book", "Book a room.")
    assert spec.schema is not None
    properties = spec.schema["properties"]
    assert spec.schema["required"] == ["place", "nights"]
    assert properties["nights"] == {
        "type": "integer",
        "minimum": 1,
        "description": "how many nights",
    }
    assert properties["board"] == {"enum": ["half", "none"], "default": "none"}
    assert spec.schema["$defs"]["Place"]["required"] == ["name"]


def run(session: brute.Session, scripted: Any, tool: Any, arguments: Any) -> brute.ToolResult:
    reply = session.complete(
        scripted(chat(None, (name_of(tool), arguments))), model="m", tools=[tool]
    )
    (result,) = session.run_calls(reply)
    assert isinstance(result, brute.ToolResult)
    return result


def test_arguments_arrive_as_the_types_of_the_signature(
    session: brute.Session, scripted: Any
) -> None:
    result = run(session, scripted, book, {"place": {"name": "Ryokan"}, "nights": 2})

    assert (result.outcome, result.text) == ("ok", "Ryokan 2 none None")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"place": {"name": "R"}, "nights": "two"}, "nights"),
        ({"place": {"name": "R"}}, "nights"),
        ({"place": {"name": "R"}, "nights": 0}, ">= 1"),
    ],
)
def test_wrong_arguments_are_an_error_the_model_can_read(
    session: brute.Session, scripted: Any, arguments: Any, says: str
) -> None:
    result = run(session, scripted, book, arguments)

    assert result.outcome == "error"
    assert says in result.text


def test_a_tools_exception_is_its_outcome(session: brute.Session, scripted: Any) -> None:
    def fails() -> None:
        raise RuntimeError("no rooms left")

    result = run(session, scripted, fails, {})

    assert (result.outcome, result.text) == ("error", "RuntimeError: no rooms left")
    assert session.messages[-1].parts == (result,)


def test_a_call_of_a_tool_that_is_not_there_is_answered(
    session: brute.Session, scripted: Any
) -> None:
    reply = session.complete(scripted(chat(None, ("ghost", {}))), model="m")

    (result,) = session.run_calls(reply)

    assert result.outcome == "error"
    assert "ghost" in result.text


def test_a_malformed_call_is_answered_and_never_run(session: brute.Session, scripted: Any) -> None:
    body = chat(None, ("book", {}))
    body["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] = '{"nights": '
    ran: list[str] = []

    def book(nights: int = 1) -> None:
        ran.append("ran")

    reply = session.complete(scripted(body), model="m", tools=[book])
    (result,) = session.run_calls(reply)

    assert ran == []
    assert result.outcome == "error"
    assert session.messages[1].tool_calls[0].raw == '{"nights": '


def test_ctrl_c_in_a_tool_is_recorded_and_raised(session: brute.Session, scripted: Any) -> None:
    def slow() -> None:
        raise KeyboardInterrupt

    reply = session.complete(scripted(chat(None, ("slow", {}))), model="m", tools=[slow])
    with pytest.raises(KeyboardInterrupt):
        session.run_calls(reply)

    assert session.calls.answered[0].outcome == "interrupted"
    session.user("go on")
    assert session.complete(scripted(chat("ok"))).text == "ok"


def test_async_calls_run_at_once_and_plain_tools_do_not_block_the_loop(
    session: brute.Session,
) -> None:
    main = threading.get_ident()
    threads: set[int] = set()
    both = asyncio.Event()
    waiting = []

    async def meet(n: int) -> int:
        waiting.append(n)
        if len(waiting) == 2:
            both.set()
        await asyncio.wait_for(both.wait(), 5)
        return n

    def plain() -> str:
        threads.add(threading.get_ident())
        return "plain"

    @brute.run(OpenAI)
    async def model(request: dict[str, Any]) -> Any:
        return chat(None, ("meet", {"n": 1}), ("meet", {"n": 2}), ("plain", {}))

    async def talk() -> Any:
        reply = await session.complete(model, model="m", tools=[meet, plain])
        return await session.run_calls(reply)

    results = asyncio.run(talk())

    assert [r.text for r in results] == ["1", "2", "plain"]
    assert main not in threads
    assert [e.lane for e in session.entries if e.lane != "/"][:1] == ["/0"]


@pytest.mark.parametrize(
    ("value", "parts"),
    [
        (None, ()),
        ("text", (brute.Text(text="text"),)),
        ([1, {"a": None}], (brute.Json(value=[1, {"a": None}]),)),
        (Place("R"), (brute.Json(value={"name": "R", "stars": 3}),)),
        (
            [brute.Text(text="see"), brute.Media(kind="image", url="https://x/y.png")],
            (brute.Text(text="see"), brute.Media(kind="image", url="https://x/y.png")),
        ),
        ([], (brute.Json(value=[]),)),
    ],
)
def test_what_a_tool_returns_becomes_parts(value: object, parts: tuple[object, ...]) -> None:
    assert to_content(value) == parts


def test_a_result_that_json_has_no_word_for_is_an_error_outcome(
    session: brute.Session, scripted: Any
) -> None:
    def odd() -> object:
        return object()

    assert run(session, scripted, odd, {}).outcome == "error"


def test_a_signature_that_cannot_be_described_is_refused_when_it_is_offered(
    session: brute.Session,
) -> None:
    def many(*names: str) -> None: ...

    with pytest.raises(brute.UsageError, match="names"):
        session.turn(tools=[many])


def test_an_effect_can_be_a_tool(session: brute.Session, scripted: Any) -> None:
    @brute.effect(idempotent=True)
    def rate(currency: str) -> float:
        """Tell the rate."""
        return 1.5

    assert run(session, scripted, rate, {"currency": "JPY"}).text == "1.5"


def test_a_tool_that_is_not_offered_any_more_is_not_run(
    session: brute.Session, scripted: Any
) -> None:
    deleted: list[str] = []

    def delete(path: str) -> None:
        deleted.append(path)

    model = scripted(chat("Ready."), chat(None, ("delete", {"path": "/"})))
    session.complete(model, model="m", tools=[delete])
    reply = session.complete(model, tools=None)

    (result,) = session.run_calls(reply)

    assert (result.outcome, deleted) == ("error", [])
    assert "no tool named 'delete'" in result.text

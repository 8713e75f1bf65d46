"""One request, one outcome, whatever happens in between."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

import brute
from brute.events.events import (
    ReplyInterrupted,
    ReplyReceived,
    RequestFailed,
    RequestSent,
    StreamChunked,
    TurnStarted,
    tag_of,
)
from brute.transports import Anthropic, OpenAI
from tests.brute.replies import chat, chunks


def tags(session: brute.Session) -> list[str]:
    return [tag_of(entry.event) for entry in session.entries]


def test_a_turn_and_its_request_are_one_commit_before_the_call(
    session: brute.Session,
) -> None:
    @brute.run(OpenAI)
    def model(request: dict[str, Any]) -> Any:
        assert tags(session)[-2:] == ["turn.started", "request.sent"]
        assert session.entries[-1].append_id is None, "the second of its commit"
        return chat("Hi.")

    reply = session.complete(model, model="gpt-x", temperature=0)

    assert reply.text == "Hi."
    assert reply.finish == "stop"
    assert reply.usage is not None
    assert reply.usage.input == 10
    assert tags(session)[-1] == "reply.received"


def test_settings_are_recorded_once_and_only_when_they_change(
    session: brute.Session, scripted: Any
) -> None:
    model = scripted(*(chat(str(n)) for n in range(4)))
    session.complete(model, model="a", max_tokens=5, temperature=0)
    session.complete(model)
    session.complete(model, model="b")
    session.complete(model, temperature=None)

    one, two, three, four = [e.event for e in session.entries if isinstance(e.event, TurnStarted)]
    assert (one.model, one.parameters) == (
        brute.ModelRef(id="a"),
        {"max_tokens": 5, "temperature": 0},
    )
    assert repr(two) == "TurnStarted()"
    assert repr(three) == "TurnStarted(model=ModelRef(id='b'))"
    assert four.parameters == {"max_tokens": 5}
    assert [r["max_tokens"] for r in model.requests] == [5] * 4


def test_a_failing_call_is_an_outcome_and_raises_as_it_was(
    session: brute.Session, scripted: Any
) -> None:
    class RateLimited(Exception):
        status_code = 429

    with pytest.raises(RateLimited):
        session.complete(scripted(RateLimited("slow down")), model="m")

    failed = session.entries[-1].event
    assert isinstance(failed, RequestFailed)
    assert (failed.error.kind, failed.error.status) == ("RateLimited", 429)
    assert session.complete(scripted(chat("ok"))).text == "ok"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1)])
def test_ctrl_c_during_the_call_leaves_a_session_that_continues(
    session: brute.Session, scripted: Any, error: BaseException
) -> None:
    with pytest.raises(type(error)):
        session.complete(scripted(error), model="m")

    assert tags(session)[-1] == "request.failed"
    session.user("again")
    assert session.complete(scripted(chat("ok"))).text == "ok"


def test_an_error_body_is_a_failed_request(session: brute.Session, scripted: Any) -> None:
    body = {"error": {"message": "no such model", "type": "invalid_request_error", "code": None}}

    with pytest.raises(brute.TransportError, match="no such model"):
        session.complete(scripted(body), model="m")

    assert tags(session)[-1] == "request.failed"


def test_a_stream_shows_its_deltas_and_records_one_reply(
    session: brute.Session, scripted: Any
) -> None:
    turn = session.turn(model="m")

    seen = [delta.text for delta in turn.stream(scripted(chunks("Hel", "lo", "!")))]

    assert "".join(filter(None, seen)) == "Hello!"
    assert turn.reply is not None
    assert turn.reply.text == "Hello!"
    assert session.messages[-1].content == "Hello!"
    assert tags(session)[-3:] == ["turn.started", "request.sent", "reply.received"]


def test_complete_reads_a_stream_too(session: brute.Session, scripted: Any) -> None:
    assert session.complete(scripted(chunks("a", "b")), model="m").text == "ab"


def test_a_stream_that_breaks_is_an_interrupted_reply(session: brute.Session) -> None:
    @brute.run(OpenAI)
    def model(request: dict[str, Any]) -> Iterator[Any]:
        def broken() -> Iterator[Any]:
            yield from chunks("Half a", finish=None)
            raise ConnectionError("reset")

        return broken()

    with pytest.raises(ConnectionError):
        session.complete(model, model="m")

    cut = session.entries[-1].event
    assert isinstance(cut, ReplyInterrupted)
    assert cut.message is not None
    assert cut.message.content == "Half a"
    assert cut.error is not None
    assert cut.error.kind == "ConnectionError"


def test_a_stream_that_just_ends_is_cut_and_says_so(session: brute.Session, scripted: Any) -> None:
    with pytest.raises(brute.StreamCut, match="stop record"):
        session.complete(scripted(chunks("Half a", finish=None)), model="m")

    assert tags(session)[-1] == "reply.interrupted"


def test_leaving_the_loop_early_is_an_interrupted_reply(
    session: brute.Session, scripted: Any
) -> None:
    stream = session.turn(model="m").stream(scripted(chunks("one ", "two ", "three")))
    for delta in stream:
        if delta.text == "one ":
            break
    stream.close()

    cut = session.entries[-1].event
    assert isinstance(cut, ReplyInterrupted)
    assert cut.reason == "the caller stopped reading"


def test_a_call_cut_by_the_token_limit_is_not_run(session: brute.Session, scripted: Any) -> None:
    ran: list[int] = []

    def look(n: int) -> str:
        ran.append(n)
        return "seen"

    body = chat(None, ("look", {"n": 1}), ("look", {"n": 2}), finish="length")
    reply = session.complete(scripted(body), model="m", tools=[look])
    first, second = session.run_calls(reply)

    assert reply.finish == "length"
    assert ran == [1]
    assert (first.outcome, second.outcome) == ("ok", "error")
    assert "not run" in second.text


def test_the_explicit_form_records_the_same_events(session: brute.Session) -> None:
    with session.turn(model="m") as turn:
        request = OpenAI.request(turn)
        assert request["messages"] == [{"role": "user", "content": "Hello?"}]
        reply = turn.receive(OpenAI, chat("Hi."))

    assert reply.text == "Hi."
    assert tags(session)[-3:] == ["turn.started", "request.sent", "reply.received"]


def test_a_request_that_was_never_answered_gets_its_outcome_when_the_turn_ends(
    session: brute.Session,
) -> None:
    with session.turn(model="m") as turn:
        OpenAI.request(turn)

    assert tags(session)[-1] == "request.failed"


def test_receive_without_a_request_says_what_to_write(session: brute.Session) -> None:
    with (
        session.turn(model="m") as turn,
        pytest.raises(brute.UsageError, match=r"turn\.receive\(OpenAI"),
    ):
        turn.receive(OpenAI, chat("Hi."))


def test_a_turn_is_sent_once(session: brute.Session, scripted: Any) -> None:
    turn = session.turn(model="m")
    turn.send(scripted(chat("a")))

    with pytest.raises(brute.UsageError, match="sent already"):
        turn.send(scripted(chat("b")))


def test_the_request_says_what_it_was_built_from(session: brute.Session, scripted: Any) -> None:
    session.complete(scripted(chat("a")), model="m")

    (sent,) = [e.event for e in session.entries if isinstance(e.event, RequestSent)]
    assert (sent.transport, sent.upto, sent.items) == ("OpenAI", 2, 1)
    assert sent.settings
    assert sent.chain


def test_the_provider_can_change_in_mid_session(session: brute.Session, scripted: Any) -> None:
    @brute.run(Anthropic)
    def claude(request: dict[str, Any]) -> Any:
        assert Anthropic.check(request) == []
        assert "Hello?" in str(request["messages"])
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-x",
            "content": [{"type": "text", "text": "Oui."}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }

    session.complete(scripted(chat(None, ("f", {"a": 1}))), model="m")
    session.user("In French?")

    reply = session.complete(claude, model="claude-x", max_tokens=100)

    assert reply.text == "Oui."
    assert reply.message.origin is not None
    assert reply.message.origin.api == "anthropic.messages"


def test_async_turns_and_streams_are_the_same_code(session: brute.Session) -> None:
    @brute.run(OpenAI)
    async def model(request: dict[str, Any]) -> Any:
        await asyncio.sleep(0)
        if len(request["messages"]) > 1:
            return streamed()
        return chat("whole")

    async def streamed() -> AsyncIterator[Any]:
        for chunk in chunks("in ", "parts"):
            await asyncio.sleep(0)
            yield chunk

    async def talk() -> list[str]:
        first = await session.complete(model, model="m")
        assert first.text == "whole"
        turn = session.turn()
        seen = [delta.text async for delta in turn.stream(model)]
        assert turn.reply is not None
        assert turn.reply.text == "in parts"
        return seen

    assert "".join(filter(None, asyncio.run(talk()))) == "in parts"
    assert tags(session).count("reply.received") == 2


def test_a_cancelled_task_leaves_an_outcome(session: brute.Session) -> None:
    @brute.run(OpenAI)
    async def model(request: dict[str, Any]) -> Any:
        asked.set()
        await asyncio.Event().wait()

    asked = asyncio.Event()

    async def cancel() -> None:
        task = asyncio.create_task(session.complete(model, model="m"))
        await asyncio.wait_for(asked.wait(), 5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())

    failed = session.entries[-1].event
    assert isinstance(failed, RequestFailed)
    assert failed.error.kind == "CancelledError"


def test_an_async_function_where_plain_code_drives_says_what_to_do(
    session: brute.Session,
) -> None:
    async def look() -> str:
        return "seen"

    def hidden() -> object:
        return look()

    with pytest.raises(brute.UsageError, match="async"):
        session.call(hidden)


def test_what_had_streamed_when_the_process_died_is_recovered(
    log: brute.Log, session: brute.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    @brute.run(OpenAI)
    def model(request: dict[str, Any]) -> Iterator[Any]:
        def forever() -> Iterator[Any]:
            yield from chunks(*(f"{n:0500d} " for n in range(40)), finish=None)
            raise Killed

        return forever()

    # A killed process writes no outcome.
    def die(draft: object) -> None:
        raise Killed

    monkeypatch.setattr(session.journal, "outcome", die)
    with pytest.raises(Killed):
        session.complete(model, model="m")
    after = log.session("s")
    assert tags(after)[-1] == "request.sent"

    (entry,) = after.recover()

    assert isinstance(entry.event, ReplyInterrupted)
    assert len(after.messages[-1].content) >= 40 * 501 - 8192
    assert after.recover() == []


def test_a_reply_is_kept_with_everything_the_provider_said(
    session: brute.Session, scripted: Any
) -> None:
    session.complete(scripted(chat("a")), model="m")

    event = session.entries[-1].event
    assert isinstance(event, ReplyReceived)
    assert event.finish_raw == "stop"
    assert event.response_id is not None
    assert event.message.origin is not None
    assert event.message.origin.model == "gpt-x"


def test_a_long_prompt_does_not_hold_up_the_event_loop(log: brute.Log) -> None:
    session = log.start()
    for number in range(100):
        session.append(brute.Message.user(f"{number}"), brute.Message.assistant("ok"))
    threads: set[int] = set()

    class Watched(OpenAI):
        @classmethod
        def render(cls, view: Any, **options: Any) -> Any:
            threads.add(threading.get_ident())
            return super().render(view, **options)

    @brute.run(Watched)
    async def model(request: dict[str, Any]) -> Any:
        assert len(request["messages"]) == 200
        return chat("done")

    asyncio.run(session.complete(model, model="m"))

    assert threading.get_ident() not in threads


def test_what_is_said_while_a_request_is_built_is_in_it_or_behind_it(log: brute.Log) -> None:
    session = log.start()
    for number in range(100):
        session.user(f"{number}")
    said: list[int] = []

    class Interrupted(OpenAI):
        @classmethod
        def render(cls, view: Any, **options: Any) -> Any:
            if not said:
                said.append(session.user("late").position)
            return super().render(view, **options)

    @brute.run(Interrupted)
    async def model(request: dict[str, Any]) -> Any:
        assert request["messages"][-1]["content"] == "late"
        return chat("done")

    asyncio.run(session.complete(model, model="m"))

    (sent,) = [e.event for e in session.entries if isinstance(e.event, RequestSent)]
    assert sent.upto > said[0]


class AsyncStream:
    """What an async SDK gives for `stream=True`, or (not `entered`) from `messages.stream(…)`."""

    def __init__(self, *texts: str, finish: str | None = "stop") -> None:
        self.chunks = chunks(*texts, finish=finish)
        self.closed = False

    def __aiter__(self) -> AsyncStream:
        return self

    async def __anext__(self) -> Any:
        for chunk in self.chunks:
            return chunk
        raise StopAsyncIteration

    async def close(self) -> None:
        await asyncio.sleep(0)
        self.closed = True


async def test_an_async_stream_that_is_left_early_is_closed(session: brute.Session) -> None:
    stream = AsyncStream("One", "Two", "Three")

    @brute.run(OpenAI)
    async def model(request: dict[str, Any]) -> AsyncStream:
        return stream

    with session.turn(model="gpt-x") as turn:
        async with contextlib.aclosing(turn.stream(model)) as deltas:
            async for _ in deltas:
                break

    assert stream.closed
    cut = session.entries[-1].event
    assert isinstance(cut, ReplyInterrupted)
    assert cut.message is not None
    assert cut.message.content == "One"


async def test_the_turn_does_not_end_before_its_stream_is_let_go_of(session: brute.Session) -> None:
    @brute.run(OpenAI)
    async def model(request: dict[str, Any]) -> AsyncStream:
        return AsyncStream("One", "Two")

    with session.turn(model="gpt-x") as turn:
        deltas = turn.stream(model)
        async for _ in deltas:
            break
    assert tags(session)[-1] == "request.sent", "what had come is not thrown away"
    await deltas.aclose()

    assert tags(session)[-1] == "reply.interrupted"


async def test_the_stream_manager_of_an_async_sdk_is_entered(session: brute.Session) -> None:
    class Manager:
        async def __aenter__(self) -> AsyncStream:
            return AsyncStream("Hi.")

        async def __aexit__(self, *_: object) -> None: ...

    @brute.run(OpenAI)
    async def model(request: dict[str, Any]) -> Manager:
        return Manager()

    assert (await session.complete(model, model="gpt-x")).text == "Hi."
    with session.turn(model="gpt-x") as turn:
        OpenAI.request(turn)
        reply = await turn.receive(OpenAI, Manager())
    assert reply.text == "Hi."


def test_a_stream_is_closed_also_when_its_outcome_finds_no_room(
    session: brute.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken:
        closed = False

        def __iter__(self) -> Broken:
            return self

        def __next__(self) -> Any:
            raise ConnectionError("gone")

        def close(self) -> None:
            self.closed = True

    def full(draft: object) -> Any:
        raise brute.StoreFull("the log", "the disk is full", "make room")

    stream = Broken()
    monkeypatch.setattr(session.journal, "outcome", full)

    with pytest.raises(brute.StoreFull) as caught:
        session.complete(brute.run(OpenAI)(lambda request: stream), model="gpt-x")

    assert stream.closed
    assert isinstance(caught.value.__context__, ConnectionError)


def test_what_had_streamed_is_kept_until_its_outcome_is_durable(
    log: brute.Log, session: brute.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.user("Hello?")
    turn = session.turn(model="gpt-x")
    OpenAI.request(turn)
    stream = f"{session.id}~{session.position}"
    frames = tuple(chunks("so far", finish=None))
    log.events.append(stream, [StreamChunked(frames=frames)], expect=-1)
    again = log.session(session.id)

    def full(draft: object) -> Any:
        raise brute.StoreFull("the log", "the disk is full", "make room")

    with monkeypatch.context() as patch:
        patch.setattr(again.journal, "outcome", full)
        with pytest.raises(brute.StoreFull):
            again.recover()
    (left,) = again.recover()

    assert isinstance(left.event, ReplyInterrupted)
    assert left.event.message is not None
    assert left.event.message.content == "so far"
    assert log.events.last(stream) == -1

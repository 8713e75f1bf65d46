"""The window: the newest messages, nothing torn."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from brute.events.errors import UsageError
from brute.events.messages import Message
from brute.projections import window
from tests.projections.logs import call
from tests.projections.strategies import messages as any_message


@st.composite
def numbered(draw: st.DrawFn) -> tuple[list[Message], list[tuple[int, int]]]:
    """A conversation whose calls have ids of their own, and which message answers which."""
    said: list[Message] = []
    waiting: list[tuple[int, str]] = []
    answers: list[tuple[int, int]] = []
    for word in draw(st.lists(st.sampled_from("sduuaaattt"), max_size=25)):
        at = len(said)
        if word == "t" and waiting:
            caller, asked = waiting.pop(draw(st.integers(0, len(waiting) - 1)))
            answers.append((caller, at))
            said.append(Message.tool(asked, "r"))
        elif word == "a":
            ids = [f"{at}.{n}" for n in range(draw(st.integers(0, 3)))]
            waiting += [(at, one) for one in ids]
            said.append(Message.assistant("a", *(call("t", id=one) for one in ids)))
        elif word in "sd":
            said.append(Message.system("s") if word == "s" else Message.developer("d"))
        else:
            said.append(Message.user("u"))
    return [replace(m, name=str(n)) for n, m in enumerate(said)], answers


def places(messages: list[Message]) -> list[int]:
    return [int(m.name or "-1") for m in messages]


def head_of(messages: list[Message]) -> int:
    roles = [m.role in ("system", "developer") for m in messages]
    return roles.index(False) if False in roles else len(roles)


@given(numbered(), st.integers(0, 12))
def test_no_call_is_cut_from_its_result(
    conversation: tuple[list[Message], list[tuple[int, int]]], limit: int
) -> None:
    messages, answers = conversation

    kept = set(places(window(messages, limit)))

    assert all((caller in kept) == (answer in kept) for caller, answer in answers)


@given(numbered(), st.integers(0, 12))
def test_the_window_is_the_head_and_as_much_of_the_end_as_fits(
    conversation: tuple[list[Message], list[tuple[int, int]]], limit: int
) -> None:
    messages, answers = conversation
    head, size = head_of(messages), len(messages)

    kept = places(window(messages, limit))

    start = size - (len(kept) - head)
    assert kept == [*range(head), *range(start, size)]
    whole = [
        cut
        for cut in range(head, size + 1)
        if not any(caller < cut <= answer for caller, answer in answers)
    ]
    fitting = [cut for cut in whole if size - cut <= limit]
    if limit == 0 or fitting[0] < size:
        assert start == fitting[0]
    else:  # the newest exchange alone is longer than the limit: it is kept all the same
        assert start == max(cut for cut in whole if cut < size or size == head)


@given(st.lists(any_message, max_size=12), st.integers(0, 12))
def test_any_messages_can_be_windowed(messages: list[Message], limit: int) -> None:
    kept = window(messages, limit)
    head = head_of(messages)

    assert kept[:head] == messages[:head]
    assert kept[head:] == messages[len(messages) - (len(kept) - head) :]
    assert window(messages, len(messages)) == messages


def test_an_exchange_that_does_not_fit_is_left_out_whole() -> None:
    said = [
        Message.system("s"),
        Message.user("one"),
        Message.assistant(call("a"), call("b")),
        Message.tool("a", "ra"),
        Message.tool("b", "rb"),
        Message.assistant("done"),
    ]

    assert window(said, 5) == said
    assert window(said, 4) == [said[0], *said[2:]]
    for limit in (1, 2, 3):
        assert window(said, limit) == [said[0], said[5]]
    assert window(said, 0) == [said[0]]


def test_the_newest_exchange_is_kept_even_if_it_is_too_long() -> None:
    said = [
        Message.user("one"),
        Message.assistant(call("a"), call("b")),
        Message.tool("a", "ra"),
        Message.tool("b", "rb"),
    ]

    assert window(said, 1) == said[1:]


def test_ids_that_repeat_or_are_absent_are_paired_with_the_newest_call() -> None:
    said = [
        Message.assistant(call("a", id="x")),
        Message.tool("x", "r"),
        Message.assistant(call("a", id="x")),
        Message.tool("x", "r"),
        Message.assistant(call("a", id=None)),
        Message.tool(None, "r"),
    ]

    assert window(said, 5) == said[2:]
    assert window(said, 3) == said[4:]


def test_a_second_result_stays_with_the_call_that_the_first_answered() -> None:
    said = [Message.assistant(call("a")), Message.tool("a", "r"), Message.tool("a", "again")]

    assert window(said, 1) == said


def test_a_negative_window_is_refused_in_words() -> None:
    with pytest.raises(UsageError, match="a window of -1 messages; give 0 or more"):
        window([], -1)

"""The event table: tags, classes, outcomes, settings."""

from __future__ import annotations

import re
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as hst
from msgspec import UNSET

from brute.events import events as e
from brute.testing import st
from tests.events import stored
from tests.rooms import ROOT


def test_every_event_has_a_tag_of_ours_and_a_class() -> None:
    assert set(e.EVENTS.values()) == set(get_args(e.AnyEvent))
    for tag, cls in e.EVENTS.items():
        assert re.fullmatch(r"[a-z]+\.[a-z]+", tag)
        assert isinstance(cls.event_class, e.EventClass)
        assert e.TAGS[cls] == tag


def test_an_intent_names_its_outcomes_and_an_outcome_answers_one_kind_of_intent() -> None:
    answers = {tag: cls.answered_by for tag, cls in e.EVENTS.items() if cls.answered_by}
    outcomes = [tag for tags in answers.values() for tag in tags]

    assert all(e.EVENTS[tag].event_class is e.EventClass.INTENT for tag in answers)
    assert sorted(outcomes) == sorted(
        tag for tag, cls in e.EVENTS.items() if cls.event_class is e.EventClass.OUTCOME
    )


@given(st.events(foreign=True))
def test_every_event_says_its_tag_and_class(event: e.AnyEvent) -> None:
    tag, kind = e.tag_of(event), e.class_of(event)

    known = e.EVENTS.get(tag)
    assert kind is (e.EventClass.OBSERVED if known is None else known.event_class)


def test_an_unknown_event_is_a_value() -> None:
    event = e.UnknownEvent("galaxy.folded", b"{}")

    assert event == e.UnknownEvent(tag="galaxy.folded", raw=b"{}")
    assert event != e.UnknownEvent("galaxy.unfolded", b"{}")
    assert repr(event) == "UnknownEvent('galaxy.folded', b'{}')"
    with pytest.raises(AttributeError, match="immutable"):
        event.tag = "x"


# -- settings ------------------------------------------------------------------------------------


def turns() -> hst.SearchStrategy[e.TurnStarted]:
    return hst.from_type(e.TurnStarted)


@given(hst.lists(turns(), max_size=4))
def test_settings_are_what_the_turns_add_up_to(turns: list[e.TurnStarted]) -> None:
    settings = e.Settings()
    for turn in turns:
        settings = settings.after(turn)

    for name in e.SETTINGS:
        said = [value for turn in turns if (value := getattr(turn, name)) is not UNSET]
        assert getattr(settings, name) == (said[-1] if said else None)


@given(turns(), turns())
def test_a_turn_records_what_changed_and_nothing_else(
    first: e.TurnStarted, second: e.TurnStarted
) -> None:
    old = e.Settings().after(first)
    new = old.after(second)

    change = old.changes_to(new)

    assert repr(old.after(change)) == repr(new)
    assert new.changes_to(new) == e.TurnStarted()
    for name in e.SETTINGS:
        if getattr(change, name) is not UNSET:
            assert repr(getattr(old, name)) != repr(getattr(new, name))


def test_a_setting_taken_away_is_null_and_an_unchanged_one_is_absent() -> None:
    old = e.Settings(system="a", variant="high", parameters={"temperature": 1})

    change = old.changes_to(e.Settings(variant="high", parameters={"temperature": 1}))

    assert change == e.TurnStarted(system=None)


@pytest.mark.parametrize(("one", "other"), [(1, 1.0), (1, True), (0.0, False), ("1", 1)])
def test_a_setting_that_is_sent_otherwise_has_changed(one: object, other: object) -> None:
    old, new = (e.Settings(parameters={"a": [v]}) for v in (one, other))

    assert old.changes_to(new).parameters == {"a": [other]}


def test_a_schema_in_another_order_has_changed() -> None:
    old, new = (
        e.Settings(tools=(e.ToolSpec(name="f", schema=dict.fromkeys(keys)),))
        for keys in ("ab", "ba")
    )

    assert old.changes_to(new).tools == new.tools


# -- the table in the docs -----------------------------------------------------------------------


def row(tag: str, cls: type[e.Event]) -> str:
    names = []
    for field in stored.fields(cls):
        mark = "" if field.required else "?"
        names.append(f"{field.encode_name}{mark}")
    answered = ", ".join(f"`{outcome}`" for outcome in cls.answered_by)
    return f"| `{tag}` | {cls.event_class.value} | {', '.join(names)} | {answered} |"


def test_the_table_in_the_docs_is_the_table_in_the_code() -> None:
    page = (ROOT / "docs/reference/events.md").read_text()

    rows = [line for line in page.splitlines() if re.match(r"\| `[a-z]+\.[a-z]+` \| \w+ \|", line)]

    assert rows == [row(tag, cls) for tag, cls in e.EVENTS.items()]


def test_the_docs_name_every_part_struct_and_word() -> None:
    page = (ROOT / "docs/reference/events.md").read_text()

    for struct in stored.structs():
        config = struct.__struct_config__
        if config.tag is not None:
            assert f"`{config.tag}`" in page
        for field in stored.fields(struct):
            assert re.search(rf"\b{field.encode_name}\b", page), f"{struct.__name__}.{field.name}"
            for word in stored.words(field.type):
                assert f"`{word}`" in page, f"{struct.__name__}.{field.name}: {word}"

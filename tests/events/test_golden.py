"""Every shape ever stored is read for ever, and says what it said when it was written."""

from __future__ import annotations

import subprocess
import sys
from typing import Any, get_args

import msgspec
import pytest
from msgspec import UNSET, UnsetType

from brute.events import events as e
from brute.events.codec import decode, encode
from brute.events.entries import Record
from brute.events.messages import Citation, Foreign, Message, Origin, Text, Usage
from tests.events import stored
from tests.events.golden import make
from tests.rooms import ROOT

VERSIONS = make.versions()
GOLDEN = [golden for version in VERSIONS for golden in make.golden(version)]


def test_there_are_golden_files() -> None:
    assert VERSIONS[0] == "v1"
    assert len(GOLDEN) > 100


def test_every_shape_ever_stored_says_what_it_said() -> None:
    for golden in GOLDEN:
        assert make.read(golden.example) == golden


def test_every_shape_is_read_where_no_vendor_sdk_is_installed() -> None:
    script = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"openai", "anthropic", "google", "httpx", "pydantic"}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Missing())
from tests.events.golden import make
for version in make.versions():
    for golden in make.golden(version):
        assert make.read(golden.example) == golden, golden
print("all")
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert (done.stdout, done.stderr) == ("all\n", "")


def test_a_row_is_written_back_as_it_was() -> None:
    for golden in GOLDEN:
        tag, state = golden.example.tag, golden.example.state
        record, raw = decode(tag, state)

        assert raw == (None if golden.understood else state)
        assert make.described(decode(tag, encode(record))[0]) == golden.says


def test_no_stored_byte_names_a_python_module_or_class() -> None:
    names = {"brute", "msgspec", "builtins", "__main__", "UnknownEvent", "Foreign"}
    names |= {struct.__name__ for struct in stored.structs()}

    for golden in GOLDEN:
        for name in names:
            assert name.encode() not in golden.example.state, golden.example.name


def seen() -> dict[type[msgspec.Struct], list[msgspec.Struct]]:
    found: dict[type[msgspec.Struct], list[msgspec.Struct]] = {s: [] for s in stored.structs()}
    todo: list[Any] = [decode(g.example.tag, g.example.state)[0] for g in GOLDEN]
    while todo:
        value = todo.pop()
        if isinstance(value, msgspec.Struct):
            found[type(value)].append(value)
            todo += [getattr(value, name) for name in value.__struct_fields__]
        elif isinstance(value, tuple):
            todo += value
    return found


@pytest.mark.parametrize("struct", stored.structs(), ids=lambda s: s.__name__)
def test_every_field_has_an_example_with_and_without_it(struct: type[msgspec.Struct]) -> None:
    """Fails for a new field: write the next version, `python -m tests.events.golden.make v2`."""
    examples = seen()[struct]

    for field in stored.fields(struct):
        values = [getattr(value, field.name) for value in examples]
        assert any(value != field.default for value in values), f"{field.name}: never set"
        if not field.required:
            assert field.default in values, f"{field.name}: always set"
        if UnsetType in get_args(field.type):
            assert None in values, f"{field.name}: never taken away"
            assert UNSET in values
        for word in stored.words(field.type):
            assert word in values, f"{field.name}: never {word}"


def test_what_newer_versions_write_has_examples_too() -> None:
    records = [decode(g.example.tag, g.example.state)[0] for g in GOLDEN]

    assert any(isinstance(r.event, e.UnknownEvent) and r.critical for r in records)
    assert any(isinstance(r.event, e.UnknownEvent) and r.event.tag in e.EVENTS for r in records)
    parts = [p for m in seen()[Message] for p in m.parts]  # type: ignore[attr-defined]
    assert any(isinstance(part, Foreign) for part in parts)
    assert {struct for struct, values in seen().items() if any(v.rest for v in values)} >= {  # type: ignore[attr-defined]
        Record,
        Message,
        Text,
        Citation,
        Origin,
        Usage,
        e.ReplyReceived,
    }


def test_an_example_is_never_written_again() -> None:
    with pytest.raises(FileExistsError):
        make.write("v1")


def test_all_that_this_version_writes_is_in_the_golden_files() -> None:
    """Fails for a new shape: write the next version, `python -m tests.events.golden.make v2`."""
    known = {golden.example.state for golden in GOLDEN}

    assert [example.name for example in make.examples() if example.state not in known] == []

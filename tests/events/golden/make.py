"""Writes an example of every shape that this version stores, once and for ever.

    python -m tests.events.golden.make v1

makes `v1/records.jsonl` (a row's bytes a line) and `v1/expected.jsonl` (what they say, a line
each) beside this file. It never writes over what is there: rows of that shape are in logs by now.
A new field or event goes into the next version, which holds only what the versions before have not.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

import msgspec
from msgspec import UNSET, Raw, UnsetType

from brute.events import events as e
from brute.events.codec import decode, encode
from brute.events.entries import Record
from brute.events.jsontext import dumps
from brute.events.messages import (
    PARTS,
    Citation,
    Json,
    Media,
    Message,
    Native,
    Origin,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Usage,
    Verbatim,
)
from tests.events import stored

HERE = Path(__file__).parent
NOON = 1_764_500_000_000


class Example(NamedTuple):
    """One row: what it shows, the tag beside it, and its bytes."""

    name: str
    tag: str
    state: bytes


class Golden(NamedTuple):
    """An example that was written once, and what it was then said to mean."""

    example: Example
    says: str
    understood: bool


# -- what is written -----------------------------------------------------------------------------


def examples() -> Iterator[Example]:
    """Every shape of this version: each struct, each field there and not, each word, the odd."""
    for struct in stored.structs():
        for name, value in _variants(struct):
            record = _record(value)
            yield Example(f"{struct.__name__} {name}", e.tag_of(record.event), encode(record))
    for name, record in ODD.items():
        yield Example(name, e.tag_of(record.event), encode(record))
    for name, state in NEWER.items():
        yield Example(name, json.loads(state)["event"]["type"], state.encode())


def _variants(struct: type[msgspec.Struct]) -> Iterator[tuple[str, Any]]:
    least = _least(struct)
    yield "as little as can be", least
    fields = list(stored.fields(struct))
    yield "with everything", struct(**{f.name: _values(f.type)[0] for f in fields})
    for field in fields:
        for value in _values(field.type):
            shown = value if isinstance(value, (str, int, NoneType)) else type(value).__name__
            with_it = msgspec.structs.replace(least, **{field.name: value})
            yield f"with {field.name}: {shown}", with_it


def _least(struct: type[msgspec.Struct]) -> Any:
    needed = {f.name: _values(f.type)[0] for f in stored.fields(struct) if f.required}
    return struct(**needed)


_PLAIN: dict[Any, list[Any]] = {
    str: ["words"],
    int: [7],
    bool: [True, False],
    bytes: [b"\x89PNG\r\n\x1a\n\x00\xff"],
    NoneType: [None],
    UnsetType: [],
    Any: [{"a": [1, 1.5, None, True, "x"]}, None, "x", 3, [1]],
    dict[str, Any]: [{"a": {"b": [1]}}, {}],
    dict[str, dict[str, Any]]: [{"openai.chat": {"form": "list"}}],
}


def _values(hint: Any) -> list[Any]:
    """Values of a type, the fullest first."""
    if hint in _PLAIN:
        return _PLAIN[hint]
    if get_origin(hint) is Literal:
        return list(get_args(hint))
    if get_origin(hint) is tuple:
        (inner, _) = get_args(hint)
        return [tuple(_values(inner)), ()]
    if get_origin(hint) in {Union, UnionType}:
        return [value for member in get_args(hint) for value in _values(member)]
    return [_least(hint)]


_AROUND: dict[type[msgspec.Struct], Callable[[Any], Any]] = {
    Message: lambda message: e.PromptAppended(message=message),
    Citation: lambda citation: Text(text="a", citations=(citation,)),
    Origin: lambda origin: Message(role="assistant", origin=origin),
    Usage: lambda usage: e.ReplyReceived(message=Message(role="assistant"), usage=usage),
    e.Link: lambda link: e.SessionOpened(link=link),
    e.Failure: lambda failure: e.RequestFailed(error=failure),
    e.ModelRef: lambda model: e.TurnStarted(model=model),
    e.ToolSpec: lambda tool: e.TurnStarted(tools=(tool,)),
}
"""Where each struct lives, one step out."""


def _record(value: Any) -> Record:
    while not isinstance(value, Record):
        if isinstance(value, (e.Event, Verbatim)):
            value = Record(at=NOON, event=value)  # type: ignore[arg-type]
        elif type(value) in PARTS:
            value = Message(role="assistant", parts=(value,))
        else:
            value = _AROUND[type(value)](value)
    return value


def _nested(levels: int) -> Any:
    value: Any = 1
    for level in range(levels):
        value = [value] if level % 2 else {"k": value}
    return value


_STRANGE = "\x00\x1a\x7f \ud800 \ud83d\ude00 😀 \u2028 \\u001a \x1a001a"

ODD: dict[str, Record] = {
    "texts without UTF-8, everywhere": _record(
        Message(
            role="assistant",
            name=_STRANGE,
            parts=(
                Text(text=_STRANGE, extras={_STRANGE: {_STRANGE: [_STRANGE]}}),
                ToolCall(name=_STRANGE, raw=_STRANGE),
                ToolResult(content=(Json(value={_STRANGE: _STRANGE}),)),
                Native(api="a", kind=_STRANGE, block=[_STRANGE]),
            ),
        )
    ),
    "the escape character, where nothing is escaped": _record(Text(text="\x1a001a \x1ad800")),
    "numbers at every edge": _record(
        e.ValueRecorded(name="n", value=[2**63, 2**64, -(10**40), 1.0, 1, -0.0, 1e308, 5e-324])
    ),
    "nested 1,500 deep": _record(e.ValueRecorded(name="n", value=_nested(1_500))),
    "keys like ours, in JSON of others": _record(Json(value={"~": {"type": "text"}, "escaped": 1})),
    "arguments that are none": _record(ToolCall(name="f", raw='{"a": 1e400, "b":')),
    "a signature of its own provider": _record(
        Reasoning(text="hm", kind="encrypted", signature="c2ln", data="ZGF0YQ==", id="rs_1")
    ),
    "media by reference": _record(Media(kind="image", blob="sha256:" + "0" * 64)),
    "a whole envelope": Record(
        at=NOON,
        append_id="c1",
        event=e.ToolReturned(content=(Text(text="out"),), outcome="error"),
        run="0193f7c2",
        lane="/0/2",
        cause=12,
        place="agent.py:13",
        critical=True,
    ),
}

_PARTS = '{"at":1,"event":{"type":"prompt.appended","message":{"role":"user","parts":[%s]}}}'

NEWER: dict[str, str] = {
    "an event of a newer version": '{"at":1,"event":{"type":"galaxy.folded","by":[1, 2]}}',
    "a critical event of a newer version": (
        '{"at":1,"event":{"type":"content.erased","positions":[3]},"critical":true}'
    ),
    "an escaped event of a newer version": (
        '{"escaped":true,"at":1,"event":{"type":"galaxy.folded","why":"\\u001ad800"},"run":"r"}'
    ),
    "a new word where one is needed": _PARTS.replace('"user"', '"critic"') % "",
    "a part of a newer version": _PARTS
    % '{"type":"text","text":"a"},{ "type": "hologram", "x": 1 }',
    "a part of a newer version in a result": (
        _PARTS % '{"type":"result","content":[{"type":"hologram"},{"type":"text","text":"a"}]}'
    ),
    "a new kind of media": _PARTS % '{"type":"media","kind":"smell","data":"AA=="}',
    "fields of a newer version at every level": (
        '{"at":1,"new":0,"event":{"type":"reply.received","new":1,"message":{"role":"assistant",'
        '"new":2,"parts":[{"type":"text","text":"a","new":3,"citations":[{"kind":"url","new":4}]}],'
        '"origin":{"api":"a","new":5}},"usage":{"input":1,"new":{"a": 6}}}}'
    ),
    "fields carried along by an older version": (
        _PARTS % '{"type":"text","text":"a","~":{"citations":[{"kind":"url"}],"newer":1}}'
    ),
    "new words where another can stand in": (
        '{"at":1,"event":{"type":"reply.received","message":{"role":"assistant","parts":['
        '{"type":"result","outcome":"postponed"}]},"finish":"bored"}}'
    ),
    "a value of a new type": _PARTS % '{"type":"text","text":"a","extras":[1],"citations":2}',
    "an envelope of a newer version": (
        '{"at":"noon","lane":[0],"run":7,"critical":1,"event":{"type":"session.closed"}}'
    ),
    "spaces, defaults and escapes that we do not write": (
        '{ "at": 1, "lane": "/", "event": {"type": "note.added", "text": "\\u00e9\\/"} }'
    ),
}
"""Rows as other versions write them."""


# -- what it says --------------------------------------------------------------------------------


def described(value: Any) -> str:
    """A value in words that change only if its meaning does: tags, fields that are not default."""
    if isinstance(value, msgspec.Struct):
        tag = value.__struct_config__.tag or ""
        said = [
            f"{field.name}={described(inner)}"
            for field in msgspec.structs.fields(type(value))
            if (inner := getattr(value, field.name)) != field.default
        ]
        return f"{tag}({', '.join(sorted(said))})"
    if isinstance(value, tuple):
        return f"[{', '.join(map(described, value))}]"
    if isinstance(value, dict) and any(isinstance(inner, Raw) for inner in value.values()):
        return repr({key: bytes(inner) for key, inner in sorted(value.items())})
    if isinstance(value, Raw):
        return repr(bytes(value))
    if isinstance(value, (Verbatim, bytes)) or value is UNSET:
        return repr(value)
    if isinstance(value, str):
        return ascii(value)
    return dumps(value).encode("ascii", "backslashreplace").decode()


def read(example: Example) -> Golden:
    """What this version says about a row."""
    record, raw = decode(example.tag, example.state, example.name)
    return Golden(example, described(record), raw is None)


# -- the files -----------------------------------------------------------------------------------


def versions() -> list[str]:
    """The versions written so far, oldest first."""
    return sorted((p.name for p in HERE.glob("v*")), key=lambda name: int(name[1:]))


def golden(version: str) -> list[Golden]:
    """The examples of a version, with what they were said to mean when they were written."""
    rows = (HERE / version / "records.jsonl").read_bytes().splitlines()
    lines = (HERE / version / "expected.jsonl").read_bytes().splitlines()
    words = [json.loads(line) for line in lines]
    return [
        Golden(Example(word["name"], word["tag"], row), word["says"], word["understood"])
        for row, word in zip(rows, words, strict=True)
    ]


def write(version: str) -> int:
    """Write the examples that no version has yet; refuses to touch one that exists."""
    old = {known.example.state for name in versions() for known in golden(name)}
    new: dict[bytes, Example] = {}
    for example in examples():
        if example.state not in old:
            new.setdefault(example.state, example)
    folder = HERE / version
    folder.mkdir()  # FileExistsError: an example, once written, is never written again
    (folder / "records.jsonl").write_bytes(b"".join(state + b"\n" for state in new))
    with (folder / "expected.jsonl").open("w") as file:
        for found in map(read, new.values()):
            word = {
                "name": found.example.name,
                "tag": found.example.tag,
                "understood": found.understood,
                "says": found.says,
            }
            file.write(json.dumps(word) + "\n")
    return len(new)


if __name__ == "__main__":
    sys.stdout.write(f"{write(sys.argv[1])} examples\n")

"""Records to bytes and back, losing nothing.

The fast path is one strict decode of the tagged union. Where it fails, a walk driven by the
structs themselves keeps what this version does not know: an unknown part becomes `Foreign`, an
unknown field goes to its struct's reserved slot (`~`), an unknown event becomes `UnknownEvent`,
and the stored bytes stay with the entry and are what is written back.
"""

from __future__ import annotations

import re
import types
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Raw, Struct

from brute.events.entries import Record
from brute.events.errors import CorruptStore, EncodingError
from brute.events.events import EVENTS, UnknownEvent
from brute.events.jsontext import deeply, refuse_nan
from brute.events.messages import PARTS, Foreign, Value

S = TypeVar("S")


def _enc_hook(value: object) -> object:
    if isinstance(value, Foreign):
        return Raw(value.raw)
    raise NotImplementedError(type(value).__name__)


_encode = msgspec.json.Encoder(enc_hook=_enc_hook).encode
_decode = msgspec.json.Decoder(Record).decode
_decode_any = msgspec.json.Decoder().decode
_slices = msgspec.json.Decoder(dict[str, Raw]).decode
_list = msgspec.json.Decoder(list[Raw]).decode
_string = msgspec.json.Decoder(str).decode

MAX_STATE = 900 * 1024 * 1024
"""Bytes of one record; SQLite takes 1,000,000,000 for a row."""


# -- encode ----------------------------------------------------------------------------------


def encode(record: Record) -> bytes:
    """The bytes that are stored for `record`.

    Raises `EncodingError` with a JSON pointer for NaN, infinities and objects that are no JSON.
    """
    try:
        state = _encode(record)
    except UnicodeEncodeError:
        return encode(_escape_record(record))
    except RecursionError:
        state = deeply(_encode, record)
    except (TypeError, NotImplementedError, ValueError, OverflowError) as error:
        raise EncodingError("/event", str(error)) from error
    if b"null" in state:  # msgspec writes NaN and the infinities as null, without a word
        refuse_nan(record.event, "/event")
    if len(state) > MAX_STATE:
        raise EncodingError("/event", f"an event of {len(state):,} bytes")
    return state


# -- decode ----------------------------------------------------------------------------------


def decode(tag: str, state: bytes, where: str = "the log") -> tuple[Record, bytes | None]:
    """The record in `state`, and `state` itself where this version does not understand all of it.

    Raises `CorruptStore` if the bytes are not a record at all; `where` names the place.
    """
    try:
        record = _decode(state)
        known = b'"~"' not in state
    except RecursionError:
        return deeply(_decode_deep, tag, state, where)
    except msgspec.DecodeError:
        return decode_loosely(tag, state, where)
    if not known:  # a slot that an older version filled: its fields may be known by now
        return decode_loosely(tag, state, where)
    return (_unescape_record(record) if record.escaped else record), None


def _decode_deep(tag: str, state: bytes, where: str) -> tuple[Record, bytes | None]:
    try:
        record = _decode(state)
    except msgspec.DecodeError:
        return decode_loosely(tag, state, where)
    return (_unescape_record(record) if record.escaped else record), None


def decode_loosely(tag: str, state: bytes, where: str) -> tuple[Record, bytes | None]:
    """The slow walk of `decode`: keeps what this version does not know."""
    try:
        fields = _slices(state)
        event: object
        if tag in EVENTS:
            event = _loose(bytes(fields["event"]), _EVENT_CHOICE)
        else:
            event = UnknownEvent(tag=tag, raw=bytes(fields["event"]))
        if not isinstance(event, Struct):
            event = UnknownEvent(tag=tag, raw=bytes(fields["event"]))
    except (msgspec.DecodeError, KeyError, TypeError) as error:
        raise CorruptStore(
            where,
            f"the stored bytes are not a record ({error})",
            "restore the file from a backup, or read up to the position before it",
        ) from error
    envelope = _loose_fields({k: v for k, v in fields.items() if k != "event"}, Record)
    envelope.setdefault("at", 0)
    record = Record(event=cast(Any, event), **envelope)
    return (_unescape_record(record) if record.escaped else record), state


Choice: TypeAlias = "type[Struct] | tuple[str, dict[str, type[Struct]], bool]"


class _Plan:
    """How the fields of one struct are read loosely: wire name -> (field, how, reader)."""

    def __init__(self, cls: type[Struct]) -> None:
        self.tag_field = cls.__struct_config__.tag_field
        hints = get_type_hints(cls)
        self.fields: dict[str, tuple[str, str, Any]] = {}
        for field, wire in zip(cls.__struct_fields__, cls.__struct_encode_fields__, strict=True):
            self.fields[wire] = (field, *_reader(hints[field]))


_plans: dict[type[Struct], _Plan] = {}


def _plan(cls: type[Struct]) -> _Plan:
    if cls not in _plans:
        _plans[cls] = _Plan(cls)
    return _plans[cls]


def _structs(hint: object) -> list[type[Struct]]:
    union = get_origin(hint) in (Union, types.UnionType)
    members = get_args(hint) if union else (hint,)
    return [m for m in members if isinstance(m, type) and issubclass(m, Struct)]


def _choice(structs: list[type[Struct]]) -> Choice:
    config = structs[0].__struct_config__
    if len(structs) == 1 and config.tag is None:
        return structs[0]
    parts = all(issubclass(s, PARTS) for s in structs)
    return (str(config.tag_field), {str(s.__struct_config__.tag): s for s in structs}, parts)


def _reader(hint: object) -> tuple[str, object]:
    if get_origin(hint) is tuple:
        structs = _structs(get_args(hint)[0])
        if structs:
            return "many", _choice(structs)
    for member in get_args(hint):  # tuple[...] | None
        if get_origin(member) is tuple and _structs(get_args(member)[0]):
            return "many", _choice(_structs(get_args(member)[0]))
    if structs := _structs(hint):
        return "one", _choice(structs)
    return "leaf", msgspec.json.Decoder(hint).decode


def _loose(raw: bytes, choice: Choice) -> object:
    """Read one struct, keeping what is not understood."""
    fields = _slices(raw)
    if isinstance(choice, tuple):
        tag_field, table, parts = choice
        tag = _string(fields[tag_field]) if tag_field in fields else None
        cls = table.get(tag) if tag is not None else None
        if cls is None:
            return Foreign(raw) if parts else UnknownEvent(tag=str(tag), raw=raw)
    else:
        cls = choice
    try:
        return cls(**_loose_fields(fields, cls))
    except TypeError:  # a required field is missing
        if cls in PARTS:
            return Foreign(raw)
        raise


def _loose_fields(fields: dict[str, Raw], cls: type[Struct]) -> dict[str, Any]:
    plan = _plan(cls)
    read: dict[str, Any] = {}
    rest: dict[str, Raw] = {}
    slot = fields.pop("~", None)
    kept = _slices(slot) if slot is not None else {}
    for wire, raw in {**kept, **fields}.items():
        if wire == plan.tag_field:
            continue
        if wire not in plan.fields:
            rest[wire] = Raw(bytes(raw))
            continue
        name, how, reader = plan.fields[wire]
        try:
            read[name] = _READ[how](raw, reader)
        except (msgspec.DecodeError, TypeError):  # understood no more: kept, default used
            rest[wire] = Raw(bytes(raw))
    if rest:
        read["rest"] = rest
    return read


def _many(raw: Raw, choice: Choice) -> object:
    if bytes(raw) == b"null":
        return None
    return tuple(_loose(bytes(item), choice) for item in _list(raw))


_READ: dict[str, Callable[[Raw, Any], object]] = {
    "leaf": lambda raw, decoder: decoder(raw),
    "one": lambda raw, choice: None if bytes(raw) == b"null" else _loose(bytes(raw), choice),
    "many": _many,
}

_EVENT_CHOICE: Choice = ("type", cast("dict[str, type[Struct]]", EVENTS), False)


# -- texts that UTF-8 has no bytes for -------------------------------------------------------

_MARK = "\x1a"
_UNSAFE = re.compile("[\x1a\ud800-\udfff]")
_ESCAPED = re.compile("\x1a([0-9a-f]{4})")


def _escape_record(record: Record) -> Record:
    escaped = map_texts(record, lambda text: _UNSAFE.sub(lambda m: f"{_MARK}{ord(m[0]):04x}", text))
    return msgspec.structs.replace(escaped, escaped=True)


def _unescape_record(record: Record) -> Record:
    plain = map_texts(record, lambda text: _ESCAPED.sub(lambda m: chr(int(m[1], 16)), text))
    return msgspec.structs.replace(plain, escaped=False)


def map_texts(value: S, change: Callable[[str], str]) -> S:
    """`value` with every text in it (keys too) changed; structs, dicts, lists and tuples."""
    return cast(S, _map_texts(value, change))


def _map_texts(value: object, change: Callable[[str], str]) -> object:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {_map_texts(k, change): _map_texts(v, change) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_map_texts(v, change) for v in value)
    if isinstance(value, Value):
        changed = {f: _map_texts(getattr(value, f), change) for f in value.__struct_fields__}
        return msgspec.structs.replace(value, **changed)
    return value

r"""Records to bytes and back, losing nothing.

The fast path is msgspec over the tagged union: one encode and one decode when a record is
written, one strict decode when it is read. `encode` looks at what it would read back before it
answers, so whatever it accepts comes back equal; the rest is refused with a JSON pointer.

Where the strict decode fails, a walk driven by the structs themselves keeps what this version does
not know: an unknown part becomes `Foreign`, an unknown field goes to its struct's slot (`~`), an
event that cannot be understood becomes `UnknownEvent`, and the stored bytes stay with the entry
and are what is written back.

Two things stand in the bytes that no struct shows. `~` holds, at any level, the fields that a
newer version wrote and that an older one carried along; whoever knows them lifts them out again.
`escaped` in the envelope says that the texts of the record (keys too, and texts in what is kept
verbatim) hold UTF-16 code units that UTF-8 has no bytes for, each as U+001A and four hex digits;
U+001A itself is escaped in the same way.
"""

from __future__ import annotations

import re
import types
from collections.abc import Callable
from functools import cache
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar, Union, cast, get_args, get_origin

import msgspec
from msgspec import UNSET, Raw, Struct

from brute.events.entries import Record
from brute.events.errors import CorruptStore, EncodingError
from brute.events.events import EVENTS, UnknownEvent, tag_of
from brute.events.jsontext import items, loads, members, pointer_to, require_json, same, write
from brute.events.jsontypes import JSON, JSONArray, JSONObject, is_array, is_object, is_tuple
from brute.events.messages import PARTS, Foreign, Value, Verbatim

V = TypeVar("V", bound=Struct)


def _enc_hook(value: object) -> object:
    if isinstance(value, Verbatim):
        return Raw(value.raw)
    raise NotImplementedError(type(value).__name__)


_encode = msgspec.json.Encoder(enc_hook=_enc_hook).encode
_decode = msgspec.json.Decoder(Record).decode

MAX_STATE = 900 * 1024 * 1024
"""Bytes of one record; SQLite takes 1,000,000,000 for a row."""


# -- encode ------------------------------------------------------------------------------------


def encode(record: Record) -> bytes:
    """The bytes that are stored for `record`; `decode` gives an equal record for them.

    Raises `EncodingError`, with a JSON pointer into the record, for what would come back as
    something else: NaN, a set, a tuple inside JSON, a field of the wrong type.
    """
    try:
        state = _encode(record)
        if _decode(state) == record and len(state) <= MAX_STATE:
            return state
    except (ValueError, TypeError, NotImplementedError, OverflowError, RecursionError):
        pass
    return _encode_slowly(record)


def _encode_slowly(record: Record) -> bytes:
    """Encode what msgspec alone cannot: unknown content, lone surrogates, deep nesting."""
    _require_known(record, "")
    escaped = _must_escape(record)
    state = _encode(_prepared(record, _escape if escaped else str.__str__))
    if escaped:
        state = b'{"escaped":true,' + state[1:]
    if len(state) > MAX_STATE:
        raise EncodingError("/event", f"an event of {len(state):,} bytes")
    if not _comes_back(record, state):
        raise EncodingError("", "a record with a slot or verbatim JSON that no codec wrote")
    return state


def _comes_back(record: Record, state: bytes) -> bool:
    try:
        return same(decode_loosely(tag_of(record.event), state)[0], record)
    except CorruptStore:
        return False


def _require_known(value: Struct, pointer: str) -> None:
    """Raise `EncodingError` for the first field that would not come back as it is."""
    for wire, field in _plan(type(value)).items():
        _require_field(getattr(value, field.name), field, pointer + pointer_to(wire))


def _require_field(value: object, field: _Field, pointer: str) -> None:
    if value is field.default or (value is None and field.optional):
        return
    if field.how == "leaf":
        _require_leaf(value, field, pointer)
    elif field.how == "one":
        _require_struct(value, field.choice, pointer)
    elif not is_tuple(value):
        raise EncodingError(pointer, f"{_a(value)} where a tuple belongs")
    else:
        for index, item in enumerate(value):
            _require_struct(item, field.choice, f"{pointer}/{index}")


def _require_struct(value: object, choice: _Choice, pointer: str) -> None:
    if isinstance(value, Verbatim) and type(value) is choice.verbatim:
        return
    if not isinstance(value, Struct) or type(value) not in choice.structs:
        raise EncodingError(pointer, f"{_a(value)} where {_one_of(choice.structs)} belongs")
    _require_known(value, pointer)


def _require_leaf(value: object, field: _Field, pointer: str) -> None:
    if field.json and is_tuple(value) and field.default == ():
        for index, item in enumerate(value):
            require_json(item, f"{pointer}/{index}")
    elif not isinstance(value, bytes):
        require_json(value, pointer)
    try:
        back = msgspec.convert(value, field.hint)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        raise EncodingError(pointer, f"{_a(value)} ({error})") from error
    if not same(back, value):
        raise EncodingError(pointer, f"{_a(value)} (it would come back as {_a(back)})")


def _a(value: object) -> str:
    """A value in words: itself where it is short, or else its type."""
    if isinstance(value, (str, int, float, bytes)) and len(shown := repr(value)) <= 60:
        return shown
    word = type(value).__name__
    return f"an {word}" if word[0] in "aeiouAEIOU" else f"a {word}"


def _one_of(structs: tuple[type[Struct], ...]) -> str:
    words = [cls.__name__ for cls in structs]
    return words[0] if len(words) == 1 else f"one of {', '.join(words[:3])} …"


def _prepared(value: object, text: Callable[[str], str]) -> object:
    """`value` with every text in it changed by `text` and its JSON written out already."""
    if isinstance(value, str):
        return text(value)
    if isinstance(value, Value):
        done = {f: _prepared(getattr(value, f), text) for f in value.__struct_fields__}
        return msgspec.structs.replace(value, **done)
    if is_tuple(value):
        return tuple(_prepared(item, text) for item in value)
    if isinstance(value, (dict, list)):
        return Raw(write(value, lambda string: _encode(text(string)).decode()).encode())
    return value


# -- decode ------------------------------------------------------------------------------------


def decode(tag: str, state: bytes, where: str = "the log") -> tuple[Record, bytes | None]:
    """The record in `state`, and `state` itself where this version does not understand all of it.

    `tag` is the event's tag as the store has it beside the bytes. Raises `CorruptStore` if the
    bytes are not a record at all; `where` names the place.
    """
    try:
        return _decode(state), None
    except (msgspec.DecodeError, RecursionError):
        return decode_loosely(tag, state, where)


def decode_loosely(tag: str, state: bytes, where: str = "the log") -> tuple[Record, bytes | None]:
    """The slow walk of `decode`: the same for known content, and it keeps what is not known."""
    try:
        fields = members(state)
        walk = _Walk(escaped=fields.pop("escaped", b"") == b"true")
        record = walk.record(tag, fields)
    except (ValueError, KeyError, RecursionError) as error:
        raise CorruptStore(
            where,
            f"the stored bytes are not a record ({error})",
            "restore the file from a backup, or read up to the position before it",
        ) from error
    if walk.escaped:
        record = _unescaped(record)
    return record, state if walk.kept else None


# -- how the fields of a struct are read ---------------------------------------------------------

_NOTHING: Any = object()


class _Choice(NamedTuple):
    """The structs that may stand in a place, and how they are told apart."""

    structs: tuple[type[Struct], ...]
    tag_field: str | None
    by_tag: dict[str, type[Struct]]
    verbatim: type[Verbatim] | None
    """What stands for one that is not understood; None: nothing can."""
    read: Callable[[bytes], object]
    """The strict decode."""


class _Field(NamedTuple):
    """How one field is read."""

    name: str
    hint: Any
    how: Literal["leaf", "one", "many"]
    read: Callable[[bytes], object]
    choice: _Choice
    default: object
    required: bool
    json: bool
    """Whether the leaf holds any JSON, so that the type alone says little."""

    @property
    def optional(self) -> bool:
        """Whether None may stand here."""
        return type(None) in get_args(self.hint)

    @property
    def catch_all(self) -> str | None:
        """Of a closed list of words the one that claims nothing."""
        words = get_args(self.hint) if get_origin(self.hint) is Literal else ()
        return next((word for word in ("unknown", "other") if word in words), None)

    @property
    def silent(self) -> bool:
        """Whether the default claims nothing: it is the absence of a value, not a value."""
        return self.default is None or self.default is UNSET or self.default == ()

    def says_nothing(self, raw: bytes | None) -> bool:
        """Whether `raw` (None: the field is left out) is what stands for a value put aside."""
        if self.catch_all is not None:
            return raw == f'"{self.catch_all}"'.encode()
        return (raw is None and self.silent) or (raw == b"null" and self.default is None)

    def stand_in(self, raw: bytes) -> object:
        """What stands for a value that is not understood, if it can without claiming anything."""
        if self.catch_all is not None and raw[:1] == b'"':
            return self.catch_all
        return self.default if self.silent else _NOTHING


_NO_CHOICE = _Choice((), None, {}, None, loads)


@cache
def _required(cls: type[Struct]) -> frozenset[str]:
    return frozenset(field.name for field in _plan(cls).values() if field.required)


StandIn: TypeAlias = Callable[[_Field, bytes], object]


def _in_envelope(field: _Field, _raw: bytes) -> object:
    """What stands for a value of the envelope: it always is one, and never holds a reader up."""
    return {"at": 0, "critical": True, "large": True}.get(field.name, field.default)


@cache
def _plan(cls: type[Struct]) -> dict[str, _Field]:
    """The fields of `cls` by the names they have in JSON; the slot is not one of them."""
    return {f.encode_name: _field(f) for f in msgspec.structs.fields(cls) if f.name != "rest"}


def _field(info: msgspec.structs.FieldInfo) -> _Field:
    how: Literal["leaf", "one", "many"] = "leaf"
    structs = [m for m in _union(info.type) if _is_struct(m)]
    if structs:
        how = "one"
    for member in _union(info.type):
        if get_origin(member) is tuple and _is_struct(_union(get_args(member)[0])[0]):
            how, structs = "many", _union(get_args(member)[0])
    return _Field(
        name=info.name,
        hint=info.type,
        how=how,
        read=msgspec.json.Decoder(info.type).decode,
        choice=_choice(structs) if structs else _NO_CHOICE,
        default=info.default,
        required=info.required,
        json=_holds_any(info.type),
    )


def _union(hint: Any) -> list[Any]:
    return list(get_args(hint)) if get_origin(hint) in {Union, types.UnionType} else [hint]


def _is_struct(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Struct)


def _holds_any(hint: Any) -> bool:
    return hint is Any or any(_holds_any(inner) for inner in get_args(hint))


def _choice(structs: list[type[Struct]]) -> _Choice:
    config = structs[0].__struct_config__
    by_tag = {str(s.__struct_config__.tag): s for s in structs}
    verbatim: type[Verbatim] | None = None
    if all(s in PARTS for s in structs):
        verbatim = Foreign
    elif all(s in EVENTS.values() for s in structs):
        verbatim = UnknownEvent
    read = msgspec.json.Decoder(Union[tuple(structs)]).decode  # noqa: UP007 - built at run time
    return _Choice(tuple(structs), config.tag_field, by_tag, verbatim, read)


# -- the walk -----------------------------------------------------------------------------------


class _NotUnderstoodError(Exception):
    """A struct says something this version has no word for."""


class _Walk:
    """Reads one record loosely, and remembers whether anything had to be kept as it was."""

    def __init__(self, *, escaped: bool) -> None:
        self.escaped = escaped
        self.kept = False

    def record(self, tag: str, fields: dict[str, bytes]) -> Record:
        """The record with these fields; of the envelope none needs to be there."""
        event = self._event(tag, fields.pop("event"))
        envelope: dict[str, Any] = {"at": 0}
        envelope |= self._fields(fields, Record, _in_envelope)
        return Record(event=cast("Any", event), **envelope)

    def _event(self, tag: str, raw: bytes) -> object:
        try:
            return self._struct(raw, _plan(Record)["event"].choice)
        except _NotUnderstoodError:
            if not tag:
                tag = str(loads(members(raw).get("type", b'""')))
            return UnknownEvent(tag=tag, raw=self._keep(raw))

    def _struct(self, raw: bytes, choice: _Choice) -> object:
        """Read one struct, keeping what is not understood.

        Raises `_NotUnderstoodError` where that would leave a claim the writer did not make.
        """
        fields = members(raw)
        cls = choice.structs[0]
        if choice.tag_field is not None:
            tag = loads(fields.pop(choice.tag_field, b"null"))
            if not isinstance(tag, str) or tag not in choice.by_tag:
                raise _NotUnderstoodError(tag)
            cls = choice.by_tag[tag]
        read = self._fields(fields, cls)
        if not read.keys() >= _required(cls):
            raise _NotUnderstoodError(cls.__name__)
        return cls(**read)

    def _fields(
        self, fields: dict[str, bytes], cls: type[Struct], stand_in: StandIn = _Field.stand_in
    ) -> dict[str, Any]:
        plan = _plan(cls)
        read: dict[str, Any] = {}
        rest: dict[str, Raw] = {}
        for wire, raw in self._lifted(fields, plan, rest).items():
            field = plan.get(wire)
            if field is None:
                rest[wire] = Raw(self._keep(raw))
                continue
            try:
                read[field.name] = self._value(raw, field)
            except _NotUnderstoodError:
                if (word := stand_in(field, raw)) is _NOTHING:
                    raise
                rest[wire] = Raw(self._keep(raw))
                read[field.name] = word
        if rest:
            read["rest"] = rest
        return read

    def _lifted(
        self, fields: dict[str, bytes], plan: dict[str, _Field], rest: dict[str, Raw]
    ) -> dict[str, bytes]:
        """The fields, with those of the slot where no word of a later writer stands instead."""
        slot = fields.pop("~", b"null")
        if slot == b"null":
            return fields
        for wire, raw in (members(slot) if slot[:1] == b"{" else {"~": slot}).items():
            said, field = fields.get(wire), plan.get(wire)
            if said is None if field is None else field.says_nothing(said):
                fields[wire] = raw
            else:
                rest[wire] = Raw(self._keep(raw))
        return fields

    def _value(self, raw: bytes, field: _Field) -> object:
        try:
            return field.read(raw)  # most of what is around the unknown is known
        except RecursionError:
            deep = True
        except msgspec.ValidationError:
            deep = False
        try:
            if field.how == "one":
                return self._struct(raw, field.choice)
            if field.how == "many":
                return tuple([self._item(item, field.choice) for item in items(raw)])
            if deep:
                return msgspec.convert(loads(raw), field.hint)
        except msgspec.ValidationError:
            pass
        raise _NotUnderstoodError(field.name)

    def _item(self, raw: bytes, choice: _Choice) -> object:
        try:
            return choice.read(raw)
        except (msgspec.ValidationError, RecursionError):
            pass
        try:
            return self._struct(raw, choice)
        except (_NotUnderstoodError, msgspec.ValidationError):
            if choice.verbatim is not Foreign:
                raise
            return Foreign(self._keep(raw))

    def _keep(self, raw: bytes) -> bytes:
        """`raw`, to be kept. In memory verbatim JSON is always in its escaped form."""
        self.kept = True
        if self.escaped or b"\\u001" not in raw:
            return raw
        return _ANY_ESCAPE.sub(_escape_mark, raw)


# -- texts that UTF-8 has no bytes for -----------------------------------------------------------

_MARK = "\x1a"
_UNSAFE = re.compile("[\x1a\ud800-\udfff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPED = re.compile("\x1a([0-9a-f]{4})")

_ANY_ESCAPE = re.compile(rb"\\(?:u001[aA]|.)", re.DOTALL)
"""An escape in JSON text; each is matched whole, so that `\\u001a` is seen to be none."""


def _escape(text: str) -> str:
    return _UNSAFE.sub(lambda found: f"{_MARK}{ord(found[0]):04x}", text)


def _unescape(text: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)


def _escape_mark(found: re.Match[bytes]) -> bytes:
    return found[0] + b"001a" if found[0][1:2] == b"u" and len(found[0]) > 2 else found[0]


def _must_escape(record: Record) -> bool:
    """Whether a text has no UTF-8, or verbatim JSON (always in its escaped form) an escape."""
    todo: list[object] = [record]
    while todo:
        item = todo.pop()
        if isinstance(item, str):
            if _SURROGATE.search(item):
                return True
        elif is_object(item):
            todo += item.keys()
            todo += item.values()
        elif is_array(item) or is_tuple(item):
            todo += item
        elif isinstance(item, Struct):
            todo += [getattr(item, field) for field in item.__struct_fields__]
        elif isinstance(item, (Verbatim, Raw)):
            raw = item.raw if isinstance(item, Verbatim) else bytes(item)
            if any(len(found[0]) > 2 for found in _ANY_ESCAPE.finditer(raw)):
                return True
    return False


def _unescaped(value: V) -> V:
    """`value`, fresh from a decode, with the escapes in its texts undone."""
    return cast("V", _plain(value))


def _plain(value: object) -> object:
    if isinstance(value, str):
        return _unescape(value)
    if isinstance(value, Value):
        done = {f: _plain(getattr(value, f)) for f in value.__struct_fields__}
        return msgspec.structs.replace(value, **done)
    if is_tuple(value):
        return tuple(_plain(item) for item in value)
    if is_object(value) or is_array(value):
        _unescape_within(value)
    return value


def _unescape_within(container: JSONObject | JSONArray) -> None:
    """Undo the escapes in place, at any depth; nobody else has this container yet."""
    todo: list[JSON] = [container]
    pairs: list[tuple[Any, JSON]]
    while todo:
        here = todo.pop()
        if is_object(here):
            pairs = [(_unescape(key), value) for key, value in here.items()]
            here.clear()
        else:
            pairs = list(enumerate(cast("JSONArray", here)))
        for key, value in pairs:
            here[key] = value
            if isinstance(value, str):
                here[key] = _unescape(value)
            elif is_object(value) or is_array(value):
                todo.append(value)

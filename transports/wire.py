"""Small tools for reading and writing the JSON of libraries: what every transport shares."""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Iterator
from typing import TypeGuard, TypeVar, cast

import msgspec
from msgspec.structs import replace

from brute.events.errors import EncodingError
from brute.events.jsontext import dumps, loads
from brute.events.jsontypes import JSON, Extras, JSONObject

SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPE = re.compile(
    r"\\(?:(u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
"""An escape in JSON text: a pair of surrogates (1), one that stands alone (2), or any other."""
REPLACEMENT = "\ufffd"


# -- what came in --------------------------------------------------------------------------------


PLAIN = (dict, list, str, bytes, bytearray, int, float)


def plain(value: object) -> JSON:
    """A library's object as plain JSON data; what is plain already is given back as it is.

    pydantic objects are asked for what the wire said (unset fields stay away, no warnings about
    blocks that are newer than the SDK); the SDK itself is never imported.
    """
    if value is None or isinstance(value, PLAIN):
        return cast(JSON, value)
    to_dict = getattr(value, "to_dict", None)
    if callable(to_dict):
        return _from_sdk(to_dict)
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json", exclude_unset=True, warnings=False)
    return value


def _from_sdk(to_dict: object) -> JSON:
    call = cast("type[JSONObject]", to_dict)
    try:
        return call(mode="json", warnings=False)
    except TypeError:  # another library's `to_dict`, without these options
        return call()


def is_object(value: object) -> TypeGuard[JSONObject]:
    """Whether a value is a JSON object."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[JSON]]:
    """Whether a value is a JSON array."""
    return type(value) is list


def objects(value: object) -> list[JSONObject]:
    """The objects in a JSON array; an empty list for what is no array."""
    if not is_array(value):
        return []
    return [item for item in cast("list[object]", value) if is_object(item)]


def text_in(block: JSONObject, key: str) -> str:
    """The text under a key; empty where there is none, or something else."""
    value = block.get(key)
    return value if isinstance(value, str) else ""


def text_or_none(block: JSONObject, key: str) -> str | None:
    """The text under a key; None where there is none, or something else."""
    value = block.get(key)
    return value if isinstance(value, str) else None


def kind_of(block: JSONObject) -> str:
    """The `type` of a block as a word, whatever stands there."""
    return str(block.get("type"))


def read_json(text: bytes | bytearray | str) -> JSON:
    """One JSON value, or None if the text is none."""
    try:
        return loads(bytes(text) if isinstance(text, bytearray) else text)
    except ValueError:
        return None


def rest(block: JSONObject, known: frozenset[str]) -> JSONObject:
    """The members of a block that are not among `known`; nulls are nothing."""
    return {k: v for k, v in block.items() if k not in known and v is not None}


def extras(api: str, residual: JSONObject) -> Extras | None:
    """Extras that hold `residual` for one API; None when there is nothing to hold."""
    return {api: residual} if residual else None


def same(a: object, b: object) -> bool:
    """Whether two JSON values are the same: 2 is not 2.0, true is not 1; key order is free."""
    try:
        return _same(a, b)
    except RecursionError:
        return _same_at_any_depth(a, b)


def _same(a: object, b: object) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        one, other = cast(JSONObject, a), cast(JSONObject, b)
        return len(one) == len(other) and all(
            k in other and _same(v, other[k]) for k, v in one.items()
        )
    if is_array(a):
        return is_array(b) and len(a) == len(b) and all(map(_same, a, b))
    return a == b


def _same_at_any_depth(a: object, b: object) -> bool:
    """`same` on a stack of its own: arguments nested a thousand deep are legal JSON."""
    todo: list[tuple[object, object]] = [(a, b)]
    while todo:
        one, other = todo.pop()
        if type(one) is not type(other):
            return False
        if is_object(one) and is_object(other):
            if one.keys() != other.keys():
                return False
            todo += [(value, other[key]) for key, value in one.items()]
        elif is_array(one) and is_array(other):
            if len(one) != len(other):
                return False
            todo += zip(one, other, strict=True)
        elif one != other:
            return False
    return True


def copied(block: JSON) -> JSON:
    """The block, so that who changes what was dumped does not change the message."""
    return {**block} if is_object(block) else block


def without_nulls(block: JSONObject) -> JSONObject:
    """The block without its null members (an SDK's unset options)."""
    if None not in block.values():
        return block
    return {k: v for k, v in block.items() if v is not None}


# -- bytes ---------------------------------------------------------------------------------------


def from_base64(text: object) -> bytes | None:
    """The bytes; None when encoding them again would not give the same text."""
    if not isinstance(text, str):
        return None
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return data if to_base64(data) == text else None


def to_base64(data: bytes) -> str:
    """Standard base64."""
    return base64.b64encode(data).decode("ascii")


def from_data_url(url: object) -> tuple[str, bytes] | None:
    """Media type and bytes of a base64 data URL; None for any other text."""
    if not isinstance(url, str) or not url.startswith("data:"):
        return None
    head, mark, text = url[5:].partition(";base64,")
    data = from_base64(text) if mark else None
    return None if data is None else (head, data)


def to_data_url(media_type: str | None, data: bytes) -> str:
    """A base64 data URL."""
    return f"data:{media_type or 'application/octet-stream'};base64,{to_base64(data)}"


IMAGE_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


def image_type(data: bytes, said: str | None) -> str | None:
    """The media type of an image by its first bytes, else as it was said (`image/jpg` mended)."""
    for magic, media_type in IMAGE_MAGIC:
        if data.startswith(magic):
            return media_type
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return "image/jpeg" if said == "image/jpg" else said


def is_utf8(data: bytes) -> bool:
    """Whether bytes are a text that says something."""
    try:
        return bool(data.decode().strip())
    except UnicodeDecodeError:
        return False


# -- text ----------------------------------------------------------------------------------------


def is_text(text: str) -> bool:
    """Whether the text has no lone surrogate, that is, whether UTF-8 can say it."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def mend_text(text: str) -> str:
    """The text with each lone surrogate replaced by U+FFFD; a split pair is joined."""
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return SURROGATE.sub(REPLACEMENT, joined)


def mend_json(value: JSON) -> JSON:
    """A JSON value that every strict reader takes: no lone surrogates, no NaN, no infinities."""
    return value if is_sound(value) else _mended_json(value)


def _mended_json(value: JSON) -> JSON:
    if isinstance(value, str):
        return value if is_text(value) else mend_text(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        pairs = cast(JSONObject, value).items()
        return {_mended_json(str(k)): _mended_json(v) for k, v in pairs}
    if isinstance(value, (list, tuple)):
        return [_mended_json(v) for v in cast("tuple[JSON, ...]", value)]
    return value


def json_text(value: JSON) -> str:
    """A JSON value as text; NaN and infinities, which JSON has no word for, become null."""
    try:
        return dumps(value)
    except EncodingError:
        return dumps(mend_json(_known(value)))


def _known(value: JSON) -> JSON:
    """The value with what is no JSON at all written as its text."""
    if isinstance(value, dict):
        return {str(k): _known(v) for k, v in cast(JSONObject, value).items()}
    if isinstance(value, (list, tuple)):
        return [_known(v) for v in cast("tuple[JSON, ...]", value)]
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    return str(value)


def mend_arguments(raw: str) -> str:
    r"""Argument text that every strict reader takes, changed only where it must be.

    A lone surrogate may hide in it as an escape, which is ASCII: `"\ud800"`.
    """
    if not is_text(raw):
        raw = mend_text(raw)
    if "\\u" not in raw:
        return raw
    return _ESCAPE.sub(lambda found: "\\ufffd" if found[2] else found[0], raw)


_encode = msgspec.json.Encoder().encode
S = TypeVar("S", bound=msgspec.Struct)


def is_sound(value: object) -> bool:
    """Whether every strict reader takes a JSON value or struct: no lone surrogate, no NaN."""
    try:
        data = _encode(value)
    except UnicodeEncodeError:
        return False
    except (OverflowError, RecursionError, TypeError):
        return all(map(_is_sound_scalar, _scalars(value)))
    return b"null" not in data or all(map(_is_sound_scalar, _scalars(value)))


def _is_sound_scalar(value: object) -> bool:
    if isinstance(value, str):
        return is_text(value)
    return not isinstance(value, float) or math.isfinite(value)


def _scalars(value: object) -> Iterator[object]:
    """What a JSON value is made of, keys included, however deep it is nested."""
    todo: list[object] = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, dict):
            members = cast("dict[object, object]", item)
            todo += members
            todo += members.values()
        elif isinstance(item, (list, tuple)):
            todo += cast("list[object]", item)
        elif isinstance(item, msgspec.Struct):
            todo += (getattr(item, field) for field in item.__struct_fields__)
        else:
            yield item


def mend_struct(value: S) -> S:
    """The struct with every text and number in it such that every strict reader takes it."""
    fields = {name: getattr(value, name) for name in value.__struct_fields__ if name != "rest"}
    return replace(value, **{name: _mended(held) for name, held in fields.items()})


def _mended(held: object) -> object:
    if isinstance(held, msgspec.Struct):
        return mend_struct(held)
    if isinstance(held, tuple):
        return tuple(map(_mended, cast("tuple[object, ...]", held)))
    return mend_json(held)

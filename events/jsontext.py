r"""JSON text, read and written so that nothing is lost and nothing is invented.

msgspec is the fast path. It refuses lone surrogates (which are legal in JSON as `\ud800` and do
arrive) and nesting beyond about 1,000 levels, writes NaN as null without a word, and sets,
datetimes and integer keys as something else. The cold paths here mend that. None of them
recurses: depth costs memory, never the interpreter's stack.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias, cast

import msgspec

from brute.events.errors import EncodingError
from brute.events.jsontypes import JSON, JSONArray, JSONObject, is_array, is_object, is_tuple

DEEPEST: Final = 10_000
"""Levels of nesting that are read and written; what is deeper is refused."""

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode
_slices = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_items = msgspec.json.Decoder(list[msgspec.Raw]).decode


# -- reading -----------------------------------------------------------------------------------


def loads(text: str | bytes) -> JSON:
    """Read one JSON value; lone surrogates, big integers and deep nesting included.

    Raises `ValueError` (of msgspec, json or here) when the text is not one JSON value, or holds
    a number that no float holds, such as `1e400`: it would come back as infinity.
    """
    try:
        return _decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return _slow_loads(text.decode() if isinstance(text, bytes) else text)


def _slow_loads(text: str) -> JSON:
    try:
        return _stdlib.decode(text)
    except RecursionError:
        return _deep_loads(text)


def _refuse_constant(word: str) -> JSON:
    raise ValueError(f"{word} is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"the number {digits} is beyond what a float holds")
    return number


_stdlib = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite)

_TOKEN = re.compile(
    r"""[ \t\n\r]*
    (?: ([\[\]{},:])                    # a mark
      | ( "[^"\\]*(?:\\.[^"\\]*)*" )    # a text
      | ( [^\s\[\]{},:"]+ )             # a number or a word
    )[ \t\n\r]*""",
    re.VERBOSE | re.DOTALL,
)
_TOKEN_BYTES = re.compile(_TOKEN.pattern.encode(), re.VERBOSE | re.DOTALL)


def _deep_loads(text: str, deepest: int = DEEPEST) -> JSON:
    """Read a value of any depth up to `deepest`: the grammar by hand, the words by json."""
    reader = _Reader(deepest)
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None or not reader.take(found[1], found[2] or found[3]):
            raise json.JSONDecodeError("Unexpected text", text, at)
        at = found.end()
    return reader.value(text)


class _Reader:
    """Builds one value out of tokens, with a stack of its own."""

    def __init__(self, deepest: int) -> None:
        self.deepest = deepest
        self.root: JSONArray = []
        self.stack: list[JSON] = [self.root]
        self.keys: list[str] = [""]
        self.want = "value"
        """value; item (or the end of the array); key; name (a key or the end); colon; next."""

    def take(self, mark: str | None, word: str | None) -> bool:
        """Take a punctuation mark, or else a word. False if it cannot stand here."""
        if word is not None:
            return self._word(word)
        if mark in {"[", "{"}:
            return self._open([] if mark == "[" else {})
        if mark in {"]", "}"}:
            return self._close(list if mark == "]" else dict)
        if mark == ":":
            then, fits = "value", self.want == "colon"
        else:
            then = "key" if is_object(self.stack[-1]) else "value"
            fits = self.want == "next" and len(self.stack) > 1
        self.want = then
        return fits

    def _word(self, word: str) -> bool:
        if self.want in {"key", "name"} and word[0] == '"':
            self.keys[-1] = _stdlib.decode(word)
            self.want = "colon"
            return True
        if self.want not in {"value", "item"}:
            return False
        self._put(_stdlib.decode(word))
        return True

    def _put(self, value: JSON) -> None:
        here = self.stack[-1]
        if is_object(here):
            here[self.keys[-1]] = value
        else:
            here.append(value)
        self.want = "next"

    def _open(self, container: JSONArray | JSONObject) -> bool:
        if self.want not in {"value", "item"}:
            return False
        if len(self.stack) > self.deepest:
            raise ValueError(f"nested more than {self.deepest:,} deep")
        self._put(container)
        self.stack.append(container)
        self.keys.append("")
        self.want = "name" if is_object(container) else "item"
        return True

    def _close(self, kind: type) -> bool:
        fits = self.want in {"next", "item" if kind is list else "name"}
        if not fits or len(self.stack) == 1 or not isinstance(self.stack.pop(), kind):
            return False
        self.keys.pop()
        self.want = "next"
        return True

    def value(self, text: str) -> JSON:
        """The value, once all tokens were taken."""
        if len(self.stack) > 1 or self.want != "next":
            raise json.JSONDecodeError("Unexpected end", text, len(text))
        return self.root[0]


def members(raw: bytes) -> dict[str, bytes]:
    """The members of a JSON object, each as the bytes it is written in; of any depth.

    Raises `ValueError` if `raw` is not a JSON object.
    """
    try:
        return {key: bytes(value) for key, value in _slices(raw).items()}
    except RecursionError:
        return {_decode(key): value for key, value in _split(raw, b"{", b"}")}


def items(raw: bytes) -> list[bytes]:
    """The items of a JSON array, each as the bytes it is written in; of any depth.

    Raises `ValueError` if `raw` is not a JSON array.
    """
    try:
        return [bytes(item) for item in _items(raw)]
    except RecursionError:
        return [value for _, value in _split(raw, b"[", b"]")]


def _split(raw: bytes, first: bytes, last: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Cut an object or array that nests too deep for msgspec where its own commas are."""
    raw = raw.strip(b" \t\n\r")
    # What follows relies on its being one JSON value. A leaf stands a few levels further in.
    _deep_loads(raw.decode(), DEEPEST + 100)
    if raw[:1] != first:
        raise msgspec.ValidationError(f"Expected {first.decode()} … {last.decode()}")
    depth, key, start = 0, b"", 1
    for token in _TOKEN_BYTES.finditer(raw):
        mark = token[1]
        if mark is None:
            continue
        at = token.start(1)
        if mark in b"[{":
            depth += 1
        elif mark in b"]}":
            depth -= 1
        if depth == 1 and mark == b":":
            key, start = raw[start:at].strip(b" \t\n\r"), at + 1
        elif (depth == 1 and mark == b",") or depth == 0:
            if value := raw[start:at].strip(b" \t\n\r"):
                yield key, value
            start = at + 1


# -- writing -----------------------------------------------------------------------------------


def dumps(value: JSON) -> str:
    r"""Write a JSON value compactly, non-ASCII as it is, lone surrogates as `\ud800`.

    Tuples are written as arrays. Raises `EncodingError`, with a JSON pointer, for NaN, infinities
    and everything that JSON has no word for.
    """
    try:
        data = _encode(value)
        if _decode(data) == value:  # it is what it says; NaN, sets, datetimes … are not
            return data.decode()
    except (ValueError, TypeError, OverflowError, RecursionError):
        pass
    require_json(value, tuples=True)
    return write(value, _quote)


_SURROGATE = re.compile("[\ud800-\udfff]")


def _quote(text: str) -> str:
    quoted = json.dumps(text, ensure_ascii=False)
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)


class _Mark(str):
    """Text that stands in the output as it is, between the values that are still to be written."""

    __slots__ = ()


_WORDS: dict[object, str] = {True: "true", False: "false"}


def write(value: JSON, quote: Callable[[str], str]) -> str:
    """Write what `require_json` has let pass, each text by `quote`; `msgspec.Raw` as it is."""
    out: list[str] = []
    todo: list[JSON] = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, _Mark):
            out.append(item)
        elif isinstance(item, str):
            out.append(quote(str.__str__(item)))
        elif is_object(item):
            todo.append(_Mark("}"))
            for index, (key, inner) in reversed(list(enumerate(item.items()))):
                todo += [inner, _Mark(f"{',' if index else ''}{quote(str.__str__(key))}:")]
            todo.append(_Mark("{"))
        elif isinstance(item, (list, tuple)):
            todo.append(_Mark("]"))
            for index, inner in reversed(list(enumerate(cast("JSONArray", item)))):
                todo += [inner, _Mark("," if index else "")]
            todo.append(_Mark("["))
        else:
            out.append(_scalar(item))
    return "".join(out)


def _scalar(item: JSON) -> str:
    if item is None:
        return "null"
    if isinstance(item, bool):
        return _WORDS[item]
    if isinstance(item, int):
        return int.__repr__(item)
    if isinstance(item, msgspec.Raw):
        return bytes(item).decode()
    return float.__repr__(item)


# -- checking ----------------------------------------------------------------------------------

Link: TypeAlias = "tuple[Link, str | int] | None"
"""A place as a chain from the inside out; it becomes a pointer only when something is wrong."""


def require_json(value: object, pointer: str = "", *, tuples: bool = False) -> None:
    """Raise `EncodingError`, with the JSON pointer, for the first thing that is not JSON.

    Tuples are refused too (they would come back as lists) unless `tuples`.
    """
    todo: list[tuple[Link, int, object]] = [(None, 0, value)]
    inner: list[tuple[Link, int, object]]
    while todo:
        link, depth, item = todo.pop()
        if is_object(item):
            for key in item:
                if not isinstance(key, str):  # pyright: ignore[reportUnnecessaryIsInstance]
                    raise EncodingError(pointer + _pointer(link), f"the key {key!r}")
            inner = [((link, key), depth + 1, child) for key, child in item.items()]
        elif is_array(item) or (tuples and is_tuple(item)):
            inner = [((link, index), depth + 1, child) for index, child in enumerate(item)]
        elif (found := _wrong(item)) is not None:
            raise EncodingError(pointer + _pointer(link), found)
        else:
            continue
        if depth >= DEEPEST:
            found = f"what is nested more than {DEEPEST:,} deep, or holds itself,"
            raise EncodingError(pointer, found)
        todo += reversed(inner)


_LONG = 10**4300
"""Beyond this many digits Python itself refuses to read an integer (`sys.int_info`)."""


def _wrong(item: object) -> str | None:
    """Why a value that is no container cannot be stored, in words; None if it can."""
    if item is None or isinstance(item, str):
        return None
    if isinstance(item, int):
        return None if -_LONG < item < _LONG else "an integer of more than 4,300 digits"
    if isinstance(item, float):
        return None if math.isfinite(item) else f"the number {item}"
    if isinstance(item, tuple):
        return "a tuple (it would come back as a list)"
    return f"the {type(item).__name__} {item!r:.60}"


def _pointer(link: Link) -> str:
    keys: list[str] = []
    while link is not None:
        link, key = link
        keys.append(pointer_to(key))
    return "".join(reversed(keys))


def pointer_to(key: str | int) -> str:
    """One step of a JSON pointer (RFC 6901): `/`, and the key escaped."""
    return "/" + str(key).replace("~", "~0").replace("/", "~1")


def same(one: object, other: object) -> bool:
    """Whether two values are equal, as `==` says; of any depth."""
    todo: list[tuple[object, object]] = [(one, other)]
    while todo:
        a, b = todo.pop()
        if is_object(a) and is_object(b):
            if a.keys() != b.keys():
                return False
            todo += [(value, b[key]) for key, value in a.items()]
        elif (is_array(a) and is_array(b)) or (is_tuple(a) and is_tuple(b)):
            if len(a) != len(b):
                return False
            todo += zip(a, b, strict=True)
        elif isinstance(a, msgspec.Struct):
            if type(a) is not type(b):
                return False
            todo += [(getattr(a, f), getattr(b, f)) for f in a.__struct_fields__]
        elif a != b:
            return False
    return True


def identical(one: object, other: object) -> bool:
    """Whether two values are written alike: 1, 1.0 and true are not, nor keys in another order."""
    if one is other:
        return True
    try:
        return _encode(one) == _encode(other)
    except (ValueError, TypeError, OverflowError, RecursionError):
        return same(one, other)  # what msgspec cannot write; the finer differences may go unseen


# -- the arguments of a call ---------------------------------------------------------------------


def parse_arguments(raw: str) -> tuple[JSONObject, str | None]:
    """The arguments in `raw` as a dict, and why they cannot be run (None: they can).

    Empty text and `null` are the empty object; a JSON string that itself holds an object is
    unwrapped once (rule I4 of the provider rules). Of a key that stands twice the last counts, as
    every JSON reader in use has it.
    """
    if not raw.strip(" \t\n\r"):
        return {}, None
    try:
        value = loads(raw)
        if isinstance(value, str):
            value = _unwrapped(value)
    except ValueError as error:
        return {}, f"the arguments are not JSON: {error}"
    if value is None:
        return {}, None
    if is_object(value):
        return value, None
    return {}, f"the arguments are a JSON {_KINDS[type(value)]}, not an object"


def _unwrapped(text: str) -> JSON:
    """The object that `text` holds, or else `text`."""
    try:
        value = loads(text)
    except ValueError:
        return text
    return value if is_object(value) else text


_KINDS: dict[type, str] = {
    list: "array",
    str: "string",
    bool: "boolean",
    int: "number",
    float: "number",
}

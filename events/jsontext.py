r"""JSON text, read and written so that nothing is lost and nothing is invented.

msgspec is the fast path. It refuses lone surrogates (which are legal in JSON as `\ud800` and do
arrive) and numbers beyond a float, and writes NaN as null without a word; the cold paths here
mend that.
"""

from __future__ import annotations

import json
import math
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import msgspec

from brute.events.errors import EncodingError
from brute.events.jsontypes import JSON, JSONObject

T = TypeVar("T")

DEEP = 20_000
"""Frames allowed while a deeply nested value is read or written (a level takes one or two)."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode
_depth_lock = threading.RLock()


@contextmanager
def _recursion_limit(frames: int) -> Iterator[None]:
    # The limit is the interpreter's, not a thread's; one at a time, and put back as it was.
    with _depth_lock:
        before = sys.getrecursionlimit()
        sys.setrecursionlimit(max(before, frames))
        try:
            yield
        finally:
            sys.setrecursionlimit(before)


def deeply(fn: Callable[..., T], *args: object) -> T:
    """Call `fn` with room for values nested thousands deep, in a thread with a large stack."""
    result: list[T] = []
    failure: list[BaseException] = []

    def work() -> None:
        try:
            result.append(fn(*args))
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            failure.append(error)

    with _recursion_limit(DEEP):
        size = threading.stack_size(256 * 1024 * 1024)
        try:
            thread = threading.Thread(target=work)
            thread.start()
        finally:
            threading.stack_size(size)
        thread.join()
    if failure:
        raise failure[0]
    return result[0]


def _refuse_constant(word: str) -> JSON:
    raise ValueError(f"{word} is not JSON")


def _slow_loads(text: str | bytes) -> JSON:
    return json.loads(text, parse_constant=_refuse_constant)


def loads(text: str | bytes) -> JSON:
    """Read one JSON value; lone surrogates, huge numbers and deep nesting included.

    Raises `ValueError` (of msgspec or json) when the text is not one JSON value.
    """
    try:
        return _decode(text)
    except RecursionError:
        return deeply(_slow_loads, text)
    except UnicodeEncodeError:  # a str that itself holds a lone surrogate
        return _slow_loads(text)
    except msgspec.DecodeError:
        try:
            return _slow_loads(text)
        except RecursionError:
            return deeply(_slow_loads, text)


def dumps(value: JSON) -> str:
    r"""Write a JSON value compactly, non-ASCII as it is, lone surrogates as `\ud800`.

    Raises `EncodingError` for NaN, infinities and what is no JSON at all, with its pointer.
    """
    try:
        data = _encode(value)
    except RecursionError:
        return deeply(_slow_dumps, value)
    except (UnicodeEncodeError, TypeError, OverflowError, ValueError):
        return _slow_dumps(value)
    if b"null" in data:  # msgspec writes NaN and the infinities as null
        refuse_nan(value)
    return data.decode()


def _slow_dumps(value: JSON) -> str:
    refuse_nan(value)
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise EncodingError("", str(error)) from error
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def refuse_nan(value: object, pointer: str = "") -> None:
    """Raise `EncodingError` with the JSON pointer of the first NaN or infinity in `value`.

    Looks into dicts, lists, tuples and msgspec structs.
    """
    stack: list[tuple[str, object]] = [(pointer, value)]
    while stack:
        at, item = stack.pop()
        if isinstance(item, float):
            if not math.isfinite(item):
                raise EncodingError(at, f"the number {item}")
        else:
            stack.extend(reversed(list(children(at, item))))


def children(at: str, item: object) -> Iterator[tuple[str, object]]:
    """The values inside `item` with their JSON pointers."""
    if isinstance(item, dict):
        for key, value in item.items():
            yield f"{at}/{_escape(str(key))}", value
    elif isinstance(item, (list, tuple)):
        for index, value in enumerate(item):
            yield f"{at}/{index}", value
    elif isinstance(item, msgspec.Struct):
        names = zip(item.__struct_fields__, item.__struct_encode_fields__, strict=True)
        for field, key in names:
            yield f"{at}/{key}", getattr(item, field)


def _escape(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def parse_arguments(raw: str) -> tuple[JSONObject, str | None]:
    """The arguments in `raw` as a dict, and why they cannot be run (None: they can).

    Empty text and `null` are the empty object; a JSON string that itself holds an object is
    unwrapped once (rule I4 of the provider rules).
    """
    if not raw or raw.isspace():
        return {}, None
    try:
        value: Any = loads(raw)
        if isinstance(value, str):
            value = loads(value)
    except ValueError as error:
        return {}, f"the arguments are not JSON: {error}"
    if value is None:
        return {}, None
    if isinstance(value, dict):
        return value, None
    return {}, f"the arguments are a JSON {_word(value)}, not an object"


def _word(value: JSON) -> str:
    words = {list: "array", str: "string", bool: "boolean", int: "number", float: "number"}
    return words.get(type(value), "value")

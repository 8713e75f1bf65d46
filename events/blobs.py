"""Large bytes of media parts: stored once by content hash, put back when read.

A record whose media hold more than `LIMIT` bytes is stored as `large`, with `blob="sha256:…"` in
place of `data`. Whoever reads it finds `data` again and never sees the difference.

Only in a `large` record is a `blob` a reference. Elsewhere it is what somebody wrote, be it in a
media part or in the JSON of a tool, and stays as it is.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from operator import is_
from typing import TypeVar, cast

import msgspec

from brute.events.entries import Record
from brute.events.messages import Media, Value

LIMIT = 4096
"""Bytes that a media part may hold within its event."""

MEDIA = b'"type":"media"'
"""Stands in the state of every record that holds a media part this version knows."""

_NAMES = re.compile(rb"sha256:[0-9a-f]{64}")

V = TypeVar("V", bound=Value)


def hash_of(data: bytes) -> str:
    """The name of the bytes: `sha256:` and 64 hex digits."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def references(record: Record) -> list[str]:
    """The hashes of the bytes without which a stored record cannot be read."""
    found: list[str] = []

    def see(media: Media) -> Media:
        if media.blob is not None and media.data is None:
            found.append(media.blob)
        return media

    if record.large:
        _each_media(record, see)
    return found


def mentions(raw: bytes) -> list[str]:
    """The hashes in a large state not all of which is understood; any of them may refer to bytes.

    A newer version may have put references where this one knows of no media.
    """
    return [name.decode() for name in _NAMES.findall(raw)]


def take_out(record: Record) -> tuple[Record, dict[str, bytes]]:
    """The record with references in place of large data, and the data by its hash.

    A record that somebody put references into is left as it is, so that it comes back as it was.
    """
    taken: dict[str, bytes] = {}
    theirs: list[str] = []

    def change(media: Media) -> Media:
        if media.blob is not None:
            theirs.append(media.blob)
        if media.data is None or len(media.data) <= LIMIT:
            return media
        name = hash_of(media.data)
        taken[name] = bytes(media.data)
        return msgspec.structs.replace(media, data=None, blob=name)

    smaller = _each_media(record, change)
    if theirs or not taken:
        return record, {}
    return msgspec.structs.replace(smaller, large=True), taken


def put_back(record: Record, bytes_of: Callable[[str], bytes]) -> Record:
    """The record with the data in place of references."""

    def change(media: Media) -> Media:
        if media.blob is None or media.data is not None:
            return media
        return msgspec.structs.replace(media, data=bytes_of(media.blob), blob=None)

    return msgspec.structs.replace(_each_media(record, change), large=False)


def _each_media(value: V, change: Callable[[Media], Media]) -> V:
    """`value` with every media part changed; itself where nothing changed."""
    if isinstance(value, Media):
        return cast(V, change(value))
    changed: dict[str, object] = {}
    for field in value.__struct_fields__:
        old: object = getattr(value, field)
        if isinstance(old, Value):
            new: object = _each_media(old, change)
        elif isinstance(old, tuple):
            new = _each_of(cast("tuple[object, ...]", old), change)
        else:
            continue
        if new is not old:
            changed[field] = new
    return msgspec.structs.replace(value, **changed) if changed else value


def _each_of(old: tuple[object, ...], change: Callable[[Media], Media]) -> tuple[object, ...]:
    new = tuple(_each_media(item, change) if isinstance(item, Value) else item for item in old)
    return old if all(map(is_, new, old)) else new

"""Following a log: give what is there, wait for what comes, in threads and in event loops."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TypeAlias

from brute.events.entries import Entry
from brute.events.errors import LogClosed
from brute.events.store.base import Store

PAUSE = 0.05
"""Seconds after which a follower looks whether it should stop."""

More: TypeAlias = Callable[[], list[Entry]]
"""Gives the next entries, at most a chunk; an empty list: there are none yet."""


def follow(
    store: Store, more: More, stop: threading.Event | None, timeout: float | None
) -> Iterator[Entry]:
    """Entries as they come, until `stop`, `timeout` seconds without one, or the log's end."""
    pause = PAUSE if timeout is None else min(PAUSE, timeout)
    watch = store.watch()
    quiet = time.monotonic()
    try:
        while not (store.closed or (stop is not None and stop.is_set())):
            if watch.wait(pause):
                while found := more():
                    yield from found
                    quiet = time.monotonic()
            if timeout is not None and time.monotonic() - quiet >= timeout:
                return
    except LogClosed:
        return  # closed while it was looking
    finally:
        watch.close()


async def afollow(store: Store, more: More, timeout: float | None) -> AsyncIterator[Entry]:  # noqa: ASYNC109 - it means quiet time
    """`follow` for an event loop, which waits in it and fetches in a thread."""
    watch = store.watch()
    quiet = time.monotonic()
    try:
        while not store.closed:
            if watch.changed():
                while found := await asyncio.to_thread(more):
                    for entry in found:
                        yield entry
                    quiet = time.monotonic()
            if timeout is not None and time.monotonic() - quiet >= timeout:
                return
            await asyncio.sleep(PAUSE / 2)
    except LogClosed:
        return
    finally:
        watch.close()

"""What keeps the rows of a log, and the table of URLs that leads to it."""

from __future__ import annotations

import os
from importlib import import_module

from brute.events.errors import UsageError
from brute.events.store.base import Opener, Options, Store

STORES: dict[str, tuple[str, str]] = {
    "sqlite": ("brute.events.store.sqlite", "open_sqlite"),
    "memory": ("brute.events.store.memory", "open_memory"),
}
"""Module and opener of each store, loaded when a log is first opened in it."""

_SUPPORTED = "a path, 'sqlite:///PATH' or ':memory:'"


def open_store(url: str | os.PathLike[str], options: Options) -> Store:
    """Open the store that `url` names. Raises `UsageError` for one we do not have."""
    kind, target = resolve(url)
    module, opener = STORES[kind]
    open_it: Opener = getattr(import_module(module), opener)
    return open_it(target, options)


def resolve(url: str | os.PathLike[str]) -> tuple[str, str]:
    """The kind of store, and the place inside it.

    >>> resolve("agent.db"), resolve("sqlite:////srv/agent.db"), resolve(":memory:")
    (('sqlite', 'agent.db'), ('sqlite', '/srv/agent.db'), ('memory', ':memory:'))
    """
    if not isinstance(url, str):
        return "sqlite", _path(os.fsdecode(url))
    if url in (":memory:", "sqlite://", "sqlite:///:memory:"):
        return "memory", ":memory:"
    if url.startswith("sqlite:///"):
        return "sqlite", _path(url.removeprefix("sqlite:///"))
    scheme, separator, _ = url.partition("://")
    if separator or url.startswith("file:"):
        scheme = scheme.partition(":")[0]
        raise UsageError(f"{url!r}: no log can be kept at {scheme!r}; give {_SUPPORTED}")
    return "sqlite", _path(url)


def _path(path: str) -> str:
    if not path or "\0" in path:
        raise UsageError(f"{path!r} is no path of a log; give {_SUPPORTED}")
    return path

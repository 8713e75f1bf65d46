"""What keeps the rows of a log, and the table of URLs that leads to it."""

from __future__ import annotations

import os
from importlib import import_module

from brute.events.errors import UsageError, WrongType, shown
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
    if isinstance(url, os.PathLike):
        return "sqlite", _path(os.fsdecode(url))
    if not isinstance(url, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise WrongType("the address of a log", url, _SUPPORTED)
    if url in (":memory:", "sqlite://", "sqlite:///:memory:"):
        return "memory", ":memory:"
    path = url.removeprefix("sqlite:///")
    if path.startswith(":memory:"):
        raise UsageError(f"{shown(url)}: a log in memory takes no options; give {_SUPPORTED}")
    scheme, separator, _ = url.partition("://")
    if path == url and (separator or url.startswith("file:")):
        scheme = scheme.partition(":")[0]
        raise UsageError(f"{shown(url)}: no log can be kept at {shown(scheme)}; give {_SUPPORTED}")
    return "sqlite", _path(path)


def _path(path: str) -> str:
    try:
        named = bool(path) and b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:  # a lone surrogate that stands for no byte
        named = False
    if not named:
        raise UsageError(f"{shown(path)} is no path of a log; give {_SUPPORTED}")
    return path

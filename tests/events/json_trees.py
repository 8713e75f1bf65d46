"""JSON of records, changed as a newer version might have written it, and read without the codec."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from typing import Any, TypeAlias

import msgspec
from hypothesis import strategies as hst
from hypothesis.strategies import SearchStrategy

from tests.events import stored

Change: TypeAlias = Callable[[dict[str, Any]], None]

NEW_VALUES: tuple[Any, ...] = (
    *(None, 0, 1.5, True, "a", "\x1a", "é😀", [], {}, [None], {"~": 1}, {"type": "text"}),
    *({"type": "hologram", "x": [1]}, {"type": "text", "text": "a", "new": {}}, "ok", "postponed"),
)
NEW_KEYS = ("new", "x~/", "", "日本", "\x1a", "type2", "text", "name", "kind", "outcome", "extras")


def changes() -> SearchStrategy[Change]:
    """A change somewhere in a tree: a new member, a new item, or another value for a member."""
    return hst.builds(
        _change,
        hst.sampled_from(["member", "member", "item", "value"]),
        hst.integers(0, 40),
        hst.sampled_from(NEW_KEYS),
        hst.sampled_from(NEW_VALUES),
    )


def _change(what: str, place: int, key: str, value: Any) -> Change:
    def member(tree: dict[str, Any]) -> None:
        found = [node for node in _nodes(tree) if isinstance(node, dict)]
        node = found[place % len(found)]
        if not (isinstance(node.get("~"), dict) and key in node["~"]):  # nobody writes both
            node[key] = deepcopy(value)  # a copy, or it might get into itself

    def item(tree: dict[str, Any]) -> None:
        found = [node for node in _nodes(tree) if isinstance(node, list)]
        if found:
            node = found[place % len(found)]
            node.insert(place % (len(node) + 1), deepcopy(value))

    def other(tree: dict[str, Any]) -> None:
        found = [node for node in _nodes(tree) if isinstance(node, dict) and node]
        node = found[place % len(found)]
        names = [name for name in node if node is not tree or name != "type"]
        if names:
            node[names[place % len(names)]] = deepcopy(value)

    return {"member": member, "item": item, "value": other}[what]


def _nodes(tree: Any) -> list[Any]:
    found, todo = [], [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, (dict, list)):
            found.append(node)
            todo += node.values() if isinstance(node, dict) else node
    return found


def plain(state: bytes) -> Any:
    """What a record says, read by json alone: slots lifted, escapes undone, defaults left out."""
    tree = json.loads(state)
    if tree.pop("escaped", False):
        tree = _unescaped(tree)
    return _lifted(tree)


def _unescaped(tree: Any) -> Any:
    if isinstance(tree, str):
        return re.sub("\x1a([0-9a-fA-F]{4})", lambda found: chr(int(found[1], 16)), tree)
    if isinstance(tree, dict):
        return {_unescaped(key): _unescaped(value) for key, value in tree.items()}
    return [_unescaped(item) for item in tree] if isinstance(tree, list) else tree


CATCH_ALL = ("unknown", "other")
CLOSED = [(tag, "outcome") for tag in ("result", "tool.returned", "effect.returned")]
CLOSED += [("reply.received", "finish")]
"""Fields with a catch-all word: where they are left out, the default was said."""


def _lifted(tree: Any) -> Any:
    if isinstance(tree, list):
        return [_lifted(item) for item in tree]
    if not isinstance(tree, dict):
        return tree
    slot = tree.get("~")
    if isinstance(slot, dict):
        here = {key: value for key, value in tree.items() if key != "~"}
        for key, value in slot.items():
            left_out = (here.get("type"), key) not in CLOSED
            if here[key] in CATCH_ALL if key in here else left_out:
                here[key] = value
        tree = here
    return {key: _lifted(value) for key, value in tree.items() if not _default(key, value)}


def _default(key: str, value: Any) -> bool:
    """Whether a member may just as well be left out."""
    return value is None or value == [] or (key, json.dumps(value)) in _defaults()


@cache
def _defaults() -> set[tuple[str, str]]:
    found: set[tuple[str, str]] = set()
    for struct in stored.structs():
        for field in msgspec.structs.fields(struct):
            if isinstance(field.default, (str, int)):
                found.add((field.encode_name, json.dumps(field.default)))
    return found

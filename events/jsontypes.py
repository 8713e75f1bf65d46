"""Names for JSON values, so that a signature can say "any JSON" without saying `Any`."""

from __future__ import annotations

from typing import Any, TypeAlias, TypeGuard

JSON: TypeAlias = Any
"""A JSON value: dict, list, str, int, float, bool or None, nested to any depth."""

JSONObject: TypeAlias = dict[str, Any]
"""A JSON object."""

JSONArray: TypeAlias = list[Any]
"""A JSON array."""

Extras: TypeAlias = dict[str, dict[str, Any]]
"""What one API said that the canonical fields do not, keyed by API (`anthropic.messages`, …)."""


def is_object(value: object) -> TypeGuard[JSONObject]:
    """Whether a JSON value is an object."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[JSONArray]:
    """Whether a JSON value is an array."""
    return isinstance(value, list)


def is_tuple(value: object) -> TypeGuard[tuple[object, ...]]:
    """Whether a value is a tuple: no JSON, but what a frozen struct holds its parts in."""
    return isinstance(value, tuple)

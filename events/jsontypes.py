"""Names for JSON values, so that a signature can say "any JSON" without saying `Any`."""

from __future__ import annotations

from typing import Any, TypeAlias

JSON: TypeAlias = Any
"""A JSON value: dict, list, str, int, float, bool or None, nested to any depth."""

JSONObject: TypeAlias = dict[str, Any]
"""A JSON object."""

Extras: TypeAlias = dict[str, dict[str, Any]]
"""What one API said that the canonical fields do not, keyed by API (`anthropic.messages`, …)."""

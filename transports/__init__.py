"""brute.transports, one file for each library or wire format.

The names load their file on first use, and no vendor SDK ever.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from brute.transports.anthropic import Anthropic
    from brute.transports.base import MessageTransport
    from brute.transports.openai import OpenAI

__all__ = ["Anthropic", "MessageTransport", "OpenAI"]

_HOME = {
    "Anthropic": "brute.transports.anthropic",
    "MessageTransport": "brute.transports.base",
    "OpenAI": "brute.transports.openai",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'brute.transports' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value

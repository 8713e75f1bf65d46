"""Brute, an event-sourced message log for LLM agents.

Every prompt append, tool call and reply is an immutable event; projections rebuild the canonical
message list from the events; transports translate that list to a library's request and the
library's reply back into new events.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from brute.agent import Agent
    from brute.divergence import Divergence
    from brute.effects import AsyncRun, Effect, Run, effect, run
    from brute.events.entries import Entry
    from brute.events.errors import (
        AlreadyAnswered,
        BruteError,
        Conflict,
        CorruptStore,
        CriticalUnknown,
        EncodingError,
        Fenced,
        ReadOnly,
        StoreError,
        StoreFull,
        TransportError,
        UnknownPosition,
        UnknownSession,
        UsageError,
    )
    from brute.events.events import ModelRef, Settings, ToolSpec
    from brute.events.messages import (
        Citation,
        Hosted,
        Json,
        Media,
        Message,
        Native,
        Origin,
        Reasoning,
        Refusal,
        Text,
        ToolCall,
        ToolResult,
        Usage,
    )
    from brute.log import Log, open  # noqa: A004 - the face's own name for it
    from brute.projections.usage import Price
    from brute.prompt import Prompt
    from brute.replies import (
        AsyncReply,
        EffectFailure,
        OutcomeUnknown,
        Reply,
        RequestFailure,
        StreamCut,
        TurnLimit,
    )
    from brute.runs import record, replay, resume
    from brute.session import Session
    from brute.turn import Turn
    from brute.view import View

_HOMES: dict[str, tuple[str, ...]] = {
    "brute.agent": ("Agent",),
    "brute.divergence": ("Divergence",),
    "brute.effects": ("AsyncRun", "Effect", "Run", "effect", "run"),
    "brute.events.entries": ("Entry",),
    "brute.events.errors": (
        "AlreadyAnswered",
        "BruteError",
        "Conflict",
        "CorruptStore",
        "CriticalUnknown",
        "EncodingError",
        "Fenced",
        "ReadOnly",
        "StoreError",
        "StoreFull",
        "TransportError",
        "UnknownPosition",
        "UnknownSession",
        "UsageError",
    ),
    "brute.events.events": ("ModelRef", "Settings", "ToolSpec"),
    "brute.events.messages": (
        "Citation",
        "Hosted",
        "Json",
        "Media",
        "Message",
        "Native",
        "Origin",
        "Reasoning",
        "Refusal",
        "Text",
        "ToolCall",
        "ToolResult",
        "Usage",
    ),
    "brute.log": ("Log", "open"),
    "brute.projections.usage": ("Price",),
    "brute.prompt": ("Prompt",),
    "brute.replies": (
        "AsyncReply",
        "EffectFailure",
        "OutcomeUnknown",
        "Reply",
        "RequestFailure",
        "StreamCut",
        "TurnLimit",
    ),
    "brute.runs": ("record", "replay", "resume"),
    "brute.session": ("Session",),
    "brute.turn": ("Turn",),
    "brute.view": ("View",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "Agent",
    "AlreadyAnswered",
    "AsyncReply",
    "AsyncRun",
    "BruteError",
    "Citation",
    "Conflict",
    "CorruptStore",
    "CriticalUnknown",
    "Divergence",
    "Effect",
    "EffectFailure",
    "EncodingError",
    "Entry",
    "Fenced",
    "Hosted",
    "Json",
    "Log",
    "Media",
    "Message",
    "ModelRef",
    "Native",
    "Origin",
    "OutcomeUnknown",
    "Price",
    "Prompt",
    "ReadOnly",
    "Reasoning",
    "Refusal",
    "Reply",
    "RequestFailure",
    "Run",
    "Session",
    "Settings",
    "StoreError",
    "StoreFull",
    "StreamCut",
    "Text",
    "ToolCall",
    "ToolResult",
    "ToolSpec",
    "TransportError",
    "Turn",
    "TurnLimit",
    "UnknownPosition",
    "UnknownSession",
    "Usage",
    "UsageError",
    "View",
    "effect",
    "open",
    "record",
    "replay",
    "resume",
    "run",
]


def __getattr__(name: str) -> object:
    # Each name loads its module on first use, so that `import brute.events` loads nothing else.
    module = _HOME.get(name)
    if module is None:
        raise AttributeError(f"module 'brute' has no attribute {name!r}")
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]

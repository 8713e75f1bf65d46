"""brute.projections, pure folds over the events of a session.

Folded over the lineage (what is still said): `messages`, `turns`, `calls`, `effects`. Folded over
everything that was logged: `usage`, `requests`, `timeline`.
"""

from __future__ import annotations

from brute.projections import calls, effects, messages, requests, timeline, turns, usage
from brute.projections.fold import Projection, at, fold, last_rewind, lineage
from brute.projections.window import window

__all__ = [
    "Projection",
    "at",
    "calls",
    "effects",
    "fold",
    "last_rewind",
    "lineage",
    "messages",
    "requests",
    "timeline",
    "turns",
    "usage",
    "window",
]

"""brute.projections, pure folds over the events of a session."""

from __future__ import annotations

from brute.projections import calls, messages, turns
from brute.projections.fold import Projection, at, fold, last_rewind, lineage

__all__ = [
    "Projection",
    "at",
    "calls",
    "fold",
    "last_rewind",
    "lineage",
    "messages",
    "turns",
]

"""Lanes: `/` is the run's own, `/0` a task in it, `/0/2` a task in that."""

from __future__ import annotations


def within(lane: str, root: str) -> bool:
    """Whether `lane` is `root` or a task somewhere below it."""
    return lane == root or lane.startswith(root if root.endswith("/") else root + "/")

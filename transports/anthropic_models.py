"""What Anthropic's models take, as far as their names say it."""

from __future__ import annotations

import re

_CLAUDE = re.compile(
    r"claude-(?:(\d+)-)?(?:(\d+)-)?([a-z]+)(?:-(\d{1,2})(?!\d))?(?:-(\d{1,2})(?!\d))?"
)


def claude(model: str | None) -> tuple[str, tuple[int, int]] | None:
    """Family and version in a model's name, in whatever way a platform dresses it.

    >>> claude("us.anthropic.claude-opus-4-6-v1:0")
    ('opus', (4, 6))
    >>> claude("claude-3-5-sonnet-20241022")
    ('sonnet', (3, 5))
    """
    found = _CLAUDE.search(model or "")
    if found is None:
        return None
    numbers = [int(n) for n in (found[1], found[2], found[4], found[5]) if n is not None]
    major, minor = (*numbers, 0, 0)[:2]
    return found[3], (major, minor)


def takes_prefill(model: str | None) -> bool:
    """Whether the model continues an assistant message: those before 4.6 do."""
    known = claude(model)
    return known is None or known[1] < (4, 6)


def takes_midway(model: str | None) -> bool:
    """Whether the model takes system text between messages: Opus 4.8 and whatever came later."""
    known = claude(model)
    return known is not None and known[1] >= (4, 8)

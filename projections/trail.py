"""The settings in force, for projections that see rewinds.

Usage, requests and timeline fold everything that happened, also what was rewound away; but the
settings of a turn are written as changes to what stood at the place that was rewound to.
"""

from __future__ import annotations

from bisect import bisect_right

from brute.events.events import HistoryRewound, Settings, TurnStarted


class Trail:
    """The settings now, and as they stood at every position."""

    __slots__ = ("_positions", "_settings", "now")

    def __init__(self) -> None:
        self.now = Settings()
        self._positions: list[int] = []
        self._settings: list[Settings] = []

    def turn_started(self, position: int, event: TurnStarted) -> None:
        """A turn changed them."""
        self._set(position, self.now.after(event))

    def rewound(self, position: int, event: HistoryRewound) -> None:
        """They are again what they were."""
        if event.to < position:
            count = bisect_right(self._positions, event.to)
            self._set(position, self._settings[count - 1] if count else Settings())

    def _set(self, position: int, settings: Settings) -> None:
        if settings is not self.now:
            self.now = settings
            self._positions.append(position)
            self._settings.append(settings)

"""`Divergence`: the first place where a replay differs from the recording."""

from __future__ import annotations

from typing import Literal, TypeAlias

from brute.events.events import Event, UnknownEvent, tag_of

Kind: TypeAlias = Literal["content", "settings", "order", "extra", "short"]


class Divergence(BaseException):
    """A replay does not do what the recording did.

    The one error outside `BruteError`, and no `Exception`: SDK retries, tool loops and
    `except Exception` would swallow it and go on with a run that is no longer the recorded one.

    kind: content (same fact, other data), settings, order (another fact at this place), extra
    (the code goes on after the recording ended), short (it ended early).
    """

    def __init__(
        self,
        kind: Kind,
        session: str,
        place: tuple[int, str],
        recorded: Event | UnknownEvent | None,
        now: Event | None,
        *,
        field: str | None = None,
    ) -> None:
        super().__init__(kind, session, place, recorded, now)
        self.kind, self.session = kind, session
        self.position, self.lane = place
        self.recorded, self.now, self.field = recorded, now, field

    def __str__(self) -> str:
        where = f"{self.session}@{self.position}, lane {self.lane}"
        return (
            f"{self.kind} at {where}{f', /{self.field}' if self.field else ''}\n"
            f"  recorded  {_show(self.recorded, self.field)}\n"
            f"  now       {_show(self.now, self.field)}"
        )


def _show(event: Event | UnknownEvent | None, field: str | None) -> str:
    if event is None:
        return "nothing"
    value = getattr(event, field) if field else event
    text = f"{tag_of(event)} {value!r}"
    return text if len(text) <= 300 else text[:297] + "…"

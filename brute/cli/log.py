"""`brute log`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import click

from brute.cli.address import parse, position_of
from brute.cli.app import db_option, json_option, options, screen_options
from brute.cli.opening import log_to_read
from brute.cli.screen import clip, muted, pad, screen_width, visible, visible_json, width_of
from brute.events import blobs, codec
from brute.events.errors import UsageError
from brute.events.events import tag_of
from brute.events.jsontext import dumps, loads
from brute.projections import timeline
from brute.projections.lanes import within

if TYPE_CHECKING:
    from brute.events.entries import Entry
    from brute.events.log import EventLog
    from brute.projections.timeline import Row

_KIND: Final = 9
"""Columns of the word for the kind of an event."""

_PLACE: Final = 60
"""Columns that the text is given before the place in the code is shown behind it."""

STYLES: Final[dict[str, str]] = {
    "system": "magenta",
    "developer": "magenta",
    "user": "cyan",
    "reply": "green",
    "summary": "green",
    "assistant": "green",
    "call": "yellow",
    "result": "yellow",
    "tool": "yellow",
    "effect": "yellow",
    "returned": "yellow",
    "failed": "red",
    "cut": "red",
    "unknown": "red",
}
"""The colour of each kind; what is not named here has none."""


@click.command(
    epilog="""\b
Examples:
  $ brute log last
  $ brute log trips --at 9
  $ brute log trips --kind call --kind result
  $ brute log trips --lane /0
  $ brute log trips --json | head -3
"""
)
@click.argument("address", metavar="S[@N]")
@click.option("--at", "upto", metavar="N", help="Only up to this position; as S@N.")
@click.option(
    "--kind",
    "kinds",
    metavar="KIND",
    multiple=True,
    help="Only events of this kind: the word that is shown (reply, call, …), an event's tag "
    "(tool.returned) or the first half of one (tool). May be given again.",
)
@click.option("--lane", metavar="LANE", help="Only this lane and those below it: /, /0, /0/2.")
@click.option("-f", "--follow", is_flag=True, help="Go on with new events, until ctrl-C.")
@json_option
@db_option
@screen_options
def command(
    address: str, upto: str | None, kinds: tuple[str, ...], lane: str | None, follow: bool
) -> None:
    """Show what happened in a session, one line an event.

    A line is the position, the lane (the task inside a run), what kind of event it is, and what
    it says. With --json it is the stored event with its envelope.
    """
    if upto is not None:
        if "@" in address:
            raise UsageError(f"{address!r} names a place already; leave out --at {upto}")
        address = f"{address}@{upto}"
    place = parse(address)
    if follow and place.has_place:
        raise UsageError("an end (--at or S@N) and --follow do not go together; leave one out")
    with log_to_read() as log:
        session = log.events.find(place.session)
        last = position_of(log, session, place) if place.has_place else None
        entries = _following(log.events, session) if follow else log.events.read(session, upto=last)
        state = timeline.initial()
        write = _write_json if options().json else Writer()
        for entry in entries:
            timeline.apply(state, entry)
            row = state.rows.pop()
            if _wanted(row, tag_of(entry.event), kinds, lane):
                write(entry, row)


def _following(events: EventLog, session: str) -> Iterator[Entry]:
    yield from events.follow(session)


def _wanted(row: Row, tag: str, kinds: tuple[str, ...], lane: str | None) -> bool:
    if lane is not None and not within(row.lane, lane):
        return False
    return not kinds or any(kind in (row.kind, tag, tag.partition(".")[0]) for kind in kinds)


class Writer:
    """Writes rows as lines for people."""

    def __init__(self) -> None:
        self._width = screen_width()
        self._lane = 2  # `/0`: a lane of its own is seldom deeper

    def __call__(self, entry: Entry, row: Row) -> None:
        """Write one row."""
        self._lane = max(self._lane, width_of(row.lane))
        click.echo(line(row, self._width, self._lane))


def line(row: Row, width: int | None, lane: int) -> str:
    """A row as a line of at most `width` columns, its lane in `lane` columns."""
    color = STYLES.get(row.kind)
    head = f"{row.position:>6} "
    kind = pad(row.kind, _KIND)
    text = visible(row.text)
    if width is not None:
        text = clip(text, max(20, width - len(head) - lane - _KIND - 3))
    out = muted(head + pad(visible(row.lane), lane))
    out += "  " + (click.style(kind, fg=color) if color else kind) + " " + text
    return out.rstrip()


def _write_json(entry: Entry, _: Row) -> None:
    click.echo(visible_json(stored(entry)))


def stored(entry: Entry) -> str:
    """An entry as one JSON object: session, position, and what the log stores.

    Large media are references (`"blob":"sha256:…"`), as they are in the store.
    """
    state = entry.raw
    if state is None:
        state = codec.encode(blobs.take_out(entry.record)[0])
    elif b"\n" in state or b"\r" in state:
        state = dumps(loads(state)).encode()
    head = dumps({"session": entry.session, "position": entry.position})
    return f"{head[:-1]},{state.decode().lstrip()[1:]}"

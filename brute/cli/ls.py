"""`brute ls`."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Final

import click
import msgspec

from brute.cli.app import db_option, json_option, options, screen_options
from brute.cli.opening import log_to_read
from brute.cli.screen import Column, age, table, tokens, write_json
from brute.cli.summary import Summary, models, summarize, trouble
from brute.events.errors import UsageError
from brute.events.jsontypes import JSONObject

if TYPE_CHECKING:
    from brute.events.log import EventLog
    from brute.events.store.base import SessionInfo

_AGE: Final = re.compile(r"(\d{1,9})\s*(min|[smhdw])", re.ASCII)
_SECONDS: Final = {"s": 1, "m": 60, "min": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_TAIL: Final = 8
"""Characters of a made-up id that are shown. Its end differs most: it begins with the time."""

_COLUMNS: Final = (
    Column("ID", style="cyan"),
    Column("AGENT"),
    Column("TURNS", right=True),
    Column("EVENTS", right=True),
    Column("TOKENS", right=True),
    Column("MODEL"),
    Column("FROM"),
    Column("LAST", right=True),
    Column("", style="red"),
)


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One session in the list."""

    info: SessionInfo
    summary: Summary
    trouble: str | None


@click.command(
    epilog="""\b
Examples:
  $ brute ls
  $ brute ls --since 2d --failed
  $ brute ls --model gpt -n 5
  $ brute ls --json | head -1
"""
)
@click.option(
    "--since",
    metavar="AGE",
    help="Only sessions with an event since then: 30min, 12h, 2d, 1w or a date, 2026-11-30.",
)
@click.option(
    "--model",
    metavar="MODEL",
    help="Only sessions in which this model replied; a part of its name will do.",
)
@click.option(
    "--failed",
    is_flag=True,
    help="Only sessions whose newest run or request failed, or whose reply was cut.",
)
@click.option(
    "-n",
    "limit",
    metavar="N",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    help="How many at most; 0 for all.",
)
@json_option
@db_option
@screen_options
def command(since: str | None, model: str | None, failed: bool, limit: int) -> None:
    """List the sessions, the one with the newest event first.

    TURNS, EVENTS and TOKENS (in / out) are a session's own: what a fork shares is counted in the
    session it comes FROM. A made-up id is shown by its end, which is enough to name it.
    """
    oldest = _since(since) if since is not None else 0
    with log_to_read() as log:
        fitting = _fitting(log.events, oldest, model, failed=failed)
        lines = list(islice(fitting, limit or None))
        more = limit > 0 and next(fitting, None) is not None
        names = _names(info.id for info in log.events.sessions())
    if options().json:
        for line in lines:
            write_json(_object(line))
        return
    for text in table(_COLUMNS, [_row(line, names) for line in lines]) if lines else ():
        click.echo(text)
    if more:
        click.echo(f"… and more: the newest {limit} are shown, -n 0 shows all", err=True)
    elif not lines:
        click.echo("no session fits" if names else "there are no sessions yet", err=True)


def _since(text: str) -> int:
    """A time in milliseconds since 1970, out of an age or a date."""
    found = _AGE.fullmatch(text.strip())
    if found is not None:
        return int((time.time() - int(found[1]) * _SECONDS[found[2]]) * 1_000)
    try:
        return int(datetime.fromisoformat(text).astimezone().timestamp() * 1_000)
    except (ValueError, OverflowError):
        raise UsageError(
            f"--since {text!r} is no age and no date; give one like 30min, 12h, 2d or 2026-11-30"
        ) from None


def _fitting(events: EventLog, oldest: int, model: str | None, *, failed: bool) -> Iterator[Line]:
    for info in events.sessions():
        if info.updated < oldest:
            continue
        wrong = trouble(events, info)
        if failed and wrong is None:
            continue
        summary = summarize(events, info)
        if model is None or any(model in name for name in models(summary)):
            yield Line(info=info, summary=summary, trouble=wrong)


def _names(ids: Iterable[str]) -> dict[str, str]:
    """What each session is called on the screen: its id, or the end of a made-up one."""
    sessions = list(ids)
    tails = Counter(session[-_TAIL:] for session in sessions)

    def name(session: str) -> str:
        tail = session[-_TAIL:]
        return tail if _made_up(session) and tails[tail] == 1 else session

    return {session: name(session) for session in sessions}


def _made_up(id: str) -> bool:
    return re.fullmatch(r"[0-9a-f]{12}7[0-9a-f]{19}", id) is not None


def _row(line: Line, names: dict[str, str]) -> tuple[str, ...]:
    info, used = line.info, line.summary.usage
    total = used.total
    spent = f"{tokens(total.input)} / {tokens(total.output)}" if total.input or total.output else ""
    return (
        names.get(info.id, info.id),
        info.agent or "",
        f"{used.turns:,}" if used.turns else "",
        f"{line.summary.events:,}",
        spent,
        ", ".join(models(line.summary)),
        _origin(info, names),
        age(info.updated),
        line.trouble or "",
    )


def _origin(info: SessionInfo, names: dict[str, str]) -> str:
    if info.parent is None:
        return info.link or ""
    at = "" if info.parent_position is None else f"@{info.parent_position}"
    return f"{names.get(info.parent, info.parent)}{at}"


def _object(line: Line) -> JSONObject:
    info, summary = line.info, line.summary
    total = summary.usage.total
    return {
        "session": info.id,
        "agent": info.agent,
        "title": info.title,
        "created": info.created,
        "updated": info.updated,
        "last": info.last,
        "link": info.link,
        "parent": info.parent,
        "parent_position": info.parent_position,
        "turns": summary.usage.turns,
        "events": summary.events,
        "bytes": summary.bytes,
        "input_tokens": total.input,
        "output_tokens": total.output,
        "models": models(summary),
        "trouble": line.trouble,
    }

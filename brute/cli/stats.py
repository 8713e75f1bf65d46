"""`brute stats`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import click
import msgspec

from brute.cli.address import parse
from brute.cli.app import db_option, json_option, options, screen_options
from brute.cli.exits import BadFile
from brute.cli.opening import log_to_read
from brute.cli.screen import Column, count, size, table, write_json
from brute.cli.summary import Summary, summarize
from brute.events.errors import UsageError
from brute.events.jsontypes import JSONObject
from brute.events.messages import Usage
from brute.events.store import resolve
from brute.projections.usage import Price

_COLUMNS: Final = (
    Column("MODEL", style="cyan"),
    Column("REPLIES", right=True),
    Column("INPUT", right=True),
    Column("CACHED", right=True),
    Column("OUTPUT", right=True),
    Column("REASONING", right=True),
    Column("COST", right=True, style="green"),
)


class Model(msgspec.Struct, kw_only=True):
    """What one model was used for."""

    replies: int = 0
    usage: Usage = msgspec.field(default_factory=Usage)
    dollars: float | None = None


class Totals(msgspec.Struct, kw_only=True):
    """Everything that was counted."""

    sessions: int = 0
    forks: int = 0
    events: int = 0
    bytes: int = 0
    turns: int = 0
    requests: int = 0
    failed: int = 0
    models: dict[str, Model] = msgspec.field(default_factory=dict[str, Model])

    def add(self, summary: Summary, prices: Mapping[str, Price]) -> None:
        """Count one session."""
        used = summary.usage
        self.sessions += 1
        self.events += summary.events
        self.bytes += summary.bytes
        self.turns += used.turns
        self.requests += used.requests
        self.failed += used.failed + used.interrupted
        for row in used.models:
            model = self.models.setdefault(row.asked or row.name, Model())
            model.replies += row.replies
            model.usage += row.usage
            price = row.price(prices)
            if price is not None:
                model.dollars = (model.dollars or 0.0) + price.of(row.usage)

    @property
    def usage(self) -> Usage:
        """Tokens of all models."""
        return sum((model.usage for model in self.models.values()), Usage())

    @property
    def dollars(self) -> float | None:
        """What is known to have been spent; None when no model has a price."""
        known = [m.dollars for m in self.models.values() if m.dollars is not None]
        return sum(known) if known else None


@click.command(
    epilog="""\b
Examples:
  $ brute stats
  $ brute stats last
  $ brute stats --prices prices.json
  $ brute stats --json

\b
A file of prices gives dollars per million tokens, by the name of the model:
  {"gpt-5": {"input": 1.25, "output": 10, "cache_read": 0.125}}
"""
)
@click.argument("address", metavar="[S]", required=False)
@click.option("--prices", "prices_file", metavar="FILE", help="Prices, to show what it cost.")
@json_option
@db_option
@screen_options
def command(address: str | None, prices_file: str | None) -> None:
    """Add up sessions, events, bytes, tokens and cost: of session S, or of all."""
    prices = _prices(prices_file) if prices_file is not None else {}
    totals = Totals()
    with log_to_read() as log:
        events = log.events
        if address is None:
            infos = list(events.sessions())
        else:
            place = parse(address)
            if place.has_place:
                raise UsageError(f"{address!r}: stats are of a whole session; leave out the place")
            infos = [events.info(events.find(place.session))]
        for info in infos:
            totals.forks += info.link == "fork"
            totals.add(summarize(events, info), prices)
    if options().json:
        write_json(_object(totals))
        return
    file = None if address is not None else _file_size()
    for line in _lines(totals, file, with_prices=bool(prices)):
        click.echo(line)


def _prices(path: str) -> dict[str, Price]:
    """The table of prices. Raises `BadFile`."""
    try:
        return msgspec.json.decode(Path(path).read_bytes(), type=dict[str, Price])
    except OSError as error:
        raise BadFile(path, f"it cannot be read ({error.strerror})", "look at the path") from error
    except msgspec.DecodeError as error:
        example = '{"MODEL": {"input": 1.25, "output": 10}}'
        raise BadFile(path, f"it is no table of prices ({error})", f"write {example}") from error


def _file_size() -> int | None:
    kind, path = resolve(options().db)
    if kind != "sqlite":
        return None
    return sum(file.stat().st_size for file in (Path(path), Path(f"{path}-wal")) if file.exists())


def _lines(totals: Totals, file: int | None, *, with_prices: bool) -> list[str]:
    forks = f" ({count(totals.forks, 'fork')})" if totals.forks else ""
    stored = size(totals.bytes) + (f" in a file of {size(file)}" if file is not None else "")
    failed = f", {totals.failed:,} failed or cut" if totals.failed else ""
    lines = [
        f"{count(totals.sessions, 'session')}{forks}, {count(totals.events, 'event')}, {stored}",
        f"{count(totals.turns, 'turn')}, {count(totals.requests, 'request')}{failed}",
    ]
    if not totals.models:
        return lines
    most_used = sorted(totals.models.items(), key=lambda item: (-_tokens(item[1]), item[0]))
    rows = [_row(name, model) for name, model in most_used]
    if len(rows) > 1:
        total = Model(
            replies=sum(model.replies for model in totals.models.values()),
            usage=totals.usage,
            dollars=totals.dollars,
        )
        rows.append(_row("total", total))
    lines += ["", *table(_COLUMNS, rows)]
    unpriced = [name for name, model in totals.models.items() if model.dollars is None]
    if with_prices and unpriced:
        lines += ["", f"without a price: {', '.join(unpriced)}"]
    return lines


def _tokens(model: Model) -> int:
    return model.usage.input + model.usage.output


def _row(name: str, model: Model) -> tuple[str, ...]:
    used = model.usage
    return (
        name,
        f"{model.replies:,}",
        f"{used.input:,}",
        f"{used.cache_read:,}" if used.cache_read else "",
        f"{used.output:,}",
        f"{used.reasoning:,}" if used.reasoning else "",
        "" if model.dollars is None else f"${model.dollars:,.4f}",
    )


def _object(totals: Totals) -> JSONObject:
    return {
        "sessions": totals.sessions,
        "forks": totals.forks,
        "events": totals.events,
        "bytes": totals.bytes,
        "turns": totals.turns,
        "requests": totals.requests,
        "failed": totals.failed,
        "dollars": totals.dollars,
        "models": {
            name: {
                "replies": model.replies,
                "input_tokens": model.usage.input,
                "output_tokens": model.usage.output,
                "reasoning_tokens": model.usage.reasoning,
                "cache_read_tokens": model.usage.cache_read,
                "cache_write_tokens": model.usage.cache_write,
                "dollars": model.dollars,
            }
            for name, model in totals.models.items()
        },
    }

"""`brute import`."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

import click

from brute.cli.app import db_option, json_option, options, screen_options
from brute.cli.exits import BadFile
from brute.cli.opening import is_there, log_to_write
from brute.cli.screen import count, visible, write_json
from brute.exchange import MAX_LINE, Imported, Source, import_file
from brute.intake import copy_session
from brute.log import open as open_log

_SOURCES: Final[dict[str, Source | None]] = {
    "auto": None,
    "openai": "openai",
    "anthropic": "anthropic",
    "messages": "messages",
    "brute": "brute",
}


@click.command(
    epilog=f"""\b
Examples:
  $ brute import body.json
  $ brute import messages.jsonl --id chat
  $ brute import body.json --from openai --id support
  $ brute export trips | brute --db other.db import -

\b
A line, or a request body, may have {MAX_LINE:,} bytes.
"""
)
@click.argument("path", metavar="FILE")
@click.option(
    "--from",
    "source",
    metavar="FORMAT",
    type=click.Choice(list(_SOURCES)),
    default="auto",
    show_default=True,
    help="auto, openai, anthropic, messages or brute.",
)
@click.option(
    "--id", "name", metavar="ID", help="The session's id.  [default: as exported, or made up]"
)
@json_option
@db_option
@screen_options
def command(path: str, source: str, name: str | None) -> None:
    """Make a session of FILE (- for standard input), and print its id.

    FILE is a request body of OpenAI's Chat Completions or Anthropic's Messages, or chat messages,
    one JSON object a line, or what `brute export` wrote. It is imported whole or not at all.
    """
    shown = "standard input" if path == "-" else path
    with _input(path) as file:
        imported = _import(file, _SOURCES[source], name, shown)
    if options().json:
        write_json(
            {
                "session": imported.session,
                "source": imported.source,
                "entries": imported.entries,
                "notes": list(imported.notes),
            }
        )
        return
    click.echo(imported.session)
    entries = count(imported.entries, "entry", "entries")
    click.echo(f"brute: {entries} from {shown}, read as {imported.source}", err=True)
    for note in imported.notes:
        click.echo(f"brute: note: {visible(note)}", err=True)


def _import(file: BinaryIO, source: Source | None, id: str | None, shown: str) -> Imported:
    """Import into the log; one that is not there is made once the file was understood."""
    if is_there():
        with log_to_write() as log:
            return import_file(log, file, source=source, id=id, name=shown)
    with open_log(":memory:") as scratch:
        imported = import_file(scratch, file, source=source, id=id, name=shown)
        with log_to_write() as log:
            copy_session(scratch, imported.session, log)
    return imported


@contextmanager
def _input(path: str) -> Generator[BinaryIO]:
    if path == "-":
        yield sys.stdin.buffer
        return
    try:
        file = Path(path).open("rb")  # noqa: SIM115 - closed below
    except OSError as error:
        raise BadFile(path, f"it cannot be read ({error.strerror})", "look at the path") from error
    with file:
        yield file

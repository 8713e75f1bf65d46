"""`brute export`."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import click

from brute.cli.address import parse, position_of
from brute.cli.app import db_option, screen_options
from brute.cli.opening import log_to_read
from brute.cli.screen import count, size, visible_json
from brute.events.errors import StoreError
from brute.exchange import export_session


@click.command(
    epilog="""\b
Examples:
  $ brute export trips -o trips.jsonl
  $ brute export trips@9 | head -3
  $ brute export last | brute --db other.db import -
"""
)
@click.argument("address", metavar="S[@N]")
@click.option("-o", "output", metavar="FILE", help="Write into this file, which is not there yet.")
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@db_option
@screen_options
def command(address: str, output: str | None, force: bool) -> None:
    """Write a session as JSON lines, nothing lost.

    Each entry is written as the log stores it, byte for byte, with the media it refers to; a fork
    with the past that it shares. `brute import` makes an equal session of it, in any log. On a
    terminal, characters that it would obey, or not show, are written as JSON escapes.
    """
    place = parse(address)
    with log_to_read() as log:
        session = log.events.find(place.session)
        upto = position_of(log, session, place)
        lines = export_session(log, session, upto=upto)
        if output is None and sys.stdout.isatty():
            lines = map(_to_look_at, lines)
        with _output(output, force=force) as file:
            written = sum(map(file.write, lines))
    if output is not None:
        click.echo(f"{output}: {count(upto + 1, 'entry', 'entries')}, {size(written)}", err=True)


def _to_look_at(line: bytes) -> bytes:
    return visible_json(line.decode(errors="surrogateescape")).encode(errors="surrogateescape")


@contextmanager
def _output(path: str | None, *, force: bool) -> Generator[BinaryIO]:
    """Where the lines go: standard output, or a file that appears only when it is whole."""
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()  # so that a full disk is told here
        return
    target = Path(path)
    if target.exists() and not force:
        raise StoreError(path, "there is such a file", "give another name, or --force")
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        _make_readable(name)
        Path(name).replace(target)
    except BaseException as error:
        Path(name).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise _unwritable(path, error) from error
        raise


def _make_readable(name: str) -> None:
    """The rights of a file made plainly; a temporary one is for its owner alone."""
    mask = os.umask(0)
    os.umask(mask)
    Path(name).chmod(0o666 & ~mask)


def _unwritable(path: str, error: OSError) -> StoreError:
    return StoreError(path, f"it cannot be written ({error.strerror})", "look at the path")

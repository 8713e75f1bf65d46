"""`brute demo`."""

from __future__ import annotations

import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import click

from brute.cli.app import db_option, options, screen_options
from brute.cli.demo_story import tell
from brute.events.errors import UsageError

_SDKS: Final = ("openai", "anthropic")


@click.command(
    epilog="""\b
Examples:
  $ brute demo
  $ brute demo --db demo.db
  $ brute --db demo.db log last
"""
)
@db_option
@screen_options
def command() -> None:
    """See Brute at work in ten seconds: no key, no network.

    A real agent loop talks to a scripted server on this machine, through the clients of openai and
    anthropic. What happens is recorded, and the record is put to use: rebuilt, read at an earlier
    position, continued at another provider, continued after a kill, forked. Every number is
    computed as you see it.

    The log is a new file in the folder for temporary files; --db names another one (BRUTE_DB does
    not count here).
    """
    missing = [name for name in _SDKS if find_spec(name) is None]
    if missing:
        raise UsageError(
            f"the demo talks through the clients of openai and anthropic, and {missing[0]} is not "
            "installed here; install both with: pip install 'brute-log[openai,anthropic]'"
        )
    db = options().db_typed
    if db is None:
        db = str(Path(tempfile.mkdtemp(prefix="brute-demo-")) / "demo.db")
    tell(db, click.echo)

"""`brute fork`."""

from __future__ import annotations

import click

from brute.cli.address import parse, position_of
from brute.cli.app import db_option, json_option, options, screen_options
from brute.cli.opening import log_to_continue
from brute.cli.screen import write_json
from brute.events.ids import check_session_id
from brute.intake import require_free


@click.command(
    epilog="""\b
Examples:
  $ brute fork trips@4 --id what-if
  $ brute fork trips@turn:1
  $ brute log what-if
"""
)
@click.argument("address", metavar="S[@N]")
@click.option("--id", "name", metavar="ID", help="The new session's id.  [default: made up]")
@json_option
@db_option
@screen_options
def command(address: str, name: str | None) -> None:
    """Begin a session that shares another one's past, and print its id.

    The new session has the entries of S up to position N (default: all), by reference: nothing is
    copied, and S stays as it is. Its own entries go on at N+1.
    """
    place = parse(address)
    if name is not None:
        check_session_id(name)
    with log_to_continue() as log:
        session = log.events.find(place.session)
        position = position_of(log, session, place)
        if name is not None:
            require_free(log, name)
        child = log.events.fork(session, position, id=name)
    if options().json:
        write_json({"session": child, "parent": session, "parent_position": position})
    else:
        click.echo(child)

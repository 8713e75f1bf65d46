"""The parser: global options, the table of verbs, and what becomes of an error.

A verb is a module of this package with a click command named `command`. It is imported when it is
asked for, so `brute --help` loads none of them.
"""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from difflib import get_close_matches
from importlib import import_module
from typing import Any, Final, NoReturn, TypeVar

import click
from click.core import ParameterSource

from brute.cli.exits import EXIT_ERROR, EXIT_INTERRUPTED, exit_code_of
from brute.cli.screen import visible
from brute.events.errors import BruteError

VERBS: Final[dict[str, tuple[str, str]]] = {
    "demo": ("demo", "See Brute at work in ten seconds: no key, no network."),
    "ls": ("ls", "List the sessions, newest first."),
    "log": ("log", "Show what happened in a session, one line an event."),
    "show": ("show", "Show a session at a position: messages, request, wire body."),
    "stats": ("stats", "Add up sessions, events, bytes, tokens and cost."),
    "fork": ("fork", "Begin a session that shares another one's past."),
    "import": ("import_", "Make a session of a request body or of an exported file."),
    "export": ("export", "Write a session as JSON lines, nothing lost."),
}
"""Each verb with its module and its line in `brute --help`, in the order of that page."""

DEFAULT_DB = "brute.db"

F = TypeVar("F", bound=Callable[..., Any])


class Options:
    """The global options as they were given, before or behind the verb."""

    def __init__(self) -> None:
        self.db = DEFAULT_DB
        self.db_typed: str | None = None
        """`--db` as it was typed; None where the log is named otherwise."""
        self.json = False
        self.traceback = bool(os.environ.get("BRUTE_TRACEBACK"))


def options() -> Options:
    """The global options of the command that runs."""
    return click.get_current_context().ensure_object(Options)


def _keep(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def keep(context: click.Context, _: click.Parameter, value: object) -> None:
        if value is not None:
            setattr(context.ensure_object(Options), name, value)

    return keep


def _keep_db(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    if value is not None:
        given = context.ensure_object(Options)
        given.db = value
        if context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE:
            given.db_typed = value


def _keep_color(context: click.Context, _: click.Parameter, value: bool | None) -> None:
    if value is not None:
        context.color = value
    elif context.parent is None and os.environ.get("NO_COLOR"):  # https://no-color.org
        context.color = False


def _is_group(command: object) -> bool:
    return isinstance(command, click.Group)


def db_option(command: F) -> F:
    """`--db`."""
    # Behind the verb the variable does not count: it would overrule a --db before the verb.
    variable = "BRUTE_DB" if _is_group(command) else None
    decorate = click.option(
        "--db",
        metavar="FILE",
        envvar=variable,
        callback=_keep_db,
        expose_value=False,
        help=f"The log.  [env: BRUTE_DB; default: {DEFAULT_DB} in this folder]",
    )
    return decorate(command)


def json_option(command: F) -> F:
    """`--json`, which every reading verb has."""
    decorate = click.option(
        "--json",
        is_flag=True,
        default=None,
        callback=_keep("json"),
        expose_value=False,
        help="One JSON object a line, for programs.",
    )
    return decorate(command)


def screen_options(command: F) -> F:
    """`--color`, `--no-color` and `--traceback`; behind a verb they work and are not shown."""
    hidden = not _is_group(command)
    decorate = click.option(
        "--traceback",
        is_flag=True,
        default=None,
        callback=_keep("traceback"),
        expose_value=False,
        hidden=hidden,
        help="Show where in the code an error arose.  [env: BRUTE_TRACEBACK]",
    )
    decorate_too = click.option(
        "--color/--no-color",
        default=None,
        callback=_keep_color,
        expose_value=False,
        hidden=hidden,
        help="Colours: always or never.  [default: on a terminal, unless NO_COLOR is set]",
    )
    return decorate_too(decorate(command))


class Verbs(click.Group):
    """The group of verbs: loads them late, and turns errors into lines and exit codes."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """See `click.Group.list_commands`."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the verb's module."""
        if cmd_name not in VERBS:
            return None
        module = import_module(f"brute.cli.{VERBS[cmd_name][0]}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Say what was meant by a verb that does not exist."""
        name = args[0]
        if name not in VERBS and not name.startswith("-"):
            near = get_close_matches(name, VERBS, n=1)
            meant = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(VERBS)}"
            raise click.UsageError(f"there is no verb {name!r}; {meant}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table of verbs without importing them."""
        with formatter.section("Verbs"):
            formatter.write_dl([(verb, line) for verb, (_, line) in VERBS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the verb; ctrl-C ends it without a word."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise click.exceptions.Exit(EXIT_INTERRUPTED) from None

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> NoReturn:
        """Run and exit, with one or two lines on stderr for whatever goes wrong."""
        given = Options()
        try:
            code = super().main(args, prog_name, complete_var, standalone_mode=False, obj=given)
        except click.Abort:
            code = EXIT_INTERRUPTED
        except click.ClickException as error:
            code = _tell_usage(error)
        except BruteError as error:
            code = _tell(error, given)
        except OSError as error:
            code = (
                _tell_unwritten(error, given) if _is_of_output(error) else _tell_bug(error, given)
            )
        except Exception as error:  # noqa: BLE001 - the last place before the interpreter's own
            code = _tell_bug(error, given)
        sys.exit(code if isinstance(code, int) else 0)


def _say(line: str) -> None:
    click.echo(f"brute: {line}", err=True)


def _tell_usage(error: click.ClickException) -> int:
    _say(f"error: {error.format_message()}")
    context = getattr(error, "ctx", None)
    if context is not None:
        click.echo(f"See `{context.command_path} --help`.", err=True)
    return error.exit_code


def _tell(error: BruteError, given: Options) -> int:
    if given.traceback:
        traceback.print_exception(error)
    _say(f"error: {visible(str(error))}")
    return exit_code_of(error)


_NO_OUTPUT: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF}


def _is_of_output(error: OSError) -> bool:
    """Whether it comes from writing to standard output: files are named in their errors."""
    return error.filename is None and error.errno in _NO_OUTPUT


def _tell_unwritten(error: OSError, given: Options) -> int:
    if given.traceback:
        traceback.print_exception(error)
    _say(f"error: the output cannot be written ({error.strerror}); make room, or write elsewhere")
    with suppress(OSError):  # else the interpreter tries again at its end, and complains too
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return EXIT_ERROR


def _tell_bug(error: Exception, given: Options) -> int:
    if given.traceback:
        traceback.print_exception(error)
    _say(f"error: {type(error).__name__}: {visible(str(error))}")
    if not given.traceback:
        click.echo(
            "This is not your mistake but a bug in brute. Please report it, with what "
            "`--traceback` before the verb shows.",
            err=True,
        )
    return EXIT_ERROR


def _show_version(context: click.Context, _: click.Parameter, asked: bool) -> None:
    if not asked or context.resilient_parsing:
        return
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - slow to load

    try:
        number = version("brute-log")
    except PackageNotFoundError:
        number = "(a checkout that is not installed)"
    click.echo(f"brute {number}")
    context.exit()


@screen_options
@json_option
@db_option
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and exit.",
)
@click.group(
    cls=Verbs,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""\b
A session S is given by its id, by any beginning or end of the id that no other
session shares, or as `last`. S@12 is S as it stood at position 12, S@-1 at its
last one, S@turn:4 at the reply of its 4th turn (counted from 1).

\b
Exit codes: 0 done, 1 error, 2 what was typed cannot mean anything,
3 difference, 4 difference on the wire, 5 the log is corrupt.

\b
Examples:
  $ brute demo --db demo.db
  $ brute ls
  $ brute log last
  $ brute show last --as wire:anthropic
""",
)
def app() -> None:
    """An event-sourced message log for LLM agents.

    Every prompt, tool call and reply is an immutable event in one SQLite file. The verbs show what
    is in it, at any position; `brute VERB --help` has examples of each.
    """

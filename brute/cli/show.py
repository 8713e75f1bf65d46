"""`brute show`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Final, TypeAlias

import click
import msgspec

from brute.cli.address import parse, position_of
from brute.cli.app import db_option, json_option, options, screen_options
from brute.cli.log import STYLES, stored
from brute.cli.opening import log_to_read
from brute.cli.screen import muted, pad, size, visible, visible_json, write_json
from brute.events.errors import UsageError
from brute.events.events import RequestSent
from brute.events.jsontext import dumps, loads
from brute.events.messages import (
    Foreign,
    Hosted,
    Json,
    Media,
    Native,
    Reasoning,
    Refusal,
    Text,
    ToolCall,
    ToolResult,
)

if TYPE_CHECKING:
    from brute.events.jsontypes import JSON, JSONObject
    from brute.events.messages import Message
    from brute.transports.base import MessageTransport
    from brute.view import View

WIRES: Final[dict[str, str]] = {"openai": "OpenAI", "anthropic": "Anthropic"}
"""The transports, by the word behind `wire:`."""

Way: TypeAlias = Callable[["View"], None]


@click.command(
    epilog="""\b
Examples:
  $ brute show last
  $ brute show trips@4 --as request
  $ brute show trips@turn:1 --as wire:openai
  $ brute show trips@-1 --as wire:anthropic | python -m json.tool | head -5
  $ brute show trips@2 --as event
"""
)
@click.argument("address", metavar="S[@N]")
@click.option(
    "--as",
    "form",
    metavar="FORM",
    default="messages",
    show_default=True,
    help="messages, request, event, wire:openai or wire:anthropic.",
)
@json_option
@db_option
@screen_options
def command(address: str, form: str) -> None:
    """Show session S as it stood when position N had just happened (default: its last).

    messages: the list of messages, each with the position it comes from.
    request: settings and messages that a request there is made of, in no provider's shape.
    wire:NAME: the JSON body that the provider's SDK would send, indented on a terminal, compact
    elsewhere; what the provider cannot get as it stands is told on stderr.
    event: the entry at N, as it is stored.
    """
    show = _way(form)
    place = parse(address)
    with log_to_read() as log:
        session = log.session(place.session)
        show(session.at(position_of(log, session.id, place)))


def _way(form: str) -> Way:
    """How to show it. Raises `UsageError`."""
    kind, _, name = form.partition(":")
    if kind == "wire" and name in WIRES:
        return lambda view: _show_wire(view, name)
    if form in _WAYS:
        return _WAYS[form]
    forms = ", ".join([*_WAYS, *(f"wire:{name}" for name in WIRES)])
    raise UsageError(f"--as {form!r} is no form to show a session in; there are {forms}")


# -- messages --------------------------------------------------------------------------------------


def _show_messages(view: View) -> None:
    if options().json:
        for position, message in zip(view.positions, view.messages, strict=True):
            write_json({"position": position, **_plain(message)})
        return
    for line in message_lines(view.messages, view.positions):
        click.echo(line)
    if not view.messages:
        click.echo(f"nothing has been said at position {view.position}", err=True)


def message_lines(messages: Sequence[Message], positions: Sequence[int]) -> Iterator[str]:
    """Messages for people, whole: the position, the role, and the parts below each other."""
    names: dict[str | None, str] = {}  # of the calls so far; not every API names a result
    for position, message in zip(positions, messages, strict=True):
        names.update((call.id, call.name) for call in message.tool_calls)
        role = pad(message.role, 10)
        head = muted(f"{position:>6} ") + click.style(role, fg=_color(message.role))
        margin = " " * 17
        parts = [_named(part, names) for part in message.parts]
        lines = [line for part in parts for line in part_lines(part)] or [muted("(empty)")]
        for number, line in enumerate(lines):
            yield f"{margin if number else head}{line}".rstrip()


def _named(part: object, names: Mapping[str | None, str]) -> object:
    if isinstance(part, ToolResult) and part.name is None and part.call_id in names:
        return msgspec.structs.replace(part, name=names[part.call_id])
    return part


def _color(role: str) -> str | None:
    return STYLES.get(role)


def part_lines(part: object) -> Iterator[str]:
    """One part for people."""
    yield from _PARTS.get(type(part), _other)(part)


def _text(part: Text) -> Iterator[str]:
    yield from visible(part.text).split("\n")


def _reasoning(part: Reasoning) -> Iterator[str]:
    if part.kind == "encrypted" or not part.text:
        kept = part.data or part.signature or ""
        yield muted(f"[{part.kind}, {size(len(kept))} that only its issuer can read]")
        return
    for line in visible(part.text).split("\n"):
        yield muted(f"~ {line}")


def _call(part: ToolCall) -> Iterator[str]:
    name = f"  {muted(visible(part.id))}" if part.id else ""
    first, *more = visible(part.raw).split("\n")
    yield click.style(f"-> {visible(part.name)}", fg="yellow") + f" {first}{name}"
    yield from (f"   {line}" for line in more)
    if part.malformed is not None:
        yield click.style(f"   never run: {visible(part.malformed)}", fg="red")


def _result(part: ToolResult) -> Iterator[str]:
    outcome = "" if part.outcome == "ok" else click.style(f" {part.outcome}", fg="red")
    answers = f"  {muted(visible(part.call_id))}" if part.call_id else ""
    yield click.style(f"<- {visible(part.name or 'result')}", fg="yellow") + f"{outcome}{answers}"
    for inner in part.content:
        for line in part_lines(inner):
            yield f"   {line}"


def _json(part: Json) -> Iterator[str]:
    yield visible(dumps(part.value))


def _media(part: Media) -> Iterator[str]:
    said = [part.kind, part.media_type, part.name, part.url, part.file_id]
    if part.data is not None:
        said.append(size(len(part.data)))
    yield muted(f"[{', '.join(visible(word) for word in said if word)}]")


def _refusal(part: Refusal) -> Iterator[str]:
    for line in visible(part.text).split("\n"):
        yield click.style(f"refused: {line}", fg="red")


def _hosted(part: Hosted) -> Iterator[str]:
    name = part.name or part.tool
    yield click.style(f"[{visible(name)}, run by the provider]", fg="yellow")
    for word, value in (("in", part.input), ("out", part.output)):
        if value is not msgspec.UNSET:
            yield f"   {word} {visible(dumps(value))}"


def _native(part: Native) -> Iterator[str]:
    yield muted(f"[{visible(part.kind)} of {part.api}]") + f" {visible(dumps(part.block))}"


def _foreign(part: Foreign) -> Iterator[str]:
    yield muted("[a part of a newer version]") + f" {visible(part.raw.decode(errors='replace'))}"


def _other(part: object) -> Iterator[str]:
    yield muted(f"[{type(part).__name__}]")


_PARTS: Final[dict[type[object], Callable[..., Iterator[str]]]] = {
    Text: _text,
    Reasoning: _reasoning,
    ToolCall: _call,
    ToolResult: _result,
    Json: _json,
    Media: _media,
    Refusal: _refusal,
    Hosted: _hosted,
    Native: _native,
    Foreign: _foreign,
}


def _plain(value: msgspec.Struct) -> JSONObject:
    """A struct as plain JSON data."""

    def foreign(part: object) -> JSON:
        if isinstance(part, Foreign):
            return loads(part.raw)
        raise NotImplementedError(type(part).__name__)

    plain: JSONObject = msgspec.to_builtins(value, enc_hook=foreign)
    return plain


# -- request, event, wire --------------------------------------------------------------------------


def _show_request(view: View) -> None:
    settings = _plain(view.settings)
    if options().json:
        messages = [_plain(message) for message in view.messages]
        write_json({**settings, "messages": messages})
        return
    for name, value in settings.items():
        for line in _setting(name, value):
            click.echo(line)
    if settings:
        click.echo()
    for line in message_lines(view.messages, view.positions):
        click.echo(line)


def _setting(name: str, value: JSON) -> Iterator[str]:
    head = click.style(pad(name, 17), fg="magenta")
    if name == "tools":
        for number, tool in enumerate(value):
            schema = dumps(tool.get("schema", {}).get("properties", {}))
            yield f"{pad('', 17) if number else head}{visible(tool['name'])} {visible(schema)}"
    elif name == "model":
        yield head + visible(str(value.get("id")))
    else:
        yield head + visible(value if isinstance(value, str) else dumps(value))


def _show_event(view: View) -> None:
    text = stored(view.entries[-1])
    as_one_line = options().json or not sys.stdout.isatty()
    click.echo(visible_json(text) if as_one_line else _indented(loads(text)))


def _indented(value: JSON) -> str:
    return visible_json(json.dumps(value, indent=2, ensure_ascii=False))


def _show_wire(view: View, name: str) -> None:
    transport: type[MessageTransport] = getattr(import_module("brute.transports"), WIRES[name])
    request = transport.request(view, **_options(view, transport))
    body = transport.body(request)
    if options().json or not sys.stdout.isatty():
        write_json(body)
    else:
        click.echo(_indented(body))
    for loss in request.losses:
        click.echo(f"brute: note: {visible(str(loss))}", err=True)


def _options(view: View, transport: type[MessageTransport]) -> JSONObject:
    """The options that the request at this position was built with, where it is one."""
    event = view.entries[-1].event
    if isinstance(event, RequestSent) and event.transport == transport.__name__:
        return event.options or {}
    return {}


_WAYS: Final[dict[str, Way]] = {
    "messages": _show_messages,
    "request": _show_request,
    "event": _show_event,
}

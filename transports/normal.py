"""What a target carries of planned messages: the list that comes back when it is loaded again.

Planning has said what is repaired, renamed, moved and left out. What is left to say here is the
little that a target cannot tell apart: whose turn it was is known by the API alone, a result bears
no name, an outcome is a flag or nothing, JSON is text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from msgspec.structs import replace

from brute.events.jsontypes import Extras, JSONObject
from brute.events.messages import (
    AnyPart,
    Json,
    Media,
    Message,
    Origin,
    Reasoning,
    Refusal,
    ResultPart,
    Text,
    ToolCall,
    ToolResult,
)
from brute.transports.rules import Rules
from brute.transports.shapes import Loss
from brute.transports.wire import json_text


def normal(planned: Sequence[Message], rules: Rules) -> list[Message]:
    """The planned messages as they would be loaded again."""
    out: list[Message] = []
    before: Message | None = None
    for message in planned:
        for made in _alone(message, rules):
            placed = _placed(made, before, message, rules)
            last = out[-1] if out else None
            if last is not None and _goes_on(last, placed, rules):
                out[-1] = replace(last, parts=last.parts + placed.parts)
            else:
                out.append(placed)
            before = message
    return out


def unsaid(planned: Sequence[Message], rules: Rules) -> list[Loss]:
    """What of the planned messages the target has no place for: the small things of a part."""
    losses: list[Loss] = []
    for message in planned:
        own = message.origin is not None and message.origin.api == rules.api
        carried = [_part(part, rules, own) for part in message.parts]
        for part, made in zip(message.parts, carried, strict=True):
            losses += _differences(part, made, rules)
        kept = [made for made in carried if made is not None]
        if rules.orders and message.role == "assistant" and _in_order(kept, rules) != kept:
            losses.append(Loss(kind="moved", rule="order", what="text, refusal and calls"))
    return losses


DERIVED = frozenset({"extras", "rest", "blob", "name", "kind", "content", "raw"})
"""Fields of a result or a call that say nothing new, or that are reported where they change."""


def _differences(part: AnyPart, made: AnyPart | None, rules: Rules) -> Iterator[Loss]:
    fields = part.__struct_fields__ if made is not None and type(made) is type(part) else ()
    paired = isinstance(part, (ToolResult, ToolCall))
    for name in fields:
        held = getattr(part, name)
        if name in {"extras", "rest", "blob"} or (paired and name in DERIVED):
            continue
        if held != getattr(made, name):
            what = f"the {name} {held!r} of a part"
            yield Loss(kind="omitted", rule="carries", what=what)
    kinds = {call.kind for call in (part, made) if isinstance(call, ToolCall)}
    if len(kinds) > 1 and "custom" not in kinds:
        what = f"a call of the kind {' or '.join(sorted(kinds - {'function'}))!r}"
        yield Loss(kind="changed", rule="carries", what=what)
    if type(part) is ToolResult and rules.joins_results and len(part.content) > 1:
        yield Loss(kind="changed", rule="carries", what="the texts of a result, as one")


def _goes_on(last: Message, made: Message, rules: Rules) -> bool:
    """Whether a user's message cannot be told from the end of the one before."""
    both = last.role == made.role == "user"
    return both and rules.joins is not None and not made.extra(rules.api).get("apart")


def _alone(message: Message, rules: Rules) -> list[Message]:
    """A message as it would be loaded, but for its place; a tool message a result."""
    own = message.origin is not None and message.origin.api == rules.api
    parts = [made for part in message.parts if (made := _part(part, rules, own)) is not None]
    if rules.orders and message.role == "assistant":
        parts = _in_order(parts, rules)
    pieces = [(p,) for p in parts] if message.role == "tool" else [tuple(parts)]
    return [
        Message(
            role=message.role,
            parts=piece,
            name=message.name if rules.names_messages and message.role != "tool" else None,
            extras=_extras(message, rules),
            origin=Origin(api=rules.api),
        )
        for piece in pieces
    ]


def _placed(made: Message, before: Message | None, message: Message, rules: Rules) -> Message:
    """The message with what its place among the others says."""
    marks: JSONObject = {}
    if rules.system == "apart" and made.role == "system":
        marks = {"place": "inline"}
    both = before is not None and before.role in USERS and message.role in USERS
    if both and rules.joins is not None and not rules.joins(cast(Message, before), message):
        marks = {"apart": True}
    if not marks:
        return made
    return replace(made, extras={rules.api: {**marks, **made.extra(rules.api)}})


USERS = frozenset({"user", "tool"})


def _extras(held: Message | AnyPart, rules: Rules) -> Extras | None:
    said = held.extra(rules.api)
    return {rules.api: said} if said else None


def _part(part: AnyPart, rules: Rules, own: bool) -> AnyPart | None:
    extras = _extras(part, rules)
    if type(part) is Text:
        return Text(text=part.text, citations=part.citations if own else (), extras=extras)
    if type(part) is ToolCall:
        return _call(part, rules, own, extras)
    if type(part) is ToolResult:
        return _result(part, rules, own, extras)
    if type(part) is Reasoning:
        if extras is None and Reasoning in rules.passes_over:
            return None
        return replace(part, extras=extras, rest=None)
    if type(part) is Json:
        return Text(text=json_text(part.value), extras=extras)
    if type(part) is Media:
        return replace(rules.carries(part), extras=extras, blob=None, rest=None)
    return replace(part, extras=extras, rest=None)


def _call(call: ToolCall, rules: Rules, own: bool, extras: Extras | None) -> ToolCall:
    if "verbatim" in call.extra(rules.api):  # a kind of call that only this API knows
        return replace(call, extras=extras, rest=None)
    raw = call.raw if call.raw or own else "{}"
    kind = call.kind
    if rules.objects is not None:
        raw, kind = json_text(rules.objects(call)), "function"
    elif kind != "custom":
        kind = "function"
    else:
        raw = call.raw
    return ToolCall(id=call.id, name=call.name, raw=raw, kind=kind, extras=extras)


def _result(result: ToolResult, rules: Rules, own: bool, extras: Extras | None) -> ToolResult:
    content: tuple[ResultPart, ...] = tuple(
        made for part in result.content if (made := _content(part, rules, own)) is not None
    )
    if rules.joins_results and not own and all(type(part) is Text for part in content):
        text = "\n".join(part.text for part in content if type(part) is Text)
        plain = len(content) == 1 and content[0].extras is not None
        content = content if plain else (Text(text=text),)
    failed = rules.flags_errors and result.outcome != "ok"
    return ToolResult(
        call_id=result.call_id,
        name=result.name if own and rules.names_messages else None,
        content=content,
        outcome="error" if failed else "ok",
        extras=extras,
    )


def _content(part: ResultPart, rules: Rules, own: bool) -> ResultPart | None:
    made = _part(part, rules, own)
    return made if made is None or isinstance(made, ResultPart) else None


def _in_order(parts: list[AnyPart], rules: Rules) -> list[AnyPart]:
    """Parts in the order that the target says them; several refusals are one there."""
    known: dict[type, list[AnyPart]] = {kind: [] for kind in rules.orders}
    body = known[Text]
    for part in parts:
        known.get(type(part), body).append(part)
    refusals = [p.text for p in known.get(Refusal, ()) if isinstance(p, Refusal)]
    if len(refusals) > 1:
        known[Refusal] = [Refusal(text="\n".join(refusals))]
    return [part for kind in rules.orders for part in known[kind]]

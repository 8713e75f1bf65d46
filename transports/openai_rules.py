"""The rule book of Chat Completions. Ids are those of docs/reference/transports.md.

A rule is hard where the provider's refusal is on record and no accepted request is known to break
it; the rest is conservative.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from brute.events.jsontext import parse_arguments
from brute.events.jsontypes import JSON, JSONObject
from brute.transports.rules import NAME, Find, Rule
from brute.transports.walk import NOT_JSON, not_unicode, numbered
from brute.transports.wire import from_data_url, is_array, is_object, kind_of

ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
KEYS: dict[str, frozenset[str]] = {
    "system": frozenset({"role", "content", "name"}),
    "developer": frozenset({"role", "content", "name"}),
    "user": frozenset({"role", "content", "name"}),
    "tool": frozenset({"role", "content", "tool_call_id"}),
    "function": frozenset({"role", "content", "name"}),
    "assistant": frozenset(
        {"role", "content", "name", "refusal", "audio", "tool_calls", "function_call"}
    ),
}
CONTENT: dict[str, frozenset[str]] = {
    "system": frozenset({"text"}),
    "developer": frozenset({"text"}),
    "user": frozenset({"text", "image_url", "input_audio", "file"}),
    "tool": frozenset({"text"}),
    "function": frozenset({"text"}),
    "assistant": frozenset({"text", "refusal"}),
}
LONGEST_ID = 64
SPEAKER = re.compile(r"[^\s<|\\/>]{1,64}").fullmatch


def _messages(body: JSONObject) -> Iterator[tuple[str, JSONObject]]:
    for index, message in numbered(body.get("messages")):
        yield f"/messages/{index}", message


def _of(body: JSONObject, *roles: str) -> Iterator[tuple[str, JSONObject]]:
    return ((at, m) for at, m in _messages(body) if m.get("role") in roles)


def _calls(body: JSONObject) -> Iterator[tuple[str, JSONObject]]:
    for at, message in _of(body, "assistant"):
        for index, call in numbered(message.get("tool_calls")):
            yield f"{at}/tool_calls/{index}", call


def _blocks(body: JSONObject) -> Iterator[tuple[str, str, JSONObject]]:
    for at, message in _messages(body):
        for index, block in numbered(message.get("content")):
            yield f"{at}/content/{index}", str(message.get("role")), block


def _not_empty(body: JSONObject) -> Iterator[Find]:
    if not is_array(body.get("messages")) or not body["messages"]:
        yield "/messages", "no messages"


def _known_roles(body: JSONObject) -> Iterator[Find]:
    for at, message in _messages(body):
        role = message.get("role")
        if str(role) not in ROLES:
            yield f"{at}/role", f"the role {role!r}"
            continue
        for key in sorted(message.keys() - KEYS[str(role)]):
            yield f"{at}/{key}", f"a member {key!r} that messages of the role {role!r} have not"


def _pairing(body: JSONObject) -> Iterator[tuple[bool, str, str]]:
    """Calls without results (True), and results without calls (False)."""
    open_calls: dict[str, str] = {}
    for at, message in _messages(body):
        if message.get("role") == "tool":
            answered = str(message.get("tool_call_id"))
            if open_calls.pop(answered, None) is None:
                yield False, at, f"a result for {answered!r}, which is no open call just before it"
            continue
        for word, place in open_calls.items():
            yield True, place, f"the call {word!r} has no result right behind its message"
        open_calls = {}
        if message.get("role") == "assistant":
            for index, call in numbered(message.get("tool_calls")):
                open_calls[str(call.get("id"))] = f"{at}/tool_calls/{index}"
    for word, place in open_calls.items():
        yield True, place, f"the call {word!r} has no result at all"


def _unanswered(body: JSONObject) -> Iterator[Find]:
    return ((at, found) for is_call, at, found in _pairing(body) if is_call)


def _orphans(body: JSONObject) -> Iterator[Find]:
    return ((at, found) for is_call, at, found in _pairing(body) if not is_call)


def _content_or_else(body: JSONObject) -> Iterator[Find]:
    for at, message in _of(body, "assistant"):
        others = (held for key, held in message.items() if key not in {"role", "content", "name"})
        if message.get("content") is None and not any(others):
            yield f"{at}/content", "no content, and nothing that may stand for it"


def _no_empty_calls(body: JSONObject) -> Iterator[Find]:
    for at, message in _of(body, "assistant"):
        if message.get("tool_calls") == []:
            yield f"{at}/tool_calls", "an empty list of calls"


def _unique_ids(body: JSONObject) -> Iterator[Find]:
    for at, message in _of(body, "assistant"):
        seen: set[str] = set()
        for index, call in numbered(message.get("tool_calls")):
            word = str(call.get("id"))
            if word in seen:
                yield f"{at}/tool_calls/{index}/id", f"the id {word!r} twice in one message"
            seen.add(word)


def _long_ids(body: JSONObject) -> Iterator[Find]:
    for at, call in _calls(body):
        word = call.get("id")
        if not isinstance(word, str) or not 1 <= len(word) <= LONGEST_ID:
            yield f"{at}/id", f"the id {word!r}"


def _speakers(body: JSONObject) -> Iterator[Find]:
    for at, message in _messages(body):
        name = message.get("name")
        if message.get("role") != "tool" and name is not None and not SPEAKER(str(name)):
            yield f"{at}/name", f"the name {name!r}"


def _content_types(body: JSONObject) -> Iterator[Find]:
    for at, role, block in _blocks(body):
        if role in CONTENT and kind_of(block) not in CONTENT[role]:
            yield at, f"content of the type {block.get('type')!r} in a message of the role {role!r}"


def _names(body: JSONObject) -> Iterator[Find]:
    places: list[tuple[str, JSONObject]] = [
        *((f"/tools/{i}", tool) for i, tool in numbered(body.get("tools"))),
        *_calls(body),
    ]
    if is_object(choice := body.get("tool_choice")):
        places.append(("/tool_choice", choice))
    for at, holder in places:
        for kind in ("function", "custom"):
            said = holder.get(kind)
            if is_object(said) and not NAME.fits(str(said.get("name") or "")):
                yield f"{at}/{kind}/name", f"the name {said.get('name')!r}"


def _arguments_are_text(body: JSONObject) -> Iterator[Find]:
    for at, call in _calls(body):
        said = call.get("function")
        if is_object(said) and not isinstance(said.get("arguments"), str):
            yield (
                f"{at}/function/arguments",
                f"arguments of the type {_kind(said.get('arguments'))}",
            )


def _arguments_are_objects(body: JSONObject) -> Iterator[Find]:
    for at, call in _calls(body):
        said = call.get("function")
        if is_object(said) and isinstance(raw := said.get("arguments"), str):
            why = parse_arguments(raw)[1] if raw.strip() else "no arguments at all"
            if why is not None:
                yield f"{at}/function/arguments", why


def _content_is_there(body: JSONObject) -> Iterator[Find]:
    for at, message in _of(body, "user", "system", "developer", "tool"):
        content = message.get("content")
        if content is None or content == []:
            yield f"{at}/content", "no content"


def _images(body: JSONObject) -> Iterator[Find]:
    for at, _, block in _blocks(body):
        said = block.get("image_url")
        url = said.get("url") if is_object(said) else None
        if block.get("type") != "image_url":
            continue
        if not isinstance(url, str) or not url.startswith(("https://", "http://", "data:")):
            yield f"{at}/image_url", "an image without an address or data URL"


def _files(body: JSONObject) -> Iterator[Find]:
    for at, _, block in _blocks(body):
        said = block.get("file")
        if block.get("type") != "file" or not is_object(said) or said.get("file_id"):
            continue
        if from_data_url(said.get("file_data")) is None or not said.get("filename"):
            yield f"{at}/file", "a file without an id, or without name and data URL"


def _audio(body: JSONObject) -> Iterator[Find]:
    for at, _, block in _blocks(body):
        said = block.get("input_audio")
        if is_object(said) and said.get("format") not in {"wav", "mp3"}:
            yield f"{at}/input_audio/format", f"audio in the format {said.get('format')!r}"


def _spoken(body: JSONObject) -> Iterator[Find]:
    for at, message in _of(body, "assistant"):
        said = message.get("audio")
        if is_object(said) and said.keys() != {"id"}:
            yield f"{at}/audio", f"audio with the members {sorted(said)}"


def _kind(value: JSON) -> str:
    return type(value).__name__


_Finder = Callable[[JSONObject], Iterator[Find]]
_HARD: tuple[tuple[str, str, _Finder], ...] = (
    ("U1", "replace lone surrogates by U+FFFD", not_unicode),
    ("U2", "replace NaN and infinities by null", NOT_JSON),
    ("C0", "send at least one message", _not_empty),
    ("C2", "put one tool message for each call right behind the calling message", _unanswered),
    ("C3", "say it as a user, or put it right behind the message that calls", _orphans),
    ("C4", "give it content, or leave the message out", _content_or_else),
    ("C6", "rename one of the calls, with its result", _unique_ids),
)
_CONSERVATIVE: tuple[tuple[str, str, _Finder], ...] = (
    ("C1", "leave it out, unless this server is known to take it", _known_roles),
    ("C5", "leave tool_calls out", _no_empty_calls),
    ("C7", "use an id of 1 to 64 characters (40 for older servers)", _long_ids),
    ("C8", "use a name without spaces, slashes, pipes and angle brackets", _speakers),
    ("C10", "say it in text; media belong in a user message", _content_types),
    ("C11", "use letters, digits, _ and -, at most 64", _names),
    ("C12", "write the arguments as one JSON object", _arguments_are_objects),
    ("C12a", "write the arguments as JSON text", _arguments_are_text),
    ("C13", "give it content", _content_is_there),
    ("C14", "give the image an https or data URL", _images),
    ("C15", "give the file an id, or a name and a data URL", _files),
    ("C16", "convert the audio to wav or mp3", _audio),
    ("C17", "send the id of the audio alone", _spoken),
)

RULE_BOOK: tuple[Rule, ...] = (
    *(Rule(id=i, grade="hard", now=now, finds=f) for i, now, f in _HARD),
    *(Rule(id=i, grade="conservative", now=now, finds=f) for i, now, f in _CONSERVATIVE),
)

"""The rule book of Anthropic Messages. Ids are those of docs/reference/transports.md.

A rule is hard where the provider's refusal is on record and no accepted request is known to break
it; the rest is conservative.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from msgspec import Struct

from brute.events.jsontypes import JSON, JSONObject
from brute.transports.anthropic_models import takes_midway, takes_prefill
from brute.transports.rules import NAME, SAFE_WORD, Find, Pattern, Rule
from brute.transports.walk import NOT_JSON, not_unicode, numbered
from brute.transports.wire import (
    from_base64,
    image_type,
    is_array,
    is_object,
    kind_of,
    text_in,
)

ID = Pattern(SAFE_WORD, None, "call")
IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
RESULT_CONTENT = frozenset(
    {"text", "image", "document", "search_result", "tool_reference", "browser_state"}
)
KEYS: dict[str, frozenset[str]] = {
    "text": frozenset({"text", "citations"}),
    "image": frozenset({"source", "transformations"}),
    "document": frozenset({"source", "citations", "context", "title"}),
    "thinking": frozenset({"thinking", "signature"}),
    "redacted_thinking": frozenset({"data"}),
    "tool_use": frozenset({"id", "name", "input", "caller", "toolset_name"}),
    "tool_result": frozenset({"tool_use_id", "content", "is_error", "toolset_name"}),
}
"""Members of the blocks that everybody sends, beside `type` and `cache_control`."""
UNMARKED = frozenset({"thinking", "redacted_thinking"})
MARKS = 4

Block: TypeAlias = tuple[str, JSONObject]


class Turn(Struct, frozen=True):
    """Neighbours of one role, which the API reads as one message."""

    role: str
    at: str
    blocks: list[Block]

    def of(self, *kinds: str) -> list[Block]:
        """The blocks of these types."""
        return [(at, block) for at, block in self.blocks if kind_of(block) in kinds]


def turns(body: JSONObject) -> list[Turn]:
    """The messages of a request as the API reads them."""
    out: list[Turn] = []
    for index, message in numbered(body.get("messages")):
        at, content = f"/messages/{index}", message.get("content")
        role = str(message.get("role"))
        if isinstance(content, str):
            blocks = [(f"{at}/content", {"type": "text", "text": content})]
        else:
            blocks = [(f"{at}/content/{i}", block) for i, block in numbered(content)]
        if out and out[-1].role == role:
            out[-1].blocks.extend(blocks)
        else:
            out.append(Turn(role, at, blocks))
    return out


def _blocks(body: JSONObject) -> Iterator[Block]:
    return (block for turn in turns(body) for block in turn.blocks)


def _model(body: JSONObject) -> str | None:
    model = body.get("model")
    return model if isinstance(model, str) else None


# -- hard ----------------------------------------------------------------------------------------


def _not_empty(body: JSONObject) -> Iterator[Find]:
    messages = body.get("messages")
    if not is_array(messages) or not messages:
        yield "/messages", "no messages"


def _says_something(body: JSONObject) -> Iterator[Find]:
    messages = list(numbered(body.get("messages")))
    for index, message in messages:
        last = index == len(messages) - 1 and message.get("role") == "assistant"
        if not message.get("content") and not last:
            yield f"/messages/{index}/content", "no content"


def _ends_open(body: JSONObject) -> Iterator[Find]:
    said = turns(body)
    if not said or said[-1].role != "assistant" or takes_prefill(_model(body)):
        return
    if not _is_paused(said[-1]):
        yield said[-1].at, f"an assistant message at the end, which {_model(body)} refuses"


def _is_paused(turn: Turn) -> bool:
    kind = str(turn.blocks[-1][1].get("type")) if turn.blocks else ""
    hosted = kind.endswith("_tool_result") and kind != "tool_result"
    return hosted or kind in {"server_tool_use", "mcp_tool_use"}


def _answered(body: JSONObject) -> Iterator[Find]:
    said = turns(body)
    for number, turn in enumerate(said):
        following = said[number + 1] if number + 1 < len(said) else None
        results = following.of("tool_result") if following and following.role == "user" else []
        ids = {str(block.get("tool_use_id")) for _, block in results}
        for at, block in turn.of("tool_use"):
            if str(block.get("id")) not in ids:
                yield at, f"the call {block.get('id')!r} has no result in the next message"


def _orphans(body: JSONObject) -> Iterator[Find]:
    asked: set[JSON] = set()
    for turn in turns(body):
        for at, block in turn.of("tool_result"):
            if str(block.get("tool_use_id")) not in asked:
                found = block.get("tool_use_id")
                yield at, f"a result for {found!r}, which the message before does not call"
        asked = {str(block.get("id")) for _, block in turn.of("tool_use")}


def _once(body: JSONObject) -> Iterator[Find]:
    for turn in turns(body):
        seen: set[JSON] = set()
        for at, block in turn.of("tool_result"):
            word = str(block.get("tool_use_id"))
            if word in seen:
                yield at, f"a second result for {word!r}"
            seen.add(word)


def _ids(body: JSONObject) -> Iterator[Find]:
    for at, block in _blocks(body):
        key = {"tool_use": "id", "tool_result": "tool_use_id"}.get(str(block.get("type")))
        if key and not ID.fits(block.get(key) if isinstance(block.get(key), str) else None):
            yield f"{at}/{key}", f"the id {block.get(key)!r}"


def _unique_in_turn(body: JSONObject) -> Iterator[Find]:
    for turn in turns(body):
        yield from _repeated(turn.of("tool_use"), set())


def _repeated(calls: list[Block], seen: set[JSON]) -> Iterator[Find]:
    for at, block in calls:
        word = str(block.get("id"))
        if word in seen:
            yield f"{at}/id", f"the id {word!r} a second time"
        seen.add(word)


def _input_is_object(body: JSONObject) -> Iterator[Find]:
    for at, block in _blocks(body):
        if block.get("type") == "tool_use" and not is_object(block.get("input")):
            yield f"{at}/input", f"input of the type {type(block.get('input')).__name__}"


def _calls_come_last(body: JSONObject) -> Iterator[Find]:
    for turn in turns(body):
        called = False
        for at, block in turn.blocks:
            called = called or block.get("type") == "tool_use"
            if called and block.get("type") == "text" and text_in(block, "text"):
                yield at, "a text behind a call"


def _few_marks(body: JSONObject) -> Iterator[Find]:
    for number, (at, _) in enumerate(marks_in(body), 1):
        if number > MARKS:
            yield at, f"cache mark number {number}"


def marks_in(body: JSONObject) -> Iterator[Block]:
    """The cache marks of a request, with the blocks that bear them."""
    todo: list[tuple[str, JSON]] = [(f"/{k}", body.get(k)) for k in ("messages", "system", "tools")]
    if body.get("cache_control") is not None:
        yield "/cache_control", body
    while todo:
        at, item = todo.pop()
        if is_object(item):
            if item.get("cache_control") is not None:
                yield f"{at}/cache_control", item
            todo.extend((f"{at}/{k}", item[k]) for k in ("content",) if k in item)
        elif is_array(item):
            todo.extend((f"{at}/{i}", held) for i, held in reversed(list(enumerate(item))))


# -- conservative --------------------------------------------------------------------------------


def _max_tokens(body: JSONObject) -> Iterator[Find]:
    if body.keys() - {"messages", "system"} and not isinstance(body.get("max_tokens"), int):
        yield "/max_tokens", "no max_tokens"


def _user_first(body: JSONObject) -> Iterator[Find]:
    said = turns(body)
    if said and said[0].role != "user":
        yield said[0].at, f"the first message is of the role {said[0].role!r}"


def _texts(body: JSONObject) -> Iterator[Find]:
    places = list(_blocks(body))
    for at, block in list(places):
        if block.get("type") == "tool_result":
            places += [(f"{at}/content/{i}", b) for i, b in numbered(block.get("content"))]
    places += [(f"/system/{i}", b) for i, b in numbered(body.get("system"))]
    for at, block in places:
        text = block.get("text")
        if block.get("type") == "text" and not (isinstance(text, str) and text.strip()):
            yield at, "a blank text"


def _trailing_space(body: JSONObject) -> Iterator[Find]:
    said = turns(body)
    if said and said[-1].role == "assistant" and said[-1].blocks:
        at, block = said[-1].blocks[-1]
        text = block.get("text")
        if block.get("type") == "text" and isinstance(text, str) and text != text.rstrip():
            yield at, "white space at the end of the last assistant text"


def _system_where_known(body: JSONObject) -> Iterator[Find]:
    model = _model(body)
    if model is not None and not takes_midway(model):
        for turn in turns(body):
            if turn.role == "system":
                yield turn.at, f"system text between messages, which {model} does not take"


def _system_placed(body: JSONObject) -> Iterator[Find]:
    said = turns(body)
    for number, turn in enumerate(said):
        if turn.role != "system":
            continue
        before = said[number - 1] if number else None
        after = said[number + 1] if number + 1 < len(said) else None
        behind = before is not None and (before.role == "user" or _is_paused(before))
        if not behind or (after is not None and after.role != "assistant"):
            yield turn.at, "system text that does not stand between a user and the assistant"


def _own_roles(body: JSONObject) -> Iterator[Find]:
    for turn in turns(body):
        if turn.role not in {"user", "assistant", "system"}:
            yield f"{turn.at}/role", f"the role {turn.role!r}"
        for at, block in turn.blocks:
            kind = str(block.get("type"))
            theirs = kind in {"tool_use", "server_tool_use", "thinking", "redacted_thinking"}
            if theirs and turn.role != "assistant":
                yield at, f"a block {kind!r} in a message of the role {turn.role!r}"
            if kind == "tool_result" and turn.role != "user":
                yield at, f"a block {kind!r} in a message of the role {turn.role!r}"


def _results_first(body: JSONObject) -> Iterator[Find]:
    for turn in turns(body):
        others = False
        for at, block in turn.blocks:
            others = others or block.get("type") != "tool_result"
            if others and block.get("type") == "tool_result":
                yield at, "a result behind something else"


def _unique_in_request(body: JSONObject) -> Iterator[Find]:
    seen: set[JSON] = set()
    for turn in turns(body):
        yield from _repeated(turn.of("tool_use"), seen)


def _names(body: JSONObject) -> Iterator[Find]:
    places = [(f"/tools/{i}", tool) for i, tool in numbered(body.get("tools"))]
    places += [(at, b) for at, b in _blocks(body) if b.get("type") == "tool_use"]
    for at, holder in places:
        if not NAME.fits(str(holder.get("name") or "")):
            yield f"{at}/name", f"the name {holder.get('name')!r}"


def _errors_speak(body: JSONObject) -> Iterator[Find]:
    for at, block in _blocks(body):
        if (
            block.get("type") == "tool_result"
            and block.get("is_error")
            and not block.get("content")
        ):
            yield at, "an error that says nothing"


def _result_content(body: JSONObject) -> Iterator[Find]:
    for at, block in _blocks(body):
        if block.get("type") == "tool_result":
            for index, part in numbered(block.get("content")):
                if kind_of(part) not in RESULT_CONTENT:
                    yield f"{at}/content/{index}", f"a block {part.get('type')!r} in a result"


def _hosted_pairs(body: JSONObject) -> Iterator[Find]:
    said = turns(body)
    for number, turn in enumerate(said):
        uses = {str(b.get("id")): at for at, b in turn.of("server_tool_use")}
        results = {
            str(b.get("tool_use_id")): at
            for at, b in turn.blocks
            if str(b.get("type")).endswith("_tool_result") and b.get("type") != "mcp_tool_result"
        }
        waits = number == len(said) - 1 or turn.of("tool_use")
        for word in sorted(uses.keys() - results.keys()):
            if not waits:
                yield uses[word], f"the provider's own call {word!r} without its result"


def _marks_where_taken(body: JSONObject) -> Iterator[Find]:
    for at, block in marks_in(body):
        blank = block.get("type") == "text" and not str(block.get("text") or "").strip()
        if kind_of(block) in UNMARKED or blank:
            yield at, f"a cache mark on a block {block.get('type')!r}"


def _images(body: JSONObject) -> Iterator[Find]:
    for at, block in _blocks(body):
        source = block.get("source")
        if block.get("type") != "image" or not is_object(source) or source.get("type") != "base64":
            continue
        said, data = source.get("media_type"), from_base64(source.get("data"))
        if data is None:
            yield f"{at}/source/data", "data that is no base64"
        elif said not in IMAGES or image_type(data, str(said)) != said:
            yield (
                f"{at}/source/media_type",
                f"{said!r}, where the bytes say {image_type(data, '?')!r}",
            )


def _thinking_first(body: JSONObject) -> Iterator[Find]:
    setting = body.get("thinking")
    if not is_object(setting) or setting.get("type") != "enabled":
        return
    said = [turn for turn in turns(body) if turn.role == "assistant"]
    if said and said[-1].of("tool_use"):
        at, block = said[-1].blocks[0]
        if kind_of(block) not in UNMARKED:
            yield at, f"{block.get('type')!r} first, in the turn whose calls are being answered"


def _no_thinking_last(body: JSONObject) -> Iterator[Find]:
    setting = body.get("thinking")
    if is_object(setting) and setting.get("type") != "disabled":
        return
    said = turns(body)
    if said and said[-1].role == "assistant" and not _is_paused(said[-1]):
        for at, block in said[-1].of("thinking", "redacted_thinking"):
            yield at, f"a block {block.get('type')!r} at the end, while thinking is off"


def _signed(body: JSONObject) -> Iterator[Find]:
    for at, block in _blocks(body):
        if block.get("type") == "thinking" and not isinstance(block.get("signature"), str):
            yield at, "thinking without a signature"


def _known_members(body: JSONObject) -> Iterator[Find]:
    for at, block in _blocks(body):
        known = KEYS.get(str(block.get("type")))
        if known is not None:
            for key in sorted(block.keys() - known - {"type", "cache_control"}):
                yield f"{at}/{key}", f"a member {key!r} that the block has not"


_Finder = Callable[[JSONObject], Iterator[Find]]
_HARD: tuple[tuple[str, str, _Finder], ...] = (
    ("U1", "replace lone surrogates by U+FFFD", not_unicode),
    ("U2", "replace NaN and infinities by null", NOT_JSON),
    ("A1", "send at least one message", _not_empty),
    ("A3", "give it content, or leave the message out", _says_something),
    ("A5", "let the user speak last", _ends_open),
    ("A9", "put a tool_result for each call into the message right behind it", _answered),
    ("A10", "say it as text, or put it right behind the message that calls", _orphans),
    ("A11", "keep one result a call; say the other as text", _once),
    ("A13", "use letters, digits, _ and - in ids", _ids),
    ("A14a", "rename one of the calls, with its result", _unique_in_turn),
    ("A15", "send the input as an object", _input_is_object),
    ("A20", "keep the last four cache marks", _few_marks),
    ("A25", "put the text before the call", _calls_come_last),
)
_CONSERVATIVE: tuple[tuple[str, str, _Finder], ...] = (
    ("A1b", "say max_tokens", _max_tokens),
    ("A2", "let the user speak first", _user_first),
    ("A4", "leave blank texts out", _texts),
    ("A5b", "strip the text", _trailing_space),
    ("A6", "say it at the top, or as the user", _system_where_known),
    ("A7", "put it behind the user's turn, right before the assistant's", _system_placed),
    ("A8", "say it in the role it belongs to", _own_roles),
    ("A12", "put the results first", _results_first),
    ("A14", "use an id once in a request", _unique_in_request),
    ("A16", "use letters, digits, _ and -, at most 64", _names),
    ("A17", "say what went wrong", _errors_speak),
    ("A18", "say it in a block that results may hold", _result_content),
    ("A19", "leave the half out, or keep the pair together", _hosted_pairs),
    ("A21", "put the mark on the block before", _marks_where_taken),
    ("A22", "send jpeg, png, gif or webp under its own name", _images),
    ("A23", "turn thinking off for this request", _thinking_first),
    ("A24", "leave the thinking out, or turn it on", _no_thinking_last),
    ("A26", "leave the thinking out", _signed),
    ("A27", "leave the member out", _known_members),
)

RULE_BOOK: tuple[Rule, ...] = (
    *(Rule(id=i, grade="hard", now=now, finds=f) for i, now, f in _HARD),
    *(Rule(id=i, grade="conservative", now=now, finds=f) for i, now, f in _CONSERVATIVE),
)

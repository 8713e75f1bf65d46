"""What Anthropic Messages refuses, rule by rule, in the order it looks.

Sources: the SDK's request types for keys and types (a test holds `BLOCKS` against them), error
texts quoted in public issue threads for the rest. Recorded requests that were accepted keep them,
but for A2, blanks under A4, and ids under A14 that come again in a later turn: there the reports of
refusals are believed, since a request that keeps the rule is safe either way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from brute.testing.wire_rules import NAME, is_one_of, lone_surrogate, objects, words
from brute.testing.wire_script import (
    JSON,
    SIGNATURE_PREFIX,
    JSONObject,
    Refused,
    Settings,
    is_array,
    is_object,
    thinking_signature,
)

Block: TypeAlias = tuple[str, JSONObject]
"""A content block and its place, as `messages.2.content.0`."""


@dataclass(frozen=True, slots=True)
class Turn:
    """Neighbouring messages of one role, which the API reads as one message."""

    role: str
    place: str
    blocks: list[Block]

    def of(self, *types: str) -> list[Block]:
        """The blocks of these types."""
        return [(place, block) for place, block in self.blocks if block["type"] in types]


@dataclass(frozen=True, slots=True)
class Body:
    """A request whose shapes are known to be right."""

    json: JSONObject
    turns: list[Turn]
    version: tuple[int, int]
    """The model's, as (4, 8); (0, 0) for a model whose name does not say."""

    @property
    def blocks(self) -> Iterator[Block]:
        """Every block of every message."""
        return (block for turn in self.turns for block in turn.blocks)


@dataclass(frozen=True, slots=True)
class Shape:
    """The keys of one type of block and the roles that may have it."""

    required: frozenset[str]
    optional: frozenset[str] = frozenset()
    roles: frozenset[str] = frozenset({"user", "assistant"})


def _shape(required: str, optional: str = "", roles: str = "user assistant") -> Shape:
    keys = words(required), words(f"type {optional}")
    return Shape(*keys, words(roles))


_SERVER_RESULT = _shape("tool_use_id content", "cache_control", "assistant")
_WEB_RESULT = _shape("tool_use_id content", "cache_control caller", "assistant")
_TOOL_CHANGE = _shape("tool", "cache_control", "system")

BLOCKS: dict[str, Shape] = {
    "text": _shape("text", "cache_control citations", "user assistant system"),
    "image": _shape("source", "cache_control transformations"),
    "document": _shape("source", "cache_control citations context title"),
    "search_result": _shape("content source title", "cache_control citations"),
    "thinking": _shape("thinking signature", "", "assistant"),
    "redacted_thinking": _shape("data", "", "assistant"),
    "tool_use": _shape("id name input", "cache_control caller toolset_name", "assistant"),
    "tool_result": _shape("tool_use_id", "cache_control content is_error toolset_name", "user"),
    "server_tool_use": _shape("id name input", "cache_control caller", "assistant"),
    "web_search_tool_result": _WEB_RESULT,
    "web_fetch_tool_result": _WEB_RESULT,
    "code_execution_tool_result": _SERVER_RESULT,
    "bash_code_execution_tool_result": _SERVER_RESULT,
    "text_editor_code_execution_tool_result": _SERVER_RESULT,
    "tool_search_tool_result": _SERVER_RESULT,
    "container_upload": _shape("file_id", "cache_control"),
    # Behind a beta header:
    "advisor_tool_result": _SERVER_RESULT,
    "mcp_tool_use": _shape("id name input server_name", "cache_control", "assistant"),
    "mcp_tool_result": _shape("tool_use_id", "cache_control content is_error", "assistant"),
    "mcp_tool_listing": _shape("mcp_server_name tools", "", "assistant"),
    "compaction": _shape(
        "", "cache_control content encrypted_content signature tool_changes", "assistant"
    ),
    "fallback": _shape("from to", "trigger", "assistant"),
    "tool_addition": _TOOL_CHANGE,
    "tool_removal": _TOOL_CHANGE,
}

RESULT_CONTENT = frozenset(
    {"text", "image", "document", "search_result", "tool_reference", "browser_state"}
)
"""What a tool_result may hold."""

TOP_LEVEL = words(
    """
    cache_control container diagnostics inference_geo max_tokens messages metadata model
    output_config service_tier speed stop_sequences stream system temperature thinking tool_choice
    tools top_k top_p user_profile_id workspace_id
    betas billing_policy compaction context_management fallback_credit_token fallbacks mcp_servers
    output_format thread
    """
)
"""The request's own keys; the second paragraph is behind beta headers."""

MESSAGE_KEYS = {
    "user": frozenset({"role", "content"}),
    "assistant": frozenset({"role", "content"}),
    "system": frozenset({"role", "content", "clear_at", "output_config"}),
}

_STRINGS = frozenset({"text", "thinking", "signature", "data", "id", "name", "tool_use_id"})
_EXTRA = "Extra inputs are not permitted"
_REQUIRED = "Field required"


def refusal(body: JSONObject, raw: bytes, settings: Settings) -> Refused | None:
    """The first rule that a request breaks; None when the API would take it."""
    if lone_surrogate(body, raw):
        return Refused("U1", "The request body is not valid JSON: no low surrogate in string")
    broken = next(_shapes(body), None)
    if broken is not None:
        return broken
    read = Body(body, _turns(body["messages"]), model_version(body["model"]))
    rules = RULES if settings.foreign_thinking else (*RULES, _thinking_is_ours)
    return next((found for rule in rules for found in rule(read)), None)


def model_version(model: str) -> tuple[int, int]:
    """(4, 8) for `claude-opus-4-8`; (0, 0) for older and unknown names."""
    found = re.match(r"claude-[a-z]+-(\d{1,2})(?:-(\d{1,2}))?(?!\d)", model)
    return (int(found[1]), int(found[2] or 0)) if found else (0, 0)


def _turns(messages: list[JSONObject]) -> list[Turn]:
    turns: list[Turn] = []
    for number, message in enumerate(messages):
        place, content = f"messages.{number}", message["content"]
        if isinstance(content, str):
            content = [{"type": "text", "text": content}] if content else []
        if not turns or turns[-1].role != message["role"] or message["role"] == "system":
            turns.append(Turn(message["role"], place, []))
        blocks = ((f"{place}.content.{at}", block) for at, block in enumerate(content))
        turns[-1].blocks.extend(blocks)
    return turns


# Shapes: what the API's schema says before it reads a meaning into anything.


def _shapes(body: JSONObject) -> Iterator[Refused]:
    for key in ("model", "max_tokens", "messages"):
        if key not in body:
            yield Refused("A1", f"{key}: {_REQUIRED}")
    for key in sorted(body.keys() - TOP_LEVEL):
        yield Refused("U6", f"{key}: {_EXTRA}")
    if not isinstance(body["model"], str):
        yield Refused("A1", "model: Input should be a valid string")
    if not isinstance(body["max_tokens"], int) or body["max_tokens"] < 1:
        yield Refused("A1", "max_tokens: Input should be greater than or equal to 1")
    messages = body["messages"]
    if not is_array(messages):
        yield Refused("A1", "messages: Input should be a valid list")
    if not messages:
        yield Refused("A1", "messages: at least one message is required")
    for number, message in enumerate(messages):
        yield from _message_shape(f"messages.{number}", message, model_version(body["model"]))
    yield from _system_shape(body.get("system", ""))
    yield from _tool_shapes(body)


def _message_shape(place: str, message: JSON, version: tuple[int, int]) -> Iterator[Refused]:
    if not is_object(message):
        yield Refused("A1", f"{place}: Input does not match the expected shape")
        return
    role = message.get("role")
    if role == "system" and version < (4, 8):
        yield Refused(
            "A6",
            'messages: Unexpected role "system". The Messages API accepts a top-level `system` '
            'parameter, not "system" as an input message role.',
        )
    if not is_one_of(role, MESSAGE_KEYS):
        yield Refused("A8", f"{place}.role: Input should be 'user' or 'assistant'")
        return
    for key in sorted(message.keys() - MESSAGE_KEYS[role]):
        yield Refused("U6", f"{place}.{key}: {_EXTRA}")
    content = message.get("content")
    if isinstance(content, str):
        return
    if not is_array(content):
        found = _REQUIRED if "content" not in message else "Input should be a valid list"
        yield Refused("A3", f"{place}.content: {found}")
        return
    for number, block in enumerate(content):
        yield from _block_shape(f"{place}.content.{number}", block, role)


def _block_shape(place: str, block: JSON, role: str) -> Iterator[Refused]:
    if not is_object(block) or "type" not in block:
        yield Refused("A18", f"{place}.type: {_REQUIRED}")
        return
    kind = block["type"]
    if not is_one_of(kind, BLOCKS):
        tags = ", ".join(f"'{tag}'" for tag in sorted(BLOCKS))
        yield Refused(
            "A18",
            f"{place}: Input tag '{kind}' found using 'type' does not match any of the expected "
            f"tags: {tags}",
        )
        return
    shape = BLOCKS[kind]
    if role not in shape.roles:
        yield Refused(
            "A8",
            f"{place}: `{kind}` blocks can only be in {_either(shape.roles)} messages",
        )
    for key in sorted(shape.required - block.keys()):
        yield Refused("A18", f"{place}.{kind}.{key}: {_REQUIRED}")
    for key in sorted(block.keys() - shape.required - shape.optional):
        yield Refused("U6", f"{place}.{kind}.{key}: {_EXTRA}")
    for key in sorted(shape.required & _STRINGS):
        if not isinstance(block[key], str):
            yield Refused("A18", f"{place}.{kind}.{key}: Input should be a valid string")
    yield from _call_shape(f"{place}.{kind}", block)


def _call_shape(place: str, block: JSONObject) -> Iterator[Refused]:
    """The parts of calls and their results that have a shape of their own."""
    for key in ("id", "tool_use_id"):
        if key in block and not NAME.fullmatch(block[key]):
            yield Refused("A13", f"{place}.{key}: String should match pattern '^[a-zA-Z0-9_-]+$'")
    if "input" in block and not is_object(block["input"]):
        yield Refused("A15", f"{place}.input: Input should be a valid dictionary")
    if block["type"] == "tool_use" and not _is_name(block["name"], 200):
        yield Refused("A16", f"{place}.name: String should match pattern '{_pattern(200)}'")
    if block["type"] == "tool_result" and not isinstance(block.get("content", ""), str):
        yield from _result_shape(f"{place}.content", block["content"])


def _result_shape(place: str, content: JSON) -> Iterator[Refused]:
    if not is_array(content):
        yield Refused("A18", f"{place}: Input should be a valid list")
        return
    for number, block in enumerate(content):
        kind = block.get("type") if is_object(block) else None
        if not is_one_of(kind, RESULT_CONTENT):
            tags = ", ".join(f"'{tag}'" for tag in sorted(RESULT_CONTENT))
            yield Refused(
                "A18",
                f"{place}.{number}: Input tag '{kind}' found using 'type' does not match any of "
                f"the expected tags: {tags}",
            )


def _system_shape(system: JSON) -> Iterator[Refused]:
    if isinstance(system, str):
        return
    if not is_array(system):
        yield Refused("A6", "system: Input should be a valid list")
        return
    for number, block in enumerate(system):
        if not is_object(block) or not isinstance(block.get("text"), str):
            yield Refused("A6", f"system.{number}.type: Input should be 'text'")


def _tool_shapes(body: JSONObject) -> Iterator[Refused]:
    """Tools of one's own; those that the provider runs have a type and no rules here."""
    names: set[str] = set()
    for number, tool in objects(body.get("tools")):
        if tool.get("type", "custom") != "custom":
            continue
        place, name = f"tools.{number}.custom", tool.get("name")
        if not isinstance(name, str) or not _is_name(name, 128):
            yield Refused("A16", f"{place}.name: String should match pattern '{_pattern(128)}'")
        if name in names:
            yield Refused("A16", "tools: Tool names must be unique.")
        names.add(str(name))
        schema = tool.get("input_schema")
        if not is_object(schema):
            yield Refused("A16", f"{place}.input_schema: {_REQUIRED}")
        elif schema.get("type") != "object":
            yield Refused("A16", f"{place}.input_schema.type: Input should be 'object'")


def _is_name(name: str, longest: int) -> bool:
    return len(name) <= longest and NAME.fullmatch(name) is not None


def _pattern(longest: int) -> str:
    return f"^[a-zA-Z0-9_-]{{1,{longest}}}$"


def _either(words: frozenset[str]) -> str:
    return " or ".join(f"`{word}`" for word in sorted(words))


# Meaning: every rule gets a body whose shapes are right.


def _first_is_user(body: Body) -> Iterator[Refused]:
    if body.turns[0].role != "user":
        yield Refused("A2", 'messages: first message must use the "user" role')


def _nothing_is_empty(body: Body) -> Iterator[Refused]:
    messages = body.json["messages"]
    for number, message in enumerate(messages):
        last = number == len(messages) - 1 and message["role"] == "assistant"
        if not message["content"] and not last:
            yield Refused(
                "A3",
                f"messages.{number}: all messages must have non-empty content except for the "
                "optional final assistant message",
            )


def _texts_say_something(body: Body) -> Iterator[Refused]:
    inner = (
        (f"{place}.content.{number}", part)
        for place, block in body.blocks
        for number, part in objects(block.get("content"))
    )
    system = ((f"system.{number}", part) for number, part in objects(body.json.get("system")))
    for place, block in (*body.blocks, *inner, *system):
        said = block.get("text", "")
        if block.get("type") != "text" or not isinstance(said, str):
            continue
        if not said:
            yield Refused("A4", f"{_root(place)}: text content blocks must be non-empty")
        elif not said.strip():
            yield Refused(
                "A4", f"{_root(place)}: text content blocks must contain non-whitespace text"
            )


def _root(place: str) -> str:
    return place.split(".", 1)[0]


def _system_has_its_place(body: Body) -> Iterator[Refused]:
    """A7, where the model takes system text in mid-conversation at all."""
    for number, turn in enumerate(body.turns):
        if turn.role != "system":
            continue
        before = body.turns[number - 1] if number else None
        after = body.turns[number + 1] if number + 1 < len(body.turns) else None
        paused = before is not None and before.role == "assistant" and _is_paused(before)
        fits = before is not None and (before.role == "user" or paused)
        if not fits or (after is not None and after.role != "assistant"):
            yield Refused(
                "A7",
                f"{turn.place}: a `system` message must directly follow a `user` message, and be "
                "the last one or be followed by an `assistant` message",
            )


def _is_paused(turn: Turn) -> bool:
    """Whether a turn ends in a tool the provider runs, to be sent back as it is."""
    kind = turn.blocks[-1][1]["type"] if turn.blocks else ""
    return kind in {"server_tool_use", "mcp_tool_use"} or (
        kind.endswith("_tool_result") and kind != "tool_result"
    )


def _ids_are_unique(body: Body) -> Iterator[Refused]:
    seen: set[str] = set()
    for turn in body.turns:
        for place, block in turn.of("tool_use"):
            if block["id"] in seen:
                yield Refused("A14", f"{place}: `tool_use` ids must be unique")
            seen.add(block["id"])


def _results_answer_calls(body: Body) -> Iterator[Refused]:
    """A10 and A11: a result belongs to a call of the turn before, and to one that has none yet."""
    asked: set[str] = set()
    for turn in body.turns:
        answered: set[str] = set()
        for place, block in turn.of("tool_result"):
            call = block["tool_use_id"]
            if call not in asked:
                yield Refused(
                    "A10",
                    f"{place}: unexpected `tool_use_id` found in `tool_result` blocks: {call}. "
                    "Each `tool_result` block must have a corresponding `tool_use` block in the "
                    "previous message.",
                )
            if call in answered:
                yield Refused(
                    "A11",
                    f"{place}: each tool_use must have a single result. Found multiple "
                    f"`tool_result` blocks with id: {call}",
                )
            answered.add(call)
        asked = {block["id"] for _, block in turn.of("tool_use")}


def _calls_are_answered(body: Body) -> Iterator[Refused]:
    """A9 and A12: the results of a turn's calls come next, before anything else."""
    for number, turn in enumerate(body.turns):
        calls = [block["id"] for _, block in turn.of("tool_use")]
        following = body.turns[number + 1].blocks if number + 1 < len(body.turns) else []
        leading: set[str] = set()
        for _, block in following:
            if block["type"] != "tool_result":
                break
            leading.add(block["tool_use_id"])
        if open_calls := [call for call in calls if call not in leading]:
            yield _unanswered("A9", turn, open_calls)
        elif calls and _text_follows_a_call(turn):
            yield _unanswered("A9", turn, calls)


def _text_follows_a_call(turn: Turn) -> bool:
    """Recorded once, and refused with the words for a call that has no result."""
    types = [block["type"] for _, block in turn.blocks]
    return "text" in types[types.index("tool_use") :]


def _unanswered(rule: str, turn: Turn, ids: list[str]) -> Refused:
    return Refused(
        rule,
        f"{turn.place}: `tool_use` ids were found without `tool_result` blocks immediately after: "
        f"{', '.join(ids)}. Each `tool_use` block must have a corresponding `tool_result` block in "
        "the next message.",
    )


def _errors_say_something(body: Body) -> Iterator[Refused]:
    for place, block in body.blocks:
        if block["type"] == "tool_result" and block.get("is_error") and not block.get("content"):
            yield Refused(
                "A17", f"{place}.tool_result: content cannot be empty if `is_error` is true"
            )


def _server_tools_pair_up(body: Body) -> Iterator[Refused]:
    """A19, within one turn; a call at the end of the last turn is a pause."""
    for turn in body.turns:
        uses = {block["id"]: place for place, block in turn.of("server_tool_use")}
        results = {
            block["tool_use_id"]: place
            for place, block in turn.blocks
            if block["type"].endswith("_tool_result") and block["type"] != "mcp_tool_result"
        }
        for call in uses.keys() - results.keys():
            if not (turn is body.turns[-1] and turn.blocks[-1][1].get("id") == call):
                yield Refused(
                    "A19",
                    f"{uses[call]}: server tool use with id `{call}` was found without a "
                    "corresponding tool result block",
                )
        for call in results.keys() - uses.keys():
            yield Refused(
                "A19", f"{results[call]}: tool result block has no server tool use with id `{call}`"
            )


def _cache_marks_are_few(body: Body) -> Iterator[Refused]:
    marks, stack = 0, [body.json.get(key) for key in ("tools", "system", "messages")]
    while stack:
        item = stack.pop()
        if is_object(item):
            marks += item.get("cache_control") is not None
            stack.extend(value for key, value in item.items() if key != "input")
        elif is_array(item):
            stack.extend(item)
    if marks > 4:
        yield Refused(
            "A20", f"A maximum of 4 blocks with cache_control may be provided. Found {marks}."
        )


def _thinking_is_ours(body: Body) -> Iterator[Refused]:
    """A25: the texts and signatures of thinking blocks are those that the server gave out."""
    for place, block in body.blocks:
        if block["type"] == "redacted_thinking":
            yield Refused("A25", f"{place}: Invalid `data` in `redacted_thinking` block")
        if block["type"] != "thinking":
            continue
        if block["signature"] == thinking_signature(block["thinking"]):
            continue
        if block["signature"].startswith(SIGNATURE_PREFIX):
            yield Refused(
                "A25",
                f"{place}: `thinking` or `redacted_thinking` blocks in the latest assistant "
                "message cannot be modified. These blocks must remain as they were in the "
                "original response.",
            )
        yield Refused("A25", f"{place}: Invalid `signature` in `thinking` block")


def _thinking_comes_first(body: Body) -> Iterator[Refused]:
    """A23 and A24, which depend on the request's own thinking setting."""
    setting = body.json.get("thinking")
    mode = setting.get("type") if is_object(setting) else "disabled"
    assistants = [turn for turn in body.turns if turn.role == "assistant" and turn.blocks]
    if mode == "enabled" and assistants and assistants[-1].of("tool_use"):
        place, first = assistants[-1].blocks[0]
        if first["type"] not in {"thinking", "redacted_thinking"}:
            yield Refused(
                "A23",
                f"{place}.type: Expected `thinking` or `redacted_thinking`, but found "
                f"`{first['type']}`. When `thinking` is enabled, a final `assistant` message must "
                "start with a thinking block (preceeding the lastmost set of `tool_use` and "
                "`tool_result` blocks).",
            )
    final = body.turns[-1]
    if mode == "disabled" and final.role == "assistant" and not _is_paused(final):
        for place, block in final.of("thinking", "redacted_thinking"):
            yield Refused(
                "A24",
                f"{place}.type: When thinking is disabled, an `assistant` message in the final "
                f"position cannot contain `{block['type']}`. To use thinking blocks, enable "
                "`thinking` in your request.",
            )


def _the_end_is_open(body: Body) -> Iterator[Refused]:
    """A5 and A5b: what a conversation may end with."""
    final = body.turns[-1]
    if final.role != "assistant" or final.of("server_tool_use", "mcp_tool_use"):
        return
    if body.version >= (4, 6):
        yield Refused(
            "A5",
            "This model does not support assistant message prefill. The conversation must end "
            "with a user message.",
        )
    texts = final.of("text")
    if texts and texts[-1][1]["text"] != texts[-1][1]["text"].rstrip():
        yield Refused(
            "A5b", "messages: final assistant content cannot end with trailing whitespace"
        )


RULES: tuple[Callable[[Body], Iterator[Refused]], ...] = (
    _first_is_user,
    _nothing_is_empty,
    _texts_say_something,
    _system_has_its_place,
    _ids_are_unique,
    _results_answer_calls,
    _calls_are_answered,
    _errors_say_something,
    _server_tools_pair_up,
    _cache_marks_are_few,
    _thinking_comes_first,
    _the_end_is_open,
)

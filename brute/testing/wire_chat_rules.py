"""What OpenAI Chat Completions refuses, rule by rule, in the order it looks.

Sources: the SDK's request types for keys (a test holds the tables against them), error texts quoted
in public issue threads for the rest. A rule that requests recorded at api.openai.com break is left
out; those that only compatible gateways have are left out too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from brute.testing.wire_rules import NAME, is_one_of, kind, lone_surrogate, words
from brute.testing.wire_script import JSON, JSONObject, Refused, Settings, is_array, is_object

TOP_LEVEL = words(
    """
    audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens
    max_tokens messages metadata modalities model moderation n parallel_tool_calls prediction
    presence_penalty prompt_cache_key prompt_cache_options prompt_cache_retention reasoning_effort
    response_format safety_identifier seed service_tier stop store stream stream_options
    temperature tool_choice tools top_logprobs top_p user verbosity web_search_options
    """
)
"""The request's own keys."""

_PLAIN = frozenset({"role", "content", "name"})

KEYS: dict[str, frozenset[str]] = {
    "system": _PLAIN,
    "developer": _PLAIN,
    "user": _PLAIN,
    "assistant": _PLAIN | {"audio", "function_call", "refusal", "tool_calls", "annotations"},
    "tool": _PLAIN | {"tool_call_id"},
    "function": _PLAIN,
}
"""Each role's keys; `annotations` and a tool's `name` are in no type, but recorded as taken."""

PARTS: dict[str, frozenset[str]] = {
    "system": frozenset({"text"}),
    "developer": frozenset({"text"}),
    "user": frozenset({"text", "image_url", "input_audio", "file"}),
    "assistant": frozenset({"text", "refusal"}),
    "tool": frozenset({"text"}),
    "function": frozenset({"text"}),
}
"""The types of content parts that each role may have."""

CALLS: dict[str, tuple[str, str]] = {
    "function": ("name", "arguments"),
    "custom": ("name", "input"),
}
"""The types of tool calls and the keys, all texts, of what stands under the type's name."""

MAY_STAND_FOR_CONTENT = ("tool_calls", "function_call", "audio", "refusal")
"""What an assistant message says instead of a content."""

LONGEST_ID = 64
"""Recorded ids of 41 to 64 characters were taken; older reports say 40."""


def refusal(body: JSONObject, raw: bytes, settings: Settings) -> Refused | None:
    """The first rule that a request breaks; None when the API would take it."""
    if lone_surrogate(body, raw):
        return Refused("U1", "We could not parse the JSON body of your request: invalid unicode")
    return next(_broken(body, settings.reasoning_field), None)


def _broken(body: JSONObject, reasoning_field: str | None) -> Iterator[Refused]:
    yield from _top_level(body)
    messages = body["messages"]
    keys = KEYS if reasoning_field is None else _with_reasoning(reasoning_field)
    for number, message in enumerate(messages):
        yield from _message(f"messages[{number}]", message, keys)
    yield from _pairing(messages)
    yield from _tools(body.get("tools"))


def _with_reasoning(reasoning_field: str) -> dict[str, frozenset[str]]:
    return {**KEYS, "assistant": KEYS["assistant"] | {reasoning_field}}


def _top_level(body: JSONObject) -> Iterator[Refused]:
    if not isinstance(body.get("model"), str):
        yield Refused("C0", "you must provide a model parameter")
    for key in sorted(body.keys() - TOP_LEVEL):
        yield Refused("U6", f"Unrecognized request argument supplied: {key}")
    if "messages" not in body:
        yield _missing("C0", "messages")
    messages = body["messages"]
    if not is_array(messages):
        yield _wrong_type("C0", "messages", "an array of objects", messages)
    elif not messages:
        yield _empty("C0", "messages")
    if body.get("stream_options") is not None and body.get("stream") is not True:
        yield Refused(
            "C0",
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
            "stream_options",
        )


def _message(place: str, message: JSON, keys_of: dict[str, frozenset[str]]) -> Iterator[Refused]:
    if not is_object(message):
        yield _wrong_type("C1", place, "an object", message)
        return
    role = message.get("role")
    if not is_one_of(role, keys_of):
        supported = "'system', 'assistant', 'user', 'function', 'tool', and 'developer'"
        yield Refused(
            "C1",
            f"Invalid value: '{role}'. Supported values are: {supported}.",
            f"{place}.role",
        )
        return
    for key in sorted(message.keys() - keys_of[role]):
        yield Refused("U6", f"Unknown parameter: '{place}.{key}'.", f"{place}.{key}")
    name = message.get("name")
    if name is not None and not re.fullmatch(r"[^\s<|\\/>]{1,64}", str(name)):
        yield _pattern("C8", f"{place}.name", r"^[^\s<|\\/>]+$")
    if role == "assistant":
        yield from _calls(place, message)
    if role == "tool" and not isinstance(message.get("tool_call_id"), str):
        yield _missing("C3", f"{place}.tool_call_id")
    yield from _content(place, role, message)


def _content(place: str, role: str, message: JSONObject) -> Iterator[Refused]:
    content = message.get("content")
    instead = role == "assistant" and any(message.get(key) for key in MAY_STAND_FOR_CONTENT)
    if content is None and not instead:
        if "content" not in message:
            yield _missing("C4" if role == "assistant" else "C13", f"{place}.content")
        yield Refused(
            "C4" if role == "assistant" else "C13",
            "Invalid value for 'content': expected a string, got null.",
            f"{place}.content",
        )
    if content is None or isinstance(content, str):
        return
    if not is_array(content):
        yield _wrong_type("C10", f"{place}.content", "a string or an array of objects", content)
        return
    if not content and not instead:
        yield _empty("C13", f"{place}.content")
    for number, part in enumerate(content):
        yield from _part(f"{place}.content[{number}]", part, PARTS[role])


def _part(place: str, part: JSON, allowed: frozenset[str]) -> Iterator[Refused]:
    if not is_object(part) or "type" not in part:
        yield _missing("C10", f"{place}.type")
        return
    found = part["type"]
    if not is_one_of(found, allowed):
        supported = " and ".join(f"'{word}'" for word in sorted(allowed))
        yield Refused(
            "C10",
            f"Invalid value: '{found}'. Supported values are: {supported}.",
            f"{place}.type",
        )
        return
    if found not in part:
        yield _missing("C10", f"{place}.{found}")
    elif found in {"text", "refusal"} and not isinstance(part[found], str):
        yield _wrong_type("C10", f"{place}.{found}", "a string", part[found])


def _calls(place: str, message: JSONObject) -> Iterator[Refused]:
    calls = message.get("tool_calls")
    if calls is None:
        return
    if not is_array(calls):
        yield _wrong_type("C5", f"{place}.tool_calls", "an array of objects", calls)
        return
    if not calls:
        yield _empty("C5", f"{place}.tool_calls")
    for number, call in enumerate(calls):
        yield from _call(f"{place}.tool_calls[{number}]", call)
    ids = [call["id"] for call in calls]
    if twice := next((one for one in ids if ids.count(one) > 1), None):
        yield Refused(
            "C6",
            f"Invalid '{place}.tool_calls': duplicate value for 'id': '{twice}'.",
            f"{place}.tool_calls",
        )


def _call(place: str, call: JSON) -> Iterator[Refused]:
    if not is_object(call):
        yield _wrong_type("C5", place, "an object", call)
        return
    for key in ("id", "type"):
        if not isinstance(call.get(key), str):
            yield _missing("C5", f"{place}.{key}")
    if not 1 <= len(call["id"]) <= LONGEST_ID:
        yield _length("C7", f"{place}.id", LONGEST_ID, call["id"])
    form = call["type"]
    if form not in CALLS:
        supported = " and ".join(f"'{word}'" for word in CALLS)
        yield Refused(
            "C5", f"Invalid value: '{form}'. Supported values are: {supported}.", f"{place}.type"
        )
        return
    for key in sorted(call.keys() - {"id", "type", form}):
        yield Refused("U6", f"Unknown parameter: '{place}.{key}'.", f"{place}.{key}")
    inner = call.get(form)
    if not is_object(inner):
        yield _missing("C5", f"{place}.{form}")
        return
    for key in CALLS[form]:
        if key not in inner:
            yield _missing("C12", f"{place}.{form}.{key}")
        elif not isinstance(inner[key], str):
            yield _wrong_type("C12", f"{place}.{form}.{key}", "a string", inner[key])
    for key in sorted(inner.keys() - set(CALLS[form])):
        yield Refused("U6", f"Unknown parameter: '{place}.{form}.{key}'.", f"{place}.{form}.{key}")
    yield from _function_name(f"{place}.{form}.name", inner["name"])


def _pairing(messages: list[JSONObject]) -> Iterator[Refused]:
    """C2 and C3: the tool messages of a call come right after it, one each."""
    waiting: list[str] = []
    for number, message in enumerate(messages):
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                yield Refused(
                    "C3",
                    "Invalid parameter: messages with role 'tool' must be a response to a "
                    "preceeding message with 'tool_calls'.",
                    f"messages.[{number}].role",
                )
            waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            yield _unanswered(waiting, f"messages.[{number}].role")
        waiting = [call["id"] for call in message.get("tool_calls") or ()]
    if waiting:
        yield _unanswered(waiting, "messages")


def _unanswered(ids: list[str], param: str) -> Refused:
    return Refused(
        "C2",
        "An assistant message with 'tool_calls' must be followed by tool messages responding to "
        "each 'tool_call_id'. The following tool_call_ids did not have response messages: "
        f"{', '.join(ids)}",
        param,
    )


def _tools(tools: JSON) -> Iterator[Refused]:
    if tools is None:
        return
    if not is_array(tools):
        yield _wrong_type("C11", "tools", "an array of objects", tools)
        return
    if not tools:
        yield _empty("C11", "tools")
    for number, tool in enumerate(tools):
        place = f"tools[{number}]"
        form = tool.get("type") if is_object(tool) else None
        if not is_one_of(form, CALLS):
            yield _missing("C11", f"{place}.type")
        elif not is_object(tool.get(form)):
            yield _missing("C11", f"{place}.{form}")
        else:
            yield from _function_name(f"{place}.{form}.name", tool[form].get("name"))


def _function_name(place: str, name: JSON) -> Iterator[Refused]:
    if not isinstance(name, str):
        yield _missing("C11", place)
    elif not 1 <= len(name) <= 64:
        yield _length("C11", place, 64, name)
    elif not NAME.fullmatch(name):
        yield _pattern("C11", place, "^[a-zA-Z0-9_-]+$")


# The API's sentences.


def _missing(rule: str, place: str) -> Refused:
    return Refused(rule, f"Missing required parameter: '{place}'.", place)


def _wrong_type(rule: str, place: str, expected: str, found: JSON) -> Refused:
    message = f"Invalid type for '{place}': expected {expected}, but got {kind(found)} instead."
    return Refused(rule, message, place)


def _empty(rule: str, place: str) -> Refused:
    message = (
        f"Invalid '{place}': empty array. Expected an array with minimum length 1, but got an "
        "empty array instead."
    )
    return Refused(rule, message, place)


def _length(rule: str, place: str, longest: int, found: str) -> Refused:
    message = (
        f"Invalid '{place}': string too long. Expected a string with maximum length {longest}, "
        f"but got a string with length {len(found)} instead."
        if found
        else f"Invalid '{place}': empty string. Expected a string with minimum length 1, but got "
        "an empty string instead."
    )
    return Refused(rule, message, place)


def _pattern(rule: str, place: str, pattern: str) -> Refused:
    message = (
        f"Invalid '{place}': string does not match pattern. Expected a string that matches the "
        f"pattern '{pattern}'."
    )
    return Refused(rule, message, place)

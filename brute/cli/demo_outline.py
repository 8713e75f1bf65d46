"""A request body in outline: a line for each message, and for each tool result."""

from __future__ import annotations

from brute.cli.screen import one_line, size
from brute.events.jsontext import dumps
from brute.events.jsontypes import JSON, JSONObject


def outline(name: str, body: JSONObject) -> list[tuple[str, str]]:
    """Role and words of each message of a body; its name and size first."""
    rows = [(name, size(len(dumps(body))))]
    if "system" in body:
        rows.append(("system", one_line(_text(body["system"]))))
    for message in body["messages"]:
        rows += [(message["role"], one_line(words)) for words in _words(message)]
    return rows


def _words(message: JSONObject) -> list[str]:
    if "tool_call_id" in message:
        return [f"{_text(message['content'])}  ({message['tool_call_id']})"]
    if "tool_calls" in message:
        calls = (call["function"]["name"] for call in message["tool_calls"])
        return [f"[tool_calls] {', '.join(calls)}"]
    content = message["content"]
    if isinstance(content, str):
        return [content]
    results = [_block(block) for block in content if block["type"] == "tool_result"]
    return results or [" ".join(_block(block) for block in content)]


def _block(block: JSONObject) -> str:
    kind = block["type"]
    if kind == "text":
        return str(block["text"])
    words = {"tool_use": "name", "tool_result": "content"}.get(kind)
    return f"[{kind}]" if words is None else f"[{kind}] {_text(block[words])}"


def _text(content: JSON) -> str:
    if isinstance(content, str):
        return content
    return " ".join(block["text"] for block in content if block["type"] == "text")

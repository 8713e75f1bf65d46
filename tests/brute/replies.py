"""Chat Completions bodies for run functions that need no SDK and no network."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from typing import Any

from brute.events.jsontypes import JSONObject

_ids = count()


def chat(text: str | None = None, *calls: tuple[str, JSONObject], **choice: Any) -> JSONObject:
    """A whole reply: a text, and calls as (name, arguments)."""
    message: JSONObject = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = [
            {
                "id": f"call_{next(_ids)}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)},
            }
            for name, arguments in calls
        ]
    finish = choice.pop("finish", "tool_calls" if calls else "stop")
    return {
        "id": f"chatcmpl-{next(_ids)}",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-x",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    }


def chunks(*texts: str, finish: str | None = "stop") -> Iterator[JSONObject]:
    """A streamed reply; `finish=None`: the stream ends without saying it is done."""
    head = {"id": "chatcmpl-s", "object": "chat.completion.chunk", "created": 1, "model": "gpt-x"}
    for text in texts:
        delta = {"role": "assistant", "content": text}
        yield {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    if finish is not None:
        yield {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}

"""A log like one that a person would have: what the examples in the help are run against."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import brute
from brute.transports import OpenAI
from tests.brute.replies import chat, chunks

BODY: dict[str, Any] = {
    "model": "gpt-5",
    "messages": [
        {"role": "system", "content": "You help customers."},
        {"role": "user", "content": "Where is order 7?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "call_7",
                    "type": "function",
                    "function": {"name": "order", "arguments": '{"id": 7}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "call_7", "content": "shipped"},
    ],
    "tools": [
        {
            "type": "function",
            "function": {
                "name": "order",
                "description": "Look up an order.",
                "parameters": {"type": "object", "properties": {"id": {"type": "integer"}}},
                "strict": True,
            },
        }
    ],
    "temperature": 0.2,
}

MESSAGES = [
    {"role": "user", "content": "Hello"},
    {"role": "assistant", "content": "Hello! What can I do?"},
]


def search(city: str) -> dict[str, int]:
    """Count the hotels of a city."""
    return {"hits": len(city)}


def make(folder: Path) -> Path:
    """Make `brute.db` in a folder, and the files that the examples read. Returns its path."""
    (folder / "body.json").write_text(json.dumps(BODY, indent=2))
    (folder / "messages.jsonl").write_text("".join(json.dumps(m) + "\n" for m in MESSAGES))
    (folder / "prices.json").write_text('{"gpt-5": {"input": 1.25, "output": 10}}')
    db = folder / "brute.db"
    with brute.open(db) as log:
        trips(log)
        refund(log)
    return db


def trips(log: brute.Log) -> brute.Session:
    """Two turns: two calls at once, then an answer."""
    both = chat(None, ("search", {"city": "Kyoto"}), ("search", {"city": "Nara"}))
    for number, call in enumerate(both["choices"][0]["message"]["tool_calls"], 1):
        call["id"] = f"call_{number}"
    script = iter([both, chat("Kyoto has 5 hotels, Nara 4.")])

    @brute.run(OpenAI)
    def model(request: dict[str, Any]) -> Any:
        return next(script)

    session = log.start(id="trips", agent="trips")
    agent = brute.Agent(run=model, tools=[search], system="You plan trips.", model="gpt-5")
    agent(session, "Kyoto or Nara?")
    return session


def refund(log: brute.Log) -> brute.Session:
    """A turn whose stream was cut."""

    @brute.run(OpenAI)
    def model(request: dict[str, Any]) -> Any:
        return chunks("The refund is on its", finish=None)

    session = log.start(id="refund", agent="refund")
    session.user("I want my money back.")
    with contextlib.suppress(brute.StreamCut):
        session.complete(model, model="gpt-5-mini")
    return session

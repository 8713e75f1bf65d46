"""An agent that answers questions about the files of a folder, on OpenAI's own client.

    $ python examples/openai_agent.py "What is this project about?"
    $ python examples/openai_agent.py --session last "And how is it tested?"

It needs OPENAI_API_KEY. Every session is recorded in brute.db; `brute log last` shows it.
Stop it with ctrl-C wherever you like: `--session last` goes on from there.

examples/anthropic_agent.py is the same agent on Anthropic's client. Only the run function differs:
what stands between the two lines below.
"""

from __future__ import annotations

import argparse
import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

import openai

import brute
from brute.transports import OpenAI

# -- the run function: your SDK call, paired with the transport of its library ---------------------

KEY = "OPENAI_API_KEY"
SETTINGS: dict[str, Any] = {"model": "gpt-5"}


@cache
def client() -> openai.OpenAI:
    return openai.OpenAI()


@brute.run(OpenAI)
def ask(request: dict[str, Any]) -> Any:
    return client().chat.completions.create(
        **request, stream=True, stream_options={"include_usage": True}
    )


# -- everything else is the same for every library -------------------------------------------------


def list_files(pattern: str = "*") -> list[str]:
    """List the files of the folder whose names match a pattern such as `*.py` or `docs/**/*.md`."""
    root = Path.cwd()
    found = (path for path in sorted(root.glob(pattern)) if path.is_file())
    return [str(path.relative_to(root)) for path in found if ".git" not in path.parts][:200]


def read_file(name: str, first: int = 1, count: int = 200) -> str:
    """Read `count` lines of a text file of the folder, from line `first` on (1 is the top)."""
    path = (Path.cwd() / name).resolve()
    if not path.is_relative_to(Path.cwd()):
        raise PermissionError(f"{name} is outside of the folder")
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join(lines[first - 1 : first - 1 + count])


agent = brute.Agent(
    run=ask,
    tools=[list_files, read_file],
    system="You answer questions about the files of a folder. Look before you answer; be brief.",
    max_turns=20,
    **SETTINGS,
)


def main() -> int:
    parser = argparse.ArgumentParser(description="Ask about the files of this folder.")
    parser.add_argument("prompt", nargs="?", help="the question; none: go on where it stopped")
    parser.add_argument("--db", default=os.environ.get("BRUTE_DB", "brute.db"), help="the log")
    parser.add_argument("--session", help="go on with a session: its id, a part of it, or last")
    given = parser.parse_args()
    if KEY not in os.environ:
        print(f"{KEY} is not set, and this example calls the real API.", file=sys.stderr)
        return 2
    if given.prompt is None and given.session is None:
        parser.error("give a question, or a session to go on with")
    with brute.open(given.db) as log:
        session = log.session(given.session) if given.session else log.start(agent="files")
        try:
            reply = agent(session, given.prompt)
        except KeyboardInterrupt:
            print(f"stopped; --session {session.id} goes on", file=sys.stderr)
            return 130
        print(reply.text)
    return 0


if __name__ == "__main__":
    sys.exit(main())

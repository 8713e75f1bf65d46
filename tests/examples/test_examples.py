"""The two examples against the scripted server: they work, and they can be stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from difflib import unified_diff
from pathlib import Path
from typing import Literal, NamedTuple

import pytest

import brute
from brute.events.events import (
    ReplyInterrupted,
    RequestSent,
    StreamChunked,
    ToolCalled,
    ToolReturned,
)
from brute.testing import Call, Drip, Reply, ScriptedServer
from tests.brute.cli.process import heeding_ctrl_c
from tests.rooms import ROOT

EXAMPLES = ROOT / "examples"
SDKS = ("openai", "anthropic")


class Example(NamedTuple):
    """One of the examples, and the folder it works in."""

    sdk: Literal["openai", "anthropic"]
    folder: Path

    @property
    def db(self) -> Path:
        return self.folder / "brute.db"

    def command(self, *words: str) -> list[str]:
        return [sys.executable, str(EXAMPLES / f"{self.sdk}_agent.py"), *words]

    def environment(self, server: ScriptedServer | None) -> dict[str, str]:
        ours = {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("OPENAI", "ANTHROPIC"))}
        kept.pop("BRUTE_DB", None)
        if server is not None:
            name = self.sdk.upper()
            ours |= {f"{name}_API_KEY": "any", f"{name}_BASE_URL": server.base_url(self.sdk)}
        return {**kept, **ours}

    def run(self, server: ScriptedServer | None, *words: str) -> subprocess.CompletedProcess[str]:
        """Run it to its end."""
        return subprocess.run(
            self.command(*words),
            cwd=self.folder,
            env=self.environment(server),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def start(self, server: ScriptedServer, *words: str) -> subprocess.Popen[str]:
        """Start it."""
        with heeding_ctrl_c():
            return subprocess.Popen(
                self.command(*words),
                cwd=self.folder,
                env=self.environment(server),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )


@pytest.fixture(params=SDKS)
def example(request: pytest.FixtureRequest, tmp_path: Path) -> Example:
    (tmp_path / "README.md").write_text("# Orchard\n\nIt counts apples.\n")
    (tmp_path / "apples.py").write_text("def count() -> int:\n    return 3\n")
    with brute.open(tmp_path / "brute.db"):  # so that the test can watch it from the beginning
        pass
    return Example(request.param, tmp_path)


def entry_of(
    process: subprocess.Popen[str],
    db: Path,
    stands: Callable[[brute.Entry], bool],
    stream: str | None = None,
) -> brute.Entry:
    """Wait until the process has put an entry into the log for which that stands."""
    with brute.open(db, read_only=True) as log:
        for entry in log.events.follow(stream, timeout=20):
            if stands(entry):
                return entry
    process.kill()
    pytest.fail(f"it never came; the process said {process.communicate()}")


def calls_a_tool(entry: brute.Entry) -> bool:
    return isinstance(entry.event, ToolCalled)


def asks(entry: brute.Entry) -> bool:
    return isinstance(entry.event, RequestSent)


def says_something(entry: brute.Entry) -> bool:
    return isinstance(entry.event, StreamChunked) and "pples" in str(entry.event.frames)


def ended(process: subprocess.Popen[str]) -> str:
    """What the process says before it ends as one that was stopped by ctrl-C."""
    out, complaints = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in complaints
    return complaints


# -- what they are ---------------------------------------------------------------------------------


def test_the_examples_differ_in_the_run_function_only() -> None:
    texts = [(EXAMPLES / f"{sdk}_agent.py").read_text().splitlines() for sdk in SDKS]

    def others(text: list[str]) -> list[str]:
        """All but the run function, the imports it needs, and the names in the words on top."""
        start = next(n for n, line in enumerate(text) if line.startswith("# -- the run function"))
        end = next(n for n, line in enumerate(text) if line.startswith("# -- everything else"))
        top = next(n for n, line in enumerate(text) if line.startswith("from __future__"))
        imports = ("import openai", "import anthropic", "from brute.transports import")
        return [line for line in [*text[top:start], *text[end:]] if not line.startswith(imports)]

    a, b = map(others, texts)

    assert list(unified_diff(a, b, *SDKS, lineterm="")) == []
    assert len(a) > 50


# -- what they do ----------------------------------------------------------------------------------


def test_an_example_looks_before_it_answers(example: Example) -> None:
    script = [
        Reply(calls=[Call("list_files"), Call("read_file", {"name": "README.md"})]),
        Reply("It counts apples."),
        Reply("Three of them."),
    ]
    with ScriptedServer(script) as server:
        first = example.run(server, "What is it about?")
        second = example.run(server, "--session", "last", "And how many?")

        assert (first.returncode, first.stdout, first.stderr) == (0, "It counts apples.\n", "")
        assert (second.returncode, second.stdout) == (0, "Three of them.\n")
        assert (server.refusals, server.remaining) == ([], 0)
        assert all(request.body["stream"] for request in server.requests)
    with brute.open(example.db) as log:
        (info,) = log.sessions()
        session = log.session(info.id)
        said = [message.content for message in session.messages if message.role == "tool"]
        assert said[1] == "# Orchard\n\nIt counts apples."
        assert [m.content for m in session.messages if m.role == "user"] == [
            "What is it about?",
            "And how many?",
        ]
        assert [turn.finish for turn in session.turns] == ["tool_calls", "stop", "stop"]
        assert session.usage.total.output > 0


def test_a_tool_reads_nothing_outside_of_the_folder(example: Example) -> None:
    script = [Reply(calls=[Call("read_file", {"name": "../secret"})]), Reply("I may not.")]
    with ScriptedServer(script) as server:
        done = example.run(server, "Read the secret.")

    assert done.stdout == "I may not.\n"
    with brute.open(example.db) as log:
        (call,) = log.session("last").calls
        assert call.outcome == "error"


def test_without_a_key_an_example_says_so(example: Example) -> None:
    done = example.run(None, "What is it about?")

    name = f"{example.sdk.upper()}_API_KEY"
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"{name} is not set, and this example calls the real API.\n"


def test_a_log_may_be_named(example: Example) -> None:
    with ScriptedServer([Reply("Hello.")]) as server:
        assert example.run(server, "--db", "other.db", "Hello?").returncode == 0

    with brute.open(example.folder / "other.db", create=False) as log:
        assert len(log.sessions()) == 1


# -- how they are stopped --------------------------------------------------------------------------


def test_ctrl_c_in_a_tool_leaves_a_session_that_goes_on(example: Example) -> None:
    os.mkfifo(example.folder / "slow.txt")  # whoever reads it waits for a writer
    script = [
        Reply(calls=[Call("read_file", {"name": "slow.txt"}), Call("list_files")]),
        Reply("I was stopped."),
    ]
    with ScriptedServer(script) as server:
        process = example.start(server, "Read the slow file.")
        called = entry_of(process, example.db, calls_a_tool)
        with (example.folder / "slow.txt").open("w"):  # opens once the tool has opened it
            process.send_signal(signal.SIGINT)
        # Closed now: a signal that came just before the tool began to wait does not interrupt it.
        complaints = ended(process)
        goes_on = example.run(server, "--session", called.session, "What happened?")

        assert complaints == f"stopped; --session {called.session} goes on\n"
        assert (goes_on.returncode, goes_on.stdout) == (0, "I was stopped.\n")
        assert (server.refusals, server.remaining) == ([], 0)
    with brute.open(example.db) as log:
        session = log.session(called.session)
        returned = [e.event for e in session.entries if isinstance(e.event, ToolReturned)]
        assert [event.outcome for event in returned] == ["interrupted"]


def test_ctrl_c_in_a_stream_leaves_a_session_that_goes_on(example: Example) -> None:
    text = "Apples, apples, apples. " * 400
    # A piece in a quarter of a second: enough for several checkpoints, and never done in a test.
    script = [Drip(Reply(text), sizes=400, gap=0.1), Reply("I was saying: apples.")]
    with ScriptedServer(script) as server:
        process = example.start(server, "Talk!")
        sent = entry_of(process, example.db, asks)
        entry_of(process, example.db, says_something, f"{sent.session}~{sent.position}")
        process.send_signal(signal.SIGINT)
        complaints = ended(process)
        goes_on = example.run(server, "--session", "last", "Go on.")

        assert complaints == f"stopped; --session {sent.session} goes on\n"
        assert (goes_on.returncode, goes_on.stdout) == (0, "I was saying: apples.\n")
        assert (server.refusals, server.remaining) == ([], 0)
    with brute.open(example.db) as log:
        session = log.session(sent.session)
        cut = next(e.event for e in session.entries if isinstance(e.event, ReplyInterrupted))
        assert cut.message is not None
        assert cut.reason == "interrupted by the user"
        assert text.startswith(cut.message.content)
        assert 0 < len(cut.message.content) < len(text)


def test_a_kill_in_a_tool_leaves_a_session_that_goes_on(example: Example) -> None:
    os.mkfifo(example.folder / "slow.txt")
    script = [
        Reply(calls=[Call("read_file", {"name": "slow.txt"}), Call("list_files")]),
        Reply("I do not know what became of it."),
    ]
    with ScriptedServer(script) as server:
        process = example.start(server, "Read the slow file.")
        called = entry_of(process, example.db, calls_a_tool)
        with (example.folder / "slow.txt").open("w"):
            process.kill()
            process.communicate(timeout=30)
        goes_on = example.run(server, "--session", called.session)

        assert (goes_on.returncode, goes_on.stderr) == (0, "")
        assert (server.refusals, server.remaining) == ([], 0)
    with brute.open(example.db) as log:
        outcomes = [call.outcome for call in log.session(called.session).calls]
        assert outcomes == ["unknown", "ok"]

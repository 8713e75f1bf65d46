"""`brute demo` keeps its promises: everything it says is in the log that it leaves."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import Result

import brute
from brute.cli import demo, demo_story
from brute.cli.screen import width_of
from brute.testing import Refused
from tests.brute.cli import process

Run = Callable[..., Result]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The log of one telling, and what was told."""
    folder = tmp_path_factory.mktemp("demo")
    done = process.finished("--db", "demo.db", "demo", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    return folder / "demo.db", done.stdout


def test_the_demo_fits_two_screens_and_ten_seconds(told: tuple[Path, str]) -> None:
    lines = told[1].splitlines()

    assert len(lines) <= 80
    assert max(map(width_of, lines)) <= 100
    seconds = re.search(r"none refused\. ([\d.]+) s\.", told[1])
    assert seconds is not None
    assert float(seconds[1]) < 10


def test_the_demo_shows_every_event_of_its_log(told: tuple[Path, str]) -> None:
    db, text = told

    shown = [line for line in text.splitlines() if re.match(r" +\d+ /", line)]

    with brute.open(db, read_only=True) as log:
        session = log.session("demo")
        assert [int(line.split()[0]) for line in shown] == list(range(len(session.entries)))
        for line, row in zip(shown, session.timeline.rows, strict=True):
            assert line.split()[1:3] == [row.lane, row.kind]


def test_the_demo_has_done_what_it_says(told: tuple[Path, str]) -> None:
    with brute.open(told[0], read_only=True) as log:
        session, fork = log.session("demo"), log.session("demo-fork")

        origins = {m.origin.api for m in session.messages if m.role == "assistant" and m.origin}
        assert origins == {"openai.chat", "anthropic.messages"}
        assert any(message.reasoning for message in session.messages)
        outcomes = [call.outcome for call in session.calls]
        assert outcomes == ["ok", "ok", "ok", "unknown"]
        lanes = [row.lane for row in session.timeline.rows if row.kind == "result"]
        assert lanes[:2] == ["/1", "/0"], "the second call was answered first"
        assert [m.content for m in fork.messages if m.role == "user"] == [
            "Kyoto or Nara on Saturday?",
            "Or rather Osaka?",
        ]


def test_the_commands_that_the_demo_ends_with_work(told: tuple[Path, str]) -> None:
    db, text = told
    commands = [line.split()[1:] for line in text.splitlines() if line.startswith("   brute ")]

    assert len(commands) == 3
    for words in commands:
        assert process.finished(*words, cwd=db.parent).returncode == 0


def test_the_demo_can_be_told_twice_into_one_log(folder: Path, run: Run) -> None:
    assert run("demo", "--db", "demo.db").exit_code == 0
    again = run("demo", "--db", "demo.db")

    assert again.exit_code == 0
    assert "log demo-2" in again.stdout
    sessions = [
        json.loads(line)["session"]
        for line in run("ls", "--json", "--db", "demo.db").stdout.splitlines()
    ]
    assert sessions == ["demo-2-fork", "demo-2", "demo-fork", "demo"]


def test_the_demo_leaves_your_own_log_alone(
    db: Path, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = db.read_bytes()
    monkeypatch.setenv("BRUTE_DB", str(db))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    result = run("demo")

    assert result.exit_code == 0
    assert db.read_bytes() == before
    (made,) = tmp_path.glob("brute-demo-*/demo.db")
    assert f"brute --db {made} log demo" in result.stdout


def test_without_the_sdks_the_demo_says_what_to_install(
    folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        demo, "find_spec", lambda name: None if name == "anthropic" else find_spec(name)
    )

    result = run("demo")

    assert (result.exit_code, result.stdout) == (2, "")
    assert "anthropic is not installed here" in result.stderr
    assert "pip install 'brute-log[openai,anthropic]'" in result.stderr


def test_a_claim_that_fails_stops_the_demo(
    folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse_everything(api: str, body: object) -> Refused:
        return Refused("X1", "no")

    monkeypatch.setattr(demo_story, "provider_refusal", refuse_everything)

    result = run("demo", "--db", "demo.db")

    assert result.exit_code == 1
    assert "the demo failed: it is not so that OpenAI would take it" in result.stderr

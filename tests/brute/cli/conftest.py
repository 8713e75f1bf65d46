"""The command line on a sample log, in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from brute.cli.app import app
from tests.brute.cli import sample

Run = Callable[..., Result]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, which is the current one."""
    monkeypatch.chdir(tmp_path)
    for variable in ("BRUTE_DB", "BRUTE_TRACEBACK", "NO_COLOR"):
        monkeypatch.delenv(variable, raising=False)
    return tmp_path


@pytest.fixture
def db(folder: Path) -> Path:
    """The sample log, `brute.db` in the current folder."""
    return sample.make(folder)


@pytest.fixture
def run() -> Run:
    """`run("ls", "--json")`: what the command line says to these words."""

    def invoke(*words: str, **how: Any) -> Result:
        result = CliRunner().invoke(app, list(words), prog_name="brute", **how)
        assert "Traceback" not in result.output or "--traceback" in words, result.output
        return result

    return invoke


@pytest.fixture
def lines(run: Run) -> Callable[..., list[Any]]:
    """`lines("ls")`: the JSON objects that a verb gives, which must succeed."""

    def objects(*words: str) -> list[Any]:
        result = run(*words, "--json")
        assert result.exit_code == 0, result.output
        return [json.loads(line) for line in result.stdout.splitlines()]

    return objects

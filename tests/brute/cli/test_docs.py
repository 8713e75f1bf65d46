"""What the help and docs/reference/cli.md show is what happens."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import click
import pytest
from click.testing import Result

from brute.cli.app import VERBS, app
from tests.brute.cli import process
from tests.rooms import ROOT

Run = Callable[..., Result]

PAGE = ROOT / "docs" / "reference" / "cli.md"

COMMANDS: dict[str, click.Command] = {
    "": app,
    **{verb: import_module(f"brute.cli.{module}").command for verb, (module, _) in VERBS.items()},
}


@pytest.fixture
def shell(db: Path, run: Run) -> Callable[[str], str]:
    """`shell("brute ls | head -1")`: what the command prints, in the folder of the sample log."""
    bin_folder = db.parent / "bin"
    bin_folder.mkdir()
    script = bin_folder / "brute"
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m brute "$@"\n')
    script.chmod(0o755)
    (bin_folder / "python").symlink_to(sys.executable)

    def through_bash(line: str) -> str:
        path = f"{bin_folder}:{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-o", "errexit", "-c", line],
            env=process.environment(PATH=path),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    def here(line: str) -> str:
        if re.search(r"[|<>;&]", line):
            return through_bash(line)
        name, *words = shlex.split(line, comments=True)
        assert name == "brute"
        result = run(*words)
        assert result.exit_code == EXITS.get(line, 0), result.output
        return result.output

    return here


EXITS = {"brute show trips@99": 2}
"""Commands on the page that show an error."""


def examples(text: str) -> list[str]:
    return [line.strip().removeprefix("$ ") for line in text.splitlines() if "  $ " in line]


@pytest.mark.parametrize("verb", COMMANDS)
def test_every_example_of_the_help_works(verb: str, run: Run, shell: Callable[[str], str]) -> None:
    shown = examples(run(*verb.split(), "--help").stdout)

    assert shown
    for line in shown:
        assert shell(line), line


# -- the page --------------------------------------------------------------------------------------


def blocks(page: str) -> Iterator[tuple[str, str]]:
    """Each command of the page with what the page says that it prints."""
    for block in re.findall(r"^```console\n(.*?)^```", page, re.DOTALL | re.MULTILINE):
        for piece in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = piece.partition("\n")
            yield command, output


def pattern_of(shown: str) -> str:
    """What is shown as a pattern: `...` is anything in a line; alone in a line, any lines."""
    lines: list[str] = []
    for line in shown.rstrip("\n").split("\n"):
        if line == "...":
            lines.append(r"(?:.*\n)*?")
        else:
            lines.append(re.escape(line.rstrip()).replace(re.escape("..."), r".*?") + r" *\n")
    return "".join(lines)


def test_every_command_of_the_page_prints_what_the_page_shows(shell: Callable[[str], str]) -> None:
    shown = list(blocks(PAGE.read_text()))

    assert len(shown) > 15
    for command, output in shown:
        printed = shell(command)
        printed = printed if printed.endswith("\n") else printed + "\n"
        assert not output or re.fullmatch(pattern_of(output), printed), f"$ {command}\n{printed}"


def options_of(command: click.Command) -> set[str]:
    return {name for p in command.params for name in (*p.opts, *p.secondary_opts) if name[0] == "-"}


def test_the_page_names_every_verb_and_option_and_no_other() -> None:
    page = PAGE.read_text()
    known = {name for command in COMMANDS.values() for name in options_of(command)}
    named = set(re.findall(r"(?<![\w-])(--?[a-z][a-z-]*)", re.sub(r"\(?https?://\S+", "", page)))

    assert {verb for verb in VERBS if f"## `brute {verb}" not in page} == set()
    assert known - named - {"--version"} == set()
    assert named - known - {"--help", "-h"} - {"-m", "-1"} == set()

"""Imports run one way, load no vendor SDK, and are quick."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tests import rooms

MAY_IMPORT = {
    "brute.events": {"brute.events"},
    "brute.projections": {"brute.projections", "brute.events"},
    "brute.transports": {"brute.transports", "brute.events"},
    "brute": set(rooms.FOLDERS),
}

VENDOR_SDKS = {
    "anthropic",
    "google",
    "httpx",
    "httpx2",
    "mistralai",
    "ollama",
    "openai",
    "pydantic",
}

RUNTIME = {"click", "eventsourcing", "msgspec"}
"""The import names of the dependencies in pyproject.toml; each has the name of its distribution."""

OPTIONAL = {
    "brute.testing": {"hypothesis"},
    "brute.cli.demo_story": {"anthropic", "openai"},
}
"""What a part of brute may import besides. A vendor SDK never at module level, here neither."""

BUDGET_SECONDS = 0.25


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a fresh interpreter that finds brute in this checkout."""
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": str(rooms.ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    errors = [line for line in done.stderr.splitlines() if not line.startswith("import time:")]
    assert done.returncode == 0, "\n".join(errors)
    return done


def loaded(*arguments: str) -> set[str]:
    """Run a fresh interpreter and return the names of all modules it imported."""
    report = run("-X", "importtime", *arguments).stderr
    return set(re.findall(r"^import time: +\d+ \| +\d+ \| +(\S+)$", report, re.MULTILINE))


def test_imports_run_one_way() -> None:
    wrong = [
        i
        for i in rooms.imports()
        if i.root == "brute" and rooms.room(i.imported) not in MAY_IMPORT[rooms.room(i.importer)]
    ]

    assert wrong == []


def test_no_vendor_sdk_is_imported_at_module_level() -> None:
    assert [i for i in rooms.imports() if i.eager and i.root in VENDOR_SDKS] == []


def test_we_import_nothing_that_is_not_declared() -> None:
    known = set(sys.stdlib_module_names) | RUNTIME | {"brute"}

    undeclared = [
        i
        for i in rooms.imports()
        if i.root not in known
        and not any(
            f"{i.importer}.".startswith(f"{part}.") and i.root in extra
            for part, extra in OPTIONAL.items()
        )
    ]

    assert undeclared == []


def test_the_declared_dependencies_are_the_ones_we_import() -> None:
    declared = {
        re.split(r"[\s<>=!~;\[]", requirement)[0]
        for requirement in rooms.pyproject()["project"]["dependencies"]
    }

    assert declared == RUNTIME
    assert {i.root for i in rooms.imports()} >= RUNTIME


@pytest.mark.parametrize(
    "script",
    [
        "import brute",
        "import brute; [getattr(brute, name) for name in brute.__all__]",
        "import brute.transports as t; [getattr(t, name) for name in t.__all__]",
    ],
)
def test_no_vendor_sdk_is_loaded_by(script: str) -> None:
    names = loaded("-c", script)

    assert "brute" in names
    assert {name.partition(".")[0] for name in names} & (VENDOR_SDKS | {"hypothesis"}) == set()


@pytest.mark.parametrize(
    "arguments",
    [["-c", "import brute"], ["-c", "import brute.events"], ["-m", "brute", "--help"]],
    ids=["import brute", "import brute.events", "brute --help"],
)
def test_the_store_is_loaded_only_when_a_log_is_opened_not_by(arguments: list[str]) -> None:
    """`eventsourcing.domain` replaces a part of `dataclasses` for the whole process."""
    names = loaded(*arguments)

    assert "brute" in names
    assert {n for n in names if n.partition(".")[0] in {"eventsourcing", "hypothesis"}} == set()


def test_importing_brute_takes_no_longer_than_its_budget() -> None:
    script = (
        "import time; start = time.perf_counter(); import brute; print(time.perf_counter() - start)"
    )

    seconds = [float(run("-c", script).stdout) for _ in range(5)]

    assert min(seconds) <= BUDGET_SECONDS, seconds  # the least: the others are the neighbours' load

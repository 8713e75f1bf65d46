"""Run every benchmark and print one table: `python -m tests.bench [ROUNDS] [NAME...]`."""

from __future__ import annotations

import os
import platform
import sqlite3
import sys
from importlib import import_module
from pathlib import Path

from tests.bench.common import HEAD, WORKLOAD


def say(text: str) -> None:
    """Print it now."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main(arguments: list[str]) -> None:
    """Run the benchmarks whose names are given, or all."""
    rounds = next((int(a) for a in arguments if a.isdigit()), 5)
    wanted = [a for a in arguments if not a.isdigit()]
    there = sorted(file.stem for file in Path(__file__).parent.glob("bench_*.py"))
    say(
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, "
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, {rounds} rounds"
    )
    say(f"Workload: {WORKLOAD}\n\n{HEAD}")
    for name in there:
        if not wanted or name.removeprefix("bench_") in wanted:
            for line in import_module(f"tests.bench.{name}").lines(rounds):
                say(str(line))


if __name__ == "__main__":
    main(sys.argv[1:])

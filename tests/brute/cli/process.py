"""The command line as a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from tests.rooms import ROOT

COMMAND = [sys.executable, "-m", "brute"]


def environment(**more: str) -> dict[str, str]:
    """The environment in which a Python elsewhere finds this brute, installed or not."""
    return {**os.environ, "PYTHONPATH": str(ROOT), **more}


def start(*words: str, **how: Any) -> subprocess.Popen[str]:
    """Start `brute` with these words."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with heeding_ctrl_c():
        return subprocess.Popen([*COMMAND, *words], env=environment(), **{**pipes, **how})


@contextmanager
def heeding_ctrl_c() -> Generator[None]:
    """A process that is started here heeds ctrl-C.

    One in the background of a shell does not, and hands that down to the processes it starts.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def finished(*words: str, **how: Any) -> subprocess.CompletedProcess[str]:
    """Run `brute` with these words to its end."""
    return subprocess.run(
        [*COMMAND, *words],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        **how,
    )

"""The examples of docs/reference/projections.md run."""

from __future__ import annotations

import doctest
from pathlib import Path

from brute import projections
from brute.projections import calls, effects, messages, requests, timeline, turns, usage

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "projections.md"


def test_the_examples_of_the_page_run() -> None:
    result = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")

    assert result.attempted > 10
    assert result.failed == 0


def test_the_page_has_a_section_for_everything_that_is_public() -> None:
    page = PAGE.read_text(encoding="utf-8")

    for module in (calls, effects, messages, requests, timeline, turns, usage):
        assert f"\n## {module.__name__.rpartition('.')[2]}\n" in page
    assert [name for name in projections.__all__ if name not in page] == []

"""The reference page has every rule, as the rule books say it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from brute.transports import Anthropic, MessageTransport, OpenAI

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "transports.md"


def table(transport: type[MessageTransport]) -> str:
    """The rule book as the page has it."""
    lines = ["| rule | grade | what to do |", "|---|---|---|"]
    lines += (f"| `{r.id}` | {r.grade} | {r.now} |" for r in transport.rules.check)
    return "\n".join(lines)


@pytest.mark.parametrize("transport", [OpenAI, Anthropic])
def test_the_page_has_the_rule_book(transport: type[MessageTransport]) -> None:
    mark = re.escape(f"<!-- rules: {transport.__name__} -->")

    found = re.search(f"{mark}\n(.*?)\n<!-- end -->", PAGE.read_text(), re.DOTALL)

    assert found is not None
    assert found[1] == table(transport), "paste what table() gives"

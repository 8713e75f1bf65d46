"""The documentation runs: every python block of the README and of docs/."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from brute.testing import Call, Reply, ScriptedServer

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)#\s]+)\)")

TRIP = [
    Reply("I look.", calls=[Call("search", {"query": "Kyoto"})]),
    Reply("A temple, then a garden."),
    Reply("The deer park."),
    Reply("A temple, a garden, the deer."),
    Reply("A day well spent."),
    Reply("You are welcome."),
]


def blocks(page: Path) -> str:
    """The python of a page as one program, its lines where they stand on the page."""
    text = page.read_text()
    lines = [""] * (text.count("\n") + 1)
    for found in BLOCK.finditer(text):
        start = text.count("\n", 0, found.start(1))
        for offset, line in enumerate(found[1].splitlines()):
            lines[start + offset] = line
    return "\n".join(lines)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_the_python_of_a_page_runs_as_one_program(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = blocks(page)
    monkeypatch.chdir(tmp_path)
    with ScriptedServer(TRIP) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url("openai"))
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.base_url("anthropic"))
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
        exec(compile(program, str(page), "exec"), {"__name__": "page"})


@pytest.mark.parametrize("page", [*PAGES, ROOT / "ARCHITECTURE.md"], ids=lambda p: p.name)
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    targets = [t for t in LINK.findall(page.read_text()) if "://" not in t]

    assert [t for t in targets if not (page.parent / t).exists()] == []

"""The store in memory keeps the contract, and two opens are two logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from brute.events.errors import UsageError
from brute.events.log import EventLog
from tests.events.store_contract import Place, StoreContract, notes


class TestMemoryStore(StoreContract):
    def make_place(self, folder: Path) -> Place:
        return Place(":memory:", lasting=False)


@pytest.mark.parametrize("url", [":memory:", "sqlite://", "sqlite:///:memory:"])
def test_two_opens_are_two_logs(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with EventLog.open(url) as one, EventLog.open(url) as two:
        one.append("s", notes("a"), expect=-1)

        assert list(two.sessions()) == []
    assert list(tmp_path.iterdir()) == []


def test_a_new_log_cannot_be_for_reading_only() -> None:
    with pytest.raises(UsageError, match="empty"):
        EventLog.open(":memory:", read_only=True)

"""The store in a SQLite file."""

from __future__ import annotations

from pathlib import Path

from tests.events.store_contract import Place, StoreContract


class TestSQLiteStore(StoreContract):
    def make_place(self, folder: Path) -> Place:
        return Place(str(folder / "agent.db"))

"""Tracks the last version of each row, for audits."""

from __future__ import annotations

from isolang.observe.history.seen import Outcome, RowVersion, WrittenRow


class PresentRows:
    """The versions of rows that the database should have now, by table.

    Attributes:
        live: for each table, maps the last version of each row to the text of the row's key.
    """

    def __init__(self) -> None:
        self.live: dict[str, dict[str, str]] = {}
        # The versions replaced before their writers were seen to end.
        self._replaced: dict[str, set[str]] = {}
        self._possibly_live: dict[
            str, set[str]
        ] = {}  # versions of transactions with unknown outcomes

    def add_version(self, table: str, version: RowVersion) -> None:
        """Note that a version is in the database, unless it has already been replaced."""
        replaced = self._replaced.setdefault(table, set())
        if version.number in replaced:
            replaced.discard(version.number)
        else:
            self.live.setdefault(table, {})[version.number] = version.key

    def ended(self, outcome: Outcome, write: WrittenRow) -> None:
        """Update the current versions with a write of an ended transaction."""
        table, new, old = write.table.name, write.version, write.old
        if outcome == "info":
            named = {version.number for version in (new, old) if version is not None}
            self._possibly_live.setdefault(table, set()).update(named)
        elif outcome == "ok":
            if new is not None:
                self.add_version(table, new)
            if old is not None and self.live.setdefault(table, {}).pop(old.number, None) is None:
                self._replaced.setdefault(table, set()).add(old.number)

    def is_kept(self, table: str, number: str) -> bool:
        """Return whether a version is the last one of its row, as far as the history knows."""
        perhaps = self._possibly_live.get(table, set())
        return number in self.live.get(table, {}) and number not in perhaps

    def differences(self, table: str, there: set[str]) -> tuple[set[str], set[str]]:
        """Return the versions missing in the database, and the versions missing in the history."""
        live = self.live.get(table, {}).keys()
        perhaps = self._possibly_live.get(table, set())
        return set(live - there - perhaps), set(there - live - perhaps)

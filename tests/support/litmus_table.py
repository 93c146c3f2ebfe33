"""A folder of litmus histories, with one table of the expected verdicts."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

import pytest

from isolang import check, load_history, load_spec
from isolang.history import History
from isolang.language.classify.route import route
from isolang.language.meaning.core import Spec

Row = Mapping[str, str]


class LitmusTable:
    """Its columns are levels, and checks of its own.

    Attributes:
        folder: where the histories and ``expected.csv`` are.
        rows: by column: the ``history``, its ``anomaly`` if the table has that, and the verdicts.
        columns: those with verdicts.
    """

    def __init__(self, folder: Path, own: Mapping[str, str], include: str) -> None:
        """Read it.

        Args:
            folder: where it is.
            own: what ``acyclic`` is said of, by column.
            include: the fragment that these checks include.
        """
        self.folder, self._own, self._include = folder, own, include
        with (folder / "expected.csv").open(newline="", encoding="utf-8") as file:
            self.rows: list[Row] = list(csv.DictReader(file))
        self.columns = [c for c in self.rows[0] if c not in ("history", "anomaly")]

    @cached_property
    def specs(self) -> Mapping[str, Spec]:
        """What each column is judged by."""
        own = f'include "{self._include}"\nacyclic %s as own'
        return {c: load_spec(own % self._own[c] if c in self._own else c) for c in self.columns}

    def history(self, row: Row) -> History:
        """The history of a row."""
        return load_history(self.folder / f"{row['history']}.edn")

    def has_every_file(self) -> bool:
        """Whether each file has its row, and each row its file."""
        return {p.stem for p in self.folder.glob("*.edn")} == {row["history"] for row in self.rows}

    def check_by_relations(self, column: str) -> None:
        """The encoding of relations, which knows no automaton, has the verdicts of the table."""
        pytest.importorskip("pysat")
        way = route(self.specs[column])
        for row in self.rows:
            verdict = check(
                self.history(row), way, encoding="relational", solver="sat", certify=False
            )
            assert type(verdict).__name__.lower() == row[column], row["history"]

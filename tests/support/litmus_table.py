"""Reads a folder of litmus histories with a table of the expected verdicts."""

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
    """A table whose columns are levels and further checks, with a verdict for each history.

    Attributes:
        folder: the folder that contains the histories and ``expected.csv``.
        rows: for each history, its name (``history``), perhaps the ``anomaly``, and the verdict of
            each column.
        columns: the names of the columns that contain verdicts.
    """

    def __init__(self, folder: Path, own: Mapping[str, str], include: str) -> None:
        """Read the table of a folder.

        Args:
            folder: the folder that contains the histories and ``expected.csv``.
            own: for each column that is not a level, the expression that must be acyclic.
            include: the fragment of the language that these expressions include.
        """
        self.folder, self._own, self._include = folder, own, include
        with (folder / "expected.csv").open(newline="", encoding="utf-8") as file:
            self.rows: list[Row] = list(csv.DictReader(file))
        self.columns = [c for c in self.rows[0] if c not in ("history", "anomaly")]

    @cached_property
    def specs(self) -> Mapping[str, Spec]:
        """The specification of each column."""
        own = f'include "{self._include}"\nacyclic %s as own'
        return {c: load_spec(own % self._own[c] if c in self._own else c) for c in self.columns}

    def history(self, row: Row) -> History:
        """Load the history of a row."""
        return load_history(self.folder / f"{row['history']}.edn")

    def has_every_file(self) -> bool:
        """Return whether each file has a row and each row has a file."""
        return {p.stem for p in self.folder.glob("*.edn")} == {row["history"] for row in self.rows}

    def check_by_relations(self, column: str) -> None:
        """Check that the relational encoding, which uses no automaton, agrees with a column."""
        pytest.importorskip("pysat")
        way = route(self.specs[column])
        for row in self.rows:
            verdict = check(
                self.history(row), way, encoding="relational", solver="sat", certify=False
            )
            assert type(verdict).__name__.lower() == row[column], row["history"]

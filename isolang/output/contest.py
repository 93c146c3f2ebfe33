"""What came of a run of ``isocheck solvers``, as its JSON and its tables show it."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class Row(Struct, frozen=True, kw_only=True):
    """What came of a run.

    Attributes:
        history: as named on the command line.
        transactions: of the history; null if it was not read.
        spec: as named on the command line.
        encoding: of the pair.
        solver: of the pair.
        prune_stage: of the pair.
        verdict: ``wrong``: the model is none, or the checker refused the proof.
        total: seconds from the pre-pass to the answer; null if there was none.
        prune: seconds for pruning.
        encode: seconds for encoding.
        solve: seconds for solving.
        variables: of the formula.
        clauses: of the formula.
        edges: of the formula, or of the event graph after pruning.
        conflicts: of the search.
        peak_mb: the most megabytes that the process had at a time.
        detail: how far the verdict is certified, or why there is none.
    """

    history: str
    transactions: int | None = None
    spec: str
    encoding: str
    solver: str
    prune_stage: str | None = None
    verdict: Literal["valid", "invalid", "unknown", "wrong", "error", "not installed"]
    total: float | None = None
    prune: float | None = None
    encode: float | None = None
    solve: float | None = None
    variables: float | None = None
    clauses: float | None = None
    edges: float | None = None
    conflicts: float | None = None
    peak_mb: float | None = None
    detail: str = ""

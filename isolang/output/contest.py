"""Defines the result of one run by ``isocheck solvers``, for its JSON and its tables."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class ContestRow(Struct, frozen=True, kw_only=True):
    """The result of one run.

    Attributes:
        history: the history, as named on the command line.
        transactions: the number of transactions in the history; null if it was not read.
        spec: the spec, as named on the command line.
        encoding: the encoding.
        solver: the solver.
        prune_stage: the stage of pruning.
        verdict: the verdict; ``wrong`` if the solver's model is not a model, or the checker
            rejected the proof.
        total: seconds on the clock from the pre-pass to the answer; null if there was no answer.
        cpu: seconds of processor time for the same; null if there was no answer.
        cpu_low: the least of these in all runs of the pair on the history.
        cpu_high: the most of these.
        runs: the number of these runs. The row is that of the run with the median.
        prune: seconds for pruning.
        encode: seconds for encoding.
        solve: seconds for solving.
        variables: the number of variables in the formula.
        clauses: the number of clauses in the formula.
        edges: the number of edges in the formula, or in the event graph after pruning.
        conflicts: the number of conflicts in the search.
        peak_mb: the peak memory of the process in megabytes.
        detail: how far the verdict is certified, or why the verdict is missing.
    """

    history: str
    transactions: int | None = None
    spec: str
    encoding: str
    solver: str
    prune_stage: str | None = None
    verdict: Literal["valid", "invalid", "unknown", "wrong", "error", "not installed"]
    total: float | None = None
    cpu: float | None = None
    cpu_low: float | None = None
    cpu_high: float | None = None
    runs: int = 0
    prune: float | None = None
    encode: float | None = None
    solve: float | None = None
    variables: float | None = None
    clauses: float | None = None
    edges: float | None = None
    conflicts: float | None = None
    peak_mb: float | None = None
    detail: str = ""

"""Encodings that are wrong on purpose, each in one way, for the tests of cross-checking."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from isolang.encodings import one_variable
from isolang.encodings.formula import Formula
from isolang.encodings.registry import Encoding
from isolang.problem.polygraph import Polygraph


def forgets(polygraph: Polygraph, *, until: float | None = None) -> Formula:
    """Without every edge that a read of the initial state adds: it accepts too much."""
    formula = one_variable.encode(polygraph, until=until)
    native = polygraph.problem.native
    initial = formula.choice[native.writer_txn[polygraph.choice_writer] == native.n]
    kept = (formula.edges[:, 2] == 0) | ~np.isin(formula.edges[:, 2], initial)
    return replace(formula, encoding="forgets", edges=formula.edges[kept])


def invents(polygraph: Polygraph, *, until: float | None = None) -> Formula:
    """With ``wr`` edges in both directions where a reader writes, too: it refuses too much."""
    formula = one_variable.encode(polygraph, until=until)
    native = polygraph.problem.native
    writes = set(native.writer_txn.tolist())
    wrong = formula.edges[:0]
    for choice, read in zip(formula.choice.tolist(), polygraph.choice_read.tolist(), strict=True):
        if int(native.read_txn[read]) in writes:
            there = formula.edges[formula.edges[:, 2] == choice]
            wrong = np.concatenate([wrong, there[:1][:, [1, 0, 2]]])
    return replace(
        formula, encoding="invents", edges=np.concatenate([formula.edges, wrong]).astype(np.int32)
    )


BROKEN = {
    name: Encoding(name=name, makers={"acyclicity": f"broken_encodings:{name}"}, source="nobody")
    for name in ("forgets", "invents")
}

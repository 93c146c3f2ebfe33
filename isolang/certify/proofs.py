"""The four kinds of proof for a verdict: witness, refutation, relations and exhaustion.

A proof is plain data, produced by engines and stored in certificate files. Other modules check it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

from isolang.arrays import int32_column, int64_column

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from isolang.certify.steps import Step
    from isolang.history.history import History
    from isolang.language.meaning.core import Spec


class Witness(Struct, frozen=True, eq=False):
    """The proof that a history is valid: the source of each read, and the version orders.

    Attributes:
        source: for each operation, the transaction it reads from (T0 has number n) if it is an
            external read by an included transaction, otherwise -1. An int32 column.
        order_start: for each key, the index of its first writer in ``order_txn``; a last entry
            marks the end of ``order_txn``. An int64 column.
        order_txn: the included writers of each key in version order, without T0. An int32 column.
        commits: the included transactions in the order of their COMMITs, an int32 column; ``None``
            if no set-read is implicit.
        seen: for each predicate read, the number of transactions at the start of ``commits`` whose
            writes the read sees; -1 if the read's rows are not judged. An int64 column; ``None`` if
            no set-read is implicit.
    """

    source: NDArray[np.int32]
    order_start: NDArray[np.int64]
    order_txn: NDArray[np.int32]
    commits: NDArray[np.int32] | None = None
    seen: NDArray[np.int64] | None = None

    @classmethod
    def of(
        cls,
        source: Sequence[int] | NDArray[np.integer[Any]],
        order_start: Sequence[int] | NDArray[np.integer[Any]],
        order_txn: Sequence[int] | NDArray[np.integer[Any]],
        commits: Sequence[int] | NDArray[np.integer[Any]] | None = None,
        seen: Sequence[int] | NDArray[np.integer[Any]] | None = None,
    ) -> Witness:
        """Make a witness from sequences of integers.

        Raises:
            OverflowError: if a number is too large for its column.
        """
        return cls(
            int32_column(source),
            int64_column(order_start),
            int32_column(order_txn),
            None if commits is None else int32_column(commits),
            None if seen is None else int64_column(seen),
        )


class Refutation(Struct, frozen=True):
    """The proof that a history is invalid: steps that derive clauses, up to the empty clause."""

    steps: tuple[Step, ...]

    @classmethod
    def of(cls, steps: Sequence[Any]) -> Refutation:
        """Make a refutation from steps in their plain form, as stored in certificate files.

        Raises:
            CertificateRejected: if an element of ``steps`` does not have the form of a step.
        """
        from isolang.certify.steps import parse_step

        return cls(tuple(parse_step(step) for step in steps))

    @classmethod
    def of_engine(cls, steps: Sequence[Any], checks: Sequence[str]) -> Refutation:
        """Make a refutation from the steps of the native engine, which numbers the checks."""
        from isolang.certify.steps import step_of_engine

        return cls(
            tuple(
                step_of_engine(step, checks[step[1]] if step[0] == "cycle" else "")
                for step in steps
            )
        )

    def plain(self) -> list[tuple[Any, ...]]:
        """Return the steps in plain form, as passed to checkers and stored in certificate files."""
        return [step.plain() for step in self.steps]


class Relations(Struct, frozen=True):
    """The proof that a history is valid: the relations a specification quantifies over.

    Attributes:
        chosen: for each name in an ``exists`` and each key (-1 if the relation has no key), the
            pairs of the relation, in the form taken by ``check_relations``.
    """

    included: tuple[int, ...]
    chosen: Mapping[str, Mapping[int, tuple[tuple[int, int], ...]]]

    def plain(self) -> dict[str, Any]:
        """Return the relations in the form stored in certificate files."""
        chosen = {
            name: {str(key): [list(pair) for pair in pairs] for key, pairs in by_key.items()}
            for name, by_key in self.chosen.items()
        }
        return {"included": list(self.included), "chosen": chosen}

    @classmethod
    def parse(cls, raw: Any) -> Relations:
        """Make relations from the form stored in certificate files.

        Raises:
            KeyError, TypeError, ValueError: if ``raw`` does not have this form.
        """
        chosen = {
            text_of(name): {
                int(key): tuple(_pair(pair) for pair in pairs) for key, pairs in by_key.items()
            }
            for name, by_key in raw["chosen"].items()
        }
        return cls(tuple(numbers_of(raw["included"])), chosen)


class Exhaustion(Struct, frozen=True):
    """The proof that a history is invalid: no choice for a few transactions satisfies the spec."""

    transactions: tuple[int, ...]


Proof: TypeAlias = Witness | Refutation | Relations | Exhaustion
"""A proof of any kind; witnesses and relations prove *valid*, the other two *invalid*."""


def check_proof(history: History, spec: Spec, proof: Proof, seconds: float | None = None) -> None:
    """Check a proof by definition, with the plain Python checkers.

    Args:
        history: the history that the proof is about.
        spec: the lowered specification, before any theorem replaced it.
        proof: a proof of any kind.
        seconds: the time limit for checking an exhaustion; ``None`` for no limit.

    Raises:
        CertificateRejected: if the proof does not hold.
        NotCertifiedError: if the checkers cannot decide the proof for this specification or
            history.
    """
    from isolang.certify.exhaustion import check_exhaustion
    from isolang.certify.refutation import check_refutation
    from isolang.certify.relations import check_relations
    from isolang.certify.witness import check_witness

    if isinstance(proof, Witness):
        check_witness(
            history,
            spec,
            proof.source,
            proof.order_start,
            proof.order_txn,
            commits=proof.commits,
            seen=proof.seen,
        )
    elif isinstance(proof, Relations):
        check_relations(history, spec, proof.included, proof.chosen)
    elif isinstance(proof, Exhaustion):
        check_exhaustion(history, spec, proof.transactions, seconds=seconds)
    else:
        check_refutation(history, spec, proof.steps)


def numbers_of(raw: Any) -> list[int]:
    """Return a value read from a file if it is a list of integers.

    Raises:
        TypeError: if the value is not a list of integers.
    """
    if not isinstance(raw, list) or any(type(i) is not int for i in raw):
        raise TypeError("expected a list of whole numbers")
    return raw


def _pair(raw: Any) -> tuple[int, int]:
    first, second = numbers_of(raw)
    return first, second


def text_of(raw: Any) -> str:
    """Return a value read from a file if it is a string.

    Raises:
        TypeError: if the value is not a string.
    """
    if not isinstance(raw, str):
        raise TypeError(f"expected text, got {raw!r:.40}")
    return raw

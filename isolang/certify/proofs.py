"""The proofs of verdicts: a witness, a refutation, relations, an exhaustion.

Each is plain data, as the engines make it and files hold it; its checker is another module.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from isolang.certify.steps import Step
    from isolang.history.history import History
    from isolang.language.meaning.core import Spec


class Witness(Struct, frozen=True, eq=False):
    """The proof that a history is valid: the source of each read, and the version orders.

    Attributes:
        source: int32 per operation, the transaction that an external read of an included
            transaction reads from (T0 is number n), else -1.
        order_start: int64 per key, where its writers begin in ``order_txn``; one entry more than
            keys.
        order_txn: int32, the included writers of each key in version order, T0 left out.
        commits: int32, only where set-reads are implicit: the included transactions as they commit.
        seen: int64 per predicate read, only there: it sees the writes of the first so many of them;
            -1 if its rows are not judged.
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
        """A witness from any sequences of whole numbers.

        Raises:
            OverflowError: a number does not fit.
        """
        import numpy as np

        return cls(
            np.ascontiguousarray(source, dtype=np.int32),
            np.ascontiguousarray(order_start, dtype=np.int64),
            np.ascontiguousarray(order_txn, dtype=np.int32),
            None if commits is None else np.ascontiguousarray(commits, dtype=np.int32),
            None if seen is None else np.ascontiguousarray(seen, dtype=np.int64),
        )


class Refutation(Struct, frozen=True):
    """The proof that a history is invalid: clauses, each of which follows; the last is empty."""

    steps: tuple[Step, ...]

    @classmethod
    def of(cls, steps: Sequence[Any]) -> Refutation:
        """A refutation from plain steps.

        Raises:
            CertificateRejected: one of them is not a step.
        """
        from isolang.certify.steps import parse_step

        return cls(tuple(parse_step(step) for step in steps))

    def plain(self) -> list[tuple[Any, ...]]:
        """The steps as the checkers take them and files hold them."""
        return [step.plain() for step in self.steps]


class Relations(Struct, frozen=True):
    """The proof that a history is valid: the relations over which a specification quantifies.

    Attributes:
        included: the transactions that are included, T0 left out.
        chosen: per ``exists`` name and key (-1 if it has none) the pairs; ``check_relations`` says
            which, and how elements are numbered.
    """

    included: tuple[int, ...]
    chosen: Mapping[str, Mapping[int, tuple[tuple[int, int], ...]]]

    def plain(self) -> dict[str, Any]:
        """The form that files hold."""
        chosen = {
            name: {str(key): [list(pair) for pair in pairs] for key, pairs in by_key.items()}
            for name, by_key in self.chosen.items()
        }
        return {"included": list(self.included), "chosen": chosen}

    @classmethod
    def parse(cls, raw: Any) -> Relations:
        """Read what files hold.

        Raises:
            KeyError, TypeError, ValueError: it is something else.
        """
        chosen = {
            text_of(name): {
                int(key): tuple(_pair(pair) for pair in pairs) for key, pairs in by_key.items()
            }
            for name, by_key in raw["chosen"].items()
        }
        return cls(tuple(numbers_of(raw["included"])), chosen)


class Exhaustion(Struct, frozen=True):
    """The proof that a history is invalid: every choice for a few transactions violates it.

    Attributes:
        transactions: these few; the checker tries all choices on the part that they form.
    """

    transactions: tuple[int, ...]


Proof: TypeAlias = Witness | Refutation | Relations | Exhaustion
"""A witness or relations prove *valid*, a refutation or an exhaustion *invalid*."""


def check_proof(history: History, spec: Spec, proof: Proof, seconds: float | None = None) -> None:
    """Check a proof by definition, with the checkers in plain Python.

    Args:
        history: what it is about.
        spec: the lowered spec, as it was written.
        proof: what to check.
        seconds: after which an exhaustion is given up; ``None`` for no limit.

    Raises:
        CertificateRejected: it does not hold.
        NotCertifiedError: the spec or the history is beyond the checkers.
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
    """Return a value of a file, if it is a list of whole numbers.

    Raises:
        TypeError: it is something else.
    """
    if not isinstance(raw, list) or any(type(i) is not int for i in raw):
        raise TypeError("expected a list of whole numbers")
    return raw


def _pair(raw: Any) -> tuple[int, int]:
    first, second = numbers_of(raw)
    return first, second


def text_of(raw: Any) -> str:
    """Return a value of a file, if it is text.

    Raises:
        TypeError: it is something else.
    """
    if not isinstance(raw, str):
        raise TypeError(f"expected text, got {raw!r:.40}")
    return raw

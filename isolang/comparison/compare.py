"""Compares two specifications by deciding the implication in both directions.

A proof shows that an implication holds, and a history shows that it does not.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from msgspec import Struct

from isolang.comparison.effort import Effort
from isolang.comparison.normal import Normal, normal
from isolang.comparison.separate import Bounds, Separator, partial_relations, scope_of
from isolang.comparison.small import Small
from isolang.comparison.walks import ImplicationProof, may_overlap, prove_implication
from isolang.errors import IsolangError, OptionError
from isolang.history.history import History
from isolang.language.load import load_spec
from isolang.language.meaning.core import Spec
from isolang.verdict import Invalid

if TYPE_CHECKING:
    from isolang.verdict import Verdict

Relation: TypeAlias = Literal["equal", "stronger", "weaker", "incomparable", "unknown"]

Bounded: TypeAlias = Literal["equal", "stronger", "weaker"]

Progress: TypeAlias = Callable[[str], object]

TELLING: Final = 2
"""The fewest transactions that must have been searched for a bound to be worth stating: histories
of one transaction separate hardly any levels.
"""


MOST_SEARCHED: Final = 8
"""The largest number of transactions and of keys of searched histories."""


class DisagreementError(IsolangError):
    """Raised when the engine contradicts a history found by the search; this is a bug."""


class SeparatingHistory(Struct, frozen=True, kw_only=True):
    """A history that one specification allows and another forbids, confirmed by the engine.

    Attributes:
        small: the history as sessions of transactions; ``str()`` shows it in one line.
        smallest: whether the history is smallest among all such histories: by transactions, then by
            operations, then by keys.
        violation: the verdict of the specification that forbids the history.
        certified: whether the independent checker accepted the proofs of both verdicts.
    """

    small: Small
    smallest: bool
    violation: Invalid
    certified: bool

    @property
    def history(self) -> History:
        """The history in the form checked by the engine."""
        return self.violation.history

    def edn(self) -> str:
        """Return the text of the history in EDN.

        Raises:
            HistoryError: if EDN cannot express the history, for example because transactions of one
                session overlap.
        """
        import tempfile
        from pathlib import Path

        from isolang.history.writers import write_history

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "witness.edn"
            write_history(self.history, path, format="edn")
            return path.read_text(encoding="utf-8")


class Implication(Struct, frozen=True, kw_only=True):
    """The answer to the question whether one specification implies another.

    Attributes:
        proof: a proof of the implication; ``None`` if none was found.
        witness: a history that disproves the implication; ``None`` if none was found.
        searched: if neither was found, the number of transactions up to which no history disproves
            the implication.
        lacking: the relations that the searched histories have only in part, because only whole
            transactions have times, and each statement is a single operation.
        one_at_a_time: whether the result depends on sessions doing one thing at a time.
    """

    proof: ImplicationProof | None = None
    witness: SeparatingHistory | None = None
    searched: int = 0
    lacking: tuple[str, ...] = ()
    one_at_a_time: bool = False


class Comparison(Struct, frozen=True, kw_only=True):
    """The comparison of two specifications.

    Attributes:
        a: the first specification.
        b: the second specification.
        forth: whether ``a`` implies ``b``.
        back: whether ``b`` implies ``a``.
        bounds: the bounds of the searched histories.
        seconds: the time that the comparison took, in seconds.
    """

    a: Spec
    b: Spec
    forth: Implication
    back: Implication
    bounds: Bounds
    seconds: float

    @property
    def relation(self) -> Relation:
        """The relation of ``a`` to ``b``; unknown if a direction has neither proof nor history."""
        match self.forth, self.back:
            case Implication(proof=ImplicationProof()), Implication(proof=ImplicationProof()):
                return "equal"
            case Implication(proof=ImplicationProof()), Implication(witness=SeparatingHistory()):
                return "stronger"
            case Implication(witness=SeparatingHistory()), Implication(proof=ImplicationProof()):
                return "weaker"
            case Implication(witness=SeparatingHistory()), Implication(witness=SeparatingHistory()):
                return "incomparable"
        return "unknown"

    @property
    def bounded(self) -> tuple[Bounded, int] | None:
        """The relation of ``a`` to ``b`` on all histories up to a size, and that size.

        The size is a number of transactions. The value is ``None`` if both directions are decided,
        or if an undecided direction was searched completely only for fewer than two transactions.
        """
        directions = (self.forth, self.back)
        sizes = [one.searched for one in directions if one.proof is None and one.witness is None]
        if not sizes or min(sizes) < TELLING:
            return None
        apart = tuple(one.witness is not None for one in directions)
        return ("equal" if not any(apart) else "weaker" if apart[0] else "stronger"), min(sizes)

    @property
    def one_at_a_time(self) -> bool:
        """Return whether the relation depends on sessions doing one thing at a time."""
        return self.forth.one_at_a_time or self.back.one_at_a_time


def compare(
    a: Spec | str | os.PathLike[str],
    b: Spec | str | os.PathLike[str],
    *,
    transactions: int = 5,
    keys: int = 3,
    overlap: bool = False,
    seconds: float | None = None,
    progress: Progress = lambda phase: None,
) -> Comparison:
    """Determine which of two specifications is stronger: which one allows fewer histories.

    A proof holds for histories of any size. Where there is none, a SAT solver searches all small
    histories for one that the first specification allows and the second forbids. The engine
    confirms such a history, and an independent checker certifies both verdicts.

    Args:
        a: the first specification: the name of a level, the path of a ``.iso`` file, or its text,
            as for ``load_spec``; or a result of ``load_spec``.
        b: the second specification.
        transactions: the largest number of transactions of a searched history.
        keys: the largest number of keys of a searched history.
        overlap: whether to search also histories whose sessions run overlapping transactions. If
            not, proofs may assume that sessions run one transaction at a time.
        seconds: the time limit for the search in seconds. The default limit is a number of steps,
            so that equal arguments give equal results.
        progress: a function called with the name of each phase when it begins.

    Returns:
        The comparison. Its ``relation`` says that ``a`` is ``stronger`` or ``weaker`` than ``b``,
        ``equal`` to it, ``incomparable`` with it, or that this is ``unknown``. ``forth`` says
        whether ``a`` implies ``b``, and ``back`` whether ``b`` implies ``a``: each has a ``proof``
        or, as ``witness``, a separating history.

    Raises:
        SpecError: if a specification cannot be loaded, has no check, or uses a relation that small
            histories lack.
        OptionError: if a bound is out of bounds.
        DisagreementError: if the engine does not confirm a history found by the search.

    >>> found = compare("ser", "si")
    >>> found.relation, found.back.witness.violation.violation.anomaly
    ('stronger', 'write skew')
    >>> print(found.back.witness.small)
    r(x,nil) w(y,1) || r(y,nil) w(x,2)
    """
    for name, bound in (("transactions", transactions), ("keys", keys)):
        if not 1 <= bound <= MOST_SEARCHED:
            raise OptionError(
                f"compare: {name}: out of bounds (got {bound}, expected 1 to {MOST_SEARCHED})"
            )
    bounds = Bounds(transactions=transactions, keys=keys, overlap=overlap)
    start = time.perf_counter()
    first, second = (spec if isinstance(spec, Spec) else load_spec(spec) for spec in (a, b))
    sides = normal(first), normal(second)
    directions: list[Implication] = []
    effort = Effort(seconds=seconds)
    for stronger, weaker in (sides, sides[::-1]):
        progress(f"{stronger.spec.name} implies {weaker.spec.name}?")
        share = effort.for_next() if directions else effort.for_first_of_two()
        directions.append(
            decide_implication(stronger, weaker, bounds=bounds, effort=share, progress=progress)
        )
    return Comparison(
        a=first,
        b=second,
        forth=directions[0],
        back=directions[1],
        bounds=bounds,
        seconds=time.perf_counter() - start,
    )


def decide_implication(
    stronger: Normal,
    weaker: Normal,
    *,
    bounds: Bounds,
    effort: Effort | None = None,
    progress: Progress = lambda phase: None,
) -> Implication:
    """Determine whether one specification implies another, by a proof or a separating history."""
    proof = prove_implication(stronger, weaker, one_at_a_time=not bounds.overlap)
    if proof is not None:
        return Implication(proof=proof, one_at_a_time=proof.one_at_a_time)
    effort = effort or Effort()
    done = 0
    for size in range(1, bounds.transactions + 1):
        progress(f"{size} transactions")
        scope = scope_of((stronger, weaker), bounds, size)
        try:
            found = Separator(weaker, scope).smallest(stronger, effort)
        except TimeoutError:
            break
        if found is not None:
            small, least = found
            return Implication(
                witness=confirm_history(small, stronger.spec, weaker.spec, smallest=least)
            )
        done = size
    return Implication(
        searched=done,
        lacking=partial_relations((stronger, weaker)),
        one_at_a_time=not bounds.overlap and may_overlap((stronger, weaker)),
    )


def confirm_history(
    small: Small, allows: Spec, forbids: Spec, *, smallest: bool
) -> SeparatingHistory:
    """Have the engine confirm that one specification allows a history and another forbids it.

    Raises:
        DisagreementError: if the engine's verdict for one of the specifications differs.
    """
    history = small.history(f"{allows.name}-not-{forbids.name}")
    good, bad = _certified_verdict(history, allows), _certified_verdict(history, forbids)
    if good.outcome != "valid" or not isinstance(bad, Invalid):
        msg = (
            f"{small}: should be allowed by {allows.name} (got {good.outcome}) and forbidden by "
            f"{forbids.name} (got {bad.outcome}); this is a bug"
        )
        raise DisagreementError(msg)
    certified = good.certified and bad.certified
    return SeparatingHistory(small=small, smallest=smallest, violation=bad, certified=certified)


def _certified_verdict(history: History, spec: Spec) -> Verdict:
    from isolang.language.classify.route import route
    from isolang.limits import Deadline, default_memory, memory_cap
    from isolang.options import Options
    from isolang.pipeline import decide

    with memory_cap(default_memory()):
        return decide(history, route(spec), Deadline(), Options(), lambda phase: None)

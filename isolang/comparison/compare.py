"""Two specifications: each one implied by the other by proof, or not by a witness."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

from isolang.comparison.effort import Effort
from isolang.comparison.normal import Normal, normal
from isolang.comparison.separate import Bounds, Separator, lacking, scope_of
from isolang.comparison.small import Small
from isolang.comparison.walks import Implication, implication, may_overlap
from isolang.errors import IsolangError

if TYPE_CHECKING:
    from isolang.history.history import History
    from isolang.language.meaning.core import Spec
    from isolang.verdict import Invalid, Verdict

Relation: TypeAlias = Literal["equal", "stronger", "weaker", "incomparable", "unknown"]

Bounded: TypeAlias = Literal["equal", "stronger", "weaker"]

Progress: TypeAlias = Callable[[str], object]


class DisagreementError(IsolangError):
    """The engine does not confirm what the search found: a bug."""


class Witness(Struct, frozen=True, kw_only=True):
    """A history that one specification allows and another one forbids, confirmed by the engine.

    Attributes:
        small: the history.
        smallest: whether there is none with fewer transactions, then operations, then keys.
        violation: the verdict of the specification that forbids it.
        certified: whether the independent checker accepted both verdicts.
    """

    small: Small
    smallest: bool
    violation: Invalid
    certified: bool

    @property
    def history(self) -> History:
        """The history as the engine has judged it."""
        return self.violation.history

    def edn(self) -> str:
        """The history as a file.

        Raises:
            HistoryError: EDN cannot express it; where transactions of a session overlap, say.
        """
        import tempfile
        from pathlib import Path

        from isolang.history.writers import write_history

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "witness.edn"
            write_history(self.history, path, format="edn")
            return path.read_text(encoding="utf-8")


class Half(Struct, frozen=True, kw_only=True):
    """Whether one specification implies another.

    Attributes:
        proof: that it does.
        witness: that it does not.
        searched: where there is neither: there is no witness of up to this many transactions.
        lacking: relations of which the histories that were looked at have only what times of whole
            transactions, and statements of one operation, say.
        one_at_a_time: whether this is known only where sessions do one thing at a time.
    """

    proof: Implication | None = None
    witness: Witness | None = None
    searched: int = 0
    lacking: tuple[str, ...] = ()
    one_at_a_time: bool = False


class Comparison(Struct, frozen=True, kw_only=True):
    """What is known of two specifications.

    Attributes:
        a: the one.
        b: the other.
        forth: whether ``a`` implies ``b``.
        back: whether ``b`` implies ``a``.
        bounds: how far was looked.
        seconds: how long it took.
    """

    a: Spec
    b: Spec
    forth: Half
    back: Half
    bounds: Bounds
    seconds: float

    @property
    def relation(self) -> Relation:
        """What ``a`` is to ``b``; unknown unless both halves are proved or witnessed."""
        match self.forth, self.back:
            case Half(proof=Implication()), Half(proof=Implication()):
                return "equal"
            case Half(proof=Implication()), Half(witness=Witness()):
                return "stronger"
            case Half(witness=Witness()), Half(proof=Implication()):
                return "weaker"
            case Half(witness=Witness()), Half(witness=Witness()):
                return "incomparable"
        return "unknown"

    @property
    def bounded(self) -> tuple[Bounded, int] | None:
        """What an unknown relation is on all histories of up to so many transactions."""
        halves = (self.forth, self.back)
        sizes = [h.searched for h in halves if h.proof is None and h.witness is None]
        if not sizes or not min(sizes):
            return None
        apart = tuple(half.witness is not None for half in halves)
        return ("equal" if not any(apart) else "weaker" if apart[0] else "stronger"), min(sizes)

    @property
    def one_at_a_time(self) -> bool:
        """Whether the relation is known only where sessions do one thing at a time."""
        return self.forth.one_at_a_time or self.back.one_at_a_time


def compare(
    a: Spec,
    b: Spec,
    *,
    bounds: Bounds = Bounds(),  # noqa: B008 - frozen
    seconds: float | None = None,
    progress: Progress = lambda phase: None,
) -> Comparison:
    """Find out which of two specifications is stronger.

    Args:
        a: of ``load_spec``.
        b: likewise.
        bounds: how far to look for a witness.
        seconds: for both halves; by default what they take is counted.
        progress: called with what is done now.

    Raises:
        SpecError: one of them has no check, or speaks of what small histories do not have.
        DisagreementError: the engine does not confirm a witness.
    """
    start = time.perf_counter()
    one, other = normal(a), normal(b)
    halves: list[Half] = []
    effort = Effort(seconds=seconds)
    for stronger, weaker in ((one, other), (other, one)):
        progress(f"{stronger.spec.name} implies {weaker.spec.name}?")
        share = effort.another() if halves else effort.half()
        halves.append(half(stronger, weaker, bounds=bounds, effort=share, progress=progress))
    return Comparison(
        a=a,
        b=b,
        forth=halves[0],
        back=halves[1],
        bounds=bounds,
        seconds=time.perf_counter() - start,
    )


def half(
    stronger: Normal,
    weaker: Normal,
    *,
    bounds: Bounds,
    effort: Effort | None = None,
    progress: Progress = lambda phase: None,
) -> Half:
    """Whether one specification implies another; see :func:`compare`."""
    proof = implication(stronger, weaker, one_at_a_time=not bounds.overlap)
    if proof is not None:
        return Half(proof=proof, one_at_a_time=proof.one_at_a_time)
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
            return Half(witness=confirmed(small, stronger.spec, weaker.spec, smallest=least))
        done = size
    return Half(
        searched=done,
        lacking=lacking((stronger, weaker)),
        one_at_a_time=not bounds.overlap and may_overlap((stronger, weaker)),
    )


def confirmed(small: Small, allows: Spec, forbids: Spec, *, smallest: bool) -> Witness:
    """The witness, with the verdicts of the engine, certified.

    Raises:
        DisagreementError: they are others.
    """
    from isolang.verdict import Invalid

    history = small.history(f"{allows.name}-not-{forbids.name}")
    good, bad = _judged(history, allows), _judged(history, forbids)
    if good.outcome != "valid" or not isinstance(bad, Invalid):
        msg = (
            f"{small}: should be allowed by {allows.name} (got {good.outcome}) and forbidden by "
            f"{forbids.name} (got {bad.outcome}); this is a bug"
        )
        raise DisagreementError(msg)
    certified = good.certified and bad.certified
    return Witness(small=small, smallest=smallest, violation=bad, certified=certified)


def _judged(history: History, spec: Spec) -> Verdict:
    from isolang.language.classify.route import route
    from isolang.limits import Deadline, default_memory, memory_cap
    from isolang.options import Options
    from isolang.pipeline import decide

    with memory_cap(default_memory()):
        return decide(history, route(spec), Deadline(), Options(), lambda phase: None)

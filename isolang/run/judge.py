"""The verdict on a recorded run: on the whole saved file, with its evidence beside it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from isolang.run.operation import DELETED
from isolang.run.state import Run
from isolang.run.target import Target

if TYPE_CHECKING:
    from isolang.history.history import History
    from isolang.verdict import Invalid, Verdict

_LEVEL: Final = 10.0  # seconds for each level of the library
_SHOWN: Final = 12  # statements of a transaction


class Judged(Struct, frozen=True, kw_only=True):
    """A run and what is to be said about it.

    Attributes:
        recorded: the run.
        verdict: by what the level claims.
        certificate: where it was saved; ``None`` if there is none.
        minimal: where the smallest part that is still invalid was saved; ``None`` also where it has
            a part of a predicate read, which no file can say.
        strongest: the strongest levels of the library that the history satisfies.
        statements: of each transaction of the counterexample, what was sent, by its name.
        anomaly: of a violation, its name.
        first: the place of the counterexample's first transaction in the history, from 1; 0 if
            there is none.
    """

    recorded: Run
    verdict: Verdict
    certificate: Path | None = None
    minimal: Path | None = None
    strongest: tuple[str, ...] = ()
    statements: Mapping[str, tuple[str, ...]] = {}
    anomaly: str = ""
    first: int = 0


def judge(
    recorded: Run,
    target: Target,
    *,
    levels: bool = True,
    level_seconds: float = _LEVEL,
    smallest: bool = True,
) -> Judged:
    """Judge a run, and save the certificate and the smallest part beside the history.

    Args:
        recorded: the run.
        target: its database, which says what was sent; it may be closed.
        levels: also find the strongest levels that held.
        level_seconds: for each level of the library.
        smallest: also look for the smallest part that is still invalid.

    Raises:
        IsolangError: nothing was recorded, or the level cannot be judged.
    """
    from isolang.api import check, load_history
    from isolang.language.classify.route import route
    from isolang.language.load import load_spec
    from isolang.verdict import Invalid, Valid

    history = load_history(recorded.path)
    chosen = route(load_spec(recorded.claims))
    verdict = check(history, chosen, timeout=recorded.settings.timeout)
    certificate = minimal = None
    statements: dict[str, tuple[str, ...]] = {}
    first = 0
    if isinstance(verdict, Valid | Invalid):
        certificate = verdict.certificate().save(recorded.path.parent)
    if isinstance(verdict, Invalid):
        minimal = _save_smallest(verdict, recorded) if smallest else None
        statements = _statements(verdict, history, recorded, target)
        first = 1 + min((t.number for t in verdict.violation.transactions), default=-1)
    return Judged(
        recorded=recorded,
        verdict=verdict,
        certificate=certificate,
        minimal=minimal,
        strongest=_strongest(verdict, recorded.claims, level_seconds) if levels else (),
        statements=statements,
        anomaly=verdict.violation.anomaly if isinstance(verdict, Invalid) else "",
        first=first,
    )


def _save_smallest(verdict: Invalid, recorded: Run) -> Path | None:
    from isolang.errors import HistoryError
    from isolang.history.writers import write_history
    from isolang.language.classify.route import route
    from isolang.minimal import minimise

    path = recorded.path.with_suffix(".minimal.edn")
    part = minimise(verdict, route(verdict.spec), seed=recorded.settings.seed)
    try:
        write_history(part, str(path), format="edn", renumber=True)
    except HistoryError:
        path.unlink(missing_ok=True)
        return None
    return path


def _strongest(verdict: Verdict, claims: str, seconds: float) -> tuple[str, ...]:
    """The strongest levels that held; what the level claims was found out already."""
    from isolang.language.hierarchy import IMPLIES, implied_by
    from isolang.levels import levels_of
    from isolang.options import Options
    from isolang.verdict import Valid

    found = levels_of(verdict.history, options=Options(timeout=seconds), simplest=False).strongest()
    if not isinstance(verdict, Valid) or claims not in IMPLIES:
        return found
    if any(claims in implied_by(name) for name in found):
        return found
    return tuple(dict.fromkeys((*(x for x in found if x not in implied_by(claims)), claims)))


def _statements(
    verdict: Invalid, history: History, recorded: Run, target: Target
) -> dict[str, tuple[str, ...]]:
    """What was sent in the transactions of a counterexample."""
    found = {}
    for view in verdict.violation.transactions:
        shown = []
        for name, key, value in (op[:3] for op in history.transaction(view.number).ops):
            said = target.statement(name, key, value)
            if name == "r":
                said += f"  -- {_result(value)}"
            shown.append(said)
        if len(shown) > _SHOWN:
            shown[_SHOWN - 1 :] = [f"-- and {len(shown) - _SHOWN + 1} more"]
        found[view.name] = (f"-- {recorded.level.says}", *shown)
    return found


def _result(value: object) -> str:
    if value == DELETED:
        return "no row"
    return "as loaded" if value is None else str(value)

"""Judges the whole saved history of a run, and saves the evidence next to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from isolang.run.judge.doubts import Doubt, doubts_of, too_little_of
from isolang.run.judge.lost_commits import lost_commits
from isolang.run.operation import DELETED
from isolang.run.play.state import Run
from isolang.run.target import Target

if TYPE_CHECKING:
    from isolang.history.history import History
    from isolang.run.play.live import LiveVerdict
    from isolang.verdict import Invalid, Valid, Verdict

_LEVELS: Final = 60_000_000  # the work for all levels of the library: some ten seconds
_SHOWN: Final = 12  # the most statements to show of a transaction


class Judged(Struct, frozen=True, kw_only=True):
    """A run with its verdict.

    Attributes:
        recorded: the run.
        verdict: the verdict by the specification that the level claims.
        certificate: the file of the certificate; ``None`` if none was saved.
        minimal: the file of the smallest part that is still invalid; ``None`` if there is none, or
            if a file cannot express the part because it has a part of a predicate read.
        smallest: the number of transactions of that part, and its anomaly, which may differ from
            the anomaly of the whole history.
        strongest: the strongest levels of the library that the history satisfies.
        statements: the statements that were sent for each transaction of the counterexample, by
            name.
        anomaly: the name of the violation's anomaly.
        first: the position of the counterexample's first transaction in the history, from 1; 0
            without a counterexample.
        doubts: reasons to trust the verdict less.
        lost: the commits that a kill lost.
        unsaved: the messages about files that could not be saved.
        all_levels: whether each requested level of the library was decided.
    """

    recorded: Run
    verdict: Verdict
    certificate: Path | None = None
    minimal: Path | None = None
    smallest: str = ""
    strongest: tuple[str, ...] = ()
    statements: Mapping[str, tuple[str, ...]] = {}
    anomaly: str = ""
    first: int = 0
    doubts: tuple[Doubt, ...] = ()
    lost: tuple[str, ...] = ()
    unsaved: tuple[str, ...] = ()
    all_levels: bool = True


def judge(
    recorded: Run,
    target: Target,
    *,
    levels: bool = True,
    smallest: bool = True,
    little: bool = True,
) -> Judged:
    """Judge a run, and save the certificate and the smallest part next to the history.

    Args:
        recorded: the run.
        target: the database of the run, which knows the sent statements; it may be closed.
        levels: whether to find the strongest satisfied levels.
        smallest: whether to search for the smallest part that is still invalid.
        little: whether to compute whether the history can violate the level at all.

    Raises:
        IsolangError: the history is empty, or the level cannot be judged.
    """
    from isolang.api import check, load_history
    from isolang.language.classify.route import route
    from isolang.language.load import load_spec
    from isolang.verdict import Invalid, Valid

    history = load_history(recorded.path)
    chosen = route(load_spec(recorded.claims))
    verdict = check(history, chosen, timeout=recorded.settings.timeout)
    doubts = doubts_of(recorded)
    certificate = minimal = None
    statements: dict[str, tuple[str, ...]] = {}
    first = 0
    unsaved: tuple[str, ...] = ()
    if isinstance(verdict, Valid | Invalid):
        certificate, unsaved = _save_certificate(verdict, recorded.path.parent)
    if isinstance(verdict, Invalid):
        statements = _statements(verdict, history, recorded, target)
        first = 1 + min((t.number for t in verdict.violation.transactions), default=-1)
    judged = Judged(
        recorded=recorded,
        verdict=verdict,
        certificate=certificate,
        minimal=minimal,
        statements=statements,
        anomaly=verdict.violation.anomaly if isinstance(verdict, Invalid) else "",
        first=first,
        doubts=doubts,
        unsaved=unsaved,
        lost=lost_commits(recorded.path) if recorded.may_lose_commits else (),
    )
    if isinstance(verdict, Invalid) and smallest:
        minimal, description, unsaved = _save_smallest(verdict, recorded)
        more = (*judged.unsaved, *unsaved)
        judged = replace(judged, minimal=minimal, smallest=description, unsaved=more)
    if little:
        judged = with_little(judged)
    return with_levels(judged) if levels else judged


def judge_watched(recorded: Run, found: LiveVerdict) -> tuple[tuple[Doubt, ...], Judged | None]:
    """Judge a run whose watch has judged its whole history, without a full check.

    Returns:
        The doubts; and for a violation, the verdict on the part that the watch has saved, which
        consists of the convicting transactions.

    Raises:
        IsolangError: the saved part cannot be read.
    """
    from isolang.api import check, load_history
    from isolang.errors import HistoryError
    from isolang.verdict import Invalid
    from isolang.watch.violation import NAME

    doubts = doubts_of(recorded)
    if found.outcome == "valid":
        few = (Doubt(text=found.little, grave=True),) if found.little else ()
        return (*doubts, *few), None
    history = load_history(Path(found.folder) / NAME)
    verdict = check(history, recorded.claims, timeout=recorded.settings.timeout)
    if not isinstance(verdict, Invalid):
        raise HistoryError(f"{found.folder}: the violation was not found again")
    certificate, unsaved = _save_certificate(verdict, recorded.path.parent)
    return doubts, Judged(
        recorded=recorded,
        verdict=verdict,
        certificate=certificate,
        anomaly=verdict.violation.anomaly,
        doubts=doubts,
        unsaved=unsaved,
    )


def with_little(judged: Judged) -> Judged:
    """Add a doubt if the history could not have violated the level; the work is limited."""
    doubt = too_little_of(judged.verdict)
    return judged if doubt is None else replace(judged, doubts=(*judged.doubts, doubt))


def with_levels(
    judged: Judged, *, progress: Callable[[str], object] = lambda phase: None
) -> Judged:
    """Add the strongest satisfied levels of the library; the work is limited.

    Args:
        judged: the run with its verdict.
        progress: a function that is called with the name of each level as its check begins.
    """
    strongest, all_known = _strongest(judged.verdict, judged.recorded.claims, progress)
    return replace(judged, strongest=strongest, all_levels=all_known)


def _save_certificate(
    verdict: Valid | Invalid, folder: Path
) -> tuple[Path | None, tuple[str, ...]]:
    """Save a certificate; return its file, and a message if it could not be saved."""
    from isolang.errors import IsolangError

    try:
        return verdict.certificate().save(folder), ()
    except (IsolangError, OSError) as error:
        return None, (f"the certificate could not be saved: {error}",)


def _save_smallest(verdict: Invalid, recorded: Run) -> tuple[Path | None, str, tuple[str, ...]]:
    """Save the smallest part; return its file, a description, and a message if that failed."""
    from isolang.errors import HistoryError
    from isolang.history.writers import write_history
    from isolang.language.classify.route import route
    from isolang.pipeline.minimal import anomaly_of, minimise

    path = recorded.path.with_suffix(".minimal.edn")
    way, seed = route(verdict.spec), recorded.settings.seed
    part = minimise(verdict, way, seed=seed)
    try:
        write_history(part, str(path), format="edn", renumber=True)
    except HistoryError as error:
        with suppress(OSError):
            path.unlink(missing_ok=True)
        if not isinstance(error.__context__, OSError):
            return None, "", ()  # the format cannot express it
        return None, "", (f"the smallest part could not be saved: {error}",)
    anomaly = anomaly_of(part, way, seed=seed)
    return path, f"{part.t0:,} transactions{': ' if anomaly else ''}{anomaly}", ()


def _strongest(
    verdict: Verdict, claims: str, progress: Callable[[str], object]
) -> tuple[tuple[str, ...], bool]:
    """Return the strongest satisfied levels, and whether all levels were decided.

    The verdict on the claimed level is already known, so a valid one is included.
    """
    from isolang.language.hierarchy import IMPLIES, implied_by
    from isolang.limits import Work
    from isolang.pipeline.levels import levels_of
    from isolang.verdict import Valid

    levels = levels_of(verdict.history, progress=progress, simplest=False, work=Work(_LEVELS))
    found = levels.strongest()
    satisfied = isinstance(verdict, Valid) and claims in IMPLIES
    if satisfied and not any(claims in implied_by(name) for name in found):
        weaker = implied_by(claims)
        found = tuple(dict.fromkeys((*(x for x in found if x not in weaker), claims)))
    known = all(one.standing != "unknown" for one in levels.levels.values())
    return found, known


def _statements(
    verdict: Invalid, history: History, recorded: Run, target: Target
) -> dict[str, tuple[str, ...]]:
    """Return the sent statements of the counterexample's transactions, by transaction name."""
    found = {}
    for view in verdict.violation.transactions:
        shown = []
        one = history.transaction(view.number)
        for operation in one.ops:
            name, key, value = (*operation, None)[:3]  # a delete has no value
            try:
                sent = target.statement(name, key, value)
            except Exception as error:  # the verdict does not need the statement
                sent = f"{name} {key} (its statement is not known: {type(error).__name__})"
            if name == "r":
                sent += f"  -- {_result(value)}"
            if name == "scan":
                sent += f"  -- {', '.join(f'{k}: {v}' for k, v in value.items()) or 'no row'}"
            shown.append(sent)
        if len(shown) > _SHOWN:
            shown[_SHOWN - 1 :] = [f"-- and {len(shown) - _SHOWN + 1} more"]
        found[view.name] = (f"-- {recorded.mix.how_set(one.level)}", *shown)
    return found


def _result(value: object) -> str:
    if value == DELETED:
        return "no row"
    return "as loaded" if value is None else str(value)

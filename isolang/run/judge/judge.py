"""Judges the saved history of a run as a whole, and saves the evidence next to the history."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from isolang.run.judge.doubts import Doubt, doubts_of, vacuity_doubt
from isolang.run.judge.lost_commits import lost_commits
from isolang.run.operation import DELETED
from isolang.run.play.state import COPY_LABEL, Run
from isolang.run.target import Target

if TYPE_CHECKING:
    from isolang.explain.violation import QueryView
    from isolang.history.history import History
    from isolang.run.play.live import LiveVerdict
    from isolang.verdict import Invalid, Valid, Verdict

_LEVELS_WORK: Final = 60_000_000  # the engine's work limit for all levels, about ten seconds
_MAX_STATEMENTS: Final = 12  # the maximum number of statements shown per transaction


class JudgedRun(Struct, frozen=True, kw_only=True):
    """A run together with its verdict.

    Attributes:
        verdict: the verdict on the history against the claimed specification.
        certificate: the file with the certificate; ``None`` if no certificate was saved.
        minimal: the file with the smallest part of the history that is still invalid. ``None`` if
            there is no such part, or if no file can express it because it contains only part of a
            predicate read.
        smallest: the number of transactions in the smallest part, and its anomaly, which may not be
            the anomaly of the whole history.
        strongest: the strongest levels in the library that the history satisfies; the weaker levels
            implied by them are left out.
        statements: for each transaction of the counterexample, by name, the statements sent by its
            client.
        anomaly: the name of the anomaly that violates the level; empty if there is none.
        first: the position in the history, counted from 1, of the earliest transaction of the
            counterexample; 0 if the history is not invalid.
        doubts: the reasons to trust the verdict less.
        lost: messages about commits that were lost when a server was killed or a standby promoted.
        unsaved: messages about the files that could not be saved.
        all_levels: whether every level in the library was decided within the work limit.
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


def judge_run(
    recorded: Run,
    target: Target,
    *,
    levels: bool = True,
    smallest: bool = True,
    little: bool = True,
) -> JudgedRun:
    """Judge a run; save the certificate and the smallest invalid part next to its history.

    Raises:
        IsolangError: the history is empty, or the level cannot be judged.
    """
    from isolang.api import check, load_history
    from isolang.language.classify.route import route
    from isolang.language.load import load_spec
    from isolang.verdict import Invalid, Valid

    # The clients of a run use what each read returned.
    history = load_history(recorded.path, superseded_reads="count")
    chosen = route(load_spec(recorded.claims))
    verdict = check(history, chosen, timeout=recorded.settings.timeout)
    doubts = doubts_of(recorded)
    certificate = None
    statements: dict[str, tuple[str, ...]] = {}
    first = 0
    unsaved: tuple[str, ...] = ()
    if isinstance(verdict, Valid | Invalid):
        certificate, unsaved = _save_certificate(verdict, recorded.path.parent)
    if isinstance(verdict, Invalid):
        statements = _statements(verdict, history, recorded, target)
        if recorded.settings.access != "any":  # with "any", the query's form is unknown
            verdict = _with_sent_queries(verdict, history, target)
        first = 1 + min((t.number for t in verdict.violation.transactions), default=-1)
    judged = JudgedRun(
        recorded=recorded,
        verdict=verdict,
        certificate=certificate,
        statements=statements,
        anomaly=verdict.violation.anomaly if isinstance(verdict, Invalid) else "",
        first=first,
        doubts=doubts,
        unsaved=unsaved,
        lost=lost_commits(recorded.path) if recorded.may_lose_commits else (),
    )
    if smallest:
        judged = with_smallest_part(judged)
    if little:
        judged = with_vacuity_doubt(judged)
    return with_strongest_levels(judged) if levels else judged


def judge_watched_run(
    recorded: Run, found: LiveVerdict
) -> tuple[tuple[Doubt, ...], JudgedRun | None]:
    """Judge a run by the watch's verdict on its whole history, without a full check.

    Returns:
        The doubts and, if the watch found a violation, the verdict on the part of the history that
        it saved: the transactions that violate the level. Without a violation, the second element
        is ``None``.

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
    history = load_history(Path(found.folder) / NAME, superseded_reads="count")
    verdict = check(history, recorded.claims, timeout=recorded.settings.timeout)
    if not isinstance(verdict, Invalid):
        raise HistoryError(f"{found.folder}: a second search did not find the violation again")
    certificate, unsaved = _save_certificate(verdict, recorded.path.parent)
    return doubts, JudgedRun(
        recorded=recorded,
        verdict=verdict,
        certificate=certificate,
        anomaly=verdict.violation.anomaly,
        doubts=doubts,
        unsaved=unsaved,
    )


def with_smallest_part(judged: JudgedRun) -> JudgedRun:
    """Return the run; if it is invalid, also find its smallest invalid part, and save it.

    If the work limit is reached, the part may be larger than the smallest one.
    """
    from isolang.verdict import Invalid

    if not isinstance(judged.verdict, Invalid):
        return judged
    minimal, description, unsaved = _save_smallest(judged.verdict, judged.recorded)
    more = (*judged.unsaved, *unsaved)
    return replace(judged, minimal=minimal, smallest=description, unsaved=more)


def with_vacuity_doubt(judged: JudgedRun) -> JudgedRun:
    """Return the run, with a doubt if its verdict is found vacuous within the work limit."""
    doubt = vacuity_doubt(judged.verdict)
    return judged if doubt is None else replace(judged, doubts=(*judged.doubts, doubt))


def with_strongest_levels(
    judged: JudgedRun, *, progress: Callable[[str], object] = lambda phase: None
) -> JudgedRun:
    """Return the run with the strongest levels it is found to satisfy within the work limit."""
    strongest, all_known = _strongest(judged.verdict, judged.recorded.claims, progress)
    return replace(judged, strongest=strongest, all_levels=all_known)


def _save_certificate(
    verdict: Valid | Invalid, folder: Path
) -> tuple[Path | None, tuple[str, ...]]:
    """Save a certificate, and return its file; if saving fails, return a message instead."""
    from isolang.errors import IsolangError

    try:
        return verdict.certificate().save(folder), ()
    except (IsolangError, OSError) as error:
        return None, (f"cannot save the certificate: {error}",)


def _save_smallest(verdict: Invalid, recorded: Run) -> tuple[Path | None, str, tuple[str, ...]]:
    """Save the smallest invalid part; return its file, a description, and a message on failure."""
    from isolang.errors import HistoryError
    from isolang.language.classify.route import route
    from isolang.pipeline.exported import export_part
    from isolang.pipeline.minimal import minimise

    path = recorded.path.with_suffix(".minimal.edn")
    way, seed = route(verdict.spec), recorded.settings.seed
    with suppress(OSError):
        path.unlink(missing_ok=True)
    try:
        found = export_part(minimise(verdict, way, seed=seed), way, seed=seed)
        found.save(path)
    except HistoryError as error:
        return None, "", (f"cannot save the smallest part: {error}",)
    size = f"{found.transactions:,} transaction{'' if found.transactions == 1 else 's'}"
    more = f"; read it with {found.reading}" if found.reading else ""
    return path, (f"{size}: {found.anomaly}" if found.anomaly else size) + more, ()


def _strongest(
    verdict: Verdict, claims: str, progress: Callable[[str], object]
) -> tuple[tuple[str, ...], bool]:
    """Return the strongest levels that the history satisfies, and whether all levels were decided.

    If the verdict is valid, the result implies the claimed level, even if the work limit was
    reached before that level was decided again.
    """
    from isolang.language.hierarchy import IMPLIES, implied_by
    from isolang.limits import Work
    from isolang.pipeline.levels import levels_of
    from isolang.verdict import Valid

    levels = levels_of(verdict.history, progress=progress, simplest=False, work=Work(_LEVELS_WORK))
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
    """Return the statements sent by the counterexample's transactions, by transaction name."""
    found = {}
    for view in verdict.violation.transactions:
        shown = []
        one = history.transaction(view.number)
        for operation in one.ops:
            name, key, value = (*operation, None)[:3]  # a delete has no value in the history
            try:
                sent = target.statement(name, key, value)
            except Exception as error:  # the verdict does not depend on the statement
                sent = f"{name} {key} (statement unknown: {type(error).__name__})"
            if name == "r":
                sent += f"  -- {_result_text(value)}"
            if name == "scan" and isinstance(value, Mapping):  # an aborted query has no rows
                sent += f"  -- {', '.join(f'{k}: {v}' for k, v in value.items()) or 'no row'}"
            shown.append(sent)
        if len(shown) > _MAX_STATEMENTS:
            shown[_MAX_STATEMENTS - 1 :] = [f"-- and {len(shown) - _MAX_STATEMENTS + 1} more"]
        copied = isinstance(one.label, str) and one.label.startswith(COPY_LABEL)
        how = (
            f"the rows of a {one.label}" if copied else recorded.mix.selecting_statement(one.level)
        )
        found[view.name] = (f"-- {how}", *shown)
    return found


def _with_sent_queries(verdict: Invalid, history: History, target: Target) -> Invalid:
    """Return the verdict, with the statements sent for the counterexample's queries."""
    predicates, of = history.columns.predicates, history.columns.statement_predicate

    def sent(query: QueryView) -> QueryView:
        number = -1 if query.statement < 0 else int(of[query.statement])
        if query.sent or number < 0:
            return query
        with suppress(Exception):  # the verdict does not depend on the statement
            return replace(query, sent=target.statement("scan", predicates[number], None))
        return query

    violation = verdict.violation
    queries = tuple(map(sent, violation.queries))
    return replace(verdict, violation=replace(violation, queries=queries))


def _result_text(value: object) -> str:
    if value == DELETED:
        return "no row"
    if value == {"value": None}:
        return "NULL"
    return "as loaded" if value is None else str(value)

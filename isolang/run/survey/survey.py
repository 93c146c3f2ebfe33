"""Surveys a database: plays every workload at every level, and counts the anomalies."""

from __future__ import annotations

import os
import traceback
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from isolang.errors import IsolangError, internal_error
from isolang.run.judge.judge import JudgedRun, judge_run
from isolang.run.play.level_mix import level_mix_of
from isolang.run.play.player import Player
from isolang.run.play.runner import Runner
from isolang.run.play.state import Run, RunState, nothing_committed
from isolang.run.settings import Settings
from isolang.run.target import Target, TargetError
from isolang.run.targets import target_named
from isolang.run.workloads import NAMES

if TYPE_CHECKING:
    from isolang.history.history import History

_MAX_PENDING: Final = 8  # the maximum number of runs awaiting a verdict while another is played
CELL_LENGTH_S: Final = 5.0
"""The default length in seconds of the run for one cell."""
ALL_WORKLOADS: Final = ("scripted", *NAMES)
"""The workloads that a survey plays by default."""

# The work limit for counting a history's anomalies. In addition to the engine's work, each anomaly
# counts as `_EACH` units, and `_PER_OPERATION` units for each operation in the history.
_COUNTING_WORK: Final = 15_000_000
_EACH, _PER_OPERATION = 50_000, 8


class Judging(Protocol):
    """The future result of judging a run, like a ``Future``."""

    def result(self) -> Cell:
        """Wait for the result, and return it."""


class Cell(Struct, frozen=True, kw_only=True):
    """The result of one workload at one level of a database.

    Attributes:
        level: the level of the database.
        claims: the specification to judge by.
        workload: the workload of the clients.
        outcome: the verdict; ``not played``: the database lacks a feature that the workload needs;
            ``failed``: the run or its check raised an error.
        certified: whether an independent checker accepted the verdict's evidence.
        reason: of an unknown outcome, or why there is none.
        strongest: the strongest satisfied levels of the library.
        anomalies: the counts of anomalies that serializability forbids, whether or not the level
            allows them: counterexamples no two of which share a transaction's reads.
        all_counted: whether the allowed work was enough to count them all.
        committed: committed transactions.
        aborted: aborted transactions.
        maybe: transactions of unknown outcome.
        abort_rate: aborted transactions as a share of all.
        throughput: committed transactions per second, with clients and database on one machine.
        history: the saved history.
        certificate: the saved certificate.
        minimal: the saved smallest part of a violation.
        page: the saved report, relative to the folder of the survey.
        doubts: reasons to trust the outcome less.
        grave: whether one of them makes a valid outcome meaningless.
    """

    level: str
    claims: str
    workload: str
    outcome: Literal["valid", "invalid", "unknown", "not played", "failed"]
    certified: bool = False
    reason: str = ""
    strongest: tuple[str, ...] = ()
    anomalies: Mapping[str, int] = {}
    all_counted: bool = True
    committed: int = 0
    aborted: int = 0
    maybe: int = 0
    abort_rate: float = 0.0
    throughput: float = 0.0
    history: str | None = None
    certificate: str | None = None
    minimal: str | None = None
    page: str | None = None
    doubts: tuple[str, ...] = ()
    grave: bool = False


class Survey(Struct, frozen=True, kw_only=True):
    """The results of a database.

    Attributes:
        schema: the version, which changes when a field changes its meaning or goes.
        target: the target as the user wrote it, without secrets.
        database: the database's version.
        seconds: the time limit of each cell.
        transactions: the most transactions of each cell; null for no limit.
        sessions: the number of clients.
        seed: of all random choices.
        interrupted: whether it ended early.
        cells: the results by level and workload.
    """

    schema: Literal[1] = 1
    target: str
    database: str
    seconds: float
    transactions: int | None
    sessions: int
    seed: int
    interrupted: bool
    cells: tuple[Cell, ...]


def survey(
    settings: Settings,
    workloads: Sequence[str] = ALL_WORKLOADS,
    *,
    pages: bool = False,
    show: Callable[[RunState], None] = lambda state: None,
    done: Callable[[Cell, Survey], None] = lambda cell, so_far: None,
    submit: Callable[..., Judging] | None = None,
) -> Survey:
    """Play workloads at the levels of a database, judge each run, and return all results.

    Args:
        show: a function called with the progress of the run a few times a second.
        submit: a function that has runs judged elsewhere while the next runs are played: like
            ``Executor.submit``, it takes a function and its arguments. ``None`` to judge each run
            here before the next run begins.

    Raises:
        IsolangError: the database cannot be tested; the message says what to do.
    """
    settings = replace(settings, seconds=settings.seconds or CELL_LENGTH_S)
    target = target_named(settings.target, prefix=settings.prefix)
    chosen = settings.level or settings.level_mix
    names = [settings.level] if chosen else [level.name for level in target.levels]
    level_mix_of(
        replace(settings, level=names[0]), target
    )  # raise an error here if the survey is impossible
    player = Player(settings.target, settings.prefix)
    cells: list[Cell] = []
    judging: deque[tuple[Settings, Cell | Judging]] = deque()
    database, interrupted = "", False

    def so_far() -> Survey:
        return Survey(
            target=str(target.address),
            database=database or str(target.address),
            seconds=settings.length,
            transactions=settings.transactions,
            sessions=settings.sessions,
            seed=settings.seed,
            interrupted=interrupted,
            cells=tuple(cells),
        )

    def wait_until(most: int) -> None:
        """Wait until at most ``most`` runs are being judged."""
        while len(judging) > most:
            one, cell = judging.popleft()
            try:
                cells.append(cell if isinstance(cell, Cell) else cell.result())
            except Exception as error:
                cells.append(_failed(one, error))
            done(cells[-1], so_far())

    try:
        for name in names:
            for workload in workloads:
                one = replace(settings, level=name, workload=workload, watched=False)
                cell: Cell | Judging
                try:
                    played = _played(one, player, show=show)
                    if isinstance(played, Cell):
                        cell = played
                    else:
                        database, interrupted = played.version, played.interrupted
                        if submit is None:
                            cell = _judged(one, played, pages=pages)
                        else:
                            cell = submit(_judged, one, played, pages=pages)
                except KeyboardInterrupt:
                    interrupted = True
                    wait_until(0)
                    return so_far()
                except Exception as error:  # continue the survey with the next cell
                    cell = _failed(one, error)
                judging.append((one, cell))
                wait_until(0 if interrupted or submit is None else _MAX_PENDING)
                if interrupted:
                    return so_far()
        wait_until(0)
    finally:
        player.close()
    if all(cell.outcome == "failed" for cell in cells):
        raise TargetError(cells[0].reason)  # every cell has failed
    return so_far()


def _unplayed(
    settings: Settings, target: Target, outcome: Literal["not played", "failed"], reason: str
) -> Cell:
    level = level_mix_of(settings, target).level
    return Cell(
        level=level.name,
        claims=settings.claims or level.claims,
        workload=settings.workload,
        outcome=outcome,
        reason=reason,
    )


def _failed(settings: Settings, error: Exception) -> Cell:
    """Return the cell for a run that could not be played or judged because of an error."""
    if os.environ.get("ISOLANG_TRACEBACK"):
        traceback.print_exception(error)
    known = isinstance(error, IsolangError | OSError)
    target = target_named(settings.target, prefix=settings.prefix)
    return _unplayed(settings, target, "failed", str(error) if known else internal_error(error))


def _played(settings: Settings, player: Player, *, show: Callable[[RunState], None]) -> Cell | Run:
    """Play the run of one cell; return the run, or the cell if there is nothing to judge."""
    target = target_named(settings.target, prefix=settings.prefix)
    try:
        Runner(settings, target)
    except TargetError as error:
        return _unplayed(settings, target, "not played", str(error))
    recorded = player.play(settings, show)
    if not recorded.state.committed:
        cell = _unplayed(settings, target, "failed", nothing_committed(recorded))
        return replace(cell, aborted=recorded.state.aborted, maybe=recorded.state.maybe)
    return recorded


def _judged(settings: Settings, recorded: Run, *, pages: bool) -> Cell:
    """Judge the run of one cell, and return the cell."""
    target = target_named(settings.target, prefix=settings.prefix)
    level = level_mix_of(settings, target).level
    claims = settings.claims or level.claims
    judged = judge_run(recorded, target)
    state, verdict = recorded.state, judged.verdict
    counted, everything = count_anomalies(verdict.history)
    return Cell(
        level=level.name,
        claims=claims,
        workload=settings.workload,
        outcome=verdict.outcome,
        certified=verdict.certified,
        reason=getattr(verdict, "reason", ""),
        strongest=judged.strongest,
        anomalies=dict(counted.most_common()),
        all_counted=everything,
        committed=state.committed,
        aborted=state.aborted,
        maybe=state.maybe,
        abort_rate=round(state.aborted / max(1, state.total()), 4),
        throughput=round(recorded.throughput, 1),
        history=str(recorded.path),
        certificate=None if judged.certificate is None else str(judged.certificate),
        minimal=None if judged.minimal is None else str(judged.minimal),
        page=_save_page(judged) if pages else None,
        doubts=tuple(doubt.text for doubt in judged.doubts),
        grave=any(doubt.grave for doubt in judged.doubts),
    )


def _save_page(judged: JudgedRun) -> str | None:
    from isolang.report import course_of, page, save_page

    history = judged.recorded.path
    path = history.with_suffix(".html")
    made = page(
        judged.verdict,
        name=history.name,
        course=course_of(history),
        statements=judged.statements,
    )
    try:
        save_page(made, path)
    except IsolangError:  # without a page, the cell in the table has no link
        return None
    return path.name


def count_anomalies(history: History, *, work: int = _COUNTING_WORK) -> tuple[Counter[str], bool]:
    """Count the anomalies in a history that serializability forbids, by name.

    After a counterexample has been counted, remove the reads of its transactions, and judge the
    rest of the history again, until it is valid. Therefore no two of the counted counterexamples
    share a transaction that reads. (A valid history remains valid without a read, because it then
    has less to satisfy.)
    """
    from isolang.errors import IsolangError
    from isolang.history.columns import READ, READ_LIST
    from isolang.history.select import sub_history
    from isolang.language.classify.route import route
    from isolang.language.load import load_spec
    from isolang.limits import Deadline, Work
    from isolang.options import Options
    from isolang.pipeline import decide
    from isolang.verdict import Invalid, Valid

    counted: Counter[str] = Counter()
    way, options, budget = route(load_spec("ser")), Options(certify=False), Work(work)
    while budget.left:
        budget.spend(_EACH + _PER_OPERATION * history.columns.operations())
        try:
            verdict = decide(history, way, Deadline(), options, work=budget)
        except IsolangError:
            return counted, False
        if not isinstance(verdict, Invalid):
            return counted, isinstance(verdict, Valid)
        counted[verdict.violation.anomaly] += 1
        kind = history.columns.op_kind
        dropped = {
            op
            for view in verdict.violation.transactions
            for op in history.operations_of(view.number)
            if kind[op] in (READ, READ_LIST)
        }
        if not dropped:
            return counted, False
        kept = (op for op in range(history.columns.operations()) if op not in dropped)
        history = sub_history(history, kept, range(history.t0))
    return counted, False

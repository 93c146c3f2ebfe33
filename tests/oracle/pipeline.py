"""The tool and the oracle, side by side on one history; and how to keep a history on which they
differ.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from support.paths import TESTS

from isolang.api import check, load_history, load_spec
from isolang.history import History as ToolHistory
from isolang.history import Transaction
from isolang.history.before import initial_value_texts, with_initial
from isolang.history.clock_error import with_clock_error
from isolang.history.values import UNKNOWN as TOOL_UNKNOWN
from isolang.language.classify.route import Route, route
from isolang.language.meaning.core import Check

from . import definitions, read_committed, relational, semantics, versions
from .before import Before, told, without_beginnings
from .history import (
    UNKNOWN,
    History,
    Op,
    Row,
    Txn,
    as_edn_says,
    as_python_says,
    by_lines,
    has_time,
    is_list_key,
    keys,
    partly_timed,
    show,
    sort_by_session,
    timed,
    to_edn,
    with_wide_times,
    without_operation,
    without_time,
    without_transaction,
)
from .levels import DATABASES, GUARANTEES, LEVELS, PREDICATES, STATEMENTS, WEAK
from .moments import Error
from .predicates import lower, rich, untold

REGRESSIONS = TESTS / "regressions"

#: Transactions of a history whose definitions are tried.
DEFINED_SIZE = 4

#: Assignments that the oracle tries before it gives a history up (which the callers count).
LIMIT = 20_000


_TOOL_NAMES = {"in": "r-in", "notin": "r-not-in"}


def to_tool(
    history: History, initial: object = None, error: int | Mapping[int, int] = 0
) -> ToolHistory:
    """Through the public way for people who have their own data; as EDN what only EDN can say."""
    given_as_edn = as_edn(history, initial, error)
    beside = None if isinstance(initial, Before) else initial
    first = _loading(history, initial, given_as_edn) if _is_declared(initial) else None
    if given_as_edn and says_init(history, initial):
        made = _from_edn(history, rows=initial.values)
    else:
        made = _from_edn(history, first) if given_as_edn else _from_python(history, beside, first)
    if isinstance(initial, Before) and not initial.declared:
        named = {made.key(k).removeprefix(":") for k in range(made.columns.n_keys())}
        known = set() if initial.told else named  # of some keys nothing is said
        values = {key: _row(initial.values[key]) for key in known if key in initial.values}
        made = with_initial(made, initial_value_texts(values), unwritten=initial.told)
    if isinstance(error, Mapping):
        known = {t.session for t in history}
        of_each = [f"{s}={e}ns" for s, e in error.items() if s in known]
        return with_clock_error(made, ",".join(of_each))
    return with_clock_error(made, error) if error else made


def as_edn(history: History, initial: object, error: object) -> bool:
    """Whether the tool gets the history as EDN: it has rows, and nothing that EDN cannot say.

    EDN has no initial values beside nil and no sources by name; its maps have their places, and
    times of the operations' clock if only some operations have; a process does one thing after the
    other; and what a committed transaction read is known.
    """
    partly = has_time(history) and any(
        t.begin is None or (t.end is None and t.status != "maybe") for t in history
    )
    of_files = history != as_python_says(history)
    named = any(t.sources for t in history)
    lost = any(t.status == "committed" and op[-1] == UNKNOWN for t in history for op in t.ops)
    valued = initial is not None and not isinstance(initial, Before)
    if not (rich(history) or of_files) or valued or error or partly or named or lost:
        return False
    after = [(a.end, b.begin) for a, b in pairwise(history) if a.session == b.session]
    return all(begin is None or (end is not None and end < begin) for end, begin in after)


def _is_declared(initial: object) -> bool:
    return isinstance(initial, Before) and initial.declared


def says_init(history: History, initial: Any) -> bool:
    """Whether EDN says as ``:init`` what was there before, as it does of half the histories."""
    registers = (
        [k for k in initial.values if not is_list_key(history, k)] if _is_declared(initial) else []
    )
    by_clock = partly_timed(history) and not by_lines(history)
    return bool(registers) and not by_clock and sum(len(t.ops) for t in history) % 2 == 0


def _loading(history: History, initial: Any, given_as_edn: bool) -> Txn:
    """A transaction that leaves what was there before, and wrote something else first."""
    other = next((op[2] for t in history for op in t.ops if op[0] in ("w", "insert")), None)
    ops: list[Any] = []
    for key in keys(history):
        if is_list_key(history, key):
            continue
        value = initial.values.get(key)
        if other is not None and (value is not None or rich(history)):
            ops += [("w", key, other), *([] if value is not None else [("delete", key)])]
        ops += [] if value is None else [("w", key, value)]
    if given_as_edn:  # it may have asked, too
        ops += [(*op[:2], ()) for t in history for op in t.ops if op[0] == "scan"][:1]
    timed = history and all(t.times for t in history)
    before = min((t.begin for t in history if t.begin is not None), default=0) - 9
    times = tuple((before + 1, before + 2) for _ in ops) if timed else None
    session = max((t.session for t in history), default=0) + 1
    commit = before + 3 if timed else None
    return Txn(session, tuple(ops), begin=before, end=before + 4, times=times, commit=commit)


def _from_edn(
    history: History, first: Txn | None = None, *, rows: Mapping[str, Any] | None = None
) -> ToolHistory:
    def read(text: str, initial: int | None = None) -> ToolHistory:
        return load_history(io.BytesIO(text.encode()), format="edn", initial=initial)

    if rows is not None:
        return read(to_edn(history, rows))
    if first is None:
        return read(to_edn(history))
    timed = history if has_time(history) else with_wide_times(history)
    text = to_edn((*timed, first))
    label = re.search(rf":ok, .*, :process {first.session}, :index (\d+)", text)
    assert label is not None
    return read(text, int(label[1]))


def _row(value: Any) -> Any:
    return dict(value.columns) if isinstance(value, Row) else value


def _from_python(history: History, initial: object, loading: Txn | None = None) -> ToolHistory:
    history = as_python_says(history)

    def given(t: Txn, j: int) -> tuple[Any, ...]:
        kind, first, *rest = t.ops[j]
        if kind == "scan":
            return (kind, first, {key: _row(value) for key, value in rest[0]})
        if kind == "delete":
            return (kind, first)
        (value,) = rest
        if value == UNKNOWN:
            value = TOOL_UNKNOWN
        elif isinstance(value, tuple):
            value = [_row(v) for v in value]
        source = t.named(j)
        if isinstance(source, tuple) and loading is not None:
            source = (source[0] + 1, source[1])
        more = () if source is None else (source,)
        return (_TOOL_NAMES.get(kind, kind), first, _row(value), *more)

    return ToolHistory.from_transactions(
        [
            *(
                Transaction([given(t, j) for j in range(len(t.ops))], status="initial")
                for t in (() if loading is None else (loading,))
            ),
            *(
                Transaction(
                    [given(t, j) for j in range(len(t.ops))],
                    session=t.session,
                    status=t.status,
                    begin=t.begin,
                    end=t.end,
                    group=t.group,
                    versions=[t.version(j) for j in range(len(t.ops))] if t.versions else None,
                    label=t.labels,
                    level=t.level,
                    **_times_of(t),
                )
                for t in history
            ),
        ],
        initial=initial,
        versions="ordered" if any(t.ordered for t in history) else None,
    )


def _times_of(t: Txn) -> dict[str, Any]:
    """What the tool is told of the times of operations; of none, where none of them is known."""
    return {"commit": t.commit, **({"times": t.times} if any(t.times or ()) else {})}


@dataclass(frozen=True, slots=True)
class Disagreement:
    history: History
    spec: str
    expected: str
    got: str

    def __str__(self) -> str:
        return f"{self.spec}: expected {self.expected}, got {self.got}: {show(self.history)}"


def as_judged(history: History, initial: object, error: object) -> tuple[History, object]:
    """A history and what was there before it, as the oracle takes them.

    Raises:
        OpenError: its reads leave open what was there before.
    """
    given_as_edn = as_edn(history, initial, error)
    first = (_loading(history, initial, given_as_edn),) if _is_declared(initial) else ()
    if (given_as_edn and says_init(history, initial)) or has_rows((*history, *first)):
        initial = in_place_of_nil(history, initial)
    if given_as_edn:
        history = as_edn_says(history)
        if not by_lines(history):
            history = tuple(replace(t, by_lines=False) for t in history)
    else:
        history = as_python_says(history)
    initial = told(history, initial)
    history = without_beginnings(history, initial)
    return history, None if isinstance(initial, Before) and not initial.values else initial


def has_rows(history: History) -> bool:
    """Whether nil says that there is no row."""
    return any(op[0] in ("scan", "delete") for t in history for op in t.ops)


def in_place_of_nil(history: History, initial: object) -> object:
    """The rows that T0 wrote: a row is never read as nil, so nil does not name them."""
    if isinstance(initial, Before):
        return replace(initial, declared=False)
    if initial is None:
        return None
    return Before({key: initial for key in keys(history) if not is_list_key(history, key)})


def initial_of(history: History, initial: int | Before | None) -> object:
    """The initial state as the tool takes it: of the registers.

    A row that only an aborted transaction was told of may not be there: nothing is declared of it.
    """
    if initial is None or isinstance(initial, Before):
        return initial
    named = keys(tuple(untold(t) if t.status == "aborted" else t for t in history))
    return {key: initial for key in named if not is_list_key(history, key)}


def tool_verdict(history: History, spec: Route, *, seed: int = 0) -> str:
    """``valid``, ``invalid``, or why there is no certified verdict."""
    return tool_verdict_of(to_tool(history), spec, seed=seed)


def tool_verdict_of(history: ToolHistory, spec: Route, *, seed: int = 0) -> str:
    """The same for a history that the tool has read or built."""
    verdict = check(history, spec, seed=seed)
    if verdict.outcome == "unknown":
        return f"unknown: {verdict.reason}"
    return str(verdict.outcome) if verdict.certified else f"{verdict.outcome}, not certified"


def expected_verdicts(
    history: History,
    specs: Sequence[Sequence[Check] | semantics.Prepared],
    initial: object = None,
    limit: int = LIMIT,
    error: Error = 0,
) -> list[str]:
    """What the oracle says.

    Raises:
        semantics.TooLargeError: after ``limit`` assignments.
    """
    answers = semantics.satisfied(history, specs, initial=initial, limit=limit, error=error)
    return ["valid" if a else "invalid" for a in answers]


def level_of(name: str) -> str:
    """The level of a style: ``cc-vis-nosession`` is a form of ``cc-nosession``."""
    return re.sub(r"-(adya|vis|co)(?=-|$)", "", name)


#: The library's names of levels that the oracle has by definitions and not as checks.
DEFINED: dict[str, str] = {
    "pl-cs": "pl-cs",
    "pl-2l": "pl-2l",
    "pl-msr": "pl-msr",
    "pl-fcv": "pl-fcv",
    "pl-3u": "pl-3u",
    "update-atomic": "update-atomic",
    "update-atomic-nosession": "update-atomic-nosession",
    "rss": "rss",
    "strong-partition-si": "strong-partition-si",
    "mav": "mav",
    "pram": "shared-pram",
    "processor": "processor",
    "per-key-sequential": "per-key-sequential",
    "per-key-causal": "per-key-causal",
    "linearizable": "linearizable",
}


#: Levels that the oracle has in other tables than those of checks.
_OTHERS: frozenset[str] = frozenset((*DEFINED, *STATEMENTS, "rc", "rc-nosession"))


class Levels:
    """Compares on the library's levels; loads each of them once."""

    def __init__(self, names: Iterable[str] = tuple(LEVELS), *, size: int = DEFINED_SIZE) -> None:
        self.size = size
        self.plans = {name: route(load_spec(name)) for name in names}
        known = LEVELS | WEAK | GUARANTEES | PREDICATES | DATABASES
        levels = {level_of(name) for name in self.plans}
        self._oracle = {n: semantics.prepare(known[n]) for n in levels if n in known}

    def applicable(self, history: History, initial: object = None) -> list[str]:
        """The levels with a defined verdict: real time needs times, definitions a small history
        without lists, those by executions one that begins with nothing and names no source.
        """
        small = len(history) <= self.size and not any(
            is_list_key(history, k) for k in keys(history)
        )
        names = [n for n in self.plans if small or level_of(n) not in DEFINED]
        if initial is not None or any(t.sources or t.versions for t in history):
            names = [n for n in names if DEFINED.get(level_of(n)) not in definitions.DEFINITIONS]
        if not timed(history):
            names = [n for n in names if not self._real_time(level_of(n)) and n not in STATEMENTS]
        if all(t.group is None for t in history):
            names = [n for n in names if level_of(n) != "strong-partition-si"]
        if rich(history):  # who reads is not defined for a statement that returns nothing
            undefined = {*GUARANTEES, "per-key-sequential", "per-key-causal"}
            names = [n for n in names if level_of(n) not in undefined]
        return names

    def _real_time(self, level: str) -> bool:
        prepared = self._oracle.get(level)
        defined = DEFINED.get(level) in definitions.TIMED
        return defined or (prepared is not None and prepared.real_time)

    def expected(
        self,
        history: History,
        initial: object = None,
        limit: int = LIMIT,
        error: Error = 0,
    ) -> dict[str, str]:
        history, initial = as_judged(history, initial, error)
        names = self.applicable(history, initial)
        levels = {level_of(n) for n in names}
        known = {level: s for level, s in self._oracle.items() if level in levels}
        without_contradiction = versions.resolved(history, initial)
        if without_contradiction is None:
            return {n: "invalid" for n in names if level_of(n) in known or level_of(n) in _OTHERS}
        history = without_contradiction
        low = lower(history, initial)
        verdicts = expected_verdicts(low, list(known.values()), initial, limit, error)
        answers = dict(zip(known, verdicts, strict=True))
        for level in ("rc", "rc-nosession"):
            if level in levels:
                met = read_committed.satisfied(low, sessions=level == "rc", initial=initial)
                answers[level] = "valid" if met else "invalid"
        for level in levels & STATEMENTS.keys():
            spec = relational.over_versions(STATEMENTS[level])
            met = relational.satisfied(low, spec, initial=initial, limit=limit, error=error)
            answers[level] = "valid" if met else "invalid"
        defined = {level: DEFINED[level] for level in levels & DEFINED.keys()}
        met_by = definitions.satisfied(history, defined.values(), initial=initial, error=error)
        answers |= {n: "valid" if met_by[of] else "invalid" for n, of in defined.items()}
        return {n: answers[level_of(n)] for n in names if level_of(n) in answers}

    def compare(
        self,
        history: History,
        *,
        seed: int = 0,
        initial: object = None,
        error: int | Mapping[int, int] = 0,
    ) -> tuple[dict[str, str], list[Disagreement]]:
        expected = self.expected(history, initial, error=error)
        wrong = []
        given = to_tool(history, initial, error)
        for name, verdict in expected.items():
            got = tool_verdict_of(given, self.plans[name], seed=seed)
            if got != verdict:
                wrong.append(Disagreement(history, name, verdict, got))
        return expected, wrong


def shrink(history: History, differs: Callable[[History], bool]) -> History:
    """A history that still differs and loses that with any one transaction, operation or
    property less.
    """
    while True:
        for smaller in _simpler(history):
            if smaller and differs(smaller):
                history = smaller
                break
        else:
            return history


def _simpler(history: History) -> Iterable[History]:
    for i in range(len(history)):
        yield without_transaction(history, i)
    for i, t in enumerate(history):
        for j, op in enumerate(t.ops):
            if len(t.ops) > 1:
                yield without_operation(history, i, j)
            if t.version(j) is not None:
                unsaid = tuple(s for s in t.versions if s[0] != j)
                yield (*history[:i], replace(t, versions=unsaid), *history[i + 1 :])
            if t.named(j) is not None:
                fewer = tuple(s for s in t.sources if s[0] != j)
                yield (*history[:i], replace(t, sources=fewer), *history[i + 1 :])
            for simpler in _simpler_op(op):
                ops = (*t.ops[:j], simpler, *t.ops[j + 1 :])
                yield (*history[:i], replace(t, ops=ops), *history[i + 1 :])
    if any(t.ordered for t in history):
        yield tuple(replace(t, ordered=False) for t in history)
    if has_time(history):
        yield without_time(history)
    yield from _fewer_times(history)
    for i, t in enumerate(history):
        if t.status != "committed" and all(o[-1] != UNKNOWN for o in t.ops):
            yield (*history[:i], replace(t, status="committed"), *history[i + 1 :])
        if sum(u.session == t.session for u in history) > 1:
            yield sort_by_session((*history[:i], replace(t, session=99), *history[i + 1 :]))


def _fewer_times(history: History) -> Iterable[History]:
    """The same with unknown times of an operation, of COMMIT, or of a whole transaction."""
    if any(t.by_lines for t in history):
        yield tuple(replace(t, by_lines=False) for t in history)
    for i, t in enumerate(history):
        times, rest = t.times or (), (history[:i], history[i + 1 :])
        less = [replace(t, times=None, commit=None, answered=None)] if t.times is not None else []
        less += [
            replace(t, times=(*times[:j], None, *times[j + 1 :]))
            for j, pair in enumerate(times)
            if pair
        ]
        less += [replace(t, commit=None)] if t.commit is not None else []
        less += [replace(t, answered=None)] if t.answered is not None else []
        yield from ((*rest[0], other, *rest[1]) for other in less)


def _simpler_op(op: Op) -> Iterable[Op]:
    """The same operation with a version, a row or a part of its predicate less."""
    if op[0] in ("in", "notin", "scan"):
        for place in range(len(op[2])):
            yield (*op[:2], op[2][:place] + op[2][place + 1 :])
    if op[0] == "scan" and op[1][0] in ("and", "or", "not"):
        yield from (("scan", part, op[2]) for part in op[1][1:])


def keep(name: str, history: History, verdicts: dict[str, str]) -> Path:
    """Saves a history as ``regressions/NAME.edn`` with its expected verdicts.

    The file orders its lines as real time; levels with real time must be among ``verdicts`` only
    if the history has it.
    """
    REGRESSIONS.mkdir(exist_ok=True)
    path = REGRESSIONS / f"{name}.edn"
    path.write_text(to_edn(history), encoding="utf-8")
    table = REGRESSIONS / "expected.csv"
    new = not table.exists()
    with table.open("a", newline="", encoding="utf-8") as f:
        writer: Any = csv.writer(f, lineterminator="\n")
        if new:
            writer.writerow(["history", "spec", "verdict", "operations"])
        for spec, verdict in verdicts.items():
            writer.writerow([name, spec, verdict, show(history)])
    return path

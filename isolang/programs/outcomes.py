"""Finds out which outcomes of a program each level allows, with a verdict and a proof.

An outcome is turned into a history with the values that clients saw. A level allows the outcome if
and only if this history satisfies the level. This is decided and certified by the check for
histories; this module itself knows nothing about levels.
"""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, assert_never

from msgspec import Struct

from isolang.api import check, load_history
from isolang.errors import OptionError
from isolang.history.history import History
from isolang.history.transaction import Transaction
from isolang.history.writers import write_history
from isolang.language.classify.route import Route, route
from isolang.language.load import load_spec
from isolang.language.meaning.core import Spec
from isolang.programs.explore import (
    MOST,
    ExecutedOperation,
    ExecutedTransaction,
    explore,
    satisfies,
)
from isolang.programs.syntax import (
    ExistsCondition,
    Program,
    ProgramError,
    is_program_text,
    load_program,
    parse_program,
)
from isolang.verdict import Invalid, Unknown, Valid, Verdict

Standing: TypeAlias = Literal["allowed", "forbidden", "unknown"]
AnyLevel: TypeAlias = Spec | Route | str | os.PathLike[str]


class Outcome(Struct, frozen=True, kw_only=True):
    """One outcome with its verdicts.

    Attributes:
        transactions: what each transaction did.
        reads: the value that each read returned, by the name of the read.
        aborted: the numbers of the aborted transactions, from 1.
        history: the history that clients saw, as read from the file.
        edn: the bytes of that file.
        verdicts: the verdict of each level, in the order of the table's levels.
    """

    transactions: tuple[ExecutedTransaction, ...]
    reads: dict[str, int]
    aborted: tuple[int, ...]
    history: History
    edn: bytes
    verdicts: tuple[Verdict, ...]


class OutcomeTable(Struct, frozen=True, kw_only=True):
    """The outcomes of a program with their verdicts.

    Attributes:
        program: the program.
        levels: the names of the levels.
        reads: the names of all reads.
        outcomes: the distinct outcomes.
        seconds: how long all of it took.
    """

    program: Program
    levels: tuple[str, ...]
    reads: tuple[str, ...]
    outcomes: tuple[Outcome, ...]
    seconds: float

    def with_standing(self, level: str, standing: Standing = "allowed") -> tuple[Outcome, ...]:
        """Return the outcomes that a level allows, or those on which its verdict is another.

        Raises:
            OptionError: if the table has no level with this name.
        """
        if level not in self.levels:
            raise OptionError(
                f"the table has no such level (got {level!r}, expected {', '.join(self.levels)})"
            )
        at = self.levels.index(level)
        return tuple(
            outcome
            for outcome in self.outcomes
            if standing_of_verdict(outcome.verdicts[at]) == standing
        )

    def outcomes_satisfying(self, target: ExistsCondition) -> list[Outcome]:
        """Return all outcomes that satisfy an ``exists`` condition."""
        return [one for one in self.outcomes if satisfies(one.transactions, target.condition)]

    def standing_of(self, target: ExistsCondition, level: int) -> Standing:
        """Return whether a level allows any outcome that satisfies an ``exists`` condition."""
        found = {
            standing_of_verdict(one.verdicts[level]) for one in self.outcomes_satisfying(target)
        }
        return "allowed" if "allowed" in found else "unknown" if "unknown" in found else "forbidden"

    @property
    def decided(self) -> bool:
        """Return whether every verdict says that its outcome is either allowed or forbidden."""
        return not any(isinstance(v, Unknown) for one in self.outcomes for v in one.verdicts)


def standing_of_verdict(verdict: Verdict) -> Standing:
    """Return whether the level allows or forbids an outcome, according to the verdict."""
    match verdict:
        case Valid():
            return "allowed"
        case Invalid():
            return "forbidden"
        case Unknown():
            return "unknown"
        case _:
            assert_never(verdict)


def outcomes(
    program: Program | str | os.PathLike[str],
    levels: AnyLevel | Sequence[AnyLevel] | Mapping[str, AnyLevel],
    *,
    timeout: float | None = None,
    memory: float | None = None,
    certify: bool = True,
    seed: int = 0,
    most: int = MOST,
    progress: Callable[[str], object] = lambda phase: None,
) -> OutcomeTable:
    """List the outcomes of a small program, and which of them each level allows.

    Args:
        program: the program (docs/outcomes.md): its text, the path of a file, or a result of
            ``parse_program``. It must not be a template.
        levels: one or several levels, each as for ``check``; or a mapping from the names to use in
            the table to levels.
        timeout: the number of seconds for each verdict, after which it is unknown; ``None`` for no
            limit.
        memory: the number of megabytes that each check may allocate, as for ``check``.
        certify: whether to have an independent checker verify each verdict.
        seed: the number used to break ties in the search. Equal seeds give equal runs.
        most: the largest number of combinations of sources for the reads to try.
        progress: a function called with the name of each phase when it begins.

    Returns:
        The outcomes, each with the values of its reads and the verdict of each level on its
        history. ``with_standing("si")`` returns the outcomes that a level allows.

    Raises:
        ProgramError: if the program cannot be read, or has too many outcomes.
        SpecError: if a level cannot be loaded or is not supported.
        HistoryError: if a level compares times, which outcomes do not have.
        OptionError: if two levels have the same name, or an option is out of bounds.

    >>> table = outcomes("a = r(x) w(y, 1) || b = r(y) w(x, 1)", ["si", "ser"])
    >>> [one.reads for one in table.with_standing("si")]
    [{'a': 0, 'b': 0}, {'a': 0, 'b': 1}, {'a': 1, 'b': 0}]
    >>> [one.reads for one in table.with_standing("ser")]
    [{'a': 0, 'b': 1}, {'a': 1, 'b': 0}]
    """
    begun = time.perf_counter()
    routes = {name: _route(level) for name, level in _named(levels)}
    if not isinstance(program, Program):
        is_text = is_program_text(program)
        program = parse_program(str(program)) if is_text else load_program(str(program))
    progress("list outcomes")
    every = explore(program, most=most)
    sessions = [session for session, _ in program.transactions()]
    rows = []
    for number, transactions in enumerate(every, 1):
        progress(f"judge outcome {number} of {len(every)}")
        edn, history = _history(program, sessions, transactions, number)
        verdicts = tuple(
            check(history, route, timeout=timeout, memory=memory, certify=certify, seed=seed)
            for route in routes.values()
        )
        rows.append(
            Outcome(
                transactions=transactions,
                reads=dict(_reads(transactions)),
                aborted=tuple(t for t, one in enumerate(transactions, 1) if one.aborted),
                history=history,
                edn=edn,
                verdicts=verdicts,
            )
        )
    return OutcomeTable(
        program=program,
        levels=tuple(routes),
        reads=_columns(rows),
        outcomes=tuple(rows),
        seconds=time.perf_counter() - begun,
    )


def _named(
    levels: AnyLevel | Sequence[AnyLevel] | Mapping[str, AnyLevel],
) -> Iterator[tuple[str, AnyLevel]]:
    """Yield the levels with their names in the table.

    Raises:
        OptionError: no level is given, or two have the same name.
    """
    if isinstance(levels, Mapping):
        named = list(levels.items())
    else:
        several = [levels] if isinstance(levels, Spec | Route | str | os.PathLike) else levels
        named = [(_name(level), level) for level in several]
    names = [name for name, _ in named]
    if not names or len(set(names)) < len(names):
        raise OptionError(
            f"outcomes: levels: two have the same name, or there is none (got {names}, expected "
            "different names); hint: pass a mapping from names to levels"
        )
    yield from named


def _name(level: AnyLevel) -> str:
    if isinstance(level, Route | Spec):
        return level.spec.name if isinstance(level, Route) else level.name
    return load_spec(level).name if "\n" in str(level) else str(level)


def _route(level: AnyLevel) -> Route:
    if isinstance(level, Route):
        return level
    return route(level if isinstance(level, Spec) else load_spec(level))


def _reads(transactions: Sequence[ExecutedTransaction]) -> Iterator[tuple[str, int]]:
    """Yield each read's name (``T1.x`` or ``T1.x.2`` if it is unnamed in the program) and value."""
    for t, one in enumerate(transactions, 1):
        seen: dict[str, int] = {}
        for op in one.operations:
            if op.kind == "r":
                seen[op.key] = count = seen.get(op.key, 0) + 1
                yield op.name or f"T{t}.{op.key}{f'.{count}' if count > 1 else ''}", op.value


def _columns(rows: Sequence[Outcome]) -> tuple[str, ...]:
    """Return the names of all reads, ordered by transaction and then by position."""
    places: dict[str, tuple[int, int]] = {}
    for row in rows:
        for t, one in enumerate(row.transactions):
            for place, (name, _) in enumerate(_reads([*[ExecutedTransaction(())] * t, one])):
                places[name] = max(places.get(name, (t, 0)), (t, place))
    return tuple(sorted(places, key=lambda name: places[name]))


def _history(
    program: Program,
    sessions: Sequence[int],
    transactions: Sequence[ExecutedTransaction],
    number: int,
) -> tuple[bytes, History]:
    """Return the history seen by the clients in an outcome, and its EDN.

    The history is read back from this EDN, so certificates are about the file.
    """
    written: dict[str, set[int]] = {}
    for one in transactions:
        for op in one.operations:
            if op.kind == "w":
                written.setdefault(op.key, set()).add(op.value)
    history = History.from_transactions(
        [
            Transaction(
                [_op(op, program.initial.get(op.key, 0), written) for op in one.operations],
                session=session,
                status="aborted" if one.aborted else "committed",
            )
            for session, one in zip(sessions, transactions, strict=True)
        ]
    )
    stream = io.BytesIO()
    write_history(history, stream, format="edn")
    edn = stream.getvalue()
    stream = io.BytesIO(edn)
    stream.name = f"{program.name}-{number}.edn"
    return edn, load_history(stream, "edn")


def _op(op: ExecutedOperation, initial: int, written: dict[str, set[int]]) -> tuple[Any, ...]:
    """Return an operation for a history in which the initial value of each key is nil.

    If a transaction writes a value equal to the initial value, a read of this value may have
    returned either the initial value or the written one.
    """
    if op.kind == "w" or op.own or op.value != initial:
        return op.kind, op.key, op.value
    if op.value in written.get(op.key, ()):
        return "r-in", op.key, [None, op.value]
    return "r", op.key, None


def save(table: OutcomeTable, folder: Path) -> list[Path]:
    """Save each outcome's history, and a certificate and a picture for each level.

    The picture for a forbidden outcome shows why the level forbids it. The picture for an allowed
    outcome shows the dependencies in its witness, if there are any.

    Raises:
        ProgramError: a file cannot be written.
    """
    from isolang.files import open_replacement, write_atomically
    from isolang.report.dependencies import dependencies
    from isolang.report.figure import figure
    from isolang.report.picture import save_picture

    files = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for number, one in enumerate(table.outcomes, 1):
            path = folder / f"{number}.edn"
            with open_replacement(path) as stream:
                stream.write(one.edn)
            files.append(path)
            for level, verdict in zip(table.levels, one.verdicts, strict=True):
                stem = f"{number}.{file_name(level)}"
                if isinstance(verdict, Unknown):
                    continue
                files.append(folder / f"{stem}.certificate.json")
                write_atomically(files[-1], verdict.certificate().to_json())
                found = figure(verdict) if isinstance(verdict, Invalid) else dependencies(verdict)
                if found is not None:
                    files.append(Path(save_picture(found, folder / f"{stem}.svg")))
    except OSError as error:
        raise ProgramError(
            f"{folder}: cannot write to this folder: {error.strerror or error}"
        ) from None
    return files


def file_name(level: str) -> str:
    """Return a level's name, using only characters that are safe in file names."""
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in Path(level).stem) or "level"

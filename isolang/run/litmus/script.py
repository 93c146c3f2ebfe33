"""Writes a litmus test as a program that runs without this package.

Sessions become connections, and operations become statements on one table, in the order of one
interleaving. ``psycopg`` is a program for PostgreSQL, and ``python`` a program for a database that
runs in the same process through a DB-API module. ``sql`` is a list of statements to type into
several terminals.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from isolang.run.litmus.litmus import Litmus, rules_of
from isolang.run.operation import (
    DELETED,
    Append,
    Delete,
    Insert,
    Operation,
    Read,
    SelectRange,
    Write,
)

Kind: TypeAlias = Literal["psycopg", "python", "sql"]

TABLE: Final = "isocheck_litmus"
NOISE_TABLE: Final = "isocheck_noise"
"""The table for the additional clients. No other program should use these two names."""

_NAMES: Final = ("a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l")


class ScriptStep(Struct, frozen=True, kw_only=True):
    """One step of an interleaving.

    Attributes:
        operation: the operation; ``None`` if the step is COMMIT.
        shown: the result of a read in the history; ``None`` for other operations.
        load: whether additional clients run their transactions after the step.
        remarks: the violation's remarks on the rows of a query.
    """

    session: str
    operation: Operation | None
    begins: bool
    shown: object = None
    load: bool = False
    remarks: tuple[str, ...] = ()


class LitmusScript(Struct, frozen=True, kw_only=True):
    """The content of a script, before it is written in one of the languages.

    Attributes:
        load: the number of additional transactions to run after each COMMIT during which another
            transaction is open.
        module: the DB-API module imported by a ``python`` program.
    """

    steps: tuple[ScriptStep, ...]
    names: tuple[str, ...]
    registers: tuple[str, ...]
    lists: tuple[str, ...]
    level: str
    load: int
    module: str

    @property
    def has_load(self) -> bool:
        """Return whether the script contains transactions by additional clients."""
        return self.load > 0 and any(step.load for step in self.steps)

    @property
    def number_type(self) -> str:
        """Return the column type for numbers, which must hold the large bounds of queries."""
        return (
            "BIGINT"
            if any(isinstance(step.operation, SelectRange) for step in self.steps)
            else "INT"
        )

    @property
    def connections(self) -> tuple[str, ...]:
        """Return the names of all connections; the one for additional clients comes last."""
        return (*self.names, "others") if self.has_load else self.names

    def rows(self) -> str:
        """Return the initial rows of the table as a list of SQL tuples."""
        first = [(key, "NULL") for key in self.registers] + [(key, "''") for key in self.lists]
        return ", ".join(f"({_quoted(key)}, {value})" for key, value in first)


def script_of(
    litmus: Litmus,
    kind: Kind,
    *,
    level: str = "",
    schedule: Sequence[int] = (),
    load: int = 0,
    module: str = "sqlite3",
) -> str:
    """Write a litmus test as a program, and return its text.

    Args:
        schedule: the session of each step. If it is empty, the recorded order is used; if no order
            was recorded, the sessions take turns as far as the history allows.
    """
    registers, lists = litmus.keys()
    program = LitmusScript(
        steps=tuple(_steps(litmus, schedule or litmus.recorded or turn_taking_schedule(litmus))),
        names=_NAMES[: len(litmus.sessions)],
        registers=tuple(registers),
        lists=tuple(lists),
        level=level or "serializable",
        load=load,
        module=module,
    )
    lines = {"psycopg": _psycopg, "python": _python, "sql": _sql}[kind](program)
    return "\n".join([*lines, ""])


def turn_taking_schedule(litmus: Litmus) -> tuple[int, ...]:
    """Return a schedule in which the sessions take turns, as far as the history allows."""
    remaining, rules, found = litmus.steps(), list(rules_of(litmus)), list[int]()
    while any(remaining):
        moved = False
        for session, more in enumerate(remaining):
            if more and _is_allowed(found, session, remaining, rules):
                found.append(session)
                remaining[session] -= 1
                moved = True
        if not moved:  # no schedule reproduces the history: play one session after another
            return tuple(i for i, steps in enumerate(litmus.steps()) for _ in range(steps))
    return tuple(found)


def _is_allowed(
    done: Sequence[int],
    session: int,
    remaining: Sequence[int],
    rules: Sequence[tuple[tuple[int, int], tuple[int, int]]],
) -> bool:
    """Return whether all steps that must precede a session's next step have been performed."""
    count = [done.count(i) for i in range(len(remaining))]
    step = (session, count[session])
    return all(count[i] > place for (i, place), later in rules if later == step)


def _steps(litmus: Litmus, schedule: Sequence[int]) -> Iterator[ScriptStep]:
    plans: list[list[tuple[Operation | None, bool, object]]] = []
    remarks: dict[tuple[int, int], tuple[str, ...]] = {}
    for i, (own, shown) in enumerate(zip(litmus.sessions, litmus.shown, strict=True)):
        plan: list[tuple[Operation | None, bool, object]] = []
        for j, (ops, results) in enumerate(zip(own, shown, strict=True)):
            pairs = zip(ops, results, strict=True)
            for k in range(len(ops)):
                remarks[i, len(plan) + k] = tuple(litmus.remarks.get((i, j, k), ()))
            plan += [(op, n == 0, value[2]) for n, (op, value) in enumerate(pairs)]
            plan.append((None, not ops, None))
        plans.append(plan)
    at = [0] * len(plans)
    for session in schedule:
        operation, begins, shown_ = plans[session][at[session]]
        about = remarks.get((session, at[session]), ())
        at[session] += 1
        yield ScriptStep(
            session=_NAMES[session],
            operation=operation,
            begins=begins,
            shown=shown_,
            load=operation is None and has_open_transaction(plans, at),
            remarks=about,
        )


def has_open_transaction(
    plans: Sequence[Sequence[tuple[Operation | None, bool, object]]], at: Sequence[int]
) -> bool:
    """Return whether any session has an open transaction at this point of the schedule."""
    return any(
        0 < place < len(plan) and plan[place - 1][0] is not None
        for plan, place in zip(plans, at, strict=True)
    )


def _psycopg(p: LitmusScript) -> Iterator[str]:
    made = ", ".join([TABLE, NOISE_TABLE] if p.has_load else [TABLE])
    yield f'"""python FILE "host=… dbname=…": needs psycopg 3; creates and drops {made}."""'
    yield "import atexit, sys, psycopg\n\ndef connect():"
    settings = "-c enable_seqscan=off -c lock_timeout=2000"
    yield f'    connection = psycopg.connect(sys.argv[1], options="{settings}")'
    name = p.level.upper().replace(" ", "_")
    yield f"    connection.isolation_level = psycopg.IsolationLevel.{name}"
    yield "    return connection\n"
    yield from _helpers("%s", p)
    # The program drops the tables at the end, even after an error, but only if it created them.
    yield "def drop():"
    yield f"    for connection in [{', '.join(p.connections)}]: connection.close()"
    yield f'    psycopg.connect(sys.argv[1], autocommit=True).execute("DROP TABLE {made}")\n'
    yield from _connections(p)
    yield from _table(p, "text PRIMARY KEY", "text")
    yield "a.commit()"
    yield "atexit.register(drop)\n"
    yield from _statements(p, begin="")


def _python(p: LitmusScript) -> Iterator[str]:
    yield f'"""python FILE: needs {p.module}; makes a database of its own."""'
    if p.module == "duckdb":
        yield "import duckdb\n\ndatabase = duckdb.connect()\nconnect = database.cursor\n"
    else:
        yield "import sqlite3, tempfile\n\nfolder = tempfile.TemporaryDirectory()\n\ndef connect():"
        yield '    path = f"{folder.name}/test.db"'
        yield "    connection = sqlite3.connect(path, timeout=2, isolation_level=None)"
        yield '    connection.execute("PRAGMA journal_mode = wal")\n    return connection\n'
    yield from _helpers("?", p)
    yield from _connections(p)
    yield from _table(p, "VARCHAR PRIMARY KEY", "VARCHAR")
    yield ""
    yield from _statements(p, begin="BEGIN")


def _helpers(mark: str, p: LitmusScript) -> Iterator[str]:
    has = {type(step.operation) for step in p.steps}
    yield "def read(c, key):"
    found = f'c.execute("SELECT v FROM {TABLE} WHERE k = {mark}", [key]).fetchone()'
    if has & {Insert, Delete}:
        yield f'    row = {found}\n    return row[0] if row else "no row"\n'
    else:
        yield f"    return {found}[0]\n"
    yield "def write(c, key, value):"
    yield f'    c.execute("UPDATE {TABLE} SET v = {mark} WHERE k = {mark}", [value, key])\n'
    if SelectRange in has:
        yield "def select(c, low, high):"
        query = f"SELECT k, v FROM {TABLE} WHERE v BETWEEN {mark} AND {mark} ORDER BY k"
        yield f'    return dict(c.execute("{query}", [low, high]).fetchall())\n'
    if Insert in has:
        yield "def insert(c, key, value):"
        yield f'    c.execute("INSERT INTO {TABLE} VALUES ({mark}, {mark})", [key, value])\n'
    if Delete in has:
        yield "def delete(c, key):"
        yield f'    c.execute("DELETE FROM {TABLE} WHERE k = {mark}", [key])\n'
    if p.lists:
        yield "def append(c, key, value):"
        yield (
            f'    c.execute("UPDATE {TABLE} SET v = v || {mark} WHERE k = {mark}", '
            "[f' {value}', key])\n"
        )


def _connections(p: LitmusScript) -> Iterator[str]:
    yield f"{', '.join(p.connections)} = {', '.join(['connect()'] * len(p.connections))}"


def _table(p: LitmusScript, key: str, text: str) -> Iterator[str]:
    yield f'a.execute("CREATE TABLE {TABLE} (k {key}, v {text if p.lists else p.number_type})")'
    if p.has_load:
        yield f'a.execute("CREATE TABLE {NOISE_TABLE} (n INT)")'
    yield f'a.execute("INSERT INTO {TABLE} VALUES {p.rows()}")'


def _statements(p: LitmusScript, *, begin: str) -> Iterator[str]:
    for step in p.steps:
        if step.begins and begin:
            yield f'{step.session}.execute("{begin}")'
        match step.operation:
            case Read(key):
                comment = f"{step.session} reads {key} (in the history {_value(step.shown)}):"
                yield f"print({comment!r}, read({step.session}, {key!r}))"
            case SelectRange(low, high):
                comment = f"{step.session} asks for the rows with v between {low} and {high}"
                comment += f" (in the history {_answer(step.shown)}):"
                yield from (f"# {line}" for line in step.remarks)
                yield f"print({comment!r}, select({step.session}, {low}, {high}))"
            case Write(key, value):
                yield f"write({step.session}, {key!r}, {value})"
            case Append(key, value):
                yield f"append({step.session}, {key!r}, {value})"
            case Insert(key, value):
                yield f"insert({step.session}, {key!r}, {value})"
            case Delete(key):
                yield f"delete({step.session}, {key!r})"
            case None:
                yield f"{step.session}.commit()"
                if step.load and p.load:
                    yield f"for number in range({p.load}):"
                    yield f'    others.execute(f"INSERT INTO {NOISE_TABLE} VALUES ({{number}})")'
                    yield "    others.commit()"
    yield f'print("all committed:", a.execute("SELECT * FROM {TABLE}").fetchall())'


def _sql(p: LitmusScript) -> Iterator[str]:
    yield f"-- Open one terminal for each of {', '.join(p.names)}; type the lines in this order."
    yield f"-- If a table {TABLE} exists already, keep it, and use another name in all lines."
    kind = "TEXT" if p.lists else p.number_type
    yield f"CREATE TABLE {TABLE} (k VARCHAR(64) PRIMARY KEY, v {kind});"
    yield f"INSERT INTO {TABLE} VALUES {p.rows()};"
    for step in p.steps:
        who = f"/* {step.session} */ "
        if step.begins:
            yield f"{who}BEGIN TRANSACTION ISOLATION LEVEL {p.level.upper()};"
        match step.operation:
            case Read(key):
                expected = f"  -- in the history: {_value(step.shown)}"
                yield f"{who}SELECT v FROM {TABLE} WHERE k = {_quoted(key)};{expected}"
            case SelectRange(low, high):
                yield from (f"-- {line}" for line in step.remarks)
                expected = f"  -- in the history: {_answer(step.shown)}"
                query = f"SELECT k, v FROM {TABLE} WHERE v BETWEEN {low} AND {high}"
                yield f"{who}{query};{expected}"
            case Write(key, value):
                yield f"{who}UPDATE {TABLE} SET v = {value} WHERE k = {_quoted(key)};"
            case Append(key, value):
                yield f"{who}UPDATE {TABLE} SET v = v || ' {value}' WHERE k = {_quoted(key)};"
            case Insert(key, value):
                yield f"{who}INSERT INTO {TABLE} VALUES ({_quoted(key)}, {value});"
            case Delete(key):
                yield f"{who}DELETE FROM {TABLE} WHERE k = {_quoted(key)};"
            case None:
                yield f"{who}COMMIT;"
                if step.load and p.load:
                    yield f"-- now {p.load} transactions of another client, at the same level"
    yield f"/* a */ DROP TABLE {TABLE};"


def _quoted(key: str) -> str:
    return "'" + key.replace("'", "''") + "'"


def _answer(rows: object) -> str:
    """Return the rows returned by a query, as text."""
    return str(dict(rows)) if isinstance(rows, tuple) and rows else "no row"


def _value(value: object) -> str:
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return "NULL" if value is None else "no row" if value == DELETED else str(value)

"""Plays the predictions for a recorded run, using an application's functions or its statements.

Each label of the run may name a call of the application, such as ``pay(1, 30)``. If the functions
are not available, the recorded statements are executed on separate rows, with the recorded locks.
In this case, each transaction executes the same statements regardless of what it reads, as
predictions assume.
"""

from __future__ import annotations

import ast
import inspect
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from isolang.errors import IsolangError, unknown_name_details
from isolang.foresee.calls import AppCall, current_client, current_label
from isolang.foresee.played import Foreseen, Stage, play, server_name
from isolang.history import columns as c

if TYPE_CHECKING:
    from isolang.foresee.predicted import Predictions
    from isolang.foresee.run import Access, PassedRun
    from isolang.harm.state import PreparedState

STATEMENTS: Final = "statements"
"""The value of ``--play`` that plays the recorded statements instead of an application."""

LEVELS: Final = {
    "postgresql-read-committed": "read committed",
    "postgresql-repeatable-read": "repeatable read",
    "si": "repeatable read",
}
"""For each level of a prediction, the PostgreSQL level to play it at."""

_SCHEMA: Final = "isocheck_foresee"
_TABLE: Final = f"{_SCHEMA}.recorded"


class Application(Struct, frozen=True, kw_only=True):
    """The functions of an application.

    Attributes:
        setup: the function that restores the database's state from before the run.
    """

    name: str
    functions: Any
    setup: Callable[[], object]

    def call_of(self, labels: Sequence[str]) -> AppCall | str:
        """Return the call named by a transaction's labels, or the reason why there is none."""
        why = "it has no label"
        for label in labels:
            found = self._call(label)
            if isinstance(found, AppCall):
                return found
            why = found
        return why

    def _call(self, label: str) -> AppCall | str:
        try:
            tree = ast.parse(label.strip(), mode="eval").body
            args: tuple[Any, ...] = ()
            kwargs: dict[str, Any] = {}
            name = tree
            if isinstance(tree, ast.Call):
                name = tree.func
                args = tuple(map(ast.literal_eval, tree.args))
                kwargs = {one.arg or "": ast.literal_eval(one.value) for one in tree.keywords}
            path = ast.unparse(name)
        except (SyntaxError, ValueError):
            return f"the label {label!r} is not a call such as pay(1, 30)"
        function = self._named(path)
        if function is None:
            return f"{self.name} has no function {path}"
        try:
            inspect.signature(function).bind(*args, **kwargs)
        except TypeError as error:
            return f"the arguments in the label {label!r} do not fit {path}: {error}"
        except ValueError:
            pass  # the function has no signature to check
        return AppCall(function, args, kwargs)

    def _named(self, path: str) -> Any:
        """Return the function named by a dotted name or its last part; ``None`` if none exists."""
        found = self.functions
        for part in path.split("."):
            found = getattr(found, part, None)
        found = found or getattr(self.functions, path.rpartition(".")[2], None)
        return found if callable(found) else None


def import_application(text: str, setup: str) -> Application:
    """Import the application named by the user.

    Raises:
        IsolangError: the module cannot be imported, or has no such object or function.
    """
    functions, module = import_functions(text)
    prepares = getattr(functions, setup, None) or getattr(module, setup, None)
    if not callable(prepares):
        raise IsolangError(
            f"{text}: no function prepares the database (got no {setup!r}); "
            "hint: --setup NAME names a function without arguments that "
            "restores the state before the run"
        )
    return Application(name=text, functions=functions, setup=prepares)


def import_functions(text: str) -> tuple[Any, Any]:
    """Import the object that has an application's functions, and return it and its module.

    Raises:
        IsolangError: the module cannot be imported, or has no such object.
    """
    where, _, name = text.partition(":")
    path = Path(where)
    if where.endswith(".py"):
        if not path.is_file():
            raise IsolangError(f"{where}: no such file (got --play {text}, expected FILE.py)")
        where = path.stem
    folder = str(path.resolve().parent if path.suffix == ".py" else Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        found: Any = import_module(where)
    except Exception as error:  # an error in the user's file
        raise IsolangError(
            f"{text}: cannot import the file ({type(error).__name__}: {error}); hint: --play "
            "takes FILE.py, MODULE or FILE.py:OBJECT"
        ) from error
    there = getattr(found, "__file__", None)
    if path.suffix == ".py" and (there is None or Path(there).resolve() != path.resolve()):
        raise IsolangError(
            f"{text}: another module has this name (got {there or 'a built-in module'}, expected "
            f"{path.resolve()}); hint: rename the file"
        )
    if name and not hasattr(found, name):
        raise IsolangError(f"{text}: no such object (got {name!r})")
    return (getattr(found, name) if name else found), found


def require_level(at: str) -> str:
    """Return the PostgreSQL level to play predictions at.

    Raises:
        IsolangError: PostgreSQL has no level of this name.
    """
    if at not in LEVELS:
        raise IsolangError(
            f"--play: PostgreSQL has no level of this name {unknown_name_details(at, [*LEVELS])}"
        )
    return LEVELS[at]


def play_run(
    predictions: Predictions,
    app: str,
    *,
    setup: str,
    database: str,
    folder: Path,
    reached: Callable[[int, int], object] = lambda done, total: None,
) -> Foreseen:
    """Play the predictions for a run on PostgreSQL.

    The application finds the database through libpq's environment variables (such as ``PGHOST``)
    and through ``DATABASE_URL``. They are set before the application is imported.

    Args:
        reached: is called with the number of predictions that were played, and of all.

    Raises:
        IsolangError: the level cannot be played, the application cannot be imported, or the server
            cannot be started or reached.
    """
    level = require_level(predictions.at)
    with _server(database) as url, _environment(url):
        calls, stage = (
            _stage_of_statements(predictions.run, url, level)
            if app == STATEMENTS
            else _stage_of_application(predictions.run, import_application(app, setup), url, level)
        )
        try:
            return play(predictions, calls, stage, folder, reached=reached)
        finally:
            stage.leave()


@contextmanager
def _server(database: str) -> Iterator[str]:
    """Start a server if the user names none, and yield the URL of the database."""
    from isolang.run.targets import target_named

    if database != "postgres":
        yield database
        return
    started: Any = target_named(database)
    try:
        started.start()
        yield f"postgresql://postgres@/postgres?host={started.server.folder}"
    finally:
        started.close()


@contextmanager
def _environment(url: str) -> Iterator[None]:
    """Set the environment variables that applications use to find a database."""
    from psycopg import conninfo

    names = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "password": "PGPASSWORD",
             "dbname": "PGDATABASE"}  # fmt: skip
    found = conninfo.conninfo_to_dict(url)
    variables = {"DATABASE_URL": url} | {
        variable: str(found[name]) for name, variable in names.items() if found.get(name)
    }
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


# --- the functions of an application ---


def _stage_of_application(
    run: PassedRun, app: Application, url: str, level: str
) -> tuple[dict[int, AppCall | str], Stage]:
    """Return the application's calls of a run's transactions, and the stage to play them on."""
    calls: dict[int, AppCall | str] = {}
    for number in run.numbers:
        found = app.call_of(run.history.labels_of(number))
        name = run.history.name_of(number)
        calls[number] = (
            found if isinstance(found, AppCall) else f"no function is known for {name}: {found}"
        )
    return calls, Stage(
        setup=app.setup,
        watching=partial(_watching, url),
        server_name=partial(server_name, url),
        level=level,
        prepared=partial(_prepared, url),
    )


def _prepared(url: str) -> PreparedState:
    from isolang.harm.calls import DEFAULT_IGNORED
    from isolang.harm.state import PreparedState
    from isolang.observe.ways.inside import server_of

    return PreparedState(server_of("predict", url, {}), ignored=DEFAULT_IGNORED)


# --- the recorded statements ---


class _RecordedCall:
    """Executes a recorded transaction's statements on separate rows."""

    def __init__(self, run: PassedRun, txn: int, url: str) -> None:
        self._url = url
        self._statements: list[tuple[str, list[object]]] = []
        self.sent: list[int] = []
        numbered = list(enumerate(run.order.programs[txn].steps))
        groups = groupby(numbered, lambda one: one[1].sent.number if one[1].sent else -1 - one[0])
        for _, group in groups:
            steps = [step for _, step in group]
            self._statements += _statements_as_sql(run, steps)
            self.sent += [len(self._statements)] * len(steps)

    def __call__(self) -> None:
        import psycopg

        with psycopg.connect(self._url) as connection:
            for text, values in self._statements:
                connection.execute(text, values)


def _statements_as_sql(
    run: PassedRun, steps: Sequence[Access]
) -> Iterator[tuple[str, list[object]]]:
    """Yield SQL statements that have the same effect as one recorded statement.

    SOUND BECAUSE: a statement that reads and writes a row locks it, and reads its newest version. A
    ``SELECT … FOR UPDATE`` directly followed by the write has the same effect: no other transaction
    writes the row between the two statements, and they wait or fail in the same cases as the single
    statement.
    """
    key = run.history.key
    writes = {key(step.key): step.op for step in steps if step.kind in (c.WRITE, c.APPEND)}
    appends = {key(step.key) for step in steps if step.kind == c.APPEND}
    reads = dict.fromkeys(key(s.key) for s in steps if s.kind not in (c.WRITE, c.APPEND))
    lock = next((step.sent.lock for step in steps if step.sent and step.sent.lock), "")
    updated = [one for one in dict.fromkeys([*reads, *appends]) if one in writes]
    for rows, locked in (
        ([one for one in reads if one not in writes], f" FOR {lock.upper()}" if lock else ""),
        (updated, " FOR UPDATE"),
    ):
        if rows:
            marks = ", ".join(["%s"] * len(rows))
            yield f"SELECT k, v FROM {_TABLE} WHERE k IN ({marks}){locked}", list(rows)
    for row, op in writes.items():
        yield f"UPDATE {_TABLE} SET v = %s WHERE k = %s", [op, row]


def _stage_of_statements(
    run: PassedRun, url: str, level: str
) -> tuple[dict[int, AppCall | str], Stage]:
    """Return calls that execute the recorded statements in a separate schema, and their stage."""
    import psycopg

    history = run.history
    calls: dict[int, AppCall | str] = {}
    keys = dict.fromkeys(
        history.key(step.key) for program in run.order.programs for step in program.steps
    )
    for txn, number in enumerate(run.numbers):
        name = history.name_of(number)
        if run.order.programs[txn].scans:
            calls[number] = (
                f"{name} reads by a condition, which --play {STATEMENTS} does not play; hint: "
                "--play FILE.py plays the functions that the labels name"
            )
            continue
        recorded = _RecordedCall(run, txn, url)
        labels = " ".join(history.labels_of(number))
        calls[number] = AppCall(
            recorded, shown=f"{name} {labels}".strip(), sent=tuple(recorded.sent)
        )

    made = False  # whether ``setup`` has created the schema

    def setup() -> None:
        nonlocal made
        with psycopg.connect(url, autocommit=True) as connection:
            if made:
                connection.execute(f"DROP SCHEMA {_SCHEMA} CASCADE")
            try:
                connection.execute(f"CREATE SCHEMA {_SCHEMA}")
            except psycopg.Error as error:
                raise IsolangError(
                    f"--play {STATEMENTS}: the schema {_SCHEMA} cannot be created "
                    f"({str(error).splitlines()[0]}); hint: drop it if an earlier run left it "
                    "behind"
                ) from None
            made = True
            connection.execute(f"CREATE TABLE {_TABLE} (k text PRIMARY KEY, v int)")
            connection.cursor().executemany(
                f"INSERT INTO {_TABLE} VALUES (%s, 0)", [(one,) for one in keys]
            )

    def leave() -> None:
        if made:
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(f"DROP SCHEMA {_SCHEMA} CASCADE")

    return calls, Stage(
        setup=setup,
        watching=partial(_watching, url),
        server_name=partial(server_name, url),
        level=level,
        leave=leave,
    )


@contextmanager
def _watching(url: str, folder: Path) -> Iterator[None]:
    """Record into a folder what the drivers imported so far send to a database."""
    from isolang.observe.ways.inside import InsideProxy, server_of
    from isolang.observe.ways.libraries import imported_libraries
    from isolang.observe.ways.library import LibraryWatch

    proxy = InsideProxy(server_of("predict", url, {}), folder / "observing.edn")
    proxy.start()
    with ExitStack() as ending:
        ending.callback(proxy.leave)
        for library in imported_libraries():
            watch = LibraryWatch(proxy, library, label=current_label, client=current_client)
            ending.enter_context(watch)
        yield
        proxy.complete()

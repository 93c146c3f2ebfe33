"""Tests an adapter before a run trusts it, because a wrong adapter would accuse a correct database.

Each check plays one or two short transactions in the same way as a run. It then compares the
*recorded* history with the known effects of the transactions and with the values that another
client reads afterwards. A check is skipped if it needs a feature that the target ``lacks``. No
check depends on how soon other clients see a commit, because a replica may lag.

A check *fails* if the history is wrong. It is *doubtful* if the history is right but less precise
than it could be, for example because the adapter reports *maybe* although the database has clearly
refused to commit.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from msgspec import Struct
from msgspec.structs import replace

from isolang.errors import IsolangError
from isolang.history.values import Keyword
from isolang.run.adapter import BaseClient
from isolang.run.operation import (
    DELETED,
    Abort,
    Append,
    Condition,
    Delete,
    Insert,
    InsertRows,
    Operation,
    Program,
    Read,
    Scan,
    SelectWhere,
    Swap,
    UndoneWrite,
    Upsert,
    Write,
    child_key,
)
from isolang.run.outcome import Outcome
from isolang.run.play.blame import PROGRAMMING_ERRORS, blame_error
from isolang.run.play.interleave import interleave
from isolang.run.play.level_mix import LevelMix
from isolang.run.play.transaction import driver_for, play, to_written_type, with_optional_statements
from isolang.run.record.recorder import Recorder
from isolang.run.target import (
    Client,
    Level,
    OptionalStatements,
    ReportsLevel,
    SupportsSwap,
    Target,
    TargetError,
)

if TYPE_CHECKING:
    from isolang.history.history import History
    from isolang.history.statements import Lock

REGISTERS: Final = tuple(f"selftest/{number:02}" for number in range(40))
LISTS: Final = tuple(f"selftest/list/{number}" for number in range(6))
SECONDS: Final = 60.0
"""The time limit for all checks together."""

_VISIBLE_WITHIN_S: Final = 5.0  # every client must see a commit within this many seconds
_STEP_FEATURES: Final = frozenset({"conversations"})
_LOCKS: Final[tuple[Lock, ...]] = ("update", "share")


class AdapterCheck(Struct, frozen=True, kw_only=True):
    """The result of one check of the self-test.

    Attributes:
        name: the property that must hold.
        outcome: the result of the check.
        why: the reason why the check did not pass; empty if it passed.
    """

    name: str
    outcome: Literal["passed", "failed", "doubtful", "not played"]
    why: str = ""


class SelfTest(Struct, frozen=True, kw_only=True):
    """The results of an adapter's self-test.

    Attributes:
        schema: the version, which changes when a field changes its meaning or goes.
        target: its address, without secrets.
        level: its level under test.
        checks: the checks with their results.
    """

    schema: Literal[1] = 1
    target: str
    level: str
    checks: tuple[AdapterCheck, ...]


class CheckFailed(Exception):  # noqa: N818 - a finding
    """Raised when the recorded history is wrong."""


class CheckDoubtful(Exception):  # noqa: N818 - a finding
    """Raised when the recorded history is right, but less precise than it could be."""


class CheckNotPlayed(Exception):  # noqa: N818 - no fault
    """Raised when the target lacks a feature that the check needs."""


def selftest_levels(mix: LevelMix, target: Target, claims: str) -> tuple[AdapterCheck, ...]:
    """Test an adapter at the level of a run; if the run mixes levels, test it at each of them.

    Args:
        claims: the specification of the run. It is ignored if the run mixes levels, because no
            single level of a mix claims it.

    Raises:
        TargetError: the tables cannot be created.
    """
    if len(mix.parts) == 1:
        return selftest(target, mix.level, claims)
    found = []
    for level in mix.parts:
        other_levels = [one for one in mix.parts if one != level]
        found += [
            replace(one, name=f"{level.name}: {one.name}")
            for one in selftest(target, level, other_levels=other_levels)
        ]
    return tuple(found)


def selftest(
    target: Target,
    level: Level,
    claims: str = "",
    *,
    other_levels: Sequence[Level] = (),
    only: str = "",
) -> tuple[AdapterCheck, ...]:
    """Test an adapter at one level, and return the results of its checks.

    Raises:
        TargetError: the tables cannot be created.
    """
    target.setup(REGISTERS, LISTS)
    found = []
    with tempfile.TemporaryDirectory(prefix="isocheck-") as folder:
        bench = Bench(target, level, claims, Path(folder), other_levels)
        for name, check in CHECKS:
            if not only or name == only:
                found.append(_run_check(name, check, bench))
        if not only or only == SET_UP_AGAIN:
            found.append(_run_check(SET_UP_AGAIN, _check_second_setup, bench))
        bench.disconnect()
    target.remove()
    return tuple(found)


def require_passed(found: Sequence[AdapterCheck], target: Target) -> tuple[str, ...]:
    """Return the doubts as sentences; raise an error if a check has failed.

    Raises:
        TargetError: a check has failed; the message says which check, and what to do.
    """
    for one in found:
        if one.outcome == "failed":
            raise TargetError(
                f"{target.address}: the adapter fails its self-test: {one.name}: {one.why}; hint: "
                "--selftest shows all checks; if the database itself is at fault, --trusted "
                "skips the self-test"
            )
    return tuple(f"self-test: {one.name}: {one.why}" for one in found if one.outcome == "doubtful")


def _run_check(name: str, check: Callable[[Bench], None], bench: Bench) -> AdapterCheck:
    try:
        check(bench)
    except CheckFailed as failing:
        return AdapterCheck(name=name, outcome="failed", why=str(failing))
    except CheckDoubtful as doubtful:
        return AdapterCheck(name=name, outcome="doubtful", why=str(doubtful))
    except CheckNotPlayed as lacking:
        return AdapterCheck(name=name, outcome="not played", why=str(lacking))
    except Exception as error:
        reported = (
            error if isinstance(error, IsolangError) else blame_error(error, bench.target) or error
        )
        what = " ".join(str(reported).split()) or type(error).__name__
        return AdapterCheck(name=name, outcome="failed", why=what)
    return AdapterCheck(name=name, outcome="passed")


class PlayedTransaction(Struct, frozen=True):
    """A recorded transaction: its outcome and operations in the history, and the client's error."""

    outcome: Outcome
    ops: tuple[tuple[Any, ...], ...]
    error: str


class Bench:
    """A target under test, together with the clients, keys and values that its checks use.

    Attributes:
        claims: the specifications, at least one of which each recorded history must satisfy.
        other_levels: other levels at which transactions run on the same connection in between.
    """

    def __init__(
        self,
        target: Target,
        level: Level,
        claims: str,
        folder: Path,
        other_levels: Sequence[Level] = (),
    ) -> None:
        self.target, self.level, self.other_levels = target, level, tuple(other_levels)
        self.claims = tuple(dict.fromkeys([level.claims, claims or level.claims]))
        self._folder, self._numbers = folder, count(1)
        self._registers, self._lists = iter(REGISTERS), iter(LISTS)
        self._clients: dict[str, Client] = {}

    def new_register(self) -> str:
        """Return a register that no check has used yet."""
        return next(self._registers)

    def new_list(self) -> str:
        """Return a list that no check has used yet."""
        return next(self._lists)

    def new_value(self) -> int:
        """Return a value that no check has written yet."""
        return 1_000_000 + next(self._numbers)

    def client(self, name: str = "first") -> Client:
        """Return the client with this name; connect it if it cannot begin a transaction yet."""
        client = self._clients.get(name)
        if client is None or not client.usable():
            self.disconnect(name)
            client = self._clients[name] = self.target.connect()
        return client

    def disconnect(self, *names: str) -> None:
        """Close the clients with these names; if no name is given, close all clients."""
        for name in names or tuple(self._clients):
            client = self._clients.pop(name, None)
            if client is not None:
                with suppress(Exception):  # the connection has been lost
                    client.close()

    def require_features(self, *what: str) -> None:
        """Check that the target has all of these features.

        Raises:
            CheckNotPlayed: the target lacks one of the features.
        """
        for one in what:
            if one in self.target.lacks:
                raise CheckNotPlayed(f"the target lacks {one}")

    def play(
        self, *program: Operation, by: str = "first", client: Client | None = None
    ) -> PlayedTransaction:
        """Play one transaction on ``client``, or by default on the client with the name ``by``."""
        with self.recorder() as recorder:
            outcome, error = play(
                program,
                recorder=recorder,
                session=0,
                client=client or self.client(by),
                driver=driver_for(self.target),
                level=self.level.name,
                lists=frozenset(LISTS),
            )
            if outcome == "maybe":
                self.disconnect(by)
            return _recorded_transaction(recorder.history(), outcome, error)

    def recorder(self) -> Recorder:
        """Return a recorder that writes into a new file."""
        return Recorder(self._folder / f"{next(self._numbers)}.edn")

    def expect_records(self, *program: Operation, shows: Sequence[object]) -> None:
        """Play a transaction, and check that it commits and records the expected values.

        Raises:
            CheckFailed: the transaction does not commit, or its history has other values.
        """
        seen = self.play(*program)
        if seen.outcome != "committed":
            raise CheckFailed(
                f"{_operations_text(program)}: recorded as {seen.outcome} ({seen.error})"
            )
        for number, (op, expected) in enumerate(zip(seen.ops, shows, strict=True)):
            if not _is_same_value(_value(op), expected):
                before = f"after {_operations_text(seen.ops[:number])}, " if number else ""
                raise CheckFailed(
                    f"{before}{_operations_text([op])} was recorded, "
                    f"expected {_value_text(expected)}"
                    + (_ROW_COUNT_HINT if expected != DELETED and _value(op) == DELETED else "")
                )

    def wait_for_value(self, key: str, *expected: object, by: str = "other") -> object:
        """Read a key with another client until it has an expected value, and return that value.

        Raises:
            CheckFailed: the key still has none of the expected values when a commit must have
                become visible.
        """
        until = time.monotonic() + _VISIBLE_WITHIN_S
        while True:
            seen = self.play(Read(key), by=by)
            if seen.outcome == "committed" and any(
                _is_same_value(_value(seen.ops[0]), one) for one in expected
            ):
                return _value(seen.ops[0])
            if time.monotonic() > until:
                break
            time.sleep(0.05)
        found = (
            _operations_text(seen.ops)
            if seen.outcome == "committed"
            else f"{seen.outcome} {seen.error}"
        )
        one = " or ".join(_value_text(value) for value in expected)
        raise CheckFailed(f"another client read {found}, expected {one}")

    def play_interleaved(
        self, programs: Sequence[Program], schedule: Sequence[int]
    ) -> tuple[PlayedTransaction, ...]:
        """Play transactions step by step, each with its own connection, and judge their history.

        Raises:
            CheckFailed: the recorded history violates the specification claimed by the level.
        """
        with self.recorder() as recorder:
            played = interleave(
                programs,
                schedule,
                target=self.target,
                level=self.level.name,
                recorder=recorder,
            )
            history = recorder.history()
            sessions = history.columns.txn_session.tolist()[: history.t0]
            ops = dict(zip(sessions, history.transactions(), strict=True))
        for one in played:
            if one.outcome == "maybe":
                raise CheckFailed(
                    f"the outcome is unknown although there was no conflict: {one.error}"
                )
        self._judge(history)
        return tuple(
            PlayedTransaction(one.outcome, tuple(map(tuple, ops[session].ops)), one.error)
            for session, one in zip(sorted(ops), played, strict=True)
        )

    def _judge(self, history: History) -> None:
        from isolang.api import check
        from isolang.verdict import Invalid

        verdicts = [check(history, claims) for claims in self.claims]
        found = [one for one in verdicts if isinstance(one, Invalid)]
        if len(found) == len(verdicts):
            shown = "; ".join(
                f"{one.status} {_operations_text(map(tuple, one.ops))}"
                for one in history.transactions()
            )
            raise CheckFailed(
                f"{shown}: {found[0].violation.anomaly}, which {self.claims[0]} forbids (does "
                "begin() start a transaction at this level?)"
            )


_ROW_COUNT_HINT: Final = ": does the adapter check how many rows a statement changed?"


def _recorded_transaction(
    history: History, outcome: Outcome, error: Exception | None
) -> PlayedTransaction:
    ops = tuple(tuple(op) for one in history.transactions() for op in one.ops)
    return PlayedTransaction(outcome, ops, "" if error is None else " ".join(str(error).split()))


def _value(op: Sequence[Any]) -> object:
    value = op[2] if len(op) > 2 else DELETED
    return DELETED if isinstance(value, Keyword) and value == DELETED else value


def _is_same_value(found: object, expected: object) -> bool:
    """Return whether a history treats two values as the same; 3.0 is not 3, and True is not 1."""
    if isinstance(found, list) and isinstance(expected, list):
        return len(found) == len(expected) and all(map(_is_same_value, found, expected))
    return type(found) is type(expected) and found == expected


def _value_text(value: object) -> str:
    if isinstance(value, list):
        return f"[{' '.join(map(str, value))}]"
    return "nil" if value is None else "no row" if value == DELETED else str(value)


def _operations_text(ops: Any) -> str:
    """Return operations as text on one line, whether or not they are in recorded form."""
    parts = []
    for op in ops:
        if isinstance(op, tuple):
            parts.append(f"{op[0]}({op[1]}, {_value_text(_value(op))})")
        else:
            key = getattr(op, "key", "")
            parts.append(f"{type(op).__name__.lower()}{f' {key}' if key else ''}")
    return " ".join(parts) or "nothing"


# --- one client ---


def _check_initial_values(bench: Bench) -> None:
    bench.expect_records(Read(bench.new_register()), Read(bench.new_list()), shows=[None, []])


def _check_own_writes(bench: Bench) -> None:
    x, one, two = bench.new_register(), bench.new_value(), bench.new_value()
    bench.expect_records(
        Read(x), Write(x, one), Read(x), Write(x, two), Read(x), shows=[None, one, one, two, two]
    )


def _check_appends(bench: Bench) -> None:
    x, values = bench.new_list(), [bench.new_value() for _ in range(3)]
    one, two, three = values
    bench.expect_records(Append(x, one), Append(x, two), Read(x), shows=[one, two, [one, two]])
    bench.expect_records(Append(x, three), Read(x), shows=[three, values])
    bench.wait_for_value(x, values)


def _check_commit(bench: Bench) -> None:
    x, value = bench.new_register(), bench.new_value()
    bench.expect_records(Write(x, value), shows=[value])
    bench.wait_for_value(x, value)


def _check_no_cache(bench: Bench) -> None:
    """Check that a client that has read a key sees another client's later write to it."""
    x, value = bench.new_register(), bench.new_value()
    bench.expect_records(Read(x), shows=[None])
    seen = bench.play(Write(x, value), by="other")
    if seen.outcome != "committed":
        raise CheckFailed(
            f"{_operations_text(seen.ops)}: recorded as {seen.outcome} ({seen.error})"
        )
    try:
        bench.wait_for_value(x, value, by="first")
    except CheckFailed as failing:
        raise CheckFailed(f"{failing}: does the adapter cache what it has read?") from None


def _check_values(bench: Bench) -> None:
    x, large = bench.new_register(), (1 << 40) + 1
    bench.expect_records(Write(x, large), Read(x), shows=[large, large])
    bench.wait_for_value(x, large)


def _check_rows(bench: Bench) -> None:
    bench.require_features("rows")
    x, y, one, two = (
        bench.new_register(),
        bench.new_register(),
        bench.new_value(),
        bench.new_value(),
    )
    bench.expect_records(Delete(x), Read(x), shows=[DELETED, DELETED])
    none = bench.play(Delete(x))
    if [op[0] for op in none.ops] != ["r"]:
        raise CheckFailed(
            "a delete that found no row was recorded as if it had deleted a row" + _ROW_COUNT_HINT
        )
    seen = bench.play(Write(x, one), Read(x))
    found = [_value(op) for op in seen.ops]
    if seen.outcome != "committed" or found not in ([DELETED, DELETED], [one, one]):
        raise CheckFailed(
            f"without a row, {_operations_text(seen.ops)} was recorded ({seen.outcome}): "
            "a write that finds no row must return false or insert the row"
        )
    bench.expect_records(Delete(y), Insert(y, two), Read(y), shows=[DELETED, two, two])
    bench.wait_for_value(y, two)
    again = bench.play(Insert(y, bench.new_value()))
    if again.outcome == "committed":
        raise CheckFailed("an insert of an existing row was recorded as committed")
    bench.wait_for_value(y, two)


def _check_rollback(bench: Bench) -> None:
    bench.require_features("conversations")
    x, one, two = bench.new_register(), bench.new_value(), bench.new_value()
    bench.expect_records(Write(x, one), shows=[one])
    seen = bench.play(Write(x, two), Abort())
    if seen.outcome != "aborted":
        raise CheckFailed(f"a rollback was recorded as {seen.outcome} ({seen.error})")
    bench.expect_records(Read(x), shows=[one])
    bench.wait_for_value(x, one)


def _check_savepoint(bench: Bench) -> None:
    bench.require_features("savepoints", "conversations")
    x, one, two = bench.new_register(), bench.new_value(), bench.new_value()
    bench.expect_records(Write(x, one), UndoneWrite(Write(x, two)), Read(x), shows=[one, one])
    bench.wait_for_value(x, one)
    y, three, four = bench.new_register(), bench.new_value(), bench.new_value()
    bench.expect_records(
        Write(x, three), UndoneWrite(Write(y, four)), Read(x), Read(y), shows=[three, three, None]
    )
    bench.wait_for_value(x, three)
    bench.wait_for_value(y, None)


def _check_ranges(bench: Bench) -> None:
    bench.require_features("range reads", "conversations")
    keys, values = [bench.new_register() for _ in range(3)], [bench.new_value() for _ in range(4)]
    bench.expect_records(*map(Write, keys, values), shows=values[:3])
    bench.expect_records(Scan(tuple(keys)), shows=values[:3])
    client = bench.client()
    client.begin(bench.level.name)
    found = {
        key: to_written_type(key, value, ())
        for key, value in client.select(values[1], values[2]).items()
    }
    changed = client.change(values[1], values[1], values[3])
    client.commit()
    if found != dict(zip(keys[1:], values[1:], strict=False)):
        raise CheckFailed(f"select({values[1]}, {values[2]}) gave {found}, expected two rows")
    if changed != [keys[1]]:
        raise CheckFailed(f"change() gave {changed}, expected {[keys[1]]}")
    bench.wait_for_value(keys[1], values[3])
    bench.wait_for_value(keys[2], values[2])


def _check_optional_statements(bench: Bench) -> None:
    offers = bench.target.offers
    if not offers:
        raise CheckNotPlayed("the target offers no optional statements")
    bench.require_features("range reads", "rows", "conversations")
    keys, values = [bench.new_register() for _ in range(3)], [bench.new_value() for _ in range(3)]
    bench.expect_records(*map(Write, keys, values), shows=values)
    found = dict(zip(keys, values, strict=True))
    client = with_optional_statements(bench.client())
    if "row locks" in offers:
        for lock in _LOCKS:
            question = partial(_read_locked, client, keys[0], lock)
            _check_same_rows(bench, f"read() with the lock {lock}", {keys[0]: values[0]}, question)
    if "two ranges" in offers:
        _check_same_rows(bench, "within()", {keys[1]: values[1]},
                   partial(client.within, values[0], values[1], keys[1], keys[2]))  # fmt: skip
    if "nulls" in offers:
        _check_nulls(bench, keys, values)
    if "skip locked" in offers:
        _check_skip_locked(bench, found)
    for merge in (False, True):
        if ("merge" if merge else "upsert") in offers:
            for there in (True, False):
                _check_upsert(bench, keys[0], merge=merge, there=there)
    if "rows at once" in offers:
        _check_rows_at_once(bench, keys, [bench.new_value() for _ in range(3)])
    if "cascades" in offers:
        child = child_key(keys[0], "child")
        bench.expect_records(
            Insert(child, values[0]), Read(child), Delete(keys[0], (child,)), Read(child),
            shows=[values[0], values[0], DELETED, DELETED, DELETED],
        )  # fmt: skip
        bench.wait_for_value(child, DELETED)


def _read_locked(client: OptionalStatements, key: str, lock: Lock) -> dict[str, Any]:
    client.lock = lock
    return {key: cast("Client", client).read(key)}


def _check_same_rows(
    bench: Bench, what: str, expected: dict[str, Any], ask: Callable[[], dict[str, Any]]
) -> None:
    """Check that a query, in its own transaction, returns the expected rows."""
    client = bench.client()
    client.begin(bench.level.name)
    found = {key: to_written_type(key, value, ()) for key, value in ask().items()}
    client.commit()
    if found != expected:
        raise CheckFailed(f"{what} gave {found}, expected {expected}")


def _check_nulls(bench: Bench, keys: Sequence[str], values: Sequence[int]) -> None:
    """Check that a row whose value is NULL satisfies only the condition ``null``."""
    client = with_optional_statements(plain := bench.client())
    plain.begin(bench.level.name)
    there = client.clear(keys[1])
    expected: tuple[tuple[Condition, dict[str, Any]], ...] = (
        ("null", {keys[1]: None}),
        ("not null", {keys[0]: values[0], keys[2]: values[2]}),
        ("outside", {keys[0]: values[0]}),
    )
    for condition, rows in expected:
        found = client.where(SelectWhere(condition, tuple(keys), values[2], values[2]))
        if found != rows:
            raise CheckFailed(f"where() with {condition} gave {found}, expected {rows}")
    plain.rollback()
    if not there:
        raise CheckFailed("clear() gave false for a row that is there")


def _check_skip_locked(bench: Bench, rows: dict[str, Any]) -> None:
    """Check that two open transactions lock different rows: the second skips locked rows."""
    low, high, taken = min(rows.values()), max(rows.values()), []
    clients = [bench.client(), bench.client("other")]
    for client in clients:
        client.begin(bench.level.name)
        taken.append(with_optional_statements(client).take(low, high))
    for client in clients:
        client.rollback()
    if any(len(one) != 1 or not one.items() <= rows.items() for one in taken):
        raise CheckFailed(f"take() gave {taken}, expected one of {rows} each time")
    if taken[0].keys() == taken[1].keys():
        raise CheckFailed(f"take() gave two open transactions the same row, {taken[0]}")


def _check_upsert(bench: Bench, key: str, *, merge: bool, there: bool) -> None:
    value = bench.new_value()
    program = () if there else (Delete(key),)
    bench.expect_records(
        *program, Upsert(key, value, merge), Read(key),
        shows=[*([] if there else [DELETED]), value, value],
    )  # fmt: skip
    bench.wait_for_value(key, value)


def _check_rows_at_once(bench: Bench, keys: Sequence[str], values: Sequence[int]) -> None:
    rows = tuple(zip(keys, values, strict=True))
    bench.expect_records(
        *map(Delete, keys), InsertRows(rows), *map(Read, keys),
        shows=[*[DELETED] * 3, *values, *values],
    )  # fmt: skip
    again = bench.play(InsertRows(rows))
    if again.outcome == "committed":
        raise CheckFailed("an insert of existing rows was recorded as committed")
    client = bench.client()
    client.begin(bench.level.name)
    removed = sorted(with_optional_statements(client).remove(values[1], values[2]))
    client.commit()
    if removed != sorted(keys[1:]):
        raise CheckFailed(f"remove() gave {removed}, expected {sorted(keys[1:])}")
    bench.wait_for_value(keys[0], values[0])
    bench.wait_for_value(keys[1], DELETED)


def _check_swap(bench: Bench) -> None:
    x, y, one, two, other = (
        bench.new_register(),
        bench.new_register(),
        *(bench.new_value() for _ in range(3)),
    )
    if not isinstance(bench.client(), SupportsSwap):
        raise CheckNotPlayed("the client has no swap() method")
    bench.expect_records(Swap(x, None, one), shows=[None, one])
    bench.expect_records(Swap(x, one, two), shows=[one, two])
    bench.play(Swap(x, one, other))
    bench.wait_for_value(x, two)
    bench.play(Swap(y, one, other))
    bench.wait_for_value(y, None)


def _check_level(bench: Bench) -> None:
    bench.require_features("conversations")
    client = bench.client()
    if not isinstance(client, ReportsLevel):
        raise CheckNotPlayed("the database does not report the level")
    for level in (bench.level, *bench.other_levels, bench.level):
        client.begin(level.name)
        client.read(bench.new_register())
        reported = client.isolation()
        client.rollback()
        if not reported:
            raise CheckNotPlayed("the database does not report the level")
        if reported != level.name:
            raise CheckFailed(
                f"the database reports {reported!r} in a transaction at {level.name!r}"
            )


class _LostBeforeCommit(BaseClient):
    """A client whose connection is closed immediately before COMMIT."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.begin, self.read, self.write = client.begin, client.read, client.write
        self.rollback, self.resolve = client.rollback, client.resolve  # type: ignore[method-assign]

    def commit(self) -> None:
        self._client.close()
        self._client.commit()


def _check_lost_connection(bench: Bench) -> None:
    bench.require_features("conversations")
    x, value = bench.new_register(), bench.new_value()
    client: Any = _LostBeforeCommit(bench.target.connect())
    try:
        seen = bench.play(Write(x, value), client=client)
    except PROGRAMMING_ERRORS as error:
        raise CheckDoubtful(
            f"commit() raised {type(error).__name__}, which ends a run as an error of the adapter"
        ) from None
    expected = {"committed": (value,), "aborted": (None,), "maybe": (None, value)}[seen.outcome]
    try:
        bench.wait_for_value(x, *expected)
    except CheckFailed as failing:
        how = f"({seen.error})" if seen.error else "(commit() raised nothing)"
        raise CheckFailed(f"recorded as {seen.outcome} {how}; {failing}") from None


class _LostAfterCommit(BaseClient):
    """A client whose connection is lost after COMMIT is sent and before the response arrives."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.begin, self.read, self.write = client.begin, client.read, client.write
        self.rollback, self.resolve = client.rollback, client.resolve  # type: ignore[method-assign]

    def commit(self) -> None:
        self._client.commit()
        raise ConnectionResetError("the connection was lost before the answer to COMMIT")


def _check_lost_response(bench: Bench) -> None:
    bench.require_features("conversations")
    x, value = bench.new_register(), bench.new_value()
    lost = bench.target.connect()
    client: Any = _LostAfterCommit(lost)
    try:
        seen = bench.play(Write(x, value), client=client)
    finally:
        with suppress(Exception):  # the adapter may have closed the connection
            lost.close()
    if seen.outcome == "aborted":
        raise CheckFailed(
            "classify(ConnectionResetError, 'commit') or resolve() said 'aborted', although "
            f"{x} may have been committed: return 'maybe' for an error that leaves the "
            "outcome open"
        )


# --- two clients ---


def _check_begin(bench: Bench) -> None:
    bench.require_features("conversations")
    x, one = bench.new_register(), bench.new_value()
    seen = bench.play_interleaved([(Write(x, one), Abort()), (Read(x),)], (0, 1, 1, 0))
    if seen[0].outcome != "aborted":
        raise CheckFailed(f"a rollback was recorded as {seen[0].outcome}")
    bench.wait_for_value(x, None)


def _check_repeated_read(bench: Bench) -> None:
    bench.require_features("conversations")
    x = bench.new_register()
    bench.play_interleaved([(Read(x), Read(x)), (Write(x, bench.new_value()),)], (0, 1, 1, 0, 0))


def _check_conflict(bench: Bench) -> None:
    """Check the recorded outcomes of two transactions that write the same key.

    Each transaction also writes a key that the other does not write. This key shows whether the
    transaction has committed, whatever happens to the common key.
    """
    bench.require_features("conversations")
    x, keys, values = (
        bench.new_register(),
        [bench.new_register(), bench.new_register()],
        [bench.new_value(), bench.new_value()],
    )
    programs = [(Read(x), Write(own, v), Write(x, v)) for own, v in zip(keys, values, strict=True)]
    with bench.recorder() as recorder:
        played = interleave(
            programs,
            (0, 1, 0, 1, 0, 1, 0, 1),
            target=bench.target,
            level=bench.level.name,
            recorder=recorder,
        )
    for own, value, one in zip(keys, values, played, strict=True):
        possible = {"committed": (value,), "aborted": (None,), "maybe": (None, value)}
        try:
            bench.wait_for_value(own, *possible[one.outcome])
        except CheckFailed as failing:
            error = f" ({one.error})" if one.error else ""
            raise CheckFailed(
                f"of two writers of one key, one was recorded as {one.outcome}{error}; {failing}"
            ) from None
    unclear = next((one.error for one in played if one.outcome == "maybe"), "")
    if unclear:
        raise CheckDoubtful(
            f"after two writers of one key, {unclear!r} at COMMIT is of unknown outcome: "
            "if it says that nothing was applied, let classify() return 'aborted'"
        )


def _check_second_setup(bench: Bench) -> None:
    bench.disconnect()  # no client may use the tables while they are being removed
    bench.target.remove()
    bench.target.setup(REGISTERS, LISTS)
    first: dict[str, object] = dict.fromkeys(REGISTERS) | {key: [] for key in LISTS}
    for key, loaded in first.items():
        seen = bench.play(Read(key))
        if seen.outcome != "committed" or _value(seen.ops[0]) != loaded:
            raise CheckFailed(
                f"{_operations_text(seen.ops)} was read, expected {_value_text(loaded)}: "
                "a second run would be blamed for values that the first run wrote"
            )


CHECKS: Final[tuple[tuple[str, Callable[[Bench], None]], ...]] = (
    ("keys begin without a value and as empty lists", _check_initial_values),
    ("a client reads its own writes", _check_own_writes),
    ("a list keeps its elements in the order of the appends", _check_appends),
    ("another client reads committed writes", _check_commit),
    ("a client reads later changes of another client", _check_no_cache),
    ("values are read exactly as they were written", _check_values),
    ("writes and deletes report whether there was a row", _check_rows),
    ("a rolled-back write leaves nothing behind", _check_rollback),
    ("a rollback to a savepoint undoes the writes after it", _check_savepoint),
    ("range reads and updates return the right rows", _check_ranges),
    ("optional statements have their documented effect", _check_optional_statements),
    ("a swap writes only if the value is the expected one", _check_swap),
    ("the level is the requested one", _check_level),
    ("no transaction reads uncommitted data of another", _check_begin),
    ("reads in a transaction are repeatable if the level promises it", _check_repeated_read),
    ("errors are classified by the transaction's outcome", _check_conflict),
    ("a connection lost before COMMIT does not count as a commit", _check_lost_connection),
    ("an answer lost after COMMIT does not count as an abort", _check_lost_response),
)
SET_UP_AGAIN: Final = "a second setup starts with empty tables"


def check_names() -> Iterator[str]:
    """Yield the names of all checks."""
    yield from (name for name, _ in CHECKS)
    yield SET_UP_AGAIN

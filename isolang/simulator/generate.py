"""Generates a history by running a workload on the simulated database."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from msgspec.structs import asdict

from isolang.errors import HistoryError
from isolang.simulator.anomalies import BUGS
from isolang.simulator.rules import RULES
from isolang.simulator.truth import Planted, SimulatedHistory, Truth
from isolang.simulator.workload import Workload

if TYPE_CHECKING:
    from isolang._native import Columns

_NATIVE_NAME: Final = {"mini_transactions": "mini"}
_NOT_NATIVE: Final = ("rule", "bugs", "key_distribution")


def generate(workload: Workload, *, timeout: float | None = None) -> SimulatedHistory:
    """Run a workload on the simulated database.

    >>> history = generate(Workload(rule="strict-serializable", transactions=1000, values=3))
    >>> history.counts()["operations"], history.truth.verdict("sser")
    (8000, True)

    Args:
        workload: the options of the workload.
        timeout: the time limit in seconds; ``None`` for no limit.

    Returns:
        The history with its truth. Begin and end times count events of the simulation. Keys are
        numbered from 0, and values from 1. A read of nil returned the initial state.

    Raises:
        HistoryError: if the options contradict each other.
        TimeoutError: if the simulation took longer than the timeout.
    """
    from isolang import _native

    options = _native.WorkloadOptions()
    rule = RULES[workload.rule]
    options.set_mechanism(
        rule.reads, exclusive=rule.exclusive, stale=rule.stale, causal=rule.causal
    )
    options.set_key_distribution(workload.key_distribution)
    bugs = [BUGS[name] for name in workload.bugs]
    try:
        for name, value in asdict(workload).items():
            if name not in _NOT_NATIVE:
                setattr(options, _NATIVE_NAME.get(name, name), value)
        for i, bug in enumerate(bugs, 1):
            options.add_plant(
                [(session, aborted, list(ops)) for session, aborted, ops in bug.transactions],
                concurrent=bug.concurrent,
                clock_ahead=bug.clock_ahead,
                at=i / (len(bugs) + 1),
            )
        columns, planted = _native.simulate(options, seconds=timeout or 0.0)
    except ValueError as error:
        raise HistoryError(f"workload: {error}") from None
    except RuntimeError as error:  # OutOfTime in native/core/budget.hpp
        if str(error).startswith("timeout"):
            raise TimeoutError(str(error)) from None
        raise
    where = tuple(
        Planted(
            bug=bug.name,
            transactions=tuple(f"T{columns.txn_number[txn]}" for txn in txns),
            keys=_keys(columns, txns),
            violates=bug.weakest,
        )
        for bug, txns in zip(bugs, planted, strict=True)
    )
    truth = Truth.of(workload.rule, where)
    return SimulatedHistory(
        columns=columns,
        name="<simulated>",
        format="memory",
        position_unit="record",
        initial="a read of nil" + (" or of the empty list" if workload.lists else ""),
        session="one client of the simulation, until it fails to learn an outcome",
        real_time="the begin and the answer of each transaction, measured in events "
        "of the simulation",
        notes=truth.sentences(),
        sha256=hashlib.sha256(repr(workload).encode()).hexdigest(),
        truth=truth,
    )


def _keys(columns: Columns, txns: list[int]) -> tuple[int, ...]:
    start = columns.op_start
    numbers = {int(key) for txn in txns for key in columns.op_key[start[txn] : start[txn + 1]]}
    return tuple(sorted(numbers))

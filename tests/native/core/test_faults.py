"""Whole checks whose n-th allocation fails, or whose deadline has passed at the n-th poll.

Whatever fails, the verdict is the right one or a clean unknown: no crash, no wrong verdict, no
other exception, and the next check is as if nothing had been.
"""

import contextlib
import random

import pytest
from support.engine import contended_history

from isolang import _native, check, load_spec
from isolang.history import History, Transaction
from isolang.simulator import Workload, generate

NEVER = 1 << 62
POINTS = 40  # per case


def _simulated(**options):
    return generate(Workload(transactions=60, sessions=6, keys=5, operations=4, seed=3, **options))


def _skewed():
    """A write skew."""
    return History.from_transactions(
        [
            Transaction(ops=[("r", 0, None), ("w", 1, 1)], session=0),
            Transaction(ops=[("r", 1, None), ("w", 0, 1)], session=1),
            *[Transaction(ops=[("w", 2, i)], session=2) for i in range(1, 20)],
        ]
    )


# History, level, threads, verdict.
CASES = {
    "valid": (_simulated, "ser", 1, "valid"),
    "few values": (lambda: _simulated(values=2), "ser", 1, "valid"),
    "two threads": (lambda: _simulated(values=3), "si", 2, "valid"),
    "return paths": (_simulated, "cc", 1, "valid"),
    "direct checks": (_simulated, "rc", 1, "valid"),
    "invalid": (_skewed, "ser", 1, "invalid"),
    "no write skew in SI": (_skewed, "si", 1, "valid"),
    "a search": (lambda: contended_history(random.Random(1), 60, 3, 3, 6), "ser", 1, None),
}


def _grid(count):
    """Each of the first few, then ever rarer ones, and the last."""
    step = max(1.05, count ** (1 / POINTS))
    points, at = {1, 2, 3, count}, 1.0
    while at < count:
        points.add(int(at))
        at *= step
    return sorted(p for p in points if 1 <= p <= count)


@contextlib.contextmanager
def _faults(**where):
    _native.arm_faults(**where)
    try:
        yield
    finally:
        _native.disarm_faults()


def _judge(history, spec, threads):
    return check(history, spec, threads=threads)


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["allocation", "poll"])
@pytest.mark.parametrize("name", CASES)
def test_a_fault_is_a_clean_unknown(name, fault):
    """At each point of a grid over the whole check."""
    make, level, threads, outcome = CASES[name]
    history, spec = make(), load_spec(level)
    expected = _judge(history, spec, threads).outcome
    assert outcome in (None, expected)
    _native.arm_faults(allocation=NEVER, poll=NEVER)
    _judge(history, spec, threads)
    count = _native.disarm_faults()[fault == "poll"]
    if count == 0 and fault == "allocation":
        pytest.skip("a sanitizer's allocator")
    unknown = 0
    for n in _grid(count):
        with _faults(**{fault: n}):
            found = _judge(history, spec, threads)
        assert found.outcome in (expected, "unknown"), n
        if found.outcome == "unknown":
            unknown += 1
            word = "memory" if fault == "allocation" else "timeout"
            assert word in found.reason, f"{n}: {found.reason}"
    assert unknown > 0
    assert _judge(history, spec, threads).outcome == expected

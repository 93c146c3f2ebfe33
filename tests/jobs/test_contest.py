"""``isocheck solvers``: limits by processor time, shares of the time, and the median of runs."""

import itertools

import pytest
from support.paths import ROOT

from isolang.cli.plot import time_against_size
from isolang.cli.solvers import _middle, _share
from isolang.jobs.child import Children, Limit
from isolang.limits import Deadline
from isolang.output.contest import ContestRow


def row(cpu=None, **more):
    return ContestRow(
        history="h", spec="ser", encoding=more.pop("encoding", "e"), solver=more.pop("solver", "s"),
        verdict="valid", cpu=cpu, **more,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("work", "seconds", "limit", "late"),
    [
        ("compute", 20, Limit(cpu=0.2), True),
        ("wait", 0.5, Limit(cpu=0.2), False),
        ("wait", 20, Limit(cpu=9, clock=0.2), True),
        ("compute", 0.1, Limit(), False),
    ],
)
def test_a_child_is_limited_by_its_own_processor_time(work, seconds, limit, late, monkeypatch):
    """While it waits, only the limit on the clock counts."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "tests"))
    messages = []

    def receive(kind, content):
        messages.append(content)
        return limit if kind == "phase" else None

    ended = Children().run(f"support.working:{work}", seconds, receive)
    assert ended.timed_out == late
    assert ("done" in messages) != late


def test_each_pair_has_a_share_of_the_time():
    """What the first ones leave goes to the later ones, on the largest histories."""
    assert _share(Deadline(None), 3).remaining() is None
    assert _share(Deadline(0), 3) is None
    shares = [_share(Deadline(60), left).remaining() for left in (6, 2, 1)]
    assert shares == [pytest.approx(seconds, abs=1) for seconds in (10, 30, 60)]


def test_the_median_of_runs_has_their_spread():
    """A run without an answer counts as the result, because the pair is not reliable."""
    middle = _middle([row(3.0), row(1.0), row(2.0), row(9.0)])
    assert (middle.cpu, middle.cpu_low, middle.cpu_high, middle.runs) == (2.0, 1.0, 9.0, 4)
    failed = _middle([row(3.0), row(None)])
    assert (failed.cpu, failed.cpu_low, failed.runs) == (None, 3.0, 2)


def test_many_curves_get_a_chart_for_each_encoding():
    """A few stay in one, in which each name is an encoding with its solver."""
    some = [
        row(size / 100, transactions=size, encoding=f"encoding{e}", solver=f"solver{s}",
            prune_stage="fixpoint")
        for e, s, size in itertools.product(range(8), range(4), (10, 100))
    ]  # fmt: skip
    few = time_against_size(some[:14])
    texts = [shape.text for shape in few.shapes if hasattr(shape, "text")]
    assert "encoding0/solver3/fixpoint" in texts
    many = time_against_size(some)
    texts = [shape.text for shape in many.shapes if hasattr(shape, "text")]
    assert [text for text in texts if text.startswith("encoding")] == [
        f"encoding{number}" for number in range(8)
    ]
    assert texts[-4:] == [f"solver{number}" for number in range(4)]
    assert all(0 <= shape.x <= many.width for shape in many.shapes if hasattr(shape, "text"))
    assert all(
        0 <= x <= many.width and 0 <= y <= many.height
        for shape in many.shapes
        if hasattr(shape, "points")
        for x, y in shape.points
    )

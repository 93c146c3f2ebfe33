"""The picture of a witness."""

from __future__ import annotations

from isolang import History, Transaction
from isolang.api import check
from isolang.report.dependencies import MOST, dependencies
from isolang.report.picture import TextLine
from isolang.verdict import Valid


def words(history: History, level: str = "ser") -> list[str]:
    verdict = check(history, level)
    assert isinstance(verdict, Valid)
    picture = dependencies(verdict)
    assert picture is not None
    return [shape.text for shape in picture.shapes if isinstance(shape, TextLine)]


def test_each_dependency_is_an_edge() -> None:
    """Keys of one relation between the same two stand together; reads of T0 have no edge."""
    history = History.from_transactions(
        [
            Transaction([("w", "x", 1), ("w", "y", 1)], session=0),
            Transaction([("r", "x", 1), ("r", "y", 1), ("r", "z", None)], session=1),
            Transaction([("w", "z", 5), ("w", "x", 6)], session=1),
            Transaction([("r", "x", 6)], session=2),
            Transaction([("w", "q", 1)], session=3, status="aborted"),
        ]
    )
    found = words(history)
    assert sorted(one for one in found if one[:2] in ("wr", "ww", "rw", "so")) == [
        "rw x, z", "so", "wr x", "wr x, y", "ww x",
    ]  # fmt: skip
    assert [one for one in found if one.startswith("T")] == ["T1", "T2", "T3", "T4"]


def test_labels_do_not_cover_each_other() -> None:
    """Where two edges cross in the middle, their labels stand beside each other."""
    history = History.from_transactions(
        [
            Transaction([("w", "x", 1)], session=0),
            Transaction([("w", "y", 1)], session=1),
            Transaction([("r", "x", 1), ("r", "y", 1)], session=2),
            Transaction([("r", "y", 1), ("r", "x", 1)], session=3),
        ]
    )
    verdict = check(history, "ser")
    assert isinstance(verdict, Valid)
    picture = dependencies(verdict)
    assert picture is not None
    spots = [(s.x, s.y) for s in picture.shapes if isinstance(s, TextLine) and s.text[:2] == "wr"]
    assert len(spots) == 4
    for i, (x, y) in enumerate(spots):
        assert all(abs(x - a) > 30 or abs(y - b) > 14 for a, b in spots[:i])


def test_a_large_history_has_none() -> None:
    """Nobody could read it."""
    history = History.from_transactions(
        [Transaction([("w", "x", i)], session=i) for i in range(MOST + 1)]
    )
    verdict = check(history, "ser")
    assert isinstance(verdict, Valid)
    assert dependencies(verdict) is None

"""The rows that a cut left are found by an index, whatever was written since."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np

from isolang import Keyword, _native
from isolang.history import History, Transaction
from isolang.history.values import decode

Test = Callable[[object, object], bool]


def number(test: Callable[[int], bool]) -> Test:
    return lambda key, value: isinstance(value, int) and test(value)


#: Texts are compared with numbers for equality alone: an order of them a collation decides.
PREDICATES: dict[str, Test] = {
    ":true": lambda key, value: True,
    "[:= :value 3]": number(lambda v: v == 3),
    '[:= :value "a"]': lambda key, value: value == "a",
    "[:!= :value 3]": lambda key, value: value != 3,
    '[:or [:= :value 2] [:= :value "b"]]': lambda key, value: value in {2, "b"},
    '[:or [:= :value 2] [:not [:= :value "b"]]]': lambda key, value: value != "b",
    '[:and [:= :value "a"] [:> :key 3]]': lambda key, value: value == "a" and key > 3,
    "[:and [:> :key 2] [:<= :key 5]]": lambda key, value: 2 < key <= 5,
    "[:between :key 2 4]": lambda key, value: 2 <= key <= 4,
    "[:and [:>= :key 6] [:= :value 1]]": lambda key, value: key >= 6 and value == 1,
    "[:and [:= :value 1] [:= :value 2]]": lambda key, value: False,
    "[:not [:not [:= :value 4]]]": number(lambda v: v == 4),
}


def one(operations: list[tuple[object, ...]]) -> _native.Columns:
    return History.from_transactions([Transaction(operations)]).columns


def written(last: _native.LastValues, rows: dict[int, object]) -> None:
    """Some keys get values, or none."""
    operations = [
        ("delete", (Keyword("t"), key)) if value is None else ("w", (Keyword("t"), key), value)
        for key, value in rows.items()
    ]
    part, _ = last.open_window(one(operations))
    order = np.arange(part.n_keys() + 1, dtype=np.int64)
    last.replace(last.left_by(part, order, np.zeros(part.n_keys(), dtype=np.int32)))


def found(last: _native.LastValues, predicate: str) -> set[object]:
    """The keys that a predicate read has in its window, all of which it missed."""
    where = f"{{:table :t :where {predicate}}}"
    window, _ = last.open_window(one([("scan", where, {})]))
    return {decode(*window.key(k))[1] for k in range(window.n_keys())}


def test_an_index_finds_what_matches_now():
    """Whatever was changed, deleted, and written again: what a look at all rows finds."""
    rng = random.Random(4)
    for _ in range(40):
        last, rows = _native.LastValues(), dict[int, object]()
        written(last, {100: 1})
        for _ in range(6):
            change = {
                key: rng.choice((1, 2, 3, 4, 5, "a", "b", None))
                for key in rng.sample(range(9), rng.randint(1, 6))
            }
            written(last, change)
            rows = {k: v for k, v in ({100: 1} | rows | change).items() if v is not None}
            for predicate in rng.sample(sorted(PREDICATES), 4):
                test = PREDICATES[predicate]
                expected = {key for key, value in rows.items() if test(key, value)}
                assert found(last, predicate) == expected, (predicate, rows)


def test_an_index_may_be_asked_again_after_most_rows_are_gone():
    """Places that deleted rows had are taken by others."""
    last = _native.LastValues()
    written(last, {key: key for key in range(9000)})
    assert found(last, "[:between :value 3 5]") == {3, 4, 5}
    written(last, dict.fromkeys(range(4, 8990)))
    written(last, dict.fromkeys(range(9000, 9003), 4))
    assert found(last, "[:between :value 3 5]") == {3, 9000, 9001, 9002}

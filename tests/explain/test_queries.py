"""A counterexample of a predicate says what was asked and answered, and which row is wrong."""

import random
from io import BytesIO

import pytest

import isolang
from isolang import Transaction, load_spec
from isolang.history import History
from isolang.history.predicate_words import condition_in_words, rows_in_words
from isolang.history.writers import write_history
from isolang.language.classify.route import route
from isolang.output.text import text_of
from isolang.pipeline.minimal import minimise

IN_GROUP = ("between", "value", 10, 19)


def of(*transactions, spec="ser"):
    """The certified violation of transactions, one a session unless they name it."""
    history = History.from_transactions(
        [t if isinstance(t, Transaction) else Transaction(t) for t in transactions]
    )
    found = isolang.check(history, spec)
    assert found.outcome == "invalid"
    assert found.certified, found
    return found


def remarks(found):
    return [
        (one.kind, f"{one.row}: {one.text}") for q in found.violation.queries for one in q.remarks
    ]


def smallest(found):
    """The smallest part, as it is read again from a file, which is invalid too."""
    part = minimise(found, route(found.spec))
    stream = BytesIO()
    write_history(part, stream, format="edn", renumber=True)
    again = isolang.load_history(BytesIO(stream.getvalue()), format="edn")
    assert isolang.check(again, found.spec).outcome == "invalid", stream.getvalue().decode()
    return again


def test_an_own_write_is_missed():
    found = of([("w", "x", 12), ("w", "y", 13), ("scan", IN_GROUP, {"y": 13})], [("r", "z", None)])
    assert remarks(found) == [("missing", "x: T1 itself had written x = 12 before, which matches")]
    (query,) = found.violation.queries
    assert query.request() == "T1 asked for the rows with value between 10 and 19"
    assert query.answered() == "1 row: y = 13"
    assert smallest(found).counts()["operations"] == 2
    text = text_of(found)
    assert "missing  x: T1 itself had written x = 12 before" in text
    assert "though its own" not in text.split("certified")[0].split("missing")[1]


def test_a_row_that_a_transaction_has_moved_away_is_too_many_or_old():
    found = of([("w", "x", 12)], [("r", "x", 12), ("delete", "x"), ("scan", IN_GROUP, {"x": 12})])
    assert remarks(found) == [("too many", "x = 12: T2 itself had deleted the row before")]
    found = of([("w", "x", 12)], [("r", "x", 12), ("w", "x", 30), ("scan", IN_GROUP, {"x": 12})])
    assert remarks(found) == [
        ("old", "x = 12: T2 itself had written x = 30 before, which does not match")
    ]


def test_a_phantom_appears():
    """The same query finds a row that it missed before: each answer places the writer."""
    found = of(
        [("scan", IN_GROUP, {}), ("scan", IN_GROUP, {"x": 12})],
        [("insert", "x", 12)],
        spec="si",
    )
    assert remarks(found) == [
        ("missing", "x: T2 wrote x = 12, which matches, and T1 comes after T2"),
        ("in it", "x = 12: T1 comes after T2, which wrote it"),
    ]
    assert smallest(found).t0 == 2


def test_a_row_vanishes():
    """A row that was there before and after is missing, though its versions are many."""
    versions = [[("r", "x", v), ("w", "x", v + 1)] for v in range(12, 18)]
    found = of(
        Transaction([("w", "x", 12), ("w", "z", 1)], session="a"),
        *(Transaction(ops, session="a") for ops in versions),
        Transaction([("scan", IN_GROUP, {}), ("r", "z", 1)], session="b"),
        Transaction([("scan", IN_GROUP, {"x": 18})], session="b"),
    )
    assert remarks(found) == [
        ("missing", "x: T1 wrote x = 12, which matches, and T8 comes after T1")
    ]


def vanished(later):
    """A reader misses a row, of which other transactions then write many versions."""
    return [
        Transaction([("w", "x", 12), ("w", "y", 13)], session="a", begin=0, end=1),
        Transaction([("scan", IN_GROUP, {"y": 13})], session="b", begin=2, end=3),
        *(
            Transaction([("w", "x", 30 + n)], session="c", begin=4 + 2 * n, end=5 + 2 * n)
            for n in range(later)
        ),
    ]


def test_many_versions_that_do_not_match_are_two_cases():
    found = of(*vanished(60), spec="sser")
    ((kind, said),) = remarks(found)
    assert kind == "missing"
    assert said == (
        "x: T1 wrote x = 12, which matches, and T2 comes after T1; every version that does not "
        "match is too old or too new (below), so the row had to be there"
    )
    split = found.violation.argument.conclusion
    assert split.text == (
        "T2 did not find x with value between 10 and 19. Then it saw one of the 61 versions of x "
        "that do not match, but none of them is possible"
    )
    old, new = split.cases
    assert old.assumption == (
        "T2 saw x as it was at first, which is too old: T2 comes after T1, which replaced it"
    )
    assert new.assumption.startswith(
        "T2 saw one of 60 versions of x that are too new: T2 comes before the transactions that "
        "wrote them (shown for that of T"
    )
    assert len(found.violation.transactions) == 3
    assert len(text_of(found).splitlines()) < 45


def test_a_version_that_may_be_seen_stays_in_the_smallest_part():
    """Of versions that are too new none is left; what remains is invalid without them."""
    found = of(*vanished(60), spec="sser")
    part = smallest(found)
    assert part.t0 == 2
    assert part.counts()["keys"] <= 2


def test_a_few_versions_are_shown_one_by_one():
    found = of(*vanished(2), spec="sser")
    assert len(found.violation.argument.conclusion.cases) == 3
    assert not remarks(found)
    assert [q.answered() for q in found.violation.queries] == ["1 row: y = 13"]


def test_a_row_is_old():
    found = of(
        Transaction([("w", "x", 12)], session="a"),
        Transaction([("r", "x", 12), ("w", "x", 30), ("w", "z", 1)], session="b"),
        Transaction([("r", "z", 1), ("scan", IN_GROUP, {"x": 12})], session="c"),
    )
    assert remarks(found) == [
        (
            "too many",
            "x = 12: T2 had replaced it: it wrote x = 30, which does not match, and T3 comes "
            "after T2",
        )
    ]


def test_a_stale_index_misses_a_row_that_a_read_by_key_finds():
    found = of(
        Transaction([("w", "x", 12)], session="a"),
        Transaction([("r", "x", 12), ("scan", IN_GROUP, {})], session="b"),
        spec="ra",
    )
    assert remarks(found) == [
        ("missing", "x: T1 wrote x = 12, which matches, and T2 comes after T1")
    ]


def test_write_skew_says_how_each_answer_orders_the_two():
    found = of(
        [("scan", IN_GROUP, {}), ("insert", "x", 11)], [("scan", IN_GROUP, {}), ("insert", "y", 12)]
    )
    assert remarks(found) == [
        ("not in it", "y: T1 comes before T2, which wrote y = 12, which matches"),
        ("not in it", "x: T2 comes before T1, which wrote x = 11, which matches"),
    ]


@pytest.mark.parametrize(
    ("predicate", "words"),
    [
        ("{:where :true}", ""),
        ("{:table :t :where :true}", ""),
        ("{:where [:or]}", "false"),
        ("{:where [:and [:= :a 1] [:or [:< :b 2] [:null :b]]]}", "a = 1 and (b < 2 or b is null)"),
        ('{:where [:= :a "it"]}', "a = 'it'"),
        ("{:where [:and [:>= :a 1] [:<= :b 2]]}", "a >= 1 and b <= 2"),
        ("{:where [:not [:!= :a :k]]}", "not a <> :k"),
        ("{:where [:= :a nil]}", "a = nil"),
        ("{:where [:not [:null :a]]}", "a is not null"),
        ("{:where [:not [:and [:= :a 1] [:= :b 2]]]}", "not (a = 1 and b = 2)"),
        ("{:where [:not :true]}", "not true"),
    ],
)  # fmt: skip
def test_predicates_in_words(predicate, words):
    assert condition_in_words(predicate) == words


@pytest.mark.parametrize(
    ("predicate", "rows"),
    [
        ("{:where :true}", "all rows"),
        ('{:table "t" :where :true}', "all rows of 't'"),
        ("{:where [:= :a 1]}", "the rows with a = 1"),
        ('{:table "t" :where [:or [:= :a 1] [:= :b 2]]}', "the rows of 't' with a = 1 or b = 2"),
    ],
)
def test_selected_rows_in_words(predicate, rows):
    """Also where the predicate names a table and nothing else."""
    assert rows_in_words(predicate) == rows


def test_a_range_of_two_columns_is_no_range_of_one():
    assert condition_in_words("{:where [:and [:>= :a 1] [:<= :a 2]]}") == "a between 1 and 2"
    assert condition_in_words("{:where [:and [:>= :a 1] [:>= :a 2]]}") == "a >= 1 and a >= 2"


def rows_of(rng):
    """A history of queries in which answers are at random."""
    values = iter(range(1, 100))
    made = []
    for session in range(3):
        for _ in range(2):
            ops = []
            for _ in range(rng.randint(1, 3)):
                key = rng.choice("xy")
                if rng.random() < 0.5:
                    ops.append(("w", key, next(values)))
                else:
                    ops.append(("scan", ("mod", "value", 2, rng.randint(0, 1)), {}))
            made.append(Transaction(ops, session=session))
    return made


@pytest.mark.slow
def test_what_is_missing_was_written_by_the_transaction_that_is_named():
    """Of random histories: each row that is called missing has a version that matches."""
    rng = random.Random(53)
    levels = [route(load_spec(name)) for name in ("ser", "si", "ra")]
    seen = 0
    while seen < 40:
        made = rows_of(rng)
        history = History.from_transactions(made)
        found = isolang.check(history, rng.choice(levels))
        if found.outcome != "invalid":
            continue
        for query in found.violation.queries:
            asks = next(op for op in made[query.transaction].ops if op[0] == "scan")
            assert asks
            for one in query.remarks:
                if one.kind != "missing":
                    continue
                seen += 1
                rest = int(query.selected.split()[-1])
                written = [
                    (f"T{number}", op[2])
                    for number, txn in enumerate(made, 1)
                    for op in txn.ops
                    if op[0] == "w" and op[1] == one.row and op[2] % 2 == rest
                ]
                assert any(name in one.text and f"= {value}" in one.text for name, value in written)
        smallest(found)

"""Predictions agree with their definitions, and each one is certified by both levels."""

from __future__ import annotations

import random

import pytest
from foresee.agreement import defined, history_of, random_runs, searched
from foresee.by_definition import INITIAL, LEVELS, Tiny

import isolang
from isolang import History, Transaction, check, predict
from isolang.errors import HistoryError, SpecError, UnsupportedError

WEAK = ("si", "ra", "cc", "rc")

SKEW = History.from_transactions([
    Transaction([("r", "x", None), ("r", "y", None), ("w", "y", 1)], session="a"),
    Transaction([("r", "x", None), ("r", "y", 1), ("w", "x", 1)], session="b"),
])  # fmt: skip


def outcomes(history: History) -> dict[str, str]:
    return {level: predict(history, level).outcome for level in WEAK}


# --- the definitions ---


def any_tiny(draw: random.Random) -> Tiny:
    n = draw.choice((2, 3, 4))
    writes = [frozenset(k for k in "xy" if draw.random() < 0.5) for _ in range(n)]
    reads = tuple(
        {
            key: draw.choice([INITIAL, *(j for j in range(n) if j != i and key in writes[j])])
            for key in "xy"
            if draw.random() < 0.6
        }
        for i in range(n)
    )
    return Tiny([draw.randrange(n) for _ in range(n)], writes, reads)


@pytest.mark.slow
def test_the_definitions_of_the_levels_are_those_of_the_library() -> None:
    """The brute force judges random histories as ``isocheck`` does."""
    draw = random.Random(3)
    seen = set()
    for _ in range(60):
        tiny = any_tiny(draw)
        history = history_of(tiny)
        for level, holds in LEVELS.items():
            valid = check(history, level, certify=False).outcome == "valid"
            seen.add((level, valid))
            assert holds(tiny) == valid, (level, tiny.sessions, tiny.writes, tiny.reads)
    assert len(seen) == 2 * len(LEVELS)


@pytest.mark.slow
@pytest.mark.parametrize("level", WEAK)
@pytest.mark.parametrize(("n", "count", "b2"), [(3, 60, False), (4, 30, False), (3, 25, True)])
def test_the_search_predicts_what_the_definitions_do(
    level: str, n: int, count: int, b2: bool
) -> None:
    """Nothing is missed and nothing is extra: the search agrees with brute force, by both rules."""
    for run in random_runs(7 * n, n, count):
        same = searched(run, level, b2=b2) == defined(run, level, b2=b2)
        assert same, (run.sessions, run.writes, run.reads)


def run_of(sessions: str, writes: list[str], reads: list[dict[str, int]]) -> Tiny:
    return Tiny(sessions, [frozenset(keys) for keys in writes], tuple(reads))


@pytest.mark.parametrize(
    ("run", "level", "predicted"),
    [
        # T reads x and y before the first one wrote x, but not the version that it had read: what
        # it had read is not always of use.
        (run_of("aab", ["x", "y", "y"], [{"x": -1, "y": -1}, {"x": 0, "y": -1}, {"x": 0, "y": 1}]),
         "si", True),
        # The two writers of x may come in the other order, so this is no write skew.
        (run_of("aba", ["x", "x", "y"], [{"y": -1}, {"y": -1}, {"x": 1, "y": -1}]), "ra", False),
        # Only another order of blind writes makes this one possible.
        (run_of("aba", ["xy", "xy", ""], [{}, {"y": 0}, {"x": 1, "y": 1}]), "ra", False),
    ],
)  # fmt: skip
def test_a_run_that_was_once_mistaken(run: Tiny, level: str, predicted: bool) -> None:
    """Runs on which a first version of the search differed from the definitions."""
    assert defined(run, level, b2=False) == predicted
    assert searched(run, level, b2=False) == predicted


def test_other_orders_of_blind_writes_are_tried() -> None:
    """With the same statements, a level may order versions that nobody read in another way."""
    run = run_of("aba", ["xy", "xy", ""], [{}, {"y": 0}, {"x": 1, "y": 1}])
    assert defined(run, "ra", b2=True)
    assert searched(run, "ra", b2=True)


# --- single predictions ---


def test_write_skew_is_predicted_and_certified() -> None:
    """A serial run of two withdrawals becomes a write skew at SI."""
    found = predict(SKEW, "si")
    assert found.outcome == "found"
    (one,) = found.found
    assert (one.rule, one.stranger, one.overlooked, one.count) == ("one stranger", "T2", "T1", 1)
    assert one.invalid.violation.anomaly == "write skew"
    assert one.valid.certified
    assert one.invalid.certified
    assert [(read.operation, read.recorded, read.predicted) for read in one.changed] == [
        ("r(y, 1)", "T1", "T0")
    ]
    assert one.assumption == "T2 executes the same statements after its first changed read"


def test_the_first_committer_wins_at_si() -> None:
    """Two increments of one key cannot both commit at SI, but can at RC, RA and CC."""
    run = History.from_transactions([
        Transaction([("r", "x", None), ("w", "x", 1)], session="a"),
        Transaction([("r", "x", 1), ("w", "x", 2)], session="b"),
    ])  # fmt: skip
    assert outcomes(run) == {"si": "nothing found", "ra": "found", "cc": "found", "rc": "found"}


def test_a_session_sees_what_it_wrote_before() -> None:
    """In one session, nobody overlooks his own writes; only RC, without sessions, allows this."""
    run = History.from_transactions([
        Transaction([("r", "x", None), ("w", "x", 1)], session="a"),
        Transaction([("r", "x", 1), ("w", "x", 2)], session="a"),
        Transaction([("r", "y", None)], session="b"),
    ])  # fmt: skip
    assert outcomes(run) == {
        "si": "nothing found", "ra": "nothing found", "cc": "nothing found", "rc": "found"
    }  # fmt: skip


def test_a_run_of_one_session_is_never_green() -> None:
    """Its order is that of the test that recorded it, and hides what two requests could do."""
    run = History.from_transactions([
        Transaction([("r", "x", None), ("w", "x", 1)], session="a"),
        Transaction([("r", "x", 1), ("w", "x", 2)], session="a"),
    ])  # fmt: skip
    found = predict(run, "si")
    assert found.outcome == "gave up"
    assert "all 2 transactions belong to one session" in found.gave_up[0]


def test_a_read_only_stranger_shows_that_two_others_overlapped() -> None:
    """Fekete's read-only anomaly: without the reader, the two others are serializable."""
    run = History.from_transactions([
        Transaction([("r", "x", None), ("r", "y", None), ("w", "x", 1)], session="a"),
        Transaction([("r", "y", None), ("w", "y", 1)], session="b"),
        Transaction([("r", "x", 1), ("r", "y", 1)], session="c"),
    ])  # fmt: skip
    found = predict(run, "si")
    assert [(one.stranger, one.path) for one in found.found][:1] == [("T3", ("T1", "T2"))]


def test_two_reads_of_one_key_may_differ_at_rc() -> None:
    """A transaction that reads a key twice may see a change in between at RC, but not at RA."""
    run = History.from_transactions([
        Transaction([("w", "x", 1)], session="a"),
        Transaction([("r", "x", 1), ("r", "x", 1)], session="b"),
    ])  # fmt: skip
    assert outcomes(run) == {
        "si": "nothing found", "ra": "nothing found", "cc": "nothing found", "rc": "found"
    }  # fmt: skip


def test_lists_show_all_of_their_elements() -> None:
    """A predicted read of a list returns a beginning of it, so that the order stays as recorded."""
    run = History.from_transactions([
        Transaction([("r", "x", []), ("r", "y", []), ("append", "y", 1)], session="a"),
        Transaction([("r", "x", []), ("r", "y", [1]), ("append", "x", 2)], session="b"),
    ])  # fmt: skip
    (one,) = predict(run, "si").found
    assert one.invalid.violation.anomaly == "write skew"
    assert [op for t in one.history.transactions() for op in t.ops if op[:2] == ("r", "y")] == [
        ("r", "y", []), ("r", "y", []),
    ]  # fmt: skip


def test_what_read_by_a_predicate_is_left_out_and_said() -> None:
    """Nothing found is not "nothing found" where transactions were left out."""
    run = History.from_transactions([
        Transaction([("insert", ("t", 1), {"a": 1})], session="a"),
        Transaction([("scan", {"table": "t", "where": ("=", "a", 1)}, {("t", 1): {"a": 1}})],
                    session="b"),
    ])  # fmt: skip
    found = predict(run, "psi", "si")
    assert found.outcome == "gave up"
    assert found.gave_up == (
        "1 of 2 transactions were left out: they read by a predicate, or depend on one that did",
    )


def test_sessions_of_transactions_that_were_left_out_count() -> None:
    """Requests that count rows are sessions of their own, though only the fixtures remain."""
    scan = ("scan", {"table": "t", "where": ("=", "a", 1)}, {})
    run = History.from_transactions([
        Transaction([("w", "x", 1)], session="fixture"),
        Transaction([("w", "y", 1)], session="fixture"),
        Transaction([scan, ("insert", ("t", 1), {"a": 2})], session="a"),
        Transaction([scan, ("insert", ("t", 2), {"a": 2})], session="b"),
    ])  # fmt: skip
    found = predict(run, "psi", "si")
    assert found.outcome == "gave up"
    (why,) = found.gave_up
    assert why.startswith("2 of 4 transactions were left out")


def test_a_search_without_work_gives_up() -> None:
    """A budget that is too small is no "nothing found"."""
    run = History.from_transactions([
        Transaction([("r", "x", None), ("w", "x", 1)], session="a"),
        Transaction([("r", "x", 1), ("w", "x", 2)], session="b"),
        Transaction([("r", "x", 2)], session="c"),
    ])  # fmt: skip
    assert predict(run, "si").outcome == "nothing found"
    assert predict(run, "si", work=1).outcome == "gave up"


def test_indeterminate_transactions_that_were_read_belong_to_the_run() -> None:
    """Who was read from has committed, whatever its client was told."""
    run = History.from_transactions([
        Transaction([("r", "x", None), ("r", "y", None), ("w", "y", 1)], session="a",
                    status="maybe"),
        Transaction([("r", "x", None), ("r", "y", 1), ("w", "x", 1)], session="b"),
    ])  # fmt: skip
    assert predict(run, "si").outcome == "found"


# --- the database's own profiles ---


def test_profiles_have_schedules_with_times() -> None:
    """At a profile, the predicted history is a schedule that the database can run."""
    (one,) = predict(SKEW, "postgresql-repeatable-read").found
    first, second = sorted(one.history.transactions(), key=lambda t: t.begin)
    assert first.begin < second.begin < second.end < first.commit
    assert first.times[0][1] < second.begin < first.times[1][0]
    assert (one.valid.spec.name, one.valid.certified) == ("postgresql-repeatable-read", True)


@pytest.mark.parametrize(
    ("first", "second", "predicted"),
    [
        # Lost update: the second reads before the first, and writes after it.
        ("rx wx", "rx wx", ("nothing found", "found")),
        # It holds the row before it reads, so that the first cannot come between.
        ("rx wx", "wx rx ry", ("nothing found", "nothing found")),
        # The same rows, but here the second comes between what the first reads and writes.
        ("rx wx wy", "wx ry", ("nothing found", "found")),
        # Write skew, and two reads between which the first commits.
        ("ry wx", "rx wy", ("found", "found")),
        ("wx wy", "rx ry", ("nothing found", "found")),
    ],
)
def test_locks_and_snapshots_of_profiles(
    first: str, second: str, predicted: tuple[str, str]
) -> None:
    """Rows are locked from the write on; REPEATABLE READ refuses the second writer of a row."""
    written: dict[str, int] = {}
    transactions = []
    for session, text in enumerate((first, second)):
        ops: list[tuple[str, str, int | None]] = []
        for kind, key in text.split():
            if kind == "w":
                written[key] = session + 1
            ops.append((kind, key, written.get(key)))
        transactions.append(Transaction(ops, session=session))
    run = History.from_transactions(transactions)
    levels = ("postgresql-repeatable-read", "postgresql-read-committed")
    assert tuple(predict(run, level).outcome for level in levels) == predicted


# --- refusals ---


def test_a_run_that_violates_the_level_has_nothing_to_predict() -> None:
    """The message names the violation, and where it is explained."""
    (one,) = predict(SKEW, "si").found
    with pytest.raises(HistoryError, match=r"violates SER \(write skew\).*isocheck check explains"):
        predict(one.history, "si")


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("not acyclic ww as odd", "`odd` is negated by `not`"),
        (r"acyclic so \ wr as odd", "`odd` contains a difference"),
        ("flag acyclic ww as odd\nacyclic so as fine", "`odd` is a flag"),
        ("require rw in wr ; ww as odd", "the bound of `odd` runs through other transactions"),
    ],
)
def test_levels_that_are_not_monotone_are_refused_by_name(text: str, part: str) -> None:
    """The lemma of docs/foresee.md holds for monotone levels only."""
    spec = isolang.load_spec(f'spec strange "a level"\ninclude "adya.iso"\n{text}\n')
    with pytest.raises(SpecError) as error:
        predict(SKEW, spec)
    assert str(error.value).startswith(f"strange: the level is not monotone: {part}")


def test_levels_that_compare_times_are_refused() -> None:
    """A predicted history has no times."""
    with pytest.raises(SpecError, match=r"strong-SI: the level compares times \(`rt`\)"):
        predict(SKEW, "strong-si")


def test_levels_that_compare_statements_are_refused() -> None:
    """A predicted history has no statements; the message names the word."""
    with pytest.raises(UnsupportedError, match=r"PL-2L against SER: they compare `statement` .*h"):
        predict(SKEW, "pl-2l")


# --- any two levels ---

LONG_FORK = run_of("aabbcd", ["u", "x", "v", "y", "", ""],
                   [{}, {}, {}, {}, {"x": 1, "y": 3}, {"x": 1, "y": 3}])  # fmt: skip
OTHER_PAIRS = (("psi", "si"), ("ra", "cc"), ("rc", "ra"), ("cc", "psi"), ("psi", "ser"))


@pytest.mark.slow
@pytest.mark.parametrize(("at", "against"), OTHER_PAIRS)
def test_other_pairs_predict_what_the_definitions_do(at: str, against: str) -> None:
    """Nothing is missed and nothing is extra for pairs of levels that a solver compares."""
    for n, count, b2 in ((3, 30, False), (4, 12, False), (3, 12, True)):
        for run in random_runs(11 * n, n, count):
            same = searched(run, at, b2=b2, against=against) == defined(
                run, at, b2=b2, against=against
            )
            assert same, (run.sessions, run.writes, run.reads)


def test_a_core_is_found_behind_what_it_depends_on() -> None:
    """A long fork of four transactions, two of which follow others in their sessions."""
    found = predict(history_of(LONG_FORK), "psi", "si")
    assert found.outcome == "found"
    assert found.bound == "cores of up to 4 transactions"
    one = found.found[0]
    assert one.invalid.violation.anomaly == "long fork"
    assert (one.valid.spec.name, one.valid.certified, one.invalid.certified) == ("PSI", True, True)
    assert one.history.counts()["transactions"] == 6
    assert predict(history_of(LONG_FORK), "si", "ser").outcome == "nothing found"


def test_a_core_may_lie_around_another_transaction_of_a_session() -> None:
    """What stands between two transactions of a core, and has nothing to do with it, is no bar."""
    run = run_of("aaabc", ["x", "zuv", "y", "", ""],
                 [{}, {"z": -1}, {}, {"x": 0, "y": 2}, {"v": 1}])  # fmt: skip
    (one,) = predict(history_of(run), "ra", "cc").found
    assert (one.stranger, one.overlooked, one.path) == ("T4", "T1", ("T1", "T3"))
    assert one.invalid.violation.anomaly == "causality violation-session"


def test_a_core_of_lists() -> None:
    """Reads of lists show beginnings, in one order for everybody."""
    run = History.from_transactions([
        Transaction([("append", "x", 1)], session="a"),
        Transaction([("append", "y", 2)], session="b"),
        Transaction([("r", "x", [1]), ("r", "y", [2])], session="c"),
        Transaction([("r", "y", [2]), ("r", "x", [1])], session="d"),
    ])  # fmt: skip
    (one,) = predict(run, "psi", "si").found
    assert one.invalid.violation.anomaly == "long fork"
    read = {t.number: {op[1]: op[2] for op in t.ops} for t in one.history.transactions()}
    assert sorted(len(read[n][key]) for n in (3, 4) for key in "xy") == [0, 0, 1, 1]
    assert read[3] != read[4]


@pytest.mark.parametrize(
    ("axiom", "outcomes"),
    [
        # Only what an auditor reads and writes must be serializable with the rest.
        ('acyclic [label "audit*"] ; (so | wr | ww | rw)^+ as audited', ("found", "nothing found")),
        ('irreflexive rw["x"] ; rw["y"] as pair', ("found", "nothing found")),
        ('irreflexive rw["x", "z"] ; rw["z"] as pair', ("nothing found", "found")),
        ('irreflexive [level "s*"] ; rw ; rw as requested', ("found", "nothing found")),
        ('irreflexive [level "pl-1"] ; rw ; rw as requested', ("nothing found", "found")),
    ],
)
def test_labels_keys_and_levels_of_user_written_specifications(
    axiom: str, outcomes: tuple[str, str]
) -> None:
    """A user's own level decides by the labels, keys and levels that the run has."""
    spec = isolang.load_spec(
        f'spec mine "a level"\ninclude "adya.iso"\nacyclic so | wr | ww as base\n{axiom}\n'
    )
    run = History.from_transactions([
        Transaction([("r", "x", None), ("r", "y", None), ("w", "y", 1)], session="a",
                    label="pay", level="ser"),
        Transaction([("r", "x", None), ("r", "y", 1), ("w", "x", 1)], session="b",
                    label="auditor", level="si"),
    ])  # fmt: skip
    weaker = isolang.load_spec(
        'spec weak "a level"\ninclude "adya.iso"\nacyclic so | wr | ww as base\n'
    )
    assert (predict(run, weaker, spec).outcome, predict(run, spec, "ser").outcome) == outcomes


def test_the_search_tells_how_far_it_is() -> None:
    """By each rule: for one stranger, of how many transactions."""
    run = History.from_transactions(
        [Transaction([("r", key, None), ("w", key, 1)], session=key) for key in "abc"]
    )
    told: list[tuple[str, int, int]] = []
    predict(run, "si", reached=lambda *words: told.append(words))
    assert told[:3] == [("one stranger", done, 3) for done in range(3)]
    assert ("same statements", 0, 1) in told
    told.clear()
    predict(run, "psi", "si", reached=lambda *words: told.append(words))
    assert [rule for rule, *_ in told] == ["one stranger", "same statements"]

"""Where a transaction looks initial, the verdict says what it assumed and what else it could be."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.cli import run_here

from isolang import History, Transaction, check, load_history, save_history
from isolang.history.look_alikes import LookAlike
from isolang.language.classify.route import route
from isolang.language.load import load_spec
from isolang.limits import Deadline
from isolang.options import Options
from isolang.pipeline import other_reading
from isolang.pipeline.other_reading import with_initial_transaction_note
from isolang.verdict import Valid

KEYS = "abcdef"
LOADED = Transaction([("w", k, 0) for k in KEYS], session="loader", number=7)
# Both read what the loader wrote, and overlook each other.
SKEW = [
    LOADED,
    Transaction([("r", "a", 0), ("w", "b", 1)], session=1),
    Transaction([("r", "b", 0), ("w", "a", 1)], session=2),
]
# The first one read nil: it may have come before the loader.
BEFORE = [LOADED, Transaction([("r", "a", None), ("w", "b", 1)], session=1)]
BEFORE += [Transaction([("r", "a", 0), ("r", "b", 0)], session=2)]


def notes(transactions, level, **options):
    way = route(load_spec(level))
    verdict = check(History.from_transactions(transactions), way)
    judged = with_initial_transaction_note(verdict, way, Options(**options))
    assert judged.outcome == verdict.outcome
    return judged.outcome, judged.notes[len(verdict.notes) :]


ASSUMED = (
    "T7 reads nothing and writes 6 of 6 keys, and was treated as an ordinary "
    "transaction; if it loaded the database, pass --initial 7"
)


@pytest.mark.parametrize(
    ("transactions", "level", "outcome", "other"),
    [
        (SKEW, "ser", "invalid", " (the verdict is then also invalid)"),
        (SKEW, "si", "valid", " (the verdict is then also valid)"),
        (BEFORE, "ser", "valid", " (the verdict is then also valid)"),
    ],
)
def test_both_readings(transactions, level, outcome, other):
    assert notes(transactions, level) == (outcome, (ASSUMED + other,))


def test_the_readings_differ():
    """Who read nil must come before the loader, and came after what it wrote, unless that is T0."""
    late = [
        LOADED,
        Transaction([("r", "a", 0), ("w", "f", 1)], session=1),
        Transaction([("r", "f", 1), ("r", "b", None)], session=2),
    ]
    assert notes(late, "ser") == ("invalid", (ASSUMED + " (the verdict is then valid)",))


def test_nobody_looks_initial():
    assert notes([Transaction([("w", "a", 1)], session=1)], "ser") == ("valid", ())


def test_the_command_says_it(tmp_path, capfd):
    """In the text and in JSON; and declared, there is nothing to say."""
    path = tmp_path / "h.edn"
    save_history(History.from_transactions(SKEW), path)
    number = int(load_history(path).columns.txn_number[0])
    (report,) = run_here(capfd, "--spec", "si", "-o", "json", str(path)).reports()
    (note,) = [n for n in report["level"]["notes"] if "--initial" in n]
    assert f"--initial {number}" in note
    text = " ".join(run_here(capfd, "--spec", "si", str(path)).out.split())
    assert "treated as an ordinary transaction" in text
    declared = run_here(capfd, "--spec", "si", "--initial", str(number), "-o", "json", str(path))
    assert "--initial" not in json.dumps(declared.reports()[0]["level"])


def test_a_valid_verdict_is_not_judged_again(monkeypatch):
    """Where the loader is the first writer of its keys, the same witness proves both readings."""
    monkeypatch.setattr(other_reading, "decide", None)
    assert notes(SKEW, "si") == ("valid", (ASSUMED + " (the verdict is then also valid)",))


def test_the_work_is_limited_and_counted(monkeypatch):
    """Beyond the limit the note says what was assumed; what it took is in the seconds."""
    way = route(load_spec("ser"))
    verdict = check(History.from_transactions(SKEW), way)
    monkeypatch.setattr(other_reading, "_OPERATIONS", 1)
    (note,) = notes(SKEW, "ser")[1]
    assert note == ASSUMED
    deadline = Deadline(None, already={"solve": 5.0})
    judged = with_initial_transaction_note(verdict, way, Options(), deadline)
    assert judged.seconds.total >= judged.seconds.solve > 5.0


rows = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.lists(
            st.tuples(
                st.sampled_from("rw"), st.sampled_from("abcd"), st.sampled_from([None, 0, 1, 2])
            ).map(lambda op: (op[0], op[1], 1 if op[0] == "w" and not op[2] else op[2])),
            min_size=1,
            max_size=2,
        ),
    ),
    min_size=1,
    max_size=5,
)


@pytest.mark.slow
@given(rows, st.sampled_from(["ser", "si", "psi", "cc", "rc", "ser-nosession"]))
@settings(max_examples=300, deadline=None)
def test_a_witness_in_which_the_loader_comes_first_is_one_of_the_other_reading(found, level):
    """The proof that nobody needs to judge again, against judging again."""
    loader = Transaction([("w", k, 0) for k in "abcd"], session="loader", number=7)
    rest = [Transaction(ops, session=s) for s, ops in found]
    history = History.from_transactions([loader, *rest])
    verdict = check(history, level)
    if isinstance(verdict, Valid) and other_reading.is_first_writer(verdict, 7):
        found = LookAlike(number=7, name="T7", where="", keys=4)
        assert check(other_reading._declare_initial(history, found), level).outcome == "valid"


def test_thin_air_reads_may_show_rows_that_were_there():
    """Where nobody wrote what was read, the verdict says what it is if that was there before."""
    lost = [Transaction([("r", "x", 7), ("w", "x", i)], session=i) for i in (1, 2)]
    said = "if rows existed before the history begins, pass --unwritten-initial (the verdict is "
    assert notes(lost, "si") == ("invalid", (f"{said}then also invalid: lost update)",))
    assert notes(lost[:1], "si") == ("invalid", (f"{said}then valid)",))

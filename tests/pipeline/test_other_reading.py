"""Where a transaction looks initial, the verdict says what it assumed and what else it could be."""

import json

import pytest
from support.cli import run_here

from isolang import History, Transaction, check, load_history, save_history
from isolang.language.classify.route import route
from isolang.language.load import load_spec
from isolang.options import Options
from isolang.pipeline.other_reading import with_other_reading

KEYS = "abcdef"
LOADED = Transaction([("w", k, 0) for k in KEYS], session="loader", label=7)
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
    judged = with_other_reading(verdict, way, Options(**options))
    assert judged.outcome == verdict.outcome
    return judged.outcome, judged.notes[len(verdict.notes) :]


ASSUMED = (
    "T7 reads nothing and writes 6 of 6 keys, and was judged as an ordinary transaction; if it "
    "loaded the database, say --initial 7"
)


@pytest.mark.parametrize(
    ("transactions", "level", "outcome", "other"),
    [
        (SKEW, "ser", "invalid", " (the verdict is invalid then, too)"),
        (SKEW, "si", "valid", " (the verdict is valid then, too)"),
        (BEFORE, "ser", "valid", " (the verdict is valid then, too)"),
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
    assert notes(late, "ser") == ("invalid", (ASSUMED + " (the verdict is valid then)",))


def test_nobody_looks_initial():
    assert notes([Transaction([("w", "a", 1)], session=1)], "ser") == ("valid", ())


def test_the_command_says_it(tmp_path, capfd):
    """In the text and in JSON; and declared, there is nothing to say."""
    path = tmp_path / "h.edn"
    save_history(History.from_transactions(SKEW), path)
    label = int(load_history(path).columns.txn_label[0])
    (report,) = run_here(capfd, "--spec", "si", "-o", "json", str(path)).reports()
    (note,) = [n for n in report["level"]["notes"] if "--initial" in n]
    assert f"--initial {label}" in note
    text = " ".join(run_here(capfd, "--spec", "si", str(path)).out.split())
    assert "judged as an ordinary transaction" in text
    declared = run_here(capfd, "--spec", "si", "--initial", str(label), "-o", "json", str(path))
    assert "--initial" not in json.dumps(declared.reports()[0]["level"])

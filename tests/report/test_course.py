"""The course of a run, from the lines that a recorder writes."""

from support.pages import data_of

import isolang
from isolang.history import History, Transaction
from isolang.report import course_of, page

LINES = """\
; SQLite; a remark
{:index 0, :type :invoke, :process 0, :time 0, :f :txn, :value [[:w "a :time 7" 1]]}
{:index 1, :type :ok, :process 0, :time 100000000, :f :txn, :value [[:w "a :time 7" 1]]}
{:index 2, :type :invoke, :process 1, :time 150000000, :f :txn, :value [[:w "b" 1]]}
{:index 3, :type :info, :process :nemesis, :time 200000000, :f :kill, :value nil}
{:index 4, :type :invoke, :process 0, :time 200000000, :f :txn, :value [[:w "a" 2]]}
{:index 5, :type :info, :process 1, :time 250000000, :f :txn, :value [[:w "b" 1]]}
{:index 6, :type :fail, :process 0, :time 400000000, :f :txn, :value [[:w "a" 2]]}
{:index 7, :type :invoke, :process 2, :time 380000000, :f :txn, :value [[:w "a" 3]]}
"""


def test_what_ended_when(tmp_path):
    """Each end falls into its stretch with its outcome; what a value says is not read."""
    path = tmp_path / "run.edn"
    path.write_text(LINES)
    course = course_of(path)
    assert course.seconds == 0.4
    assert course.stretch == 0.1
    assert course.committed == [0, 1, 0, 0]
    assert course.maybe == [0, 0, 1, 0]
    assert course.aborted == [0, 0, 0, 1]
    assert course.median == [None, 100.0, None, None]
    assert [(fault.at, fault.name) for fault in course.faults] == [(0.2, "kill")]


def test_without_times(tmp_path):
    """A history without times has no course."""
    path = tmp_path / "h.edn"
    path.write_text("{:type :ok, :process 0, :f :txn, :value [[:w :x 1]]}\n")
    assert course_of(path) is None


def test_what_was_run(tmp_path):
    """The first lines say it: database and version, level, workload, seed, and the command."""
    path = tmp_path / "run.edn"
    lines = LINES.partition("\n")[2]
    head = (
        "; SQLite 3.45.1; level python (claims ser); workload rmw; 8 sessions; seed 7; 2026-01-02"
    )
    path.write_text(f"{head}\n; isocheck run sqlite --seed 7\n{lines}")
    assert dict(course_of(path).about) == {
        "database": "SQLite 3.45.1",
        "level": "python (claims ser)",
        "workload": "rmw",
        "seed": "7",
        "run again by": "isocheck run sqlite --seed 7",
        "": "2026-01-02",
    }
    path.write_text(LINES)
    assert course_of(path).about == [("about", "SQLite; a remark")]


def test_what_was_sent_stands_at_its_transaction():
    """On the page of a run, where it was recorded."""
    history = History.from_transactions(
        [Transaction([("r", "x", None), ("w", "x", i)], session=f"s{i}") for i in (1, 2)]
    )
    verdict = isolang.check(history, "ser")
    sent = {"T1": ("SELECT v FROM t", "UPDATE t SET v = 1")}
    made = data_of(page(verdict, certificate="-", statements=sent))
    shown = {t["name"]: t["sent"] for t in made["violation"]["transactions"]}
    assert shown == {"T1": ["SELECT v FROM t", "UPDATE t SET v = 1"], "T2": []}

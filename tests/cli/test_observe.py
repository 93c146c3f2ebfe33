"""``isocheck observe``: a command runs on a proxy, and its transactions are judged."""

import json
import sys

import pytest
from support.cli import run_here, run_there

APPLICATION = """
import os, sys, psycopg
url = os.environ["DATABASE_URL"]
with psycopg.connect(url, autocommit=True) as one:
    one.execute("CREATE TABLE member (id serial PRIMARY KEY, name text)")
both = [psycopg.connect(url) for _ in range(2)]
for one in both:
    one.isolation_level = psycopg.IsolationLevel(int(sys.argv[1]))
    assert not one.execute("SELECT 1 FROM member WHERE name = 'ada' LIMIT 1").fetchall()
for one in both:
    try:
        one.execute("INSERT INTO member (name) VALUES ('ada')")
        one.commit()
    except psycopg.Error:
        one.rollback()
if sys.argv[2:]:
    both[0].execute(sys.argv[2]).fetchall()
    both[0].commit()
    sys.exit(5)
"""

LONGER = """
import os, sys, time, psycopg
both = [psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) for _ in range(2)]
both[0].execute("CREATE TABLE member (id serial PRIMARY KEY, name text)")
for n in range(40):
    for one in both:
        one.execute("BEGIN")
        assert not one.execute("SELECT 1 FROM member WHERE name = %s", (str(n),)).fetchall()
    for one in both:
        one.execute("INSERT INTO member (name) VALUES (%s)", (str(n),))
        one.execute("COMMIT")
    time.sleep(0.1)
print("the application ends", file=sys.stderr)
"""


@pytest.fixture
def application(tmp_path):
    """A program with the race of a unique name."""
    path = tmp_path / "application.py"
    path.write_text(APPLICATION)
    return path


@pytest.mark.slow
def test_a_race_is_found(tmp_path, application):
    """The verdict is that of the history, with its exit code; the history is kept."""
    into = tmp_path / "history.edn"
    arguments = ("--spec", "ser", "--spec", "si", "--into", into, "-o", "json")
    run = run_there("observe", "postgres", *arguments, "--", sys.executable, application, 2)
    assert run.code == 1, run.err
    ser, si = map(json.loads, run.out.splitlines())
    assert (ser["verdict"], si["verdict"]) == ("invalid", "valid")
    assert ser["anomaly"] == "predicate write skew"
    assert [one["kind"] for one in ser["unseen"] if not one["harmless"]] == []
    assert into.read_text().count("[:rp ") == 2


@pytest.mark.slow
def test_a_mended_race_is_valid(application):
    """At SERIALIZABLE the verdict is valid, and the text says that nothing was lost."""
    run = run_there("observe", "postgres", "--spec", "ser", "--", sys.executable, application, 4)
    assert run.code == 0, run.err
    assert run.out.startswith("VALID")
    assert "3 transactions: 2 committed, 1 aborted" in run.out


@pytest.mark.slow
def test_a_violation_is_announced_while_the_application_runs(tmp_path):
    """The growing history is checked, so that the message comes before the application's end."""
    path = tmp_path / "application.py"
    path.write_text(LONGER)
    run = run_there("observe", "postgres", "--spec", "ser", "--", sys.executable, path)
    assert run.code == 1, run.err
    assert run.err.index("predicate write skew after ") < run.err.index("the application ends")


@pytest.mark.slow
def test_what_is_not_seen_is_loud(application, tmp_path):
    """A valid verdict with something unseen is unknown, unless its kind is allowed, also later."""
    lost = "SELECT name FROM member TABLESAMPLE SYSTEM (100)"
    command = ("--", sys.executable, application, 4, lost)
    run = run_there("observe", "postgres", "--spec", "ser", *command)
    assert run.code == 3
    assert run.out.startswith("UNKNOWN")
    assert "accepted the witness" not in run.out
    assert f"not seen   1 TABLESAMPLE (shapes)\n           first: {lost}" in run.out
    assert "the command ended with exit code 5" in run.err
    assert "--allow-unseen shapes accepts this" in " ".join(run.out.split())
    into = tmp_path / "run.edn"
    allowing = ("--allow-unseen", "shapes")
    run = run_there("observe", "postgres", "--spec", "ser", *allowing, "--into", into, *command)
    assert run.out.startswith("UNKNOWN")
    assert "valid, but the command ended with exit code 5" in " ".join(run.out.split())
    assert run.code == 3
    run = run_there("check", "--spec", "ser", into)
    assert run.code == 3
    assert "--allow-unseen shapes accepts this" in " ".join(run.out.split())
    assert run_there("check", "--spec", "ser", *allowing, into).code == 0


@pytest.mark.slow
def test_a_command_that_does_not_connect():
    """The report says how the application finds the proxy, and names no file that is gone."""
    run = run_there("observe", "postgres", "--spec", "ser", "--", "true")
    assert run.code == 3
    assert "no transaction was observed; hint:" in " ".join(run.out.split())
    assert "$DATABASE_URL" in run.out
    assert "/isocheck-" not in run.out


@pytest.mark.server
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("postgres",), "nothing would check or keep the recording"),
        (("mongodb://localhost/db", "--spec", "ser"), "not a PostgreSQL URL"),
        (("mongodb://localhost/db", "--spec", "ser"), "records its transactions: docs/record.md"),
        (("postgres:///db", "--spec", "ser"), "wrong number of hosts (expected one)"),
        (
            ("postgres://nobody@127.0.0.1:1/x", "--spec", "ser", "--", "true"),
            "cannot connect to the database",
        ),
        (("postgres", "--spec", "ser", "--listen", "x"), "not an address"),
        (("postgres", "--spec", "ser", "--allow-unseen", "x", "--", "true"), "unknown kind"),
        (("postgres", "--spec", "nosuch", "--", "true"), "nosuch"),
        (("postgres", "--spec", "ser", "--", "/nonexistent"), "cannot run the command"),
        (
            ("postgres://nobody@127.0.0.1:1/x", "--spec", "ser", "--", "nosuch-program"),
            "cannot run the command (no such program: nosuch-program)",
        ),
    ],
)
def test_mistakes(capfd, arguments, said):
    """Each mistake has a message and the exit code 2, and no history."""
    run = run_here(capfd, "observe", *arguments)
    assert run.code == 2
    assert said in run.err
    assert "Traceback" not in run.err


def test_a_file_that_is_there(capfd, tmp_path):
    """A history is never overwritten."""
    there = tmp_path / "there.edn"
    there.write_text("x")
    run = run_here(capfd, "observe", "postgres", "--into", there, "--", "true")
    assert run.code == 2
    assert "already exists" in run.err
    assert there.read_text() == "x"


RACES = """
import os, threading, psycopg
def connect():
    return psycopg.connect(os.environ["DATABASE_URL"])
with connect() as one:
    one.execute("CREATE TABLE stock (id int PRIMARY KEY, title text, n int, code text)")
    one.execute("CREATE TABLE ticket (id serial PRIMARY KEY, show int, buyer text)")
    one.execute("INSERT INTO stock VALUES (1, 'The last copy', 9, 'c')")
for first in (10, 20):
    both = [connect() for _ in range(2)]
    for n, one in enumerate(both):
        one.execute("SELECT title, n FROM stock WHERE id = 1").fetchall()
        assert not one.execute("SELECT id FROM ticket WHERE show = %s", (first,)).fetchall()
        one.execute("INSERT INTO ticket (show, buyer) VALUES (%s, 'a')", (first,))
    for n, one in enumerate(both):
        one.execute("UPDATE stock SET n = %s WHERE id = 1", (first + n,))
        one.commit()
with connect() as one:
    for n in range(4):
        one.execute(f"SELECT id FROM stock WHERE title || random() = '{n}'").fetchall()
    one.execute("SELECT n FROM stock WHERE n + random() > 3").fetchall()
"""


@pytest.fixture
def races(tmp_path):
    """A program with lost updates and write skew, on a table with columns in no order."""
    path = tmp_path / "races.py"
    path.write_text(RACES)
    return path


@pytest.mark.slow
def test_all_kinds_of_violations_are_named(races, tmp_path):
    """The first one is explained, with the statement of each operation."""
    run = run_there(
        "observe", "postgres", "--spec", "ser", "--into", tmp_path / "history.edn", "--",
        sys.executable, races,
    )  # fmt: skip
    assert run.code == 1, run.err
    text = " ".join(run.out.split())
    assert text.startswith("INVALID")
    assert text.count("INVALID") == 1
    assert "lost update: a transaction overwrote" in text
    assert " 1 lost update of stock, 2 times SELECT title, n FROM stock WHERE id = ? UPDATE" in text
    assert " 2 predicate write skew of ticket, 2 times" in text
    explained = run.out.partition("2 times\n")[2].partition("  input ")[0]
    assert "UPDATE stock SET n = $1" in " ".join(explained.split())


@pytest.mark.slow
def test_each_kind_of_violation_is_explained_on_request(races):
    """``--all`` shows the transactions of each."""
    run = run_there("observe", "postgres", "--spec", "ser", "--all", "--", sys.executable, races)
    assert run.code == 1, run.err
    skew = run.out.partition("predicate write skew of ticket, 2 times")[2]
    assert "two transactions each read a value" in " ".join(skew.split())
    assert skew.count("-rw ticket/") == 2


@pytest.mark.slow
def test_unseen_statements_are_counted_by_form(races, tmp_path):
    """In the output and in a file, which is never overwritten."""
    listing = tmp_path / "unseen.tsv"
    arguments = ("observe", "postgres", "--spec", "ser", "--server-on-trial", "--unseen", listing)
    arguments = (*arguments, "-o", "json", "--")
    run = run_there(*arguments, sys.executable, races)
    assert run.code == 1, run.err
    (conditions,) = (one for one in json.loads(run.out)["unseen"] if one["kind"] == "conditions")
    forms = {one["statement"]: one["count"] for one in conditions["forms"]}
    assert forms == {
        "SELECT id FROM stock WHERE title || random() = ?": 4,
        "SELECT n FROM stock WHERE n + random() > ?": 1,
    }
    lines = [line.split("\t") for line in listing.read_text().splitlines()]
    assert lines[0] == ["count", "kind", "what", "tables", "statement"]
    assert {line[4]: int(line[0]) for line in lines[1:]}.items() >= forms.items()
    assert {line[3] for line in lines[1:] if "FROM stock" in line[4]} == {"stock"}
    run = run_there(*arguments, sys.executable, races)
    assert run.code == 2
    assert "already exists" in run.err

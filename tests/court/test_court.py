"""Calls that the proxy holds on a real server."""

import sys

import psycopg
import pytest
from support.cli import run_here

pytestmark = pytest.mark.slow

BOOKINGS = """
import os, sys, psycopg
name, lock = sys.stdin.readline().split() if len(sys.argv) < 2 else ("setup", "")
with psycopg.connect(os.environ["DATABASE_URL"]) as c:
    if name == "setup":
        c.execute("DROP TABLE IF EXISTS booking, room")
        c.execute("CREATE TABLE room (id int PRIMARY KEY)")
        c.execute("CREATE TABLE booking (id serial PRIMARY KEY, room int, guest text)")
        c.execute("INSERT INTO room VALUES (1)")
    else:
        if lock == "locked":
            c.execute("SELECT id FROM room WHERE id = 1 FOR UPDATE")
        (n,) = c.execute("SELECT count(*) FROM booking WHERE room = 1").fetchone()
        if lock == "again":
            c.rollback()
        if not n:
            c.execute("INSERT INTO booking (room, guest) VALUES (1, %s)", (name,))
        print("taken" if n else "booked")
"""


@pytest.fixture
def court(tmp_path, embedded, capfd):
    """Holds a court over two bookings of a room."""
    program = tmp_path / "bookings.py"
    program.write_text(BOOKINGS)

    def run(lock, *options):
        file = tmp_path / f"{lock}.toml"
        file.write_text(
            f"""
            database = "postgresql://postgres@/postgres?host={embedded}"
            prepare = "{sys.executable} {program} setup"
            command = "{sys.executable} {program}"
            calls = ["ann {lock}", "bob {lock}"]
            """
        )
        return run_here(capfd, "court", file, *options)

    return run


def test_bookings_without_a_lock_do_harm(court, tmp_path, capfd):
    """The ruling has a script, the harm and files that are checked again."""
    made = court("plain", "--save", tmp_path / "saved", "--html", tmp_path / "page.html")
    assert made.code == 1, made.out + made.err
    assert "PROVED: harmful: booking: 2 new rows, every order gives 1" in made.out
    lines = [line.split() for line in made.out.splitlines()]
    held = lines.index(["--", "held", "until", "bob", "plain", "ended"])
    assert ["ann", "plain", "COMMIT"] in lines[held:]
    assert not any(line[:3] == ["bob", "plain", "BEGIN"] for line in lines[:held])
    (certificate,) = (tmp_path / "saved").glob("*.json")
    robust = run_here(capfd, "robust", tmp_path / "saved/calls.edn", "--at", "mvrc")
    assert "NOT ROBUST" in robust.out
    assert run_here(capfd, "verify", certificate, tmp_path / "saved/court.edn").code == 0
    assert "harmful" in (tmp_path / "page.html").read_text()


def test_bookings_behind_a_lock_are_acquitted(court, embedded):
    """The other call waits for the lock in each schedule, and no search is left out."""
    made = court("locked")
    assert made.code == 0, made.out + made.err
    assert "ACQUITTED: the " in made.out
    assert "6 of 6 schedules played" in made.out
    with psycopg.connect(f"host={embedded} user=postgres dbname=postgres") as connection:
        rows = connection.execute("SELECT count(*) FROM booking").fetchone()
    assert rows == (0,)  # for the next trial, the prepared state is there again


def test_a_condition_in_a_transaction_that_was_rolled_back(court):
    """The history has no reads of it, but the insert depends on them."""
    made = court("again")
    assert made.code == 3, made.out + made.err
    assert "UNKNOWN: no violation was seen, but no order of the calls explains" in made.out
    assert "booking: 2 new rows, every order gives 1" in made.out


TICKETS = """
import os, sys, psycopg
name, kind = sys.stdin.readline().split() if len(sys.argv) < 2 else ("setup", "")
with psycopg.connect(os.environ["DATABASE_URL"]) as c:
    if name == "setup":
        c.execute("DROP TABLE IF EXISTS paper")
        c.execute("DROP SEQUENCE IF EXISTS ticket")
        c.execute("CREATE SEQUENCE ticket")
        c.execute("SELECT setval('ticket', 1)")
        c.execute("CREATE TABLE paper (who text PRIMARY KEY, number int)")
    else:
        if kind == "number":
            (n,) = c.execute("SELECT pg_sequence_last_value('ticket') + 1").fetchone()
            c.execute("SELECT setval('ticket', %s)", (n,))
        else:
            (n,) = c.execute("SELECT pg_try_advisory_xact_lock(7)::int").fetchone()
        c.execute("INSERT INTO paper VALUES (%s, %s)", (name, n))
"""


@pytest.mark.parametrize("kind", ["number", "lock"])
def test_what_no_history_shows_acquits_nobody(tmp_path, embedded, capfd, kind):
    """Calls that take one number of a sequence twice, or find a lock held, are not acquitted."""
    program, file = tmp_path / "tickets.py", tmp_path / "court.toml"
    program.write_text(TICKETS)
    file.write_text(
        f"""
        database = "postgresql://postgres@/postgres?host={embedded}"
        prepare = "{sys.executable} {program} setup"
        command = "{sys.executable} {program}"
        calls = ["ann {kind}", "bob {kind}"]
        """
    )
    made = run_here(capfd, "court", file)
    assert made.code == 3, made.out + made.err
    assert "no order of the calls explains what a" in made.out

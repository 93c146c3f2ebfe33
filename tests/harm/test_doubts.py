"""Outcomes that look harmful, or harmless, for a reason other than the violation."""

from contextlib import contextmanager, suppress

import psycopg
import pytest
from harm.courtroom import Courtroom

from isolang.errors import IsolangError
from isolang.harm.outcome import Effects
from isolang.harm.state import PreparedState
from isolang.observe.wire.address import ServerAddress

pytestmark = pytest.mark.slow

POLL = ["CREATE TABLE poll (id int PRIMARY KEY, n int)", "INSERT INTO poll VALUES (1, 0)"]


def test_effects_of_a_call_that_was_rolled_back(embedded):
    """A mail was sent before the database refused the vote, as correct isolation does, too."""
    effects = Effects()

    def vote(url):
        with psycopg.connect(url) as c:
            c.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            (n,) = c.execute("SELECT n FROM poll WHERE id = 1").fetchone()
            effects.report("mail")
            c.execute("UPDATE poll SET n = %s WHERE id = 1", (n + 1,))

    court = Courtroom(embedded, POLL, effects)
    harm = court.harm({"ann": vote, "bob": vote})
    court.close()
    assert harm.kind == "unknown"
    assert harm.why.startswith("only more effects differ, and they may be those of ")
    assert len(harm.rolled_back) == 1


@contextmanager
def database_of_a_role(folder):
    """A database with a poll, whose owner may copy it but not put rows back, as its parts."""
    with psycopg.connect(f"host={folder} user=postgres", autocommit=True) as c:
        c.execute("CREATE ROLE app LOGIN CREATEDB")
        c.execute("CREATE DATABASE shop OWNER app")
        conninfo = f"host={folder} user=app dbname=shop"
        try:
            with psycopg.connect(conninfo) as owner:
                for statement in POLL:
                    owner.execute(statement)
            yield (
                conninfo,
                ServerAddress(conninfo=conninfo, host=folder, port=5432, database="shop"),
            )
        finally:
            c.execute("DROP DATABASE shop WITH (FORCE)")
            c.execute("DROP ROLE app")


class RoleCourtroom(Courtroom):
    def __init__(self, url, server):
        self.url, self.effects, self.state = url, Effects(), PreparedState(server)


@pytest.mark.parametrize("keeps", [False, True])
def test_a_database_is_copied_if_the_role_may_not_put_rows_back(embedded, keeps):
    """Connections that the application keeps end then, which is no harm of the violation."""
    with database_of_a_role(embedded) as (conninfo, server):
        court = RoleCourtroom(conninfo, server)
        kept = [psycopg.connect(conninfo) for _ in range(2)]

        def vote(connection):
            (n,) = connection.execute("SELECT n FROM poll WHERE id = 1").fetchone()
            connection.execute("UPDATE poll SET n = %s WHERE id = 1", (n + 1,))

        def call(number):
            def voted(url):
                with kept[number].transaction() if keeps else psycopg.connect(url) as c:
                    vote(kept[number] if keeps else c)

            return voted

        harm = court.harm({"ann": call(0), "bob": call(1)})
        court.close()
        for connection in kept:
            with suppress(psycopg.Error):
                connection.close()
        if keeps:
            assert harm.kind == "unknown"
            assert harm.why.startswith("the first call of each order failed; the role cannot")
        else:
            assert harm.headline() == "harmful: poll/1 n 1, every order gives 2"


def test_no_connection_ends_before_the_calls(embedded):
    """A test's connections stay open, although the database then cannot be copied."""
    with database_of_a_role(embedded) as (conninfo, server), psycopg.connect(conninfo) as c:
        with pytest.raises(IsolangError, match="while another connection uses it; hint: close"):
            PreparedState(server)
        assert c.execute("SELECT 1").fetchone() == (1,)


def test_rows_that_a_policy_hides_are_not_left_out(embedded):
    """Without them, two states with different rows would seem to be equal."""
    with database_of_a_role(embedded) as (conninfo, server):
        with psycopg.connect(conninfo) as c:
            c.execute("ALTER TABLE poll ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY")
        with pytest.raises(IsolangError, match="row-level security policy for table"):
            PreparedState(server)

"""Which request a transaction belongs to, and the race between requests that the proxy sees."""

from __future__ import annotations

import pytest
from observe.conftest import Observed
from support.cli import run_here

from isolang import check, load_history
from isolang.foresee.service import decide_run
from isolang.observe.sql.units import unit_named, units_of_statement

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"traceparent='00-{TRACE}-00f067aa0ba902b7-01'"


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        (f"SELECT 1 /*{PARENT}*/", TRACE),
        (f"SELECT 1 /*route='%2Fpay',{PARENT},tracestate='a%3D1'*/ ;", TRACE),
        (f"/*{PARENT}*/ SELECT 1", TRACE),
        (f"/* first */ /*{PARENT}*/ SELECT 1", TRACE),
        (f"SELECT 1 /*{PARENT},unit='7'*/", "7"),
        ("SELECT 1 /*unit='a%20b'*/", "a b"),
        ("SELECT 1 /*unit = 'a\\'b'*/", "a'b"),
        ("SELECT 1 /*route='/pay',controller='unit'*/", ""),
        ("SELECT '/*unit=''x''*/' FROM t", ""),
        (f"SELECT '{PARENT}' FROM t WHERE a = '*/'", ""),
        ("SELECT 1 /*traceparent='00-" + "0" * 32 + "-00f067aa0ba902b7-01'*/", ""),
        ("SELECT 1 /*traceparent='nonsense'*/", ""),
        ("SELECT /*unit='x'*/ 1", ""),
        ("/*" + "*" * 5000 + " unit", ""),
    ],
)
def test_units_of_comments(text, unit):
    assert unit_named(units_of_statement(text)) == unit


@pytest.fixture
def observing(server, tmp_path):
    """Make proxies, each with a history of its own."""
    made = []

    def make(**more):
        made.append(Observed(server, tmp_path / f"{len(made)}.edn", 1000, **more))
        return made[-1]

    yield make
    for proxy in made:
        proxy.stop()


RESTOCK = (
    "DROP TABLE IF EXISTS stock",
    "CREATE TABLE stock (id int PRIMARY KEY, n int NOT NULL, note text)",
    "INSERT INTO stock VALUES (1, 10, '')",
)


def observed_requests(observing, first, second, act, *, name=None, **more):
    """Play two requests that check first and act then, in turn, each in two transactions."""
    observed = observing(**more)
    observed.direct(*RESTOCK)
    observed.start()
    both = [observed.connect(application_name=f"r{n}" if name else None) for n in (1, 2)]
    for step in (first, act):
        for number, connection in enumerate(both, 1):
            comment = "" if name else second.replace("#", str(number))
            connection.execute(step.replace("#", str(number)) + comment)
            connection.commit()
    for connection in both:
        connection.close()
    observed.stop()
    return [
        check(load_history(observed.path, unit=unit), "ser") for unit in ("transaction", "request")
    ]


@pytest.mark.parametrize(
    ("act", "outcome"),
    [
        ("UPDATE stock SET n = # WHERE id = 1", "invalid"),
        ("UPDATE stock SET n = n - # WHERE id = 1", "valid"),
        ("UPDATE stock SET n = # WHERE id = 1 AND note = ''", "valid"),
        ("UPDATE stock SET n = # WHERE id = 1 RETURNING note", "valid"),
    ],
)
def test_a_check_in_one_transaction_and_an_act_in_another(observing, act, outcome):
    comment = f" /*{PARENT.replace('4bf9', '4bf#')}*/"
    alone, requests = observed_requests(observing, "SELECT * FROM stock WHERE id = 1", comment, act)
    assert alone.outcome == "valid"
    assert requests.outcome == outcome
    if outcome == "invalid":
        assert "had read for the same request" in str(requests)


def test_application_name_names_requests_if_the_user_says_so(observing):
    first, act = "SELECT * FROM stock WHERE id = 1", "UPDATE stock SET n = # WHERE id = 1"
    for is_unit, outcome in ((True, "invalid"), (False, "unknown")):
        _, requests = observed_requests(
            observing, first, "", act, name=True, application_is_unit=is_unit
        )
        assert requests.outcome == outcome


def test_programs_of_an_observed_service(observing):
    """A comment after BEGIN names a program; a foreign key relates a lock to what is read."""
    observed = observing()
    observed.direct(
        "DROP TABLE IF EXISTS seat, hall",
        "CREATE TABLE hall (id int PRIMARY KEY)",
        "CREATE TABLE seat (id serial PRIMARY KEY, hall int NOT NULL REFERENCES hall)",
        "INSERT INTO hall VALUES (1), (2)",
    )
    observed.start()
    connection = observed.connect()
    for hall in (1, 2):
        connection.execute("/* take */ SELECT 1")
        connection.execute("SELECT id FROM hall WHERE id = %s FOR UPDATE", (hall,))
        connection.execute("SELECT count(*) FROM seat WHERE hall = %s", (hall,))
        connection.execute("INSERT INTO seat (hall) VALUES (%s)", (hall,))
        connection.commit()
    connection.close()
    observed.stop()
    history = load_history(observed.path)
    assert history.foreign_keys() == {"seat": [(["hall"], "hall", ["id"])]}
    decision = decide_run(history, "mvrc")
    assert decision.standing == "robust"
    assert [(one.program, one.level) for one in decision.programs] == [("take", "mvrc")]


def test_the_option_names_application_name_alone(capfd):
    run = run_here(capfd, "observe", "postgres", "--spec", "ser", "--unit-from", "route")
    assert run.code != 0
    assert "expected application_name" in run.err

"""Templates of a run take foreign keys from the catalogue of its database, and guess none."""

import re

import pytest
from support.cli import run_here

from isolang import History, Transaction
from isolang.errors import UnsupportedError
from isolang.foresee.extract import extract, shown
from isolang.foresee.foreign_keys import ForeignKeys, domains, foreign_keys

TABLES = """
CREATE SCHEMA other;
CREATE TABLE customer (region int, id int, name text UNIQUE, PRIMARY KEY (id, region));
CREATE TABLE savings (region int, cust int, PRIMARY KEY (region, cust),
    FOREIGN KEY (cust, region) REFERENCES customer (id, region));
CREATE TABLE other.checking (cust int, region int, PRIMARY KEY (cust, region),
    FOREIGN KEY (region, cust) REFERENCES savings (region, cust));
CREATE TABLE nickname (name text PRIMARY KEY REFERENCES customer (name));
CREATE TABLE visit (id int PRIMARY KEY, cust int, region int,
    FOREIGN KEY (cust, region) REFERENCES customer (id, region));
CREATE TABLE plain (cust int PRIMARY KEY);
"""
RUN = """\
{:type :ok, :process 0, :label "P", :value [[:r "savings/1/7" nil] [:w "other.checking/7/1" 1]]}
{:type :ok, :process 0, :label "Q", :value [[:w "savings/1/7" 2] [:w "other.checking/7/1" 2]]}
{:type :ok, :process 0, :label "R", :value [[:r "other.checking/7/1" 2]]}
"""


@pytest.fixture
def database(url):
    """The URL of a database with tables that refer to each other."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "DROP TABLE IF EXISTS nickname, visit, plain, savings, customer CASCADE;"
            f"DROP SCHEMA IF EXISTS other CASCADE; {TABLES}"
        )
    return url


def test_only_columns_of_primary_keys_count(database):
    """Keys of several columns keep their order; a foreign key to another unique column does not."""
    found = foreign_keys(database)
    assert found.refers == (
        (("other.checking", 0), ("savings", 1)),
        (("other.checking", 1), ("savings", 0)),
        (("savings", 0), ("customer", 1)),
        (("savings", 1), ("customer", 0)),
    )
    assert found.columns["customer"] == ("id", "region")
    assert found.column_name(("savings", 1)) == "savings.cust"


@pytest.mark.parametrize("observed", [False, True])
def test_equal_values_of_foreign_keys_are_one_parameter(database, tmp_path, capfd, observed):
    """The catalogue changes the answer, and the conditions say what it said."""
    path = tmp_path / "run.edn"
    pair = r'["\1" "\2,\3"]'
    path.write_text(re.sub(r'"([\w.]+)/(\d)/(\d)"', pair, RUN) if observed else RUN)
    command = ["robust", str(path), "--at", "si", "--templates", str(tmp_path / "out")]
    assert run_here(capfd, *command).code == 1
    run = run_here(capfd, *command, "--foreign-keys", database)
    assert run.code == 0, run.err
    assert "  * savings.cust is customer.id, by a foreign key of the database\n" in run.out
    assert "other.checking.region is savings.region, by a foreign key" in run.out
    assert "visit" not in run.out
    assert (
        "program P(customer_2_1, customer1) r(savings[customer_2_1, customer1])"
        " w(other_checking[customer1, customer_2_1], 0)"
    ) in (tmp_path / "out").read_text()


def test_a_catalogue_of_another_database_is_refused(database, url, tmp_path, capfd):
    """If it has no table of the run, or cannot be read, nothing is decided."""
    history = History.from_transactions([Transaction([("w", "gone/1", 1)], label="P")])
    with pytest.raises(UnsupportedError, match="the catalogue contains none of the run's tables"):
        extract(history, catalogue=foreign_keys(database))
    path = tmp_path / "run.edn"
    path.write_text(RUN)
    run = run_here(capfd, "robust", str(path), "--foreign-keys", "postgresql://localhost:1/x")
    assert run.code == 2
    assert "--foreign-keys: the catalogue cannot be read (got " in run.err
    text = "program P(c) r(x[c])"
    assert (
        "applies only to a recorded run"
        in run_here(capfd, "robust", text, "--foreign-keys", url).err
    )


def test_chains_and_stated_keys_are_joined():
    """What refers to what refers to a key has its values, as the tables with the same keys have."""
    found = ForeignKeys(columns={}, refers=((("c", 0), ("b", 0)), (("b", 0), ("a", 0))))
    every = domains([("c", "d")], found)
    assert len({every[table, 0] for table in "abcd"}) == 1
    assert every["c", 1] == every["d", 1] != every["c", 0]
    ops = [("w", f"{table}/5", 1) for table in "abcd"]
    (line,) = shown(
        extract(
            History.from_transactions([Transaction(ops, label="P")]), same_keys=[("c", "d")]
        ).templates
    )
    assert line.startswith("program P(a1, b1, c1) w(a[a1], 0)")

"""``isocheck predict RUN --play``: an application's functions, or the recorded statements."""

import importlib
import json
import os
import re
import sys

import pytest
from support.cli import run_here

from isolang.errors import IsolangError
from isolang.foresee.calls import AppCall
from isolang.foresee.played_run import Application, import_application
from isolang.testing.isolation import Isolation

APP = """
import os
import psycopg

def setup():
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as c:
        c.execute("DROP TABLE IF EXISTS savings, checking")
        for table in ("savings", "checking"):
            c.execute(f"CREATE TABLE {table} (customer int PRIMARY KEY, balance int NOT NULL)")
            c.execute(f"INSERT INTO {table} VALUES (1, 100)")
    print("prepared")

def withdraw(table, amount, before="", begin=""):
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=bool(begin)) as c:
        if begin:
            c.execute(begin)
        else:
            c.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
        if before:
            c.execute(f"UPDATE {before} SET balance = balance WHERE customer = 1")
        query = "SELECT balance FROM {} WHERE customer = 1"
        found = [c.execute(query.format(t)).fetchone()[0] for t in ("savings", "checking")]
        if sum(found) >= amount:
            c.execute(f"UPDATE {table} SET balance = balance - %s WHERE customer = 1", (amount,))
        if begin:
            c.execute("COMMIT")

def save(amount):
    withdraw("savings", -amount)

class Service:
    def pay(self, amount, *, begin=""):
        withdraw("checking", amount, begin=begin)

service = Service()

def pay(amount):
    withdraw("checking", amount)

def deposit(amount):
    with psycopg.connect(os.environ["DATABASE_URL"]) as c:
        query = "SELECT balance FROM savings WHERE customer = 1"
        balance = c.execute(query).fetchone()[0] + amount
        c.execute("UPDATE savings SET balance = %s WHERE customer = 1", (balance,))
    return balance

def mended_save(amount):
    withdraw("savings", -amount, before="checking")

def mended_pay(amount):
    withdraw("checking", amount, before="savings")
"""
ASYNC = """
import asyncpg
import os

async def withdraw(table, amount):
    c = await asyncpg.connect(os.environ["DATABASE_URL"])
    try:
        async with c.transaction(isolation="serializable"):
            query = "SELECT balance FROM {} WHERE customer = $1"
            found = [await c.fetchval(query.format(t), 1) for t in ("savings", "checking")]
            if sum(found) >= amount:
                change = f"UPDATE {table} SET balance = balance - $1 WHERE customer = 1"
                await c.execute(change, amount)
    finally:
        await c.close()

async def save(amount):
    await withdraw("savings", -amount)

async def pay(amount):
    await withdraw("checking", amount)
"""


@pytest.fixture
def folder(tmp_path, url, monkeypatch):
    """A folder with the application, which finds the database."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("DATABASE_URL", url)
    (tmp_path / "played_bank.py").write_text(APP)
    (tmp_path / "played_async.py").write_text(ASYNC)
    yield tmp_path
    for name in ("played_bank", "played_async"):
        sys.modules.pop(name, None)


def recorded(folder, *calls, driver="psycopg"):
    """The file of a run of the calls, one after the other."""
    bank = importlib.import_module("played_bank")
    one = Isolation(folder / "run")
    (folder / "run").mkdir()
    bank.setup()
    getattr(one, f"watch_{driver}")(os.environ["DATABASE_URL"])
    for function, *args in calls:
        one.call(function, *args)
    one.history()
    one.close()
    return "run/history.edn"


@pytest.mark.parametrize("play", ["played_bank.py", "played_bank:service", "statements"])
@pytest.mark.parametrize("level", ["repeatable read", "read committed"])
def test_a_recorded_run_is_played(folder, url, capfd, play, level):
    """The labels name the calls; without functions, the statements themselves are played."""
    bank = importlib.import_module("played_bank")
    path = recorded(folder, (bank.save, 30), (bank.Service().pay, 30))
    bank.service.save = bank.save
    at = f"postgresql-{level.replace(' ', '-')}"
    command = ["predict", path, "--at", at, "--database", url, "--play", play, "--save", "out"]
    capfd.readouterr()
    run = run_here(capfd, *command)
    if play == "played_bank.py":
        # Service.pay is a method, which nothing but the class of the module has
        assert "NOT CONFIRMED at" in run.out
        assert "the arguments in the label 'Service.pay(30)' do not fit Service.pay" in run.out
        return
    assert run.code == 1, run.err
    assert f"CONFIRMED on PostgreSQL 18.6 at {level}: write skew, certified\n" in run.out
    assert f"  1 of 1 confirmed on PostgreSQL 18.6 at {level}.\n" in run.out
    if play == "statements":
        assert "overlooks T3 save(30)" in run.out
    else:
        assert "overlooks save(30) (played_bank.py:" in run.out
    assert "prepared" not in run.out
    for name, spec in (("prediction-1", "ser"), ("played-1", "ser")):
        checked = run_here(capfd, "check", f"out/{name}.edn", "--spec", spec)
        assert checked.code == 1
    verified = run_here(
        capfd, "verify", "out/played-1.against.certificate.json", "out/played-1.edn"
    )
    assert verified.code == 0, verified.err
    report = json.loads(run_here(capfd, *command, "--output", "json").out)
    (one,) = report["predictions"]
    assert one["confirmed"]
    assert one["played"]["profile"] == "valid"
    assert one["played"]["database"] == "PostgreSQL 18.6"
    harm = one["played"]["harm"]
    assert (play == "statements") == (harm is None)
    if harm is not None:
        assert harm["kind"] == "harmless"
        assert "\n     harmless with this data: as if " in run.out


def test_a_prediction_is_harmful_if_no_order_explains_what_was_played(folder, url, capfd):
    """The report names the row and the column, and what the orders give."""
    bank = importlib.import_module("played_bank")
    path = recorded(folder, (bank.deposit, 10), (bank.deposit, 20))
    command = ("predict", path, "--at", "postgresql-read-committed", "--database", url)
    run = run_here(capfd, *command, "--play", "played_bank.py")
    assert run.code == 1, run.err
    assert "lost update, certified\n" in run.out
    assert re.search(
        r"\n     harmful: savings/1 balance 1[12]0, every order gives 130; deposit\(", run.out
    )


@pytest.mark.parametrize("level", ["repeatable read", "read committed"])
def test_a_begin_of_the_application_is_played_at_the_level(folder, url, capfd, level):
    """A level that a statement requests is replaced, as that of a connection is."""
    bank = importlib.import_module("played_bank")
    begin = "BEGIN ISOLATION LEVEL SERIALIZABLE, READ WRITE;"

    def pay(amount):
        bank.service.pay(amount, begin=begin)

    def save(amount):
        bank.withdraw("savings", -amount, begin="BEGIN;")

    bank.pay, bank.save = pay, save  # of these names, which their labels have
    path = recorded(folder, (save, 30), (pay, 30))
    at = f"postgresql-{level.replace(' ', '-')}"
    run = run_here(
        capfd, "predict", path, "--at", at, "--database", url, "--play", "played_bank.py"
    )
    assert f"CONFIRMED on PostgreSQL 18.6 at {level}: write skew" in run.out


@pytest.mark.parametrize("level", ["repeatable read", "read committed"])
def test_functions_of_asyncpg_are_played(folder, url, isolation, level):
    """Each call has an event loop of its own; its BEGIN requests the weaker level."""
    bank = importlib.import_module("played_bank")
    app = importlib.import_module("played_async")
    isolation.setup(bank.setup)
    isolation.watch_asyncpg(url)
    isolation.call(app.save, 30)
    isolation.call(app.pay, 30)
    found = isolation.foresee(level)
    assert [str(one.calls[0]) for one in found.confirmed] == ["pay(30)"]
    assert found.confirmed[0].profile == "valid"


def test_an_asynchronous_test_awaits_its_calls(folder, url, isolation):
    """In an event loop, the call returns what the test awaits."""
    import asyncio

    bank = importlib.import_module("played_bank")
    app = importlib.import_module("played_async")

    async def test():
        await isolation.call(app.save, 30)
        await isolation.call(app.pay, 30)

    isolation.setup(bank.setup)
    isolation.watch_asyncpg(url)
    asyncio.run(test())
    history = isolation.history()
    labels = [history.labels_of(n) for n in range(history.columns.transactions())]
    assert [one for one in labels if one] == [("save(30)",), ("pay(30)",)]
    assert len(isolation.foresee("repeatable read").confirmed) == 1


def test_the_old_schedule_of_mended_functions_is_refused(folder, url, capfd, monkeypatch):
    """The database refuses the mended functions in the schedule that confirmed the others."""
    bank = importlib.import_module("played_bank")
    path = recorded(folder, (bank.save, 30), (bank.pay, 30))
    arguments = ("predict", path, "--at", "si", "--database", url, "--play", "played_bank.py")
    assert "1 of 1 confirmed" in run_here(capfd, *arguments).out
    monkeypatch.setattr(bank, "save", bank.mended_save)
    monkeypatch.setattr(bank, "pay", bank.mended_pay)
    run = run_here(capfd, *arguments)
    assert "0 of 1 confirmed" in run.out
    # by a deadlock: each has updated what the other one updates next
    assert "pay(30) was rolled back (DeadlockDetected: deadlock detected)" in run.out


def test_who_has_no_call_is_named(folder, url, capfd):
    """A prediction about a transaction that no function made is not played, with the reason."""
    bank = importlib.import_module("played_bank")
    path = recorded(folder, (bank.save, 30), (lambda: bank.withdraw("checking", 30),))
    run = run_here(
        capfd, "predict", path, "--at", "si", "--database", url, "--play", "played_bank.py"
    )
    assert run.code == 1
    assert "NOT CONFIRMED at repeatable read: no function is known for T5: the label" in run.out


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([], "it has no label"),
        (["nightly", "save(30)"], "save(30)"),
        (["save(amount=30)"], "save(amount=30)"),
        (["save"], ("the arguments in the label 'save' do not fit save: missing a required "
        "argument: 'amount'")),
        (["save(x)"], "the label 'save(x)' is not a call such as pay(1, 30)"),
        (["gone(1)"], "bank has no function gone"),
    ],
)  # fmt: skip
def test_labels_name_calls(labels, expected):
    """The first label that names a function and gives its arguments counts."""

    class Bank:
        @staticmethod
        def save(amount):
            pass

    found = Application(name="bank", functions=Bank, setup=print).call_of(labels)
    if isinstance(found, AppCall):
        assert str(found).rpartition(".")[2] == expected
    else:
        assert found == expected


@pytest.mark.parametrize(
    ("text", "setup", "message"),
    [
        ("nowhere.py", "setup", "no such file"),
        ("played_bank.py:nothing", "setup", "no such object"),
        ("played_bank.py", "prepare", "no function prepares the database"),
        ("json.py", "setup", "another module has this name"),
        ("broken.py", "setup", "cannot import the file (ZeroDivisionError"),
    ],
)
def test_mistakes_about_the_application(tmp_path, monkeypatch, text, setup, message):
    """What cannot be imported or found is an error with a hint."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "played_bank.py").write_text("def setup(): pass\n")
    (tmp_path / "json.py").write_text("")
    (tmp_path / "broken.py").write_text("1 / 0")
    with pytest.raises(IsolangError) as error:
        import_application(text, setup)
    assert message in str(error.value)
    sys.modules.pop("played_bank", None)

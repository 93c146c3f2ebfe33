"""Targets of one's own: an adapter in a file, and what SQLAlchemy has a dialect for."""

from __future__ import annotations

import json

import pytest
from support.cli import run_here

from isolang.run.address import Address
from isolang.run.operation import Append, Delete, Read, Write
from isolang.run.play.transaction import driver_for, play
from isolang.run.record.recorder import Recorder
from isolang.run.target import TargetError
from isolang.run.targets import target_named

MINE = """
from isolang.run.targets.sqlite import SQLite

class Mine(SQLite):
    name = "mine"

class NoAdapter:
    pass
"""


def test_an_adapter_in_a_file(tmp_path):
    """It is made with the address, whose rest is that of a URL."""
    (tmp_path / "mine.py").write_text(MINE)
    target = target_named(f"{tmp_path}/mine.py:Mine:///{tmp_path}/a.db?x=1")
    assert (target.name, target.address.database) == ("mine", f"{tmp_path}/a.db")
    assert target.address.options == {"x": "1"}
    assert Address.parse(str(target.address)).database == f"{tmp_path}/a.db"
    assert str(target_named(f"{tmp_path}/mine.py:Mine").address) == f"{tmp_path}/mine.py:Mine"


@pytest.mark.parametrize(
    ("text", "named", "message"),
    [
        (MINE, "Min", "no such class (got 'Min', expected Mine)"),
        ("import nothing_of_this_name", "Mine", ":1: ModuleNotFoundError: No module named"),
        ("x = 1\nclass (", "Mine", ":2: SyntaxError: invalid syntax"),
        (None, "Mine", "no such file"),
    ],
)
def test_what_cannot_be_loaded(tmp_path, text, named, message):
    """The message says where, and what there is."""
    if text is not None:
        (tmp_path / "bad.py").write_text(text)
    with pytest.raises(TargetError) as error:
        target_named(f"{tmp_path}/bad.py:{named}")
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql+psycopg://me:p:w@h/db?password=x&a=b", "postgresql+psycopg://me@h/db?a=b"),
        ("mysql+pymysql://h:33/db", "mysql+pymysql://h:33/db"),
        ("sqlite:////tmp/a@b:c.db", "sqlite:////tmp/a@b:c.db"),
    ],
)
def test_a_url_of_sqlalchemy_shows_no_password(text, shown):
    """It is SQLAlchemy's whole, but for what is secret."""
    assert str(Address.parse(f"sqlalchemy:{text}")) == f"sqlalchemy:{shown}"


def test_sqlalchemy_knows_levels_and_types(tmp_path):
    """Levels come from the dialect, the strongest first, with the standard's claims."""
    pytest.importorskip("sqlalchemy")
    postgres = target_named("sqlalchemy:postgresql+psycopg://h/db")
    assert [(one.name, one.claims) for one in postgres.levels][:2] == [
        ("serializable", "ser"),
        ("repeatable read", "si"),
    ]
    target = target_named(f"sqlalchemy:sqlite:///{tmp_path}/a.db")
    try:
        target.start()
        target.setup(["x", "y"], ["l"])
        assert target.version().startswith("sqlite 3")
        client = target.connect()
        assert client.isolation() == "serializable"
        program = (Write("x", 1), Read("x"), Append("l", 2), Read("l"), Delete("y"))
        with Recorder(tmp_path / "h.edn") as recorder:
            outcome, _ = play(program, recorder=recorder, session=0, client=client,
                              driver=driver_for(target), level="serializable")  # fmt: skip
            (only,) = recorder.history().transactions()
        client.close()
    finally:
        target.close()
    assert outcome == "committed"
    assert only.ops[:4] == [("w", "x", 1), ("r", "x", 1), ("append", "l", 2), ("r", "l", [2])]


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("nothing://x", "SQLAlchemy cannot use this URL"),
        ("", "the URL is missing"),
        ("postgresql+psycopg_async://h/db", "asynchronous"),
    ],
)
def test_urls_that_sqlalchemy_does_not_take(url, message):
    """Said in a sentence."""
    pytest.importorskip("sqlalchemy")
    with pytest.raises(TargetError, match=message):
        target_named(f"sqlalchemy:{url}")


TALKATIVE = """
import os
from isolang.run.targets.memory import Memory

class Talkative(Memory):
    name = "talkative"

    def version(self):
        print("from Python")
        os.write(1, b"from elsewhere")
        return "talkative"
"""


@pytest.mark.slow
def test_what_an_engine_prints_is_no_report(tmp_path, capfd):
    """The report is all that stands on the standard output."""
    (tmp_path / "talkative.py").write_text(TALKATIVE)
    done = run_here(
        capfd, "run", f"{tmp_path}/talkative.py:Talkative", "--workload", "mini", "--seconds", "60",
        "--transactions", "50", "--save", str(tmp_path), "-o", "json",
    )  # fmt: skip
    assert json.loads(done.out)["database"] == "talkative"
    assert "from elsewhere" in done.err

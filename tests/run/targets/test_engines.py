"""Engines of others: each adapter passes the self-test, and an engine keeps what it keeps."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

import pytest
from support.sampling import quick_first

import isolang
from isolang.run.judge.judge import judge_run
from isolang.run.play import player
from isolang.run.play.interleave import interleave
from isolang.run.record.recorder import Recorder
from isolang.run.settings import Settings
from isolang.run.targets import target_named
from isolang.run.workloads.scripted import SCRIPTS
from isolang.verdict import Invalid, Valid

# Of each engine the package that it needs, and the file.
NEEDS = {
    "h2": ("jpype", "/usr/share/java/h2.jar"),
    "hsqldb": ("jpype", "/usr/share/java/hsqldb.jar"),
    "derby": ("jpype", "/usr/share/java/derby.jar"),
    "firebird": ("firebird", "/usr/lib/x86_64-linux-gnu/libfbclient.so.2"),
    "turso": ("turso", ""),
    "seekdb": ("pylibseekdb", ""),
    "myrocks": ("pymysql", "/usr/lib/mysql/plugin/ha_rocksdb.so"),
    "slatedb": ("slatedb", ""),
    "zodb": ("ZODB", ""),
    "lmdb": ("lmdb", ""),
    "lance": ("lance", ""),
    "deltalake": ("deltalake", ""),
    "pyiceberg": ("pyiceberg", ""),
    "ladybug": ("ladybug", ""),
    "arcadedb": ("arcadedb_embedded", ""),
}

ALONE = ("ladybug", "arcadedb")


WAITING = "SELECT 1 FROM INFORMATION_SCHEMA.SYSTEM_SESSIONS WHERE THIS_WAITING_FOR <> ''"


def installed(name):
    """An engine, if it is there."""
    package, file = NEEDS[name]
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    if file and not os.path.exists(file):
        pytest.skip(f"{file} does not exist")
    return name


def verdict(name, tmp_path, level="", **more):
    """Run an engine, and judge it by what it claims."""
    settings = Settings(
        target=installed(name), level=level, seconds=20, folder=str(tmp_path), watched=False, **more
    )
    return judge_run(player.play(settings), target_named(name)).verdict


@pytest.mark.slow
@pytest.mark.parametrize("name", ALONE)
def test_the_adapter_passes_the_selftest_in_its_own_process(name):
    """An engine with a Java of its own, or one that may crash, does not share this process."""
    for level in target_named(installed(name)).levels:
        command = [sys.executable, "-P", "-m", "isolang.cli.main", "run", name, "--selftest"]
        done = subprocess.run(
            [*command, "--level", level.name], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "ok        a rolled-back write leaves nothing behind" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", quick_first([name for name in NEEDS if name not in ALONE], rest="campaign")
)
def test_the_adapter_passes_the_selftest(name):
    """No check of the self-test fails at any level, whichever engine it is."""
    for level in target_named(installed(name)).levels:
        checks = player.test_adapter(Settings(target=name, level=level.name))
        assert checks
        assert [one for one in checks if one.outcome == "failed"] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", quick_first(["firebird", "turso", "h2", "hsqldb"], 2, rest="campaign")
)
def test_upserts_pass_the_selftest(name):
    """Firebird counts no row for an upsert that updates one: it was recorded as a missing row."""
    checks = player.test_adapter(Settings(target=installed(name), update="upsert", access="any"))
    assert checks
    assert [one for one in checks if one.outcome == "failed"] == []


@pytest.mark.slow
def test_an_update_of_a_range_names_the_rows_that_it_changed():
    """In HSQLDB, SELECT FOR UPDATE locks no row: an UPDATE that waits may then change another one.

    Such a write was recorded for the row that was found before: a thin-air read of the other one.
    """
    target = target_named(installed("hsqldb"))
    target.options(level="mvcc read committed")
    with ExitStack() as clean_up, ThreadPoolExecutor(1) as other:
        clean_up.callback(target.close)
        target.start()
        target.setup(["x", "y"], [])
        first, second = target.connect(), target.connect()
        for client in (first, second):
            clean_up.callback(client.close)
            client.begin("mvcc read committed")
        first.write("x", 5)
        first.write("y", 50)
        first.commit()
        first.write("x", 51)
        first.write("y", 6)
        changed = other.submit(second.change, 0, 9, 99)
        until = time.monotonic() + 10
        while not target.admin().execute(WAITING, ()).fetchall() and time.monotonic() < until:
            time.sleep(0.01)
        first.commit()
        assert changed.result(10) == ["y"]
        assert (second.read("x"), second.read("y")) == (51, 99)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "level"),
    [
        ("slatedb", "serializable snapshot"),
        ("turso", "concurrent"),
        ("zodb", "readcurrent"),
        ("lmdb", "write"),
        ("h2", "snapshot"),
    ],
)
def test_what_is_claimed_is_kept(name, level, tmp_path):
    """A hundred transactions of pairs of keys keep the level that the engine claims."""
    found = verdict(name, tmp_path, level, workload="rmw", transactions=100, sessions=4)
    assert isinstance(found, Valid)
    assert found.certified


@pytest.mark.slow
def test_concurrent_upserts_of_a_new_key_are_one_row(tmp_path, monkeypatch):
    """PyIceberg 0.12 makes two of them: its retry does not look again for what the key matches.

    The interleaving is planned: both have read the table before the first of them commits.
    """
    monkeypatch.setattr(
        "isolang.run.play.interleave.BLOCKED_AFTER_S", 60.0
    )  # nobody waits for another
    (script,) = (one for one in SCRIPTS if one.name == "insert-beside-insert")
    target = target_named(installed("pyiceberg"))
    try:
        target.start()
        target.setup(script.names(), [])
        with Recorder(tmp_path / "h.edn") as recorder:
            played = interleave(
                script.renamed_programs(),
                script.schedule,
                target=target,
                level=target.levels[0].name,
                recorder=recorder,
            )
    finally:
        target.close()
    assert [(one.outcome, one.blocked) for one in played] == [("committed", False)] * 4
    found = isolang.check(recorder.history(), target.levels[0].claims)
    assert isinstance(found, Invalid)
    assert found.certified
    assert script.names()[0] in str(found.violation.transactions)


def test_the_page_quotes_each_promise():
    """docs/engines.md has each sentence that an engine is judged by, and its source."""
    page = " ".join(Path("docs/engines.md").read_text().split())
    for name in NEEDS:
        for level in target_named(name).levels:
            assert level.promise in page, (name, level.promise)
            assert level.source in page, (name, level.source)

"""Engines of others: each adapter passes the self-test, and an engine keeps what it keeps."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

import isolang
from isolang.run.judge.judge import judge
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
    "slatedb": ("slatedb", ""),
    "zodb": ("ZODB", ""),
    "lmdb": ("lmdb", ""),
    "lance": ("lance", ""),
    "deltalake": ("deltalake", ""),
    "pyiceberg": ("pyiceberg", ""),
}


def installed(name):
    """An engine, if it is there."""
    package, file = NEEDS[name]
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    if file and not os.path.exists(file):
        pytest.skip(f"{file} is not there")
    return name


def verdict(name, tmp_path, level="", **more):
    """Run an engine, and judge it by what it claims."""
    settings = Settings(
        target=installed(name), level=level, seconds=20, folder=str(tmp_path), watched=False, **more
    )
    return judge(player.play(settings), target_named(name)).verdict


@pytest.mark.slow
@pytest.mark.parametrize("name", NEEDS)
def test_the_adapter_passes_the_selftest(name):
    """No check of the self-test fails at any level, whichever engine it is."""
    for level in target_named(installed(name)).levels:
        checks = player.test_adapter(Settings(target=name, level=level.name))
        assert checks
        assert [one for one in checks if one.outcome == "failed"] == []


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


def test_concurrent_upserts_of_a_new_key_are_one_row(tmp_path, monkeypatch):
    """PyIceberg 0.12 makes two of them: its retry does not look again for what the key matches.

    The interleaving is planned: both have read the table before the first of them commits.
    """
    monkeypatch.setattr("isolang.run.play.interleave.PATIENCE", 60.0)  # nobody waits for another
    (script,) = (one for one in SCRIPTS if one.name == "insert-beside-insert")
    target = target_named(installed("pyiceberg"))
    try:
        target.start()
        target.setup(script.names(), [])
        with Recorder(tmp_path / "h.edn") as recorder:
            played = interleave(
                script.on_its_keys(),
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

"""Engines of others: each adapter passes the self-test, and an engine keeps what it keeps."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

from isolang.run import player
from isolang.run.judge import judge
from isolang.run.settings import Settings
from isolang.run.targets import target_named
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
    """An engine, if it is there.

    It is looked for without an import: some have threads of their own, and nothing may fork after
    those have begun. So all of it happens in a process that the test ends.
    """
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


def test_concurrent_upserts_of_a_new_key_are_one_row(tmp_path):
    """PyIceberg 0.12 makes two of them: its retry does not look again for what the key matches."""
    found = verdict("pyiceberg", tmp_path, workload="scripted", to_the_end=True)
    assert isinstance(found, Invalid)
    assert found.certified
    assert "insert-beside-insert/x" in str(found.violation.transactions)


def test_the_page_quotes_each_promise():
    """docs/engines.md has each sentence that an engine is judged by, and its source."""
    page = " ".join(Path("docs/engines.md").read_text().split())
    for name in NEEDS:
        for level in target_named(name).levels:
            assert level.promise in page, (name, level.promise)
            assert level.source in page, (name, level.source)

"""Runs that share a database: a living one is named, and never judged by what another one wrote."""

from __future__ import annotations

import sqlite3
import threading
import time

import pytest
from support.cli import run_here
from support.servers import start_target

from isolang.run.marks import ownership
from isolang.run.marks.ownership import Ownership, initial_mark, is_alive, owner_of
from isolang.run.play.player import play
from isolang.run.settings import Settings
from isolang.run.target import TargetError
from isolang.run.targets import target_named


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path / 'shared.db'}"


def tables(url):
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        return {name for (name,) in connection.execute("select name from sqlite_master")}


def test_a_living_run_is_no_killed_one(capfd, tmp_path, url):
    """Neither the refusal nor ``--clean`` harms it: who cleaned would convict the database."""
    one = start_target(url, keys=["x"], lists=["l"])
    try:
        refused = run_here(capfd, "run", url, "--seconds", "1", "--save", tmp_path)
        assert refused.code == 2
        assert f"the run {one.owner}, which is still active, created it" in refused.err
        assert "--clean" not in refused.err
        kept = run_here(capfd, "run", url, "--clean")
        assert (kept.code, kept.out) == (2, "")
        assert f"the run {one.owner} is still active" in kept.err
        assert {"isocheck_run", "isocheck_registers", "isocheck_lists"} <= tables(url)
        assert one.ownership(now=True) == "ours"
    finally:
        one.close()
    assert "isocheck_registers" not in tables(url)


@pytest.mark.slow
def test_another_prefix_is_another_run(capfd, tmp_path, url):
    """It plays beside the first one, as the refusal says."""
    one = start_target(url, keys=["x"])
    try:
        other = run_here(
            capfd, "run", url, "--table-prefix", "mine_", "--seconds", "1", "--save", tmp_path, "-q"
        )
        assert (other.code, other.err) == (0, "")
    finally:
        one.close()


@pytest.mark.slow
def test_a_run_that_lost_its_tables_is_not_judged(tmp_path, url):
    """Its clients wrote into another run's tables: no verdict, and nobody removes the others'."""
    other = target_named(url)
    done = []

    def take_over(state):
        if state.committed and not done:
            done.append(state.committed)
            with sqlite3.connect(url.removeprefix("sqlite:///"), timeout=60) as connection:
                for table in ("run", "registers", "lists"):
                    connection.execute(f"drop table isocheck_{table}")
            other.start()
            other.setup([f"rmw/{number}" for number in range(30)], ["l"])

    settings = Settings(target=url, workload="rmw", seconds=8, folder=str(tmp_path))
    try:
        with pytest.raises(TargetError) as error:
            play(settings, take_over)
        assert "cannot be judged" in str(error.value)
        assert {"isocheck_run", "isocheck_registers", "isocheck_lists"} <= tables(url)
        assert other.ownership(now=True) == "ours"
    finally:
        other.close()


def test_a_target_does_not_remove_what_another_one_made(url):
    """What came after it under the same names stays; nor does it claim that."""
    one = start_target(url, keys=["x"])
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        for table in ("run", "registers", "lists"):
            connection.execute(f"drop table isocheck_{table}")
    other = start_target(url, keys=["x"])
    try:
        assert one.ownership(now=True) == "lost"
        one.close()
        assert "isocheck_registers" in tables(url)
        assert other.ownership(now=True) == "ours"
    finally:
        other.close()
    assert "isocheck_registers" not in tables(url)


@pytest.mark.server
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["redis", "etcd", "postgres", "mariadb"])
def test_on_servers(kind, monkeypatch):
    """As on files; a server of ours stands in for theirs."""
    monkeypatch.setattr(ownership, "SILENCE_S", 2.5)
    server = target_named(kind)
    try:
        server.start()
    except TargetError as error:
        server.close()
        pytest.skip(str(error))
    folder = server.server.folder
    url = {
        "postgres": f"postgresql:///postgres?host={folder}&user=postgres",
        "mariadb": f"mariadb://root@/isocheck?unix_socket={folder}/socket",
        "redis": f"redis:///?unix_socket={folder}/socket",
        "etcd": f"etcd://127.0.0.1:{getattr(server, 'where', [(0, 0)])[0][1]}",
    }[kind]
    one = other = None
    try:
        one = start_target(url, keys=["x"], lists=["l"])
        other = target_named(url)
        other.start()
        with pytest.raises(
            TargetError, match=f"the run {one.owner}, which is still active, created it"
        ):
            other.setup(["x"], ["l"])
        with pytest.raises(TargetError, match=f"the run {one.owner} is still active"):
            other.clean()
        assert one.ownership(now=True) == "ours"
        one._owned.end()  # as if it were killed
        with pytest.raises(TargetError, match="a killed run left it behind"):
            other.setup(["x"], ["l"])
        assert target_named(url).clean()
        other.setup(["x"], ["l"])
        assert other.ownership(now=True) == "ours"
        one.remove()
        assert other.ownership(now=True) == "ours"
    finally:
        for target in (one, other, server):
            if target is not None:
                target.close()


class Fake:
    """A place of the mark, in this process."""

    def __init__(self, mark=""):
        self.mark, self.fails, self.closed = mark, 0, 0

    def get(self):
        return self.mark

    def swap(self, old, new):
        if old != self.mark:
            return False
        self.mark = new
        if self.fails:
            self.fails -= 1
            raise ConnectionError("the answer was lost")
        return True

    def close(self):
        self.closed += 1


def test_the_answer_to_a_sign_of_life_may_be_lost():
    """It has been given all the same, and the mark stays the run's own."""
    place = Fake(initial_mark("me"))
    place.fails = 1
    owned = Ownership("me", lambda: place)
    try:
        assert not owned.check() or owned.check()
        assert owned.check()
        assert not owned.lost
        assert owner_of(place.mark) == "me"
    finally:
        owned.end()


@pytest.mark.parametrize("mark", ["", "other 3"])
def test_a_mark_that_is_gone_is_lost(mark):
    """Or that names another run; nothing is written over it."""
    place = Fake(initial_mark("me"))
    owned = Ownership("me", lambda: place)
    place.mark = mark
    assert owned.check()
    assert owned.lost
    owned.end()
    assert place.mark == mark


def test_who_cannot_ask_does_not_know(monkeypatch):
    """A server that is down, or hangs, has taken nothing away."""
    monkeypatch.setattr(ownership, "CHECK_TIMEOUT_S", 0.3)
    hangs, ends = threading.Event(), threading.Event()

    def connect():
        hangs.set()
        ends.wait(60)
        raise ConnectionError("refused")

    owned = Ownership("me", connect)
    assert not owned.check()
    assert not owned.lost
    assert hangs.is_set()
    ends.set()
    owned.end()


def test_signs_of_life_are_seen(monkeypatch):
    """Without a clock: the number in the mark goes up, or it does not."""
    monkeypatch.setattr(ownership, "BEAT_S", 0.1)
    monkeypatch.setattr(ownership, "SILENCE_S", 30.0)
    place = Fake(initial_mark("me"))
    owned = Ownership("me", lambda: place)
    assert is_alive(place)
    owned.end()
    monkeypatch.setattr(ownership, "SILENCE_S", 0.5)
    while owned._thread.is_alive():
        time.sleep(0.05)
    assert not is_alive(place)

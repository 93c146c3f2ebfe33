"""``isocheck watch``, and ``isocheck verify`` of its chain."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from support.cli import ENVIRONMENT, run_here, run_there

GOOD = """{:type :invoke, :process 0, :f :txn, :value [[:w :x 1]]}
{:type :ok, :process 0, :f :txn, :value [[:w :x 1]]}
{:type :invoke, :process 1, :f :txn, :value [[:r :x nil]]}
{:type :ok, :process 1, :f :txn, :value [[:r :x 1]]}
"""


def test_a_valid_log_and_its_chain(tmp_path, capfd):
    """The verdict is printed, the chain kept, and verified against the log alone."""
    log, state = tmp_path / "log.edn", tmp_path / "state"
    log.write_text(GOOD)
    run = run_here(capfd, "watch", log, "--spec", "sser", "--until-idle", "0", "--state", state)
    assert run.code == 0
    assert run.out.startswith("VALID")
    run = run_here(capfd, "verify", state, log)
    assert (run.code, run.out.split()[0]) == (0, "ACCEPTED")
    log.write_text(GOOD.replace("[:r :x 1]", "[:r :x 2]"))
    run = run_here(capfd, "verify", state, log)
    assert (run.code, run.out.split()[0]) == (4, "REJECTED")


def test_what_a_run_has_beside_its_history_is_named(tmp_path, capfd):
    """Of a folder with a run's history, the watch reads that file, and names the others."""
    (tmp_path / "history.edn").write_text(GOOD)
    command = ("watch", tmp_path, "--spec", "sser", "--until-idle", "0")
    assert run_here(capfd, *command).err.count("only history.edn") == 0
    for name in ("a.edn", "b.edn", "c.edn", "d.edn", "history.edn.1"):
        (tmp_path / name).write_text(GOOD)
    run = run_here(capfd, *command)
    assert (run.code, run.out.split()[0]) == (0, "VALID")
    assert f"{tmp_path}: only history.edn, the history of a run, is read; a.edn" in run.err
    assert "c.edn and 1 more ignored" in run.err


def test_a_violation(tmp_path, capfd):
    """It has exit code 1, its places in the log, and a line for each round as JSON."""
    log = tmp_path / "log.edn"
    log.write_text(GOOD + GOOD.replace("[:r :x 1]", "[:r :x nil]").replace("x 1", "x 3"))
    text = (
        log.read_text()
        + GOOD.splitlines()[2]
        + "\n"
        + GOOD.splitlines()[2].replace(":invoke", ":ok")
    )
    log.write_text(text + "\n")
    run = run_here(capfd, "watch", log, "--spec", "sser", "--until-idle", "0", "-o", "json")
    assert run.code == 1
    *rounds, last = [json.loads(line) for line in run.out.splitlines()]
    assert last["outcome"] == "invalid"
    assert last["places"]
    assert (rounds[-1]["transactions"], rounds[-1]["ended"], last["ended"]) == (5, False, True)
    assert last["rate"] > 0
    assert last["memory"] > 0
    assert last["seconds"] >= rounds[-1]["seconds"]


@pytest.mark.slow
def test_places_of_what_came_through_a_pipe():
    """They are lines of the standard input: its copy is gone when the watch has ended."""
    text = GOOD.replace("[:r :x 1]", "[:r :x 2]")
    run = run_there("watch", "-", "--spec", "ser", "--until-idle", "1", stdin=text.encode())
    assert run.code == 1
    assert "in the log: the standard input, line 3\n" in run.out
    assert "isolang-watch" not in run.out


def test_what_cannot_be_watched(tmp_path, capfd):
    """A level without cuts, and a file that is not there, have exit code 2."""
    log = tmp_path / "log.edn"
    log.write_text(GOOD)
    run = run_here(capfd, "watch", log, "--spec", "ryw", "--until-idle", "0")
    assert (run.code, "cannot be watched" in run.err) == (2, True)
    run = run_here(capfd, "watch", tmp_path / "missing", "--spec", "ser", "--until-idle", "0s")
    assert run.code == 2


def test_pages_and_a_saved_violation(tmp_path, capfd):
    """The course of a valid watch is a page; a violation has its own, and a certificate."""
    log, page, state = tmp_path / "log.edn", tmp_path / "page.html", tmp_path / "state"
    log.write_text(GOOD)
    rest = ("--spec", "sser", "--until-idle", "0", "--html", page)
    run = run_here(capfd, "watch", log, *rest)
    text = page.read_text()
    assert (run.code, "VALID" in text, text.count("<svg")) == (0, True, 4)
    assert 'http-equiv="refresh"' not in text
    last = GOOD.splitlines()[2]
    log.write_text(GOOD + last + "\n" + last.replace(":invoke", ":ok") + "\n")
    run = run_here(capfd, "watch", log, *rest, "--state", state)
    assert run.code == 1
    assert '"outcome":"invalid"' in page.read_text()
    certificate = next(
        line.split()[-1] for line in run.out.splitlines() if "  certificate " in line
    )
    run = run_here(capfd, "verify", certificate, state / "violation.edn")
    assert (run.code, run.out.split()[0]) == (0, "ACCEPTED")


def test_a_violation_of_rows_is_saved(tmp_path, capfd):
    """A row that a predicate read missed: its key is a vector, and the saved history convicts."""
    log, state = tmp_path / "log.edn", tmp_path / "state"
    write, read = '[[:w [:u 1] 5] [:w [:t "a b"] 3]]', "[[:rp {:table :t :where :true} {}]]"
    log.write_text(
        "".join(
            f"{{:type :{kind}, :process {process}, :f :txn, :value {value}}}\n"
            for process, value in ((0, write), (1, read))
            for kind in ("invoke", "ok")
        )
    )
    rest = ("--spec", "sser", "--until-idle", "0", "--state", state)
    run = run_here(capfd, "watch", log, *rest)
    assert (run.code, run.err) == (1, "")
    (certificate,) = state.glob("*.certificate.json")
    run = run_here(capfd, "verify", certificate, state / "violation.edn")
    assert (run.code, run.out.split()[0]) == (0, "ACCEPTED")


@pytest.mark.slow
def test_its_numbers_are_served_while_it_goes_on():
    """For Prometheus: at first what is watched, then the last round, in the end nothing."""
    pytest.importorskip("prometheus_client")
    arguments = ("watch", "-", "--spec", "ser", "--metrics", "0")
    command = [sys.executable, "-P", "-m", "isolang.cli.main", *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=ENVIRONMENT) as child:
        told = re.fullmatch(
            r"metrics: (http://127\.0\.0\.1:\d+/metrics)\n", child.stderr.readline().decode()
        )
        found = urlopen(told[1]).read().decode()
        assert 'isolang_watch_info{level="SER",log="-"} 1.0' in found
        assert "transactions_total" not in found
        child.stdin.write(GOOD.encode())
        child.stdin.flush()
        while "isolang_watch_transactions_total 2.0\n" not in found:
            time.sleep(0.05)
            found = urlopen(told[1]).read().decode()
        numbers = dict(line.rsplit(" ", 1) for line in found.splitlines() if line[0] != "#")
        assert numbers['isolang_watch_outcome{outcome="valid"}'] == "1.0"
        assert numbers["isolang_watch_violations_total"] == "0.0"
        assert float(numbers["isolang_watch_resident_memory_bytes"]) > 1e6
        assert abs(float(numbers["isolang_watch_last_round_timestamp_seconds"]) - time.time()) < 60
        assert child.communicate()[0].startswith(b"VALID")
        assert child.returncode == 0
    with pytest.raises(URLError):
        urlopen(told[1])


@pytest.mark.parametrize("at", ["x", "70000", "nobody.invalid:1"])
def test_an_address_that_is_none(tmp_path, capfd, at):
    """It is said before anything is judged."""
    pytest.importorskip("prometheus_client")
    (tmp_path / "log.edn").write_text(GOOD)
    log = tmp_path / "log.edn"
    run = run_here(capfd, "watch", log, "-s", "ser", "--until-idle", "0", "--metrics", at)
    assert (run.code, run.out) == (2, "")
    assert run.err.startswith("isocheck: --metrics: ")
    assert at in run.err


def test_the_rate_of_a_watch_that_was_resumed(tmp_path, capfd, monkeypatch):
    """It is of what was seen since then, and not of what the watch before had seen."""
    from isolang.watch import Stream, Watch
    from isolang.watch.state import read_saved_state

    monkeypatch.setattr("isolang.watch.parts._SAVE_EACH", 1)
    log, state = tmp_path / "log.edn", tmp_path / "state"
    one = "{{:type :{}, :process 0, :f :txn, :value [[:w :x {}]]}}\n"
    log.write_text("".join(one.format(kind, n) for n in range(3000) for kind in ("invoke", "ok")))
    stream = Stream([log], follow=False, batch=20_000)
    watch = Watch("ser", stream=stream, folder=state, sources=[str(log)], round=100)
    while watch.seen < 2000:
        list(watch.feed(stream.next(0.0)))
    stream.close()
    watch.close()
    before = read_saved_state(state).seen
    assert before > 1000
    run = run_here(
        capfd, "watch", log, "-s", "ser", "--until-idle", "0", "--state", state, "-o", "json"
    )
    first, *_, last = [json.loads(line) for line in run.out.splitlines()]
    assert (last["outcome"], last["transactions"]) == ("valid", 3000)
    assert last["rate"] * last["seconds"] == pytest.approx(3000 - before, rel=0.1)
    assert first["rate"] * first["seconds"] <= 1.1 * (3000 - before)


def test_a_log_that_is_not_there_yet_is_named(tmp_path, capfd, monkeypatch):
    """The watch waits for it, and says so; --until-idle ends it."""
    monkeypatch.chdir(tmp_path)
    found = run_here(capfd, "watch", "-s", "si", "later.edn", "--until-idle", 0.2)
    assert found.code == 3
    assert (
        "later.edn: there is no such file yet; isocheck waits for it; the watch ends" in found.err
    )
    (tmp_path / "later.edn").write_text("")
    found = run_here(capfd, "watch", "-s", "si", "later.edn", "--until-idle", 0.2)
    assert "no such file" not in found.err

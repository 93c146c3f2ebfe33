"""Time, memory, interruption and crashes: always a verdict or one line, never a traceback."""

import contextlib
import os
import signal
import subprocess
import sys
import time

import pytest
from support.cli import ENVIRONMENT, LOST_UPDATE, VALID, hard_text, run_here, run_there

from isolang.jobs import child, pool
from isolang.jobs.job import Job
from isolang.options import Options

pytestmark = pytest.mark.skipif(
    "ISOLANG_SANITIZED" in os.environ,
    reason="a sanitizer takes the signals, and more memory than any cap",
)


@pytest.fixture(scope="module")
def hard(tmp_path_factory):
    """A file that is not decided quickly."""
    path = tmp_path_factory.mktemp("hard") / "hard.txt"
    path.write_text(hard_text())
    return path


def test_timeout_is_unknown(hard, capfd):
    """A hard history with little time: unknown, with the phase, soon."""
    start = time.monotonic()
    run = run_here(capfd, "--spec", "ser", "--timeout", "0.1", "-o", "json", hard)
    assert time.monotonic() - start < 30
    assert run.code == 3
    (report,) = run.reports()
    assert report["verdict"] == "unknown"
    assert report["reason"].startswith("timeout: the time limit was reached in phase ")
    assert report["violation"] is None
    assert report["certified"] is False


@pytest.mark.slow
def test_timeout_is_for_each_verdict(hard, tmp_path, capfd):
    """After an unknown, the next spec and the next history are judged."""
    easy = tmp_path / "easy.txt"
    easy.write_text(VALID)
    run = run_here(capfd, "-s", "ser", "-s", "pl-1", "--timeout", "2", "-o", "json", hard, easy)
    verdicts = [(r["spec"], r["verdict"]) for r in run.reports()]
    assert verdicts[1:] == [("pl-1", "valid"), ("ser", "valid"), ("pl-1", "valid")]


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs RLIMIT_DATA")
def test_memory_cap_is_unknown(tmp_path, capfd):
    """Too little memory: unknown with the phase; enough of it: a verdict."""
    path = tmp_path / "long.txt"
    path.write_text("".join(f"w({i % 50000},{i},{i % 7},{i})\n" for i in range(1, 400_001)))
    small = run_here(capfd, "--spec", "ser", "--memory", "90", "-o", "json", path)
    assert small.code == 3, small.out
    assert small.reports()[0]["reason"].startswith("memory: ")
    tiny = run_here(capfd, "--spec", "ser", "--memory", "5", "-o", "json", path)
    assert tiny.reports()[0]["reason"].startswith("memory: ")
    path.write_text(VALID)
    assert run_here(capfd, "--spec", "ser", "--memory", "1000", path).code == 0


@pytest.mark.slow
@pytest.mark.parametrize("extra", [[], ["--timeout", "100"], ["--jobs", "2"]])
def test_interrupt(hard, extra):
    """Ctrl-C: one line, exit code 130, and no child left behind."""
    command = [
        sys.executable,
        "-P",
        "-m",
        "isolang.cli.main",
        "-s",
        "ser",
        str(hard),
        str(hard),
        *extra,
    ]
    child = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        # Shells start what runs in the background with Ctrl-C ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
        env=ENVIRONMENT,
    )
    try:
        time.sleep(3)
        assert child.poll() is None, child.communicate()
        workers = _workers_of(child.pid)
        assert bool(workers) == bool(extra)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=20)
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)  # a failure leaves nothing behind either
        raise
    assert child.returncode == 130
    assert err.decode().strip() == "isocheck: interrupted"
    assert out == b""
    time.sleep(0.2)
    assert not [pid for pid in workers if _alive(pid)]


def _workers_of(parent):
    """The processes that a process started."""
    listed = subprocess.run(
        ["ps", "-o", "pid=,ppid=", "-A"], capture_output=True, text=True, check=True
    ).stdout
    pairs = (map(int, line.split()) for line in listed.splitlines())
    return [pid for pid, ppid in pairs if ppid == parent]


def _alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize(
    ("crash", "reason"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "SIGSEGV"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "SIGKILL"),
        ("import os; os._exit(9)", "status 9"),
        ("raise RuntimeError('broken inside')", "broken inside"),
    ],
)
def test_a_crash_of_a_child_is_unknown(tmp_path, monkeypatch, crash, reason):
    """Whatever ends a child, the verdict says so, and the next spec has a child of its own."""
    fake = tmp_path / "fake_worker.py"
    fake.write_text(crash)
    real = subprocess.Popen

    def popen(command, **more):
        assert "isolang.jobs.child" in command[3]
        return real([command[0], str(fake)], **more)

    monkeypatch.setattr(child.subprocess, "Popen", popen)
    job = Job(history="h.txt", specs=(("a", None), ("b", None)), options=Options(timeout=30))
    reports = pool.run_in_child(child.Children(), job, lambda phase: None)
    assert [r.verdict for r in reports] == ["unknown", "unknown"]
    for report in reports:
        assert report.reason.startswith("crash: ")
        assert reason in report.reason


def test_a_child_that_hangs_is_ended(tmp_path, monkeypatch):
    """A phase that does not look at the clock is ended from outside."""
    fake = tmp_path / "fake_worker.py"
    fake.write_text(
        "import json, time\nprint(json.dumps(['phase', 'read']), flush=True)\n"
        "print(json.dumps(['phase', 'prepare']), flush=True)\ntime.sleep(60)\n"
    )
    real = subprocess.Popen
    monkeypatch.setattr(
        child.subprocess, "Popen", lambda command, **more: real([command[0], str(fake)], **more)
    )
    start = time.monotonic()
    job = Job(history="h.txt", specs=(("a", None),), options=Options(timeout=0.2))
    (report,) = pool.run_in_child(child.Children(), job, lambda phase: None)
    assert time.monotonic() - start < 20
    assert report.reason == "timeout: the time limit was reached in phase prepare"


@pytest.mark.slow
def test_equal_seeds_give_equal_runs(tmp_path):
    """The same seed, the same explanation; without the times, every byte."""
    path = tmp_path / "lost.txt"
    path.write_text(LOST_UPDATE)

    def run():
        (report,) = run_there("-s", "si", "--seed", "7", "-o", "json", path).reports()
        statistics = {k: v for k, v in report["statistics"].items() if "seconds" not in k}
        return {**report, "seconds": None, "statistics": statistics}

    assert run() == run()

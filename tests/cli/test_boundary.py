"""No failure of one verdict ends a run; the streams may be closed; limits are there by default."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.cli import ENVIRONMENT, LOST_UPDATE, VALID, run_here
from support.sampling import quick_first

from isolang import history
from isolang.cli import verify as verify_command
from isolang.limits import default_memory, default_memory_remark, interrupt_after, memory_cap
from isolang.machine import memory
from isolang.pipeline import decision

LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")
SANITIZED = pytest.mark.skipif(
    "ISOLANG_SANITIZED" in os.environ, reason="a sanitizer takes more memory than any cap"
)


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "valid").write_text(VALID)
    (tmp_path / "lost").write_text(LOST_UPDATE)
    return tmp_path


def broken_for(name, error, monkeypatch):
    """Let deciding a level fail."""
    real = decision._verdict

    def verdict(run):
        if run.route.spec.name == name:
            raise error
        return real(run)

    monkeypatch.setattr(decision, "_verdict", verdict)


def test_a_bug_costs_one_verdict(files, capfd, monkeypatch):
    """The verdict is unknown, with what to send us; the next level and history are judged."""
    broken_for("SI", KeyError("no such node\nand more"), monkeypatch)
    run = run_here(capfd, "-s", "si", "-s", "pl-2", "-o", "json", "valid", "lost")
    assert run.code == 3
    assert [r["verdict"] for r in run.reports()] == ["unknown", "valid", "unknown", "valid"]
    reason = run.reports()[0]["reason"]
    assert reason.startswith("internal error (KeyError: ")
    assert "test_boundary.py:" in reason
    assert "please report it" in reason
    assert "\n" not in reason
    assert "Traceback" not in run.err


def test_a_bug_s_traceback_is_shown_on_request(files, capfd, monkeypatch):
    """For those who look for it; the run goes on all the same."""
    broken_for("SI", KeyError("here"), monkeypatch)
    monkeypatch.setenv("ISOLANG_TRACEBACK", "1")
    run = run_here(capfd, "-s", "si", "-s", "pl-2", "-o", "json", "valid")
    assert "Traceback" in run.err
    assert [r["verdict"] for r in run.reports()] == ["unknown", "valid"]


def test_a_bug_costs_one_level(files, capfd, monkeypatch):
    """Of `levels`, the others keep their standing."""
    broken_for("SER", KeyError("here"), monkeypatch)
    run = run_here(capfd, "levels", "-o", "json", "valid")
    assert run.code == 3
    levels = {level["name"]: level for level in json.loads(run.out)["levels"]}
    assert levels["ser"]["standing"] == "unknown"
    assert levels["ser"]["reason"].startswith("internal error (KeyError")
    assert levels["si"]["standing"] == "satisfied"


def test_a_bug_while_reading_costs_one_history(files, capfd, monkeypatch):
    real = history.read_history

    def read(path, *args, **more):
        if path == "lost":
            raise IndexError("here")
        return real(path, *args, **more)

    monkeypatch.setattr(history, "read_history", read)
    run = run_here(capfd, "-s", "si", "-o", "json", "lost", "valid")
    assert [r["verdict"] for r in run.reports()] == ["unknown", "valid"]


# --- memory ---


@pytest.mark.parametrize("message", ["", "std::bad_alloc"])
def test_memory_that_runs_out_without_a_limit(files, capfd, monkeypatch, message):
    """The reason names the limit that held by default, and how to set another."""
    broken_for("SI", MemoryError(message), monkeypatch)
    run = run_here(capfd, "-s", "si", "-s", "pl-2", "-o", "json", "valid")
    report, other = run.reports()
    assert (report["verdict"], other["verdict"]) == ("unknown", "valid")
    assert report["reason"].startswith("memory: the memory limit was reached in phase ")
    assert "bad_alloc" not in report["reason"]
    assert default_memory_remark() in report["reason"]


@LINUX
@SANITIZED
@pytest.mark.parametrize("limit", ["RLIMIT_AS", "RLIMIT_DATA"])
def test_the_own_limit_of_a_process_is_what_its_message_names(limit):
    """Three quarters of the machine's would be more than the process could ever have."""
    program = (
        f"import resource as r; r.setrlimit(r.{limit}, (4_000_000_000, 4_000_000_000));"
        "from isolang.limits import default_memory_remark as about, default_memory;"
        "print(default_memory(2), about(2))"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        capture_output=True, text=True, check=True, env=ENVIRONMENT,
    )  # fmt: skip
    assert done.stdout.startswith("1500.0 ")
    assert "the limit was 1,500 MB, three quarters of this process's memory" in done.stdout


@pytest.mark.slow
@LINUX
@SANITIZED
def test_every_report_says_its_limits(files, capfd):
    """Those given, or a share of the memory that there is."""
    (report,) = run_here(capfd, "-s", "si", "-o", "json", "valid").reports()
    assert report["limits"] == {"timeout": None, "memory": default_memory(), "default_memory": True}
    assert 0 < default_memory() < memory()[0]
    arguments = ["-s", "si", "-o", "json", "--timeout", "50", "--memory", "1500", "valid"]
    (report,) = run_here(capfd, *arguments).reports()
    assert report["limits"] == {"timeout": 50.0, "memory": 1500.0, "default_memory": False}
    reports = run_here(capfd, "-s", "si", "-o", "json", "-j", "2", "valid", "lost").reports()
    assert {r["limits"]["memory"] for r in reports} == {default_memory(2)}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, None),
        ({"proc/meminfo": "MemTotal: 8000000 kB\n"}, (8192.0, "machine")),
        (
            {
                "proc/meminfo": "MemFree: 1 kB\nMemTotal: 8000000 kB\n",
                "proc/self/cgroup": "0::/a/b\n",
                "sys/fs/cgroup/a/b/memory.max": "max\n",
                "sys/fs/cgroup/a/memory.max": "2000000000\n",
            },
            (2000.0, "container"),
        ),
        (
            {
                "proc/meminfo": "MemTotal: 8000000 kB\n",
                "proc/self/cgroup": "4:memory:/x\n3:cpu:/y\n",
                "sys/fs/cgroup/memory/memory.limit_in_bytes": "1000000000\n",
            },
            (1000.0, "container"),
        ),
        (
            {
                "proc/meminfo": "MemTotal: 8000000 kB\n",
                "proc/self/cgroup": "4:memory:/\n",
                "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
            },
            (8192.0, "machine"),
        ),
    ],
)
def test_the_memory_of_machine_and_container(tmp_path, files, expected):
    """Control groups of both versions, and those around one's own."""
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert memory(tmp_path) == expected


@LINUX
@SANITIZED
def test_caps_of_threads_do_not_outlive_them():
    """Checks that run at the same time share their limits, and lift them all at the end."""
    import resource
    from concurrent.futures import ThreadPoolExecutor

    def capped(megabytes):
        with memory_cap(megabytes):
            time.sleep(0)
            return resource.getrlimit(resource.RLIMIT_DATA)[0]

    before = resource.getrlimit(resource.RLIMIT_DATA)
    with ThreadPoolExecutor(4) as pool:
        limits = list(pool.map(capped, [500, 600, 700, 800] * 20))
    assert all(limit != resource.RLIM_INFINITY for limit in limits)
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


# --- loading specifications ---


@pytest.mark.slow
def test_loading_a_specification_is_limited(files, capfd, monkeypatch):
    """A level that cannot be loaded in time is unknown, and the others are judged."""
    from isolang.jobs import routes

    real = routes.load_route

    def load(spec, include=()):
        if spec != "si":
            while True:
                pass
        return real(spec, include)

    monkeypatch.setattr(routes, "load_route", load)
    run = run_here(capfd, "-s", "si", "-s", "ser", "-o", "json", "--timeout", "2", "valid")
    assert run.code == 3
    first, second = run.reports()
    assert first["verdict"] == "valid"
    assert second["reason"].startswith(
        "timeout: the time limit was reached while the specification was"
    )


def test_an_interruption_leaves_no_alarm():
    """Neither the signal's handler nor the clock stays."""
    before = signal.getsignal(signal.SIGALRM)

    def hang():
        with interrupt_after(0.01):
            while True:
                pass

    with pytest.raises(TimeoutError):
        hang()
    assert signal.getsignal(signal.SIGALRM) == before
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0


def test_an_import_ends_before_it_is_interrupted(tmp_path, monkeypatch):
    """Else Python takes the interruption for the absence of a file, and never finds the module."""
    (tmp_path / "slow_to_import.py").write_text(
        "import time\n"
        "try:\n    time.sleep(0.1)\n    WHOLE = True\n"
        "except OSError:\n    WHOLE = False\n"
    )
    monkeypatch.syspath_prepend(tmp_path)

    def import_slowly():
        with interrupt_after(0.01):
            import slow_to_import  # noqa: F401

            time.sleep(10)

    with pytest.raises(TimeoutError):
        import_slowly()
    assert sys.modules.pop("slow_to_import").WHOLE


# --- streams and temporary files ---

COMMAND = f"{sys.executable} -P -m isolang.cli.main"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "code"),
    quick_first(
        [
            ("{c} -s si valid >&-", 0),
            ("{c} -s si lost >&-", 1),
            ("{c} -s si valid 2>&-", 0),
            ("{c} -s si missing >&- 2>&-", 2),
            ("{c} -s si valid <&- >&- 2>&-", 0),
            ("{c} -s si --timeout 60 valid <&- 2>&-", 0),
            ("{c} -s si - <&-", 2),
            ("{c} -s si --timeout 60 - <&-", 2),
            ("{c} --help >&-", 0),
            ("{c} nosuch 2>&-", 2),
        ],
        4,
    ),
)
def test_closed_streams(files, line, code):
    """What the caller closed is not missed."""
    done = subprocess.run(
        ["/bin/sh", "-c", line.format(c=COMMAND)], capture_output=True, check=False, env=ENVIRONMENT
    )
    said = done.stdout.decode() + done.stderr.decode()
    assert done.returncode == code, said
    assert "internal error" not in said
    assert "Traceback" not in said


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    quick_first(["-s si lost lost", "--help", "levels lost", "spec list", "schema", "generate",
                 "convert lost - --to edn", "stats lost"], 3),
)  # fmt: skip
def test_pipes_that_nobody_reads(files, command):
    """``isocheck … | head -0`` is no error of ours."""
    line = f"({COMMAND} {command}; echo $? >code) | true"
    done = subprocess.run(
        ["/bin/sh", "-c", line], capture_output=True, check=False, env=ENVIRONMENT
    )
    assert done.stderr.decode().strip().splitlines()[1:] == []  # generate says what it wrote
    assert "error" not in done.stderr.decode()
    assert int((files / "code").read_text()) in (0, 1, 3, 141)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_device_is_an_error(files):
    """A verdict that cannot be printed does not end as if it had been."""
    with open("/dev/full", "w") as full:
        command = [*COMMAND.split(), "-s", "si", "valid"]
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, check=False, env=ENVIRONMENT
        )
    assert done.returncode == 2
    assert done.stderr.decode().splitlines() == ["isocheck: cannot print: No space left on device"]


@pytest.mark.parametrize("extra", [["--timeout", "60"], ["--jobs", "2"]])
def test_a_killed_run_leaves_no_files(files, tmp_path_factory, extra):
    """What a child needs has no name: there is nothing to sweep."""
    temporary = tmp_path_factory.mktemp("temporary")
    os.mkfifo(files / "fifo")
    child = subprocess.Popen(
        [*COMMAND.split(), "-s", "si", "fifo", "fifo", *extra],
        env={**ENVIRONMENT, "TMPDIR": str(temporary)},
        start_new_session=True,
    )
    try:
        with open(files / "fifo", "wb"):  # opens when the reader is there
            child.kill()
            child.wait(timeout=30)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
    assert list(temporary.iterdir()) == []


# --- verify ---


def certificate(capfd, *arguments):
    (report,) = run_here(capfd, *arguments, "-o", "json", "--certificate", "c", "lost").reports()
    return report["certificate"]


def test_verify_says_whose_specification_it_is(files, capfd):
    """The library's by its text, whatever it is called; else the certificate's own."""
    run = run_here(capfd, "verify", certificate(capfd, "-s", "si"), "lost")
    assert run.code == 0
    assert ": the library's SI\n" in run.out
    assert "acyclic (so | wr | ww) ; rw? as SI" in run.out
    (files / "own.iso").write_text('spec SER\ninclude "adya.iso"\nacyclic so | rw as mine\n')
    run = run_here(capfd, "verify", certificate(capfd, "-s", "own.iso"), "lost")
    assert run.code == 0
    assert "invalid under SER" in run.out
    said = "the text in the certificate, which differs from the library's SER; its checks:"
    assert said in run.out
    assert "    acyclic so | rw as mine\n" in run.out


def test_verify_says_how_the_history_is_read(files, capfd):
    """A certificate chooses that, and with other rules for it more is valid."""
    lines = (("w", "x", 1, 0), ("w", "y", 1, 0), ("r", "y", 1, 1), ("r", "x", None, 1))
    events = [
        {"index": i, "type": "ok", "process": process, "f": "txn", "value": [[f, key, value]]}
        for i, (f, key, value, process) in enumerate(lines)
    ]
    (files / "keys.json").write_text("\n".join(json.dumps(event) for event in events))
    judged = "-s", "ser", "-o", "json", "--certificate", "d", "keys.json"
    for options, outcome, said in (
        ((), "invalid", "  history read as jepsen-json"),
        (("--per-key",), "valid", "  history read as jepsen-json with per_key"),
    ):
        (report,) = run_here(capfd, *options, *judged).reports()
        assert report["verdict"] == outcome
        run = run_here(capfd, "verify", report["certificate"], "keys.json")
        assert [line for line in run.out.splitlines() if "read as" in line] == [said]


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs /dev/zero")
def test_a_history_is_no_device(capfd):
    """A device may have no end."""
    run = run_here(capfd, "-s", "si", "/dev/zero")
    assert run.code == 2
    assert "/dev/zero: not a history (got a device, expected a file, a folder or a pipe)" in run.out


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs /dev/zero")
def test_verify_of_what_has_no_end(files, capfd):
    """A device is read so far as a certificate may be long."""
    run = run_here(capfd, "verify", "/dev/zero", "lost")
    assert run.code == 2
    assert run.err.startswith("isocheck: /dev/zero: ")
    assert len(run.err) < 300


def test_verify_has_limits(files, capfd, monkeypatch):
    """A certificate that takes too long is not checked, which is no verdict on it."""
    path = certificate(capfd, "-s", "si")
    monkeypatch.setattr(verify_command, "spec_of", lambda _: time.sleep(60))
    run = run_here(capfd, "verify", "--timeout", "0.2", path, "lost")
    assert run.code == 3
    assert "timeout: not checked within 0.2 s" in run.out

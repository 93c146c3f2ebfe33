"""``--workers URL``: whoever does the work, and whoever dies, the output is the same."""

import json
import os
import re
import signal
import threading

import pytest
from support.cli import LOST_UPDATE, THIN_AIR, VALID, run_here

from isolang.errors import OptionError, WorkerError
from isolang.jobs.workers import Result, Workers, _call_at_worker, call_in_child

distributed = pytest.importorskip("distributed", reason="dask's distributed is not installed")


@pytest.fixture(scope="module")
def cluster():
    """Two worker processes on this machine, and a client."""
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
        ) as there,
        distributed.Client(there, set_as_default=False) as client,
    ):
        yield there.scheduler_address, client


@pytest.fixture
def killing(cluster):
    """While a test runs, workers are killed, of which one is left; the list has those killed."""
    url, client = cluster
    killed, before, end = [], set(), threading.Event()

    def kill():
        nonlocal before
        while not end.wait(0.5):
            pids = set(client.run(os.getpid, on_error="ignore").values())
            # One that has just begun could not be replaced yet.
            if len(pids & before) > 1:
                killed.append(min(pids & before))
                os.kill(killed[-1], signal.SIGKILL)
            before = pids

    thread = threading.Thread(target=kill)
    thread.start()
    yield url, killed
    end.set()
    thread.join()


def timeless(run):
    """The exit code and the reports of a run, without how long things took."""
    found = []
    for one in run.reports():
        for report in (one, *one.get("levels", ())):
            report.pop("seconds")
            report.pop("statistics", None)
        found.append(json.dumps(one))
    return run.code, found


@pytest.fixture
def histories(tmp_path, monkeypatch):
    """A folder of valid, invalid and unreadable histories."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    texts = {"valid": VALID, "lost": LOST_UPDATE, "thin": THIN_AIR}
    for name, text in texts.items():
        (tmp_path / "runs" / f"{name}.txt").write_text(text)
    (tmp_path / "runs" / "torn.txt").write_text(LOST_UPDATE[:-3])
    return sorted(map(str, (tmp_path / "runs").iterdir()))


@pytest.mark.slow
def test_killed_workers_cost_nothing(killing, histories, capfd):
    """Verdicts, levels and their order are those of one machine."""
    url, killed = killing
    check = ("check", "-s", "ser", "-s", "si", "-o", "json", "--memory", "2000", *histories)
    levels = ("levels", "-o", "json", "--memory", "2000", *histories[:2])
    expected = [timeless(run_here(capfd, *command)) for command in (check, levels)]
    for _ in range(30):  # until one was killed meanwhile
        done = [
            timeless(run_here(capfd, *command, "--workers", url)) for command in (check, levels)
        ]
        assert done == expected
        if killed:
            break
    assert killed


@pytest.mark.slow
def test_the_parts_of_a_chain(cluster, tmp_path, monkeypatch, capfd):
    """The workers accept what this machine accepts, and reject what it rejects."""
    monkeypatch.chdir(tmp_path)
    run_here(capfd, "generate", "log.edn", "--rule", "serializable", "--transactions", "6000")
    run_here(capfd, "watch", "-s", "ser", "log.edn", "--state", "state", "--until-idle", 0)
    here = run_here(capfd, "verify", "state", "log.edn")
    there = run_here(capfd, "verify", "state", "log.edn", "--workers", cluster[0])
    # Only a kernel that ran on this machine is named, by its path and hash.
    out = re.sub(r"  kernel \S+ sha256 \w+\n", "", here.out)
    assert (there.code, there.out) == (here.code, out) == (0, out)
    log = tmp_path / "log.edn"
    log.write_text(log.read_text().replace(":r ", ":w ", 1))
    here = run_here(capfd, "verify", "state", "log.edn")
    there = run_here(capfd, "verify", "state", "log.edn", "--workers", cluster[0])
    assert (there.code, there.out) == (here.code, here.out) == (4, here.out)


@pytest.mark.campaign
@pytest.mark.slow
def test_a_survey_is_judged_by_workers(cluster, tmp_path, monkeypatch, capfd):
    """The cells come in their order, each with its evidence in the folder of the survey."""
    monkeypatch.chdir(tmp_path)
    found = run_here(
        capfd, "run", "sqlite", "--survey", "--level", "python", "-w", "rmw,register",
        "--seconds", "0.3", "-o", "json", "--workers", cluster[0],
    )  # fmt: skip
    cells = json.loads(found.out)["cells"]
    assert [cell["workload"] for cell in cells] == ["rmw", "register"]
    for cell in cells:
        assert cell["outcome"] in ("valid", "invalid")
        assert (tmp_path / cell["certificate"]).is_file()


def test_a_task_that_the_cluster_loses_is_done_here():
    """Whether it took the task and lost it, or did not take it."""

    class Lost:
        def __init__(self, reason):
            self.reason = reason

        def done(self):
            return False

        def result(self, timeout=None):
            raise self.reason

    class Nobody:
        looks = 0

        def gone(self):
            self.looks += 1
            return self.looks == 3

    for reason in (OSError("the scheduler is gone"), TimeoutError()):
        assert Result(Lost(reason), lambda: 7, Nobody()).result() == 7
    assert Result(None, lambda: 8, Nobody()).result() == 8


def test_an_error_of_the_work_is_no_loss():
    """It is raised, and the work is not done again."""

    class Failed:
        def done(self):
            return True

        def result(self):
            raise OptionError("no")

    with pytest.raises(OptionError):
        Result(Failed(), lambda: 7, None).result()


def test_another_version_and_another_folder(tmp_path):
    """A worker that would give other results, or has other files, says so."""
    with pytest.raises(WorkerError, match=r"another version \(got isolang .*, expected isolang 0"):
        _call_at_worker("isolang 0", len, ([],), {})
    with pytest.raises(WorkerError, match=r"has no folder .*/gone; hint: all workers need the"):
        call_in_child(len, str(tmp_path / "gone"), [])


def test_the_end_of_a_child_is_an_error_of_its_task(tmp_path):
    """The worker itself lives on."""
    with pytest.raises(WorkerError, match="the worker process ended with 3"):
        call_in_child(os._exit, str(tmp_path), 3)
    assert call_in_child(os.getcwd, str(tmp_path)) == str(tmp_path)


@pytest.mark.parametrize("url", ["cluster", "-o", "tcp://host", "http://a:1"])
def test_what_is_no_address(url):
    """The message names the form of one."""
    with pytest.raises(OptionError, match="such as tcp://HOST:8786"):
        Workers(url)


def test_the_command_line_says_what_workers_cannot_do(capfd, tmp_path):
    """Read its standard input, share one certificate, or play one run."""
    (tmp_path / "h").write_text(VALID)
    url = ("--workers", "tcp://127.0.0.1:9")
    for arguments, said in (
        (("check", "-s", "ser", "-"), "standard input"),
        (("levels", "-"), "standard input"),
        (("verify", tmp_path / "h", tmp_path / "h"), "the parts of a chain"),
        (("run", "sqlite"), "--workers needs --survey"),
    ):
        found = run_here(capfd, *arguments, *url)
        assert (found.code, said in found.err) == (2, True), found.err

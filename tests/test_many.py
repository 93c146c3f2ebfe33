"""Many histories at once: every one is judged, in whatever order, and whoever ends a worker."""

import copy
import os
import pickle
import signal
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import pytest
from support.many import history_that_reads, killer
from support.paths import ROOT

import isolang
from isolang import check_many
from isolang.certify.certificate import verify
from isolang.errors import HistoryError, WorkerError

EXAMPLES = [str(ROOT / "examples" / name) for name in ("on-call.edn", "three.txt")]


@pytest.fixture(scope="module")
def processes():
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        yield pool


def test_paths_and_objects_over_processes(processes):
    """Each result says which history it is of; the verdict has the history."""
    given = [*EXAMPLES, history_that_reads(1), history_that_reads(2)]
    found = {one.number: one for one in check_many(given, "ser", executor=processes)}
    assert [found[i].verdict.outcome for i in range(4)] == ["invalid", "valid", "valid", "invalid"]
    assert found[2].verdict.history is given[2]
    assert "write skew" in str(found[0].verdict)
    assert found[3].verdict.certified


def test_outcomes_in_a_loop_over_files_of_which_one_cannot_be_read(tmp_path):
    """What has no verdict has the outcome error; only to ask for its verdict is one."""
    with ThreadPoolExecutor(2) as threads:
        found = list(check_many([*EXAMPLES, tmp_path / "gone"], "ser", executor=threads))
    assert sorted((one.number, one.outcome) for one in found) == [
        (0, "invalid"), (1, "valid"), (2, "error"),
    ]  # fmt: skip
    (gone,) = [one for one in found if one.error is not None]
    with pytest.raises(HistoryError, match="No such file"):
        _ = gone.verdict


@pytest.mark.slow
def test_many_are_taken_as_workers_become_free():
    """An endless iterable is no problem: results come while it is read."""

    def endless():
        number = 0
        while True:
            yield history_that_reads(1, number)
            number += 1

    with ThreadPoolExecutor(2) as threads:
        results = check_many(endless(), "ser", executor=threads)
        assert [next(results).verdict.outcome for _ in range(1000)] == ["valid"] * 1000
        results.close()


def test_what_cannot_be_judged_is_a_result(processes, tmp_path):
    """One bad file costs one result."""
    bad = tmp_path / "bad.edn"
    bad.write_text("{:type :ok", encoding="utf-8")
    found = {
        one.number: one
        for one in check_many([bad, tmp_path / "gone", EXAMPLES[1]], "ser", executor=processes)
    }
    assert found[2].verdict.outcome == "valid"
    for number in (0, 1):
        with pytest.raises(isolang.HistoryError, match=r"bad\.edn|gone"):
            _ = found[number].verdict


@pytest.mark.slow
@pytest.mark.parametrize("own", [True, False])
def test_a_worker_that_is_killed_loses_nothing(tmp_path, own):
    """Not the histories that wait, nor the one that it had."""
    given = [history_that_reads(1, i) for i in range(20)]
    given.insert(5, killer(tmp_path, 1))
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        found = list(check_many(given, "ser", executor=None if own else pool))
    assert sorted(one.number for one in found) == list(range(21))
    assert {one.verdict.outcome for one in found} == {"valid"}


@pytest.mark.slow
def test_a_history_that_kills_every_worker_is_told_apart(tmp_path):
    """It gets no verdict, the others get theirs."""
    given = [history_that_reads(1, 0), killer(tmp_path, 99), history_that_reads(2, 2)]
    found = {one.number: one for one in check_many(given, "ser")}
    assert [found[i].verdict.outcome for i in (0, 2)] == ["valid", "invalid"]
    with pytest.raises(WorkerError, match="the process that checked this history ended"):
        _ = found[1].verdict


def test_an_executor_that_fails_is_an_error_of_that_history():
    """Such as one that cannot send a history to where the workers are."""

    class Broken(Executor):
        def submit(self, *args, **kwargs):
            future = Future()
            future.set_exception(OSError("no route to host"))
            return future

    (one,) = check_many([history_that_reads(1)], "ser", executor=Broken())
    assert isinstance(one.error, WorkerError)
    assert "no route to host" in str(one.error)


@pytest.mark.parametrize("one", [EXAMPLES[0], history_that_reads(1)])
def test_one_history_is_not_several(one):
    """A path is no list of one-letter paths."""
    with pytest.raises(isolang.HistoryError, match="not a list of histories"):
        check_many(one, "ser")


def test_specifications_are_loaded_before_any_history():
    """A misspelt level is an error at the call, not at each history."""
    with pytest.raises(isolang.SpecError):
        check_many([], "no-such-level")


@pytest.fixture(scope="module")
def dask():
    """A cluster of two worker processes on this machine."""
    distributed = pytest.importorskip("distributed", reason="dask's distributed is not installed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.campaign
@pytest.mark.slow
def test_thousands_of_histories_over_dask(dask):
    """Every one is judged, while a worker is ended midway."""
    given = (history_that_reads(1 + i % 2, i) for i in range(2_000))
    found = {}
    for one in check_many(given, "ser", executor=dask.get_executor()):
        found[one.number] = one.verdict.outcome
        if len(found) == 500:
            os.kill(min(dask.run(os.getpid).values()), signal.SIGKILL)
    assert sorted(found) == list(range(2_000))
    assert all(found[i] == ("invalid" if i % 2 else "valid") for i in found)


@pytest.mark.slow
def test_verdicts_and_histories_travel():
    """Pickled and copied ones say the same, and so do their proofs."""
    history = isolang.load_history(EXAMPLES[0])
    for spec in ("ser", "si"):
        verdict = isolang.check(history, spec)
        for other in (pickle.loads(pickle.dumps(verdict)), copy.deepcopy(verdict)):
            assert str(other) == str(verdict)
            verify(other.certificate(), history, isolang.load_spec(spec))
            verify(verdict.certificate(), other.history, isolang.load_spec(spec))


class Losing(ThreadPoolExecutor):
    """Loses what it is given together with one history, as dask does with what ends its workers."""

    def __init__(self, culprit):
        super().__init__(1)
        self.culprit = culprit
        self.sizes = []

    def submit(self, judge, task, histories):
        self.sizes.append(len(histories))
        if not any(one is self.culprit for one in histories):
            return super().submit(judge, task, histories)
        lost = Future()
        lost.set_exception(RuntimeError("the worker is gone"))
        return lost


@pytest.mark.slow
def test_what_is_handed_over_together_is_lost_alone():
    """Quick histories travel together; of those lost, only the one to blame has no verdict."""
    given = [history_that_reads(1, number) for number in range(600)]
    with Losing(given[500]) as executor:
        found = {one.number: one for one in check_many(given, "ser", executor=executor)}
        assert max(executor.sizes) > 1
    assert [number for number, one in sorted(found.items()) if one.error] == [500]
    assert "the executor failed (RuntimeError: the worker is gone)" in str(found[500].error)
    assert len(found) == 600

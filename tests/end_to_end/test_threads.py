"""Several threads on one history: the same answers, proofs and counts as one."""

import os
import time

import numpy as np
import pytest
from support.cli import run_here
from support.sampling import quick_first

from isolang import _native
from isolang.api import check
from isolang.certify.native import check_natively
from isolang.language.classify.route import native_plan
from isolang.language.load import load_spec
from isolang.machine import cpu_quota, processors
from isolang.options import Options
from isolang.problem import build_problem
from isolang.simulator import Workload, change_reads, generate
from isolang.solvers.engine import solve

BASE = {"sessions": 20, "transactions": 1500, "keys": 150, "seed": 5}
WORKLOADS = {
    "values differ": {},
    "values repeat": {"values": 20},
    "some unknown": {"values": 40, "info_rate": 0.05},
    "snapshots": {"values": 30, "rule": "snapshot"},
    "write skew": {"rule": "snapshot", "bugs": ("write skew",)},
    "long forks": {"values": 50, "bugs": ("long fork", "lost update")},
}


@pytest.fixture(scope="module")
def histories():
    made = {name: generate(Workload(**(BASE | more))) for name, more in WORKLOADS.items()}
    return made | {
        f"changed reads, {name}": change_reads(made[name], 3, seed=1)
        for name in ("values differ", "values repeat", "snapshots")
    }


def answered(history, plan, **how):
    """All that the engine says but for its times."""
    answer = solve(history.columns, build_problem(history).native, plan.automata, **how)
    counts = {k: v for k, v in answer.statistics.items() if not k.startswith("seconds")}
    if answer.outcome == "valid":
        arrays = (answer.result.source, answer.result.order_start, answer.result.order_txn)
        return answer, ("model", [a.tolist() for a in arrays], counts)
    return answer, ("refutation", answer.result.plain(), counts)


@pytest.mark.slow
@pytest.mark.parametrize("level", ["ser", "si", "psi", "pc", "ra", "cc-vis", "cc-adya"])
def test_threads_change_nothing(histories, level):
    spec = load_spec(level)
    plan = native_plan(spec)
    kinds = set()
    for name, history in histories.items():
        answer, one = answered(history, plan, threads=1)
        kinds.add(one[0])
        check_natively(history, spec, answer.result)
        for threads in (2, 3, 8):
            assert answered(history, plan, threads=threads)[1] == one, (name, threads)
    if level in ("ser", "si"):
        assert kinds == {"model", "refutation"}


def test_a_contradiction_in_one_part_needs_no_search(histories):
    """Reads that have no source left, which pruning finds before it has seen all keys."""
    plan = native_plan(load_spec("ser"))
    for seed in range(3):
        history = change_reads(histories["values repeat"], 3, seed=seed)
        for threads in (1, 4):
            _, (kind, _, counts) = answered(history, plan, threads=threads)
            assert kind == "refutation"
            assert "decisions" not in counts
            assert counts["edges_after_pruning"] < 6500  # all keys: 6,736 and more


#: Histories of the hard region, by what decides them; the first one soon.
HARD = {
    "states": ("ser", 1, Workload(transactions=120, sessions=10, keys=8, values=2, operations=4,
                                     read_share=0.6, read_modify_write=0.5, seed=1)),
    "anneal": ("ser", 0, Workload(transactions=300, sessions=20, keys=20, values=3, operations=4,
                                  seed=1)),
    "cdcl": ("si", 2, Workload(transactions=200, sessions=30, keys=20, values=4, operations=4,
                               read_share=0.6, seed=1)),
}  # fmt: skip
SANITIZED = "ISOLANG_SANITIZED" in os.environ


@pytest.mark.slow
@pytest.mark.parametrize("by", quick_first(HARD, rest="campaign"))
def test_side_by_side_the_first_in_turn_counts(by):
    """Three searches at once: what counts, and all counts, are those of taking turns."""
    level, changes, workload = HARD[by]
    history = generate(workload)
    if changes:
        history = change_reads(history, changes, seed=workload.seed)
    spec = load_spec(level)
    answer, one = answered(history, native_plan(spec), threads=1)
    assert answer.statistics["decided_by"] == ("cdcl", "anneal", "states").index(by)
    assert answer.statistics["annealing_moves"] > 1_000_000
    check_natively(history, spec, answer.result)
    for threads in (3,) if SANITIZED else (2, 3):
        assert answered(history, native_plan(spec), threads=threads)[1] == one, threads


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 3])
def test_side_by_side_they_are_interrupted_and_end_in_time(threads):
    history = generate(Workload(sessions=50, transactions=1500, keys=20, values=2, operations=4))
    problem = build_problem(history).native
    plan = native_plan(load_spec("ser"))
    asked = []

    def progress(phase):
        asked.append(phase)
        if len(asked) == 20:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        solve(
            history.columns, problem, plan.automata, threads=threads, progress=progress, seconds=10
        )
    start = time.perf_counter()
    with pytest.raises(_native.OutOfTime):
        solve(history.columns, problem, plan.automata, threads=threads, seconds=1.0)
    assert time.perf_counter() - start < 30  # it does not go on


def test_a_timeout_ends_all_threads(histories):
    plan = native_plan(load_spec("si"))
    history = histories["values repeat"]
    problem = build_problem(history).native
    for seconds in np.geomspace(1e-4, 1e-1, 25):
        try:
            answer = solve(
                history.columns, problem, plan.automata, seconds=float(seconds), threads=3
            )
        except _native.OutOfTime:
            continue
        assert answer.outcome == "valid"


def test_an_interrupt_ends_all_threads():
    """What the calling thread meets reaches the caller, and the others do not go on for it."""
    history = generate(Workload(sessions=100, transactions=30_000, keys=3000, values=50, seed=2))
    problem = build_problem(history).native
    phases = []

    def progress(phase):
        phases.append(phase)
        if phase == "pruning":
            raise RuntimeError(phase)

    plan = native_plan(load_spec("si"))
    with pytest.raises(RuntimeError, match="pruning"):
        solve(history.columns, problem, plan.automata, threads=4, progress=progress)
    assert phases[-1] == "pruning"


def test_how_many_threads():
    assert 1 <= processors() <= 8
    assert Options().thread_count() == processors()
    assert Options(threads=3).thread_count() == 3
    assert Options(threads=64, memory=250).thread_count() == 2
    assert Options(threads=4, memory=20).thread_count() == 1
    with pytest.raises(ValueError, match=r"threads must be at least 1 \(got 0\)"):
        check(generate(Workload()), "ser", threads=0)
    history = generate(Workload())
    with pytest.raises(ValueError, match=r"threads \(got 0, expected at least 1\)"):
        answered(history, native_plan(load_spec("ser")), threads=0)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, None),
        ({"proc/self/cgroup": "0::/\n"}, None),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n"}, None),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "150000 100000\n"}, 1.5),
        (
            {
                "proc/self/cgroup": "0::/a/b\n",
                "sys/fs/cgroup/a/b/cpu.max": "max 100000\n",
                "sys/fs/cgroup/a/cpu.max": "400000 100000\n",
                "sys/fs/cgroup/cpu.max": "800000 100000\n",
            },
            4,
        ),
        (
            {
                "proc/self/cgroup": "5:memory:/m\n4:cpu,cpuacct:/not/here\n",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "50000\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            0.5,
        ),
        (
            {
                "proc/self/cgroup": "4:cpu:/\n",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            None,
        ),
        ({"proc/self/cgroup": "nonsense", "sys/fs/cgroup/cpu.max": "some\n"}, None),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "some thing\n"}, None),
    ],
)
def test_the_quota_of_a_container(tmp_path, files, expected):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert cpu_quota(tmp_path) == expected


def test_a_quota_counts_as_processors(monkeypatch):
    for quota, most in ((None, 8), (0.2, 1), (1.5, 2), (1.0, 1)):
        monkeypatch.setattr("isolang.machine.cpu_quota", lambda quota=quota: quota)
        assert processors() == min(len(os.sched_getaffinity(0)), most)


def test_on_the_command_line(tmp_path, capfd):
    file = tmp_path / "history.edn"
    assert (
        run_here(capfd, "generate", str(file), "--transactions", "900", "--values", "9").code == 0
    )
    told = [
        run_here(capfd, "--spec", "ser", "-o", "json", "--threads", str(n), str(file))
        for n in (1, 2, 8)
    ]
    assert [t.code for t in told] == [0, 0, 0]
    reports = [t.reports()[0] for t in told]
    for report in reports:
        del report["seconds"]
        counts = report["statistics"].items()
        report["statistics"] = {k: v for k, v in counts if not k.startswith("seconds")}
    assert reports[0] == reports[1] == reports[2]
    refused = run_here(capfd, "--spec", "ser", "--threads", "0", str(file))
    assert refused.code == 2
    assert "--threads must be at least 1 (got 0)" in refused.err

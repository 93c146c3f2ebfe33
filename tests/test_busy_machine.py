"""What is answered unasked does not depend on how busy the machine is.

Each answer is computed twice, the second time by clocks that run so fast that every limit in
seconds is over at once. Only what took how long may differ.
"""

from __future__ import annotations

import itertools
import time

import pytest
from oracle.generate import litmus_table
from oracle.history import parse, with_wide_times
from oracle.pipeline import to_tool

from isolang.api import check
from isolang.history.writers import write_history
from isolang.jobs.job import Job, run_job
from isolang.language.classify.route import route
from isolang.language.load import load_spec
from isolang.limits import Work
from isolang.options import OutputOptions
from isolang.pipeline.crosscheck import cross_check, partners
from isolang.pipeline.findings import findings_of
from isolang.pipeline.levels import levels_of
from isolang.run.judge.judge import judge_run
from isolang.run.play.player import play
from isolang.run.settings import Settings
from isolang.run.survey.survey import count_anomalies
from isolang.run.targets import target_named
from isolang.simulator.generate import generate
from isolang.simulator.workload import Workload
from isolang.solvers.registry import ENGINE

LONG_FORK = next(r["operations"] for r in litmus_table() if r["history"] == "long-fork")


def planted():
    """A history with several anomalies, in which most levels have to be searched for."""
    bugs = ("fractured read", "long fork", "write skew", "lost update")
    return generate(Workload(transactions=300, keys=60, rule="snapshot", bugs=bugs, seed=3))


@pytest.fixture
def twice(monkeypatch):
    """An answer by the clock, and by one of which each look takes five minutes."""

    def answers(find):
        by_the_clock = find()
        with monkeypatch.context() as busy:
            ticks = itertools.count(1)
            for name in ("perf_counter", "monotonic"):
                busy.setattr(time, name, lambda: 300.0 * next(ticks))
            return by_the_clock, find()

    return answers


def standings(found):
    return {name: (one.standing, one.reason) for name, one in found.levels.items()}


@pytest.mark.parametrize("work", [None, 10_000, 1_000_000, 100_000_000])
def test_levels(twice, work):
    """Also where the work ends the search for some."""
    history = planted()
    first, second = twice(
        lambda: standings(levels_of(history, work=None if work is None else Work(work)))
    )
    assert first == second
    assert any(standing == "unknown" for standing, _ in first.values()) == (work == 10_000)


def test_findings(twice):
    """Every kind, its count, and the level that it is told by."""
    history = planted()
    first, second = twice(lambda: findings_of(history))
    assert first == second
    assert len(first.anomalies) > 2
    assert first.not_finished == ""


def test_counts_of_a_survey(twice):
    """As many anomalies of each name, and whether these are all."""
    history = planted()
    first, second = twice(lambda: count_anomalies(history))
    assert first == second
    assert first[1]
    assert sum(first[0].values()) > 3
    assert count_anomalies(history, work=100_000)[1] is False


@pytest.mark.slow
def test_the_levels_that_a_run_held(twice, tmp_path):
    """What ``isocheck run`` prints last."""
    settings = Settings(
        target="memory", workload="mini", seconds=20.0, transactions=300, folder=str(tmp_path)
    )
    recorded = play(settings)
    target = target_named("memory")
    first, second = twice(lambda: judge_run(recorded, target))
    assert (first.strongest, first.all_levels) == (second.strongest, True)
    assert second.all_levels


def test_what_check_says_beside_the_verdict(twice, tmp_path):
    """The standing between the levels, and every kind of anomaly."""
    path = tmp_path / "h.edn"
    write_history(to_tool(with_wide_times(parse(LONG_FORK))), str(path), format="edn")
    specs = (("ser", route(load_spec("ser"))),)

    def reports():
        made = []
        for more in ({"standing": True}, {"output": OutputOptions(all_anomalies=True)}):
            job = Job(history=str(path), specs=specs, **more)
            run_job(job, made.append, lambda phase: None)
        return [(one.violation, one.standing, one.findings) for one in made]

    first, second = twice(reports)
    assert first == second
    assert first[0][1].strongest
    assert first[1][2].anomalies


@pytest.mark.slow
def test_a_hard_history_ends(twice):
    """Few values, so that sources are open: what is not decided with the work is unknown."""
    history = generate(
        Workload(transactions=400, sessions=12, keys=6, values=2, rule="serializable", seed=1)
    )
    first, second = twice(lambda: standings(levels_of(history, work=Work(2_000_000))))
    assert first == second


@pytest.mark.parametrize("which", ["auto", "all"])
def test_other_pairs(twice, which):
    """What each says, and how far it is certified; some do not decide this with their work."""
    history = generate(
        Workload(transactions=60, sessions=6, keys=3, values=2, rule="serializable", seed=1)
    )
    way = route(load_spec("ser"))
    others = [pair for pair in partners(ENGINE, which, way) if pair.solver != "pysmt"]

    def claims():
        found = cross_check(history, way, ENGINE, others[:8], work=300_000)
        return [(one.pair, one.outcome, one.detail) for one in found.claims]

    first, second = twice(claims)
    assert first == second
    assert first[0][1:] == ("valid", "witness accepted")
    if which == "all":
        assert ("unknown", "not decided within its work") in {one[1:] for one in first}


def test_an_unsat_core(twice):
    """The same transactions are left, and the same checks."""
    history = to_tool(with_wide_times(parse(LONG_FORK)))
    spec = 'include "adya.iso"\nempty (wr ; ww) & id as A\nacyclic so | wr | ww | rw as SER\n'

    def core():
        verdict = check(history, load_spec(spec), solver="clingo")
        return verdict.violation, verdict.refutation

    first, second = twice(core)
    assert first == second


def test_a_share_of_work():
    """What a part has not done is left to the others, and what fails has done all of its part."""
    work = Work(100)
    with work.part(1 / 4) as part:
        assert part.take() == 25
        part.give_back(5)
    assert work.left == 80
    with work.part(1 / 2) as part:
        part.take()
        with pytest.raises(TimeoutError):
            part.take()
    assert work.left == 40

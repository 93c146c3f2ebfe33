"""What a verdict and its explanation say about levels needs no second search."""

from __future__ import annotations

import random

import pytest
from support.watching import random_history

from isolang import _native, check, load_history, load_spec
from isolang.certify.proofs import Refutation
from isolang.certify.steps import step_of_engine
from isolang.jobs import job
from isolang.jobs.routes import load_routes
from isolang.language.classify.route import route, without_real_time
from isolang.language.library import level_of
from isolang.options import Options, OutputOptions, ReadOptions
from isolang.pipeline.levels import levels_of


def checks(plan):
    """Return the checks of a plan, without ``init``, which a session order contains."""
    return [
        (
            automaton.states,
            automaton.back,
            {r: s for r, s in automaton.steps.items() if r != "init"},
        )
        for automaton in plan.automata
    ]


@pytest.mark.parametrize(("level", "without"), job._WITHOUT_REAL_TIME.items())
def test_a_level_without_real_time(level, without):
    """The explanation judges the checks of the other level."""
    relaxed, other = without_real_time(route(load_spec(level))), route(load_spec(without))
    assert checks(relaxed) == checks(other)


def test_an_alias_names_a_level():
    assert level_of("library:linearizable.iso") == "sser"
    assert level_of("library:ser.iso") == "ser"
    assert level_of("my.iso") == ""


def log(rng):
    """Return a log of reads and writes of a register, in a random order of overlapping calls."""
    lines = []
    calls = [(n % 5, "read" if rng.random() < 0.6 else "write", n + 1) for n in range(40)]
    pending, written = {}, [0]
    for process, call, number in calls:
        if process in pending:
            name, given = pending.pop(process)
            result = rng.choice(written[-3:]) if name == "read" else given
            lines.append(f"INFO  jepsen.util - {process}\t:ok\t:{name}\t{result or 'nil'}")
        if call == "write":
            written.append(number)
        shown = "nil" if call == "read" else number
        lines.append(f"INFO  jepsen.util - {process}\t:invoke\t:{call}\t{shown}")
        pending[process] = call, number
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("spec", ["linearizable", "ser"])
def test_the_levels_are_those_of_a_whole_search(spec, tmp_path, monkeypatch):
    """Levels that the verdict and its explanation name are not judged again, and are the same."""
    rng, judged, known = random.Random(spec), set(), []
    of_report = job._known
    monkeypatch.setattr(job, "_known", lambda *given: known.append(of_report(*given)) or known[-1])
    for number in range(6):
        file = tmp_path / f"{number}.log"
        file.write_text(log(rng))
        reports = []
        of_log = job.Job(
            history=str(file), specs=load_routes([spec], [], Options()), reading=ReadOptions(),
            options=Options(), parallel=1, output=OutputOptions(), standing=True,
        )  # fmt: skip
        job.run_job(of_log, reports.append, lambda phase: None)
        (report,) = reports
        whole = levels_of(load_history(file), Options())
        standing = (report.standing.strongest, report.standing.weakest_violated)
        assert standing == (whole.strongest(), whole.weakest_violated())
        judged |= {len(known[-1])}
        for name, result in known[-1].items():
            assert whole.levels[name].standing == result
    assert max(judged) > 1  # some explanation says more than the verdict


def test_steps_of_the_engine_are_parsed_alike(monkeypatch):
    """They skip the tests of untrusted steps, and are the same records."""
    raw, solve = [], _native.solve

    def keep(*given):
        result = solve(*given)
        raw.extend(result.get("refutation", []))
        return result

    monkeypatch.setattr(_native, "solve", keep)
    rng, kinds = random.Random(3), set()
    for _ in range(6):
        check(random_history(rng), load_spec("ser"))
    for step in raw:
        kinds.add(step[0])
        named = ("cycle", "SER", step[2]) if step[0] == "cycle" else step
        (parsed,) = Refutation.of([named]).steps
        assert step_of_engine(step, "SER") == parsed
    assert {"cycle", "choice", "rup"} <= kinds

"""Generated histories: their truth by construction against the oracle and the tool, and what options mean."""

import numpy as np
import pytest
from oracle import semantics
from oracle.history import from_columns, has_time
from oracle.levels import LEVELS as CHECKS
from oracle.levels import SLOWER

from isolang.api import check, load_spec
from isolang.errors import HistoryError
from isolang.history import columns as c
from isolang.workload import BUGS, LEVELS, RULES, Workload, change_reads, generate
from isolang.workload.truth import IMPLIES, implied

ORACLE = {level: {**CHECKS, **SLOWER}[level] for level in LEVELS if level in {**CHECKS, **SLOWER}}


def small(seed, rule, bugs=(), **options):
    """A history that the oracle can decide: six transactions of two operations."""
    values = (0, 1, 2)[seed % 3]
    given = {"sessions": 4, "transactions": 6, "operations": 2, "keys": 2, "values": values}
    return generate(Workload(rule=rule, bugs=bugs, seed=seed, **(given | options)))


def wrong(history):
    """The levels of whose verdict the truth and the oracle think differently."""
    plain = from_columns(history.columns)
    assert has_time(plain)
    try:
        found = semantics.satisfied(plain, list(ORACLE.values()), limit=20_000)
    except semantics.TooLargeError:
        return None
    known = {level: history.truth.verdict(level) for level in ORACLE}
    return [
        (level, known[level], holds)
        for level, holds in zip(ORACLE, found, strict=True)
        if known[level] is not None and known[level] != holds
    ]


@pytest.mark.parametrize("rule", RULES)
def test_rules_against_the_oracle(rule):
    """What satisfies a level by construction satisfies it by brute force."""
    judged = 0
    for seed in range(40):
        odd = {"info_rate": 0.2, "abort_rate": 0.2} if seed % 2 else {}
        found = wrong(small(seed, rule, **odd))
        judged += found is not None
        assert not found, seed
    assert judged >= 20


@pytest.mark.parametrize("bug", BUGS)
def test_bugs_against_the_oracle(bug):
    """A planted anomaly violates its levels and leaves the weaker ones, under every rule."""
    judged = 0
    for rule in RULES:
        for seed in range(4):
            found = wrong(small(seed, rule, (bug,), transactions=3))
            judged += found is not None
            assert not found, (rule, seed)
    assert judged >= 16


@pytest.mark.parametrize("rule", [r for r in RULES if RULES[r].reads != "replica"])
def test_lists_against_the_oracle(rule):
    """List reads are prefixes of one order, under every rule that has lists."""
    bugs = [(), *((bug,) for bug in BUGS)]
    for seed in range(18):
        history = small(seed, rule, bugs[seed % len(bugs)], lists=True, transactions=4)
        assert not wrong(history), seed


@pytest.mark.parametrize("rule", RULES)
def test_larger_histories_against_the_tool(rule):
    """The same truth for histories that no brute force decides."""
    levels = [level for level in LEVELS if level in CHECKS]
    for seed, bugs in enumerate([(), *((bug,) for bug in BUGS)]):
        history = generate(
            Workload(
                rule=rule,
                bugs=bugs,
                sessions=5,
                transactions=60,
                operations=5,
                keys=12,
                values=(0, 4)[seed % 2],
                info_rate=0.05,
                abort_rate=0.05,
                seed=seed,
            )
        )
        for level in levels:
            known = history.truth.verdict(level)
            if known is not None:
                verdict = check(history, load_spec(level))
                assert (verdict.outcome == "valid") is known, (level, bugs)
                assert verdict.certified

"""Small applications whose harm a person knows, and right ones."""

import sys
from collections import Counter
from functools import partial

import psycopg
import pytest
from harm.applications import APPLICATIONS, VARIANTS
from harm.courtroom import Courtroom
from support.paths import ROOT

from isolang.harm.outcome import Effects
from isolang.testing.isolation import Isolation

sys.path.append(str(ROOT / "benchmarks" / "applications"))

import idioms

pytestmark = pytest.mark.slow

RIGHT_IDIOMS = ("booking", "coupon", "oncall", "wallet")  # whose right variants are below
"""The applications whose right variants are idioms of the second test."""


@pytest.mark.parametrize("name", APPLICATIONS)
def test_harm_is_what_a_person_says(embedded, name):
    """A race is harmful if no serial order gives its outcome, and harmless otherwise."""
    for variant in VARIANTS:
        if variant == "right" and name in RIGHT_IDIOMS:
            continue
        effects = Effects()
        setup, calls = APPLICATIONS[name](variant, effects)
        court = Courtroom(embedded, setup, effects)
        harm = court.harm(calls)
        court.close()
        expected = "harmful" if variant == "harmful" else "harmless"
        assert harm.kind == expected, (variant, harm.headline(), harm.details())


PREDICTED = {"unique_index", "serializable", "version"}
"""The idioms that would be races without a retry."""


def test_right_idioms_are_not_proved(embedded, tmp_path):
    """Each protects its calls; only one of them needs a level above READ COMMITTED.

    What is predicted is played while there is enough for both calls of an idiom. Then its calls run
    at once, and there is only enough for one of them.
    """
    url = f"postgresql://postgres@/postgres?host={embedded}"

    def connect():
        return psycopg.connect(url)

    def call(idiom, who):
        try:
            return getattr(idioms, idiom)(connect, who)
        except idioms.RefusedError as refusal:
            return str(refusal)

    calls = [(idiom.__name__, who) for idiom, pair in idioms.IDIOMS.items() for who in pair]
    isolation = Isolation(tmp_path / "predicted")
    isolation.setup(partial(idioms.setup, connect, there_is=2))
    isolation.watch_psycopg(url)
    assert {isolation.call(call, *names) for names in calls} == {None, 2, 3}
    foreseen = isolation.foresee("read committed", against="ser")
    isolation.close()
    assert {played.calls[0].args[0] for played in foreseen.played} == PREDICTED
    assert [played.calls[0].args[0] for played in foreseen.confirmed] == ["serializable"]

    isolation = Isolation(tmp_path / "at-once")
    isolation.setup(partial(idioms.setup, connect))
    isolation.watch_psycopg(url)
    isolation.proxies[0].pause_after_answers(lambda: 0.01)
    answers = Counter()

    def make(idiom, who):
        answers[idiom, isolation.call(call, idiom, who)] += 1

    isolation.concurrently(*[partial(make, *names) for names in calls], times=1)
    isolation.assert_level("ser")
    isolation.close()
    assert {*answers.values()} == {1}  # the two calls of an idiom have different answers

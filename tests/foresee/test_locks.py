"""Locks and updates that change nothing, in all interleavings of a write skew on PostgreSQL."""

from __future__ import annotations

import importlib.util

import pytest
from support.paths import ROOT
from support.servers import start_target

from isolang.foresee.decide import mends
from isolang.foresee.templates import templates
from isolang.programs.syntax import parse_templates

SKEW = """
program P() r(sav) r(chk) w(sav, 1)
program Q() r(sav) r(chk) w(chk, 1)
"""


@pytest.fixture(scope="module")
def player():
    """What plays the interleavings of the benchmark."""
    pytest.importorskip("psycopg")
    place = ROOT / "benchmarks/locks.py"
    spec = importlib.util.spec_from_file_location("locks", place)
    locks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(locks)
    target = start_target("postgres")
    try:
        url = f"postgresql://postgres@/postgres?host={target.server.folder}"
        yield locks.Player(url, "repeatable read")
    finally:
        target.close()


@pytest.mark.slow
@pytest.mark.server
def test_the_mends_are_those_that_help(player):
    """An identity update of what the other one writes suffices; a lock of it in one does not."""
    found = templates(parse_templates(SKEW))
    every = mends(found, dict.fromkeys(found.programs, "si"))
    assert [[(one.program, one.update) for one in some] for some in every] == [
        [("P", "u(chk)")],
        [("Q", "u(sav)")],
    ]
    wrong = {
        variant: player.measure("skew", variant)[2]
        for variant in ("P.chk=", "P.chk!", "P.chk! Q.sav!")
    }
    assert wrong["P.chk="] == wrong["P.chk! Q.sav!"] == 0
    assert wrong["P.chk!"] > 0

"""The harm of random programs agrees with an independent enumeration of their serial orders."""

import os

import pytest
from harm.courtroom import Courtroom
from harm.random_programs import SETUP, trials

pytestmark = pytest.mark.slow
MANY = int(os.environ.get("HARM_TRIALS", "12"))
SEED = int(os.environ.get("HARM_SEED", "1"))


def test_harm_agrees_with_the_enumeration(embedded):
    """Harmless is what a serial order explains, and harmful what none explains."""
    court = Courtroom(embedded, SETUP)
    kinds = {}
    for trial in trials(court, SEED, MANY):
        harm, is_explained = trial.harm(), trial.is_explained()
        agrees = (
            harm.kind == "harmless" if is_explained else harm.kind in ("harmful", "answers differ")
        )
        kinds[harm.kind] = kinds.get(harm.kind, 0) + 1
        assert agrees, (harm.headline(), harm.details(), trial.programs, trial.answers,
                        trial.outcome.rows, is_explained)  # fmt: skip
    court.close()
    print(kinds)
    assert kinds["harmful"]
    assert kinds["harmless"]

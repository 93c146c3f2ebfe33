"""Small applications whose harm a person knows."""

import pytest
from harm.applications import APPLICATIONS, VARIANTS
from harm.courtroom import Courtroom

from isolang.harm.outcome import Effects

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", APPLICATIONS)
def test_harm_is_what_a_person_says(embedded, name):
    """A race is harmful if no serial order gives its outcome, and harmless otherwise."""
    for variant in VARIANTS:
        effects = Effects()
        setup, calls = APPLICATIONS[name](variant, effects)
        court = Courtroom(embedded, setup, effects)
        harm = court.harm(calls)
        court.close()
        expected = "harmful" if variant == "harmful" else "harmless"
        assert harm.kind == expected, (variant, harm.headline(), harm.details())

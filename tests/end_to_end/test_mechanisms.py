"""Each mechanism of the profiles finds what happens where a database lacks it, and nothing else."""

import sys

import pytest
from support.paths import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))

from operation_times import PROFILES, blindw_rw_plus, play, smallbank

from isolang.api import check

SIZES = {"transactions": 150, "sessions": 12, "keys": 30}
#: What a store of each kind of snapshots may lack, and what finds it.
FOUND = [
    ("statement", "stale", "consistent-read-by-statement"),
    ("statement", "dirty", "consistent-read-by-statement"),
    ("statement", "unlocked", "mutual-exclusion"),
    ("transaction", "stale", "consistent-read"),
    ("transaction", "dirty", "consistent-read"),
    ("transaction", "unchecked", "first-updater-wins"),
    ("transaction", "unlocked", "mutual-exclusion"),
]


@pytest.mark.parametrize("shape", [blindw_rw_plus, smallbank])
@pytest.mark.parametrize("snapshots", PROFILES)
def test_a_store_that_has_them_satisfies_its_profiles(shape, snapshots):
    history = play(shape, snapshots, **SIZES)
    found = {profile: check(history, profile) for profile in PROFILES[snapshots]}
    assert {p: (v.outcome, v.certified) for p, v in found.items()} == dict.fromkeys(
        found, ("valid", True)
    )


@pytest.mark.parametrize(("snapshots", "fault", "mechanism"), FOUND)
def test_a_store_that_lacks_one_is_found_by_it(snapshots, fault, mechanism):
    history = play(blindw_rw_plus, snapshots, fault=fault, **SIZES)
    verdict = check(history, mechanism)
    assert (verdict.outcome, verdict.certified) == ("invalid", True)

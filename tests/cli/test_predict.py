"""``isocheck predict``, as users see it."""

from __future__ import annotations

import json

import jsonschema
import pytest
from support.cli import run_here
from support.paths import ROOT

SKEW = """\
{:type :ok, :process 0, :value [[:r "x" nil] [:r "y" nil] [:w "y" 1]], :label "withdraw"}
{:type :ok, :process 1, :value [[:r "x" nil] [:r "y" 1] [:w "x" 1]], :label "deposit"}
"""
COUNTER = """\
{:type :ok, :process 0, :value [[:r "x" nil] [:w "x" 1]]}
{:type :ok, :process 1, :value [[:r "x" 1] [:w "x" 2]]}
{:type :ok, :process 2, :value [[:r "x" 2]]}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "skew.edn").write_text(SKEW)
    (tmp_path / "counter.edn").write_text(COUNTER)
    return tmp_path


def test_a_prediction_names_programs_reads_and_the_assumption(folder, capfd):
    """The text says who overlooks whom, which read changes, and that nothing was played."""
    run = run_here(capfd, "predict", "skew.edn", "--at", "si")
    assert run.code == 1
    assert (
        run.out
        == """\
skew.edn: 2 transactions, which satisfy ser as they ran. At si they could have run otherwise:

1  write skew, by one stranger (once in this run)
     T2  deposit   overlooks T1
           r(y, 1) read the version of T1, and could read the initial version
     T1  withdraw
     si: valid, ser: invalid; both certified on all 2 transactions of the predicted history
     assumed: T2 executes the same statements after its first changed read

  Nothing was played yet. Only a database that shows the predicted history confirms it.
"""
    )


def test_nothing_found_is_not_called_safe(folder, capfd):
    """At SI, two increments of one key cannot both commit."""
    run = run_here(capfd, "predict", "counter.edn", "--at", "si")
    assert run.code == 0
    assert "the search found nothing. This does not prove safety" in run.out
    assert "`isocheck court` plays two calls" in run.out
    assert "`isocheck robust` decides for all runs" in run.out


def test_other_levels_are_searched_in_cores(folder, capfd):
    """The report says what the search was restricted to, and that is no reason for exit code 3."""
    run = run_here(capfd, "predict", "counter.edn", "--at", "psi", "--against", "si")
    assert run.code == 0
    assert "only these transactions, in cores of up to 4 transactions, by the two" in run.out
    run = run_here(capfd, "predict", "counter.edn", "--at", "psi", "--against", "si", "--work", "1")
    assert run.code == 3
    assert (
        "gave up: one stranger: the search did not try every core of up to 4 transactions"
    ) in run.out


def test_a_search_that_gave_up_says_where(folder, capfd):
    """The exit code is 3 if nothing was found in a search that was not complete."""
    run = run_here(capfd, "predict", "counter.edn", "--at", "si", "--work", "1")
    assert run.code == 3
    assert "gave up: same statements: the search did not try every order of transactions" in run.out


def test_json_follows_its_schema(folder, capfd):
    """The report has the predicted history, and never calls it confirmed."""
    run = run_here(capfd, "predict", "skew.edn", "--at", "si", "-o", "json")
    found = json.loads(run.out)
    schema = json.loads((ROOT / "docs/schema/predict.json").read_text())
    jsonschema.validate(found, schema, cls=jsonschema.Draft202012Validator)
    (one,) = found["predictions"]
    assert (found["outcome"], one["certified"], one["confirmed"]) == ("found", True, False)
    assert one["programs"] == ["deposit", "withdraw", "withdraw"]
    assert '[:w "y" "1 of T1"]' in one["history"]


def test_saved_certificates_are_verified_again(folder, capfd):
    """Both checkers accept what ``--save`` wrote, about the history beside it."""
    run_here(capfd, "predict", "skew.edn", "--at", "si", "--save", "out")
    for side, outcome in (("at", "valid"), ("against", "invalid")):
        certificate = f"out/prediction-1.{side}.certificate.json"
        run = run_here(capfd, "verify", certificate, "out/prediction-1.edn")
        assert run.code == 0
        assert outcome in run.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["skew.edn", "--at", "strong-si"], "strong-SI: the level compares times"),
        (
            ["skew.edn", "--at", "pl-2l"],
            "no search for PL-2L against SER: they compare `statement`",
        ),
        (["skew.edn", "--at", "nowhere"], "nowhere"),
        (["missing.edn", "--at", "si"], "missing.edn"),
        (["skew.edn", "--at", "si", "--most", "0"], "--most"),
    ],
)
def test_mistakes_are_named(folder, capfd, arguments, message):
    """No traceback reaches a user, and no wrong usage looks like a verdict."""
    run = run_here(capfd, "predict", *arguments)
    assert run.code in (2, 3)
    assert message in run.err
    assert not run.out

"""What a compare-and-set that failed says of a register, and verdicts that rest on it."""

import json

import pytest
from support.cli import run_here

import isolang

#: As MongoDB's clients log: no answer but that it failed, though 1 was there before and after.
FAILED = """{:process 0, :type :invoke, :f :write, :value 1}
{:process 0, :type :ok, :f :write, :value 1}
{:process 1, :type :invoke, :f :cas, :value [1 2]}
{:process 1, :type :fail, :f :cas, :value [1 2]}
{:process 2, :type :invoke, :f :read, :value nil}
{:process 2, :type :ok, :f :read, :value 1}
"""
NAMED = FAILED.replace(":fail, ", ":fail, :error :did-not-match, ")
STALE = """{:process 0, :type :invoke, :f :write, :value 3}
{:process 0, :type :ok, :f :write, :value 3}
{:process 1, :type :invoke, :f :cas, :value [4 2]}
{:process 1, :type :fail, :f :cas, :value [4 2]}
{:process 2, :type :invoke, :f :read, :value nil}
{:process 2, :type :ok, :f :read, :value nil}
"""
PROVIDED = "provided that the comparison that failed (T2) did run and saw another value: "


def judged(tmp_path, text, **options):
    path = tmp_path / "mongodb.edn"
    path.write_text(text)
    verdict = isolang.check(isolang.load_history(path, **options), "linearizable")
    assert verdict.certified
    return verdict


@pytest.mark.parametrize(
    ("text", "taken", "outcome"),
    [
        (FAILED, "auto", "valid"),
        (FAILED, "nothing", "valid"),
        (FAILED, "compared", "invalid"),
        (NAMED, "auto", "invalid"),
        (NAMED, "nothing", "valid"),
    ],
)
def test_a_good_history(tmp_path, text, taken, outcome):
    """In Jepsen :fail means that the operation did not happen, unless its :error says more."""
    verdict = judged(tmp_path, text, failed_cas=taken)
    assert verdict.outcome == outcome
    if outcome == "invalid":
        assert verdict.violation.failed_comparisons == ("T2",)


def test_a_lock_that_was_not_taken(tmp_path):
    """Nobody holds the lock, and yet it is not acquired: only a comparison would have to be."""
    text = "{:process 0, :type :invoke, :f :acquire}\n{:process 0, :type :fail, :f :acquire}\n"
    assert judged(tmp_path, text).outcome == "valid"
    assert judged(tmp_path, text, failed_cas="compared").outcome == "invalid"


def test_what_rests_on_no_comparison(tmp_path):
    """A stale read is one, whatever the comparison beside it saw."""
    for taken in ("auto", "compared", "nothing"):
        violation = judged(tmp_path, STALE, failed_cas=taken).violation
        assert violation.failed_comparisons == ()
        assert violation.headline() == f"{violation.anomaly}: {violation.meaning}"


def test_the_verdict_says_so_first(tmp_path, capfd, monkeypatch):
    """In the text, in JSON and on the page; and its certificate is of the same reading."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mongodb.edn").write_text(FAILED)
    how = "-s", "linearizable", "--failed-cas", "compared", "mongodb.edn"
    lines = run_here(capfd, *how).out.splitlines()
    assert lines[0].startswith("INVALID")
    assert " ".join(map(str.strip, lines[1:3])).startswith(PROVIDED.strip())
    (report,) = run_here(capfd, *how, "-o", "json", "--certificate", "d").reports()
    assert report["reason"].startswith(f"{PROVIDED}{report['anomaly']}: ")
    assert report["violation"]["failed_comparisons"] == ["T2"]
    saved = json.loads((tmp_path / report["certificate"]).read_text())
    assert saved["history"]["options"] == {"failed_cas": "compared"}
    again = run_here(capfd, "verify", report["certificate"], "mongodb.edn", "--html", "page.html")
    assert again.code == 0
    assert 'history read as registers with failed_cas "compared"' in again.out
    assert PROVIDED in (tmp_path / "page.html").read_text()
    assert run_here(capfd, "-s", "linearizable", "mongodb.edn").code == 0
    saved["history"]["options"]["sooner"] = True
    (tmp_path / "newer.json").write_text(json.dumps(saved))
    run = run_here(capfd, "verify", "newer.json", "mongodb.edn")
    assert run.code == 2
    assert "sooner" in run.err + run.out

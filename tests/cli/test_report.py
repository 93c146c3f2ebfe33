"""``--html`` and the forms of ``--output``: files and texts where a user asked for them."""

import hashlib
import json
from xml.etree import ElementTree

import pytest
from support.cli import LOST_UPDATE, THIN_AIR, VALID, run_here
from support.pages import data_of


def histories(folder):
    """Three histories: a lost update, a valid one, a value that nobody wrote."""
    for name, text in (("lost", LOST_UPDATE), ("valid", VALID), ("air", THIN_AIR)):
        (folder / name).write_text(text)
    return [folder / name for name in ("lost", "valid", "air")]


def test_a_page_is_written_where_it_was_asked_for(tmp_path, capfd):
    """The report says where; the exit code is the verdict's."""
    lost, *_ = histories(tmp_path)
    page = tmp_path / "new" / "page.html"
    run = run_here(capfd, "check", "-s", "si", "--html", page, "-o", "json", lost)
    (report,) = run.reports()
    assert (run.code, report["page"]) == (1, str(page))
    assert data_of(page.read_text())["violation"]["anomaly"] == "lost update"


def test_a_page_names_the_certificate_by_its_hash(tmp_path, capfd):
    """That of the file that was saved, so that both can be told to belong together."""
    lost, *_ = histories(tmp_path)
    page, saved = tmp_path / "page.html", tmp_path / "saved"
    run_here(capfd, "-s", "si", "--html", page, "--certificate", saved, lost)
    (certificate,) = saved.iterdir()
    wanted = hashlib.sha256(certificate.read_text().encode()).hexdigest()
    assert data_of(page.read_text())["certificate"] == wanted


def test_each_history_and_level_has_a_page_of_its_own(tmp_path, capfd):
    """In a folder, named after both."""
    files = histories(tmp_path)
    run = run_here(capfd, "-s", "si", "-s", "rc", "--html", tmp_path / "pages", *files)
    assert run.code == 1
    found = sorted(path.name for path in (tmp_path / "pages").iterdir())
    assert found == sorted(f"{f.name}-{level}.html" for f in files for level in ("si", "rc"))


def test_one_page_is_for_one_verdict(tmp_path, capfd):
    """Two histories cannot share a file."""
    lost, valid, _ = histories(tmp_path)
    run = run_here(capfd, "-s", "si", "--html", tmp_path / "page.html", lost, valid)
    assert run.code == 2
    assert "--html FILE.html shows a single verdict" in run.err


def test_a_page_that_cannot_be_written_is_a_warning(tmp_path, capfd):
    """The verdict stands."""
    lost, *_ = histories(tmp_path)
    run = run_here(capfd, "-s", "si", "-o", "json", "--html", lost / "page.html", lost)
    (report,) = run.reports()
    assert (run.code, report["verdict"], report["page"]) == (1, "invalid", None)
    assert "cannot write the page" in report["warnings"][0]


def test_levels_are_drawn(tmp_path, capfd):
    """With the weakest violated level's verdict."""
    lost, *_ = histories(tmp_path)
    page = tmp_path / "levels.html"
    assert run_here(capfd, "levels", "--html", page, lost).code == 0
    data = data_of(page.read_text())
    assert data["outcome"] == "invalid"
    assert {level["name"] for level in data["levels"]["levels"]} >= {"si", "ser", "rc"}


def test_a_graph_is_printed_and_nothing_else(tmp_path, capfd):
    """So that it can be piped to a program."""
    lost, *_ = histories(tmp_path)
    run = run_here(capfd, "-s", "si", "-o", "dot", lost)
    assert run.code == 1
    assert run.out.startswith("digraph")
    assert run.out.endswith("}\n")
    perfetto = run_here(capfd, "-s", "si", "-o", "perfetto", lost).out
    assert json.loads(perfetto)["traceEvents"]


def test_what_cannot_be_drawn_is_said(tmp_path, capfd):
    """A history that is not there has no graph."""
    run = run_here(capfd, "-s", "si", "-o", "dot", tmp_path / "nothing")
    assert run.code == 2
    assert run.out == ""
    assert "nothing" in run.err


def test_junit_is_one_file_for_all(tmp_path, capfd):
    """A test case for each history and level."""
    files = histories(tmp_path)
    run = run_here(capfd, "-s", "si", "-s", "rc", "-o", "junit", *files)
    (suite,) = ElementTree.fromstring(run.out)
    assert run.code == 1
    assert (suite.get("tests"), suite.get("failures")) == ("6", "3")


def test_a_failed_test_case_shows_the_report_and_where_the_evidence_is(
    tmp_path, capfd, monkeypatch
):
    """Its body is the text that a terminal shows, with the paths of certificate and page."""
    histories(tmp_path)
    monkeypatch.chdir(tmp_path)
    run = run_here(
        capfd, "-s", "si", "-o", "junit", "--html", "page.html", "--certificate", "saved", "lost"
    )
    (suite,) = ElementTree.fromstring(run.out)
    body = suite[0][0].text
    assert suite[0].find("failure").get("message") in " ".join(body.split())
    assert "-rw" in body
    assert "  page           page.html\n" in body
    assert "  certificate    saved/lost.SI.certificate.json\n" in body


def test_sarif_has_a_result_for_what_is_not_valid(tmp_path, capfd):
    """An error for a violation and for what cannot be read; nothing for the valid history."""
    run = run_here(capfd, "-s", "si", "-o", "sarif", *histories(tmp_path), tmp_path / "none")
    found = json.loads(run.out)["runs"][0]["results"]
    assert run.code == 1
    assert [r["ruleId"].removeprefix("isocheck/") for r in found] == [
        "lost-update", "thin-air-read", "error",
    ]  # fmt: skip
    assert all(r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for r in found)


@pytest.mark.parametrize("output", ["text", "json", "edn", "junit", "sarif", "markdown", "brief"])
def test_every_form_says_that_nothing_was_observed(output, tmp_path, capfd):
    """A green that is no evidence is told in each output, one that is has no such word."""
    word = "NOTHING WAS OBSERVED" if output != "brief" else "nothing was observed"
    form = ["--brief"] if output == "brief" else ["--output", output]
    for name, value, said in (("idle", "nil", True), ("seen", 1, False)):
        (tmp_path / f"{name}.edn").write_text(
            "{:type :ok, :f :txn, :value [[:w x 1]], :process 0}\n"
            f"{{:type :ok, :f :txn, :value [[:r {'y' if said else 'x'} {value}]], :process 1}}\n"
        )
        ran = run_here(capfd, "check", "--spec", "ser", *form, tmp_path / f"{name}.edn")
        assert ran.code == 0
        assert (word in ran.out) == said


def test_levels_and_watches_say_that_nothing_was_observed(tmp_path, capfd):
    """So do a lattice whose levels all hold, and the end of a watch."""
    for value, said in (("nil", True), (1, False)):
        path = tmp_path / f"{said}.edn"
        path.write_text(
            "{:type :ok, :f :txn, :value [[:w x 1]], :process 0}\n"
            f"{{:type :ok, :f :txn, :value [[:r {'y' if said else 'x'} {value}]], :process 1}}\n"
        )
        assert ("NOTHING WAS OBSERVED" in run_here(capfd, "levels", path).out) == said
        assert (
            bool(*(r["notes"] for r in run_here(capfd, "levels", "-o", "json", path).reports()))
            == said
        )
        watched = run_here(capfd, "watch", path, "--spec", "ser", "--until-idle", "0.1")
        assert ("NOTHING WAS OBSERVED" in watched.out) == said

"""``isocheck summary``: many runs, one answer."""

import json
import re
from xml.etree import ElementTree

import jsonschema
import pytest
from support.cli import LOST_UPDATE, THIN_AIR, VALID, run_here
from support.paths import ROOT

from isolang import Recorder
from isolang.output import text
from isolang.report.summary import interval

HEADER = "; TinyDB {version}; level snapshot (as it says); workload rmw; 3 sessions; seed {seed}; x"


@pytest.fixture
def base(tmp_path, monkeypatch, capfd):
    """Reports of a valid, an invalid and another invalid history, as objects."""
    monkeypatch.chdir(tmp_path)
    found = {}
    for name, history in (("valid", VALID), ("lost", LOST_UPDATE), ("thin", THIN_AIR)):
        (tmp_path / name).write_text(history)
        (found[name],) = run_here(capfd, "check", "-s", "ser", "-o", "json", name).reports()
    return found


def of_run(report, version, seed, **more):
    """The report of a run of a database, with a hash of its own."""
    facts = {
        "database": f"TinyDB {version}", "isolation": "snapshot", "workload": "rmw", "seed": seed,
        "history": f"{version}-{seed}.edn", "doubts": [], "grave": False,
        "input": {**report["input"], "sha256": f"{version}-{seed}"},
    }  # fmt: skip
    return {**report, **facts, **more}


def nightly(base):
    """Five seeds of three versions: of the second two fail, of the third one, in another way."""
    for version, bad in (("1.9", {}), ("1.10", {2: "lost", 4: "lost"}), ("2.0", {3: "thin"})):
        for seed in range(5):
            yield of_run(base[bad.get(seed, "valid")], version, seed)


def written(path, reports):
    path.write_text("".join(json.dumps(one) + "\n" for one in reports))
    return path


def test_what_failed_first_and_how_often(base, capfd, tmp_path):
    """By version in the order of numbers; each kind of violation once, with its argument."""
    written(tmp_path / "all.json", nightly(base))
    found = run_here(capfd, "summary", "all.json", "-o", "json")
    assert found.code == 1
    made = json.loads(found.out)
    jsonschema.validate(made, json.loads((ROOT / "docs/schema/summary.json").read_text()))
    assert [(g["version"], g["valid"], g["invalid"], g["seeds"]) for g in made["groups"]] == [
        ("1.9", 5, 0, []), ("1.10", 3, 2, ["2", "4"]), ("2.0", 4, 1, ["3"]),
    ]  # fmt: skip
    flaky = made["groups"][1]
    assert (flaky["failing"], flaky["interval"], flaky["flaky"]) == (
        0.4, list(interval(2, 5)), True,
    )  # fmt: skip
    (first,) = made["first_bad"]
    assert (first["version"], first["before"], first["valid_before"]) == ("1.10", "1.9", 5)
    lost, thin = made["violations"]
    assert (lost["anomaly"], lost["runs"], lost["of_runs"]) == ("lost update", 2, 15)
    assert (thin["anomaly"], thin["versions"], thin["seeds"]) == ("thin-air read", ["2.0"], ["3"])
    assert "-rw" in lost["argument"]
    shown = run_here(capfd, "summary", "all.json").out
    assert "TinyDB snapshot, ser: 1.10 is the first to fail; up to 1.9 there are 5 valid" in shown
    assert shown.count("TinyDB snapshot, ser, lost update") == 1
    assert "40 % (12 to 77 %)" in shown


def test_new_since_an_earlier_summary(base, capfd, tmp_path):
    """Only a violation of a new kind counts; one that is not seen any more is named."""
    everything = list(nightly(base))
    written(tmp_path / "old.json", everything[:10])
    old = run_here(capfd, "summary", "old.json", "-o", "json").out
    (tmp_path / "old-summary.json").write_text(old)
    written(tmp_path / "new.json", everything[10:])
    for before in ("old.json", "old-summary.json"):
        found = run_here(capfd, "summary", "new.json", "--against", before, "-o", "json")
        made = json.loads(found.out)
        assert found.code == 1
        assert [(one["anomaly"], one["new"]) for one in made["violations"]] == [
            ("thin-air read", True)
        ]
        assert made["gone"] == ["TinyDB snapshot, ser, lost update"]
    again = run_here(capfd, "summary", "old.json", "--against", "old-summary.json")
    assert (again.code, "  known" in again.out, "NEW" in again.out) == (0, True, False)
    both = run_here(capfd, "summary", "old-summary.json", "new.json", "-o", "json")
    assert len(json.loads(both.out)["runs"]) == 15


def test_a_report_that_is_given_twice_counts_once(base, capfd, tmp_path):
    """The same history by its hash; without one, another file is another run."""
    written(tmp_path / "a.json", nightly(base))
    written(tmp_path / "b.json", nightly(base))
    assert run_here(capfd, "summary", "a.json", "b.json").out.startswith("15 verdicts")
    brief = [{**one, "input": None} for one in nightly(base)]
    written(tmp_path / "a.json", brief)
    written(tmp_path / "b.json", brief)
    assert run_here(capfd, "summary", "a.json", "b.json").out.startswith("30 verdicts")


def test_a_verdict_that_proves_nothing_is_no_valid_run(base, capfd, tmp_path):
    """A run with a grave doubt, an error and an unknown one are told apart, with their reasons."""
    reports = [
        of_run(base["valid"], "1", 1),
        of_run(base["valid"], "1", 2, grave=True, doubts=["nothing was written"]),
        of_run(base["valid"], "1", 3, verdict="unknown", reason="timeout: in phase solve"),
    ]
    written(tmp_path / "all.json", reports)
    found = run_here(capfd, "summary", "all.json")
    assert found.code == 3
    assert found.out.startswith("3 verdicts: 1 valid, 2 unknown")
    assert "1 × unknown: not proved; nothing was written" in found.out
    reports.append(of_run(base["valid"], "1", 4, verdict="error", reason="bad.edn: torn"))
    written(tmp_path / "all.json", reports)
    assert run_here(capfd, "summary", "all.json").code == 2


def test_a_folder_of_runs_without_reports(capfd, tmp_path, monkeypatch):
    """The first line of a recording names the run, the certificate beside it has the verdict."""
    monkeypatch.chdir(tmp_path)
    runs = tmp_path / "runs"
    runs.mkdir()
    for seed in range(3):
        path = runs / f"tiny-{seed}.edn"
        with Recorder(path, about=HEADER.format(version="3.1", seed=seed).removeprefix("; ")) as r:
            for session in range(2):
                with r.transaction(session) as t:
                    t.read("x", None)
                    t.write("x", 10 * seed + session + 1)
        if seed < 2:
            run_here(capfd, "check", "-s", "ser", path, "--certificate", runs, "-q")
    (runs / "notes.md").write_text("hello")
    (runs / "other.json").write_text("{}")
    (runs / "empty.json").write_text("")
    found = run_here(capfd, "summary", "runs", "-o", "json")
    made = json.loads(found.out)
    (ser, undecided) = sorted(made["groups"], key=lambda one: -one["invalid"])
    assert (ser["target"], ser["version"], ser["isolation"], ser["seeds"]) == (
        "TinyDB", "3.1", "snapshot", ["0", "1"],
    )  # fmt: skip
    assert (undecided["unknown"], undecided["level"]) == (1, "")
    assert made["skipped"] == ["1 *.md", "1 .json that is not a report", "1 empty files"]
    assert "left out: 1 *.md" in found.err


@pytest.fixture
def moved_runs(capfd, tmp_path, monkeypatch):
    """A folder with a run that its certificate calls invalid, moved since."""
    monkeypatch.chdir(tmp_path)
    about = "TinyDB 3.1; level read committed (claims ser); workload rmw; 3 sessions; seed 4; x"
    (tmp_path / "old").mkdir()
    with Recorder(tmp_path / "old" / "tiny.edn", about=about) as recorder:
        for session in range(2):
            with recorder.transaction(session) as t:
                t.read("x", None)
                t.write("x", session + 1)
    check = ("check", "-s", "ser", "old/tiny.edn", "--certificate", "old", "-q")
    run_here(capfd, *check, "--minimal", "old/tiny.minimal.edn")
    return (tmp_path / "old").rename(tmp_path / "new")


def test_a_moved_folder_of_runs_has_its_violations_and_files(moved_runs, capfd):
    """The proof is explained again; a level keeps all its words; the files are those beside it."""
    found = run_here(capfd, "summary", "new", "-o", "json")
    (violation,) = json.loads(found.out)["violations"]
    assert (violation["anomaly"], violation["isolation"]) == ("lost update", "read committed")
    assert "overwrote" in violation["reason"]
    files = [violation["history"], *(file for _, file in violation["evidence"])]
    assert [name.rpartition("/")[2] for name in files] == [
        "tiny.edn", "tiny.edn.SER.certificate.json", "tiny.minimal.edn",
    ]  # fmt: skip
    assert all((moved_runs.parent / name).exists() for name in files)
    assert "new/tiny.edn" in run_here(capfd, "summary", "new").out


@pytest.mark.parametrize("change", ["lost", "changed", "forged"])
def test_a_certificate_that_cannot_be_explained_is_counted(moved_runs, capfd, change):
    """Without its history, with another one, or with a proof that does not hold."""
    history = moved_runs / "tiny.edn"
    (certificate,) = moved_runs.glob("*.certificate.json")
    if change == "lost":
        history.unlink()
    elif change == "changed":
        history.write_text(history.read_text().replace("nil", "7"))
    else:
        proof = json.loads(certificate.read_text())
        certificate.write_text(json.dumps({**proof, "refutation": []}))
    found = run_here(capfd, "summary", "new", "-o", "json")
    (run,) = json.loads(found.out)["runs"]
    assert (found.code, run["verdict"], run["anomaly"]) == (1, "invalid", "")


def test_files_between_folders_are_left_out_and_counted(base, capfd, tmp_path):
    """As if they were in a folder: `isocheck summary runs/*` takes what there is."""
    for name in ("one", "two"):
        (tmp_path / "runs" / name).mkdir(parents=True)
        written(tmp_path / "runs" / name / "r.json", [of_run(base["valid"], name, 1)])
    (tmp_path / "runs" / "notes.txt").write_text("hello")
    (tmp_path / "runs" / "settings.json").write_text("{}")
    (tmp_path / "runs" / "torn.json").write_text("{")
    (tmp_path / "runs" / "two" / "gone.json").symlink_to("nowhere.json")
    (tmp_path / "runs" / "watched").mkdir()
    (tmp_path / "runs" / "watched" / "chain.jsonl").write_text("")
    paths = sorted((tmp_path / "runs").iterdir())
    found = run_here(capfd, "summary", *paths)
    assert found.code == 2, "a watch without a chain is an error among the verdicts"
    assert found.out.startswith("3 verdicts: 2 valid, 1 error\n")
    assert "1 × error: not the chain of a watch" in found.out
    assert "left out: 1 *.txt; 2 .json that is not a report; 1 files that cannot be read" in (
        found.out
    )
    named = run_here(capfd, "summary", tmp_path / "runs" / "torn.json")
    assert (named.code, "not a report" in named.err) == (2, True)


def test_each_count_on_the_page_has_the_colour_of_its_verdict(base, capfd, tmp_path):
    """103 valid runs beside a violation are not red."""
    reports = [of_run(base["valid"], "1", seed) for seed in range(3)]
    reports += [
        of_run(base["lost"], "1", 4),
        of_run(base["valid"], "1", 5, verdict="error", reason="torn"),
    ]
    written(tmp_path / "all.json", reports)
    run_here(capfd, "summary", "all.json", "--html", "page.html")
    (head,) = re.findall("<h1>.*</h1>", (tmp_path / "page.html").read_text())
    assert re.findall('class="([a-z]*)">([^<]*)<', head) == [
        ("valid", "3 valid"), ("invalid", "1 invalid"), ("wrong", "1 error"),
    ]  # fmt: skip


def test_names_in_paths(base, capfd, tmp_path):
    """What the report does not say, the path of its file may."""
    for version in ("v1", "v2"):
        for seed in range(2):
            folder = tmp_path / "nightly" / f"restate-{version}"
            folder.mkdir(parents=True, exist_ok=True)
            report = base["lost" if (version, seed) == ("v2", 1) else "valid"]
            one = {**report, "input": {**report["input"], "sha256": f"{version}{seed}"}}
            written(folder / f"{seed}.json", [one])
    names = "nightly/{target}-{version}/{seed}.json"
    made = json.loads(run_here(capfd, "summary", "nightly", "--names", names, "-o", "json").out)
    assert [(g["target"], g["version"], g["seeds"]) for g in made["groups"]] == [
        ("restate", "v1", []), ("restate", "v2", ["1"]),
    ]  # fmt: skip
    wrong = run_here(capfd, "summary", "nightly", "--names", "{branch}/*")
    assert (wrong.code, "{branch}" in wrong.err) == (2, True)
    other = run_here(capfd, "summary", "nightly", "--names", "weekly/{version}/*")
    assert "4 of 4 verdicts do not match --names" in other.err


def test_the_chain_of_a_watch(capfd, tmp_path, monkeypatch):
    """Its end has the verdict; one that has not ended has none."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.edn").write_bytes((ROOT / "examples" / "on-call.edn").read_bytes())
    watched = run_here(capfd, "watch", "-s", "si", "log.edn", "--state", "state", "--until-idle", 0)
    assert watched.code == 0, watched.err
    (run,) = json.loads(run_here(capfd, "summary", "state", "-o", "json").out)["runs"]
    assert (run["verdict"], run["level"], run["history"]) == ("valid", "si", "log.edn")
    chain = tmp_path / "state" / "chain.jsonl"
    chain.write_bytes(chain.read_bytes().rsplit(b"\n", 2)[0] + b"\n")
    found = run_here(capfd, "summary", "state")
    assert (found.code, "the watch has not ended" in found.out) == (3, True)
    for level, code in (("rc", 3), ("si", 0)):  # the verdict of the whole log ends the question
        run_here(capfd, "check", "-s", level, "log.edn", "--certificate", "proofs")
        found = run_here(capfd, "summary", "state", "proofs")
        assert (found.code, "the watch has not ended" in found.out) == (code, code == 3)
    assert "left out: 1 watches of runs that were judged as a whole" in found.out


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[1, 2]", "all.json:1: not a report"),
        ('{"a": 1}', "expected a certificate, or a report that isocheck check"),
        ('{"history": "h", "spec": "s", "verdict": "good"}', "Invalid enum value 'good'"),
        ("{", "not a report"),
    ],
)
def test_what_is_no_report_is_an_error_with_its_place(capfd, tmp_path, monkeypatch, content, said):
    """A file that was named; nothing is skipped in silence."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "all.json").write_text(content)
    found = run_here(capfd, "summary", "all.json")
    assert (found.code, said in found.err) == (2, True), found.err


def test_forms_for_machines_and_the_page(base, capfd, tmp_path):
    """JUnit and SARIF have all runs in one file; a hostile name stays text on the page."""
    hostile = "<img src=x>\n& more"
    reports = [*nightly(base), of_run(base["lost"], "3", 1, history=hostile)]
    written(tmp_path / "all.json", reports)
    junit = run_here(capfd, "summary", "all.json", "-o", "junit", "--html", "page.html").out
    suite = ElementTree.fromstring(junit).find("testsuite")
    assert (suite.get("tests"), suite.get("failures")) == ("16", "4")
    sarif = json.loads(run_here(capfd, "summary", "all.json", "-o", "sarif").out)
    results = sarif["runs"][0]["results"]
    assert len(results) == 4
    assert all(one["relatedLocations"] for one in results if "lost" in one["ruleId"])
    page = (tmp_path / "page.html").read_text()
    assert "<img" not in page
    assert page.count("<h3>") == 2
    assert "default-src 'none'" in page


def test_five_hundred_reports_take_little_work(base, capfd, tmp_path, monkeypatch):
    """The text of an argument is made for the violations that are shown, not for each run."""
    reports = [of_run(base["lost" if i % 3 else "valid"], f"{i % 7}.0", i) for i in range(500)]
    for i in range(0, 500, 10):
        written(tmp_path / f"r{i}.json", reports[i : i + 10])
    rendered = []
    monkeypatch.setattr(text, "render_violation", lambda *_, **__: rendered.append(1))
    made = json.loads(run_here(capfd, "summary", tmp_path, "-o", "json").out)
    assert len(rendered) == 1
    assert len(made["runs"]) == 500
    assert len(made["violations"]) == 1

"""``isocheck check``: verdicts, exit codes, order, and what each output looks like."""

import gzip
import json
import os
import re
import shutil

import pytest
from msgspec import convert
from support.cli import ENVIRONMENT, LOST_UPDATE, THIN_AIR, VALID, run_here, run_there
from support.paths import ROOT

from isolang.explain.violation import Findings
from isolang.jobs.job import _with_verdict
from isolang.output.records import SCHEMA, Report, exit_code

NEEDED = [
    "schema", "history", "spec", "verdict", "reason", "anomaly", "transactions", "committed",
    "aborted", "maybe", "operations", "sessions", "keys", "solver", "encoding", "certified",
    "seconds", "violation",
]  # fmt: skip


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A folder with some histories, which is the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "valid.txt").write_text(VALID)
    (tmp_path / "lost.txt").write_text(LOST_UPDATE)
    (tmp_path / "thin.txt").write_text(THIN_AIR)
    (tmp_path / "broken.txt").write_text("w(0,1,1,1)\nw(0,x,1,2)\n")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--spec", "si", "valid.txt"], 0),
        (["check", "--spec", "si", "valid.txt"], 0),
        (["--spec", "si", "lost.txt"], 1),
        (["--spec", "pl-2", "lost.txt"], 0),
        (["--spec", "pl-1", "thin.txt"], 0),
        (["--spec", "PL-2", "thin.txt"], 1),
        (["--spec", "si", "broken.txt"], 2),
        (["--spec", "si", "missing.txt"], 2),
        (["--spec", "sser", "valid.txt"], 2),  # it has no real time
        (["--spec", "si", "lost.txt", "missing.txt"], 1),
        (["--spec", "si", "valid.txt", "missing.txt"], 2),
        (["--spec", "nosuch", "valid.txt"], 2),
        (["--spec", "si"], 2),
        (["valid.txt"], 2),
        (["--spec", "si", "--nosuch", "valid.txt"], 2),
        (["--spec", "si", "--from", "nosuch", "valid.txt"], 2),
        (["--spec", "si", "--timeout", "0", "valid.txt"], 2),
        (["--spec", "si", "--timeout", "soon", "valid.txt"], 2),
        (["--spec", "si", "--memory", "-1", "valid.txt"], 2),
        (["--spec", "si", "--jobs", "0", "valid.txt"], 2),
        (["--spec", "si", "--output", "xml", "valid.txt"], 2),
        (["--spec", "si", "--minimal", "m.edn", "valid.txt", "lost.txt"], 2),
        (["--spec", "si", "-", "-"], 2),
    ],
)
def test_exit_codes(files, capfd, arguments, code):
    """One code for each kind of end; an invalid history outweighs an unreadable one."""
    run = run_here(capfd, *arguments)
    assert run.code == code, run.err
    assert "Traceback" not in run.err
    if code == 2 and run.out == "":
        assert run.err.startswith("isocheck: ")


def test_the_codes_are_ordered():
    """A rejected certificate above invalid above input error above unknown above valid."""
    assert exit_code({0, 1, 2, 3, 4}) == 4
    assert exit_code({0, 1, 2, 3}) == 1
    assert exit_code({0, 2, 3}) == 2
    assert exit_code({0, 3}) == 3
    assert exit_code({0}) == 0
    assert exit_code(set()) == 0


def test_json_one_object_per_history_and_spec_in_order(files, capfd):
    """Histories in the order given, and for each the specs in the order given."""
    run = run_here(
        capfd, "--spec", "si", "--spec", "PL-2", "--output", "json",
        "lost.txt", "missing.txt", "valid.txt",
    )  # fmt: skip
    reports = run.reports()
    assert [(r["history"], r["spec"], r["verdict"]) for r in reports] == [
        ("lost.txt", "si", "invalid"),
        ("lost.txt", "PL-2", "valid"),
        ("missing.txt", "si", "error"),
        ("missing.txt", "PL-2", "error"),
        ("valid.txt", "si", "valid"),
        ("valid.txt", "PL-2", "valid"),
    ]
    for report in reports:
        assert tuple(report) == Report.__struct_fields__
        assert set(NEEDED) <= set(report)
        assert report["schema"] == SCHEMA
        assert list(report["seconds"]) == ["read", "prepare", "solve", "certify", "total"]
    assert "missing.txt" in reports[2]["reason"]


def test_json_of_an_invalid_history(files, capfd):
    """Counts, anomaly, and a violation whose tree says what each edge is."""
    (report,) = run_here(capfd, "-s", "si", "-o", "json", "lost.txt").reports()
    assert report["anomaly"] == "lost update"
    assert report["reason"].startswith("lost update: ")
    assert report["certified"] is True
    assert (report["transactions"], report["committed"]) == (2, 2)
    assert (report["operations"], report["sessions"], report["keys"]) == (4, 2, 1)
    assert (report["solver"], report["encoding"]) == ("native", "event-graph")
    violation = report["violation"]
    assert violation["anomaly"] == "lost update"
    split = violation["argument"]["conclusion"]
    assert split["kind"] == "split"
    for case in split["cases"]:
        cycle = case["argument"]["conclusion"]
        assert cycle["kind"] == "cycle"
        assert [edge["relation"] for edge in cycle["edges"]] == ["ww", "rw"]
        for edge, following in zip(cycle["edges"], cycle["edges"][1:], strict=False):
            assert edge["target"] == following["source"]
        assert cycle["edges"][-1]["target"] == cycle["edges"][0]["source"]
    assert [t["where"] for t in violation["transactions"]] == ["lost.txt:1", "lost.txt:3"]


def test_counts_leave_the_initial_transaction_out(files, capfd):
    """T0 is no transaction of the file, also where it stands in it."""
    (files / "init.txt").write_text("w(0,5,9,100)\nr(0,5,1,1)\n")
    (report,) = run_here(
        capfd, "--spec", "ser", "-o", "json", "--initial", "100", "init.txt"
    ).reports()
    assert (report["transactions"], report["verdict"]) == (1, "valid")


def test_edn_has_the_same_contents(files, capfd):
    """EDN is the JSON object with keyword keys, and reads as EDN."""
    run = run_here(capfd, "--spec", "si", "--output", "edn", "lost.txt")
    assert run.out.startswith('{:schema 1, :history "lost.txt", :spec "si", :verdict "invalid"')
    assert ':anomaly "lost update"' in run.out
    assert ":solver nil" not in run.out
    assert run.out.count("{") == run.out.count("}")
    assert len(run.out.splitlines()) == 1


def test_text_says_how_the_input_was_understood(files, capfd):
    """Format, counts by status, initial value, session, real time, and what was ignored."""
    run = run_here(capfd, "--spec", "si", "valid.txt")
    for phrase in ("plume; 2 transactions (2 committed, 0 aborted, 0 maybe)", "initial state",
                   "session", "real time      none", "ignored        nothing",
                   "certified      yes"):  # fmt: skip
        assert phrase in run.out
    assert "\x1b[" not in run.out, "colours are for terminals only"
    assert all(line == line.rstrip() and len(line) <= 80 for line in run.out.splitlines())


def test_anomalies_that_a_level_allows_are_reported(files, capfd):
    """PL-1 does not judge reads, but a thin-air read is worth knowing of."""
    run = run_here(capfd, "--spec", "pl-1", "thin.txt")
    assert run.out.startswith("VALID")
    assert "thin-air read, once" in run.out
    (report,) = run_here(capfd, "--spec", "pl-1", "-o", "json", "thin.txt").reports()
    assert [(a["name"], a["count"]) for a in report["anomalies"]] == [("thin-air read", 1)]


def test_no_certify(files, capfd):
    """Without certification, nothing is called certified."""
    (report,) = run_here(capfd, "-s", "si", "-o", "json", "--no-certify", "lost.txt").reports()
    assert (report["verdict"], report["certified"]) == ("invalid", False)
    assert report["certified_reason"]


def test_certificates_are_saved_and_verified(files, capfd):
    """Each verdict's proof can be checked again, against its own history only."""
    run = run_here(
        capfd, "-s", "si", "-s", "ser", "-o", "json", "--certificate", "proofs",
        "lost.txt", "valid.txt",
    )  # fmt: skip
    paths = [report["certificate"] for report in run.reports()]
    assert len(set(paths)) == 4
    for report, path in zip(run.reports(), paths, strict=True):
        again = run_here(capfd, "verify", path, report["history"])
        assert again.code == 0, again.err
        assert again.out.startswith("ACCEPTED")
        assert report["verdict"] in again.out
    other = run_here(capfd, "verify", paths[0], "valid.txt")
    assert other.code == 2
    assert "this certificate is about another history" in other.err


def proven(capfd, spec, history):
    """The certificate of a verdict."""
    options = ("-o", "json", "--certificate", "proofs")
    (report,) = run_here(capfd, "-s", spec, *options, history).reports()
    return report["certificate"]


def test_verify_says_which_checker_accepts_what(files, capfd):
    """Natively all; by definition the checks of a witness, and the cycle steps of a refutation."""
    for history, said in (("valid.txt", "all"), ("lost.txt", "all: 1 of 1 cycle steps")):
        run = run_here(capfd, "verify", "--by-definition", proven(capfd, "ser", history), history)
        assert run.code == 0, run.err
        assert f"accepted by: native checker (all), by definition ({said})" in run.out


def test_what_is_beyond_the_definition_is_said_and_can_be_insisted_on(files, capfd):
    """A witness of more transactions than it evaluates in seconds: accepted natively alone."""
    lines = "".join(f"w({i},1,{i},{i})\n" for i in range(2_001))
    (files / "many.txt").write_text(lines)
    path = proven(capfd, "ser", "many.txt")
    run = run_here(capfd, "verify", path, "many.txt")
    assert run.code == 0, run.err
    said = "not by definition: 2001 transactions (witnesses are evaluated up to 2000)"
    assert f"accepted by: native checker (all); {said}" in run.out
    run = run_here(capfd, "verify", "--by-definition", path, "many.txt")
    assert run.code == 3
    assert run.out.startswith("UNKNOWN")
    assert "not certified by definition: 2001 transactions" in run.out


def test_a_tampered_certificate_is_rejected(files, capfd):
    """Of a proof that does not hold, verify says so with the exit code for that."""
    (report,) = run_here(
        capfd, "-s", "ser", "-o", "json", "--certificate", "proofs", "valid.txt"
    ).reports()
    proof = json.loads((files / report["certificate"]).read_text())
    proof["witness"]["source"] = [2 if s >= 0 else s for s in proof["witness"]["source"]]
    (files / "bad.json").write_text(json.dumps(proof))
    run = run_here(capfd, "verify", "bad.json", "valid.txt")
    assert run.code == 4
    assert run.out.startswith("REJECTED")


def test_a_rejected_verdict_is_unknown_with_evidence(files, capfd, monkeypatch):
    """A certificate that the checker refuses is never printed as a verdict."""
    from isolang.certify import native
    from isolang.certify.errors import CertificateRejected

    def refuse(*_args, **_more):
        raise CertificateRejected("step 0: no")

    monkeypatch.setattr(native, "check_natively", refuse)
    for history in ("valid.txt", "lost.txt"):
        run = run_here(capfd, "-s", "si", "-s", "pl-1", "-o", "json", history, "missing.txt")
        assert run.code == 4
        report = run.reports()[0]
        assert (report["verdict"], report["certified"]) == ("unknown", False)
        assert report["reason"].startswith("certificate rejected: ")
        assert report["violation"] is None
        evidence = json.loads((files / report["certificate"]).read_text())
        assert evidence["history"]["name"] == history


def test_evidence_of_a_rejected_verdict_names_the_clock_error(files, capfd, monkeypatch):
    """What is kept of a rejected verdict is verified on the same reading of the history."""
    from isolang.certify import native
    from isolang.certify.errors import CertificateRejected
    from isolang.history import History, Transaction, write_history

    history = History.from_transactions(
        [
            Transaction([("w", "x", 1)], session=0, begin=0, end=10, times=[(1, 2)], commit=3),
            Transaction(
                [("r", "x", None)], session=1, begin=20, end=30, times=[(21, 22)], commit=23
            ),
        ]
    )
    write_history(history, str(files / "timed.edn"), format="edn")

    def refuse(*_args, **_more):
        raise CertificateRejected("step 0: no")

    how = "-s", "sser", "--clock-error", "1us", "-o", "json", "timed.edn"
    with monkeypatch.context() as patched:
        patched.setattr(native, "check_natively", refuse)
        (report,) = run_here(capfd, *how).reports()
    assert report["reason"].startswith("certificate rejected: ")
    evidence = json.loads((files / report["certificate"]).read_text())
    assert evidence["history"]["options"]["clock_error"] == "1us"
    again = run_here(capfd, "verify", report["certificate"], "timed.edn")
    assert again.code == 0, again.out + again.err
    assert "clock_error" in again.out


@pytest.mark.parametrize("spec", ["si", "ser"])
def test_minimal_shows_the_same_anomaly(files, capfd, spec):
    """The file that --minimal writes is small, readable, and invalid for the same reason."""
    padding = "".join(f"w({k},{k},{k},{k})\nr({k},{k},{k + 1},{k + 50})\n" for k in range(3, 20))
    (files / "large.txt").write_text(padding + LOST_UPDATE.replace(",1,1)", ",91,901)"))
    (report,) = run_here(
        capfd, "-s", spec, "-o", "json", "--minimal", "min.edn", "large.txt"
    ).reports()
    assert report["minimal"].startswith("min.edn (2 transactions, 4 operations: lost update; ")
    (small,) = run_here(capfd, "-s", spec, "-o", "json", "min.edn").reports()
    assert small["anomaly"] == report["anomaly"] == "lost update"
    assert small["transactions"] == 2


def test_minimal_is_not_written_for_valid_histories(files, capfd):
    """There is nothing to show."""
    assert run_here(capfd, "-s", "si", "--minimal", "min.edn", "valid.txt").code == 0
    assert not (files / "min.edn").exists()


@pytest.mark.slow
def test_compressed_and_standard_input(files):
    """Gzip is read as it is; - is the standard input, also in a child."""
    with gzip.open(files / "lost.txt.gz", "wb") as file:
        file.write(LOST_UPDATE.encode())
    assert run_there("--spec", "si", files / "lost.txt.gz").code == 1
    for extra in ([], ["--timeout", "60"]):
        run = run_there("--spec", "si", "-o", "json", *extra, "-", stdin=LOST_UPDATE.encode())
        assert run.code == 1, (run.out, run.err)
        assert run.reports()[0]["anomaly"] == "lost update"


def test_a_folder_of_logs_is_one_history(files, capfd):
    """Viper's logs, one file per client."""
    logs = files / "logs"
    logs.mkdir()
    (logs / "J1.log").write_text('{"value": [["w", 1, 5, true]]}\n')
    (logs / "J2.log").write_text('{"value": [["r", 1, 5, false]]}\n')
    (report,) = run_here(capfd, "-s", "ser", "-o", "json", "logs").reports()
    assert (report["verdict"], report["transactions"], report["sessions"]) == ("valid", 2, 2)


def test_own_spec_with_include(files, capfd):
    """A user's own file runs by the same engine; --include says where its parts are."""
    (files / "parts").mkdir()
    (files / "parts" / "mine.iso").write_text('include "adya.iso"\nlet dep = so | wr | ww\n')
    (files / "own.iso").write_text('spec own\ninclude "mine.iso"\nacyclic dep ; rw? as kept\n')
    missing = run_here(capfd, "--spec", "own.iso", "lost.txt")
    assert (missing.code, "mine.iso" in missing.err) == (2, True)
    run = run_here(capfd, "--spec", "own.iso", "--include", "parts", "-o", "json", "lost.txt")
    assert run.reports()[0]["violation"]["check"] == "kept"


def test_spec_errors_name_line_and_column(files, capfd):
    """A typo costs no reading: the place, the line with a caret, and a hint."""
    (files / "typo.iso").write_text('include "adya.iso"\nacyclic so | wx as a\n')
    run = run_here(capfd, "--spec", "typo.iso", "missing.txt")
    assert run.code == 2
    assert "typo.iso:2:14" in run.err
    assert "^" in run.err
    assert run.out == ""


def test_any_spec_runs(files, capfd):
    """What no fast engine takes runs relationally, and what that costs is said."""
    (files / "mine.iso").write_text(
        'include "adya.iso"\nrequire ww ; ww in ww as transitive\nnot empty wr | so as something\n'
    )
    run = run_here(capfd, "--spec", "mine.iso", "valid.txt")
    assert run.code == 0
    assert "this level is decided relationally" in " ".join(run.out.split())


@pytest.mark.slow
def test_odd_file_names(files):
    """Names with line breaks, markup, or bytes that are no UTF-8 are names like others."""
    names = [b"a b.txt", b"[bold]x.txt", b"caf\xe9.txt", b"new\nline.txt", b"-dash.txt"]
    paths = [os.fsencode(files) + b"/" + name for name in names]
    for path in paths:
        with open(path, "wb") as file:
            file.write(VALID.encode())
    run = run_there("--spec", "si", "-o", "json", *map(os.fsdecode, paths))
    assert run.code == 0, run.err
    assert [report["history"] for report in run.reports()] == [os.fsdecode(path) for path in paths]
    shown = run_there("--spec", "si", *map(os.fsdecode, paths))
    assert shown.code == 0, shown.err
    assert len(re.findall(r"^VALID", shown.out, re.M)) == len(names)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable_files(files, capfd):
    """A file that may not be read is an input error."""
    (files / "valid.txt").chmod(0)
    assert run_here(capfd, "--spec", "si", "valid.txt").code == 2


def test_unwritable_targets(files, capfd):
    """A folder that cannot be made stops the run before it begins; a file later does not."""
    (files / "taken").write_text("")
    assert run_here(capfd, "-s", "si", "--certificate", "taken/x", "valid.txt").code == 2
    run = run_here(capfd, "-s", "si", "--minimal", "taken/x.edn", "-o", "json", "lost.txt")
    assert run.code == 1
    assert "taken/x.edn" in run.reports()[0]["warnings"][0]


def test_a_warning_of_a_specification_is_told_once_with_its_line(files, capfd):
    """The report repeats it in one line, without the excerpt."""
    (files / "a.iso").write_text('include "adya.iso"\nacyclic so as c\n')
    run = run_here(capfd, "-s", "a.iso", "valid.txt")
    said = "check `c` cannot fail: `so` is an order\n"
    assert run.err == f"a.iso:2:1: warning: {said}  2 | acyclic so as c\n    | ^\n"
    assert f"  warning        a.iso:2:1: {said}" in run.out


@pytest.mark.slow
def test_a_closed_pipe_is_no_traceback(files):
    """``isocheck … | head -1`` ends quietly."""
    import subprocess
    import sys

    command = [sys.executable, "-P", "-m", "isolang.cli.main", "-s", "si", *["valid.txt"] * 30]
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT
    )
    child.stdout.readline()
    child.stdout.close()
    errors = child.stderr.read().decode()
    child.stderr.close()
    assert child.wait(timeout=60) in (0, 141)
    assert "Traceback" not in errors
    assert "Exception ignored" not in errors


@pytest.mark.slow
@pytest.mark.skipif(
    "ISOLANG_SANITIZED" in os.environ, reason="a sanitizer takes more memory than any cap"
)
def test_results_do_not_depend_on_jobs(files, capfd):
    """Several histories at a time give the same reports in the same order."""
    histories = ["lost.txt", "valid.txt", "missing.txt", "thin.txt", "broken.txt"]

    def reports(*extra):
        run = run_here(capfd, "-s", "si", "-s", "ser", "-o", "json", *extra, *histories)
        return run.code, [
            {**r, "seconds": None, "statistics": None, "limits": None} for r in run.reports()
        ]

    alone = reports()
    assert reports("--jobs", "3") == alone
    assert reports("--jobs", "2", "--timeout", "60", "--memory", "2000") == alone


def test_examples_of_usage_errors(files, capfd):
    """What went wrong and what to do, in two lines."""
    run = run_here(capfd, "statts", "valid.txt")
    assert run.code == 2
    assert "did you mean `isocheck stats`" in run.err
    run = run_here(capfd, "--spec", "ssi", "valid.txt")
    assert "did you mean" in run.err


def test_copying_a_history_keeps_its_verdict(files, capfd):
    """The name of the file plays no part."""
    shutil.copy(files / "lost.txt", files / "copy.log")
    assert run_here(capfd, "-s", "si", "copy.log").code == 1


@pytest.mark.slow
def test_all_kinds_of_anomalies(capfd, tmp_path):
    """Cycles stand beside reads that are wrong by themselves, in text and in JSON."""
    path = tmp_path / "h.edn"
    path.write_text(
        """{:type :ok, :process 0, :value [[:r :z 7]]}
{:type :ok, :process 1, :value [[:r :u nil] [:w :v 1]]}
{:type :ok, :process 2, :value [[:r :v nil] [:w :u 1]]}
"""
    )
    found = run_here(capfd, "--spec", "si", "--all", str(path))
    assert found.code == 1
    assert "thin-air read: 1 read of it; pl-2 forbids it" in found.out
    assert "write skew: in 1 strongly connected component" in found.out
    assert re.search(r"^  not +pl-2$", found.out, re.M)
    assert re.search(r"^  also not +ser, ", found.out, re.M)
    for more in ([], ["--timeout", "60"]):  # here, and in a process of its own
        (line,) = run_here(
            capfd, "--spec", "si", "--all", "-o", "json", *more, str(path)
        ).out.splitlines()
        kinds = [one["anomaly"] for one in json.loads(line)["findings"]["anomalies"]]
        assert kinds == ["thin-air read", "write skew"]


def test_the_violation_that_is_told_is_among_all(capfd, files):
    """Also where the search for all kinds came to others: the time may have ended it."""
    report = convert(json.loads(run_here(capfd, "-s", "si", "-o", "json", "lost.txt").out), Report)
    (added,) = _with_verdict(Findings(), report).anomalies
    assert (added.anomaly, added.violation) == (report.anomaly, report.violation)
    assert _with_verdict(Findings(anomalies=(added,)), report).anomalies == (added,)


def test_text_says_between_which_levels_a_history_stands(capfd):
    """Where that is found out at once; a large one is left to `isocheck levels`."""
    found = run_here(capfd, "--spec", "si", str(ROOT / "examples" / "on-call.edn"))
    assert "strongest satisfied: strong-si; weakest violated: pl-3" in found.out

"""What changes the meaning of a verdict is said in every form of output, the shortest too."""

import json
from xml.etree import ElementTree

import pytest
from support.cli import run_here

OPERATIONS = """\
{:type :invoke, :process 0, :time 0, :f :txn, :value [[:w :x 1]]}
{:type :ok, :process 0, :time 10, :f :txn, :value [[:w :x 1]]}
{:type :invoke, :process 1, :time 20, :f :txn, :value [[:r :x nil]]}
{:type :ok, :process 1, :time 30, :f :txn, :value [[:r :x 1]]}
"""
TORN = OPERATIONS + "{:type :invoke, :process 2, :ti"
SKIPPED = OPERATIONS + "{:type :invoke, :process 2, :time 40, :f :backup, :value nil}\n"
OVERLAPPING = (
    OPERATIONS.replace(":process 1", ":process 0").replace(
        "{:type :ok, :process 0, :time 10, :f :txn, :value [[:w :x 1]]}\n", ""
    )
    + "{:type :ok, :process 0, :time 40, :f :txn, :value [[:w :x 1]]}\n"
)
ALONE = "".join(OPERATIONS.splitlines(keepends=True)[:2])
LABEL = 'spec own\ninclude "adya.iso"\nacyclic so | wr | ww | rw | (wr ; [label "pay"]) as own\n'

CASES = {
    "torn": (TORN, [], "si", "torn after line 4"),
    "skipped": (SKIPPED, [], "si", "1 operation that is not a transaction (:f :backup)"),
    "nothing observed": (ALONE, [], "si", "nothing was observed"),
    "not certified": (OPERATIONS, ["--no-certify"], "si", "not certified"),
    "reading": (OPERATIONS, ["--unwritten-initial"], "si", "read with unwritten_initial"),
    "a label": (OPERATIONS, [], "own.iso", 'no transaction has the label "pay"'),
    "moments": (OPERATIONS, [], "consistent-read-by-statement", "no operation has times"),
}


@pytest.fixture(params=CASES)
def case(request, tmp_path, monkeypatch):
    """A history whose valid verdict means less than it says; how to judge it; what to say."""
    monkeypatch.chdir(tmp_path)
    text, options, spec, said = CASES[request.param]
    (tmp_path / "h.edn").write_text(text)
    (tmp_path / "own.iso").write_text(LABEL)
    return [*options, "--spec", spec, "h.edn"], said


@pytest.mark.parametrize(
    "form", [[], ["--brief"], ["-q"], *(["-o", o] for o in ("json", "edn", "markdown", "junit",
     "sarif")), ["-o", "json", "--brief"]], ids=" ".join,
)  # fmt: skip
def test_every_form_says_what_changes_the_meaning(case, capfd, form):
    """A job that is green says why that means less."""
    arguments, said = case
    found = run_here(capfd, *arguments, *form)
    assert found.code == 0, found.err
    shown = (found.err if form == ["-q"] else found.out).replace("\\", "")
    shown = " ".join(shown.split())
    unwritten = "no transaction wrote"
    longer = {"not certified": "certified no", "read with unwritten_initial": unwritten}
    assert (said if form else longer.get(said, said)).lower() in shown.lower()


def test_where_it_stands_in_test_results(tmp_path, capfd, monkeypatch):
    """In JUnit's output of the case, as a note in SARIF, and in one key of JSON."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "torn.edn").write_text(TORN)
    (tmp_path / "whole.edn").write_text(OPERATIONS)
    files = ["--spec", "si", "torn.edn", "whole.edn"]
    (suite,) = ElementTree.fromstring(run_here(capfd, *files, "-o", "junit").out)
    assert [case.findtext("system-out", "") for case in suite] == [
        "the log is torn after line 4: line 5 is incomplete and is ignored",
        "",
    ]
    (run,) = json.loads(run_here(capfd, *files, "-o", "sarif").out)["runs"]
    (result,) = run["results"]
    assert (result["level"], result["ruleId"]) == ("note", "isocheck/caveat")
    lines = run_here(capfd, *files, "-o", "json").out.splitlines()
    assert [len(json.loads(line)["caveats"]) for line in lines] == [1, 0]


def test_levels_and_quiet_say_it_once(tmp_path, capfd, monkeypatch):
    """Several levels of one history share what is said of it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "h.edn").write_text(TORN)
    found = run_here(capfd, "-q", "-s", "si", "-s", "ser", "h.edn")
    assert (found.out, found.err) == ("", "h.edn: the log is torn after line 4\n")
    assert "torn after line 4" in run_here(capfd, "levels", "h.edn").out
    assert "torn after line 4" in run_here(capfd, "levels", "h.edn", "-o", "json").out
    assert "torn after line 4" in run_here(capfd, "stats", "h.edn").out


# --- Markdown ---


def test_markdown_has_every_verdict_and_each_begins_a_paragraph(tmp_path, capfd, monkeypatch):
    """Also a file that cannot be read, and a verdict that a limit ended."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "h.edn").write_text(OPERATIONS)
    (tmp_path / "bad.edn").write_text("{:type :ok, :value [[:z :x 1]]}\n")
    found = run_here(capfd, "-s", "si", "-o", "markdown", "h.edn", "gone.edn", "bad.edn", "h.edn")
    paragraphs = found.out.split("\n\n")
    heads = [part for part in paragraphs if part.startswith("**")]
    assert [head.split()[0] for head in heads] == [
        "**VALID**", "**ERROR**", "**ERROR**", "**VALID**",
    ]  # fmt: skip
    assert "gone.edn: cannot read the file" in found.out
    found = run_here(capfd, "-s", "si", "-o", "markdown", "--timeout", "0.00001", "h.edn")
    assert found.code == 3
    assert found.out.startswith("**UNKNOWN** `h.edn` si\n\ntimeout:")


def test_markdown_lists_the_cases_of_a_lost_update(tmp_path, capfd, monkeypatch):
    """As the long text does: which order was assumed, and what contradicts it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lost.edn").write_text(
        "{:type :ok, :process 0, :f :txn, :value [[:r x nil] [:w x 1]]}\n"
        "{:type :ok, :process 1, :f :txn, :value [[:r x nil] [:w x 2]]}\n"
    )
    found = run_here(capfd, "-s", "si", "-o", "markdown", "lost.edn").out
    assert [line for line in found.splitlines() if line.lstrip().startswith("* ")] == [
        "* T1 and T2 wrote x in either order:",
        "  * T1 wrote x = 1 before T2 wrote x = 2:",
        "    * T1 wrote x = 1 before T2 wrote x = 2 (assumed)",
        "    * T2 read x = nil, the initial value, but T1 had overwritten it",
        "  * T2 wrote x = 2 before T1 wrote x = 1:",
        "    * T2 wrote x = 2 before T1 wrote x = 1 (assumed)",
        "    * T1 read x = nil, the initial value, but T2 had overwritten it",
    ]


def test_a_torn_completion_of_a_log_that_is_not_whole(tmp_path, capfd, monkeypatch):
    """A torn completion is not dropped where some process completes what it has not invoked.

    Process 2's write is known from its completion alone: without it, the read is of nobody.
    """
    monkeypatch.chdir(tmp_path)
    invoked = "{:type :invoke, :process 3, :f :txn, :value [[:w :y 1]]}\n"
    read = "{:type :ok, :process 1, :f :txn, :value [[:r :x 1]]}\n"
    (tmp_path / "h.edn").write_text(invoked * 3 + read + "{:type :ok, :process 2, :f :txn, :va")
    found = run_here(capfd, "--spec", "si", "h.edn")
    assert found.code == 2
    assert "h.edn: line 5: expected a value" in found.out


def test_a_torn_completion_without_its_invocation(tmp_path, capfd, monkeypatch):
    """It is the only trace of its transaction, so it is not dropped."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "h.edn").write_text(OPERATIONS + "{:type :ok, :process 7, :f :txn, :value [[:w")
    found = run_here(capfd, "--spec", "si", "h.edn")
    assert found.code == 2
    assert "h.edn: line 5: expected" in found.out


def test_a_torn_line_after_operations_that_overlap_in_a_process(tmp_path, capfd, monkeypatch):
    """Each completion has its invocation, although two operations of a process were open."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "h.edn").write_text(OVERLAPPING + "{:type :invoke, :process 2, :ti")
    found = run_here(capfd, "--spec", "si", "h.edn")
    assert found.code != 2
    assert "is incomplete and is ignored" in " ".join(found.out.split())

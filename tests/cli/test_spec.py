"""``isocheck spec``: list, show, explain, lint and format, as users see them.

`tests/golden_specs` has bad specifications and, beside each, what lint says of it.
"""

from __future__ import annotations

import json

import pytest
from support.cli import run_here
from support.paths import TESTS

from isolang.cli.spec_explain import ENGINES
from isolang.language.library import SPECS, list_library
from isolang.language.load import load_spec

GOLDEN = TESTS / "golden_specs"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_list(capfd):
    """Each level and alias in one line: name, style, class, what it is."""
    run = run_here(capfd, "spec", "list")
    assert run.code == 0
    head, *lines = run.out.splitlines()
    assert head.split() == ["name", "style", "class", "what", "it", "is"]
    assert [line.split()[0] for line in lines] == [entry.name for entry in list_library()]
    (si,) = (line for line in lines if line.startswith("si "))
    assert si.split("  ")[-1].strip() == "snapshot isolation, with session order"
    assert "event graph" in si
    assert "dependencies" in si
    assert all(len(line) < 140 for line in lines)


def test_list_as_json(capfd):
    rows = {
        row["name"]: row for row in json.loads(run_here(capfd, "spec", "list", "-o", "json").out)
    }
    assert rows["serializable"] == {
        "name": "serializable",
        "style": "dependencies",
        "class": "event graph",
        "title": "serializability, as Jepsen means it",
        "alias_of": "ser-nosession",
    }
    assert {row["class"] for row in rows.values()} <= {*ENGINES, "-"}
    assert rows["si-co"]["style"] == "commit order"


def test_show(capfd, folder):
    """The text as it stands in the library, or in a file."""
    assert run_here(capfd, "spec", "show", "SI").out == (SPECS / "si.iso").read_text()
    (folder / "a.iso").write_text('include "si.iso"\n')
    assert run_here(capfd, "spec", "show", "a.iso").out == 'include "si.iso"\n'
    unknown = run_here(capfd, "spec", "show", "siser")
    assert unknown.code == 2
    assert "a level of the library has this name" in unknown.err


def test_show_expanded(capfd):
    """All texts, and the checks without definitions, which mean the same when read again."""
    shown = run_here(capfd, "spec", "show", "cc-adya", "--expand").out
    assert "// ---- library:prelude.iso ----" in shown
    assert "\nirreflexive (so | wr)^+ ; rw as causal " in shown
    for name in ("cc-adya", "si-co", "psi-vis", "rc"):
        report = json.loads(run_here(capfd, "spec", "show", name, "-o", "json").out)
        include = 'include "prelude.iso"\n'
        rw = 'include "adya.iso"\n' if "ww" in " ".join(report["exists"]) else include
        exists = [e for e in report["exists"] if not e.startswith(("exists rf", "exists ww"))]
        again = load_spec("\n".join([rw, *exists, *report["checks"]]) + "\n")
        first = load_spec(name)
        assert [(c.kind, c.expr, c.bound) for c in again.checks] == [
            (c.kind, c.expr, c.bound) for c in first.checks
        ]
        assert set(again.exists) == set(first.exists)


def test_explain_an_event_graph(capfd):
    run = run_here(capfd, "spec", "explain", "si")
    assert run.code == 0
    for line in (
        "SI: snapshot isolation, with session order",
        "  class    event graph",
        "  uses     reads, the version order and sessions",
        "  check    acyclic (so | wr | ww) ; rw? as SI",
        "             q0 -> q1  so | wr | ww",
        "             q1 -> q0  rw | nothing",
    ):
        assert line in run.out.splitlines()


def test_explain_says_what_failed_and_what_is_faster(capfd):
    run = run_here(capfd, "spec", "explain", "si-co")
    assert run.code == 0
    text = " ".join(run.out.split())
    assert "no event graph: `require … in …` compares two relations" in text
    assert "decided as an event graph: a commit order meets these axioms iff" in text
    assert "decided prefix+conflict: no cycle q0 -> q1 so | wr | ww" in text
    assert "co (an order)" in text


def test_explain_what_only_the_relational_route_takes(capfd, folder):
    """The construct that keeps it from an event graph, and what would be one."""
    (folder / "a.iso").write_text('include "adya.iso"\nacyclic for x: rw[x] ; ww[x] as c\n')
    text = " ".join(run_here(capfd, "spec", "explain", "a.iso").out.split())
    assert "class relational" in text
    assert "joins steps on the same key `x`" in text
    assert "faster an event graph would decide it after this change: without keys" in text


def test_explain_return_paths(capfd):
    text = " ".join(run_here(capfd, "spec", "explain", "rc").out.split())
    assert "class saturation" in text
    assert "no anti-dependency S -> B where S read from B by an earlier operation" in text
    text = " ".join(run_here(capfd, "spec", "explain", "psi").out.split())
    assert "class reachability" in text
    assert "PSI: no anti-dependency S -> B with a return path from B to S (q0 to q0)" in text


def test_explain_every_level(capfd):
    for entry in list_library():
        if not entry.alias_of and not entry.name.endswith("-nosession"):
            run = run_here(capfd, "spec", "explain", entry.name)
            assert run.code == 0, run.err
            assert "class" in run.out
            assert all(len(line) <= 140 for line in run.out.splitlines())


def test_explain_as_json(capfd):
    report = json.loads(run_here(capfd, "spec", "explain", "ser", "-o", "json").out)
    assert report["class"] == "event graph"
    assert report["engine"] == ENGINES["event graph"]
    assert report["uses"] == {
        "reads_from": True,
        "version_order": True,
        "sessions": True,
        "real_time": False,
    }
    (check,) = report["checks"]
    assert check["event_graph"]["states"] == 1
    assert check["why_not"] == ""
    assert report["same_level_faster"] is None


def test_explain_of_what_is_wrong(capfd, folder):
    (folder / "a.iso").write_text("acyclic so\n")
    run = run_here(capfd, "spec", "explain", "a.iso")
    assert run.code == 2
    assert "a.iso:1:11: the check has no name" in run.err
    (folder / "b.iso").write_text("let a = so\n")
    assert "the specification has no check" in run_here(capfd, "spec", "explain", "b.iso").err


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.iso")), ids=lambda path: path.stem)
def test_lint_golden(capfd, monkeypatch, path):
    """What lint says, whole: place, source line, caret and hint. Without the search."""
    monkeypatch.chdir(GOLDEN)
    run = run_here(capfd, "spec", "lint", "--seconds", "0", path.name)
    assert run.code == 1
    assert run.err == ""
    assert run.out == path.with_suffix(".txt").read_text(encoding="utf-8")


def test_the_golden_files_belong_together():
    assert {p.stem for p in GOLDEN.glob("*.iso")} == {p.stem for p in GOLDEN.glob("*.txt")}


def test_examples_of_an_included_file_are_its_own(capfd, folder):
    """They are not looked at; those of the file itself are, and counted."""
    (folder / "base.iso").write_text('include "si.iso"\nforbids "w(x,1)"\n')
    (folder / "a.iso").write_text('include "base.iso"\nallows "w(x,1)"\nallows "r(x,nil)"\n')
    run = run_here(capfd, "spec", "lint", "--seconds", "0", "-o", "json", "a.iso", "base.iso")
    first, second = json.loads(run.out)
    assert (first["findings"], first["examples"]) == ([], 2)
    assert [(f["severity"], f["line"]) for f in second["findings"]] == [("error", 2)]
    assert second["examples"] == 0
    assert run.code == 1


@pytest.mark.slow
def test_lint_finds_nothing_in_the_library(capfd):
    """Every check can fail, and something satisfies each level: the search ends at once."""
    run = run_here(capfd, "spec", "lint", *(entry.name for entry in list_library()))
    assert run.code == 0, run.out
    assert all(line.endswith(": nothing found") for line in run.out.splitlines())


def test_lint_names_a_level_that_no_second_writer_satisfies(capfd, folder):
    (folder / "a.iso").write_text('include "adya.iso"\nacyclic wr as c\nempty ww \\ init as d\n')
    run = run_here(capfd, "spec", "lint", "--seconds", "0.4", "a.iso")
    assert run.code == 1
    said = "warning: no history in which two transactions write the same key satisfies this check\n"
    assert said in run.out


def test_lint_says_what_was_searched(capfd, folder):
    (folder / "a.iso").write_text('include "adya.iso"\nacyclic so & wr as c\nacyclic wr as d\n')
    (folder / "b.iso").write_text('include "adya.iso"\nacyclic so? as c\n')
    run = run_here(capfd, "spec", "lint", "--seconds", "30", "a.iso", "b.iso")
    assert run.code == 1
    assert "a.iso:2:1: warning: check `c` cannot fail\n" in run.out
    assert "check `d` cannot fail" not in run.out
    assert "b.iso:2:1: warning: no history satisfies this specification\n" in run.out
    kind = (
        "of committed transactions, which read a key at most twice and write it at most once; "
        "registers and lists, each value written once"
    )
    searched = f"searched all histories of up to 3 transactions and 2 keys, {kind}\n"
    assert f"  hint: no such history violates it; {searched}" in run.out
    assert run.out.count("searched") == 2


@pytest.mark.parametrize(
    "check",
    [
        "empty for x: (rf[x] ; po ; rf[x]^-1) \\ id",
        "irreflexive for x: wr[x]^-1 ; ww[x] ; wr[x]",
    ],
)
def test_lint_looks_at_two_reads_of_one_key(capfd, folder, check):
    """In one transaction, of two versions: then the check can fail, as the example says."""
    (folder / "a.iso").write_text(
        f'include "adya.iso"\nacyclic wr | ww as g\n{check} as c\n'
        'forbids "w(x,1) || w(x,2) || r(x,1) r(x,2)"\n'
    )
    run = run_here(capfd, "spec", "lint", "a.iso")
    assert (run.code, run.out) == (0, "a.iso: nothing found; 1 example as stated\n")


def test_lint_believes_an_example_that_is_larger_than_the_search(capfd, folder):
    """What writes three keys is there to be seen."""
    check = (
        'include "adya.iso"\nacyclic wr | ww as g\nempty so ; [W["x"]] ; [W["y"]] ; [W["z"]] as c\n'
    )
    text = "w(u,1) -> w(x,1) w(y,1) w(z,1)"
    (folder / "a.iso").write_text(check)
    (folder / "b.iso").write_text(f'{check}forbids "{text}"\n')
    run = run_here(capfd, "spec", "lint", "a.iso", "b.iso")
    assert "a.iso:3:1: warning: check `c` cannot fail\n" in run.out
    assert "b.iso: nothing found; 1 example as stated\n" in run.out


def test_lint_says_what_small_histories_lack(capfd, folder):
    """Without times of operations, and with one operation a statement, nobody says "cannot"."""
    (folder / "a.iso").write_text(
        'include "adya.iso"\nacyclic so | wr | ww | rw as s\nirreflexive late ; done as c\n'
        "empty (statement & statement^-1) \\ id as d\n"
    )
    run = run_here(capfd, "spec", "lint", "a.iso")
    assert (run.code, run.out) == (0, "a.iso: nothing found\n")
    said = "note: perhaps check `c` cannot fail: the search covered all histories of up to 3 "
    assert said in run.err
    assert "only the pairs of `done`, `late` that follow from `rt`; each of their " in run.err
    assert "is one operation, so `statement` is empty\nnote: perhaps check `d` " in run.err


def test_lint_as_json(capfd, folder):
    (folder / "a.iso").write_text("acyclic wx as c\n")
    (one,) = json.loads(run_here(capfd, "spec", "lint", "-o", "json", "a.iso").out)
    (finding,) = one["findings"]
    assert (finding["severity"], finding["line"], finding["column"]) == ("error", 1, 9)
    assert finding["message"].startswith("a.iso:1:9: unknown name `wx`")


def test_lint_as_sarif(capfd, folder):
    """What code scanners take: the place, and the text without it."""
    (folder / "a b.iso").write_text("acyclic wx as c\n")
    (run,) = json.loads(run_here(capfd, "spec", "lint", "-o", "sarif", "a b.iso").out)["runs"]
    (result,) = run["results"]
    assert result["level"] == "error"
    assert result["message"]["text"].startswith("unknown name `wx`")
    (location,) = result["locations"]
    assert location["physicalLocation"] == {
        "artifactLocation": {"uri": "a%20b.iso"},
        "region": {"startLine": 1, "startColumn": 9},
    }
    assert result["ruleId"] in [rule["id"] for rule in run["tool"]["driver"]["rules"]]


def test_lint_of_a_missing_file_is_an_input_error(capfd, folder):
    run = run_here(capfd, "spec", "lint", "a.iso")
    assert run.code == 2
    assert "no such file" in run.err


UGLY = "// c\nacyclic   so|rt  as c // d\n"
NICE = "// c\nacyclic so | rt as c  // d\n"


def test_format_in_place(capfd, folder):
    path = folder / "a.iso"
    path.write_text(UGLY)
    path.chmod(0o640)
    run = run_here(capfd, "spec", "format", "a.iso")
    assert (run.code, run.out, run.err) == (0, "", "a.iso: reformatted\n")
    assert path.read_text() == NICE
    assert path.stat().st_mode & 0o777 == 0o640
    assert [p.name for p in folder.iterdir()] == ["a.iso"]
    assert run_here(capfd, "spec", "format", "a.iso").err == ""


def test_format_check_and_diff_change_nothing(capfd, folder):
    (folder / "a.iso").write_text(UGLY)
    (folder / "b.iso").write_text(NICE)
    run = run_here(capfd, "spec", "format", "--check", "a.iso", "b.iso")
    assert (run.code, run.err) == (1, "a.iso: would be reformatted\n")
    assert run_here(capfd, "spec", "format", "--check", "b.iso").code == 0
    run = run_here(capfd, "spec", "format", "--diff", "a.iso", "b.iso")
    assert run.code == 0
    assert "-acyclic   so|rt  as c // d\n+acyclic so | rt as c  // d\n" in run.out
    assert (folder / "a.iso").read_text() == UGLY


def test_format_of_standard_input(capfd, monkeypatch):
    import io

    monkeypatch.setattr("sys.stdin", io.StringIO(UGLY))
    assert run_here(capfd, "spec", "format", "-").out == NICE


def test_format_touches_no_file_with_an_error(capfd, folder):
    (folder / "a.iso").write_text("acyclic so\n")
    (folder / "b.iso").write_text(UGLY)
    run = run_here(capfd, "spec", "format", "a.iso", "b.iso", "c.iso")
    assert run.code == 2
    assert "a.iso:1:11: the check has no name" in run.err
    assert "c.iso: cannot be read" in run.err
    assert (folder / "a.iso").read_text() == "acyclic so\n"
    assert (folder / "b.iso").read_text() == NICE


def test_without_a_command_the_help_is_shown(capfd):
    run = run_here(capfd, "spec")
    assert run.code == 2
    assert "Usage: isocheck spec" in run.err
    assert run_here(capfd, "spec", "lnt").code == 2


def test_lint_says_perhaps_where_the_clock_ran_out(capfd, folder, monkeypatch):
    """Only who has looked at all histories of three transactions may say that it cannot fail."""
    from isolang.comparison import search

    (folder / "a.iso").write_text(
        'include "adya.iso"\nempty (so & wr) & (so & wr)^-1 as c\nacyclic wr as d\n'
    )
    looked = search._DifferenceSearch.search

    def slow(self, size):
        if size == 3:
            raise TimeoutError
        looked(self, size)

    monkeypatch.setattr(search._DifferenceSearch, "search", slow)
    run = run_here(capfd, "spec", "lint", "a.iso")
    assert run.code == 0
    assert run.out == "a.iso: nothing found\n"
    said = "note: perhaps check `c` cannot fail: the search covered all histories of up to 2"
    assert said in run.err


def test_lint_finds_a_serial_history_that_is_refused(capfd, folder):
    """The direction of `rw` is easily mistaken."""
    (folder / "a.iso").write_text('include "adya.iso"\nacyclic so | wr | ww | rw^-1 as c\n')
    run = run_here(capfd, "spec", "lint", "a.iso")
    assert run.code == 1
    said = "a.iso:2:1: warning: this serial history is forbidden: r(x,nil) @0-1 -> w(x,2) @2-5\n"
    assert said in run.out

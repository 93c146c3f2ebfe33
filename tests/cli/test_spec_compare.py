"""``isocheck spec compare``, ``place`` and ``lattice``, and ``levels --spec``, as users see it."""

from __future__ import annotations

import json

import jsonschema
import pytest
from support.cli import run_here
from support.paths import ROOT

from isolang.api import check, load_history
from isolang.cli.spec_compare import ProofReport
from isolang.cli.spec_place import Neighbour, PlaceReport, place_line
from isolang.comparison.lattice import library_levels


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def valid(command, text):
    """What a command printed as JSON, if its schema takes it."""
    found = json.loads(text)
    schema = json.loads((ROOT / f"docs/schema/{command}.json").read_text())
    jsonschema.validate(found, schema, cls=jsonschema.Draft202012Validator)
    return found


def compared(capfd, *arguments):
    run = run_here(capfd, "spec", "compare", "-o", "json", *arguments)
    return run.code, valid("spec-compare", run.out)


@pytest.mark.parametrize(
    ("a", "b", "relation"),
    [
        ("ser", "si", "stronger"),
        ("si", "ser", "weaker"),
        ("si-co", "si-vis", "equal"),
        ("psi", "pc", "incomparable"),
    ],
)
def test_each_half_is_proved_or_witnessed(folder, capfd, a, b, relation):
    """And the witnesses, read again from what is printed, are judged as it says."""
    code, found = compared(capfd, a, b)
    assert (code, found["relation"]) == (0, relation)
    assert len(found["proof"]) + len(found["witnesses"]) == 2
    assert all(one["argument"] for one in found["proof"])
    for one in found["witnesses"]:
        (folder / "w.edn").write_text(one["history"])
        history = load_history(folder / "w.edn")
        assert check(history, one["allowed_by"]).outcome == "valid"
        assert check(history, one["forbidden_by"]).outcome == "invalid"
        assert history.counts()["transactions"] == one["transactions"]
        assert history.counts()["operations"] == one["operations"]
        assert one["certified"]
        assert one["smallest"]


def test_the_text_has_the_proof_the_table_and_the_reason(folder, capfd):
    run = run_here(capfd, "spec", "compare", "ser", "si", "--save", "out")
    assert run.code == 0
    assert "ser is stronger than si" in run.out
    assert "ser implies si, for histories of any size" in run.out
    assert "word that violates `acyclic so | wr | ww | rw`" in run.out
    assert "    session 1  T1  r(x,nil) w(y,1)" in run.out
    assert "write skew" in run.out
    assert "T1 -rw x-> T2" in run.out
    (edn,) = (folder / "out").glob("*.edn")
    assert edn.read_text().strip().replace("\n", "\n    ") in run.out
    assert "write skew" in edn.with_suffix(".html").read_text()


def compare_only_with(monkeypatch, *names):
    """Let the library have these levels alone, as each pair with one of all takes seconds."""
    some = {name: one for name, one in library_levels().items() if name in names}
    assert len(some) == len(names)
    monkeypatch.setattr("isolang.comparison.lattice.library_levels", lambda: some)


FRESH = """spec ro-fresh-si
include "adya.iso"
let fresh = rt ; [T \\ W]
acyclic (so | fresh | wr | ww) ; rw? as snapshot
"""


@pytest.mark.parametrize(
    ("a", "b"), [("mine.iso", "si"), ("strong-si", "mine.iso"), ("mine.iso", "psi")]
)
def test_what_has_more_alternatives_is_stronger(folder, capfd, a, b):
    r"""The proof needs no history, although no automaton knows `[T \ W]`."""
    (folder / "mine.iso").write_text(FRESH)
    code, found = compared(capfd, a, b)
    assert (code, found["relation"]) == (0, "stronger")
    (proof,) = found["proof"]
    assert (proof["stronger"].lower(), proof["weaker"].lower()) == (a, b)


def test_the_proof_comes_before_the_search(folder, capfd, monkeypatch):
    """Nothing is searched for the direction that is proved, and no time is spent."""
    (folder / "mine.iso").write_text(FRESH)
    code, found = compared(capfd, "mine.iso", "si", "--seconds", "0")
    assert (code, found["relation"], found["searched"]) == (3, "unknown", [None, 0])
    assert [one["stronger"] for one in found["proof"]] == ["mine.iso"]


@pytest.mark.parametrize("searched", [0, 1])
def test_a_size_that_says_nothing_is_no_bound(folder, capfd, monkeypatch, searched):
    """All histories of one transaction are alike: that was no comparison."""
    compare_only_with(monkeypatch, "ser", "pl-2", "pl-1")
    (folder / "a.iso").write_text('include "adya.iso"\nacyclic wr | ww as c\nacyclic so as d\n')
    (folder / "b.iso").write_text(
        'include "adya.iso"\nacyclic wr | ww as c\nempty (wr & ww) & (wr & ww)^-1 as d\n'
    )
    bounds = ("--transactions", "1") if searched else ("--seconds", "0")
    code, found = compared(capfd, "a.iso", "b.iso", *bounds)
    assert (code, found["bounded"], found["up_to"]) == (3, None, None)
    for arguments in (("compare", "a.iso", "b.iso"), ("place", "b.iso")):
        run = run_here(capfd, "spec", *arguments, *bounds)
        assert run.code == 3
        assert f"up to {searched} transaction" not in run.out
        assert "unknown" in run.out


def test_what_is_not_found_out_says_how_far_it_was_looked(folder, capfd):
    """A proof by automata does not exist here; that nothing tells them apart is no proof."""
    (folder / "a.iso").write_text('include "adya.iso"\nacyclic wr | ww as c\nacyclic so as d\n')
    (folder / "b.iso").write_text(
        'include "adya.iso"\nacyclic wr | ww as c\nempty (wr & ww) & (wr & ww)^-1 as d\n'
    )
    code, found = compared(capfd, "a.iso", "b.iso", "--transactions", "2", "--keys", "2")
    assert (code, found["relation"]) == (3, "unknown")
    assert (found["bounded"], found["up_to"], found["one_at_a_time"]) == ("equal", 2, False)
    assert found["searched"] == [2, None]
    run = run_here(capfd, "spec", "compare", "a.iso", "b.iso", "--transactions", "2", "--keys", "2")
    assert run.out.startswith("a.iso and b.iso are equal up to 2 transactions\n")
    assert "on all histories of up to 2 transactions and 2 keys (the limit is 2" in run.out


def test_a_bounded_answer_is_part_of_the_headline(folder, capfd):
    """One direction has a history, the other one neither that nor a proof."""
    (folder / "a.iso").write_text('include "adya.iso"\nacyclic wr | ww as c\n')
    (folder / "b.iso").write_text('include "adya.iso"\nempty (wr & ww) & (wr & ww)^-1 as d\n')
    code, found = compared(capfd, "a.iso", "b.iso", "--transactions", "2", "--keys", "2")
    assert (code, found["relation"], found["bounded"], found["up_to"]) == (
        3, "unknown", "stronger", 2,
    )  # fmt: skip
    run = run_here(capfd, "spec", "compare", "b.iso", "a.iso", "--transactions", "2", "--keys", "2")
    assert run.out.startswith("b.iso is weaker than a.iso up to 2 transactions\n")
    run = run_here(capfd, "spec", "compare", "b.iso", "a.iso", "--seconds", "0")
    assert run.out.startswith("how b.iso and a.iso compare is unknown\n")


@pytest.mark.parametrize(
    ("a", "b", "relation"),
    [
        ("sser", "sser-nosession", "equal"),
        ("cc", "strong-pl-2-nosession", "incomparable"),
        ("pl-fcv", "si", "incomparable"),
        ("strong-partition-si-nosession", "strong-partition-si", "equal"),
    ],
)
def test_sessions_do_one_thing_at_a_time_where_levels_are_compared(folder, capfd, a, b, relation):
    """Else a session that overlaps tells them apart, which no client makes and EDN cannot say."""
    code, found = compared(capfd, a, b)
    assert (code, found["relation"]) == (0, relation)
    assert all(one["history"] for one in found["witnesses"])
    assert found["one_at_a_time"] == (relation == "equal")
    text = run_here(capfd, "spec", "compare", a, b).out
    assert (", if the transactions of a session do not overlap in time\n" in text) == (
        relation == "equal"
    )


def test_what_edn_refuses_is_still_answered(folder, capfd):
    """With --overlap there is such a history; the answer has it as a table, and says why no EDN."""
    code, found = compared(capfd, "sser", "sser-nosession", "--overlap")
    assert (code, found["relation"], found["one_at_a_time"]) == (0, "stronger", False)
    (witness,) = found["witnesses"]
    assert witness["history"] is None
    assert "a process in EDN does one thing at a time" in witness["not_written"]
    assert witness["shown"] == "w(x,1) @0-5 -> r(x,nil) @0-5"
    run = run_here(capfd, "spec", "compare", "sser", "sser-nosession", "--overlap", "--save", "out")
    assert run.code == 0
    assert "not shown as EDN: " in run.out
    assert ".edn is not written: " in run.err
    assert [path.suffix for path in (folder / "out").iterdir()] == [".html"]


def test_a_mistake_names_the_specification(folder, capfd):
    run = run_here(capfd, "spec", "compare", "ser", "sre")
    assert run.code == 2
    assert "did you mean" in run.err


@pytest.mark.slow
def test_a_level_that_the_library_has_is_named(folder, capfd):
    (folder / "mine.iso").write_text('include "adya.iso"\nacyclic (init | wr | ww) ; rw? as c\n')
    run = run_here(capfd, "spec", "place", "mine.iso")
    assert run.code == 0
    assert run.out.startswith("mine is si-nosession (also called si-co-nosession")


@pytest.mark.slow
def test_the_place_of_another_level_has_what_tells_it_from_its_neighbours(
    folder, capfd, monkeypatch
):
    compare_only_with(
        monkeypatch, "ser", "si", "update-atomic", "cc", "pl-cs", "strong-session-pl-2", "pl-1"
    )
    (folder / "mine.iso").write_text(
        'include "adya.iso"\nacyclic so | wr | ww as c\nirreflexive for x: rw[x] ; ww[x] as d\n'
    )
    run = run_here(capfd, "spec", "place", "mine.iso")
    above, below = "update-atomic", "pl-cs, strong-session-pl-2"
    assert f"mine is weaker than {above}, and stronger than {below}" in run.out
    assert f"mine does not imply {above}: mine allows this, {above} forbids it" in run.out
    assert "pl-cs does not imply mine" in run.out
    found = valid("spec-place", run_here(capfd, "spec", "place", "-o", "json", "mine.iso").out)
    assert [one["name"] for one in found["above"]] == ["update-atomic"]
    assert found["below"][0]["witness"]["allowed_by"] == "pl-cs"


@pytest.mark.parametrize(
    ("above", "below", "unknown", "said"),
    [
        ("", "b", "", "mine is stronger than b, and no level of the library is stronger than mine"),
        ("a", "", "", "mine is weaker than a, and no level of the library is weaker than mine"),
        ("", "", "", "no level of the library is stronger or weaker than mine"),
        ("", "", "c", "no level of the library is known to be stronger or weaker than mine"),
    ],
)
def test_a_place_at_an_end_of_the_lattice_is_a_sentence(above, below, unknown, said):
    proof = ProofReport(stronger="", weaker="", argument=(), one_at_a_time=False)
    nearest = {
        "above": tuple(Neighbour(name=one, proof=proof, witness=None) for one in above),
        "below": tuple(Neighbour(name=one, proof=proof, witness=None) for one in below),
    }
    place = PlaceReport(
        name="mine",
        equal=(),
        bounded=(),
        one_at_a_time=False,
        unknown=tuple(unknown),
        lacking=(),
        seconds=0,
        **nearest,
    )
    assert place_line(place) == said


def test_a_place_uses_what_is_known_up_to_a_size(folder, capfd, monkeypatch):
    """That a level has no lost step is no proof, but all small histories say that it is PL-2."""
    compare_only_with(monkeypatch, "ser", "pl-3", "pl-2", "pl-1")
    (folder / "mine.iso").write_text(
        'include "adya.iso"\nacyclic wr | ww as c\nempty (wr & ww) & (wr & ww)^-1 as d\n'
    )
    arguments = ("mine.iso", "--transactions", "2", "--keys", "2")
    run = run_here(capfd, "spec", "place", *arguments)
    assert run.code == 3
    assert run.out.splitlines()[0] == (
        "mine is stronger than pl-2, and no level of the library is known to be stronger than "
        "mine; on histories of up to 2 transactions it is equal to pl-2"
    )
    found = valid("spec-place", run_here(capfd, "spec", "place", "-o", "json", *arguments).out)
    assert {"name": "pl-2", "relation": "equal", "up_to": 2} in found["bounded"]
    assert found["unknown"] == []


@pytest.mark.slow
def test_a_place_with_real_time_and_no_sessions_is_found(folder, capfd):
    (folder / "mine.iso").write_text('include "adya.iso"\nacyclic rt | wr | ww | rw as c\n')
    found = valid("spec-place", run_here(capfd, "spec", "place", "-o", "json", "mine.iso").out)
    assert {"sser", "sser-nosession"} <= set(found["equal"])
    assert found["one_at_a_time"]
    run = run_here(capfd, "spec", "place", "mine.iso", "--overlap")
    assert run.out.startswith("mine is sser-nosession (also called sser-co-nosession, ")
    (folder / "w.edn").write_text(
        "{:type :invoke :f :txn :process 0 :value [[:w 0 1]]}\n"
        "{:type :ok :f :txn :process 0 :value [[:w 0 1]]}\n"
    )
    run = run_here(capfd, "levels", "--spec", "mine.iso", "w.edn")
    assert run.code == 0
    assert "if the transactions of a session do not overlap in time" in run.out


def test_levels_tell_where_a_specification_of_one_s_own_lies(folder, capfd, monkeypatch):
    compare_only_with(monkeypatch, "ser", "si", "update-atomic", "pl-2", "pl-1")
    (folder / "mine.iso").write_text('include "adya.iso"\nirreflexive for x: rw[x] ; ww[x] as d\n')
    (folder / "lost").write_text("r(0,0,1,1)\nw(0,1,1,1)\nr(0,0,2,2)\nw(0,2,2,2)\n")
    run = run_here(capfd, "levels", "--spec", "mine.iso", "lost")
    assert run.code == 0
    assert "  mine: invalid: " in run.out
    assert "mine is weaker than" in run.out
    found = valid("levels", run_here(capfd, "levels", "-o", "json", "-s", "mine.iso", "lost").out)
    assert found["own"]["verdict"] == "invalid"
    assert found["own"]["place"]["above"]


def test_a_history_that_names_levels_is_told_what_judges_by_them(folder, capfd):
    """`levels` judges all transactions by each level; a verdict says which levels nobody knows."""
    (folder / "h.edn").write_text(
        "{:type :ok, :f :txn, :value [[:w :x 1]], :process 0, :level :ser}\n"
        "{:type :ok, :f :txn, :value [[:r :x 1]], :process 1, :level :rc}\n"
    )
    assert "--spec mixed" in run_here(capfd, "levels", "h.edn").err
    run = run_here(capfd, "check", "--spec", "mixed-levels", "h.edn")
    assert run.code == 0
    said = " ".join(run.out.split())
    assert '1 transaction requested "rc", which the spec does not mention' in said


def test_the_lattice_is_printed(folder, capfd, monkeypatch):
    """Of some levels: that every pair of the library is decided is another test's."""
    compare_only_with(monkeypatch, "ser", "si", "pc", "cc", "cc-vis", "cc-adya")
    run = run_here(capfd, "spec", "lattice", "--svg", "l.svg")
    assert run.code == 0
    assert "cc = cc-vis = cc-adya" in run.out
    assert any(line.split()[:3] == ["ser", "=>", "si"] for line in run.out.splitlines())
    assert "unknown" not in run.out
    assert (folder / "l.svg").read_text().startswith("<svg")


@pytest.mark.slow
def test_all_pairs_of_the_lattice_are_in_its_json(folder, capfd, monkeypatch):
    """Each pair of levels is implied by edges, told apart by a history, or listed as not known."""
    compare_only_with(monkeypatch, "ser", "ser-co", "si", "psi", "pc", "pl-1", "pl-3", "mixed")
    found = valid("spec-lattice", run_here(capfd, "spec", "lattice", "-o", "json").out)
    names = [same[0] for same in found["classes"]]
    implied = {(edge["stronger"], edge["weaker"]) for edge in found["edges"]}
    while more := {(a, d) for a, b in implied for c, d in implied if b == c} - implied:
        implied |= more
    apart = {(one["allows"], one["forbids"]) for one in found["separated"]}
    assert implied | apart == {(a, b) for a in names for b in names if a != b}
    assert not implied & apart
    assert not found["unknown"]
    assert all(one["shown"] for one in found["separated"])
    assert all(edge["witness"]["history"] for edge in found["edges"])


def test_lint_names_the_check_that_another_one_implies(folder, capfd):
    (folder / "mine.iso").write_text(
        'include "adya.iso"\nacyclic wr | ww | rw as all\n'
        "irreflexive for x: rw[x] ; ww[x] as lost\n"
    )
    run = run_here(capfd, "spec", "lint", "--seconds", "5", "mine.iso")
    assert run.code == 1
    assert "check `lost` is implied by `acyclic wr | ww | rw`" in run.out
    assert "check `all` is implied" not in run.out


def test_a_place_says_what_small_histories_lack(folder, capfd, monkeypatch):
    """A commit order by times of COMMIT is no real time, though small histories have no more."""
    compare_only_with(monkeypatch, "sser", "sser-nosession", "strong-si", "ser", "si", "pl-1")
    (folder / "mine.iso").write_text(
        'include "adya.iso"\nacyclic so | wr | ww | rw | done as c "against the order of commits"\n'
    )
    arguments = ("mine.iso", "--transactions", "2", "--keys", "1")
    lines = run_here(capfd, "spec", "place", *arguments).out.splitlines()
    assert "up to 2 transactions it is equal to sser" in lines[0]
    assert lines[1:4] == [
        "  that is, on all histories of up to 2 transactions and 1 key:",
        "    histories of committed transactions, which read a key at most twice and write it at "
        "most once; registers and lists, each value written once",
        "    these histories have times of transactions, but not of operations: they contain only "
        "the pairs of `done` that follow from `rt`",
    ]
    report = run_here(capfd, "spec", "place", "-o", "json", *arguments).out
    assert valid("spec-place", report)["lacking"] == ["done"]
    (folder / "h.edn").write_text(
        "{:type :invoke, :process 2, :time 0, :f :txn, :value [[:r :x nil]]}\n"
        "{:type :invoke, :process 1, :time 10, :f :txn, :value [[:w :x 1]]}\n"
        "{:type :ok, :process 1, :time 15, :f :txn, :value [[:w :x 1]], :times [[11 12]], "
        ":commit [13 14]}\n"
        "{:type :ok, :process 2, :time 60, :f :txn, :value [[:r :x nil]], :times [[1 2]], "
        ":commit [50 55]}\n"
    )
    assert run_here(capfd, "check", "-s", "sser", "h.edn").code == 0
    assert run_here(capfd, "check", "-s", "mine.iso", "h.edn").code == 1

"""`isocheck levels`: what follows from a verdict is true, and the lattice is drawn."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from oracle.generate import litmus_table
from oracle.history import has_time, parse, to_edn, with_wide_times
from oracle.pipeline import to_tool
from support.cli import run_here

from isolang import History, Transaction, pipeline, save_history
from isolang.api import check
from isolang.language.classify.route import route
from isolang.language.hierarchy import IMPLIES, implications_among, implied_by
from isolang.language.library import list_library
from isolang.language.load import load_spec
from isolang.options import Options
from isolang.pipeline.levels import NEED_TIMES, levels_of

if TYPE_CHECKING:
    from isolang.language.classify.route import Route
    from isolang.pipeline.levels import Standing
    from isolang.verdict import Verdict

ROWS = {row["history"]: row for row in litmus_table()}
COLUMNS = [c for c in litmus_table()[0] if c not in ("history", "operations")]
WORDS = {"satisfied": "valid", "violated": "invalid"}


def test_every_level_is_in_the_library() -> None:
    names = {entry.name for entry in list_library() if not entry.alias_of}
    assert set(IMPLIES) <= names
    assert {weaker for row in IMPLIES.values() for weaker in row} <= set(IMPLIES)
    assert {n for n in IMPLIES if route(load_spec(n)).uses_real_time} == NEED_TIMES


def test_some_levels_imply_each_other_as_among_all() -> None:
    """What is left out changes no implication among the others, and no line is there twice."""
    for names in ([*IMPLIES], [n for n in IMPLIES if not n.endswith("-nosession")], ["si", "rc"]):
        direct = implications_among(names)
        for name in names:
            reached, work = set(), list(direct[name])
            while work:
                reached.add(one := work.pop())
                work += direct[one]
            assert reached == implied_by(name) & set(names)
            for one in direct[name]:
                assert not any(one in implied_by(other) for other in direct[name])


@pytest.mark.parametrize("name", ROWS)
def test_litmus(name: str) -> None:
    """All levels of the table, checked or not, have the table's verdicts."""
    parsed = parse(ROWS[name]["operations"])
    history = to_tool(parsed if has_time(parsed) else with_wide_times(parsed))
    found = levels_of(history)
    got = {c: WORDS[found.levels[c].standing] for c in COLUMNS}
    assert got == {c: ROWS[name][c] for c in COLUMNS}
    assert all(level.certified for level in found.levels.values())


@pytest.mark.parametrize(
    "name", ["lost-update", "long-fork", "write-skew", "fractured-read", "info-half-seen"]
)
def test_a_large_history_has_the_same_levels(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its levels are judged in another order, and one witness may prove several of them."""
    history = to_tool(with_wide_times(parse(ROWS[name]["operations"])))
    small = levels_of(history)
    monkeypatch.setattr(pipeline.levels, "_MANY_OPERATIONS", 0)
    large = levels_of(history)
    assert {n: level.standing for n, level in large.levels.items()} == {
        n: level.standing for n, level in small.levels.items()
    }
    assert all(level.certified for level in large.levels.values())


def test_one_verdict_settles_a_large_serializable_history(monkeypatch: pytest.MonkeyPatch) -> None:
    """Serializability is judged first, and everything else follows from it."""
    monkeypatch.setattr(pipeline.levels, "_MANY_OPERATIONS", 0)
    history = History.from_transactions(
        [
            Transaction([("r", "x", None), ("w", "x", 1)], session="a"),
            Transaction([("r", "x", 1), ("w", "y", 1)], session="b"),
        ]
    )
    judged = {n for n, level in levels_of(history).levels.items() if not level.follows_from}
    assert judged == {"ser", *NEED_TIMES}


@pytest.mark.parametrize("name", ["lost-update", "long-fork", "fractured-read", "info-half-seen"])
def test_what_follows_is_true(name: str) -> None:
    """Each level by itself has the standing that was found or followed."""
    history = to_tool(with_wide_times(parse(ROWS[name]["operations"])))
    found = levels_of(history)
    alone = {n: check(history, load_spec(n)).outcome for n in IMPLIES}
    assert {n: WORDS[level.standing] for n, level in found.levels.items()} == alone
    assert any(level.follows_from for level in found.levels.values())


def test_a_proof_without_sessions_decides_the_level_without_them() -> None:
    """A write skew that needs no session is found once, and certified for every such level."""
    history = to_tool(parse(ROWS["write-skew"]["operations"]))
    found = levels_of(history).levels
    assert {found[name].follows_from for name in ("ser-nosession", "pl-3")} == {"ser"}
    assert all(found[name].standing == "violated" for name in ("ser", "ser-nosession", "pl-3"))
    assert found["pl-3"].certified


@pytest.mark.parametrize("name", ["lost-update", "long-fork", "fractured-read", "aborted-read"])
def test_standings_without_names(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without names of anomalies nothing is explained, and the standings are the same."""
    history = to_tool(with_wide_times(parse(ROWS[name]["operations"])))
    named = levels_of(history).levels

    def explained(*_: object) -> None:
        raise AssertionError("a violation that nobody prints is explained")

    monkeypatch.setattr("isolang.explain.explain.explain", explained)
    found = levels_of(history, explained=False).levels
    assert {n: level.standing for n, level in found.items()} == {
        n: level.standing for n, level in named.items()
    }
    violated = [level for level in found.values() if level.standing == "violated"]
    assert violated
    assert {level.anomaly for level in violated} == {""}


@pytest.mark.parametrize("name", ["lost-update", "long-fork", "write-skew", "aborted-read"])
def test_a_known_verdict_changes_no_standing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """From any verdict that is known, the same standings follow, and that level is not judged."""
    parsed = parse(ROWS[name]["operations"])
    history = to_tool(parsed if has_time(parsed) else with_wide_times(parsed))
    judged: list[str] = []
    every: set[str] = set()

    def decide(history: History, route: Route, *args: Any, **options: Any) -> Verdict:
        judged.append(route.spec.source)
        return pipeline.decide(history, route, *args, **options)

    monkeypatch.setattr("isolang.pipeline.levels.decide", decide)
    for known in COLUMNS:
        standing: Standing = "satisfied" if ROWS[name][known] == "valid" else "violated"
        found = levels_of(history, explained=False, known={known: standing}).levels
        assert {c: WORDS[found[c].standing] for c in COLUMNS} == {c: ROWS[name][c] for c in COLUMNS}
        assert f"library:{known}.iso" not in judged
        every |= {*judged}
        judged.clear()
    assert len(every) > 1


def test_a_wrong_read_decides_most_levels_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The weakest level with a condition on reads is violated, and so are all above it."""
    history = to_tool(with_wide_times(parse(ROWS["aborted-read"]["operations"])))
    judged: list[str] = []

    def decide(history: History, route: Route, *args: Any, **options: Any) -> Verdict:
        judged.append(route.spec.name)
        return pipeline.decide(history, route, *args, **options)

    monkeypatch.setattr("isolang.pipeline.levels.decide", decide)
    found = levels_of(history, explained=False, known={"si": "violated"})
    assert judged == ["PL-1", "PL-2"]
    assert found.strongest() == ("pl-1",)


def test_ser_settles_a_history_whose_transactions_access_one_key() -> None:
    """If it violates some level, SER comes first, and with it all levels without sessions hold."""
    stale = parse("w(x,1) -> w(x,2) || r(x,2) -> r(x,1)")
    judged: list[str] = []
    known: dict[str, Standing] = {"sser": "violated"}
    history = to_tool(with_wide_times(stale))
    levels = levels_of(history, progress=judged.append, explained=False, known=known)
    names = [name for name in judged if name in IMPLIES]
    assert names[:2] == ["ser", "ser-nosession"]
    assert "ser-nosession" in levels.strongest()
    assert not {"si-nosession", "psi-nosession", "pc-nosession", "pl-3"} & {*names}


def history_of_one_key_each(seed: int) -> str:
    """Return a history of two keys, of which each transaction accesses one."""
    chance = random.Random(seed)
    values: dict[str, list[str]] = {"x": ["nil"], "y": ["nil"]}
    sessions: list[list[str]] = [[], [], []]
    for number in range(1, 7):
        key = chance.choice("xy")
        reads = [f"r({key},{chance.choice(values[key][-3:])})" for _ in range(chance.randrange(3))]
        write = [f"w({key},{number})"] if not reads or chance.random() < 0.6 else []
        values[key] += [str(number)] if write else []
        own = chance.choice(sessions)
        times = f"@{10 * number - (8 if own else 25)}-{10 * number + chance.randrange(1, 20)}"
        own[:] = [*own, " ".join((chance.choice(("", "", "?")) + " ".join(reads + write), times))]
    return " || ".join(" -> ".join(session) for session in sessions if session)


def test_levels_are_the_same_if_each_transaction_accesses_one_key() -> None:
    """Of two of its adjacent anti-dependencies, the second leads to what the first overwrites."""
    outcomes: dict[str, set[str]] = {}
    for seed in range(16):
        history = to_tool(parse(history_of_one_key_each(seed)))
        for weaker, stronger in pipeline.levels._OF_ONE_KEY.items():
            got, expected = (check(history, level).outcome for level in (weaker, stronger))
            assert got == expected, (seed, weaker)
            outcomes.setdefault(weaker, set()).add(got)
    assert all(both == {"valid", "invalid"} for both in outcomes.values())


def test_levels_that_are_the_same_for_one_key_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    """What follows changes no standing, and fewer levels are judged."""
    histories = [to_tool(parse(history_of_one_key_each(seed))) for seed in range(20)]

    def standings() -> tuple[list[dict[str, str]], int]:
        judged: list[str] = []
        options: dict[str, Any] = {"explained": False, "progress": judged.append}
        of_each = [
            {name: level.standing for name, level in levels.levels.items()}
            for levels in (levels_of(h, Options(certify=False), **options) for h in histories)
        ]
        return of_each, len([name for name in judged if name in IMPLIES])

    with_theorem, few = standings()
    monkeypatch.setattr(pipeline.levels, "_OF_ONE_KEY", {})
    without_theorem, many = standings()
    assert with_theorem == without_theorem
    assert few < many


def test_strongest_and_weakest() -> None:
    found = levels_of(to_tool(parse(ROWS["long-fork"]["operations"])))
    assert set(found.strongest()) == {"psi"}
    assert found.weakest_violated() == ("pc-nosession", "pl-3")
    assert found.levels["sser"].standing == "no times"


@pytest.fixture
def long_fork(tmp_path: Path) -> str:
    path = tmp_path / "history.edn"
    path.write_text(to_edn(parse(ROWS["long-fork"]["operations"])))
    return str(path)


def test_text(long_fork: str, capfd: pytest.CaptureFixture[str]) -> None:
    run = run_here(capfd, "levels", long_fork)
    assert run.code == 0
    lines = run.out.splitlines()
    assert "  with session order, and without" in lines
    assert any(line.endswith("✗ si") for line in lines)
    assert any(line.endswith("✓ psi         ✗ pc") for line in lines)
    title = "parallel snapshot isolation, with session order"
    assert f"  strongest satisfied  psi: {title}" in lines
    assert "pc-nosession: prefix consistency" in run.out
    assert "long fork (certified): " in run.out


def test_levels_without_sessions_are_drawn_where_they_differ(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A session that does not read its own write violates what sees sessions, and nothing else."""
    history = History.from_transactions(
        [Transaction([("w", "x", 1)], session=1), Transaction([("r", "x", None)], session=1)]
    )
    found = levels_of(history)
    assert len(found.worth_listing()) == len(found.levels)
    path = tmp_path / "history.edn"
    save_history(history, path)
    text = run_here(capfd, "levels", str(path)).out
    assert any(re.search("✗ ser +– strong-si +✓ ser$", line) for line in text.splitlines()), text


def test_json(long_fork: str, capfd: pytest.CaptureFixture[str]) -> None:
    run = run_here(capfd, "levels", "-o", "json", long_fork)
    report = json.loads(run.out)
    assert report["strongest"] == ["psi"]
    by_name = {level["name"]: level for level in report["levels"]}
    assert by_name["ser"]["standing"] == "violated"
    assert by_name["si"]["implies"] == ["psi", "pc", "si-nosession"]


def test_what_cannot_be_read(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run = run_here(capfd, "levels", str(tmp_path / "missing.edn"))
    assert run.code == 2
    assert "missing.edn" in run.err


def test_time_that_is_too_short_leaves_levels_unknown(
    long_fork: str, capfd: pytest.CaptureFixture[str]
) -> None:
    run = run_here(capfd, "levels", "--timeout", "0.000001", long_fork)
    assert run.code == 3
    assert "unknown" in run.out

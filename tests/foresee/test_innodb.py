"""Robustness at InnoDB's levels: what each decides, against all interleavings of a model."""

from __future__ import annotations

import random
from itertools import islice

import pytest
from msgspec.structs import replace
from support.cli import run_here
from support.interleavings import is_replayed, some_violation
from support.paths import ROOT
from support.random_templates import random_templates, template_lines

from isolang import History, Transaction
from isolang.foresee.decide import decide, lowest
from isolang.foresee.extract import extract
from isolang.foresee.mending import MendSearch
from isolang.foresee.robust import candidates
from isolang.foresee.service import decide_run
from isolang.foresee.split import counterexample
from isolang.foresee.templates import Templates, templates
from isolang.history import read_history
from isolang.programs.syntax import parse_templates

RC, RR, SI, SER = (
    f"innodb-{name}" for name in ("read-committed", "repeatable-read", "snapshot", "serializable")
)
BOOKING = "r(booking[k, *]) insert(booking[k, b])"


def of(text: str) -> Templates:
    """Templates in which an update of room is a read FOR UPDATE."""

    def with_lock(statement):
        if statement.relation != "room":
            return statement
        return replace(statement, kind="read", writes=frozenset(), lock="update")

    return templates(parse_templates(text)).with_statements(with_lock)


# Each row: templates, and the levels at which they are robust.
ROBUST_AT = {
    "a lost update": ("program P(c) r(x[c]) w(x[c], 1)", [SI, SER]),
    "an increment": ("program P(c) u(x[c].n, .n + 1)", [RC, RR, SI, SER]),
    "a reader sees one state": (
        "program P(c, d) r(x[c]) r(x[d]) program Q(c, d) w(x[c], 1) w(x[d], 1)", [RR, SI, SER]),
    "a plain read is older than an update": (
        "program P(c) r(x[c]) u(y[c].n, .n + 1) program Q(c) w(x[c], 1) w(y[c].n, 1)", [SI, SER]),
    "write skew": (
        "program P(c, d) where c != d r(x[c]) r(x[d]) w(x[c], 0)", [SER]),
    "a lock before the count": (f"program P(k, b) u(room[k], 1) {BOOKING}", [RC, RR, SI, SER]),
    # The plain read takes the snapshot, so what was counted is from before the lock was granted.
    "a plain read before the lock": (
        f"program P(k, b, n) r(user[n]) u(room[k], 1) {BOOKING}", [RC, SER]),
    "an update before the count": (
        f"program P(k, b, n) r(user[n]) u(seats[k].n, .n + 1) {BOOKING}", [RC, SI, SER]),
    "its own row": (
        "program P(c) u(x[c].m, .m + 1) r(x[c].n) program Q(c) u(x[c].n, .n + 1)",
        [RC, RR, SI, SER]),
    # The own row has the newest column n, which the snapshot does not have.
    "its own row is newer than the snapshot": (
        "program P(c) u(room[c], 1) r(y[c]) u(x[c].m, .m + 1) r(x[c].n)"
        " program Q(c) w(y[c], 1) w(x[c].n, 1)",
        [SI, SER]),
    "a snapshot of what nobody writes": (
        "program P(l, q, k, z) w(log[l], 1) r(conf[q]) u(room[k], 1) r(stock[k]) w(seat[z], 1)"
        " program Q(k, z) u(room[k], 1) w(stock[k], 1) r(seat[z])", [RC, SER]),
    "no other locks of gaps": (
        "program P(k, b) u(booking[k, *].n, .n + 1) insert(booking[k, b])", [RR, SI, SER]),
}  # fmt: skip


@pytest.mark.parametrize("name", ROBUST_AT)
def test_what_is_robust_at_which_level(name) -> None:
    """What is robust has no interleaving that fails; what is not has a certified one."""
    text, expected = ROBUST_AT[name]
    programs = of(text)
    for level in (RC, RR, SI, SER):
        levels = dict.fromkeys(programs.programs, level)
        decision = decide(programs, levels)
        assert (decision.standing == "robust") == (level in expected), level
        if level in expected:
            assert some_violation(programs, levels, sessions=True, most=40) is None
        else:
            assert decision.counterexample.allowed.certified


@pytest.mark.parametrize("seed", range(40))
def test_random_templates(seed) -> None:
    """Robust ones have no interleaving that fails; others have one, certified and replayed."""
    rng = random.Random(seed)
    programs = random_templates(rng, longest=2, locks=seed % 4 == 0, scans_lock=True)
    how = rng.choice([[RC], [RR], [SI], [RC, RR, SER], [RC, SI, SER]])
    levels = {program: rng.choice(how) for program in programs.programs}
    for candidate in islice(candidates(programs, levels), 50):
        failed = counterexample(programs, levels, candidate, against="ser")
        if failed is not None and not (failed.refused_by_rows or failed.refused_by_gaps):
            assert failed.allowed.certified
            assert failed.forbidden.certified
            assert is_replayed(programs, levels, candidate, sessions=True), template_lines(programs)
            return
    wrong = some_violation(programs, levels, sessions=True, most=60)
    assert wrong is None, (template_lines(programs), levels, wrong)


def test_serializable_protects_a_program_from_all_others() -> None:
    """Unlike PostgreSQL's, whose SERIALIZABLE knows nothing of other levels."""
    reader = of("program P(c) r(x[c]) r(y[c]) program Q(c) w(x[c], 1) w(y[c], 1)")
    assert lowest(reader, of=RR) == {"P": RR, "Q": RC}
    skew = of("program P(c, d) where c != d r(x[c]) r(x[d]) w(x[c], 0) program Q(c) u(x[c].n, 1)")
    assert lowest(skew, of=SI) == {"P": SER, "Q": RC}


# --- runs ---


def service(folder, lock: str = ""):
    """The requests of the example; ``lock`` is that of the second statement, the count."""
    text = (ROOT / "examples/service.edn").read_text()
    path = folder / f"run{lock.replace(' ', '-')}.edn"
    path.write_text(
        "\n".join(
            line.replace('"2"\t"3"]', f'"2{lock}"\t"3"]') if '"booking" :where' in line else line
            for line in text.splitlines()
        )
    )
    return read_history(str(path))


def of_book(history, level) -> str:
    decision = decide_run(history, level)
    (program,) = (p for p in decision.programs if decision.run.titles[p.program] == "/book")
    return decision.standing_of(program)


def test_a_scan_that_locks_sees_the_newest_rows_and_keeps_them(tmp_path) -> None:
    """At READ COMMITTED, it does not keep others from inserting."""
    plain, locked = service(tmp_path), service(tmp_path, " for update")
    assert [of_book(locked, level) for level in (RC, RR, SI)] == ["not robust", "robust", "robust"]
    assert [of_book(plain, level) for level in (RC, RR, SI)] == ["not robust"] * 3


def test_a_run_that_does_not_say_what_locks_is_unknown() -> None:
    """At the other levels, it does not matter."""
    history = History.from_transactions([Transaction([("r", "x", None)], label="P")])
    decision = decide_run(history, RR)
    assert (decision.standing, decision.reason.partition(":")[0]) == (
        "unknown", "the run does not say for each read whether its statement locks",
    )  # fmt: skip
    assert [decide_run(history, level).standing for level in (RC, SER)] == ["robust", "robust"]


def test_a_lock_of_gaps_mends_a_count() -> None:
    """Not at READ COMMITTED, where only a lock of the room does."""
    history = read_history(str(ROOT / "examples/service.edn"))
    for level, expected in ((RR, "lock"), (RC, "lock parent")):
        decision = decide_run(history, level)
        search = MendSearch(
            decision.run, decision.levels, lambda unique: extract(history, unique=unique),
            sessions=True, work=200_000,
        )  # fmt: skip
        mends = search.of("_book")
        assert [change.kind for change in mends[0].changes] == [expected]
        assert all("pg_" not in change.sql for mend in mends for change in mend.changes)


def test_the_answer_names_the_database(capfd) -> None:
    """The conditions are those of InnoDB, with the defect that one of them excludes."""
    run = run_here(capfd, "robust", "program P(c) delete(x[c, *])", "--at", "innodb-snapshot")
    assert run.code == 0
    assert "as InnoDB has it" in run.out
    assert "next-key locks" in run.out
    assert "not START TRANSACTION WITH CONSISTENT SNAPSHOT" in run.out
    assert "which MariaDB 10.11 forgets" in run.out


@pytest.mark.parametrize(
    ("level", "words"),
    [
        ("innodb-repeatable-read", "`isocheck robust --at innodb-repeatable-read` decides"),
        ("innodb-serializable", "every execution is serializable"),
    ],
)
def test_no_predictions_at_these_levels(capfd, level, words) -> None:
    """The reason is given, with what decides instead."""
    run = run_here(capfd, "predict", str(ROOT / "examples/service.edn"), "--at", level)
    assert run.code == 2
    assert words in run.err
    assert "expected innodb-read-committed or innodb-snapshot" in run.err


@pytest.mark.parametrize("level", ["innodb-read-committed", "innodb-snapshot"])
def test_predictions_say_what_they_leave_out(capfd, level) -> None:
    """InnoDB's locks of gaps; and nothing is played on a MariaDB."""
    run = run_here(capfd, "predict", str(ROOT / "examples/service.edn"), "--at", level)
    assert run.code == (1 if level == "innodb-read-committed" else 3)
    assert "do not consider InnoDB's locks of gaps" in run.out
    run = run_here(
        capfd, "predict", str(ROOT / "examples/service.edn"), "--at", level, "--play", "statements"
    )
    assert run.code == 2
    assert "played on PostgreSQL only" in run.err


@pytest.mark.parametrize(
    ("level", "snapshots", "expected"),
    [
        ("pl-2", False, "hint: --at innodb-read-committed or innodb-repeatable-read"),
        ("si", True, "at innodb-snapshot (REPEATABLE READ with snapshot isolation)"),
        ("ser", False, "ROBUST  every execution at innodb-serializable"),
        ("pl-1", False, "(got pl-1, expected si or ser); hint: --at innodb-read-committed"),
        ("", False, "(got none, expected si or ser); hint: --at innodb-read-committed"),
    ],
)
def test_a_run_of_mariadb_has_its_levels(capfd, tmp_path, level, snapshots, expected) -> None:
    """`pl-2` is READ COMMITTED or REPEATABLE READ without snapshot isolation: that is asked for."""
    stated = f':level "{level}"' if level else ""
    text = (ROOT / "examples/service.edn").read_text().replace(':level "pl-2"', stated)
    setting = str(snapshots).lower()
    comment = f';:database {{"name": "MariaDB", "innodb_snapshot_isolation": {setting}}}\n'
    path = tmp_path / "run.edn"
    path.write_text(text.replace(";:unseen", f"{comment};:unseen"))
    run = run_here(capfd, "robust", str(path))
    assert expected in run.out + run.err

"""The programs of a recorded service: names, lowest levels, locks, unique indexes and mends."""

from __future__ import annotations

import random
import re
from itertools import islice
from pathlib import Path

import pytest
from msgspec.structs import replace
from support.interleavings import is_replayed, some_violation
from support.random_templates import random_templates, template_lines

from isolang import History, Transaction
from isolang.errors import UnsupportedError
from isolang.foresee.extract import extract
from isolang.foresee.mending import MendSearch
from isolang.foresee.robust import candidates, robust
from isolang.foresee.service import decide_run, level_named, program_levels
from isolang.foresee.split import counterexample
from isolang.foresee.templates import templates
from isolang.history import read_history
from isolang.programs.syntax import parse_templates

HERE = Path(__file__).parent
SEVEN = HERE / "seven.edn"  # seven functions of an application in JavaScript, each twice
IDIOMS = HERE / "idioms.edn"  # requests of an application in Python, named by comments


def levels_of(path) -> dict[str, str]:
    decision = decide_run(read_history(str(path)), "mvrc")
    return {decision.run.titles[program.program]: program.level for program in decision.programs}


def mends_of(path, level="mvrc"):
    """The mends of each program by their kinds, and who is unsafe with all the first ones."""
    history = read_history(str(path))
    decision = decide_run(history, level)
    search = MendSearch(
        decision.run, decision.levels, lambda unique: extract(history, unique=unique),
        sessions=True, work=200_000,
    )  # fmt: skip
    every = {
        decision.run.titles[program.program]: search.of(program.program)
        for program in decision.programs
        if decision.standing_of(program) == "not robust"
    }
    return every, search.all_together([some[0] for some in every.values()])


def kinds(mends) -> list[str]:
    return [" and ".join(change.kind for change in mend.changes) for mend in mends]


# --- programs ---


def test_the_seven_functions_are_told_apart() -> None:
    """Each has its lowest level, what it overlooks and who writes it; fixtures are no programs."""
    decision = decide_run(read_history(str(SEVEN)), "mvrc")
    assert (decision.standing, decision.run.preparing, decision.run.transactions) == (
        "not robust",
        2,
        14,
    )
    overlooked = {
        program.program: (
            program.level,
            *(
                (execution.candidate.overlooking.relation, execution.programs[1])
                for level, execution in program.counterexamples.items()
                if level == "mvrc"
            ),
        )
        for program in decision.programs
    }
    assert overlooked == {
        "lost": ("si", ("stock", "lost")),
        "coupon": ("si", ("coupon", "coupon")),
        "skew": ("ssi", ("stock", "lost")),
        "skew2": ("ssi", ("stock", "skew")),
        "five": ("ssi", ("booking", "five")),
        "locked": ("mvrc",),
        "atomic": ("mvrc",),
    }
    at_si = decide_run(read_history(str(SEVEN)), "si")
    unsafe = [
        program.program for program in at_si.programs if program.standing("si") == "not robust"
    ]
    assert unsafe == ["skew", "skew2", "five"]


@pytest.mark.parametrize(
    ("idiom", "old", "new", "level"),
    [
        ("/book", " for update", "", "ssi"),  # a lock of the parent
        ("/book", ";:references", "; references", "ssi"),
        ("/register", '[["email"], ["id"]]', '[["id"]]', "ssi"),  # a unique index
        ("/edit", " shown", "", "si"),  # an optimistic version
        ("/adv", " holding advisory/", "", "ssi"),  # an advisory lock
        ("/take", '"1 shown"	"1 shown"', '"1"	"2"', "si"),  # one statement
    ],
)
def test_right_idioms_are_safe_at_read_committed(tmp_path, idiom, old, new, level) -> None:
    """Without what makes an idiom right, the program needs another level."""
    assert levels_of(IDIOMS) == {
        "/book": "mvrc", "/register": "mvrc", "/edit": "mvrc", "/slot": "ssi", "/take": "mvrc",
        "/adv": "mvrc",
    }  # fmt: skip
    text = IDIOMS.read_text()
    assert old in text
    if "advisory" in old:
        for room in "78":
            text = text.replace(f"{old}{room}", new)
    path = tmp_path / "changed.edn"
    path.write_text(text.replace(old, new))
    assert levels_of(path)[idiom] == level


def test_a_lock_that_suffices_at_read_committed_may_not_do_so_above() -> None:
    """It leaves no version, so a snapshot taken before it overlooks what its holder wrote."""
    decision = decide_run(read_history(str(IDIOMS)), "si")
    unsafe = [
        program.program for program in decision.programs if program.standing("si") == "not robust"
    ]
    assert unsafe == ["_book", "_slot", "_adv"]
    assert {
        program.level for program in decision.programs if program.program in ("_book", "_adv")
    } == {"mvrc"}


def test_conditions_name_what_the_decision_rests_on() -> None:
    """Columns that identify rows or versions, unique indexes, and what locks depend on."""
    conditions = decide_run(read_history(str(IDIOMS)), "mvrc").conditions
    assert {
        "what prepared the database (3 transactions) never runs at the same time as the programs",
        "each write of a row of doc gives version a value that the row never had",
        "no statement changes room of a row of booking",
        "a unique index holds email of usr",
        "a row that a read locks exists",
        "the number of an advisory lock depends on room of adv alone",
    } <= set(conditions)


def test_a_version_that_repeats_does_not_tell_versions_apart(tmp_path) -> None:
    """A comparison with such a column does not protect the row that was read."""
    text = IDIOMS.read_text().replace('"version" 3', '"version" 1')
    path = tmp_path / "repeats.edn"
    path.write_text(text)
    assert levels_of(path)["/edit"] == "si"


def standing_of(folder, label: str, *changes: tuple[str, str]) -> str:
    """The answer at READ COMMITTED about one program of IDIOMS, after replacing some patterns."""
    lines = IDIOMS.read_text().splitlines(keepends=True)
    text = "".join(
        line
        for number, line in enumerate(lines)
        if number < 6 or line.startswith(";") or label in line
    )
    for pattern, new in changes:
        assert re.search(pattern, text)
        text = re.sub(pattern, new, text)
    path = folder / "run.edn"
    path.write_text(text)
    return decide_run(read_history(str(path)), "mvrc").standing


@pytest.mark.parametrize(
    ("second", "standing"), [("2 holding advisory/", "robust"), ("2 holding table/", "not robust")]
)
def test_a_lock_that_is_released_before_the_end_protects_nothing(
    tmp_path, second, standing
) -> None:
    """Others see what the transaction writes only after its commit."""
    assert standing_of(tmp_path, "/adv", ("2 holding advisory/", second)) == standing


@pytest.mark.parametrize(
    ("numbers", "standing"),
    [('"2"\t"3"]', "robust"), ('"1"\t"2"]', "not robust"), ('"1"\t"1"]', "not robust")],
)
def test_a_statement_does_not_see_what_was_committed_while_it_waited(
    tmp_path, numbers, standing
) -> None:
    """A row locked by a statement protects only what later statements read."""
    assert standing_of(tmp_path, "/book", (r'"2"\t"3"]', numbers)) == standing


@pytest.mark.parametrize(
    "where",
    [
        "where id = (select id from doc where id = $2 and version = $3)",
        "from draft where doc.id = $2 and draft.version = $3",
        "where id = $2 and version = $3 …",  # the recording may have cut off OR
    ],
)
def test_a_version_that_may_not_be_compared_again(tmp_path, where) -> None:
    """At READ COMMITTED, an UPDATE that waited compares only its row again."""
    old = r"where id = \$2 and version = \$3"
    assert (
        standing_of(tmp_path, "/edit", (old, "WHERE id = $2 and version = $3 /* … */")) == "robust"
    )
    sql = rf"{old} /\*route='/edit'\*/"
    assert standing_of(tmp_path, "/edit", (sql, where)) == "not robust"


def test_a_version_that_was_set_back_does_not_tell_versions_apart(tmp_path) -> None:
    """Neither do the versions if the whole row is again what it was."""
    plain = (r' "xmin" "[^"]*"', "")
    assert standing_of(tmp_path, "/edit", plain) == "robust"
    back = ('"version" 3 "body" "c"', '"version" 1 "body" "a"')
    assert standing_of(tmp_path, "/edit", plain, back) == "not robust"


def row(n: int) -> str:
    return f'{{"id" 1 "n" {n}}}'


def test_what_was_only_rolled_back_is_not_known(tmp_path) -> None:
    """Writes that no committed transaction of the program has make the answer unknown."""
    start = (
        f'{{:type :ok, :process 0, :f :init, :value {{["t" "1"] {row(0)} ["u" "1"] {row(0)}}}}}\n'
        f'{{:type :ok, :process 1, :f :txn, :label "P", :value [[:w ["t" "1"] {row(1)}]]}}\n'
    )
    for table, expected in (("t", "robust"), ("u", "unknown")):
        path = tmp_path / f"{table}.edn"
        path.write_text(
            f'{start}{{:type :invoke, :process 2, :f :txn, :label "P", '
            f':value [[:w ["{table}" "1"] {row(2)}]]}}\n'
            f'{{:type :fail, :process 2, :f :txn, :value [[:w ["{table}" "1"] {row(2)}]]}}\n'
        )
        decision = decide_run(read_history(str(path)), "mvrc")
        assert decision.standing == expected
        assert decision.run.rolled_back == (("P",) if table == "u" else ())
        assert (
            "what P did in transactions that were only ever rolled back" in decision.reason
        ) is (table == "u")


def test_programs_without_labels_have_names(tmp_path) -> None:
    """Lines of the application, or first statements; a label that all share names none."""
    reads = [f'[:r ["{table}" "1"] {row(0)}]' for table in "tuv"]
    lines = [f'{{:type :ok, :process 0, :f :init, :value {{["t" "1"] {row(0)}}}}}']
    callers = [["app.py:7"], ["app.py:7", "app.py:9"], ["SELECT n FROM t /* hint */"]]
    for number, sources in enumerate(callers):
        value = " ".join(reads[: len(sources)] if number < 2 else reads)
        sources = [*sources, *["x"] * (2 * (number == 2))]  # noqa: PLW2901
        shown = " ".join(f'"{source}"' for source in sources)
        lines.append(
            f"{{:type :ok, :process {number + 1}, :f :txn, :value [{value}], :callers [{shown}]}}"
        )
    path = tmp_path / "names.edn"
    path.write_text("\n".join(lines) + "\n")
    run = extract(read_history(str(path)))
    assert list(run.titles.values()) == ["app.py:7", "SELECT n FROM t"]
    assert len(run.templates.branches) == 3
    labelled = [
        Transaction([("w", "x/1", 1)], label="shop"),  # before the first program
        Transaction([("w", "x/1", 2)], label=("shop", "/buy")),
        Transaction([("w", "x/1", 3)], label=("shop", "/sell")),
    ]
    run = extract(History.from_transactions(labelled))
    assert (list(run.titles.values()), run.preparing) == (["/buy", "/sell"], 1)


def test_level_names() -> None:
    """Those of SQL, of the profiles, and the words of ``--at``."""
    assert [level_named(name) for name in ("READ COMMITTED", "postgresql-serializable", "si")] == [
        "mvrc",
        "ssi",
        "si",
    ]
    with pytest.raises(UnsupportedError, match="not decided at this level"):
        level_named("psi")


def test_programs_keep_the_higher_level_that_they_request(tmp_path) -> None:
    """A program at SERIALIZABLE is safe if its partners are; the others run at the level asked."""
    text = IDIOMS.read_text()
    lines = [
        line.replace(':level "pl-2"', ':level "ser"') if '"/slot"' in line else line
        for line in text.splitlines()
    ]
    path = tmp_path / "mixed.edn"
    path.write_text("\n".join(lines) + "\n")
    decision = decide_run(read_history(str(path)), "mvrc")
    assert decision.standing == "robust"
    assert decision.levels["_slot"] == "ssi"
    assert "READ COMMITTED, /slot at SERIALIZABLE" in " ".join(decision.conditions)
    five = [
        line.replace(':level "pl-2"', ':level "ser"') if '"skew"' in line else line
        for line in SEVEN.read_text().splitlines()
    ]
    path.write_text("\n".join(five) + "\n")
    decision = decide_run(read_history(str(path)), "mvrc")
    unsafe = [row.program for row in decision.programs if decision.standing_of(row) != "robust"]
    assert unsafe == ["lost", "coupon", "skew", "skew2", "five"]  # skew's partners run below


# --- locks ---

SKEW = "program P() r(sav) r(chk) w(sav, 1) program Q() r(sav) r(chk) w(chk, 1)"


def locked(found, places):
    """The templates in which some reads lock their rows: a program and a step each."""
    branches = tuple(
        replace(
            branch,
            statements=tuple(
                replace(statement, lock="update")
                if (branch.program, statement.step) in places
                else statement
                for statement in branch.statements
            ),
        )
        for branch in found.branches
    )
    return replace(found, branches=branches)


@pytest.mark.parametrize(
    ("places", "at_si", "at_rc"),
    [  # as benchmarks/locks.py measured on PostgreSQL (docs/robustness.md)
        ("", False, False),
        ("P0", False, False),  # P locks sav, which it writes itself
        ("P1", False, False),  # P locks chk, which Q writes
        ("P0 P1", False, False),
        ("P0 Q0", False, True),  # both lock sav
        ("P1 Q0", True, False),  # each locks the row that the other one writes
        ("P0 P1 Q0 Q1", True, True),
    ],
)
def test_locks_are_decided_as_measured(places, at_si, at_rc) -> None:
    """A lock leaves no version: at SI it only keeps writers away."""
    chosen = {(name[0], int(name[1])) for name in places.split()}
    skew = locked(templates(parse_templates(SKEW)), chosen)
    assert robust(skew, {"P": "si", "Q": "si"}) is at_si
    assert robust(skew, {"P": "mvrc", "Q": "mvrc"}) is at_rc


@pytest.mark.parametrize("seed", range(3000, 3008))
def test_locks_in_all_interleavings(seed) -> None:
    """Robust templates have no violation, and counterexamples are found in an interleaving."""
    rng = random.Random(seed)
    programs = random_templates(rng, longest=2 if seed % 3 else 3, locks=True)
    for how in ("mvrc", "si"):
        levels = dict.fromkeys(programs.programs, how)
        first = list(islice(candidates(programs, levels), 1))
        if not first:
            assert some_violation(programs, levels, sessions=True, most=12) is None, "\n".join(
                template_lines(programs)
            )
        elif counterexample(programs, levels, first[0], against="ser") is not None:
            assert is_replayed(programs, levels, first[0], sessions=True), template_lines(programs)


def test_a_program_alone_decides_below_serializable() -> None:
    """The templates are robust at a level if and only if each program is safe there."""
    for seed in range(40):
        programs = random_templates(random.Random(seed), longest=2)
        for program in program_levels(programs):
            for level in ("mvrc", "si"):
                levels = dict.fromkeys(programs.programs, level)
                is_safe = robust(programs, levels, split=program.program)
                assert (
                    level in (program.level, "si" if program.level == "mvrc" else "")
                ) is is_safe or (program.standing(level) == "unknown")
        for level in ("mvrc", "si"):
            levels = dict.fromkeys(programs.programs, level)
            alone = [robust(programs, levels, split=program) for program in programs.programs]
            assert robust(programs, levels) is all(alone)


# --- mends ---


@pytest.mark.slow
def test_mends_of_the_seven_functions() -> None:
    """The smallest comes first, all are decided, and together they suffice."""
    every, unsafe = mends_of(SEVEN)
    assert {title: kinds(mends) for title, mends in every.items()} == {
        "lost": ["one statement", "lock", "serializable"],
        "coupon": ["one statement", "lock", "serializable"],
        "skew": ["lock", "serializable"],
        "skew2": ["lock", "serializable"],
        "five": ["advisory lock", "serializable"],
    }
    assert unsafe == ()
    assert every["lost"][1].changes[0].sql == "select n from stock where id = $1 FOR UPDATE"
    assert set(every["skew"][-1].changes[0].programs) == {
        "skew", "skew2", "lost", "locked", "atomic",
    }  # fmt: skip
    at_si, unsafe = mends_of(SEVEN, "si")
    assert {title: kinds(mends) for title, mends in at_si.items()} == {
        "skew": ["lock", "serializable"],
        "skew2": ["lock", "serializable"],
        "five": ["serializable"],  # a lock leaves no version
    }
    assert unsafe == ()


def test_mends_of_a_check_before_an_insert(tmp_path) -> None:
    """A unique index if the run shows a refusal; a lock of the parent if there is one."""
    every, unsafe = mends_of(IDIOMS)
    assert kinds(every["/slot"]) == [
        "unique index", "advisory lock", "advisory lock", "serializable",
    ]  # fmt: skip
    assert every["/slot"][0].changes[0].sql == "CREATE UNIQUE INDEX ON slot (day, room)"
    assert unsafe == ()
    path = tmp_path / "book.edn"
    path.write_text(IDIOMS.read_text().replace(" for update", ""))
    mends = mends_of(path)[0]["/book"]
    assert kinds(mends) == ["lock parent", "advisory lock", "serializable"]
    assert mends[0].changes[0].sql == "SELECT FROM room WHERE id = <room> FOR UPDATE"


def test_a_row_that_is_not_there_cannot_be_locked() -> None:
    """FOR UPDATE is no mend for a read that found nothing."""
    key, row = ("code", "a"), {"id": "a", "n": 1}
    other = ("log", "1")
    for is_there in (False, True):
        start = [("w", key, row)] if is_there else [("w", ("code", "b"), {"id": "b", "n": 1})]
        read = ("r", key, row if is_there else None)
        writes = [("w", key, {"id": "a", "n": 2})] if is_there else [("insert", key, row)]
        history = History.from_transactions(
            [
                Transaction([*start, ("w", other, {"id": 1, "n": 1})], status="initial"),
                Transaction([read, ("w", other, {"id": 1, "n": 2})], label="check"),
                Transaction([("r", other, {"id": 1, "n": 2}), *writes], label="change"),
            ]
        )
        run = extract(history)
        levels = dict.fromkeys(run.templates.programs, "mvrc")
        search = MendSearch(run, levels, lambda _, run=run: run, sessions=True, work=200_000)
        assert ("lock" in kinds(search.of("check"))) is is_there


@pytest.mark.parametrize("texts", [("room", "booking"), ("room, booking", "room, booking")])
def test_a_lock_does_not_make_the_rest_of_its_statement_newer(tmp_path, texts) -> None:
    """FOR UPDATE of a row is no mend if the same statement reads what else its writers wrote."""
    room, rows = '["room" "7"] {"id" 7 "n" %d}', '["booking" "%d"] {"id" %d "room" 7}'
    lines = [f"{{:type :ok, :process 0, :f :init, :value {{{room % 0}}}}}"]
    for number in (1, 2):
        booked = " ".join(rows % (key, key) for key in range(1, number))
        value = (
            f"[:r {room % (number - 1)}]"
            f' [:rp {{:table "booking" :where [:= :room 7]}} {{{booked}}}]'
            f" [:insert {rows % (number, number)}] [:w {room % number}]"
        )
        lines.append(
            f'{{:type :ok, :process {number}, :f :txn, :label "book", :value [{value}],'
            f' :callers ["select from {texts[0]}" "select from {texts[1]}" "insert" "update"]}}'
        )
    lines += [IDIOMS.read_text().splitlines()[at] for at in (-3, -2)]  # the keys
    path = tmp_path / "book.edn"
    path.write_text("\n".join(lines) + "\n")
    mends = kinds(mends_of(path)[0]["book"])
    assert ("lock" in mends) is (texts[0] != texts[1])


def test_each_mend_is_decided_again() -> None:
    """What is left of the templates after a mend has no split schedule of the program."""
    history = read_history(str(SEVEN))
    run = extract(history)
    search = MendSearch(
        run,
        dict.fromkeys(run.templates.programs, "mvrc"),
        lambda unique: extract(history, unique=unique),
        sessions=True,
        work=200_000,
    )
    for program in ("lost", "coupon", "skew", "five"):
        for mend in search.of(program):
            assert program not in search.all_together([mend])
        assert program in search.all_together([])

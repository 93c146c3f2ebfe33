"""Robustness: the results of the literature, the traps of the theorem, and all interleavings."""

from __future__ import annotations

import itertools
import random
from itertools import islice

import pytest
from msgspec.structs import replace
from support.interleavings import is_replayed, some_violation
from support.paths import ROOT
from support.random_templates import random_templates, template_lines

from isolang.errors import UnsupportedError
from isolang.foresee.decide import decide, lowest, mends
from isolang.foresee.robust import candidates, robust
from isolang.foresee.schedules import SearchBudget
from isolang.foresee.split import counterexample
from isolang.foresee.templates import ALL_COLUMNS, templates, templates_of_branches
from isolang.programs.syntax import load_templates, parse_templates

FOLDER = ROOT / "examples/programs/templates"
SHORT = {
    "Balance": "Bal", "DepositChecking": "DC", "TransactSavings": "TS", "Amalgamate": "Am",
    "WriteCheck": "WC", "NewOrder": "NO", "Payment": "Pay", "OrderStatus": "OS",
    "StockLevel": "SL", "Delivery": "Del", "FindBids": "FB", "PlaceBid": "PB",
}  # fmt: skip


def of(text: str):
    return templates(parse_templates(text))


def load(name: str):
    return templates(load_templates(FOLDER / f"{name}.litmus"))


def separate(found):
    """The templates in which an update is a read and a later write."""
    branches = []
    for branch in found.branches:
        statements = []
        for one in branch.statements:
            if one.kind == "update":
                statements.append(replace(one, kind="read", writes=frozenset()))
                one = replace(one, kind="write", reads=frozenset())  # noqa: PLW2901
            statements.append(one)
        branches.append(replace(branch, statements=tuple(statements)))
    return replace(found, branches=tuple(branches))


FORMS = {
    "columns": lambda found: found,
    "rows": lambda found: found.with_whole_rows(),
    "reads and writes of rows": lambda found: separate(found.with_whole_rows()),
}

# By file, level, form and sessions: the largest robust sets, and where they are published.
# [V21] B. Vandevoort et al., PVLDB 14(11), 2021; [V23] the same, EDBT 2023; [C08] M. Cahill et
# al., SIGMOD 2008; [F05] A. Fekete et al., TODS 30(2), 2005; [B19] S. Beillahi et al., CAV 2019.
LARGEST = [
    ("smallbank-names", "mvrc", "reads and writes of rows", "", "Bal", "[V21] fig. 3"),
    ("smallbank-names", "mvrc", "rows", "", "DC,TS,Am Bal,DC Bal,TS", "[V21] Am,DC,TS"),
    ("smallbank-names", "mvrc", "columns", "", "DC,TS,Am Bal,DC Bal,TS", "as with rows"),
    ("smallbank", "mvrc", "columns", "", "DC,TS,Am Bal,DC Bal,TS", "computed here"),
    ("smallbank-names", "si", "columns", "", "Bal,DC,TS,Am DC,TS,Am,WC Bal,DC,WC", "computed here"),
    ("smallbank", "si", "columns", "", "Bal,DC,TS,Am Bal,DC,Am,WC DC,TS,Am,WC",
     "[C08] pivot WC, [B19]; computed here"),
    ("smallbank", "si", "columns", "so", "Bal,DC,TS,Am Bal,DC,Am,WC DC,TS,Am,WC", "computed here"),
    ("tpcc-key-value", "mvrc", "reads and writes of rows", "", "OS,SL", "computed here"),
    ("tpcc-key-value", "mvrc", "rows", "", "Pay,OS,SL Pay,SL,Del NO,SL", "computed here"),
    ("tpcc-key-value", "mvrc", "columns", "", "NO,Pay,SL,Del Pay,OS,SL", "[V21] sec. 2"),
    ("tpcc-key-value", "si", "rows", "", "NO,Pay,SL,Del Pay,OS,SL,Del NO,OS,SL", "computed here"),
    ("tpcc-key-value", "si", "rows", "so", "Pay,OS,SL,Del NO,Pay,Del NO,OS,SL",
     "computed here: NO misses Pay, which SL follows"),
    ("tpcc-key-value", "si", "columns", "", "NO,Pay,OS,SL,Del", "[F05], [B19]"),
    ("tpcc", "si", "columns", "so", "NO,Pay,OS,Del,SL", "[F05], [B19]"),
    ("tpcc-by-predicate", "mvrc", "columns", "so", "Pay,OS,SL NO,Pay", "[V23]"),
    ("auction", "si", "columns", "so", "FB,PB", "[B19]"),
    ("auction", "mvrc", "columns", "so", "FB,PB", "[V23]"),
]  # fmt: skip


def maximal(templates, level, *, sessions):
    """Yield the maximal sets of programs that are robust at a level, as tables in papers list them.

    A subset of a robust set is robust.
    """
    found: list[tuple[str, ...]] = []
    for size in range(len(templates.programs), 0, -1):
        for some in itertools.combinations(templates.programs, size):
            if any(set(some) <= set(one) for one in found):
                continue
            if robust(templates.of(some), dict.fromkeys(some, level), sessions=sessions):
                found.append(some)
                yield some


@pytest.mark.parametrize(("name", "level", "form", "order", "largest", "source"), LARGEST)
def test_the_largest_robust_sets(name, level, form, order, largest, source) -> None:
    """Of the programs of a benchmark, those that may run together at a level."""
    assert source
    found = maximal(FORMS[form](load(name)), level, sessions=order == "so")
    named = {frozenset(SHORT[one] for one in some) for some in found}
    assert named == {frozenset(some.split(",")) for some in largest.split()}


@pytest.mark.parametrize(
    ("name", "order", "form", "expected"),
    [  # B. Vandevoort et al. 2025 (arXiv 2501.18377), table 1; the others are computed here
        ("smallbank-names", "", "columns", "Bal SER, DC RC, TS SER, Am SER, WC SER"),
        ("smallbank", "", "columns", "Bal SER, DC RC, TS SER, Am RC, WC SER"),
        ("smallbank", "so", "columns", "Bal SER, DC RC, TS SER, Am RC, WC SER"),
        ("tpcc-key-value", "", "columns", "NO RC, Pay RC, OS SI, SL RC, Del RC"),
        pytest.param(
            *("tpcc-key-value", "", "rows", "NO SER, Pay SER, OS SER, SL RC, Del SER"),
            marks=pytest.mark.slow,
        ),
        ("tpcc", "so", "columns", "NO RC, Pay RC, OS SI, Del RC, SL SI"),
    ],
)
def test_the_lowest_levels(name, order, form, expected) -> None:
    """The optimum is unique; without it no program could run lower."""
    found = lowest(FORMS[form](load(name)), sessions=order == "so")
    words = {"mvrc": "RC", "si": "SI", "ssi": "SER"}
    assert ", ".join(f"{SHORT[one]} {words[at]}" for one, at in found.items()) == expected


@pytest.mark.parametrize(
    ("name", "level", "order", "expected"),
    [
        # PromoteWT and PromoteBW of M. Alomari et al., ICDE 2008
        ("smallbank", "si", "", ["Balance checking", "WriteCheck savings"]),
        ("smallbank", "si", "so", ["Balance checking", "WriteCheck savings"]),
        ("smallbank", "mvrc", "", ["Balance savings, WriteCheck savings, WriteCheck checking"]),
        ("courseware", "si", "", ["Enroll course"]),
        ("courseware", "si", "so", ["Enroll student, Enroll course"]),
        ("courseware", "mvrc", "so", []),
    ],
)
def test_the_cheapest_mends(name, level, order, expected) -> None:
    """All smallest sets of reads that, as updates, make the programs robust."""
    found, sessions = load(name), order == "so"
    levels = dict.fromkeys(found.programs, level)
    every = mends(found, levels, sessions=sessions)
    words = [
        ", ".join(f"{one.program} {one.read.partition('(')[2].partition('[')[0]}" for one in some)
        for some in every
    ]
    assert words == expected
    for some in every:
        changed = found.promoted((one.program, one.step) for one in some)
        assert robust(changed, levels, sessions=sessions)


def test_mended_smallbank_runs_below_serializable() -> None:
    """After either promotion no program needs SERIALIZABLE (computed here)."""
    found = load("smallbank")
    for step in (("WriteCheck", 1), ("Balance", 2)):
        levels = lowest(found.promoted([step]), sessions=False)
        assert levels == {
            "Balance": "si", "DepositChecking": "mvrc", "TransactSavings": "mvrc",
            "Amalgamate": "mvrc", "WriteCheck": "si",
        }  # fmt: skip


def test_a_refused_payment_makes_one_mend_insufficient() -> None:
    """With sessions, who reads checking alone sees what a mended Balance does not prevent."""
    found = of(
        "program WriteCheck(c) r(savings[c]) r(checking[c]) u(checking[c], 1)"
        " program TransactSavings(c) u(savings[c], 1)"
        " program Balance(c) r(checking[c]) r(savings[c])"
        " program Refused(c) r(checking[c])"
    )
    levels = dict.fromkeys(found.programs, "si")
    balance, check = (found.promoted([(one, 0)]) for one in ("Balance", "WriteCheck"))
    assert robust(balance, levels, sessions=False)
    assert not robust(balance, levels)
    assert robust(check, levels, sessions=False)
    assert robust(check, levels)


# Each row: templates, the level of each program, sessions, and the answer. Every one is a way to
# say "robust" wrongly, or to refuse what is robust.
TRAPS = {
    "first committer wins": ("program P(c) r(x[c]) w(x[c], 1)", "si", True, "robust"),
    "no first committer at RC": ("program P(c) r(x[c]) w(x[c], 1)", "mvrc", True, "not robust"),
    "an update is atomic": ("program P(c) u(x[c].n, .n + 1)", "mvrc", True, "robust"),
    "a read and an update are not": ("program P(c) r(x[c].n) u(x[c].n, .n + 1)", "mvrc", True,
                                     "not robust"),
    "later writes at SI": ("program P(c) r(x[c]) w(y[c], 1) program Q(c) w(x[c], 1) w(y[c], 1)",
                           "si", True, "robust"),
    "later writes at RC": ("program P(c) r(x[c]) w(y[c], 1) program Q(c) w(x[c], 1) w(y[c], 1)",
                           "mvrc", True, "not robust"),
    "sessions": ("program P(c, d) r(x[c]) w(y[d], 1) program Q(c) w(x[c], 1) program R(d) r(y[d])",
                 "si", True, "not robust"),
    "no sessions": ("program P(c, d) r(x[c]) w(y[d], 1) program Q(c) w(x[c], 1)"
                    " program R(d) r(y[d])", "si", False, "robust"),
    "two inserts": ("program P(c) r(x[c]) insert(x[c])", "mvrc", True, "robust"),
    "two inserts after a delete": ("program P(c) r(x[c]) insert(x[c]) program D(c) delete(x[c])",
                                   "mvrc", True, "not robust"),
    # What it deletes was there when it began, or is so later: PostgreSQL looks at a row again only
    # if it had to wait for it.
    "a condition and then its rows at RC": (
        "program A(k) delete(x[k, *]) program B(k, c, d) where c != d w(x[k, c].n, 1)"
        " w(x[k, d].n, 2)", "mvrc", True, "not robust"),
    "a phantom passes an update of many rows": (
        "program P() r(n) u(x[*].n, .n + 1) w(s, 1) program Q(c) r(s) insert(x[c])", "si", True,
        "not robust"),
    # PostgreSQL lets that pass; `si`, which certifies, has no such exception
    "a row that was deleted after the snapshot is inserted again": (
        "program P(c) r(a[c]) insert(x[c]) r(b[c]) program Q(c) w(b[c], 1) delete(x[c])", "si",
        False, "unknown"),
    "what T1 reads decides at SSI": (
        "program A(p, q) r(x[p]) w(y[q], 1) program X(p) w(x[p], 1) w(z[p], 1)"
        " program Y(p) w(x[p], 1) w(z[p], 1) program M(p, q) r(z[p]) r(y[q])",
        {"A": "ssi", "X": "ssi", "Y": "si", "M": "ssi"}, False, "not robust"),
    "all of SSI": (
        "program A(p, q) r(x[p]) w(y[q], 1) program X(p) w(x[p], 1) w(z[p], 1)"
        " program M(p, q) r(z[p]) r(y[q])", "ssi", True, "robust"),
    # X reads what A writes, and A what X writes, so that SSI aborts one of them, whoever follows.
    "T2 overlooks T1 at SSI": (
        "program A(p) r(x[p]) w(y[p], 1) w(z[p], 1) program X(p) r(z[p]) w(x[p], 1)"
        " program C(p) r(y[p])", {"A": "ssi", "X": "ssi", "C": "si"}, True, "robust"),
    "T2 overlooks T1 at SI": (
        "program A(p) r(x[p]) w(y[p], 1) w(z[p], 1) program X(p) r(z[p]) w(x[p], 1)"
        " program C(p) r(y[p])", {"A": "ssi", "X": "si", "C": "si"}, True, "not robust"),
    "a branch that hides": ("program P(c, d) where c != d a = r(x[c]) if a = 0 { r(x[d]) }"
                            " else { r(x[d]) w(x[c], 1) }", "si", True, "not robust"),
    "two inserts link nothing": (
        "program A(p, q) r(x[p]) w(y[q], 1) program B(p, s) w(x[p], 1) insert(m[s])"
        " program C(s, q) insert(m[s]) r(y[q])", "si", False, "robust"),
    "a path over what SSI aborts is no path": (
        "program A(p, q) u(x[q], 1) r(x[q]) r(x[p]) program B(p) u(x[p], 1)"
        " program C(p, q) w(x[p], 1) w(x[q], 1) r(x[q])", {"A": "ssi", "B": "si", "C": "ssi"},
        False, "not robust"),
    "two parameters of T1 are equal": ("program P(c, d) r(x[c]) r(x[d]) program Q(c) w(x[c], 1)",
                                       "mvrc", False, "not robust"),
    "a parameter of T1 is a constant": ("program P(c) r(x[c]) r(x[0]) program Q() w(x[0], 1)",
                                        "mvrc", False, "not robust"),
    "parameters that are never equal": (
        "program P(p, q) where p != q u(y[p], 1) r(x[q]) r(y[0])"
        " program Q(p) w(y[p], 1) u(x[0], 1)", "si", False, "robust"),
    "parameters that may be equal": (
        "program P(p, q) u(y[p], 1) r(x[q]) r(y[0]) program Q(p) w(y[p], 1) u(x[0], 1)",
        "si", False, "not robust"),
    "constants meet parameters": ("program P() r(x[1]) w(x[2], 1) program Q(c, d) where c != d"
                                  " r(x[c]) w(x[d], 1)", "si", True, "not robust"),
    "different constants": ("program P() r(x[1]) w(x[1], 1) program Q() r(x[2]) w(x[2], 1)", "si",
                            True, "robust"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAPS)
def test_traps(name) -> None:
    """What each condition of the theorem is for; interleavings of a few instances agree."""
    text, levels, sessions, expected = TRAPS[name]
    found = of(text)
    if isinstance(levels, str):
        levels = dict.fromkeys(found.programs, levels)
    decision = decide(found, levels, sessions=sessions)
    assert decision.standing == expected
    if expected == "robust":
        assert some_violation(found, levels, sessions=sessions, most=400) is None
    else:
        assert (decision.counterexample is not None) == (expected == "not robust")


@pytest.mark.parametrize("seed", range(60))
def test_random_templates(seed) -> None:
    """Robust ones have no interleaving that fails; others have one, certified and replayed."""
    rng = random.Random(seed)
    found = random_templates(rng, longest=2 if seed % 3 else 3)
    sessions = rng.random() < 0.5
    how = rng.choice([["mvrc"], ["si"], ["mvrc", "si", "ssi", "ssi"]])
    levels = {program: rng.choice(how) for program in found.programs}
    against = "ser" if sessions else "pl-3"
    every = candidates(found, levels, sessions=sessions)
    for candidate in islice(every, 50):
        failed = counterexample(found, levels, candidate, against=against)
        if failed is not None:
            assert failed.allowed.certified
            assert failed.forbidden.certified
            assert is_replayed(found, levels, candidate, sessions), template_lines(found)
            return
    wrong = some_violation(found, levels, sessions=sessions, most=120)
    assert wrong is None, (template_lines(found), levels, wrong)


def test_a_chain_over_rows_that_the_split_transaction_does_not_touch() -> None:
    """Each transaction of a chain has the row of the previous one, and no row too many."""
    found = of(
        "program A(p, q) r(x[p]) w(y[q], 1) program B(p, s) w(x[p], 1) w(m[s], 1)"
        " program D(s, t) r(m[s]) w(n[t], 1) program C(t, q) r(n[t]) r(y[q])"
    )
    levels = dict.fromkeys(found.programs, "si")
    alone = decide(found, levels, sessions=False).counterexample
    assert alone.names == ("A(p1, q1)", "B(p1, s1)", "D(s1, t1)", "C(t1, q1)")
    together = decide(found, levels).counterexample
    assert together.names == ("A(p1, q1)", "B(p1, s1)", "C(t1, q1)")
    assert together.sessions == (1, 2, 2)


def with_loops(rng: random.Random, found):
    """The templates, each branch of which also accesses some further rows in the same way."""
    branches = []
    for branch in found.branches:
        loop = [rng.choice(["read", "write", "update"]) for _ in range(rng.randint(1, 2))]
        relation = rng.choice(["x", "z"])
        items = [f"item{n}" for n in range(8)]
        every = [
            replace(
                branch.statements[0], kind=kind, relation=relation, keys=(item,),
                reads=frozenset([ALL_COLUMNS] if kind != "write" else []),
                writes=frozenset([ALL_COLUMNS] if kind != "read" else []),
            )
            for item in items
            for kind in loop
        ]  # fmt: skip
        place = rng.randint(0, len(branch.statements))
        statements = (*branch.statements[:place], *every, *branch.statements[place:])
        branches.append(
            replace(branch, statements=statements, parameters=(*branch.parameters, *items))
        )
    return templates_of_branches(tuple(branches))


@pytest.mark.slow
def test_short_branches_have_the_same_answer() -> None:
    """Parts with the rows of two statements are robust exactly if the whole sequences are."""
    answers = {False: 0, True: 0}
    for seed in range(12):
        rng = random.Random(seed)
        found = with_loops(rng, random_templates(rng, longest=1, most=2))
        short = found.reduced()
        assert sum(len(one.statements) for one in short.branches) < sum(
            len(one.statements) for one in found.branches
        )
        for how in (["mvrc"], ["si"], ["si", "ssi"]):
            levels = {program: rng.choice(how) for program in found.programs}
            for sessions in (False, True):
                try:  # the whole sequences take long
                    whole = robust(found, levels, sessions=sessions, budget=SearchBudget(3_000))
                except UnsupportedError:
                    continue
                assert robust(short, levels, sessions=sessions) == whole, (
                    template_lines(found),
                    levels,
                )
                answers[whole] += 1
    assert min(answers.values()) > 5

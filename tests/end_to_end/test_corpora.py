"""Histories of other people's checkers, with their labels: the tool agrees with each of them.

They are not part of this repository: the tests look for ``../shared/corpora`` beside it, or for the
folder that ``ISOLANG_CORPORA`` names, and are skipped without it. ``LABELS.tsv`` there has path,
format, level, verdict and a note for each history.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from oracle.levels import WEAK_STYLES
from oracle.pipeline import level_of
from support.paths import CORPORA

from isolang.api import check, load_history, load_spec
from isolang.certify.native import check_natively
from isolang.certify.proofs import Refutation, Witness
from isolang.errors import HistoryError
from isolang.language.classify.event_graph import classify
from isolang.language.classify.route import route
from isolang.problem import build_problem
from isolang.solvers.engine import solve

#: What the labels call a format, and what ``--from`` does.
FORMATS = {
    "dbcop": "dbcop",
    "cobra": "cobra",
    "viper": "viper",
    "plume": "plume",
    "awdit-test": "awdit",
    "edn": "edn",
}

#: Histories of single objects, for linearizability checkers.
OF_OBJECTS = ("etcd-log", "kv-edn")
KNOSSOS = {"good": "valid", "bad": "invalid"}

#: Of the files labelled with the strongest of read committed, read atomic and causal, what the
#: labels imply for the levels here. Violating causal consistency violates PC, SI and SER
#: (SI ⇒ PC ⇒ CC); Adya's PL-2 is weaker than RC; a name says the rest.
WEAK_IMPLIES = {
    "none": {
        "rc": "invalid",
        "ra": "invalid",
        "cc": "invalid",
        "psi": "invalid",
        "pc": "invalid",
        "si": "invalid",
        "ser": "invalid",
    },
    "read-committed": {
        "pl-2": "valid",
        "rc": "valid",
        "ra": "invalid",
        "cc": "invalid",
        "pc": "invalid",
        "si": "invalid",
        "ser": "invalid",
    },
    "read-atomic": {
        "rc": "valid",
        "ra": "valid",
        "cc": "invalid",
        "psi": "invalid",
        "pc": "invalid",
        "si": "invalid",
        "ser": "invalid",
    },
    "causal": {"pl-2": "valid", "rc": "valid", "ra": "valid", "cc": "valid"},
}
WEAK_NAMES = {
    "lost-update": {"psi": "invalid", "pc": "valid", "si": "invalid", "ser": "invalid"},
    "long-fork": {"psi": "valid", "pc": "invalid", "si": "invalid", "ser": "invalid"},
    "fully-ser": {"pc": "valid", "si": "valid", "ser": "valid"},
}

#: EDN files have no label in the table; these verdicts are derived by hand.
#:
#: ``paper-example``: T3 reads T2's 8 on key 255 and precedes T4 on 256 (4 before 3); T4 does not
#: see the 8. One anti-dependency, T4 → T2 → T3 → T4, after a ``ww``: PC forbids it only when ``so``
#: precedes it, that is in the copy where all four are one session.
#: ``si-without-g-single``, ``gh-30``: two adjacent anti-dependencies, so SI holds; in the former T4
#: overlooks what T3 had committed before, in the order of lines.
#: ``rw-register``: nobody writes the 3 that is read.
_G_SINGLE = {"pl-1": "valid", "pl-2": "valid", "pl-3": "invalid", "si-nosession": "invalid"}
_WRITE_SKEW = {"pl-2": "valid", "pl-3": "invalid", "si": "valid", "ser": "invalid"}
EDN_VERDICTS: dict[str, dict[str, str]] = {
    "edn/elle/paper-example.edn": _G_SINGLE | {"pc": "invalid", "ser": "invalid"},
    "edn/list-append/paper-example.edn": _G_SINGLE | {"pc": "valid", "ser": "invalid"},
    "edn/elle/list-append-gh-30.edn": _WRITE_SKEW | {"strong-si": "valid", "sser": "invalid"},
    "edn/list-append/si-without-g-single.edn": _WRITE_SKEW
    | {"strong-si": "invalid", "sser": "invalid"},
    "edn/elle/rw-register.edn": {"pl-1": "valid", "pl-2": "invalid", "ser-nosession": "invalid"},
    # Of a longer history: what the read shows was added before.
    "edn/custom/comments.edn": {"pl-1": "valid", "pl-2": "invalid", "sser": "invalid"},
    "edn/jepsen/bank.edn": {"rc": "unknown", "si": "valid", "sser": "valid"},
    "edn/jepsen/counter.edn": {"pl-2": "valid", "sser": "valid"},
}

#: A set whose only read has lost its independent key.
EDN_DAMAGED = "edn/jepsen/set_full.edn"


def _labels() -> list[dict[str, str]]:
    table = CORPORA / "LABELS.tsv"
    if not table.exists():
        return []
    with table.open(newline="", encoding="utf-8") as f:
        return list(csv.DictReader(f, delimiter="\t"))


LABELS = _labels()
pytestmark = pytest.mark.skipif(not LABELS, reason=f"no corpora at {CORPORA}")


def _expected() -> list[tuple[str, str, dict[str, str]]]:
    out = []
    for row in LABELS:
        path, level, verdict = row["path"], row["level"], row["verdict"]
        if row["format"] in OF_OBJECTS or row["format"] == "edn":
            continue
        if level in ("ser", "si"):
            expected = {level: verdict}
            if (level, verdict) == ("ser", "valid"):
                expected |= {"si": "valid", "pc": "valid", "psi": "valid", "cc": "valid"}
                expected |= {"ra": "valid", "rc": "valid"}
            elif (level, verdict) == ("si", "invalid"):
                expected |= {"ser": "invalid"}
        else:
            expected = WEAK_IMPLIES[verdict] | WEAK_NAMES.get(Path(path).stem, {})
        out.append((path, FORMATS[row["format"]], expected))
    return out


@pytest.mark.slow
@pytest.mark.parametrize(("path", "form", "expected"), _expected(), ids=lambda v: str(v)[:60])
def test_labels(path: str, form: str, expected: dict[str, str]) -> None:
    history = load_history(CORPORA / path)
    assert history.format == form, "detected by content"
    got = {}
    specs = set(expected)
    if path.startswith("weak/"):
        specs |= {style for style in WEAK_STYLES if level_of(style) in expected}
    for level in sorted(specs):
        verdict = check(history, route(load_spec(level)), timeout=60)
        assert verdict.outcome == "unknown" or verdict.certified
        got[level] = verdict.outcome
    assert got == {level: expected[level_of(level)] for level in got}


def test_every_label_is_used() -> None:
    """No row is passed over because nobody thought of its format or level."""
    known = {*FORMATS, *OF_OBJECTS}
    assert {row["format"] for row in LABELS} <= known
    for row in LABELS:
        assert (CORPORA / row["path"]).exists()


def _objects() -> list[tuple[str, str]]:
    rows = [(r["path"], r["verdict"]) for r in LABELS if r["level"] == "linearizable"]
    known = [(r["path"], KNOSSOS[r["verdict"]]) for r in LABELS if "/knossos/" in r["path"]]
    return rows + known


@pytest.mark.slow
@pytest.mark.parametrize(("path", "expected"), _objects())
def test_linearizability(path: str, expected: str) -> None:
    """Registers, locks and stores: the native checker accepts a proof of each label."""
    history = load_history(CORPORA / path)
    assert history.format == "registers", "detected by content"
    level = load_spec("linearizable")
    problem = build_problem(history)
    if not problem.anomalies():
        answer = solve(history.columns, problem.native, classify(level).automata, seconds=60)
        assert isinstance(answer.result, Witness if expected == "valid" else Refutation)
        check_natively(history, level, answer.result, seconds=60)
        return
    verdict = check(history, level, timeout=60)
    assert (verdict.outcome, verdict.certified) == (expected, True)


def test_every_log_of_objects_is_there() -> None:
    """40 of etcd, 6 of a store of texts, 7 of registers, 1 of a lock."""
    assert len(_objects()) == 54


OF_TRANSACTIONS = [
    r["path"] for r in LABELS if r["format"] == "edn" and "/knossos/" not in r["path"]
]


@pytest.mark.parametrize("path", OF_TRANSACTIONS)
def test_edn(path: str) -> None:
    if path == EDN_DAMAGED:
        with pytest.raises(HistoryError, match="line 587: the value has no key"):
            load_history(CORPORA / path)
        return
    history = load_history(CORPORA / path)
    expected = EDN_VERDICTS[path]
    got = {level: check(history, route(load_spec(level))).outcome for level in expected}
    assert got == expected

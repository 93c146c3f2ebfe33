"""The closed table of anomaly names: a name is a function of the cycle."""

import random
import re
from collections import Counter

import pytest
from oracle import generate
from oracle.history import parse, show
from oracle.pipeline import to_tool
from support.paths import DOCS
from support.sampling import quick_first

from isolang import check, load_spec
from isolang.certify.steps import Edge
from isolang.explain import names
from isolang.language.classify.route import route
from isolang.problem.anomalies import AnomalyKind

PAGE = DOCS / "anomalies.md"


def cycle(*labels):
    """Edges 0 → 1 → … → 0, each labelled ``relation`` or ``relation:key``."""
    edges = []
    for i, label in enumerate(labels):
        relation, _, key = label.partition(":")
        edges.append(Edge(relation, i, (i + 1) % len(labels), int(key or -1), i, 99))
    return edges


class Operations:
    """Operations of which some are of a predicate read."""

    def __init__(self, predicates=(), statements=()):
        self.predicates = predicates
        self.statement = {op: i for i, ops in enumerate(statements) for op in ops}

    def of_predicate(self, op):
        return op in self.predicates

    def reads_first(self, op, later):
        return op < later and self.statement.get(op, -1) != self.statement.get(later, -2)


BY_KEY = Operations()

TABLE = [
    (["ww:0", "ww:1"], set(), "G0"),
    (["so", "ww:0"], set(), "G0-session"),
    (["wr:0", "wr:1"], set(), "G1c"),
    (["wr:0", "ww:1"], set(), "G1c"),
    (["wr:0", "so"], set(), "G1c-session"),
    (["wr:0", "so", "wr:1", "rt"], set(), "G1c-realtime"),
    (["ww:0", "rw:0"], {(1, 0)}, "lost update"),
    (["ww:1", "rw:0"], {(1, 0)}, "lost update"),
    (["so", "rw:0"], {(1, 0)}, "lost update-session"),
    (["rt", "rw:0"], {(1, 0)}, "lost update-realtime"),
    (["done", "rw:0"], {(1, 0)}, "lost update-realtime"),
    (["done[W,R]", "so", "rw:0"], {(2, 0)}, "lost update-realtime"),
    (["done", "rw:0"], set(), "G-single-realtime"),
    (["wr:0", "rw:0"], {(1, 0)}, "non-monotonic read"),
    (["rw:0", "wr:0"], {(0, 0)}, "fractured read"),
    (["wr:1", "so", "rw:0"], {(2, 0)}, "causality violation-session"),
    (["ww:1", "wr:2", "rw:0"], {(2, 0)}, "G-single"),
    (["rw:0", "rw:0"], {(0, 0), (1, 0)}, "lost update"),
    (["wr:0", "rw:1"], set(), "non-monotonic read"),
    (["rw:1", "wr:0"], set(), "fractured read"),
    (["wr:0", "wr:1", "rw:2"], set(), "causality violation"),
    (["wr:0", "so", "rw:2"], set(), "causality violation-session"),
    (["wr:0", "ww:1", "rw:2"], set(), "G-single"),
    (["ww:0", "rw:1"], set(), "G-single"),
    (["so", "rw:1"], set(), "G-single-session"),
    (["rt", "rw:1"], set(), "G-single-realtime"),
    (["wr:0", "rt", "rw:1"], set(), "G-single-realtime"),
    (["wr:0", "rw:1", "wr:1", "rw:0"], set(), "long fork"),
    (["so", "rw:1", "so", "rw:0"], set(), "long fork-session"),
    (["rw:0", "rw:1"], {(0, 1), (1, 0)}, "write skew"),
    (["rw:0", "rw:1", "rw:2"], set(), "G2"),
    (["wr:0", "rw:0", "rw:1"], set(), "G2"),
    (["rw:0", "wr:0", "rw:1"], set(), "G2"),
    (["rt", "rw:0", "rw:1"], set(), "G2-realtime"),
]


@pytest.mark.parametrize(("labels", "writes", "expected"), TABLE)
def test_name_of_cycle(labels, writes, expected):
    """Each row of the table."""
    assert (
        names.name_of_cycle(cycle(*labels), lambda t, key: (t, key) in writes, BY_KEY) == expected
    )


@pytest.mark.parametrize(("labels", "writes", "expected"), TABLE)
def test_name_does_not_depend_on_where_the_cycle_is_entered(labels, writes, expected):
    """Rotations of one cycle have one name."""
    edges = cycle(*labels)
    for i in range(len(edges)):
        rotated = edges[i:] + edges[:i]
        assert names.name_of_cycle(rotated, lambda t, key: (t, key) in writes, BY_KEY) == expected


@pytest.mark.parametrize(
    ("labels", "predicates", "statements", "expected"),
    [
        (["wr:0", "wr:1"], {0}, (), "G1c-predicate"),
        (["rw:0", "rw:1"], {0}, (), "predicate write skew"),
        (["rw:0", "rw:1"], {0, 1}, (), "predicate write skew"),
        (["rw:0", "rw:0"], {1}, (), "lost update-predicate"),
        (["rw:1", "wr:0"], {0}, (), "phantom"),
        (["rw:1", "wr:0"], {1}, (), "fractured read-predicate"),
        (["rw:1", "wr:0"], {0}, ({0, 1},), "fractured read-predicate"),
        (["wr:0", "rw:1"], {1}, ({0, 1},), "fractured read-predicate"),
        (["wr:0", "rw:1"], {1}, (), "non-monotonic read-predicate"),
        (["wr:0", "so", "rw:2"], {2}, (), "causality violation-predicate-session"),
        (["rt", "rw:1"], {1}, (), "G-single-predicate-realtime"),
        (["wr:0", "rw:1", "wr:1", "rw:0"], {3}, (), "long fork-predicate"),
        (["rw:0", "rw:1", "rw:2"], {2}, (), "G2-predicate"),
    ],
)
def test_a_predicate_read_shows_in_the_name(labels, predicates, statements, expected):
    """Phantom and predicate write skew are names of their own; the rest has a suffix."""
    reads = Operations(predicates, statements)
    name = names.name_of_cycle(cycle(*labels), lambda t, key: False, reads)
    assert name == expected
    assert names.base_name(name) in names.SEVERITY
    assert names.meaning(name)


def test_every_name_has_a_meaning_and_is_documented():
    """The table of the documentation is the table of the code."""
    documented = set(re.findall(r"^\| `([^`]+)` \|", PAGE.read_text(), re.MULTILINE))
    assert documented == set(names.MEANING)
    assert set(names.SEVERITY) <= set(names.MEANING)
    assert set(names.INTRINSIC.values()) <= set(names.MEANING)
    assert set(names.INTRINSIC) == set(AnomalyKind)


def test_weakest_is_what_happened_at_least():
    """Of several cases, the one that says least names the violation."""
    assert names.weakest(["G1c", "write skew", "lost update"]) == "write skew"
    assert names.weakest(["G1c", "G1c-session"]) == "G1c-session"
    assert names.weakest(["long fork-realtime", "G-single"]) == "long fork-realtime"


# A smallest history of each name: what a level calls by a name, that level forbids.
SHAPES = {
    "G0": "append(x,1) append(y,1) || append(x,2) append(y,2) || r(x,[1 2]) r(y,[2 1])",
    "G0-session": "append(x,1) -> append(x,2) || r(x,[2 1])",
    "G0-realtime": "append(x,1) @1-2 || append(x,2) @3-4 || r(x,[2 1]) @1-9",
    "G1c": "w(x,1) r(y,1) || w(y,1) r(x,1)",
    "G1c-session": "r(x,1) -> w(x,1)",
    "G1c-realtime": "r(x,1) @1-2 || w(x,1) @3-4",
    "lost update": "r(x,nil) w(x,1) || r(x,nil) w(x,2)",
    "lost update-session": "w(x,1) -> r(x,nil) w(x,2)",
    "lost update-realtime": "w(x,1) @1-2 || r(x,nil) w(x,2) @3-4",
    "non-monotonic read": "w(x,1) w(y,1) || r(x,1) r(y,nil)",
    "fractured read": "w(x,1) w(y,1) || r(y,nil) r(x,1)",
    "causality violation": "w(x,1) || r(x,1) w(y,1) || r(y,1) r(x,nil)",
    "causality violation-session": "w(x,1) -> w(y,1) || r(y,1) r(x,nil)",
    "G-single": "append(x,1) append(z,1) || append(x,2) append(y,1) || "
    "r(y,[1]) r(z,[]) || r(x,[1 2])",
    "G-single-session": "w(x,1) -> r(x,nil)",
    "G-single-realtime": "w(x,1) @1-2 || r(x,nil) @3-4",
    "long fork": "w(x,1) || w(y,1) || r(x,1) r(y,nil) || r(y,1) r(x,nil)",
    "long fork-session": "w(x,1) -> r(y,nil) || w(y,1) -> r(x,nil)",
    "write skew": "r(x,nil) r(y,nil) w(x,1) || r(x,nil) r(y,nil) w(y,1)",
    "G2": "r(x,nil) w(y,1) || r(y,nil) w(z,1) || r(z,nil) w(x,1)",
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_each_name_has_its_shape(name):
    """The smallest history of a name gets that name, where everything is forbidden."""
    history = to_tool(parse(SHAPES[name]))
    level = "sser" if name.endswith("-realtime") else "ser"
    assert check(history, load_spec(level)).violation.anomaly == name


@pytest.mark.slow
@pytest.mark.parametrize(
    "level",
    quick_first(["pl-1", "pl-2", "rc", "ra", "cc", "psi", "pc", "si", "ser"], 4, rest="campaign"),
)
def test_no_name_that_the_level_allows(level):
    """What a level's violation is called is forbidden by that level, by itself."""
    spec = route(load_spec(level))
    rng = random.Random(level)
    forbidden = {}
    found = set()
    # Of random histories few violate the weakest levels, and by few names.
    while len(found) < (20 if level in ("pl-1", "pl-2") else 60):
        history = generate.any_history(rng)
        verdict = check(to_tool(history), spec)
        if verdict.outcome == "invalid" and verdict.violation.anomaly in SHAPES:
            name = verdict.violation.anomaly
            if name not in forbidden:
                forbidden[name] = check(to_tool(parse(SHAPES[name])), spec).outcome
            assert forbidden[name] == "invalid", (name, show(history))
            found.add(show(history))


def test_a_changed_reread_is_no_lost_update():
    """The writer saw the write in between: of its two reads, one missed what the other one saw."""
    history = to_tool(parse("w(x,1) || w(x,2) || r(x,1) r(x,2) w(x,3)"))
    for level in ("si", "ser", "psi"):
        assert check(history, load_spec(level)).violation.anomaly == "fractured read"


@pytest.mark.parametrize(
    ("text", "level", "name"),
    [
        ("r(x,nil) w(x,1) @1-2 || r(x,nil) w(x,2) @3-4", "sser", "lost update"),
        ("r(x,nil) w(x,1) -> r(x,nil) w(x,2)", "ser", "lost update"),
        ("w(x,1) @1-2 || r(x,nil) w(y,1) @3-4", "sser", "G-single-realtime"),
        ("w(x,1) w(y,1) -> r(x,1) r(y,nil)", "ser", "non-monotonic read"),
    ],
)
def test_suffixes_are_for_what_needs_them(text, level, name):
    """A violation that is there without sessions, or without real time, is told without them."""
    assert check(to_tool(parse(text)), load_spec(level)).violation.anomaly == name


#: A level that forbids a name, and all that stands before it in ``SEVERITY``.
FORBIDDEN_BY = {
    "G0": "pl-1",
    "G1c": "pl-2",
    "lost update": "psi-nosession",
    "non-monotonic read": "psi-nosession",
    "fractured read": "psi-nosession",
    "causality violation": "psi-nosession",
    "G-single": "psi-nosession",
    "long fork": "si-nosession",
    "write skew": "ser-nosession",
    "G2": "ser-nosession",
}


@pytest.mark.slow
def test_what_a_name_says_happened_in_every_case():
    """The level that forbids it is broken, too: an argument's lemmas count like its end.

    Not so where a list is wrong by itself (``split append`` is told as G0): ``pl-1`` reads none.
    """
    rng = random.Random(12)
    found: Counter[str] = Counter()
    for _ in range(400):
        history = generate.any_history(rng)
        verdict = check(to_tool(history), load_spec("ser"))
        if verdict.anomalies:
            continue
        if verdict.outcome == "invalid" and (name := verdict.violation.anomaly) in FORBIDDEN_BY:
            found[name] += 1
            weaker = check(to_tool(history), load_spec(FORBIDDEN_BY[name]))
            assert weaker.outcome == "invalid", (name, show(history))
    assert len(found) > 6


def test_a_lemma_counts_like_a_case():
    """Nobody interleaved writes for certain: the writers may also have come in either order."""
    history = parse("w(x,1) w(y,1) || w(x,2) w(y,2) || r(x,1) r(y,2)")
    assert check(to_tool(history), load_spec("ra")).violation.anomaly == "fractured read"
    assert check(to_tool(history), load_spec("pl-1")).outcome == "valid"

"""The closed table of anomaly names: a name is a function of the cycle."""

import re

import pytest
from support.paths import DOCS

from isolang.certify.steps import Edge
from isolang.explain import names
from isolang.problem.anomalies import AnomalyKind

PAGE = DOCS / "anomalies.md"


def cycle(*labels):
    """Edges 0 → 1 → … → 0, each labelled ``relation`` or ``relation:key``."""
    edges = []
    for i, label in enumerate(labels):
        relation, _, key = label.partition(":")
        edges.append(Edge(relation, i, (i + 1) % len(labels), int(key or -1), i, 99))
    return edges


TABLE = [
    (["ww:0", "ww:1"], set(), "G0"),
    (["so", "ww:0"], set(), "G0-session"),
    (["wr:0", "wr:1"], set(), "G1c"),
    (["wr:0", "ww:1"], set(), "G1c"),
    (["wr:0", "so"], set(), "G1c-session"),
    (["wr:0", "so", "wr:1", "rt"], set(), "G1c-realtime"),
    (["ww:0", "rw:0"], {(1, 0)}, "lost update"),
    (["wr:0", "rw:0"], {(1, 0)}, "lost update"),
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
    assert names.name_of_cycle(cycle(*labels), lambda t, key: (t, key) in writes) == expected


@pytest.mark.parametrize(("labels", "writes", "expected"), TABLE)
def test_name_does_not_depend_on_where_the_cycle_is_entered(labels, writes, expected):
    """Rotations of one cycle have one name."""
    edges = cycle(*labels)
    for i in range(len(edges)):
        rotated = edges[i:] + edges[:i]
        assert names.name_of_cycle(rotated, lambda t, key: (t, key) in writes) == expected


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

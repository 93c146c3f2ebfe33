"""Plain English, one word for one thing: the counts of dialect fall, and names are not shared."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from functools import cache

import pytest
from support import english
from support.paths import ROOT

# Pairs of classes that may share a name: the tree of a text and its meaning, or two sides that must
# not share code.
SHARED = {
    "Example": "the tree of a sentence in a .iso file, and its meaning",
    "Lift": "the tree and its meaning",
    "Named": "the tree and its meaning",
    "Operation": "of a log of an object, and a call of an application that is made again",
    "Anomaly": "found by the engine's pre-pass, and claimed in a certificate: they share no code",
}


@cache
def shared_names() -> dict[str, list[str]]:
    """The public classes of one name in several modules."""
    places = defaultdict(list)
    for path in sorted((ROOT / "isolang").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(f"{path.relative_to(ROOT)}:{node.lineno}")
    return {name: where for name, where in places.items() if len(where) > 1}


@pytest.mark.slow
def test_no_room_has_more_dialect_than_before():
    """Each room has at most the hits of the baseline; `support/english.py -v ROOM` lists them."""
    allowed = english.baseline()
    found = english.hits()
    rooms = Counter(hit.room for hit in found)
    more = {
        room: [str(hit) for hit in found if hit.room == room]
        for room, count in rooms.items()
        if count > allowed.get(room, 0)
    }
    assert more == {}


@pytest.mark.slow
def test_no_room_has_more_variables_without_a_meaning_than_before():
    """A new variable has the name of what it holds; `found` and `one` only get fewer."""
    allowed = english.allowed_bindings()
    bindings = english.vague_bindings()
    assert {room: n for room, n in bindings.items() if n > allowed.get(room, 0)} == {}


@pytest.mark.slow
def test_the_baseline_names_rooms_that_exist():
    """A room that is gone, or clean, is no row of the baseline."""
    rooms = {hit.room for hit in english.hits()}
    assert set(english.baseline()) <= rooms


@pytest.mark.slow
def test_reviewed_hits_still_exist():
    """A hit that was read and found right is still there, as often as the list says."""
    found = Counter(
        (str(path), text if kind == "identifier" else match[0])
        for _, path, kind, _, text in english.texts(ROOT)
        for rule in english.rules()
        if (rule.kind == "identifier") == (kind == "identifier")
        and (rule.kind != "docstring" or kind == "docstring")
        for match in rule.hits(text)
    )
    gone = {key: count for key, count in english.reviewed().items() if found[key] < count}
    assert gone == {}


@pytest.mark.parametrize("rule", english.rules(), ids=lambda rule: rule.bad)
def test_rules_find_what_they_are_for(rule):
    """Each rule finds its bad example, and not its good one."""
    assert list(rule.hits(rule.bad))
    assert not list(rule.hits(rule.good))


@pytest.mark.slow
def test_classes_do_not_share_names():
    """One name for one thing: no two public classes share theirs, but for those listed."""
    listed = {*SHARED, *english.still_shared()}
    assert {name: where for name, where in shared_names().items() if name not in listed} == {}


@pytest.mark.slow
def test_listed_names_are_still_shared():
    """The list of exceptions has none that is gone."""
    assert {*SHARED, *english.still_shared()} <= set(shared_names())


def test_the_glossary_names_what_exists():
    """Each name in code that the glossary gives is one of isolang's."""
    text = (ROOT / "docs" / "glossary.md").read_text()
    rows = re.findall(r"^\| \*\*([^|*]+)\*\* \|[^|]*\|([^|]*)\|$", text, re.MULTILINE)
    assert len(rows) >= 55
    words = set()
    for path in [*(ROOT / "isolang").rglob("*.py"), *(ROOT / "native").rglob("*.?pp")]:
        words |= set(re.findall(r"\w+", path.read_text()))
        words.add(path.stem)
        words.add(path.parent.name)
    missing = {
        (term, name)
        for term, names in rows
        for name in re.findall(r"`([^`]+)`", names)
        if not set(re.findall(r"\w+", name)) <= words
    }
    assert missing == set()
    assert len({term for term, _ in rows}) == len(rows)

"""The vocabulary: C++ has the same names, and nobody lists the words again."""

from __future__ import annotations

import ast
import random
import re
from itertools import islice

import pytest
from oracle import concrete
from oracle.concrete_histories import random_histories
from support.paths import ROOT

from isolang.language import vocabulary
from isolang.language.editing import BUILTIN_MEANINGS
from isolang.language.syntax.highlight import COLOURS
from isolang.language.vocabulary import ROWS, VOCABULARY, relation_of

PACKAGE = ROOT / "isolang"
TABLE = PACKAGE / "language" / "vocabulary.py"
NATIVE = ROOT / "native" / "core" / "relations.def"

# A literal with this many words of the language is a list of them.
MANY = 3

# file:name of what may have one, and why.
EXCEPTIONS = {
    "certify/kernel_text.py": "the words of the kernel's own language, which is a part of this one",
    "comparison/vacuity.py": "why a history has no pair, for those that people meet most",
    "comparison/normal.py": "the order in which steps of a chain are tried",
    "pipeline/known_cycles.py": "the cycles that define anomalies, by their steps",
    "pipeline/groups.py": "which edges name the statements: anti-dependencies first",
    "language/classify/relational.py": "what a part of a history may lack: an argument for each",
}


def _is_plain(value: ast.expr) -> bool:
    """Whether a value says nothing that is computed: a table of meanings is an interpreter."""
    try:
        ast.literal_eval(value)
    except ValueError:
        return False
    return True


def words_of(node: ast.expr) -> set[str]:
    """The words of the language that stand in a literal, also as letters such as ``rt[W,R]``."""
    match node:
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
            pass
        case ast.Dict(keys=keys, values=values) if all(map(_is_plain, values)):
            parts = [key for key in keys if key is not None]
        case ast.Call(args=parts):
            pass
        case _:
            return set()
    texts = {part.value for part in parts if isinstance(part, ast.Constant)}
    return {text for text in texts if isinstance(text, str) and relation_of(text) in ROWS}


def lists_in(text: str) -> list[tuple[int, set[str]]]:
    """The lists of words in a module, by line."""
    found = [
        (node.lineno, words_of(node))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.expr)
    ]
    return [(line, words) for line, words in found if len(words) >= MANY]


def native_rows() -> dict[str, list[tuple[str, ...]]]:
    """The rows of the table for C++, by macro."""
    rows: dict[str, list[tuple[str, ...]]] = {}
    text = re.sub(r"//.*|#.*", "", NATIVE.read_text())
    for macro, inner in re.findall(r"^([A-Z]+)\(([^)]*)\)", text, re.MULTILINE):
        rows.setdefault(macro, []).append(tuple(x.strip(' "') for x in inner.split(",")))
    return rows


def test_cpp_has_the_same_names():
    """relations.def has each letter, its parts, what is filtered, and the tests: no others."""
    rows = native_rows()
    letters = {w.name for w in VOCABULARY if w.letter and w.part_of is None}
    assert {name for _, name in rows["RELATION"]} == letters
    parts = {
        (w.name, w.part_of, "item" if w.name.startswith("i") else "predicate")
        for w in VOCABULARY
        if w.part_of is not None
    }
    assert {(name, whole, reads) for _, name, whole, reads in rows["PART"]} == parts
    assert tuple(name for _, name in rows["FILTERED"]) == vocabulary.FILTERED_RELATIONS
    assert tuple(name for _, name in rows["TEST"]) == (*vocabulary.TESTS, *vocabulary.NAMED)


@pytest.mark.slow
def test_no_other_module_lists_the_words():
    """A literal of three words or more is in vocabulary.py, or an exception with its reason."""
    found = {
        f"{path.relative_to(ROOT)}:{line}: {sorted(words)}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if path != TABLE
        for line, words in lists_in(path.read_text())
        if str(path.relative_to(PACKAGE)) not in EXCEPTIONS
    }
    assert found == set()


def lists_elsewhere(text: str) -> list[tuple[int, set[str]]]:
    """The lists of words in C++, or in a script of a page: texts within one pair of brackets."""
    found = []
    text = re.sub(r"//.*", "", text)
    quoted = r"\"[^\"\n]*\"|'[^'\n]*'"
    for inner in re.finditer(rf"[\[{{(]((?:{quoted}|[^\[\]{{}}()\"'])*)[\]}})]", text):
        texts = {one[1:-1] for one in re.findall(quoted, inner[1])}
        line = text.count("\n", 0, inner.start()) + 1
        found.append((line, {text for text in texts if relation_of(text) in ROWS}))
    return [(line, words) for line, words in found if len(words) >= MANY]


def test_no_list_of_words_in_cpp_or_in_a_page():
    """C++ takes the names from relations.def, and a page from its data."""
    scripts = [*(PACKAGE / "report").rglob("*.js"), *(ROOT / "editors").rglob("*.js")]
    core = [path for path in (ROOT / "native").rglob("*") if path.suffix in {".cpp", ".hpp"}]
    assert scripts
    assert core
    found = {
        f"{path.relative_to(ROOT)}:{line}: {sorted(words)}"
        for path in (*scripts, *core)
        for line, words in lists_elsewhere(path.read_text())
    }
    assert found == set()


@pytest.mark.parametrize(
    "text",
    [
        'constexpr const char* kNames[] = {"ww", "wr", "so"};',
        "const WORDS = ['so', 'rt[W,R]', 'ww'];",
        'names({"so",\n       "rt", "late"});',
    ],
)
def test_a_list_of_words_is_found_elsewhere(text):
    """However it is written."""
    assert lists_elsewhere(text)


@pytest.mark.parametrize(
    "text",
    [
        'X = ("so", "rt", "ww")',
        'f({"so", "rt[W,R]", "ww"})',
        'X = {"so": 1, "rt": 2, "ww": 3}',
        'frozenset(["so", "wr", "ww"])',
        'words("so", "wr", "ww")',
    ],
)
def test_a_list_of_words_is_found(text):
    """However it is written."""
    assert lists_in(text)


def test_what_is_no_list_of_words():
    """Two words, other texts, and the cases of an interpreter are none."""
    assert not lists_in('X = ("so", "rt", "valid")')
    assert not lists_in('match x:\n    case "so" | "rt" | "ww":\n        pass')


def test_the_editor_knows_every_word():
    """Hover and completion say what each given name means; each word has a colour."""
    assert set(BUILTIN_MEANINGS) == {word.name for word in VOCABULARY if not word.fragment}
    (names,) = (one.pattern for one in COLOURS if one.scope == "support.constant")
    assert all(re.fullmatch(names, word.name) for word in VOCABULARY)


def test_each_exception_is_needed():
    """A module that lists nothing any more is none."""
    for name in EXCEPTIONS:
        assert lists_in((PACKAGE / name).read_text()), name


@pytest.mark.parametrize(
    "word", [w for w in vocabulary.BUILTIN_WORDS if w.transitive or w.contains_init]
)
def test_what_a_row_says_of_its_relation_holds(word):
    """Transitive relations are, and those that contain init do, in small histories with pairs."""
    composed = 0
    for size in (2, 3, 4):
        some = random_histories(
            random.Random(size), size, 2, real_time=size < 4, orders=False, groups=True
        )
        for history in islice(some, 200):
            w = concrete.given(history, events=False)
            pairs, init = w.plain[word.name], w.plain["init"]
            twice = concrete.compose(pairs, pairs, w.m)
            assert not word.transitive or not twice & ~pairs, history
            assert not word.contains_init or not init & ~pairs, history
            composed += twice != 0
    assert composed > 20 or word.name in {"init", "group-rt"}


def test_no_other_given_relation_contains_init():
    """A row that does not say so is of a relation in which nothing follows T0."""
    others = {
        w.name
        for w in vocabulary.BUILTIN_WORDS
        if w.sort.kind == "relation" and not w.contains_init
    }
    some = random_histories(random.Random(0), 3, 2, real_time=True, orders=False, groups=True)
    for history in islice(some, 200):
        w = concrete.given(history, events=False)
        for name in others & w.plain.keys() - {"id"}:
            assert not w.plain[name] & w.plain["init"], (name, history)

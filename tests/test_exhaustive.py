"""Who interprets names or verdicts says so of each: what is forgotten does not pass in silence."""

import ast
import re

import pytest
from support.paths import ROOT

from isolang.language.vocabulary import ROWS, word_of

PACKAGE = ROOT / "isolang"
VERDICTS = {"Valid", "Invalid", "Unknown"}
PROOFS = {"Witness", "Relations", "Refutation", "Exhaustion", "Unproved", "Undecided"}
#: What gives every word a meaning: of a problem and of small histories, of a world, of a step.
INTERPRETERS = {
    "encodings/relational/interpretation.py",
    "certify/world.py",
    "certify/claim.py",
}


def matches(text):
    """The matches of a module: the line, the words and the classes of the cases, the last case."""
    if not re.search(r"^\s*match\b", text, re.MULTILINE):
        return  # nine tenths of the modules: they are not parsed
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Match) and not isinstance(node.subject, ast.Tuple):
            tops = [one for case in node.cases for one in alternatives(case.pattern)]
            words = {
                one.value.value
                for one in tops
                if isinstance(one, ast.MatchValue) and isinstance(one.value, ast.Constant)
            }
            classes = {
                one.cls.id
                for one in tops
                if isinstance(one, ast.MatchClass) and isinstance(one.cls, ast.Name)
            }
            yield node.lineno, words, classes, node.cases[-1]


def alternatives(pattern):
    if isinstance(pattern, ast.MatchAs) and pattern.pattern is not None:
        pattern = pattern.pattern
    return pattern.patterns if isinstance(pattern, ast.MatchOr) else [pattern]


def is_wild(case):
    return isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None


def is_never(case):
    return is_wild(case) and "assert_never(" in ast.unparse(case.body[0])


def interprets(text):
    """Whether some match of a module has a case for every word, and mypy sees to it."""
    return any(ROWS.keys() <= words and is_never(last) for _, words, _, last in matches(text))


def open_matches(text):
    """The lines of matches over verdicts or proofs that say nothing of those they do not name."""
    return [
        line
        for line, _, classes, last in matches(text)
        if classes & (VERDICTS | PROOFS) and not is_wild(last)
    ]


@pytest.mark.parametrize("module", sorted(INTERPRETERS))
def test_an_interpreter_has_a_case_for_every_word(module):
    """It ends in `assert_never`, so that a new word does not type-check before it has a meaning."""
    assert interprets((PACKAGE / module).read_text())


def test_a_forgotten_word_is_found():
    """With one word less, or without `assert_never`, it is no interpreter."""
    cases = [f"    case {name!r}:\n        pass\n" for name in ROWS]
    never = "    case _:\n        assert_never(word)\n"
    assert interprets(f"match word:\n{''.join(cases)}{never}")
    assert not interprets(f"match word:\n{''.join(cases[1:])}{never}")
    assert not interprets(f"match word:\n{''.join(cases)}")
    assert not interprets(f"match word:\n{''.join(cases)}    case _:\n        pass\n")


def test_no_other_module_interprets():
    """The list above is whole."""
    found = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if interprets(path.read_text())
    }
    assert found == INTERPRETERS


@pytest.mark.slow
def test_every_match_over_verdicts_and_proofs_ends():
    """In `assert_never`, or in what it says of all others."""
    found = {
        f"{path.relative_to(ROOT)}:{line}"
        for path in PACKAGE.rglob("*.py")
        for line in open_matches(path.read_text())
    }
    assert found == set()


def test_an_open_match_is_found():
    text = "match verdict:\n    case Valid() | Invalid():\n        pass\n"
    assert open_matches(text) == [1]
    assert not open_matches(f"{text}    case _:\n        assert_never(verdict)\n")


def test_what_is_no_word_is_refused():
    """A name of the user's, or one with its ends, is not taken for a word."""
    assert word_of("so") == "so"
    for name in ("mine", "so[W,R]", ""):
        with pytest.raises(KeyError):
            word_of(name)

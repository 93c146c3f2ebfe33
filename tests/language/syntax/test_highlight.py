"""The colours of the language, of which each editor's rules are made."""

from __future__ import annotations

import json
import re

import pytest
from pygments.lexers import get_lexer_by_name  # noqa: F401 - that pygments is there
from pygments.token import Comment, Error, Keyword
from support.paths import ROOT

from isolang.language.library import SPECS
from isolang.language.syntax.highlight import COLOURS, EDITOR, text
from isolang.language.syntax.parser import keywords
from isolang.language.syntax.pygments_lexer import IsoLexer


def test_the_textmate_grammar_is_of_the_table():
    """``python -m isolang.language.syntax.highlight`` writes it anew."""
    assert (ROOT / "editors" / "vscode" / EDITOR.name).read_text() == text()
    grammar = json.loads(text())
    assert len(grammar["patterns"]) == len(COLOURS)
    assert grammar["fileTypes"] == ["iso"]


def test_the_extension_of_vs_code_has_what_it_names():
    """Its files are there, the grammar is the table's, and a word is a name of the language."""
    folder = ROOT / "editors" / "vscode"
    manifest = json.loads((folder / "package.json").read_text())
    (language,), (grammar,) = (manifest["contributes"][k] for k in ("languages", "grammars"))
    assert grammar["scopeName"] == json.loads(text())["scopeName"]
    assert language["extensions"] == [".iso"]
    for name in (manifest["main"], grammar["path"], language["configuration"]):
        assert (folder / name).is_file()
    configured = json.loads((folder / language["configuration"]).read_text())
    assert configured["wordPattern"] in {one.pattern for one in COLOURS if one.token == "Name"}


def test_every_word_of_the_grammar_is_coloured_as_one():
    for word in keywords() - {"domain", "range"}:
        first = next(one for one in COLOURS if re.match(one.pattern, word))
        assert first.token.startswith("Keyword"), word


@pytest.mark.parametrize("path", sorted(SPECS.rglob("*.iso")), ids=lambda path: path.stem)
def test_the_library_is_read_whole(path):
    """No character of it is an error, and none is lost."""
    source = path.read_text()
    found = list(IsoLexer(stripnl=False).get_tokens(source))
    assert "".join(value for _, value in found) == source
    assert not [value for token, value in found if token in Error]


def test_comments_and_names_that_contain_words():
    found = list(IsoLexer().get_tokens("(* let\n so *) let in-between = so // acyclic"))
    assert [v for t, v in found if t in Keyword] == ["let"]
    assert "".join(v for t, v in found if t in Comment) == "(* let\n so *)// acyclic"

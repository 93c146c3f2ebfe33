"""The table of syntax trees that comes with the package."""

import json

import pytest

from isolang.language import trees
from isolang.language.library import library_source, text_names
from isolang.language.syntax.parser import parse, tokens
from isolang.language.syntax.source import SourceText


def test_the_table_is_of_the_library():
    """``python -m isolang.language.trees`` writes it after a change of a level or the grammar."""
    assert json.loads(trees.TABLE.read_bytes()) == trees.table()


@pytest.mark.parametrize("name", text_names())
def test_a_tree_of_the_table_is_the_parser_s(name):
    """With the same places, in the same source."""
    source = library_source(name)
    assert source.text in trees._table()
    assert trees.library_tree(source) == parse(source)


def test_another_text_is_parsed():
    """However near to a level it is, and whatever it is called."""
    source = library_source("si")
    changed = SourceText(source.name, source.text + "\nlet more = so\n")
    assert trees.library_tree(changed) == parse(changed) != parse(source)


def test_the_word_so_is_found_as_the_parser_finds_it():
    """In every text, and beside what only looks like it: comments, strings and longer names."""
    from isolang.language.library import _sessions

    texts = [library_source(name).text for name in text_names()]
    texts += ['let so-a = so (* so\n so *) | a-so // so\nacyclic so as so "so"', "let _so = so1|so"]
    for text in texts:
        found = [one.start_pos for one in tokens(SourceText("", text)) if one == "so"]
        assert _sessions(text) == found

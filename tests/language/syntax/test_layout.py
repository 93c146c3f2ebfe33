"""The usual layout of a specification: stable, complete, and without effect on the meaning."""

from __future__ import annotations

import random

import pytest

from isolang.errors import SpecError
from isolang.language.library import list_library
from isolang.language.load import load_spec
from isolang.language.syntax.layout import WIDTH, format_text
from isolang.language.syntax.parser import tokens
from isolang.language.syntax.source import SourceText

GIVEN = """\
(* a
   b *)   spec   foo "t" // head


// one
include "adya.iso"   (* two *)  let a(p,q)=p|q // three
  // four
let k [z]=[W[z]];wr[z] (* five *) let b = (so;(wr\\id))
acyclic a(so , // inner
   rt) | k | (so ;
   // own
   wr) as c "text  //  no comment"
flag not acyclic so|wr as d "short"
exists   r:relation on T containing init within (T*T)\\id
require for x:k[x] in (so ;wr) ^* | rt? as e (* x *) (* y *)
(* z *) show domain( so ) as s // end
// last"""
EXPECTED = """\
(* a
   b *)
spec foo "t"  // head

// one
include "adya.iso"  (* two *)
let a(p, q) = p | q  // three
// four
let k[z] = [W[z]] ; wr[z]  (* five *)
let b = (so ; (wr \\ id))
acyclic a(so,  // inner
    rt) | k | (so ;
    // own
    wr) as c "text  //  no comment"
flag not acyclic so | wr as d "short"
exists r : relation on T containing init within (T * T) \\ id
require for x: k[x] in (so ; wr)^* | rt? as e  (* x *) (* y *)
(* z *) show domain(so) as s  // end
// last
"""


def formatted(text: str) -> str:
    return format_text(SourceText("a.iso", text))


def test_everything_at_once() -> None:
    assert formatted(GIVEN) == EXPECTED


@pytest.mark.parametrize("entry", list_library(), ids=lambda entry: entry.name)
def test_the_library_has_the_usual_layout(entry) -> None:
    """Also where the library makes the text."""
    assert formatted(entry.text) == entry.text


def test_long_items_are_broken_at_the_loosest_operators() -> None:
    part = "(" + " ; ".join(["so", "wr", "ww", "rw"] * 8) + ")"
    text = f"acyclic {part} | {part} as c\n"
    lines = formatted(text).splitlines()
    assert len(lines) > 4
    assert lines[-1] == "    as c"
    assert all(len(line) <= WIDTH for line in lines)
    assert [line[:11] for line in lines].count("        | (") == 1
    assert {len(line) - len(line.lstrip()) for line in lines[1:-1]} == {8, 12}


def test_line_ends_are_those_of_unix() -> None:
    assert formatted("// a\r\n\r\n\r\nacyclic so\r\n  as c\r\n") == "// a\n\nacyclic so as c\n"


@pytest.mark.parametrize(
    ("text", "expected"), [("", ""), ("\n\n", ""), ("// a", "// a\n"), ("(**)", "(**)\n")]
)
def test_texts_without_items(text: str, expected: str) -> None:
    assert formatted(text) == expected


def test_what_does_not_parse_is_not_touched() -> None:
    with pytest.raises(SpecError, match="the check has no name"):
        formatted("acyclic so\n")


COMMENTS = ("// one\n", "(* two *)", "(* three\n   lines *)", "// acyclic so as c\n", "(*(*)")
SPACES = (" ", " ", " ", "  ", "\n", "\n\n", "\n\n\n", "\t", "\r\n")
EXPRESSIONS = ("so", "wr", "ww", "rw", "rt", "init", "f(so)", "g", "h(wr, ww)")


def _expression(rng: random.Random, depth: int) -> str:
    if depth == 0 or rng.random() < 0.2:
        return rng.choice(EXPRESSIONS)

    def sub() -> str:
        return f"( {_expression(rng, depth - 1)} )"

    operator = rng.choice(["|", ";", "&"])
    many = f" {operator} ".join(sub() for _ in range(rng.randint(2, 5)))
    return rng.choice(
        (many, many, many, f"{sub()} \\ {sub()}", f"{sub()} ^+", f"{sub()} ?", f"{sub()} ^-1 ^*",
         f"for x : ( [ W [ x ] ] ; {sub()} ; wr [ x ] )", "[ T ]", "T * W",
         f"domain ( {sub()} ) * T")
    )  # fmt: skip


def _text(rng: random.Random) -> str:
    """A specification whose tokens stand apart, with anything between them."""
    items = ["spec foo", 'include "adya.iso"', "let f ( a ) = a | so", "let g [ k ] = ww [ k ]"]
    items += ["let h ( p , q ) = p ; q", "exists r : relation on T containing init within T * T"]
    for i in range(rng.randint(1, 4)):
        test = rng.choice(("acyclic", "flag not irreflexive", "empty", "flag empty"))
        items.append(f'{test} {_expression(rng, rng.randint(0, 3))} as c{i} "text"')
    items.append(f"require {_expression(rng, 1)} in r as last")

    def gap() -> str:
        text = rng.choice(SPACES)
        while rng.random() < 0.1:
            text += rng.choice(COMMENTS) + rng.choice(SPACES)
        return text

    words = " ".join(items).split(" ")
    return gap() + "".join(word + gap() for word in words)


@pytest.mark.parametrize("seed", range(60))
def test_formatting_is_idempotent_and_changes_no_meaning(seed: int) -> None:
    text = _text(random.Random(seed))
    once = formatted(text)
    assert formatted(once) == once
    assert [str(t) for t in tokens(SourceText("", once))] == [
        str(t) for t in tokens(SourceText("", text))
    ]
    comments = [c.strip() for c in COMMENTS]
    assert [once.count(c) for c in comments] == [text.count(c) for c in comments]
    before, after = load_spec(text + "\n"), load_spec(once)
    assert [(c.kind, c.expr, c.bound, c.title) for c in after.checks] == [
        (c.kind, c.expr, c.bound, c.title) for c in before.checks
    ]
    assert after.exists == before.exists
    assert all(line == line.rstrip() for line in once.split("\n"))
    assert "\n\n\n" not in once

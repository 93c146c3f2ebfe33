"""Syntax tree nodes, each with its place in the text."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from isolang.language.syntax.source import SourceText, Span

# The grammar's keywords and operators by role: the check kinds, the words that begin an item, and
# the operators that bind more tightly than a union.
TESTS = frozenset(("acyclic", "irreflexive", "empty", "require"))
ITEM = TESTS | {"spec", "include", "let", "exists", "flag", "not", "show", "allows", "forbids"}
TERM_OPERATORS = frozenset((";", "&", "\\", "*"))
POSTFIX = frozenset(("^-1", "^+", "^*", "?"))
STARTS = frozenset(("NAME", "(", "[", "domain", "range", "for"))


class KeyClass(Struct, frozen=True):
    """The class of keys whose names match any of the patterns, or none of them if negated.

    In a pattern, ``*`` matches any text.
    """

    patterns: tuple[str, ...]
    negated: bool = False

    def __str__(self) -> str:
        """Return the class as written in the language."""
        listed = ", ".join(f'"{pattern}"' for pattern in self.patterns)
        return f"not {listed}" if self.negated else listed


class Ident(Struct, frozen=True):
    """A name at its declaration, or a key variable."""

    span: Span
    text: str


class Ref(Struct, frozen=True):
    """``name`` or ``name[key]``."""

    span: Span
    name: str
    key: Ident | None


class Named(Struct, frozen=True):
    """``word "name"``."""

    span: Span
    word: str
    name: str


class OfClass(Struct, frozen=True):
    """``name["pattern", …]`` or ``name[not "pattern", …]``."""

    span: Span
    name: str
    within: KeyClass


class Call(Struct, frozen=True):
    """``name(argument, …)`` or ``name[key](argument, …)``."""

    span: Span
    name: str
    key: Ident | None
    args: tuple[Expr, ...]


class Nary(Struct, frozen=True):
    """``a | b | …``, ``a ; b ; …`` or ``a & b & …``."""

    span: Span
    op: Literal["|", ";", "&"]
    parts: tuple[Expr, ...]


class Binary(Struct, frozen=True):
    r"""``a \ b`` or ``A * B``."""

    span: Span
    op: Literal["\\", "*"]
    left: Expr
    right: Expr


class Postfix(Struct, frozen=True):
    """``a^-1``, ``a^+``, ``a^*`` or ``a?``."""

    span: Span
    op: Literal["^-1", "^+", "^*", "?"]
    arg: Expr


class Lift(Struct, frozen=True):
    """``[S]``."""

    span: Span
    arg: Expr


class EndSet(Struct, frozen=True):
    """``domain(a)`` or ``range(a)``."""

    span: Span
    op: Literal["domain", "range"]
    arg: Expr


class For(Struct, frozen=True):
    """``for key: body``, ``for key in "pattern", …: body`` or ``for key not in …``."""

    span: Span
    key: Ident
    body: Expr
    within: KeyClass | None = None


Expr = Ref | Named | OfClass | Call | Nary | Binary | Postfix | Lift | EndSet | For


def children(e: Expr) -> tuple[Expr, ...]:
    """Return the direct subexpressions of an expression."""
    match e:
        case Ref() | Named() | OfClass():
            return ()
        case Call():
            return e.args
        case Nary():
            return e.parts
        case Binary():
            return (e.left, e.right)
        case Postfix() | Lift() | EndSet():
            return (e.arg,)
        case For():
            return (e.body,)


def uses_key(e: Expr, key: str) -> bool:
    """Return whether a key variable occurs free in ``e``, outside every ``for`` that binds it."""
    if isinstance(e, Ref | Call) and e.key is not None and e.key.text == key:
        return True
    if isinstance(e, For) and e.key.text == key:
        return False
    return any(uses_key(child, key) for child in children(e))


def uses_name(e: Expr, param: str) -> bool:
    """Return whether a parameter occurs in ``e``."""
    if isinstance(e, Ref | OfClass) and e.name == param:
        return True
    return any(uses_name(child, param) for child in children(e))


class Header(Struct, frozen=True):
    """``spec NAME "title"``."""

    span: Span
    name: str
    title: str


class Include(Struct, frozen=True):
    """``include "file"``."""

    span: Span
    file: str


class Let(Struct, frozen=True):
    """``let name[key](parameters) = body``."""

    span: Span
    name: Ident
    key: Ident | None
    params: tuple[Ident, ...]
    body: Expr


class ExistsItem(Struct, frozen=True):
    """``exists name[key] : kind over containing … within …``."""

    span: Span
    name: Ident
    key: Ident | None
    kind: Literal["order", "choice", "relation"]
    over: Expr
    containing: Expr | None
    within: Expr | None


class CheckItem(Struct, frozen=True):
    """``flag not for each key: acyclic … as name "title"``; the key is optional."""

    span: Span
    name: Ident
    kind: Literal["acyclic", "irreflexive", "empty", "require"]
    expr: Expr
    bound: Expr | None
    flag: bool
    negated: bool
    title: str
    key: Ident | None = None
    within: KeyClass | None = None


class Show(Struct, frozen=True):
    """``show expression as name``."""

    span: Span
    name: Ident
    expr: Expr


class Example(Struct, frozen=True):
    """``allows "history"``, or ``forbids "history"``."""

    span: Span
    allows: bool
    history: str


Item = Include | Let | ExistsItem | CheckItem | Show | Example


class File(Struct, frozen=True):
    """The syntax tree of a whole text."""

    source: SourceText
    header: Header | None
    items: tuple[Item, ...]

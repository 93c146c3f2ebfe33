"""The syntax tree: what the text says, with its places. ``sorts`` and ``lower`` give it meaning."""

from __future__ import annotations

from typing import Literal

from isolang.language.source import Source, Span
from isolang.record import record


@record
class Ident:
    """A name where it is bound, or the key variable of a use."""

    span: Span
    text: str


@record
class Ref:
    """``name`` or ``name[key]``."""

    span: Span
    name: str
    key: Ident | None


@record
class Call:
    """``name(argument, …)`` or ``name[key](argument, …)``."""

    span: Span
    name: str
    key: Ident | None
    args: tuple[Expr, ...]


@record
class Nary:
    """``a | b | …``, ``a ; b ; …`` or ``a & b & …``."""

    span: Span
    op: Literal["|", ";", "&"]
    parts: tuple[Expr, ...]


@record
class Binary:
    r"""``a \ b`` or ``A * B``."""

    span: Span
    op: Literal["\\", "*"]
    left: Expr
    right: Expr


@record
class Postfix:
    """``a^-1``, ``a^+``, ``a^*`` or ``a?``."""

    span: Span
    op: Literal["^-1", "^+", "^*", "?"]
    arg: Expr


@record
class Lift:
    """``[S]``."""

    span: Span
    arg: Expr


@record
class End:
    """``domain(a)`` or ``range(a)``."""

    span: Span
    op: Literal["domain", "range"]
    arg: Expr


@record
class For:
    """``for key: body``."""

    span: Span
    key: Ident
    body: Expr


Expr = Ref | Call | Nary | Binary | Postfix | Lift | End | For


def children(e: Expr) -> tuple[Expr, ...]:
    """The direct parts of an expression."""
    match e:
        case Ref():
            return ()
        case Call():
            return e.args
        case Nary():
            return e.parts
        case Binary():
            return (e.left, e.right)
        case Postfix() | Lift() | End():
            return (e.arg,)
        case For():
            return (e.body,)


def uses_key(e: Expr, key: str) -> bool:
    """Whether the key variable occurs free in ``e``."""
    if isinstance(e, Ref | Call) and e.key is not None and e.key.text == key:
        return True
    if isinstance(e, For) and e.key.text == key:
        return False
    return any(uses_key(child, key) for child in children(e))


def uses_name(e: Expr, param: str) -> bool:
    """Whether the parameter occurs in ``e``."""
    if isinstance(e, Ref) and e.name == param:
        return True
    return any(uses_name(child, param) for child in children(e))


@record
class Header:
    """``spec NAME "title"``."""

    span: Span
    name: str
    title: str


@record
class Include:
    """``include "file"``."""

    span: Span
    file: str


@record
class Let:
    """``let name[key](parameters) = body``."""

    span: Span
    name: Ident
    key: Ident | None
    params: tuple[Ident, ...]
    body: Expr


@record
class ExistsItem:
    """``exists name[key] : kind over containing … within …``."""

    span: Span
    name: Ident
    key: Ident | None
    kind: Literal["order", "choice", "relation"]
    over: Expr
    containing: Expr | None
    within: Expr | None


@record
class CheckItem:
    """``flag not acyclic … as name "title"``."""

    span: Span
    name: Ident
    kind: Literal["acyclic", "irreflexive", "empty", "require"]
    expr: Expr
    bound: Expr | None
    flag: bool
    negated: bool
    title: str


@record
class Show:
    """``show expression as name``."""

    span: Span
    name: Ident
    expr: Expr


Item = Include | Let | ExistsItem | CheckItem | Show


@record
class File:
    """One parsed text."""

    source: Source
    header: Header | None
    items: tuple[Item, ...]

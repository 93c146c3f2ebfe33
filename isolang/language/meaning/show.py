"""Writes core expressions, checks and declarations as text in the language."""

from __future__ import annotations

from isolang.language.meaning.core import (
    Check,
    Core,
    Diff,
    Domain,
    Exists,
    ForKey,
    Inter,
    Inverse,
    Lift,
    Named,
    Opt,
    Plus,
    Product,
    Range,
    Rel,
    Seq,
    Star,
    Union,
)

MAX_BRIEF = 200
"""The maximum length of an expression in a message, in characters."""

_LOOSE, _UNION, _TERM, _UNARY = range(4)


def show(e: Core) -> str:
    """Return an expression as text that parses back to the same expression.

    >>> show(Seq((Union((Rel("so"), Rel("wr"))), Opt(Rel("rw")))))
    '(so | wr) ; rw?'
    """
    return _show(e)[0]


def brief(e: Core) -> str:
    """Return the text of an expression for messages, with ``…`` in the middle if it is long."""
    text = show(e)
    half = MAX_BRIEF // 2
    return text if len(text) <= MAX_BRIEF else f"{text[:half]} … {text[-half:]}"


def show_check(check: Check) -> str:
    """Return the text of a check with definitions expanded.

    >>> show_check(Check(name="c", kind="require", expr=Rel("wr"), bound=Rel("co"), flag=True))
    'flag require wr in co as c'
    """
    words = [*(["flag"] if check.flag else []), *(["not"] if check.negated else [])]
    if check.kind == "irreflexive" and isinstance(check.expr, ForKey):
        each, body = _bound(check.expr), check.expr.body
        kind, e = ("acyclic", body.arg) if isinstance(body, Plus) else ("irreflexive", body)
        words += ["for", "each", f"{each}:", kind, show(e)]
    else:
        words += [check.kind, show(check.expr)]
    if check.bound is not None:
        words += ["in", show(check.bound)]
    words += ["as", check.name]
    return " ".join(words + ([f'"{check.title}"'] if check.title else []))


def show_exists(exists: Exists) -> str:
    """Return the text of a declaration with definitions expanded.

    >>> show_exists(Exists(name="ww", key="x", kind="order", over=Rel("W", "x")))
    'exists ww[x] : order on W[x]'
    """
    key = f"[{exists.key}]" if exists.key else ""
    of = "of" if exists.kind == "choice" else "on"
    text = f"exists {exists.name}{key} : {exists.kind} {of} {show(exists.over)}"
    if exists.containing is not None:
        text += f" containing {show(exists.containing)}"
    if exists.within is not None:
        text += f" within {show(exists.within)}"
    return text


def _bound(e: ForKey) -> str:
    """Return the text between ``for`` and the colon: the key variable, and its class of keys."""
    if e.within is None:
        return e.key
    listed = str(e.within).removeprefix("not ")
    return f"{e.key} {'not ' if e.within.negated else ''}in {listed}"


def _wrap(e: Core, least: int) -> str:
    text, level = _show(e)
    return text if level >= least else f"({text})"


def _show(e: Core) -> tuple[str, int]:
    """Return the text of an expression, and the precedence of its operator as a number."""
    match e:
        case Rel():
            return (e.name if e.key is None else f"{e.name}[{e.key}]"), _UNARY
        case Named():
            return f'{e.word} "{e.name}"', _UNARY
        case Union():
            return " | ".join(_wrap(part, _TERM) for part in e.parts), _UNION
        case Seq():
            return " ; ".join(_wrap(part, _UNARY) for part in e.parts), _TERM
        case Inter():
            return " & ".join(_wrap(part, _UNARY) for part in e.parts), _TERM
        case Diff():
            return f"{_wrap(e.left, _UNARY)} \\ {_wrap(e.right, _UNARY)}", _TERM
        case Product():
            return f"{_wrap(e.left, _UNARY)} * {_wrap(e.right, _UNARY)}", _TERM
        case Inverse():
            return f"{_wrap(e.arg, _UNARY)}^-1", _UNARY
        case Plus():
            return f"{_wrap(e.arg, _UNARY)}^+", _UNARY
        case Star():
            return f"{_wrap(e.arg, _UNARY)}^*", _UNARY
        case Opt():
            return f"{_wrap(e.arg, _UNARY)}?", _UNARY
        case Lift():
            return f"[{_show(e.arg)[0]}]", _UNARY
        case Domain():
            return f"domain({_show(e.arg)[0]})", _UNARY
        case Range():
            return f"range({_show(e.arg)[0]})", _UNARY
        case ForKey(body=Rel(name=name, key=key)) if e.within is not None and key == e.key:
            return f"{name}[{e.within}]", _UNARY
        case ForKey():
            return f"for {_bound(e)}: {_show(e.body)[0]}", _LOOSE

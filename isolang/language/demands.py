"""What operators and checks demand of sorts: a relation, one on one kind of element, two alike.

A sort, or an element of one, may be anything: a parameter takes arguments of every sort, and what
is wrongly declared is not reported again where it is used.
"""

from __future__ import annotations

from isolang.language import ast
from isolang.language.scope import ANY, Element, Sort
from isolang.language.source import Span, error_at

TX_HINT = "`tx` leads from an event to its transaction, `tx^-1` back"


def want_relation(e: ast.Expr, sort: Sort, what: str) -> Sort:
    """The sort, which must be that of a relation.

    Raises:
        SpecError: it is a set; ``what`` begins the message.
    """
    if sort.kind == "set":
        hint = "the identity on a set is `[S]`, the product `S * S`"
        raise error_at(e.span, f"{what} (got {sort})", hint=hint)
    return sort


def want_endo(e: ast.Expr, sort: Sort, who: str) -> Sort:
    """The sort, which must be that of a relation on one kind of element.

    Raises:
        SpecError: it is another one; ``who`` needs it.
    """
    want_relation(e, sort, f"{who} needs a relation")
    if not compatible(sort.left, sort.right):
        what = f"{who} needs a relation on one kind of element (got {sort})"
        raise error_at(e.span, what, hint=TX_HINT)
    return sort


def want_same(span: Span, left: Sort, right: Sort, who: str) -> Sort:
    """The sort that both are of.

    Raises:
        SpecError: they differ; ``who`` needs two of a kind.
    """
    if ANY in (left, right):
        return right if left == ANY else left
    fits = (
        left.kind == right.kind
        and compatible(left.left, right.left)
        and compatible(left.right, right.right)
    )
    if not fits:
        hint = TX_HINT if left.kind == right.kind else "the identity on a set is `[S]`"
        raise error_at(span, f"{who} needs two of a kind (got {left} and {right})", hint=hint)
    return Sort(left.kind, _meet(left.left, right.left), _meet(left.right, right.right))


def compatible(left: Element, right: Element) -> bool:
    """Whether two kinds of elements may be one."""
    return left == right or "any" in (left, right)


def _meet(left: Element, right: Element) -> Element:
    return right if left == "any" else left

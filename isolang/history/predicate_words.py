"""Puts predicates into words: ``value between 3 and 9``, as in SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from isolang.history.edn import forms
from isolang.history.values import Keyword, Literal

_SIGNS: Final = {"=": "=", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


def condition_in_words(predicate: str) -> str:
    """Return a predicate's condition in words; an empty string if it is true for all rows.

    >>> condition_in_words("{:where [:and [:>= :value 3] [:<= :value 9]]}")
    'value between 3 and 9'
    >>> condition_in_words("{:where [:or [:= :c 1] [:not [:null :d]]]}")
    'c = 1 or d is not null'

    Args:
        predicate: the text of a predicate in isolang's canonical form.
    """
    return _words(_parsed(predicate)[Keyword("where")], whole=True)


def rows_in_words(predicate: str) -> str:
    """Describe in words the rows that a predicate selects.

    >>> rows_in_words("{:where [:= :c 1]}"), rows_in_words("{:where :true}")
    ('the rows with c = 1', 'all rows')
    >>> rows_in_words("{:table :t :where [:mod :c 2 1]}")
    'the rows of :t with c mod 2 = 1'

    Args:
        predicate: the text of a predicate in isolang's canonical form.
    """
    table = _parsed(predicate).get(Keyword("table"))
    of_table = "" if table is None else f" of {_constant(table)}"
    condition = condition_in_words(predicate)
    return f"the rows{of_table} with {condition}" if condition else f"all rows{of_table}"


def _parsed(predicate: str) -> Any:
    ((_, form),) = forms(f"[{predicate}]", "predicate")
    return form


def _words(form: Any, *, whole: bool = False) -> str:
    if form == Keyword("true"):
        return "" if whole else "true"
    name, *parts = form
    match name.name:
        case "not" if parts[0] != Keyword("true") and parts[0][0].name == "null":
            return f"{_column(parts[0][1])} is not null"
        case "not":
            return f"not {_words(parts[0])}"
        case "or" if not parts:
            return "false"
        case "and" | "or" as join:
            if (between := _between(join, parts)) is not None:
                return between
            text = f" {join} ".join(map(_words, parts))
            return text if whole else f"({text})"
        case "null":
            return f"{_column(parts[0])} is null"
        case "mod":
            return f"{_column(parts[0])} mod {_constant(parts[1])} = {_constant(parts[2])}"
    return f"{_column(parts[0])} {_SIGNS[name.name]} {_constant(parts[1])}"


def _between(join: str, parts: Sequence[Any]) -> str | None:
    """Return text such as ``c between 3 and 9`` for two bounds on one column joined by ``and``.

    For any other form, return ``None``.
    """
    if join != "and" or len(parts) != 2:
        return None
    bounds = {part[0].name: part[1:] for part in parts if isinstance(part, tuple)}
    if bounds.keys() != {">=", "<="} or bounds[">="][0] != bounds["<="][0]:
        return None
    column, low = bounds[">="]
    return f"{_column(column)} between {_constant(low)} and {_constant(bounds['<='][1])}"


def _column(form: Any) -> str:
    return form.name if isinstance(form, Keyword) else str(form)


def _constant(form: Any) -> str:
    if form is None or isinstance(form, bool):
        return {None: "nil", True: "true", False: "false"}[form]
    if isinstance(form, Literal):
        return form.text
    if isinstance(form, str):
        return f"'{form}'"
    return f":{form.name}" if isinstance(form, Keyword) else str(form)

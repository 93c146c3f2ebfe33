"""Puts predicates into words: ``value between 3 and 9``, as in SQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from isolang.history.edn import forms as edn_forms
from isolang.history.row_text import CLASS_COLUMN, ColumnForms, shown_value
from isolang.history.values import Keyword, Literal
from isolang.patterns import pattern

_SIGNS: Final = {"=": "=", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
# The number that names a condition, behind the column.
_EVALUATED: Final = pattern(rf'"{CLASS_COLUMN}" (-\d+)\]')
_NO_FORMS: Final[ColumnForms] = {}


def condition_in_words(predicate: str, forms: ColumnForms = _NO_FORMS) -> str:
    """Return a predicate's condition in words; an empty string if it is true for all rows.

    >>> condition_in_words("{:where [:and [:>= :value 3] [:<= :value 9]]}")
    'value between 3 and 9'
    >>> condition_in_words("{:where [:or [:= :c 1] [:not [:null :d]]]}")
    'c = 1 or d is not null'
    """
    form = _parsed(predicate)
    if (condition := _EVALUATED.search(predicate)) is not None:
        return _of_table(form, forms).get(
            f"{CLASS_COLUMN} {condition[1]}", "a condition that the server evaluated"
        )
    return _words(form[Keyword("where")], _of_table(form, forms), whole=True)


def rows_in_words(predicate: str, forms: ColumnForms = _NO_FORMS) -> str:
    """Describe in words the rows that a predicate selects.

    >>> rows_in_words("{:where [:= :c 1]}"), rows_in_words("{:where :true}")
    ('the rows with c = 1', 'all rows')
    >>> rows_in_words("{:table :t :where [:mod :c 2 1]}")
    'the rows of :t with c mod 2 = 1'
    """
    table = _parsed(predicate).get(Keyword("table"))
    of_table = "" if table is None else f" of {_constant(table)}"
    condition = condition_in_words(predicate, forms)
    return f"the rows{of_table} with {condition}" if condition else f"all rows{of_table}"


def _parsed(predicate: str) -> Any:
    ((_, form),) = edn_forms(f"[{predicate}]", "predicate")
    return form


def _of_table(form: Any, forms: ColumnForms) -> Mapping[str, str]:
    table = form.get(Keyword("table"))
    return forms.get(table.name if isinstance(table, Keyword) else str(table), {})


def _words(form: Any, forms: Mapping[str, str], *, whole: bool = False) -> str:
    if form == Keyword("true"):
        return "" if whole else "true"
    name, *parts = form
    match name.name:
        case "not" if parts[0] != Keyword("true") and parts[0][0].name == "null":
            return f"{_column(parts[0][1])} is not null"
        case "not":
            return f"not {_words(parts[0], forms)}"
        case "or" if not parts:
            return "false"
        case "and" | "or" as join:
            if (between := _between(join, parts, forms)) is not None:
                return between
            text = f" {join} ".join(_words(part, forms) for part in parts)
            return text if whole else f"({text})"
        case "null":
            return f"{_column(parts[0])} is null"
        case "mod":
            return f"{_column(parts[0])} mod {_constant(parts[1])} = {_constant(parts[2])}"
    column = _column(parts[0])
    return f"{column} {_SIGNS[name.name]} {_constant(parts[1], forms.get(column, ''))}"


def _between(join: str, parts: Sequence[Any], forms: Mapping[str, str]) -> str | None:
    """Return text such as ``c between 3 and 9`` for two bounds on one column joined by ``and``.

    For any other form, return ``None``.
    """
    if join != "and" or len(parts) != 2:
        return None
    bounds = {part[0].name: part[1:] for part in parts if isinstance(part, tuple)}
    if bounds.keys() != {">=", "<="} or bounds[">="][0] != bounds["<="][0]:
        return None
    column = _column(bounds[">="][0])
    low, high = (_constant(bounds[sign][1], forms.get(column, "")) for sign in (">=", "<="))
    return f"{column} between {low} and {high}"


def _column(form: Any) -> str:
    return form.name if isinstance(form, Keyword) else str(form)


def _constant(form: Any, meaning: str = "") -> str:
    if meaning and isinstance(form, int) and not isinstance(form, bool):
        text = shown_value(form, meaning)
        return text if meaning.startswith("numeric") else f"'{text}'"
    if form is None or isinstance(form, bool):
        return {None: "nil", True: "true", False: "false"}[form]
    if isinstance(form, Literal):
        return form.text
    if isinstance(form, str):
        return f"'{form}'"
    return f":{form.name}" if isinstance(form, Keyword) else str(form)

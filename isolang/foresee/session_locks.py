"""Says which advisory locks and locks of tables in a run exclude each other in templates.

A recording has the number of an advisory lock, and not how the application computed it. If all
transactions took the same lock, it has no parameter. If its number depends on a value that
identifies rows (``pg_advisory_xact_lock(room)``), the lock has this value as its parameter.
Otherwise it may be another one in each transaction, and excludes nothing.

SOUND BECAUSE: the lock has a parameter only if transactions with different values of it took
different locks, and those with equal values the same one. The answer "robust" names this condition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, TypeAlias

from isolang.history.statements import SHARED

if TYPE_CHECKING:
    from isolang.history.statements import Statements

Domain: TypeAlias = tuple[str, object]
"""What some columns have in common: a table, and a column or a position in its primary key."""

ADVISORY: Final = "advisory"


class LocksOfRun:
    """The locks, other than those of rows, that the transactions of a run held."""

    def __init__(
        self, transactions: Iterable[tuple[Statements, Iterable[tuple[Domain, str]]]]
    ) -> None:
        """Find what the advisory locks of transactions depend on.

        Args:
            transactions: for each transaction, its statements, and the values that identify its
                rows.
        """
        uses: list[tuple[str, dict[Domain, set[str]]]] = []
        for statements, identities in transactions:
            names = {
                name
                for statement in statements
                if statement is not None
                for name in statement.holds
            }
            advisory = {_number(name) for name in names if name.startswith(f"{ADVISORY}/")}
            if not advisory:
                continue
            values: dict[Domain, set[str]] = {}
            for domain, value in identities:
                values.setdefault(domain, set()).add(value)
            uses += [(number, values) for number in advisory]
        self._numbers = {number for number, _ in uses}
        self._domain = next(_domains(uses), None)
        self._count = len(uses)

    def key(self, name: str) -> tuple[str, Domain | None, bool]:
        """Return a lock's relation, the domain of its parameter, and whether others may share it.

        A lock that may be another one in each transaction has a relation of its own.
        """
        shared, number = name.endswith(SHARED), _number(name)
        if not name.startswith(f"{ADVISORY}/"):
            return f"lock {name.removesuffix(SHARED)}", None, shared
        if self._domain is not None:
            return ADVISORY, self._domain, shared
        return f"{ADVISORY} {number}", None, shared or not self._is_constant()

    def _is_constant(self) -> bool:
        return len(self._numbers) == 1 and self._count > 1

    def assumptions(self) -> Iterator[str]:
        """Yield the conditions under which the locks exclude each other as in the templates."""
        if not self._numbers:
            return
        yield "a transaction holds its advisory locks until it ends"
        if self._domain is not None:
            table, column = self._domain
            of = column if isinstance(column, str) else "the primary key"
            yield f"the number of an advisory lock depends on {of} of {table} alone"
        elif self._is_constant():
            yield f"all advisory locks are the lock {next(iter(self._numbers))}"


def _number(name: str) -> str:
    return name.removeprefix(f"{ADVISORY}/").removesuffix(SHARED)


def _domains(uses: list[tuple[str, dict[Domain, set[str]]]]) -> Iterator[Domain]:
    """Yield the domains whose value determines the number of a lock, and is determined by it."""
    if not uses:
        return
    for domain in uses[0][1]:
        pairs = set()
        for number, values in uses:
            of_domain = values.get(domain, set())
            pairs |= {(number, value) for value in of_domain}
            if len(of_domain) != 1:
                break
        else:
            numbers, contents = zip(*pairs, strict=True)
            is_function = len(set(numbers)) == len(set(contents)) == len(pairs)
            if is_function and (len(pairs) > 1 or numbers[0] == contents[0]):
                yield domain

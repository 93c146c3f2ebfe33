"""Finds joins along foreign keys, whose rows are exactly the rows that a condition finds.

If every other table is reached from one table, the root, by equations ``child.key = parent.key``
along foreign keys, and the condition names only the root, the join leaves out no row of the root.
Its rows then are the answer to a predicate read of the root, together with the parents of each row.

SOUND BECAUSE: in every state of committed transactions, each row has the parent that a foreign key
without NULL requires. A transaction that added a row also saw or wrote its parent, so no snapshot
and no serial order contains the row without the parent. The exceptions are refused: constraints
that are not enforced or not validated, and what a transaction sees after writes of its own
(:func:`may_lack_parents`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from isolang.observe.sql.catalogue import ForeignKey, Table
from isolang.observe.sql.evaluated import server_expression
from isolang.observe.sql.lexer import Token, catalogue_name
from isolang.observe.sql.plan import StatementTable, name_parts
from isolang.observe.sql.predicates import ParsedCondition, parse_known_parts
from isolang.observe.sql.values import INTEGERS, TEXT, VARCHAR

_MOST_TABLES: Final = 20

RowChange: TypeAlias = Literal["added", "deleted", "kept its key", "changed"]
JoinColumn: TypeAlias = tuple[int, str]
"""The number of a table in FROM, and one of its columns."""


class JoinEdge(Struct, frozen=True):
    """Two joined tables, by their numbers in FROM.

    Attributes:
        key: the foreign key; ``None`` for a LEFT JOIN by another unique key of the parent.
    """

    child: int
    parent: int
    key: ForeignKey | None


class KeyJoin(Struct, frozen=True):
    """A join whose rows are exactly those of its root, each with its parents.

    Attributes:
        root: the number of the root in FROM.
        condition: the condition on the root.
        tables: the tables in the order of FROM.
        changes: how many times foreign keys had changed when the join was read.
    """

    root: int
    condition: ParsedCondition
    edges: tuple[JoinEdge, ...]
    tables: tuple[Table, ...]
    changes: int


class _JoinedPair(Struct):
    """The equations between two tables; ``left`` is the one that a LEFT JOIN adds, or -1."""

    left: int = -1
    equations: set[tuple[JoinColumn, JoinColumn]] = set()


def key_join(
    part: Sequence[Token],
    sources: Sequence[StatementTable],
    tables: Sequence[Table],
    changes: int = 0,
) -> KeyJoin | None:
    """Return the join of a SELECT's tables; ``None`` if it may leave out rows of each of them."""
    joins = [source.join for source in sources[1:]]
    # Rows of partitions may refer to parents that their transaction's snapshot does not contain.
    if "other" in joins or len(sources) > _MOST_TABLES or any(t.partitioned for t in tables):
        return None
    return _JoinReader(part, sources, tables).read(changes)


def may_lack_parents(join: KeyJoin, written: Table, change: RowChange) -> bool:
    """Return whether a transaction that changed a row may see a join's rows without their parents.

    SOUND BECAUSE: only new children, and changed or deleted parents, can lack each other. The
    transaction sees no such children if the constraint is not deferrable, because it then holds
    after each statement. But at REPEATABLE READ, a transaction can delete a parent whose children
    others have deleted, although its own snapshot still contains these children.
    """
    for edge in join.edges:
        if edge.key is None:
            continue
        child, parent = join.tables[edge.child], join.tables[edge.parent]
        if written.oid == child.oid and edge.key.deferrable and change != "deleted":
            return True
        primary = {parent.names[number] for number in edge.key.referenced} == {*parent.key}
        keeps_key = change == "added" or (change == "kept its key" and primary)
        if written.oid == parent.oid and not keeps_key:
            return True
    return False


class ColumnNames:
    """Finds the columns that the names in a join refer to."""

    def __init__(
        self, part: Sequence[Token], sources: Sequence[StatementTable], tables: Sequence[Table]
    ) -> None:
        self._part, self._tables = part, tables
        self._aliases = [name_parts(source.alias) for source in sources]

    def equation(self, begin: int, end: int) -> tuple[JoinColumn, JoinColumn] | None:
        """Return the columns of two tables that a part of a condition compares; else ``None``."""
        signs = [n for n in range(begin, end) if self._part[n].text == "="]
        if len(signs) != 1:
            return None
        left = self.column(self._names(begin, signs[0]))
        right = self.column(self._names(signs[0] + 1, end))
        if left is None or right is None or left[0] == right[0]:
            return None
        return (left, right) if left < right else (right, left)

    def _names(self, begin: int, end: int) -> tuple[str, ...]:
        """Return the names of a column with its qualifiers; empty for other expressions."""
        tokens = self._part[begin:end]
        dots = {token.text for token in tokens[1::2]}
        if len(tokens) % 2 == 0 or not dots <= {"."}:
            return ()
        if any(token.kind not in ("word", "quoted") for token in tokens[::2]):
            return ()
        return tuple(catalogue_name(token.text) for token in tokens[::2])

    def column(self, names: Sequence[str]) -> JoinColumn | None:
        """Return the column with a name; ``None`` if the name is not certain."""
        if not names:
            return None
        *qualifiers, column = names
        named = [
            number for number, alias in enumerate(self._aliases)
            if (alias[-len(qualifiers) :] == tuple(qualifiers) if qualifiers
                else column in self._tables[number].names.values())
        ]  # fmt: skip
        if len(named) != 1 or column not in self._tables[named[0]].names.values():
            return None
        return named[0], column


class _JoinReader:
    """Reads the join of one SELECT."""

    def __init__(
        self, part: Sequence[Token], sources: Sequence[StatementTable], tables: Sequence[Table]
    ) -> None:
        self._part, self._sources, self._tables = part, sources, tables
        self._columns = ColumnNames(part, sources, tables)
        self._pairs: dict[frozenset[int], _JoinedPair] = {}
        self._parts: list[tuple[int, int]] = []

    def read(self, changes: int) -> KeyJoin | None:
        """Return the join with the root that the whole condition is on."""
        if not self._read_pairs():
            return None
        for root in range(len(self._sources)):
            if self._sources[root].join == "left":
                continue
            edges = self._edges_from(root)
            if edges is None:
                continue
            condition = self._condition_on(root, edges)
            fixed = condition.equal.keys() | condition.among.keys()
            evaluable = not condition.why or condition.expression is not None
            if evaluable or any(key <= fixed for key in self._tables[root].unique):
                return KeyJoin(root, condition, tuple(edges), tuple(self._tables), changes)
        return None

    def _read_pairs(self) -> bool:
        """Read the equations between tables, and the other parts of the condition.

        Return whether the equations connect the tables as a tree.
        """
        ranges = [source.on for source in self._sources if source.join == "inner"]
        for begin, end in (*ranges, self._sources[0].where):
            for first, last in split_condition(self._part, begin, end):
                if (equation := self._columns.equation(first, last)) is None:
                    self._parts.append((first, last))
                else:
                    self._pair(equation).equations.add(equation)
        for number, source in enumerate(self._sources):
            if source.join != "left":
                continue
            equations = [
                self._columns.equation(*two) for two in split_condition(self._part, *source.on)
            ]
            for equation in equations:
                if equation is None or number not in (equation[0][0], equation[1][0]):
                    return False
                pair = self._pair(equation)
                if pair.left != number and pair.equations:  # an equation elsewhere drops rows
                    return False
                pair.left = number
                pair.equations.add(equation)
            pairs = {frozenset(n for n, _ in equation or ()) for equation in equations}
            if len(pairs) != 1:
                return False
        return len(self._pairs) == len(self._sources) - 1

    def _pair(self, equation: tuple[JoinColumn, JoinColumn]) -> _JoinedPair:
        numbers = frozenset(number for number, _ in equation)
        return self._pairs.setdefault(numbers, _JoinedPair())

    def _condition_on(self, root: int, edges: Sequence[JoinEdge]) -> ParsedCondition:
        """Return the condition on a table, whose ``why`` says so if it names another table.

        SOUND BECAUSE: in each joined row, the columns that a foreign key compares are equal, or
        both NULL. (A key of several columns may be partly NULL.)
        """
        equals: dict[JoinColumn | None, JoinColumn] = {}
        for edge in edges:
            key, parent = edge.key, self._tables[edge.parent]
            if key is not None and (key.required or len(key.columns) == 1):
                for name, number in zip(key.columns, key.referenced, strict=True):
                    equals[edge.parent, parent.names[number]] = edge.child, name

        def column(names: Sequence[str]) -> str | None:
            named = self._columns.column(names)
            while named in equals:
                named = equals[named]
            return named[1] if named is not None and named[0] == root else None

        parsed = [parse_known_parts(self._part, *two, column) for two in self._parts]
        equal = {name: value for each in parsed for name, value in each.equal.items()}
        among = {name: value for each in parsed for name, value in each.among.items()}
        nodes = [each.node for each in parsed]
        return ParsedCondition(
            node=nodes[0] if len(nodes) == 1 else ("and", *nodes) if nodes else ("true",),
            columns=frozenset().union(*(each.columns for each in parsed)),
            equal=equal,
            among=among,
            why=next((each.why for each in parsed if each.why), ""),
            expression=server_expression(self._part, self._parts, column),
        )

    def _edges_from(self, root: int) -> list[JoinEdge] | None:
        """Return the edges from a table to its parents; ``None`` if a join may drop its rows."""
        present = {root: True}  # for each table, whether all rows of the root have a row of it
        edges: list[JoinEdge] = []
        waiting = [root]
        while waiting:
            child = waiting.pop()
            for numbers, pair in self._pairs.items():
                parent = min(numbers - {child})
                if child not in numbers or parent in present:
                    continue
                key = self._foreign_key(child, parent, pair)
                required = key is not None and key.required and present[child]
                if pair.left != parent and not required:
                    return None
                if key is None and not self._fixes_key(parent, pair):
                    return None
                present[parent] = required
                edges.append(JoinEdge(child, parent, key))
                waiting.append(parent)
        return edges if len(edges) == len(self._sources) - 1 else None

    def _foreign_key(self, child: int, parent: int, pair: _JoinedPair) -> ForeignKey | None:
        """Return the foreign key of a table to another one whose columns a join compares.

        SOUND BECAUSE: the rows of tables that were not too large have their parents at the start.
        """
        compared = {frozenset(equation) for equation in pair.equations}
        own, other = self._tables[child], self._tables[parent]
        for key in own.foreign_keys if own.rows_known else ():
            if key.parent != other.oid:
                continue
            two = [
                (name, other.names.get(number, ""))
                for name, number in zip(key.columns, key.referenced, strict=True)
            ]
            if not all(have_same_type(own, name, other, referenced) for name, referenced in two):
                continue
            columns = {frozenset({(child, name), (parent, referenced)}) for name, referenced in two}
            if columns == compared:
                return key
        return None

    def _fixes_key(self, number: int, pair: _JoinedPair) -> bool:
        """Return whether equations fix a whole unique key of a table."""
        columns = {name for equation in pair.equations for n, name in equation if n == number}
        return any(key <= columns for key in self._tables[number].unique)


def split_condition(part: Sequence[Token], begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the parts of a condition connected by AND, so that every token is in some part."""
    depth, between, first = 0, False, begin
    ranges: list[tuple[int, int]] = []
    closed = begin  # the position where the first parenthesis closes
    for n in range(begin, end):
        text = part[n].text
        depth += (text == "(") - (text == ")")
        if not depth and text == ")" and closed == begin:
            closed = n
        if depth or part[n].kind != "word":
            continue
        if text in ("or", "case"):
            ranges, first = [], begin
            break
        if text == "and" and not between:
            ranges.append((first, n))
            first = n + 1
        between = text == "between" or (between and text != "and")
    ranges.append((first, end))
    for first, last in ranges:
        enclosed = first < last and part[first].text == "(" and closed == last - 1
        if len(ranges) > 1:
            yield from split_condition(part, first, last)
        elif enclosed:
            yield from split_condition(part, first + 1, last - 1)
        elif first < last:
            yield first, last


def have_same_type(own: Table, name: str, other: Table, referenced: str) -> bool:
    """Return whether ``=`` compares two columns as their foreign key does."""
    left, right = own.columns.get(name), other.columns.get(referenced)
    if left is None or right is None:
        return False
    texts = (TEXT, VARCHAR)
    return (
        left.oid == right.oid
        or (left.oid in INTEGERS and right.oid in INTEGERS)
        or (left.oid in texts and right.oid in texts)
    )

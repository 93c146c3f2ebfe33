"""Describes PostgreSQL's tables and functions to the rewriting of statements."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from isolang.observe.sql.catalogue import ALL_TABLES, Table, parse_description
from isolang.observe.sql.evaluated import SessionSettings
from isolang.observe.sql.rewriting import DatabaseFacts, Rewriter


class PostgresDialect:
    """The statements of PostgreSQL."""

    def facts(self, connection: Any) -> DatabaseFacts:
        """Return the facts about a database that its sessions share."""
        facts = DatabaseFacts(version=connection.info.server_version)
        self.refresh(connection, facts)
        return facts

    def refresh(self, connection: Any, facts: DatabaseFacts) -> None:
        """Query again the names of the functions in a database."""
        facts.ask(connection.execute)

    def tables(self, connection: Any) -> Iterator[Table]:
        """Yield all tables of a database."""
        for (text,) in connection.execute(ALL_TABLES).fetchall():
            table = parse_description(text)[1]
            if table is not None:
                yield table

    def partitions(self, connection: Any) -> Iterator[tuple[str, str]]:
        """Yield each partition that has rows, and the table that it belongs to, with schemas."""
        yield from connection.execute(
            "SELECT n.nspname || '.' || c.relname, m.nspname || '.' || r.relname "
            "FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            "JOIN pg_class r ON r.oid = pg_partition_root(c.oid) "
            "JOIN pg_namespace m ON m.oid = r.relnamespace "
            "WHERE c.relispartition AND c.relkind = 'r'"
        ).fetchall()

    def altered(self, connection: Any, tables: Iterable[int]) -> dict[int, int]:
        """Return the last transaction that altered each table, by the object identifiers."""
        return {
            oid: int(number) for oid, number in connection.execute(
                "SELECT DISTINCT ON (oid) oid::int8, xmin::text FROM (SELECT oid, xmin "
                "FROM pg_class UNION ALL SELECT attrelid, xmin FROM pg_attribute) changed "
                "WHERE oid = ANY (%s) ORDER BY oid, age(xmin)", ([*tables],)
            ).fetchall()
        }  # fmt: skip

    def is_empty(self, connection: Any, table: Table) -> bool:
        """Return whether a table has no rows."""
        sql = f"SELECT FROM {table.where} LIMIT 1"
        return connection.execute(sql).fetchone() is None

    def lacks_parents(self, connection: Any, table: Table, tables: Sequence[Table]) -> bool:
        """Return whether some row lacks a parent that a foreign key to one of the tables names."""
        parents = {parent.oid: parent for parent in tables}
        orphans = []
        for key in table.foreign_keys:
            parent = parents.get(key.parent)
            names = [*zip(key.columns, key.referenced, strict=True)]
            if parent is None or not all(
                name in table.columns and parent.names[number] in parent.columns
                for name, number in names
            ):
                continue  # no join by this key is a predicate read
            child = [f"t.{table.quoted[name]}" for name, _ in names]
            other = [f"p.{parent.quoted[parent.names[number]]}" for _, number in names]
            equal = " AND ".join(f"{a} = {b}" for a, b in zip(child, other, strict=True))
            orphans.append(
                f"EXISTS (SELECT FROM {table.where} t WHERE ({', '.join(child)}) IS NOT NULL "
                f"AND NOT EXISTS (SELECT FROM {parent.where} p WHERE {equal}))"
            )
        if not orphans:
            return False
        import psycopg

        try:
            with connection.transaction():
                return bool(connection.execute(f"SELECT {' OR '.join(orphans)}").fetchone()[0])
        except psycopg.Error:  # unknown, so no key is relied on
            return True

    def rewriter(self, facts: DatabaseFacts) -> Rewriter:
        """Return the rewriter of a new session."""
        return Rewriter(facts)

    def parse_settings(
        self, text: bytes
    ) -> tuple[str, str, str, Table | None, SessionSettings, str]:
        """Return what a session's catalogue query says about a table and the session.

        Returns:
            The transaction's and the session's isolation level, a name, and its table; and the
            session's settings, and the beginning of its transaction in UTC.
        """
        level, default, table, (schemas, values, now) = json.loads(text)
        settings = SessionSettings(tuple(schemas), tuple(values))
        return level, default, *parse_description(table), settings, now

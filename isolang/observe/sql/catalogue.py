"""Describes the tables in the database's catalogue as seen by the application's session.

The meaning of a name depends on the session, because temporary tables, ``search_path`` and roles
differ between sessions. Each session therefore queries the catalogue itself, and forgets the result
when a statement may change it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from msgspec import Struct

from isolang.history.row_text import CLASS_COLUMN
from isolang.observe.sql.values import (
    BOOL,
    DATE,
    INTEGERS,
    NAME,
    NUMERIC,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID_OID,
    VARCHAR,
    RecordedColumn,
)
from isolang.observe.unseen import (
    CATALOGUE,
    CHILDREN,
    FOREIGN_TABLES,
    KEY_TYPE,
    NO_KEY,
    PRIVILEGE,
    RULES,
    TEMPORARY,
    VIEWS,
)

_KEY_TYPES: Final = frozenset({
    *INTEGERS, BOOL, TEXT, VARCHAR, NAME, UUID_OID, DATE, TIMESTAMP, TIMESTAMPTZ, NUMERIC, 1042, 26,
})  # fmt: skip
_EXACT: Final = json.JSONDecoder(parse_float=Decimal)
_LARGEST_IMAGE: Final = 65536  # the largest number of bytes of a row to keep, as it is stored
_COLUMNS_IN_GROUP: Final = 50  # a function has at most 100 arguments

# Whether a function is not IMMUTABLE, or reads tables although it is declared so: by FROM, but not
# in the grammar of PostgreSQL's own functions, or before those that return rows.
_MAY_READ: Final = r"""({0}.provolatile <> 'i' OR {1}.lanname NOT IN ('c', 'internal') AND
 pg_catalog.regexp_replace({0}.prosrc, '''[^'']*''|\mdistinct\s+from\M|\mfrom\s+(unnest|'
  'generate_\w+|regexp_\w+|jsonb?_\w+|string_to_\w+)\s*\('
  '|\m(extract|substring|trim|overlay)\s*\([^()]*', '', 'gi') ~*
 '\m(from|perform|execute|update|insert|merge|call|table|copy)\M')"""

_DESCRIPTION_SQL: Final = r"""pg_catalog.json_build_array(w.name, c.oid::int8, n.nspname, c.relname,
 c.relkind, c.relpersistence, c.relhasrules, c.relhassubclass,
 c.relispartition, pg_catalog.has_table_privilege(c.oid, 'SELECT'),
 c.relrowsecurity, c.relrowsecurity AND pg_catalog.row_security_active(c.oid),
 (SELECT pg_catalog.array_agg(DISTINCT a.attname) FROM pg_catalog.pg_partitioned_table d
   JOIN pg_catalog.pg_attribute a ON a.attrelid = d.partrelid
    AND (d.partexprs IS NOT NULL OR a.attnum = ANY (d.partattrs::int2[]))
   WHERE d.partrelid IN (SELECT c.oid UNION ALL SELECT relid
    FROM pg_catalog.pg_partition_tree(c.oid) WHERE NOT isleaf)),
 (SELECT pg_catalog.json_agg(pg_catalog.json_build_array(g.keeps,
   f.pronamespace::regnamespace || '.' || f.proname || ' (' || l.lanname || ')',
   l.lanname NOT IN ('c', 'internal') AND (l.lanname <> 'plpgsql' OR body ~*
    '\m(select|perform|execute|from|update|delete|merge|call|query|table|copy)\M' OR (
     SELECT true FROM pg_catalog.pg_proc q WHERE q.prokind = 'f' AND q.provolatile <> 'i'
      AND q.pronamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)
      AND pg_catalog.strpos(body, q.proname || '(') > 0 LIMIT 1) IS NOT NULL
    OR body ~* '\minsert\M' AND (
     SELECT true FROM pg_catalog.pg_trigger o JOIN pg_catalog.pg_class r ON r.oid = o.tgrelid
     WHERE NOT o.tgisinternal AND o.tgenabled <> 'D' AND CASE WHEN r.relname ~ '^\w+$'
      THEN body ~* ('\m' || r.relname || '\M') ELSE pg_catalog.strpos(body, r.relname) > 0 END
     LIMIT 1) IS NOT NULL)))
  FROM (SELECT g.tgtype & 3 = 3 AS keeps, g.tgfoid AS oid FROM pg_catalog.pg_trigger g
    WHERE NOT g.tgisinternal AND g.tgenabled <> 'D' AND g.tgrelid IN (
     SELECT c.oid UNION ALL SELECT relid FROM pg_catalog.pg_partition_tree(c.oid))
    UNION ALL SELECT NULL, e.refobjid FROM (
      SELECT 'pg_attrdef'::regclass AS class, d.oid FROM pg_catalog.pg_attrdef d
      WHERE d.adrelid IN (
       SELECT c.oid UNION ALL SELECT relid FROM pg_catalog.pg_partition_tree(c.oid))
      UNION ALL SELECT 'pg_constraint'::regclass, k.oid FROM pg_catalog.pg_constraint k
      WHERE k.conrelid IN (
       SELECT c.oid UNION ALL SELECT relid FROM pg_catalog.pg_partition_tree(c.oid))
      UNION ALL SELECT 'pg_trigger'::regclass, w.oid FROM pg_catalog.pg_trigger w
      WHERE NOT w.tgisinternal AND w.tgqual IS NOT NULL AND w.tgenabled <> 'D' AND w.tgrelid IN (
       SELECT c.oid UNION ALL SELECT relid FROM pg_catalog.pg_partition_tree(c.oid))
      UNION ALL SELECT 'pg_class'::regclass, n.indexrelid FROM pg_catalog.pg_index n
      WHERE n.indrelid IN (
       SELECT c.oid UNION ALL SELECT relid FROM pg_catalog.pg_partition_tree(c.oid))
      UNION ALL SELECT 'pg_type'::regclass, a.atttypid FROM pg_catalog.pg_attribute a
      WHERE a.attrelid = c.oid AND a.attnum > 0
      UNION ALL SELECT 'pg_constraint'::regclass, k.oid FROM pg_catalog.pg_attribute a
      JOIN pg_catalog.pg_constraint k ON k.contypid = a.atttypid
      WHERE a.attrelid = c.oid AND a.attnum > 0) x
     JOIN pg_catalog.pg_depend e ON e.classid = x.class AND e.objid = x.oid
      AND e.refclassid = 'pg_proc'::regclass
     JOIN pg_catalog.pg_proc q ON q.oid = e.refobjid
     JOIN pg_catalog.pg_language m ON m.oid = q.prolang AND MAY_READ) g
   JOIN pg_catalog.pg_proc f ON f.oid = g.oid
   JOIN pg_catalog.pg_language l ON l.oid = f.prolang,
   LATERAL (SELECT pg_catalog.regexp_replace(pg_catalog.regexp_replace(f.prosrc, '''[^'']*''', '',
    'g'), '\s+\(', '(', 'g')) source(body)),
 (SELECT true FROM pg_catalog.pg_constraint o WHERE o.confrelid = c.oid AND o.contype = 'f'
  AND (o.confdeltype IN ('c','n','d') OR o.confupdtype IN ('c','n','d')) LIMIT 1) IS NOT NULL,
 (SELECT pg_catalog.json_agg(pg_catalog.json_build_array(a.attname,
   pg_catalog.quote_ident(a.attname), a.attnum,
   COALESCE(NULLIF(t.typbasetype, 0), t.oid)::int8, t.typtype = 'e', a.atttypmod,
   COALESCE(l.collisdeterministic, true), a.attnotnull, a.attlen < 0,
   a.attname <> 'ordinality' AND pg_catalog.to_jsonb(a)->>'attgenerated' IS DISTINCT FROM 'v'
    AND (SELECT b.typsend::oid <> 0 AND b.typreceive::oid <> 0 AND (b.typtype IN ('b','e')
      AND (e.oid IS NULL OR (e.typtype IN ('b','e') AND e.typsend::oid <> 0))
      OR b.typtype IN ('r','m') AND b.oid < 16384)
     FROM pg_catalog.pg_type b LEFT JOIN pg_catalog.pg_type e ON e.oid = b.typelem
     WHERE b.oid = COALESCE(NULLIF(t.typbasetype, 0), t.oid))) ORDER BY a.attnum)
  FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
   LEFT JOIN pg_catalog.pg_collation l ON l.oid = a.attcollation
  WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped),
 (SELECT pg_catalog.json_agg(pg_catalog.json_build_array(i.indisprimary,
   i.indkey[0:i.indnkeyatts-1]::int2[],
   (SELECT x.relname FROM pg_catalog.pg_class x WHERE x.oid = i.indexrelid)))
  FROM pg_catalog.pg_index i WHERE i.indrelid = c.oid AND i.indisunique AND i.indimmediate
   AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL),
 (SELECT pg_catalog.json_agg(pg_catalog.json_build_array(o.contype, o.convalidated, o.conkey,
   o.confrelid::int8, o.confkey, o.condeferrable, o.contype = 'f' AND (
    o.confdeltype NOT IN ('a','r') OR o.confupdtype NOT IN ('a','r')),
   o.contype = 'f' AND (pg_catalog.to_jsonb(o)->>'conenforced' = 'false' OR EXISTS (
    SELECT FROM pg_catalog.pg_trigger g WHERE g.tgconstraint = o.oid
     AND g.tgenabled IN ('D','R')))))
  FROM pg_catalog.pg_constraint o WHERE o.conrelid = c.oid AND o.contype IN ('f','n')
   AND (o.contype = 'f' OR NOT o.convalidated)),
 pg_catalog.current_setting('session_replication_role') = 'replica')::text""".replace(
    "MAY_READ", _MAY_READ.format("q", "m")
)

ALL_TABLES: Final = f"""SELECT {_DESCRIPTION_SQL} FROM pg_catalog.pg_class c
 JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace,
 LATERAL (SELECT pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.relname))
  w(name)
 WHERE c.relkind IN ('r', 'p') AND c.relpersistence <> 't'
  AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')"""

# SOUND BECAUSE: the query leaves out functions whose results depend only on their arguments (they
# are IMMUTABLE and name no table), and functions of PostgreSQL and of extensions in C, which do not
# read the application's data. The exceptions are named: they run a query that is their argument, or
# read and write large objects.
_FUNCTION: Final = "p.pronamespace::regnamespace || '.' || p.proname || ' (' || l.lanname || ')'"
_FUNCTIONS: Final = f"""
 FROM pg_catalog.pg_proc p
 JOIN pg_catalog.pg_language l ON l.oid = p.prolang
 WHERE p.pronamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)
 AND p.prokind <> 'a' AND {_MAY_READ.format("p", "l")} AND NOT (l.lanname = 'c' AND EXISTS (
  SELECT FROM pg_catalog.pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e'))
 OR l.lanname IN ('c', 'internal') AND p.proname ~ '^(ts_stat|ts_rewrite|lo_.*|loread|lowrite'
  '|(query|table|schema|database|cursor)_to_xml.*|crosstab.*|connectby|xpath_table|dblink.*)$'"""
FUNCTIONS: Final = f"SELECT DISTINCT p.proname, {_FUNCTION} {_FUNCTIONS}"
# The functions that a statement calls without their names: each with a word or an operator of the
# statements that may call it, or with no word if any may.
CALLED_BY_WORDS: Final = f"""WITH f AS (SELECT p.oid, {_FUNCTION} AS name {_FUNCTIONS})
 SELECT o.oprname, f.name FROM pg_catalog.pg_operator o JOIN f ON f.oid = o.oprcode
 UNION SELECT CASE c.castcontext WHEN 'e' THEN t.typname ELSE '' END, f.name
  FROM pg_catalog.pg_cast c JOIN f ON f.oid = c.castfunc
  JOIN pg_catalog.pg_type t ON t.oid = c.casttarget
 UNION SELECT t.typname, f.name FROM pg_catalog.pg_constraint k
  JOIN pg_catalog.pg_depend e ON e.objid = k.oid AND e.classid = 'pg_constraint'::regclass
  JOIN f ON f.oid = e.refobjid AND e.refclassid = 'pg_proc'::regclass
  JOIN pg_catalog.pg_type t ON t.oid = k.contypid"""
AGGREGATES: Final = "SELECT DISTINCT proname FROM pg_catalog.pg_proc WHERE prokind = 'a'"
DEFERRED_TRIGGERS: Final = (
    "SELECT FROM pg_catalog.pg_trigger WHERE NOT tgisinternal AND tgdeferrable"
)
ROW_SETS: Final = "SELECT DISTINCT proname FROM pg_catalog.pg_proc WHERE proretset"


def lookup_query(names: Iterable[str]) -> str:
    """Return the query that describes the tables with the names used in a statement."""
    values = ", ".join("('" + one.replace("'", "''") + "')" for one in names)
    return (
        f"SELECT {_DESCRIPTION_SQL} FROM (VALUES {values}) w(name) "
        "LEFT JOIN pg_catalog.pg_class c ON c.oid = pg_catalog.to_regclass(w.name) "
        "LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
    )


class ForeignKey(Struct, frozen=True):
    """A FOREIGN KEY that every committed row satisfies.

    Attributes:
        parent: the object identifier of the referenced table.
        columns: the names of the referencing columns.
        referenced: the numbers of the referenced columns, in the same order.
        required: whether all referencing columns are NOT NULL, so that each row has a parent.
        deferrable: whether the rows of an open transaction may lack their parents.
    """

    parent: int
    columns: tuple[str, ...]
    referenced: tuple[int, ...]
    required: bool
    deferrable: bool


class Table(Struct, kw_only=True):
    """A table, as described by the catalogue.

    Attributes:
        where: the name with its schema, quoted for SQL.
        why: the kind of unseen activity that accesses to the table count as; empty if its rows can
            be identified.
        partitioned: whether the rows are in partitions.
        moving: for a partitioned table, the columns that decide which partition a row is in.
        secured: whether policies may hide rows from some roles; those of ``why`` are hidden now.
        triggers: whether the application's triggers run when rows are written.
        may_keep_rows: whether a trigger may leave a row unchanged that a statement is to write.
        readers: the functions of triggers, defaults and CHECK that may read rows.
        unlogged: whether changes are not in the server's log.
        cascades: whether writes may change rows in other tables through foreign keys.
        columns: the columns whose values are recorded in the history, by name.
        quoted: the names of these columns, quoted for SQL.
        key: the names of the primary key columns, in index order.
        others: the names of all other columns, quoted for SQL.
        unique: the columns of each unique index that holds for all rows after each statement.
        constraints: the columns of these by the name of the index, and so of its constraint.
        rows_known: whether every row of the table is completely known. If so, conditions on any
            column can be evaluated; otherwise, only conditions on the primary key.
        names: the name of each column, by its number.
        foreign_keys: the foreign keys that all committed rows satisfy.
        unguarded: whether the session that described the table does not enforce foreign keys.
        has_images: whether the server can send whole rows in binary format, and receive them.
        wide: the names of the columns of variable length, quoted for SQL.
    """

    oid: int
    where: str = ""
    name: str = ""
    why: str = ""
    partitioned: bool = False
    moving: frozenset[str] = frozenset()
    secured: bool = False
    triggers: bool = False
    may_keep_rows: bool = False
    readers: tuple[str, ...] = ()
    unlogged: bool = False
    cascades: bool = False
    columns: dict[str, RecordedColumn]
    quoted: dict[str, str]
    key: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    unique: tuple[frozenset[str], ...] = ()
    constraints: Mapping[str, frozenset[str]] = {}
    rows_known: bool = True
    altered: bool = False
    database: str = ""
    names: dict[int, str] = {}
    foreign_keys: tuple[ForeignKey, ...] = ()
    unguarded: bool = False
    has_images: bool = False
    wide: tuple[str, ...] = ()

    def identity_sql(self, alias: str) -> str:
        """Return the SQL expression for the version and the key of a row."""
        return (
            f"pg_catalog.concat_ws(' ', {alias}.tableoid, {alias}.xmin, {alias}.ctid, "
            f"{self.key_sql(alias)})"
        )

    def version(self, oid: str, xmin: str, ctid: str) -> str:
        """Return a version's number, which includes the partition for partitioned tables."""
        return f"{xmin}{ctid}" + (f"@{oid}" if self.partitioned else "")

    def key_sql(self, alias: str) -> str:
        """Return the SQL expression for the primary key."""
        columns = ", ".join(f"{alias}.{self.quoted[one]}" for one in self.key)
        return f"pg_catalog.json_build_array({columns})"

    def row_sql(self, alias: str) -> str:
        """Return the SQL expression for all columns recorded in a history."""
        return columns_sql(f"{alias}.{self.quoted[one]}" for one in self.columns)

    def image_sql(self, alias: str) -> str:
        """Return the SQL expression for a whole row in binary format; NULL for a large row.

        SOUND BECAUSE: an image contains texts in the session's encoding, so images in other
        encodings than UTF8 are not taken.
        """
        if not self.has_images:
            return "NULL"
        sizes = [f"COALESCE(pg_catalog.pg_column_size({alias}.{name}), 0)" for name in self.wide]
        small = f"{' + '.join(sizes) or '0'} <= {_LARGEST_IMAGE}"
        return (
            f"CASE WHEN pg_catalog.pg_client_encoding() = 'UTF8' AND {small} "
            f"THEN pg_catalog.encode(pg_catalog.record_send({alias}.*), 'base64') END"
        )

    def returned_versions_sql(
        self, alias: str, how: str, *, old: bool, same_key: bool = False
    ) -> str:
        """Return the SQL expression that makes a write return its transaction and both versions.

        SOUND BECAUSE: at REPEATABLE READ and above, an UPDATE replaces the version in its snapshot,
        or fails. A subquery in its RETURNING clause reads the same snapshot. The statement does not
        change the key, so the subquery returns this version by the key.
        """
        nothing = "NULL, NULL, NULL, NULL"
        more = ""

        def version(of: str) -> str:
            return f"{of}.tableoid::text, {of}.xmin::text, {of}.ctid::text, {self.key_sql(of)}"

        if how == "delete":
            both = f"{version('old' if old else alias)}, {nothing}, NULL, NULL"
        else:
            new = "new" if old else alias
            both = (
                f"{version('old') if old else nothing}, {version(new)}, {self.row_sql(new)}, "
                f"{self.image_sql(new)}"
            )
            if self.partitioned and old:
                # A row that was inserted into a partition has no xmin in RETURNING.
                xmin = "CASE WHEN old.tableoid IS NOT NULL THEN new.xmin::text END"
                both = both.replace("new.xmin::text", xmin)
            if same_key and not old:
                name = "isolang_old"
                equal = " AND ".join(
                    f"{name}.{self.quoted[one]} = {alias}.{self.quoted[one]}" for one in self.key
                )
                row = f"pg_catalog.json_build_array({version(name)})"
                more = (
                    ", CASE WHEN pg_catalog.current_setting('transaction_isolation') IN "
                    f"('repeatable read', 'serializable') THEN (SELECT pg_catalog.json_agg({row}) "
                    f"FROM {self.where} {name} WHERE {equal}) END"
                )
        number = "pg_catalog.pg_current_xact_id()::text"
        return f"pg_catalog.json_build_array({number}, {both}{more})"

    def key_text(self, values: Sequence[Any]) -> str:
        """Return the name of a row: the values of its primary key."""
        return key_text(values)

    def row(self, reported: Sequence[Sequence[Any]]) -> dict[str, Any]:
        """Return the row to record in a history for a result of :meth:`row_sql`."""
        return recorded_row(self.columns, reported)

    def key_row(self, values: Sequence[Any]) -> dict[str, Any]:
        """Return the row to record in a history if only the primary key is known."""
        return {
            name: self.columns[name].recorded(value)
            for name, value in zip(self.key, values, strict=True)
            if name in self.columns
        }

    def may_change_other_tables(self, kind: str, assigned: Collection[str]) -> bool:
        """Return whether a statement may change rows in other tables through foreign keys."""
        columns = {*self.key}.union(*self.unique)
        return self.cascades and (kind == "delete" or not columns.isdisjoint(assigned))

    def has_same_form(self, other: Table) -> bool:
        """Return whether two descriptions have the same columns and the same key."""
        return (self.columns, self.quoted, self.key) == (other.columns, other.quoted, other.key)


def key_text(values: Sequence[Any]) -> str:
    """Return the name of a row: the values of its primary key.

    >>> key_text([7]), key_text(["a,b", 1])
    ('7', 'a%2Cb,1')
    """
    texts = [_text(one).replace("%", "%25").replace("#", "%23") for one in values]
    return texts[0] if len(texts) == 1 else ",".join(one.replace(",", "%2C") for one in texts)


def is_key_of(table: Table, written: Sequence[Any], values: Mapping[str, Any]) -> bool:
    """Return whether a row's key, as the server wrote it, has the values in Python, by column."""
    return values.keys() == set(table.key) and all(
        _is_same(values[name], seen) for name, seen in zip(table.key, written, strict=True)
    )


def _is_same(value: Any, written: Any) -> bool:
    if isinstance(value, bool) or isinstance(written, bool):
        return value is written
    with suppress(ValueError, ArithmeticError):
        if isinstance(value, datetime):
            return value == datetime.fromisoformat(str(written))
        if isinstance(value, int | float | Decimal):
            return Decimal(str(value)) == Decimal(str(written))
    return str(value) == str(written)


def columns_sql(columns: Iterable[str]) -> str:
    """Return the SQL expression for the values of columns.

    The columns are divided into groups, because a function takes at most 100 arguments.
    """
    named = list(columns)
    groups = [named[n : n + _COLUMNS_IN_GROUP] for n in range(0, len(named), _COLUMNS_IN_GROUP)]
    made = [f"pg_catalog.json_build_array({', '.join(one)})" for one in groups]
    return f"pg_catalog.json_build_array({', '.join(made)})"


def recorded_row(
    columns: Mapping[str, RecordedColumn], reported: Sequence[Sequence[Any]]
) -> dict[str, Any]:
    """Return the row to record in a history for a result of :func:`columns_sql`."""
    values = [value for group in reported for value in group]
    return {
        name: column.recorded(value)
        for (name, column), value in zip(columns.items(), values, strict=True)
    }


def _columns(
    reported: Sequence[Any], nullable: Collection[int] = ()
) -> Iterator[tuple[RecordedColumn, str, int]]:
    """Yield each column, its name quoted for SQL, and its number."""
    for name, written, number, oid, enum, modifier, deterministic, required, *_ in reported:
        scale = (modifier - 4) & 0x7FF if oid == NUMERIC and modifier >= 4 else -1
        made = RecordedColumn(
            name=name,
            oid=oid,
            enum=enum,
            equal=deterministic,
            scale=scale,
            required=required and number not in nullable,
        )
        yield made, written, number


def exact_json(text: str | bytes) -> Any:
    """Parse a JSON value, keeping all digits of decimals."""
    return _EXACT.decode(text if isinstance(text, str) else text.decode())


def quoted_name(name: str) -> str:
    """Return a name quoted for SQL."""
    return '"' + name.replace('"', '""') + '"'


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)


def parse_description(text: str) -> tuple[str, Table | None]:
    """Return the name in a row of :func:`lookup_query`, and the table, or ``None`` if missing."""
    (name, oid, schema, relation, kind, persistence, rules, children, partition, may, secured,
     hides, moving, triggers, cascades, columns, indexes, constraints, unguarded,
     ) = json.loads(text)  # fmt: skip
    if oid is None:
        return name, None
    numbers = {}
    known: dict[str, RecordedColumn] = {}
    quoted: dict[str, str] = {}
    # SOUND BECAUSE: PostgreSQL marks a column NOT NULL although the constraint is not validated.
    nullable = {key[0] for kind, _, key, *_ in constraints or () if kind == "n"}
    for made, written, number in _columns(columns or (), nullable):
        numbers[number] = made
        quoted[made.name] = written
        if made.comparable and made.name != CLASS_COLUMN:  # the history's own
            known[made.name] = made
    key: tuple[str, ...] = ()
    unique: dict[str, frozenset[str]] = {}
    for primary, attributes, index in indexes or ():
        if all(n in numbers for n in attributes):
            of = tuple(numbers[n].name for n in attributes)
            unique[index] = frozenset(of)
            if primary:
                key = of
    runs = any(keeps is not None for keeps, *_ in triggers or ())
    made_key = [one for one in numbers.values() if one.name in key]
    why = (
        CATALOGUE if schema in ("pg_catalog", "information_schema")
        else VIEWS if kind in "vm"
        else TEMPORARY if persistence == "t"
        else FOREIGN_TABLES if kind == "f"
        else RULES if rules or hides
        else CHILDREN if partition or (children and kind != "p")
        else PRIVILEGE if not may
        else NO_KEY if not key
        else KEY_TYPE if any(not (one.enum or one.oid in _KEY_TYPES) for one in made_key)
        else ""
    )  # fmt: skip
    shown = relation if schema == "public" else f"{schema}.{relation}"
    return name, Table(
        oid=oid,
        where=f"{quoted_name(schema)}.{quoted_name(relation)}",
        name=shown,
        why=why,
        partitioned=kind == "p",
        moving=frozenset(moving or ()),
        secured=secured,
        triggers=runs,
        may_keep_rows=any(keeps for keeps, *_ in triggers or ()),
        readers=tuple(sorted({function for _, function, reads in triggers or () if reads})),
        unlogged=persistence == "u",
        cascades=cascades,
        columns=known,
        quoted={**{one: quoted[one] for one in known}, **{one: quoted[one] for one in key}},
        others=tuple(written for name, written in quoted.items() if name not in key),
        key=key,
        unique=tuple(unique.values()),
        constraints=unique,
        names={number: column.name for number, column in numbers.items()},
        foreign_keys=tuple(_foreign_keys(constraints or (), numbers, triggers=runs)),
        unguarded=unguarded,
        has_images=all(has_image for *_, has_image in columns or ()),
        wide=tuple(written for _, written, *_, wide, _ in columns or () if wide),
    )


def _foreign_keys(
    constraints: Sequence[Any], columns: Mapping[int, RecordedColumn], *, triggers: bool
) -> Iterator[ForeignKey]:
    """Yield the foreign keys that all committed rows satisfy.

    SOUND BECAUSE: constraints that were not validated, are not enforced, or whose triggers are
    disabled say nothing. A trigger on the table may keep ON DELETE CASCADE from deleting a row.
    """
    for kind, validated, key, parent, referenced, deferrable, acts, off in constraints:
        if kind == "f" and validated and not off and not (acts and triggers):
            own = [columns[n] for n in key if n in columns]
            yield ForeignKey(
                parent=parent,
                columns=tuple(column.name for column in own),
                referenced=tuple(referenced),
                required=all(column.required for column in own),
                deferrable=deferrable,
            )


class Tables:
    """The tables of a database that sessions have used, by object identifier."""

    def __init__(
        self, database: str = "", *, prefix: str = "", names: Mapping[str, str] | None = None
    ) -> None:
        """Create a collection without tables.

        Args:
            names: the names of tables in the history, where they differ from those in the database.
        """
        self._database, self._prefix, self._names = database, prefix, names or {}
        self._known: dict[int, Table] = {}
        self._forms: dict[str, int] = {}

    def add(self, table: Table, *, rows_known: bool = True) -> Table:
        """Return the shared object for a table that a session has described.

        A table that was altered, truncated or re-created under the same name is a different table
        in the history.
        """
        known = self._known.get(table.oid)
        if known is not None and not known.altered and known.has_same_form(table):
            known.triggers, known.cascades = table.triggers, table.cascades
            known.may_keep_rows, known.readers = table.may_keep_rows, table.readers
            known.moving, known.secured = table.moving, table.secured
            known.unique, known.names = table.unique, table.names
            known.constraints = table.constraints
            known.foreign_keys = table.foreign_keys
            known.has_images, known.wide = table.has_images, table.wide
            if known.why == table.why:
                return known
            # The role of this session may have fewer privileges than other roles.
            table.name = known.name
            return table
        if known is not None:
            known.altered = True
        table.database = self._database
        table.name = self._names.get(table.name, table.name)
        if not table.name.startswith(self._prefix):
            table.name = self._prefix + table.name
        number = self._forms[table.name] = self._forms.get(table.name, 0) + 1
        table.name += f"#{number}" if number > 1 else ""
        table.rows_known = rows_known
        self._known[table.oid] = table
        return table

    def knows(self, table: Table) -> bool:
        """Return whether any session has described a table."""
        return table.oid in self._known

    def changed(self) -> set[int]:
        """Return the object identifiers of the tables that had another form before."""
        return {
            table.oid
            for table in self._known.values()
            if "#" in table.name.removeprefix(self._prefix)
        }

    def current(self) -> list[Table]:
        """Return the tables in their current form."""
        return [one for one in self._known.values() if not one.altered]

    def note_truncation(self, table: Table) -> None:
        """Note that a table was truncated, so its later rows belong to a different table."""
        table.altered = True
        known = self._known.get(table.oid)
        if known is not None:
            known.altered = True

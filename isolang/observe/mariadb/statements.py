"""Prepares an application's statements for the server: what they do, and how they are sent.

A SELECT gets one more column for the rows of each of its tables. A statement that may write gets a
comment in front, which the server's log repeats.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from isolang.observe.log.tables import SYSTEM_SCHEMAS, Catalogue, LoggedTable, Name
from isolang.observe.mariadb.blocks import BlockPlan, block_plan
from isolang.observe.mariadb.lexer import statements, tokens
from isolang.observe.mariadb.literals import with_literals
from isolang.observe.mariadb.plan import (
    SentPlan,
    hidden_text,
    names_only_schemas,
    plan_of,
    with_long_lists,
)
from isolang.observe.sql.lexer import Token, UnclearTextError
from isolang.observe.sql.predicates import Parameters
from isolang.observe.sql.units import program_of_statement, units_of_statement
from isolang.observe.unseen import (
    ALTERED,
    CALLED,
    CATALOGUE,
    LARGE_TABLES,
    NO_KEY,
    PRIVILEGE,
    PROCEDURES,
    SHAPES,
    TABLES,
    TEMPORARY,
    TRIGGERS,
    UNCLEAR,
    UNKNOWN_TABLES,
    VIEWS,
)

_SYSTEM: Final = frozenset(SYSTEM_SCHEMAS)
_WRITES: Final = frozenset({"insert", "update", "delete", "call", "other"})
_LONGEST: Final = 1 << 20  # the longest text to examine, in characters
_READS: Final = re.compile(
    r"\b(?:select|update|delete|replace|call|duplicate|insert\s+ignore|with)\b", re.IGNORECASE
)
_ENDS: Final = re.compile(
    r"\b(?:commit|rollback|start\s+transaction|autocommit|xa|create|alter|drop|truncate|rename|lock"
    r"|grant|revoke|execute|isolation)\b",
    re.IGNORECASE,
)


class Parsed(Struct, frozen=True):
    """A statement of a text.

    Attributes:
        lead: the blanks, comments and semicolons in front of it, up to where a comment can go.
        gap: the blanks and comments between that and the statement.
        part: its tokens, with positions in its own text.
    """

    lead: str
    gap: str
    text: str
    part: Sequence[Token]
    plan: SentPlan


class Statement(Struct):
    """A statement of an application.

    Attributes:
        tables: the tables that it reads, or the one that it changes.
        mark: what the comment in front of it says; empty if it has none.
        hidden: the number of columns that were added to its answer.
        unseen: the kind or detail that it counts as.
        is_binary: whether the application prepared it.
        ends_unclear: whether it may have ended its transaction and begun another one unnoticed.
        charset: Python's name of the character set of its text; empty if it is not known.
        lead: what the text has in front of it, and of a comment.
        gap: what the text has between the comment and the statement.
        units: the names of the unit that it belongs to, by what names it in a comment.
        program: the name of its program in a comment; empty if it has none.
        blocks: what it reads besides the rows in its answer; ``None`` if that is not known.
        mode: the session's ``sql_mode``.
        temporary: the names of the tables that it creates as temporary ones, drops or alters.
        prepared_behind: the temporary tables that the session had when it was prepared.
    """

    text: str
    part: Sequence[Token]
    plan: SentPlan
    tables: Sequence[LoggedTable] = ()
    mark: str = ""
    hidden: int = 0
    unseen: str = ""
    parameters: Parameters = Parameters()
    is_binary: bool = False
    ends_unclear: bool = False
    charset: str = ""
    lead: str = ""
    gap: str = ""
    units: Mapping[str, str] = {}
    program: str = ""
    blocks: BlockPlan | None = None
    mode: str = ""
    temporary: Sequence[Name] = ()
    prepared_behind: frozenset[Name] = frozenset()

    def sent_text(self) -> str:
        """Return the text to send to the server."""
        if self.hidden:
            images = [
                table.image_sql(source.alias)
                for source, table in zip(self.plan.sources, self.tables, strict=True)
            ]
            lists = None
            if self.blocks is not None and self.blocks.is_in_answer:
                lists = self.blocks.place, self.blocks.column_sql(self.part, self.text)[0]
            changed = hidden_text(self.plan, self.part, self.text, images, lists)
            return f"{self.lead}{self.gap}{changed}"
        mark = f"/*{self.mark}*/ " if self.mark else ""
        return f"{self.lead}{mark}{self.gap}{self.text}"

    def without_hidden(self, unseen: str) -> None:
        """Send the statement as it was, and count it."""
        self.hidden, self.unseen, self.blocks = 0, self.unseen or unseen, None

    def executed_behind(self, temporaries: Collection[Name]) -> Statement:
        """Return the statement as a session executes it that has these temporary tables now.

        If it may name one that came or went since it was prepared, it reads another table.
        """
        changed = {
            name.lower() for _, name in self.prepared_behind.symmetric_difference(temporaries)
        }
        if not changed or changed.isdisjoint(token.text.strip('"').lower() for token in self.part):
            return self
        plan = replace(self.plan, kind="other", unseen=ALTERED)
        return replace(self, plan=plan, unseen=ALTERED)

    def parameter_order(self) -> list[int]:
        """Return the number of the parameter that each ``?`` in the sent text stands for.

        Return nothing if none is repeated.
        """
        if self.blocks is None or not self.blocks.is_in_answer:
            return []
        numbers = [
            (at, int(token.text[1:]))
            for at, token in enumerate(self.part) if token.kind == "parameter"
        ]  # fmt: skip
        _, added = self.blocks.column_sql(self.part, self.text)
        place = self.blocks.place
        return [
            *(number for at, number in numbers if at < place), *added,
            *(number for at, number in numbers if at >= place),
        ]  # fmt: skip

    def lists_text(self) -> str | None:
        """Return a SELECT for whether the statement finds a row, and for the rows of its blocks.

        Return ``None`` if a parameter's value is not certain.
        """
        if self.blocks is None or not self.blocks.has_lists:
            return None
        lists, parameters = self.blocks.lists_sql(self.part, self.text)
        text = f"SELECT EXISTS({self.text}),CAST({lists} AS BINARY)"
        numbers = [int(token.text[1:]) for token in self.part if token.kind == "parameter"]
        filled = with_literals(text, [*numbers, *parameters], self.parameters)
        return None if filled is None else with_long_lists(filled)


class Programs(Struct):
    """The effects that the server's procedures and triggers may have.

    Attributes:
        readers: the tables with triggers that may read other rows.
        end_transactions: whether a procedure may end a transaction.
    """

    readers: set[tuple[str, str]] = field(default_factory=set)
    end_transactions: bool = False


def programs_of(connection: object) -> Programs:
    """Read what the server's programs may do."""
    made = Programs()
    with connection.cursor() as cursor:  # type: ignore[attr-defined]
        cursor.execute(
            "SELECT event_object_schema, event_object_table, action_statement "
            "FROM information_schema.triggers"
        )
        triggers = cursor.fetchall()
        cursor.execute(
            "SELECT routine_name, routine_type, routine_definition FROM "
            "information_schema.routines WHERE routine_schema NOT IN ('mysql', 'sys')"
        )
        routines = cursor.fetchall()
    made.readers = _reading_tables(triggers, {name for name, _, _ in routines})
    made.end_transactions = any(
        kind != "FUNCTION" and (body is None or _ENDS.search(body)) for _, kind, body in routines
    )
    return made


def _reading_tables(
    triggers: Sequence[tuple[str, str, str | None]], routines: Collection[str]
) -> set[tuple[str, str]]:
    """Return the tables with triggers that may read other rows.

    A trigger may also read in a function that it calls, or because it writes to such a table.
    """
    readers: set[tuple[str, str]] = set()
    while True:
        named = [*routines, *(table for _, table in readers)]
        names = re.compile(
            rf"(?<![\w$])(?:{'|'.join(map(re.escape, named))})(?![\w$])", re.IGNORECASE
        )
        reading = {
            (schema, table)
            for schema, table, body in triggers
            if body is None or _READS.search(body) or (named and names.search(body))
        }
        if reading == readers:
            return readers
        readers = reading


_PLANS: Final[dict[tuple[str, ...], SentPlan]] = {}
_MOST_PLANS: Final = 8192  # the most plans to keep
_LITERALS: Final = frozenset({"text", "number"})


def _shape(part: Sequence[Token], text: str) -> tuple[str, ...]:
    """Return a statement's tokens without its literals, except for the number behind LIMIT."""
    before = ""
    shape = []
    for token in part:
        is_value = token.kind in _LITERALS and before not in ("limit", "offset")
        shape.append(f"\0{token.kind}" if is_value else text[token.start : token.end])
        before = token.text
    return tuple(shape)


def _plan_of_shape(shape: tuple[str, ...], part: Sequence[Token], text: str) -> SentPlan:
    """Return what a statement does, which its literals do not change."""
    if (known := _PLANS.get(shape)) is not None:
        return known
    if len(_PLANS) >= _MOST_PLANS:
        _PLANS.clear()
    _PLANS[shape] = made = plan_of(part, text)
    return made


@lru_cache(maxsize=8192)
def parsed(text: str, mode: str, version: int) -> Sequence[Parsed] | None:
    """Return the statements of a text; ``None`` if it is not certain how it is split."""
    if len(text) > _LONGEST:
        return None
    try:
        cut = [*tokens(text, mode, version=version)]
    except UnclearTextError:
        return None
    made = []
    separators = [0, *(token.end for token in cut if token.kind == "mark" and token.text == ";")]
    before = 0
    for part in statements(cut):
        begin, end = part[0].start, part[-1].end
        own = text[begin:end]
        moved = [
            Token(token.kind, token.text, token.start - begin, token.end - begin) for token in part
        ]
        split = max(at for at in separators if at <= begin)
        plan = _plan_of_shape(_shape(moved, own), moved, own)
        made.append(Parsed(text[before:split], text[split:begin], own, moved, plan))
        before = end
    return made


class Preparation:
    """Prepares statements with what is known of the server."""

    def __init__(self, catalogue: Catalogue, programs: Programs, version: int) -> None:
        """Store what is known."""
        self.catalogue, self.programs, self._version = catalogue, programs, version
        self._blocks: dict[tuple[int, str], tuple[SentPlan, BlockPlan | None]] = {}

    def statements(
        self, text: str, mode: str, database: str, charset: str, temporaries: Collection[Name]
    ) -> list[Statement]:
        """Return the statements of a text; a text that is not certain is one statement.

        Args:
            mode: the session's ``sql_mode``.
            database: the session's default database.
            charset: Python's name of the character set of the text; empty if it is not known.
            temporaries: the names of the session's temporary tables.
        """
        cut_text = parsed(text, mode, self._version)
        if cut_text is None:
            unclear = Statement(text, (), SentPlan("other"), unseen=UNCLEAR, ends_unclear=True)
            return [unclear]
        made = [
            self._statement(parsed_statement, database, charset, temporaries)
            for parsed_statement in cut_text
        ]
        for statement in made:
            statement.mode, statement.prepared_behind = mode, frozenset(temporaries)
        if len(made) > 1 and any(
            parsed_statement.plan.kind in ("call", "other") for parsed_statement in made
        ):
            # Nobody can tell which answer belongs to which statement.
            return [
                Statement(text, (), SentPlan("other"), unseen=PROCEDURES, ends_unclear=True)
            ]  # fmt: skip
        if len(made) == 1:
            made[0].units, made[0].program = units_of_statement(text), program_of_statement(text)
        return made

    def _statement(
        self, parsed_statement: Parsed, database: str, charset: str, temporaries: Collection[Name]
    ) -> Statement:
        plan = parsed_statement.plan
        made = Statement(
            parsed_statement.text, parsed_statement.part, plan, unseen=plan.unseen,
            charset=charset, lead=parsed_statement.lead, gap=parsed_statement.gap,
            temporary=[(schema or database, name) for schema, name in plan.temporary],
        )  # fmt: skip
        schemas = {(source.schema or database).lower() for source in plan.sources}
        is_select = plan.kind == "select" and bool(plan.unseen)
        calls = any(name in self.catalogue.routines for name in plan.functions)
        of_catalogue = is_select and not calls and names_only_schemas(made.part, _SYSTEM)
        if (schemas and schemas <= _SYSTEM and not calls) or of_catalogue:
            return replace(made, plan=SentPlan("quiet", unseen=CATALOGUE), unseen="")
        others = [
            source for source in plan.sources
            if (source.schema or database, source.name) not in temporaries
        ]  # fmt: skip
        if len(others) < len(plan.sources):
            unseen = CALLED if calls else SHAPES if others or plan.unseen else TEMPORARY
            return replace(made, plan=SentPlan("quiet", unseen=unseen), unseen="")
        tables = []
        for source in plan.sources:
            table = self.catalogue.find(source.schema, source.name, database)
            if table is None or table.why:
                made.unseen = made.unseen or _why(table)
            if table is not None:
                tables.append(table)
        made.tables = tables
        if calls:
            made.unseen = made.unseen or CALLED
            if plan.kind in ("set", "quiet"):
                made.plan = plan = replace(plan, kind="other")
        if plan.kind not in ("select", "definition") and any(
            (table.schema, table.name) in self.programs.readers for table in tables
        ):
            made.unseen = made.unseen or TRIGGERS
        if not calls and not (tables and made.unseen != plan.unseen):
            made.blocks = self._blocks_of(made, plan, database, temporaries)
        if made.blocks is not None and (plan.unseen or plan.partial):
            # The statement is a SELECT, even if it begins with WITH.
            made.plan = plan = replace(plan, kind="select", unseen="", sources=())
            made.tables, made.unseen = (), ""
        if plan.kind == "select" and not made.unseen:
            made.hidden = len(made.tables)
            made.hidden += made.blocks is not None and made.blocks.is_in_answer
        made.ends_unclear = plan.kind == "other" and plan.unseen in (
            SHAPES, "PREPARE and EXECUTE in SQL"
        )  # fmt: skip
        made.ends_unclear |= plan.kind == "call" and self.programs.end_transactions
        return made

    def _blocks_of(
        self, made: Statement, plan: SentPlan, database: str, temporaries: Collection[Name]
    ) -> BlockPlan | None:
        """Return what a SELECT reads besides the rows in its answer; ``None`` if not known."""
        has_blocks = plan.unseen or plan.partial or len(plan.sources) > 1
        if plan.kind not in ("select", "other") or not has_blocks:
            return None
        known, blocks = self._blocks.get((id(plan), database), (None, None))
        if known is not plan:
            blocks = block_plan(
                made.part, made.text, plan,
                lambda schema, name: self.catalogue.find(schema, name, database),
            )  # fmt: skip
            if len(self._blocks) >= _MOST_PLANS:
                self._blocks.clear()
            self._blocks[id(plan), database] = plan, blocks
        tables = () if blocks is None else (t for each in blocks.blocks for t in each.tables)
        hidden = any((t.table.schema, t.table.name) in temporaries for t in tables)
        return None if hidden else blocks

    def marked(self, made: Statement, mark: str) -> Statement:
        """Return a statement with a comment in front of it, if it may write."""
        if made.part and (made.plan.kind in _WRITES or made.unseen == CALLED):
            return replace(made, mark=mark)
        return made


def _why(table: LoggedTable | None) -> str:
    if table is None:
        return UNKNOWN_TABLES
    if "primary key" in table.why:
        return NO_KEY
    if "--most-rows" in table.why:
        return LARGE_TABLES
    if "privilege" in table.why:
        return PRIVILEGE
    return VIEWS if "view" in table.why else TABLES

"""Understands the statements in the log that change tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from isolang.observe.log.tables import Name

_TOKEN: Final = re.compile(
    r"""\s+|/\*M?!\d*|\*/|/\*.*?\*/|\#[^\n]*|--\s[^\n]*
    |(?P<quoted>`(?:[^`]|``)*`)|(?P<string>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
    |(?P<word>[\w$]+)|(?P<other>.)""",
    re.DOTALL | re.VERBOSE,
)


def _tokens(text: str) -> list[str]:
    """Return words and signs; quoted names with their first quote, other words in lower case."""
    tokens = []
    for match in _TOKEN.finditer(text):
        if match["quoted"]:
            tokens.append("`" + match[0][1:-1].replace("``", "`"))
        elif match["word"] or match["string"] or match["other"]:
            tokens.append(match[0])
    return tokens


class Definition:
    """A statement that changes definitions.

    Attributes:
        kind: ``create``, ``alter``, ``drop``, ``truncate`` or ``rename``, each of tables;
            ``schema`` for DROP DATABASE; ``index`` for changes that keep the columns; ``other``.
        tables: the tables that it names.
        renamed: the new name of each renamed table.
        schema: the schema that is dropped.
        unless_exists: whether the statement has no effect if the table exists.
    """

    unless_exists = False

    def __init__(self, text: str, schema: str) -> None:
        """Parse a statement that was run in a default schema."""
        self._tokens, self._at, self._schema = _tokens(text), 0, schema
        self.kind = "other"
        self.tables: list[Name] = []
        self.renamed: dict[Name, Name] = {}
        self.schema = ""
        self._parse()

    def touches(self, name: Name) -> bool:
        """Return whether the statement names a table, or drops its schema."""
        names = (*self.tables, *self.renamed, *self.renamed.values())
        return name in names or (self.kind == "schema" and name[0] == self.schema)

    def _word(self) -> str:
        token = self._tokens[self._at] if self._at < len(self._tokens) else ""
        return token.lower()

    def _accept(self, *words: str) -> bool:
        if self._word() in words:
            self._at += 1
            return True
        return False

    def _name(self) -> Name:
        names = [self._identifier()]
        if self._accept("."):
            names.append(self._identifier())
        return (names[0], names[1]) if len(names) > 1 else (self._schema, names[0])

    def _identifier(self) -> str:
        token = self._tokens[self._at] if self._at < len(self._tokens) else ""
        self._at += 1
        return token.removeprefix("`")

    def _names(self) -> Iterator[Name]:
        yield self._name()
        while self._accept(","):
            yield self._name()

    def _parse(self) -> None:
        if self._accept("set") and self._accept("statement"):
            while self._at < len(self._tokens) and not self._accept("for"):
                self._at += 1
        if self._accept("create"):
            self._parse_create()
        elif self._accept("drop"):
            self._parse_drop()
        elif self._accept("truncate"):
            self._accept("table")
            self.kind, self.tables = "truncate", [self._name()]
        elif self._accept("rename"):
            self._parse_rename()
        elif self._accept("alter"):
            self._parse_alter()

    def _parse_create(self) -> None:
        if self._accept("or"):
            self._accept("replace")
        if self._word() in ("unique", "fulltext", "spatial", "index"):
            self._parse_index()
        elif self._accept("table"):
            if self._accept("if"):
                self._accept("not")
                self._accept("exists")
                self.unless_exists = True
            self.kind, self.tables = "create", [self._name()]

    def _parse_index(self) -> None:
        while self._at < len(self._tokens) and not self._accept("on"):
            self._at += 1
        self.kind, self.tables = "index", [self._name()]

    def _parse_drop(self) -> None:
        if self._accept("database", "schema"):
            self._skip_exists()
            self.kind, self.schema = "schema", self._identifier()
        elif self._accept("index"):
            self._parse_index()
        elif self._accept("table", "tables"):
            self._skip_exists()
            self.kind, self.tables = "drop", [*self._names()]

    def _skip_exists(self) -> None:
        if self._accept("if"):
            self._accept("exists")

    def _parse_rename(self) -> None:
        if not self._accept("table", "tables"):
            return
        self._skip_exists()
        self.kind = "rename"
        while self._at < len(self._tokens):
            old = self._name()
            while self._at < len(self._tokens) and not self._accept("to"):
                self._at += 1  # WAIT 5, NOWAIT
            self.renamed[old] = self._name()
            if not self._accept(","):
                return

    def _parse_alter(self) -> None:
        while self._accept("online", "ignore"):
            pass
        if not self._accept("table"):
            return
        self._skip_exists()
        table = self._name()
        self.kind, self.tables = "alter", [table]
        depth = 0
        while self._at < len(self._tokens):
            depth += self._accept("(") - self._accept(")")
            if depth == 0 and self._accept("rename"):
                if self._word() in ("column", "index", "key"):
                    continue
                self._accept("to", "as", "=")
                self.renamed[table] = self._name()
            else:
                self._at += 1

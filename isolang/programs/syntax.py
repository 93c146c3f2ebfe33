"""Defines and parses the syntax of programs.

A program consists of a few sessions, separated by ``||``. A session consists of a few transactions,
separated by ``->``. A transaction is a sequence of steps::

    program lost-update "Berenson et al. 1995, P4"
    init x = 100
    a = r(x) w(x, a + 20) || b = r(x) w(x, b + 30)
    exists a = 100 and b = 100 "lost update"

Programs have no loops, so each program has only finitely many outcomes.

A template is a program with a single transaction and with parameters, which appear in the brackets
of keys. A file can contain any number of templates::

    program Withdraw(c, d) where c != d
    a = r(savings[c].balance) if a >= 10 { u(savings[d].balance, .balance + 10) }
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal, TypeAlias, get_args

from msgspec import Struct

from isolang.errors import IsolangError

Operator = Literal["+", "-", "*"]
Comparison = Literal["=", "!=", "<", "<=", ">", ">="]

MOST_TRANSACTIONS: Final = 12
MOST_STEPS: Final = 100
DEEPEST: Final = 30


class ProgramError(IsolangError):
    """Raised when a program cannot be parsed, or has too many outcomes to list."""


class Number(Struct, frozen=True):
    """A constant number."""

    value: int


class Variable(Struct, frozen=True):
    """The value of a read or of a parameter, by its name in the program."""

    name: str


class Column(Struct, frozen=True):
    """The value of a column before the statement that updates its row."""

    name: str


class Computed(Struct, frozen=True):
    """A value computed from two other values."""

    op: Operator
    left: Value
    right: Value


Value: TypeAlias = Number | Variable | Column | Computed


class AnyRow(Struct, frozen=True):
    """The argument ``*``, which represents all rows selected by an unspecified condition."""


Argument: TypeAlias = Number | Variable | AnyRow


class RowKey(Struct, frozen=True):
    """A key of a template: ``relation[arguments].(columns)``.

    Attributes:
        columns: the names of the columns; empty if the key refers to the whole row.
    """

    relation: str
    arguments: tuple[Argument, ...] = ()
    columns: tuple[str, ...] = ()


class Compared(Struct, frozen=True):
    """A comparison of two values."""

    op: Comparison
    left: Value
    right: Value


class Combined(Struct, frozen=True):
    """A combination of conditions with ``and``, ``or`` or ``not``."""

    op: Literal["and", "or", "not"]
    parts: tuple[Condition, ...]


Condition: TypeAlias = Compared | Combined


class ReadStep(Struct, frozen=True):
    """A read: ``name = r(key)``, or ``r(key, expected)`` to list only outcomes with that value.

    Attributes:
        name: the name of the variable for the value; empty if there is none.
        expected: the value that the read must return, or ``"nil"`` for the initial value; ``None``
            if it may return any value.
        row: the parsed key, if the program is a template.
    """

    key: str
    name: str = ""
    expected: int | Literal["nil"] | None = None
    row: RowKey | None = None


class WriteStep(Struct, frozen=True):
    """A write: ``w(key, value)``."""

    key: str
    value: Value
    row: RowKey | None = None


class UpdateStep(Struct, frozen=True):
    """An update: ``u(key, value, …)``, one statement that both reads and writes a row.

    Attributes:
        values: the new values; columns that occur in them are also read.
    """

    key: str
    values: tuple[Value, ...]
    row: RowKey


class InsertStep(Struct, frozen=True):
    """An insert: ``insert(key)``, which creates the row."""

    key: str
    row: RowKey


class DeleteStep(Struct, frozen=True):
    """A delete: ``delete(key)``, which removes the row."""

    key: str
    row: RowKey


class If(Struct, frozen=True):
    """A conditional: ``if condition { … } else { … }``."""

    condition: Condition
    then: tuple[Step, ...]
    otherwise: tuple[Step, ...] = ()
    text: str = ""


class AbortStep(Struct, frozen=True):
    """An ``abort``, which ends the transaction so that none of its writes takes effect."""


Step: TypeAlias = ReadStep | WriteStep | UpdateStep | InsertStep | DeleteStep | If | AbortStep


class ExistsCondition(Struct, frozen=True, kw_only=True):
    """The question ``exists condition "title"``: does any outcome satisfy the condition?"""

    condition: Condition
    text: str
    title: str = ""


class Program(Struct, frozen=True, kw_only=True):
    """A program.

    Attributes:
        title: the title in its header, or empty.
        different: pairs of parameters that never have the same value.
    """

    name: str
    title: str
    initial: dict[str, int]
    sessions: tuple[tuple[tuple[Step, ...], ...], ...]
    texts: tuple[tuple[str, ...], ...]
    targets: tuple[ExistsCondition, ...] = ()
    parameters: tuple[str, ...] = ()
    different: tuple[tuple[str, str], ...] = ()

    def transactions(self) -> Iterator[tuple[int, tuple[Step, ...]]]:
        """Yield the transactions in order, each with the index of its session."""
        for number, own in enumerate(self.sessions):
            for steps in own:
                yield number, steps


class _Token(Struct, frozen=True):
    kind: str
    text: str
    start: int
    end: int


_TOKENS: Final = re.compile(
    r"""(?P<skip>[ \t\r\n]+|//[^\n]*)
      | (?P<name>[A-Za-z_][A-Za-z0-9_]*(?:-[A-Za-z_][A-Za-z0-9_]*)*)
      | (?P<number>[0-9]+)
      | (?P<string>"[^"\r\n]*")
      | (?P<sign>\|\||->|!=|<=|>=|[-+*=<>(){},.\[\]])""",
    re.VERBOSE,
)
RESERVED: Final = frozenset(
    ("program", "init", "exists", "if", "else", "and", "or", "not", "abort", "r", "w", "nil")
)
_LARGEST: Final = 1 << 53


def is_program_text(source: str | os.PathLike[str]) -> bool:
    """Return whether a string is the text of a program or of templates, and not a path."""
    return isinstance(source, str) and "(" in source and not os.path.exists(source)


def load_program(path: str | Path) -> Program:
    """Read a program from a file.

    Raises:
        ProgramError: the file cannot be read or parsed. The message states the line and column.
    """
    return parse_program(_text_of(Path(path)), str(path))


def load_templates(path: str | Path) -> tuple[Program, ...]:
    """Read the templates in a file (see :func:`parse_templates`).

    Raises:
        ProgramError: the file cannot be read or parsed. The message states the line and column.
    """
    return parse_templates(_text_of(Path(path)), str(path))


def _text_of(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except OSError as error:
        raise ProgramError(f"{path}: cannot read the file: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise ProgramError(f"{path}: not a UTF-8 text (at byte {error.start})") from None


def parse_program(text: str, file: str = "<text>") -> Program:
    """Parse a program that is not a template.

    Args:
        text: the text of the program.
        file: the file name to use in error messages.

    Raises:
        ProgramError: the text does not follow the syntax.

    >>> found = parse_program("a = r(x) w(y, a + 1) || r(y) -> w(x, 2)")
    >>> [len(own) for own in found.sessions], found.texts[0]
    ([1, 2], ('a = r(x) w(y, a + 1)',))
    """
    return _ProgramParser(text, file).only_program()


def parse_templates(text: str, file: str = "<text>") -> tuple[Program, ...]:
    """Parse templates, or a single program without parameters.

    Args:
        text: the templates, each of which begins with its header.
        file: the file name to use in error messages.

    Raises:
        ProgramError: the text does not follow the syntax.

    >>> found = parse_templates(
    ...     "program Add(c) u(x[c].n, .n + 1)  program Both(c, d) where c != d r(x[c]) r(x[d])"
    ... )
    >>> [(one.name, one.parameters, one.different) for one in found]
    [('Add', ('c',), ()), ('Both', ('c', 'd'), (('c', 'd'),))]
    """
    return _ProgramParser(text, file, templates=True).templates()


class _TokenReader:
    """Splits a text into tokens, and consumes them one by one."""

    def __init__(self, text: str, file: str) -> None:
        self._text, self._file = text, file
        self._tokens: list[_Token] = []
        self._at = 0
        at = 0
        while at < len(text):
            found = _TOKENS.match(text, at)
            if found is None:
                raise self._error(at, f"unexpected character {text[at]!r}")
            if found.lastgroup != "skip":
                kind = found.lastgroup or ""
                self._tokens.append(_Token(kind, found[0], at, found.end()))
            at = found.end()
        self._tokens.append(_Token("end", "", len(text), len(text)))

    def _error(self, at: int, what: str, hint: str = "") -> ProgramError:
        line = self._text.count("\n", 0, at) + 1
        column = at - (self._text.rfind("\n", 0, at) + 1) + 1
        more = f"; {hint}" if hint else ""
        return ProgramError(f"{self._file}:{line}:{column}: {what}{more}")

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _take(self) -> _Token:
        token = self._next
        self._at += 1
        return token

    def _accept(self, text: str) -> bool:
        if self._next.kind not in ("string", "end") and self._next.text == text:
            self._at += 1
            return True
        return False

    def _expected(self, what: str, hint: str = "") -> ProgramError:
        got = self._next.text or "the end of the text"
        return self._error(self._next.start, f"unexpected (got `{got}`, expected {what})", hint)

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            raise self._expected(f"`{text}`")

    def _name(self, what: str) -> str:
        if self._next.kind != "name" or self._next.text in RESERVED:
            raise self._expected(what)
        return self._take().text

    def _string(self) -> str:
        return self._take().text[1:-1] if self._next.kind == "string" else ""

    def _integer(self) -> int:
        sign = -1 if self._accept("-") else 1
        if self._next.kind != "number":
            raise self._expected("an integer")
        token = self._take()
        if len(token.text) > 16 or int(token.text) > _LARGEST:
            raise self._error(token.start, f"too large (got {token.text[:30]}, expected 2^53)")
        return sign * int(token.text)


class _ExpressionParser(_TokenReader):
    """Parses values and conditions."""

    def _value(self, known: frozenset[str], depth: int, row: RowKey | None = None) -> Value:
        """Parse a value; unless ``row`` is ``None``, the value may contain the row's columns."""
        left = self._product(known, depth, row)
        while self._next.text in ("+", "-"):
            op: Operator = "+" if self._take().text == "+" else "-"
            left = Computed(op, left, self._product(known, depth, row))
        return left

    def _product(self, known: frozenset[str], depth: int, row: RowKey | None) -> Value:
        left = self._factor(known, depth, row)
        while self._accept("*"):
            left = Computed("*", left, self._factor(known, depth, row))
        return left

    def _factor(self, known: frozenset[str], depth: int, row: RowKey | None) -> Value:
        if depth > DEEPEST:
            raise self._error(
                self._next.start, f"parentheses are nested too deeply (expected at most {DEEPEST})"
            )
        if self._accept("("):
            found = self._value(known, depth + 1, row)
            self._expect(")")
            return found
        if row is not None and self._accept("."):
            return Column(self._name("a column"))
        if self._next.kind == "name":
            token = self._next
            name = self._name("a value")
            if name not in known:
                hint = (
                    "a name needs a value from a read, `name = r(key)`, on every path to this place"
                )
                if row is not None:
                    hint = f"a column of the row is `.{name}`; parameters are in the header"
                raise self._error(token.start, f"`{name}` has no value here", hint)
            return Variable(name)
        return Number(self._integer())

    def _condition(self, known: frozenset[str], depth: int) -> Condition:
        parts = [self._conjunction(known, depth)]
        while self._accept("or"):
            parts.append(self._conjunction(known, depth))
        return parts[0] if len(parts) == 1 else Combined("or", tuple(parts))

    def _conjunction(self, known: frozenset[str], depth: int) -> Condition:
        parts = [self._comparison(known, depth)]
        while self._accept("and"):
            parts.append(self._comparison(known, depth))
        return parts[0] if len(parts) == 1 else Combined("and", tuple(parts))

    def _comparison(self, known: frozenset[str], depth: int) -> Condition:
        if depth > DEEPEST:
            raise self._error(
                self._next.start, f"conditions are nested too deeply (expected at most {DEEPEST})"
            )
        if self._accept("not"):
            return Combined("not", (self._comparison(known, depth + 1),))
        if self._next.text == "(" and (found := self._in_parentheses(known, depth)) is not None:
            return found
        left = self._value(known, depth)
        if self._next.text not in get_args(Comparison):
            raise self._expected("a comparison")
        op: Comparison = self._take().text  # type: ignore[assignment]
        return Compared(op, left, self._value(known, depth))

    def _in_parentheses(self, known: frozenset[str], depth: int) -> Condition | None:
        """Parse ``(condition)``; if a value follows instead, return ``None`` and parse nothing."""
        level = 0
        for at in range(self._at, len(self._tokens)):
            level += {"(": 1, ")": -1}.get(self._tokens[at].text, 0)
            if level == 0:
                break
        inside = {token.text for token in self._tokens[self._at : at]}
        if inside.isdisjoint((*get_args(Comparison), "not")):
            return None
        self._expect("(")
        found = self._condition(known, depth + 1)
        self._expect(")")
        return found


class _ProgramParser(_ExpressionParser):
    """Parses programs and templates."""

    def __init__(self, text: str, file: str, *, templates: bool = False) -> None:
        super().__init__(text, file)
        self._templates = templates
        self._parameters: tuple[str, ...] = ()
        self._steps = 0
        self._names: set[str] = set()

    def only_program(self) -> Program:
        found = self._program()
        if self._next.kind != "end":
            raise self._expected("a step, `->`, `||` or `exists`")
        return found

    def templates(self) -> tuple[Program, ...]:
        found = [self._program()]
        starts = {found[0].name}
        while self._next.text == "program":
            start = self._next.start
            one = self._program()
            if one.name in starts:
                raise self._error(start, f"another program already has the name `{one.name}`")
            starts.add(one.name)
            found.append(one)
        if self._next.kind != "end":
            raise self._expected("a step or `program`")
        return tuple(found)

    def _require_template(self, at: int, what: str) -> None:
        if not self._templates:
            hint = "`isocheck robust FILE` takes templates"
            raise self._error(
                at, f"{what} is allowed only in templates, which have no outcomes", hint
            )

    def _header(self) -> tuple[str, str, tuple[tuple[str, str], ...]]:
        """Parse the header: set the parameters, and return the name, title and different pairs."""
        name, different = self._name("the program's name"), []
        if self._next.text == "(":
            self._require_template(self._next.start, "a parameter")
            self._expect("(")
            names: list[str] = []
            while not self._accept(")"):
                if names:
                    self._expect(",")
                at = self._next.start
                names.append(self._name("a parameter"))
                if names[-1] in names[:-1]:
                    raise self._error(at, f"another parameter already has the name `{names[-1]}`")
            self._parameters = tuple(names)
            self._names.update(names)
            if self._next.text == "where":
                self._take()
                different.append(self._different())
                while self._accept("and"):
                    different.append(self._different())
        return name, self._string(), tuple(different)

    def _different(self) -> tuple[str, str]:
        left = self._parameter()
        self._expect("!=")
        at = self._next.start
        right = self._parameter()
        if left == right:
            raise self._error(at, f"`{left}` is never different from itself")
        return left, right

    def _parameter(self) -> str:
        if self._next.text not in self._parameters:
            raise self._expected("a parameter")
        return self._take().text

    def _program(self) -> Program:
        name, title = Path(self._file).stem, ""
        different: tuple[tuple[str, str], ...] = ()
        self._names, self._steps, self._parameters = set(), 0, ()
        if self._accept("program"):
            name, title, different = self._header()
        initial: dict[str, int] = {}
        while self._accept("init"):
            while self._next.kind == "name" and self._tokens[self._at + 1].text == "=":
                if self._tokens[self._at + 2].text == "r":
                    break  # the first step of a transaction: a = r(x)
                key = self._name("a key")
                self._expect("=")
                initial[key] = self._integer()
                self._accept(",")
        sessions = [self._session()]
        while self._accept("||"):
            sessions.append(self._session())
        if sum(map(len, sessions)) > MOST_TRANSACTIONS:
            got = sum(map(len, sessions))
            what = f"too many transactions (got {got}, expected at most {MOST_TRANSACTIONS})"
            raise self._error(0, what)
        targets = []
        while self._accept("exists"):
            targets.append(self._exists_condition())
        return Program(
            name=name,
            title=title,
            initial=initial,
            sessions=tuple(tuple(steps for steps, _ in own) for own in sessions),
            texts=tuple(tuple(text for _, text in own) for own in sessions),
            targets=tuple(targets),
            parameters=self._parameters,
            different=different,
        )

    def _exists_condition(self) -> ExistsCondition:
        start = self._next.start
        condition = self._condition(frozenset(self._names), 0)
        text = " ".join(self._text[start : self._tokens[self._at - 1].end].split())
        return ExistsCondition(condition=condition, text=text, title=self._string())

    def _session(self) -> list[tuple[tuple[Step, ...], str]]:
        found = [self._transaction()]
        while self._accept("->"):
            found.append(self._transaction())
        return found

    def _transaction(self) -> tuple[tuple[Step, ...], str]:
        start = self._next.start
        steps = self._sequence(set(self._parameters), 0)
        if not steps:
            raise self._expected(
                "a step: `r(key)`, `name = r(key)`, `w(key, value)`, `if`, `abort`"
            )
        text = re.sub(r"//[^\n]*", "", self._text[start : self._tokens[self._at - 1].end])
        return steps, " ".join(text.split())

    def _sequence(self, known: set[str], depth: int) -> tuple[Step, ...]:
        """Parse as many steps as follow; ``known`` contains the variables that have a value."""
        if depth > DEEPEST:
            raise self._error(
                self._next.start, f"conditions are nested too deeply (expected at most {DEEPEST})"
            )
        steps: list[Step] = []
        while (step := self._step(known, depth)) is not None:
            self._steps += 1
            if self._steps > MOST_STEPS:
                what = f"too many steps (expected at most {MOST_STEPS})"
                raise self._error(self._next.start, what)
            steps.append(step)
        return tuple(steps)

    def _step(self, known: set[str], depth: int) -> Step | None:
        if self._accept("abort"):
            return AbortStep()
        if self._accept("if"):
            start = self._next.start
            condition = self._condition(frozenset(known), 0)
            text = " ".join(self._text[start : self._tokens[self._at - 1].end].split())
            then, otherwise = set(known), set(known)
            first = self._block(then, depth)
            second = self._block(otherwise, depth) if self._accept("else") else ()
            known |= then & otherwise
            return If(condition, first, second, text)
        if self._accept("w"):
            self._expect("(")
            key, row = self._key(known)
            self._expect(",")
            value = self._value(frozenset(known), 0)
            while row is not None and row.columns and self._accept(","):
                self._value(frozenset(known), 0)  # there is a value for each column
            self._expect(")")
            return WriteStep(key, value, row)
        if self._accept("r"):
            return self._read("", known)
        if self._next.text in ("u", "insert", "delete") and self._tokens[self._at + 1].text == "(":
            return self._changing_step(known)
        if self._next.kind == "name" and self._next.text not in RESERVED:
            token = self._take()
            self._expect("=")
            if not self._accept("r"):
                raise self._expected(
                    "expected `r(key)`, because a name stands for the value of a read"
                )
            if token.text in self._names:
                what = f"another read already has the name `{token.text}`"
                raise self._error(token.start, what, "give each read a name of its own")
            self._names.add(token.text)
            step = self._read(token.text, known)
            known.add(token.text)
            return step
        return None

    def _changing_step(self, known: set[str]) -> Step:
        """Parse a statement that changes a row: an update, an insert or a delete."""
        token = self._take()
        self._require_template(token.start, f"`{token.text}(…)`")
        self._expect("(")
        key, row = self._key(known)
        assert row is not None  # the parser accepts templates here
        if token.text == "u":
            self._expect(",")
            values = [self._value(frozenset(known), 0, row)]
            while self._accept(","):
                values.append(self._value(frozenset(known), 0, row))
            self._expect(")")
            return UpdateStep(key, tuple(values), row)
        if row.columns:
            what = f"only whole rows can be inserted or deleted (got `{key}`)"
            raise self._error(token.start, what, f"write `{key.partition('.')[0]}`")
        self._expect(")")
        return (InsertStep if token.text == "insert" else DeleteStep)(key, row)

    def _key(self, known: set[str]) -> tuple[str, RowKey | None]:
        """Parse a key: a name or, in a template, ``relation[arguments].(columns)``."""
        start = self._next.start
        relation = self._name("a key")
        arguments: list[Argument] = []
        columns: list[str] = []
        if self._next.text in ("[", "."):
            self._require_template(start, f"`{relation}{self._next.text}…`")
        if self._accept("["):
            while not self._accept("]"):
                if arguments:
                    self._expect(",")
                arguments.append(self._argument(known))
        if self._accept("."):
            if self._accept("("):
                while not self._accept(")"):
                    if columns:
                        self._expect(",")
                    columns.append(self._name("a column"))
            else:
                columns.append(self._name("a column"))
        text = "".join(self._text[start : self._tokens[self._at - 1].end].split())
        if not self._templates:
            return relation, None
        return text, RowKey(relation, tuple(arguments), tuple(columns))

    def _argument(self, known: set[str]) -> Argument:
        if self._accept("*"):
            return AnyRow()
        if self._next.kind == "name":
            token = self._next
            name = self._name("an argument")
            if name not in known:
                hint = "a key may use parameters, and values that were read before"
                raise self._error(token.start, f"`{name}` has no value here", hint)
            return Variable(name)
        return Number(self._integer())

    def _block(self, known: set[str], depth: int) -> tuple[Step, ...]:
        self._expect("{")
        steps = self._sequence(known, depth + 1)
        self._expect("}")
        return steps

    def _read(self, name: str, known: set[str]) -> ReadStep:
        self._expect("(")
        key, row = self._key(known)
        expected: int | Literal["nil"] | None = None
        if self._accept(","):
            expected = "nil" if self._accept("nil") else self._integer()
        self._expect(")")
        return ReadStep(key, name, expected, row)

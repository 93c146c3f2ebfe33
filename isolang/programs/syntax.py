"""The syntax of programs: the parts of a program, and the parser.

A program is a few sessions, separated by ``||``; a session is a few transactions, separated by
``->``; a transaction is a sequence of steps::

    program lost-update "Berenson et al. 1995, P4"
    init x = 100
    a = r(x) w(x, a + 20) || b = r(x) w(x, b + 30)
    exists a = 100 and b = 100 "lost update"

Without loops, a program has finitely many outcomes.
"""

from __future__ import annotations

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
    """The error for a program that cannot be read, or that has too many outcomes to list."""


class Number(Struct, frozen=True):
    """A constant."""

    value: int


class Variable(Struct, frozen=True):
    """The value of a read, by the name that the program gives it."""

    name: str


class Computed(Struct, frozen=True):
    """A value that is computed from two others."""

    op: Operator
    left: Value
    right: Value


Value: TypeAlias = Number | Variable | Computed


class Compared(Struct, frozen=True):
    """A comparison of two values."""

    op: Comparison
    left: Value
    right: Value


class Combined(Struct, frozen=True):
    """A combined condition: all hold (``and``), any holds (``or``), or one fails (``not``)."""

    op: Literal["and", "or", "not"]
    parts: tuple[Condition, ...]


Condition: TypeAlias = Compared | Combined


class ReadStep(Struct, frozen=True):
    """``name = r(key)``, or ``r(key, expected)``, which restricts outcomes to that value.

    Attributes:
        key: the key.
        name: the name of the variable, or empty if there is none.
        expected: the value that the read must return: ``"nil"`` for the initial value, or ``None``
            for any value.
    """

    key: str
    name: str = ""
    expected: int | Literal["nil"] | None = None


class WriteStep(Struct, frozen=True):
    """``w(key, value)``."""

    key: str
    value: Value


class If(Struct, frozen=True):
    """``if condition { … } else { … }``."""

    condition: Condition
    then: tuple[Step, ...]
    otherwise: tuple[Step, ...] = ()


class AbortStep(Struct, frozen=True):
    """``abort``: the transaction ends, and none of its writes take effect."""


Step: TypeAlias = ReadStep | WriteStep | If | AbortStep


class ExistsCondition(Struct, frozen=True, kw_only=True):
    """``exists condition "title"``: the question whether some outcome satisfies the condition."""

    condition: Condition
    text: str
    title: str = ""


class Program(Struct, frozen=True, kw_only=True):
    """A program.

    Attributes:
        name: the name in its header, or else the name of its file.
        title: the title in its header, or empty.
        initial: the initial values that are not 0, by key.
        sessions: the transactions of each session, and the steps of each transaction.
        texts: the transactions of each session, as texts.
        targets: the questions about its outcomes.
    """

    name: str
    title: str
    initial: dict[str, int]
    sessions: tuple[tuple[tuple[Step, ...], ...], ...]
    texts: tuple[tuple[str, ...], ...]
    targets: tuple[ExistsCondition, ...] = ()

    def transactions(self) -> Iterator[tuple[int, tuple[Step, ...]]]:
        """Yield the transactions in order, each with the number of its session."""
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
      | (?P<sign>\|\||->|!=|<=|>=|[-+*=<>(){},])""",
    re.VERBOSE,
)
_KEYWORDS: Final = frozenset(
    ("program", "init", "exists", "if", "else", "and", "or", "not", "abort", "r", "w", "nil")
)
_LARGEST: Final = 1 << 53


def load_program(path: str | Path) -> Program:
    """Read a program from a file.

    Raises:
        ProgramError: if the file cannot be read or parsed. The message has the line and the column.
    """
    path = Path(path)
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise ProgramError(f"{path}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise ProgramError(f"{path}: not a text in UTF-8 (at byte {error.start})") from None
    return parse_program(text, str(path))


def parse_program(text: str, file: str = "<text>") -> Program:
    """Parse a program.

    Args:
        text: the program.
        file: the name of the program in messages.

    Raises:
        ProgramError: if the text does not follow the syntax.

    >>> found = parse_program("a = r(x) w(y, a + 1) || r(y) -> w(x, 2)")
    >>> [len(own) for own in found.sessions], found.texts[0]
    ([1, 2], ('a = r(x) w(y, a + 1)',))
    """
    return _Parser(text, file).program()


class _Parser:
    def __init__(self, text: str, file: str) -> None:
        self._text, self._file = text, file
        self._tokens: list[_Token] = []
        self._at = 0
        self._steps = 0
        self._names: set[str] = set()
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

    # --- tokens ---

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

    def _need(self, text: str) -> None:
        if not self._accept(text):
            raise self._expected(f"`{text}`")

    def _name(self, what: str) -> str:
        if self._next.kind != "name" or self._next.text in _KEYWORDS:
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

    # --- the program ---

    def program(self) -> Program:
        name, title = Path(self._file).stem, ""
        if self._accept("program"):
            name, title = self._name("the program's name"), self._string()
        initial: dict[str, int] = {}
        while self._accept("init"):
            while self._next.kind == "name" and self._tokens[self._at + 1].text == "=":
                if self._tokens[self._at + 2].text == "r":
                    break  # the first step of a transaction: a = r(x)
                key = self._name("a key")
                self._need("=")
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
            targets.append(self._target())
        if self._next.kind != "end":
            raise self._expected("a step, `->`, `||` or `exists`")
        return Program(
            name=name,
            title=title,
            initial=initial,
            sessions=tuple(tuple(steps for steps, _ in own) for own in sessions),
            texts=tuple(tuple(text for _, text in own) for own in sessions),
            targets=tuple(targets),
        )

    def _target(self) -> ExistsCondition:
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
        steps = self._sequence(set(), 0)
        if not steps:
            raise self._expected(
                "a step: `r(key)`, `name = r(key)`, `w(key, value)`, `if`, `abort`"
            )
        text = re.sub(r"//[^\n]*", "", self._text[start : self._tokens[self._at - 1].end])
        return steps, " ".join(text.split())

    def _sequence(self, known: set[str], depth: int) -> tuple[Step, ...]:
        """Return the steps before any other token; ``known`` are the variables with a value."""
        if depth > DEEPEST:
            raise self._error(self._next.start, f"more than {DEEPEST} conditions in one another")
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
            condition = self._condition(frozenset(known), 0)
            then, otherwise = set(known), set(known)
            first = self._block(then, depth)
            second = self._block(otherwise, depth) if self._accept("else") else ()
            known |= then & otherwise
            return If(condition, first, second)
        if self._accept("w"):
            self._need("(")
            key = self._name("a key")
            self._need(",")
            value = self._value(frozenset(known), 0)
            self._need(")")
            return WriteStep(key, value)
        if self._accept("r"):
            return self._read("")
        if self._next.kind == "name" and self._next.text not in _KEYWORDS:
            token = self._take()
            self._need("=")
            if not self._accept("r"):
                raise self._expected("`r(key)`: a name is the value of a read")
            if token.text in self._names:
                what = f"`{token.text}` is the name of another read"
                raise self._error(token.start, what, "each read has a name of its own")
            self._names.add(token.text)
            known.add(token.text)
            return self._read(token.text)
        return None

    def _block(self, known: set[str], depth: int) -> tuple[Step, ...]:
        self._need("{")
        steps = self._sequence(known, depth + 1)
        self._need("}")
        return steps

    def _read(self, name: str) -> ReadStep:
        self._need("(")
        key = self._name("a key")
        expected: int | Literal["nil"] | None = None
        if self._accept(","):
            expected = "nil" if self._accept("nil") else self._integer()
        self._need(")")
        return ReadStep(key, name, expected)

    # --- values and conditions ---

    def _value(self, known: frozenset[str], depth: int) -> Value:
        left = self._product(known, depth)
        while self._next.text in ("+", "-"):
            op: Operator = "+" if self._take().text == "+" else "-"
            left = Computed(op, left, self._product(known, depth))
        return left

    def _product(self, known: frozenset[str], depth: int) -> Value:
        left = self._factor(known, depth)
        while self._accept("*"):
            left = Computed("*", left, self._factor(known, depth))
        return left

    def _factor(self, known: frozenset[str], depth: int) -> Value:
        if depth > DEEPEST:
            raise self._error(self._next.start, f"more than {DEEPEST} parentheses in one another")
        if self._accept("("):
            found = self._value(known, depth + 1)
            self._need(")")
            return found
        if self._next.kind == "name":
            token = self._next
            name = self._name("a value")
            if name not in known:
                hint = "a read gives a name its value: `name = r(key)`, on every way to here"
                raise self._error(token.start, f"`{name}` has no value here", hint)
            return Variable(name)
        return Number(self._integer())

    def _condition(self, known: frozenset[str], depth: int) -> Condition:
        parts = [self._all(known, depth)]
        while self._accept("or"):
            parts.append(self._all(known, depth))
        return parts[0] if len(parts) == 1 else Combined("or", tuple(parts))

    def _all(self, known: frozenset[str], depth: int) -> Condition:
        parts = [self._one(known, depth)]
        while self._accept("and"):
            parts.append(self._one(known, depth))
        return parts[0] if len(parts) == 1 else Combined("and", tuple(parts))

    def _one(self, known: frozenset[str], depth: int) -> Condition:
        if depth > DEEPEST:
            raise self._error(self._next.start, f"more than {DEEPEST} conditions in one another")
        if self._accept("not"):
            return Combined("not", (self._one(known, depth + 1),))
        if self._next.text == "(" and (found := self._in_parentheses(known, depth)) is not None:
            return found
        left = self._value(known, depth)
        if self._next.text not in get_args(Comparison):
            raise self._expected("a comparison")
        op: Comparison = self._take().text  # type: ignore[assignment]
        return Compared(op, left, self._value(known, depth))

    def _in_parentheses(self, known: frozenset[str], depth: int) -> Condition | None:
        """Parse ``(condition)``, or return ``None`` and read nothing if it is a value."""
        level = 0
        for at in range(self._at, len(self._tokens)):
            level += {"(": 1, ")": -1}.get(self._tokens[at].text, 0)
            if level == 0:
                break
        inside = {token.text for token in self._tokens[self._at : at]}
        if inside.isdisjoint((*get_args(Comparison), "not")):
            return None
        self._need("(")
        found = self._condition(known, depth + 1)
        self._need(")")
        return found

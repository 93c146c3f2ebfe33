"""The core expressions: what a specification means once definitions and parameters are expanded.

Names that the library defines over every history (``wr``, ``rw``) stay as names: each consumer
knows their meaning from the language reference, and no file can give them another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field

from isolang.language.syntax.ast import KeyClass
from isolang.language.syntax.source import Position


class Term(Struct, frozen=True, eq=False):
    """What all expressions share: they are equal if they say the same, wherever they stand."""

    def __eq__(self, other: object) -> bool:
        """Compare all fields but the position."""
        return type(self) is type(other) and self._said() == other._said()

    def __ne__(self, other: object) -> bool:
        """Compare likewise: ``Struct`` has a comparison of its own, which knows no ``__eq__``."""
        return not self == other

    def __hash__(self) -> int:
        """Hash all fields but the position."""
        return hash((type(self), self._said()))

    def __repr__(self) -> str:
        """Show all fields but the position."""
        said = zip(self.__struct_fields__, self._said(), strict=False)
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in said)})"

    def _said(self) -> tuple[object, ...]:
        """Return the fields but the last, which is the position."""
        return tuple(getattr(self, name) for name in self.__struct_fields__[:-1])


class Rel(Term, frozen=True):
    """A named relation or set: a word of the vocabulary, or what ``exists`` names.

    ``key`` is the key variable of a keyed use (``ww[x]``), or ``None`` for the union over keys.
    """

    name: str
    key: str | None = None
    pos: Position | None = None


class Named(Term, frozen=True):
    """The set of transactions that a name selects: ``label "audit"``; ``*`` is any text."""

    word: str
    name: str
    pos: Position | None = None


class Union(Term, frozen=True):
    """``a | b | …``."""

    parts: tuple[Core, ...]
    pos: Position | None = None


class Seq(Term, frozen=True):
    """``a ; b ; …``."""

    parts: tuple[Core, ...]
    pos: Position | None = None


class Inter(Term, frozen=True):
    r"""``a & b & …``."""

    parts: tuple[Core, ...]
    pos: Position | None = None


class Diff(Term, frozen=True):
    r"""``a \ b``."""

    left: Core
    right: Core
    pos: Position | None = None


class Product(Term, frozen=True):
    """``A * B``, of two sets."""

    left: Core
    right: Core
    pos: Position | None = None


class Inverse(Term, frozen=True):
    """``a^-1``."""

    arg: Core
    pos: Position | None = None


class Plus(Term, frozen=True):
    """``a^+``."""

    arg: Core
    pos: Position | None = None


class Star(Term, frozen=True):
    """``a^*``: with the identity."""

    arg: Core
    pos: Position | None = None


class Opt(Term, frozen=True):
    """``a?``: with the identity."""

    arg: Core
    pos: Position | None = None


class Lift(Term, frozen=True):
    """``[S]``: the identity on a set."""

    arg: Core
    pos: Position | None = None


class Domain(Term, frozen=True):
    """``domain(a)``."""

    arg: Core
    pos: Position | None = None


class Range(Term, frozen=True):
    """``range(a)``."""

    arg: Core
    pos: Position | None = None


class ForKey(Term, frozen=True):
    """``for x: body``: the union over keys, or over those of a class."""

    key: str
    body: Core
    within: KeyClass | None = None
    pos: Position | None = None

    def of(self, body: Core) -> ForKey:
        """The same of another body."""
        return ForKey(self.key, body, self.within, self.pos)


Core = (
    Rel
    | Named
    | Union
    | Seq
    | Inter
    | Diff
    | Product
    | Inverse
    | Plus
    | Star
    | Opt
    | Lift
    | Domain
    | Range
    | ForKey
)


class Check(Struct, frozen=True, kw_only=True):
    """One axiom.

    ``kind`` is ``acyclic``, ``irreflexive``, ``empty`` (of ``expr``) or ``require`` (``expr`` in
    ``bound``).
    """

    name: str
    kind: Literal["acyclic", "irreflexive", "empty", "require"]
    expr: Core
    bound: Core | None = None
    flag: bool = False
    negated: bool = False
    title: str = ""
    file: str = ""
    line: int = 0
    column: int = 0

    @property
    def pos(self) -> Position:
        """Where the check begins."""
        return Position(self.file, self.line, self.column)


class Exists(Struct, frozen=True, kw_only=True):
    """A relation to be chosen: ``exists name[key] : kind over containing … within …``."""

    name: str
    key: str | None
    kind: Literal["order", "choice", "relation"]
    over: Core
    containing: Core | None = None
    within: Core | None = None


class Example(Struct, frozen=True):
    """A small history that a specification is to allow, or to forbid.

    Attributes:
        pos: where it stands.
        allows: which of both.
        history: in the notation of :mod:`isolang.history.notation`.
    """

    pos: Position
    allows: bool
    history: str


class Spec(Struct, frozen=True, kw_only=True):
    """A lowered specification: everything a history must be checked against, and nothing about how.

    Attributes:
        name: of the header of the main file, else the file's stem.
        title: of the header, or empty.
        source: where the main text came from: a path, ``library:NAME`` or ``<text>``.
        checks: in the order in which the texts have them, includes expanded in place.
        exists: the relations to be chosen, ``rf`` and ``ww`` among them.
        shows: expressions to evaluate on the witness or the violation, with their names.
        definitions: the ``let`` definitions without parameters; the keyed ones over the key ``x``.
        sha256: over all texts that were read, in the order of reading.
        notes: how the input was understood (a file from the library, a local file that hides one).
        warnings: what is legal but probably not meant.
        texts: file name to text, in the order of reading: for messages and certificates.
        examples: those of the main text, which ``spec lint`` looks at.
    """

    name: str
    title: str
    source: str
    checks: tuple[Check, ...]
    exists: tuple[Exists, ...] = ()
    shows: tuple[tuple[str, Core], ...] = ()
    definitions: Mapping[str, Core] = field(default_factory=dict)
    sha256: str = ""
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict)
    examples: tuple[Example, ...] = ()

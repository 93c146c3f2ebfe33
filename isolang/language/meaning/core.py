"""The core expressions: a specification after all definitions and parameters are expanded.

Names that the library defines over every history (``wr``, ``rw``) are not expanded. Each consumer
implements their meaning from the language reference, and no file can give them another meaning.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field

from isolang.language.syntax.ast import KeyClass
from isolang.language.syntax.source import Position


class Term(Struct, frozen=True, eq=False):
    """The base class of all expressions, which are compared without their positions."""

    def __eq__(self, other: object) -> bool:
        """Return whether all fields except the position are equal."""
        return type(self) is type(other) and self._content() == other._content()

    def __ne__(self, other: object) -> bool:
        """Return the opposite of ``__eq__``, which the comparison of ``Struct`` would ignore."""
        return not self == other

    def __hash__(self) -> int:
        """Return the hash of all fields except the position."""
        return hash((type(self), self._content()))

    def __repr__(self) -> str:
        """Return all fields except the position as text."""
        shown = zip(self.__struct_fields__, self._content(), strict=False)
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in shown)})"

    def _content(self) -> tuple[object, ...]:
        """Return all fields except the last one, which is the position."""
        return tuple(getattr(self, name) for name in self.__struct_fields__[:-1])


class Rel(Term, frozen=True):
    """A named relation or set: a word of the vocabulary, or a relation that ``exists`` declares.

    ``key`` is the key variable of a keyed use (``ww[x]``), or ``None`` for the union over keys.
    """

    name: str
    key: str | None = None
    pos: Position | None = None


class Named(Term, frozen=True):
    """The set of transactions that a name selects, as ``label "audit"`` does; ``*`` is any text."""

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
    """The product ``A * B`` of two sets."""

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
    """The closure ``a^*``, which includes the identity."""

    arg: Core
    pos: Position | None = None


class Opt(Term, frozen=True):
    """The relation ``a?``, which includes the identity."""

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
    """``for x: body``: the union over all keys, or over the keys of a class."""

    key: str
    body: Core
    within: KeyClass | None = None
    pos: Position | None = None

    def of(self, body: Core) -> ForKey:
        """Return the union of another body over the keys of this union."""
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
        """The place where the check begins."""
        return Position(self.file, self.line, self.column)


class Exists(Struct, frozen=True, kw_only=True):
    """A relation that a witness chooses: ``exists name[key] : kind over containing … within …``."""

    name: str
    key: str | None
    kind: Literal["order", "choice", "relation"]
    over: Core
    containing: Core | None = None
    within: Core | None = None


class Example(Struct, frozen=True):
    """A small history that a specification should allow, or forbid.

    Attributes:
        pos: the place of the example.
        allows: whether the specification should allow the history; otherwise it should forbid it.
        history: the history, in the notation of :mod:`isolang.history.notation`.
    """

    pos: Position
    allows: bool
    history: str


class Spec(Struct, frozen=True, kw_only=True):
    """A lowered specification: the conditions on a history, whatever the route that decides them.

    Attributes:
        name: the name in the header of the main file, or else the stem of that file.
        title: the title in the header, or empty.
        source: the origin of the main text: a path, ``library:NAME`` or ``<text>``.
        checks: the checks in the order of the texts, with includes expanded in place.
        exists: the relations that a witness chooses, including ``rf`` and ``ww``.
        shows: expressions to evaluate on the witness or the violation, with their names.
        definitions: the ``let`` definitions without parameters; the keyed ones over the key ``x``.
        sha256: the digest of all texts, in the order of reading.
        notes: how the input was understood (a file from the library, a local file that hides one).
        warnings: parts that are legal but probably mistakes.
        texts: file name to text, in the order of reading, for messages and certificates.
        examples: the examples of the main text, which ``spec lint`` checks.
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

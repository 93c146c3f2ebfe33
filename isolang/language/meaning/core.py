"""The core expressions: what remains once all definitions and parameters have been expanded.

Names defined by the library for every history (``wr``, ``rw``) are not expanded. Each package that
uses core expressions implements the meaning of these names from the language reference, and no file
can redefine them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field

from isolang.language.syntax.ast import KeyClass
from isolang.language.syntax.source import Position


class Term(Struct, frozen=True, eq=False):
    """The base class of all expressions. Their equality ignores positions."""

    def __eq__(self, other: object) -> bool:
        """Return whether all fields except the position are equal."""
        return type(self) is type(other) and self._content() == other._content()

    def __ne__(self, other: object) -> bool:
        """Return the negation of ``__eq__``, because ``Struct`` would compare all fields."""
        return not self == other

    def __hash__(self) -> int:
        """Return the hash of all fields except the position."""
        return hash((type(self), self._content()))

    def __repr__(self) -> str:
        """Return a representation of all fields except the position."""
        shown = zip(self.__struct_fields__, self._content(), strict=False)
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in shown)})"

    def _content(self) -> tuple[object, ...]:
        """Return all fields except the position, which is the last one."""
        return tuple(getattr(self, name) for name in self.__struct_fields__[:-1])


class Rel(Term, frozen=True):
    """A named relation or set: a word of the vocabulary, or a name declared by ``exists``.

    ``key`` is the key variable in ``ww[x]``. It is ``None`` if the name is used without a key,
    which means the union over all keys.
    """

    name: str
    key: str | None = None
    pos: Position | None = None


class Named(Term, frozen=True):
    """The set of transactions selected by a quoted name, as in ``label "audit"``.

    In the name, ``*`` matches any text.
    """

    word: str
    name: str
    pos: Position | None = None


class Union(Term, frozen=True):
    """The union ``a | b | …``."""

    parts: tuple[Core, ...]
    pos: Position | None = None


class Seq(Term, frozen=True):
    """The composition ``a ; b ; …``."""

    parts: tuple[Core, ...]
    pos: Position | None = None


class Inter(Term, frozen=True):
    r"""The intersection ``a & b & …``."""

    parts: tuple[Core, ...]
    pos: Position | None = None


class Diff(Term, frozen=True):
    r"""The difference ``a \ b``."""

    left: Core
    right: Core
    pos: Position | None = None


class Product(Term, frozen=True):
    """The product ``A * B`` of two sets."""

    left: Core
    right: Core
    pos: Position | None = None


class Inverse(Term, frozen=True):
    """The inverse ``a^-1``."""

    arg: Core
    pos: Position | None = None


class Plus(Term, frozen=True):
    """The transitive closure ``a^+``."""

    arg: Core
    pos: Position | None = None


class Star(Term, frozen=True):
    """The reflexive and transitive closure ``a^*``."""

    arg: Core
    pos: Position | None = None


class Opt(Term, frozen=True):
    """The union ``a?`` of a relation and the identity."""

    arg: Core
    pos: Position | None = None


class Lift(Term, frozen=True):
    """The relation ``[S]``: the identity on a set."""

    arg: Core
    pos: Position | None = None


class Domain(Term, frozen=True):
    """The set ``domain(a)`` of all first elements of a relation's pairs."""

    arg: Core
    pos: Position | None = None


class Range(Term, frozen=True):
    """The set ``range(a)`` of all second elements of a relation's pairs."""

    arg: Core
    pos: Position | None = None


class ForKey(Term, frozen=True):
    """The expression ``for x: body``: the union over all keys, or over a class of keys."""

    key: str
    body: Core
    within: KeyClass | None = None
    pos: Position | None = None

    def of(self, body: Core) -> ForKey:
        """Return the union of another body over the same keys."""
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
    """An axiom of a specification.

    The check requires that ``expr`` be ``acyclic``, ``irreflexive`` or ``empty``. If its kind is
    ``require``, ``bound`` must contain ``expr``.
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
        """The place where the check begins in the text."""
        return Position(self.file, self.line, self.column)


class Exists(Struct, frozen=True, kw_only=True):
    """The declaration of a chosen relation: ``exists name[key] : kind over containing … within …``.

    An ``order`` is a strict total order on ``over``. A ``choice`` has exactly one pair of ``over``
    for each element of its range. A ``relation`` is any relation on ``over``. The chosen relation
    must contain ``containing``, and must be contained in ``within``.
    """

    name: str
    key: str | None
    kind: Literal["order", "choice", "relation"]
    over: Core
    containing: Core | None = None
    within: Core | None = None


class Example(Struct, frozen=True):
    """A small history that a specification should allow or forbid.

    Attributes:
        allows: true if the specification should allow the history, false if it should forbid it.
    """

    pos: Position
    allows: bool
    history: str


class Spec(Struct, frozen=True, kw_only=True):
    """A specification after lowering, which is the input to every route.

    Attributes:
        name: the name in the main text's header, or the file name if it has no header.
        title: the title in the header; empty if there is none.
        source: the origin of the main text: a path, ``library:NAME`` or ``<text>``.
        checks: the checks in text order, with includes replaced by their content.
        exists: the relations chosen by a witness, including ``rf`` and ``ww``.
        shows: names and expressions to be evaluated on the witness or the violation.
        definitions: the ``let`` definitions without parameters, by name. Keyed definitions use the
            key variable ``x``.
        sha256: the digest of all texts, in the order in which they were read.
        notes: notes for users about which text was loaded, where this is not obvious (for example,
            if a local file hides a library file).
        warnings: warnings for users about parts that are legal but probably mistakes.
        texts: the text of each file by file name, in the order in which they were read, for
            messages and certificates.
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

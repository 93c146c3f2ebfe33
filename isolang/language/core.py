"""The core expressions: what a specification means once definitions and parameters are expanded.

Names that the library defines over every history (``wr``, ``rw``) stay as names: each consumer
knows their meaning from the language reference, and no file can give them another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal, NamedTuple

from isolang.record import record


class Position(NamedTuple):
    """Where an expression or a check stands in the text, for messages; lines and columns from 1."""

    file: str
    line: int
    column: int
    end_column: int = 0
    """One past the last character on that line; 0 if unknown."""


@record
class Rel:
    """A named relation or set: ``so rt init wr ww rw rf cand vo co ar vis po tx id T W R``.

    ``key`` is the key variable of a keyed use (``ww[x]``), or ``None`` for the union over keys.
    """

    name: str
    key: str | None = None
    pos: Position | None = field(default=None, compare=False, repr=False)


@record
class Union:
    """``a | b | …``."""

    parts: tuple[Core, ...]
    pos: Position | None = field(default=None, compare=False, repr=False)


@record
class Seq:
    """``a ; b ; …``."""

    parts: tuple[Core, ...]
    pos: Position | None = field(default=None, compare=False, repr=False)


@record
class Inter:
    r"""``a & b & …``."""

    parts: tuple[Core, ...]
    pos: Position | None = field(default=None, compare=False, repr=False)


@record
class Diff:
    r"""``a \ b``."""

    left: Core
    right: Core
    pos: Position | None = field(default=None, compare=False, repr=False)


@record
class Product:
    """``A * B``, of two sets."""

    left: Core
    right: Core
    pos: Position | None = field(default=None, compare=False, repr=False)


@record
class Inverse:
    """``a^-1``."""

    arg: Core
    pos: Position | None = field(default=None, compare=False, repr=False)


@record
class Plus:
    """``a^+``."""

    arg: Core
    pos: Position | None = field(default=None, compare=False, repr=False)


@record
class Star:
    """``a^*``: with the identity."""

    arg: Core
    pos: Position | None = field(default=None, compare=False, repr=False)


@record
class Opt:
    """``a?``: with the identity."""

    arg: Core
    pos: Position | None = field(default=None, compare=False, repr=False)


@record
class Lift:
    """``[S]``: the identity on a set."""

    arg: Core
    pos: Position | None = field(default=None, compare=False, repr=False)


@record
class Domain:
    """``domain(a)``."""

    arg: Core
    pos: Position | None = field(default=None, compare=False, repr=False)


@record
class Range:
    """``range(a)``."""

    arg: Core
    pos: Position | None = field(default=None, compare=False, repr=False)


@record
class ForKey:
    """``for x: body``: the union over keys."""

    key: str
    body: Core
    pos: Position | None = field(default=None, compare=False, repr=False)


Core = (
    Rel
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


@record(kw_only=True)
class Check:
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


@record(kw_only=True)
class Exists:
    """A relation to be chosen: ``exists name[key] : kind over containing … within …``."""

    name: str
    key: str | None
    kind: Literal["order", "choice", "relation"]
    over: Core
    containing: Core | None = None
    within: Core | None = None


@record(kw_only=True)
class Spec:
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

"""A specification in the terms of dependencies: axioms over `so rt wr ww rw`, for all routes.

Two specifications can only be compared choice by choice if they leave the same things open. So what
is said of a total order, or of a visibility, is first said of version orders, by the theorems of
docs/routes.md, where one of them applies.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from isolang.errors import SpecError
from isolang.language.classify.event_graph import NotAnEventGraph
from isolang.language.classify.expression import NotRegularError, language_of, plain
from isolang.language.classify.observed import NotObservedError, rewrite
from isolang.language.classify.regular import Dfa, TooLargeError, included, plus
from isolang.language.classify.return_paths import classify_return_paths
from isolang.language.classify.theorems import event_graph_form
from isolang.language.meaning import mentions
from isolang.language.meaning.core import (
    Check,
    Core,
    Exists,
    Named,
    Plus,
    Rel,
    Seq,
    Spec,
    Union,
)
from isolang.language.meaning.lower import CANONICAL_EXISTS
from isolang.language.syntax.ast import KeyClass


class Axiom(Struct, frozen=True, kw_only=True):
    """A check, and what implies it.

    Attributes:
        check: as it is judged.
        implied_by: an expression such that ``irreflexive`` of it implies the check; ``None``: the
            check is itself about cycles.
        onwards: of ``implied_by``, that it leaves each transaction that it meets at a read by a
            later one.
    """

    check: Check
    implied_by: Core | None = None
    onwards: bool = False


class Normal(Struct, frozen=True, kw_only=True, dict=True):
    """A specification, written so that others can be compared with it.

    Attributes:
        spec: as it was written.
        axioms: its checks without flags, or those that say the same.
        exists: what is chosen.
        theorem: why they say the same; empty if they are the same.
    """

    spec: Spec
    axioms: tuple[Axiom, ...]
    exists: tuple[Exists, ...]
    theorem: str = ""

    @property
    def by_dependencies(self) -> bool:
        """Whether only sources and version orders are chosen."""
        return _by_dependencies(self.exists)

    @cached_property
    def ranked(self) -> frozenset[str]:
        """Relations, `ww` among them, that each model has within one order; empty if none.

        They are letters all of whose words spell cycles that one check forbids.
        """
        if not self.by_dependencies:
            return frozenset()
        for check in self.checks:
            if not check.negated and check.kind in ("acyclic", "irreflexive"):
                with suppress(NotRegularError, TooLargeError):
                    words = language_of(plain(check.expr))
                    cycles = plus(words) if check.kind == "acyclic" else words
                    found = letters_within(cycles, ("ww",))
                    if found:
                        return found
        return frozenset()

    @property
    def checks(self) -> tuple[Check, ...]:
        """The checks of the axioms."""
        return tuple(axiom.check for axiom in self.axioms)

    @property
    def uses_reads_from(self) -> bool:
        """Whether aborted, intermediate and thin-air reads violate it."""
        return mentions.uses_reads_from(self.spec)

    def mentioned(self) -> frozenset[str]:
        """The relations that a verdict depends on."""
        return mentions.mentioned(replace(self.spec, checks=self.checks, exists=self.exists))

    def names(self) -> tuple[frozenset[Named], frozenset[KeyClass]]:
        """The labels and levels, and the classes of keys, that a verdict depends on."""
        spec = replace(self.spec, checks=self.checks, exists=self.exists)
        return mentions.named_sets(spec), mentions.key_classes(spec)


def normal(spec: Spec) -> Normal:
    """Write a specification in the terms of dependencies, where a theorem allows it.

    Args:
        spec: of ``load_spec``.

    Raises:
        SpecError: there is nothing to check.
    """
    checks = tuple(check for check in spec.checks if not check.flag)
    if not checks:
        raise SpecError(f"{spec.source}: there is no check, so every history would pass")
    if _by_dependencies(spec.exists):
        axioms = tuple(Axiom(check=check) for check in checks)
        return Normal(spec=spec, axioms=axioms, exists=spec.exists)
    judged = replace(spec, checks=checks)
    if (theorem := event_graph_form(judged)) is not None:
        axioms = tuple(Axiom(check=check) for check in theorem.spec.checks)
        return Normal(
            spec=spec, axioms=axioms, exists=theorem.spec.exists, theorem=theorem.sentence
        )
    with suppress(NotAnEventGraph, NotObservedError):
        classify_return_paths(judged)  # it has the conditions of the theorem
        return _observed(spec, judged)
    axioms = tuple(Axiom(check=check) for check in checks)
    return Normal(spec=spec, axioms=axioms, exists=spec.exists)


def _observed(spec: Spec, judged: Spec) -> Normal:
    """The axioms on an order as conditions on version orders."""
    found = rewrite(judged)
    first = judged.checks[0]
    axioms = [
        Axiom(
            check=replace(first, name=found.order, kind="acyclic", expr=found.acyclic, bound=None)
        )
    ]
    for way in found.return_paths:
        check = next(c for c in judged.checks if c.name == way.check)
        if way.phi is None:
            # SOUND BECAUSE ww is total on the writers of a key: a pair that the order does not
            # contain is the other way round in ww, and closes `wr ; rw`.
            axioms.append(
                Axiom(
                    check=replace(check, bound=Rel("ww")),
                    implied_by=Seq((Rel("wr"), Rel("rw"))),
                    onwards=True,
                )
            )
        else:
            expr = Seq((way.phi, Rel("rw")))
            axioms.append(Axiom(check=replace(check, kind="irreflexive", expr=expr, bound=None)))
    return Normal(
        spec=spec,
        axioms=tuple(axioms),
        exists=(CANONICAL_EXISTS["rf"], CANONICAL_EXISTS["ww"]),
        theorem=f"an order `{found.order}` that meets these axioms exists iff version orders do "
        "that meet conditions on what was read and overwritten (proof in docs/routes.md)",
    )


def _by_dependencies(exists: Iterable[Exists]) -> bool:
    return all(e == CANONICAL_EXISTS.get(e.name) for e in exists)


def letters_within(words: Dfa, first: tuple[str, ...] = ()) -> frozenset[str]:
    """Letters of which all words are in a language; with the ``first`` ones, or none at all."""
    found: list[str] = []
    for name in (*first, *(r for r in ("so", "rt", "wr") if r not in first)):
        if included(language_of(Plus(Union(tuple(map(Rel, (*found, name)))))), words):
            found.append(name)
        elif name in first:
            break
    return frozenset(found)

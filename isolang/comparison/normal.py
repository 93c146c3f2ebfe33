"""Brings specifications into normal form, in which axioms are conditions on dependencies.

Two specifications can be compared choice by choice only if they leave the same choices open.
Therefore axioms on a total order or on a visibility relation are rewritten as axioms on version
orders if a theorem in docs/routes.md allows this.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from isolang.errors import SpecError
from isolang.language.classify.event_graph import NotAnEventGraph
from isolang.language.classify.expression import NotRegularError, language_of, simplify
from isolang.language.classify.observed import NotThisFormError, rewrite
from isolang.language.classify.regular import Dfa, TooLargeError, is_included, plus
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
    """A check in normal form, and a condition on cycles that implies it.

    Attributes:
        implied_by: an expression whose irreflexivity implies the check, or ``None`` if the check
            itself forbids cycles.
        onwards: whether a walk of ``implied_by`` that reaches a transaction at one of its reads
            must leave it from a later read.
    """

    check: Check
    implied_by: Core | None = None
    onwards: bool = False


class Normal(Struct, frozen=True, kw_only=True, dict=True):
    """A specification in normal form, for comparison with other specifications.

    Attributes:
        axioms: the unflagged checks of the specification, or equivalent checks.
        exists: the relations that a witness chooses for the axioms.
        theorem: a sentence about why the axioms are equivalent to the checks; empty if the axioms
            are the checks themselves.
    """

    spec: Spec
    axioms: tuple[Axiom, ...]
    exists: tuple[Exists, ...]
    theorem: str = ""

    @property
    def chooses_only_dependencies(self) -> bool:
        """Return whether a witness chooses only sources and version orders."""
        return _chooses_only_dependencies(self.exists)

    @cached_property
    def ranked(self) -> frozenset[str]:
        """The relations, including `ww`, whose union is acyclic in every model.

        A single check forbids every cycle of these relations. The set is empty if no such check is
        found.
        """
        if not self.chooses_only_dependencies:
            return frozenset()
        for check in self.checks:
            if not check.negated and check.kind in ("acyclic", "irreflexive"):
                with suppress(NotRegularError, TooLargeError):
                    words = language_of(simplify(check.expr))
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
        """Return whether aborted, intermediate and thin-air reads violate the specification."""
        return mentions.uses_reads_from(self.spec)

    def mentioned(self) -> frozenset[str]:
        """Return the relations that a verdict by the specification depends on."""
        return mentions.mentioned(replace(self.spec, checks=self.checks, exists=self.exists))

    def names(self) -> tuple[frozenset[Named], frozenset[KeyClass]]:
        """Return the labels, levels and key classes that a verdict depends on."""
        spec = replace(self.spec, checks=self.checks, exists=self.exists)
        return mentions.named_sets(spec), mentions.key_classes(spec)


def normal(spec: Spec) -> Normal:
    """Return a specification in normal form, as conditions on dependencies where possible.

    If no theorem allows the rewriting, the axioms of the normal form are the specification's own
    checks.

    Raises:
        SpecError: if the specification has no unflagged check.
    """
    checks = tuple(check for check in spec.checks if not check.flag)
    if not checks:
        raise SpecError(
            f"{spec.source}: the specification has no check, so every history satisfies it"
        )
    if _chooses_only_dependencies(spec.exists):
        axioms = tuple(Axiom(check=check) for check in checks)
        return Normal(spec=spec, axioms=axioms, exists=spec.exists)
    judged = replace(spec, checks=checks)
    if (theorem := event_graph_form(judged)) is not None:
        axioms = tuple(Axiom(check=check) for check in theorem.spec.checks)
        return Normal(
            spec=spec, axioms=axioms, exists=theorem.spec.exists, theorem=theorem.sentence
        )
    with suppress(NotAnEventGraph, NotThisFormError):
        classify_return_paths(judged)  # raises an error unless the conditions for `rewrite` are met
        return _rewrite_order_axioms(spec, judged)
    axioms = tuple(Axiom(check=check) for check in checks)
    return Normal(spec=spec, axioms=axioms, exists=spec.exists)


def _rewrite_order_axioms(spec: Spec, judged: Spec) -> Normal:
    """Rewrite axioms on a single order of all transactions as conditions on version orders."""
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
            # SOUND BECAUSE ww is total on the writers of a key: if it does not contain a pair, it
            # contains the reverse pair, which closes `wr ; rw`.
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


def _chooses_only_dependencies(exists: Iterable[Exists]) -> bool:
    return all(e == CANONICAL_EXISTS.get(e.name) for e in exists)


def letters_within(words: Dfa, first: tuple[str, ...] = ()) -> frozenset[str]:
    """Return a set of letters such that every word over these letters is in a language.

    The letters in ``first`` are tried in order, and then ``so``, ``rt`` and ``wr``. A letter is
    added if the condition still holds. If a letter in ``first`` breaks it, no further letter is
    tried.
    """
    found: list[str] = []
    for name in (*first, *(r for r in ("so", "rt", "wr") if r not in first)):
        if is_included(language_of(Plus(Union(tuple(map(Rel, (*found, name)))))), words):
            found.append(name)
        elif name in first:
            break
    return frozenset(found)

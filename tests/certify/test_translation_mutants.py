"""A wrong translation for the native checker is seen: what is checked by definition is not fooled.

Each mutant changes what the native checker is told of a specification. It then accepts a proof that
does not hold; the definition, which knows nothing of the translation, refuses it.
"""

import pytest
from msgspec.structs import replace
from support.certify import history, txn

from isolang import check
from isolang.certify import native
from isolang.certify.errors import CertificateRejected
from isolang.certify.native import check_natively
from isolang.certify.proofs import Refutation, Witness
from isolang.certify.translate import EARLIER, ONE_KEY, judged_checks
from isolang.certify.verification import accept
from isolang.language.load import load_spec
from isolang.language.meaning.core import Lift, Opt, Plus, Rel, Seq, Union
from isolang.language.meaning.mentions import children, rebuild

WRITE_SKEW = history(txn("r(x,nil) w(y,1)", 1), txn("r(y,nil) w(x,1)", 2))
LOST_UPDATE = history(txn("r(x,nil) w(x,1)", 1), txn("r(x,nil) w(x,2)", 2))
FRACTURED = history(txn("w(x,1) w(y,1)", 1), txn("r(x,nil) r(y,1)", 2))
STALE_AFTER_A_READ = history(txn("w(x,1)", 1), txn("r(x,1)", 2), txn("r(x,nil)", 2))
FROM_LATER = history(txn("r(x,1)", 1), txn("w(x,1)", 1))
BLIND = history(txn("w(x,1)", 1), txn("w(x,2)", 1))
CAUSALITY = history(txn("w(x,1)", 1), txn("r(x,1) w(y,1)", 2), txn("r(y,1) r(x,nil)", 3))


def everywhere(change):
    """An expression, changed from its leaves up."""

    def changed(e):
        return change(rebuild(e, tuple(map(changed, children(e)))))

    return changed


def forget(name):
    """Of every union, what is left without a name."""

    def without(e):
        if not isinstance(e, Union):
            return e
        parts = tuple(part for part in e.parts if part != Rel(name))
        return parts[0] if len(parts) == 1 else Union(parts)

    return everywhere(without)


def in_expressions(change):
    return lambda c: replace(c, expr=change(c.expr))


def of_kind(old, new):
    return lambda c: replace(c, kind=new) if c.kind == old else c


@everywhere
def without_last_rw(e):
    return Union((Rel("wr"), Rel("ww"))) if e == Opt(Rel("rw")) else e


@everywhere
def alternatives(e):
    """``a ; b?`` read as ``a | b``."""
    if isinstance(e, Seq) and isinstance(e.parts[-1], Opt):
        return Union((*e.parts[:-1], e.parts[-1].arg))
    return e


@everywhere
def without_tests(e):
    if not isinstance(e, Seq):
        return e
    return Seq(tuple(p for p in e.parts if not isinstance(p, Lift)))


@everywhere
def once(e):
    """``a^+`` read as ``a``."""
    return e.arg if isinstance(e, Plus) else e


# The history, the level, another one that the engine takes, and the mutant.
FALSE_WITNESSES = {
    "the last letter is forgotten": (
        LOST_UPDATE, "psi", "pl-2", in_expressions(without_last_rw)),
    "rw is forgotten": (WRITE_SKEW, "ser", "si", in_expressions(forget("rw"))),
    "so is forgotten": (STALE_AFTER_A_READ, "ser", "pl-2", in_expressions(forget("so"))),
    "ww is forgotten in the order": (BLIND, "cc", None, in_expressions(forget("ww"))),
    "a plus is a single step": (CAUSALITY, "cc", "ra", in_expressions(once)),
}  # fmt: skip
FALSE_REFUTATIONS = {
    "a sequence is a union": (WRITE_SKEW, "si", "ser", in_expressions(alternatives)),
    "tests are forgotten": (FROM_LATER, "mw", "pram", in_expressions(without_tests)),
    "any read is an earlier one": (FRACTURED, "rc", "ra", of_kind(EARLIER, "irreflexive")),
    "a key is any key": (
        WRITE_SKEW, "per-key-sequential", "ser", of_kind(ONE_KEY, "irreflexive")),
}  # fmt: skip


def reversed_order():
    """A witness of ``BLIND`` whose version order is against the session."""
    return Witness.of([-1, -1], [0, 2], [1, 0])


def named_as(refutation, name):
    """The same steps, as ones of another check."""
    steps = [("cycle", name, s[2]) if s[0] == "cycle" else s for s in refutation.plain()]
    return Refutation.of(steps)


def mutate(monkeypatch, change):
    monkeypatch.setattr(
        native, "judged_checks", lambda spec: tuple(map(change, judged_checks(spec)))
    )


def fooled(monkeypatch, h, spec, proof, change):
    """Whether the native checker accepts a proof that it refuses if it is told the truth."""
    with pytest.raises(CertificateRejected):
        check_natively(h, spec, proof)
    mutate(monkeypatch, change)
    check_natively(h, spec, proof)


@pytest.mark.parametrize("mutant", FALSE_WITNESSES)
def test_a_false_witness_that_fools_the_native_checker_is_refused(monkeypatch, mutant):
    h, level, weaker, change = FALSE_WITNESSES[mutant]
    spec = load_spec(level)
    assert check(h, spec).outcome == ("valid" if weaker is None else "invalid")
    proof = reversed_order() if weaker is None else check(h, weaker).witness
    fooled(monkeypatch, h, spec, proof, change)
    with pytest.raises(CertificateRejected, match="by definition"):
        accept(h, spec, proof)


@pytest.mark.parametrize("mutant", FALSE_REFUTATIONS)
def test_a_false_refutation_that_fools_the_native_checker_is_refused(monkeypatch, mutant):
    h, level, stronger, change = FALSE_REFUTATIONS[mutant]
    spec = load_spec(level)
    assert check(h, spec).outcome == "valid"
    refutation = check(h, stronger).refutation
    names = [c.name for c in judged_checks(spec)]
    for name in names:
        proof = named_as(refutation, name)
        try:
            with monkeypatch.context() as patch:
                fooled(patch, h, spec, proof, change)
                with pytest.raises(CertificateRejected, match="by definition"):
                    accept(h, spec, proof)
        except CertificateRejected:  # the word is one of another check
            continue
        return
    pytest.fail(f"the native checker sees through {mutant}")

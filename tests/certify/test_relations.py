"""Chosen relations and exhaustions as certificates: what is wrong in them is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from msgspec.structs import replace
from oracle.history import parse
from oracle.pipeline import to_tool

from isolang.api import check
from isolang.certify.certificate import Certificate, CertificateError, verify
from isolang.certify.errors import CertificateRejected, NotCertifiedError
from isolang.certify.proofs import Exhaustion, Relations, check_proof
from isolang.history import History
from isolang.language.classify.relational import relational
from isolang.language.load import load_spec

LONG_FORK = "w(x,1) || w(y,1) || r(x,1) r(y,nil) || r(x,nil) r(y,1)"
CHAIN = "w(x,1) -> r(x,1) w(y,1) || r(y,1) r(x,1) w(x,2)"
PSI_VIS = load_spec("psi-vis")
PC_VIS = load_spec("pc-vis")


def history_of(text: str) -> History:
    return to_tool(parse(text))


def witness_of(text: str) -> tuple[History, Relations]:
    history = history_of(text)
    verdict = check(history, relational(PSI_VIS))
    assert verdict.outcome == "valid"
    assert isinstance(verdict.witness, Relations)
    return history, verdict.witness


Changes = Mapping[str, Mapping[int, tuple[tuple[int, int], ...]]]


def changed(witness: Relations, changes: Changes) -> Relations:
    return replace(witness, chosen={**witness.chosen, **changes})


def test_a_witness_holds() -> None:
    history, witness = witness_of(CHAIN)
    check_proof(history, PSI_VIS, witness)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ar": {-1: ()}}, "ar is not a total order"),
        ({"ar": {-1: ((3, 0), (0, 1), (1, 3))}}, "ar is not a total order"),
        ({"ar": {-1: ((3, 1), (1, 0), (0, 2))}}, "containing"),
        ({"vis": {-1: ()}}, "containing"),
        ({"vis": {-1: ((7, 0),)}}, "not a pair of its elements"),
        ({"vis": {-1: ((-1, 0),)}}, "not a pair of its elements"),
        ({"vis": {5: ()}}, "has no key 5"),
        ({"rf": {}}, "has no source"),
        ({"rf": {0: ((3, 1), (1, 4)), 1: ((1, 3),)}}, "cannot read from"),
        ({"rf": {0: ((0, 99),)}}, "no place"),
    ],
)
def test_a_changed_witness_is_refused(changes: Changes, message: str) -> None:
    history, witness = witness_of(CHAIN)
    with pytest.raises(CertificateRejected, match=message):
        check_proof(history, PSI_VIS, changed(witness, changes))


def test_who_is_included_matters() -> None:
    history, witness = witness_of(CHAIN)
    for included in ((0, 1), (0, 1, 2, 3), (0, 1, 2, -1)):
        with pytest.raises(CertificateRejected):
            check_proof(history, PSI_VIS, replace(witness, included=included))


def test_a_witness_of_another_level_is_refused() -> None:
    """The long fork satisfies PSI; what shows that is no witness of PC."""
    history, witness = witness_of(LONG_FORK)
    with pytest.raises(CertificateRejected, match="check PREFIX"):
        check_proof(history, PC_VIS, witness)


def test_anomalies_are_refused_whatever_is_chosen() -> None:
    text = "!w(x,1) || w(x,2) || r(x,2)"
    _, witness = witness_of(text)
    other = history_of(text.replace("r(x,2)", "r(x,1)"))
    with pytest.raises(CertificateRejected, match="aborted read"):
        check_proof(other, PSI_VIS, witness)


def test_an_exhaustion_holds_and_is_refused_where_there_is_a_choice() -> None:
    history = history_of(LONG_FORK)
    check_proof(history, PC_VIS, Exhaustion((0, 1, 2, 3)))
    with pytest.raises(CertificateRejected, match="satisfies every check"):
        check_proof(history, PC_VIS, Exhaustion((0, 1, 2)))
    with pytest.raises(CertificateRejected, match="satisfies every check"):
        check_proof(history, PSI_VIS, Exhaustion((0, 1, 2, 3)))
    with pytest.raises(CertificateRejected, match="cannot be included"):
        check_proof(history, PC_VIS, Exhaustion((0, 9)))


def test_an_exhaustion_says_what_it_cannot_show() -> None:
    """A part proves nothing if the spec is not closed under sub-histories; nine are too many."""
    history = history_of(LONG_FORK)
    spec = load_spec('include "adya.iso"\nrequire wr in ww ; ww as two-steps\n')
    with pytest.raises(NotCertifiedError, match="may depend on other choices"):
        check_proof(history, spec, Exhaustion((0, 1)))
    with pytest.raises(NotCertifiedError, match="`not`"):
        check_proof(history, load_spec('include "adya.iso"\nnot empty wr as w\n'), Exhaustion((0,)))
    many = history_of(" || ".join(f"w(x,{i})" for i in range(9)))
    with pytest.raises(NotCertifiedError, match="too many orders"):
        check_proof(many, PC_VIS, Exhaustion(tuple(range(9))))


def test_a_part_is_not_blamed_for_what_it_lacks() -> None:
    """A read of the part from a transaction outside it is no contradiction."""
    history = history_of("w(x,1) || r(x,1)")
    with pytest.raises(CertificateRejected, match="satisfies every check"):
        check_proof(history, PC_VIS, Exhaustion((1,)))


@pytest.mark.parametrize("name", ["psi-vis", "pc-vis"])
def test_files(name: str) -> None:
    """What is saved can be read and verified; what was changed cannot."""
    history, spec = history_of(LONG_FORK), load_spec(name)
    verdict = check(history, relational(spec))
    certificate = verdict.certificate()  # type: ignore[union-attr]
    again = Certificate.from_json(certificate.to_json())
    assert again.proof == certificate.proof
    verify(again, history, spec)
    data = json.loads(certificate.to_json())
    if "relations" in data:
        data["relations"]["chosen"]["ar"]["-1"] = [[1]]
    else:
        data["exhaustion"]["transactions"] = "all"
    with pytest.raises(CertificateError, match="wrong type"):
        Certificate.from_json(json.dumps(data))

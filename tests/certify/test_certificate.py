"""The certificate file: what it holds, that it survives the disk, and what is refused."""

import json

import numpy as np
import pytest
from msgspec.structs import force_setattr, replace
from support.certify import SER, SI, history, txn

from isolang.certify.certificate import Certificate, CertificateError, verify
from isolang.certify.errors import CertificateRejected
from isolang.certify.proofs import Refutation, Witness
from isolang.certify.steps import Before, ChoiceStep, CycleStep, Edge, In, RupStep, Source

VALID = history(txn("w(x,1)", 1), txn("r(x,1)", 2), name="runs/a b.edn")
INVALID = history(txn("w(x,1)", 1), txn("r(x,nil)", 1), name="stale.edn")
WITNESS = Witness.of(np.array([-1, 0]), [0, 1], (0,))
STALE = [("cycle", "c0", [("so", 0, 1, -1, -1, -1), ("rw", 1, 0, 0, 1, 2)])]


def test_a_witness_survives_the_disk(tmp_path):
    made = Certificate.of(replace(VALID, options={"initial": 7}), SER, WITNESS)
    path = made.save(tmp_path / "new" / "folder")
    assert path.name == "a-b.edn.test.certificate.json"
    read = Certificate.load(path)
    assert read.verdict == "valid"
    assert isinstance(read.proof, Witness)
    assert read.proof.source.tolist() == [-1, 0]
    assert read.proof.source.dtype == np.int32
    assert (read.spec_texts, read.history_options) == ({"main": "spec test"}, {"initial": 7})
    assert (read.history_sha256, read.history_format) == (VALID.sha256, "memory")
    verify(read, VALID, SER)


def test_a_refutation_survives_the_disk(tmp_path):
    read = Certificate.load(Certificate.of(INVALID, SER, Refutation.of(STALE)).save(tmp_path))
    assert read.verdict == "invalid"
    assert read.proof == Refutation.of(STALE)
    verify(read, INVALID, SER)


def test_saving_replaces_nothing(tmp_path):
    one = Certificate.of(INVALID, SER, Refutation.of(STALE))
    other = Certificate.of(INVALID, SER, Refutation.of([*STALE, ("rup", [])]))
    first = one.save(tmp_path)
    assert one.save(tmp_path) == first
    assert other.save(tmp_path) != first
    assert len(list(tmp_path.iterdir())) == 2
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(CertificateError, match="cannot write"):
        one.save(blocked)


def test_the_wrong_history_or_spec_is_a_clear_error():
    made = Certificate.of(VALID, SER, WITNESS)
    with pytest.raises(
        CertificateError, match=r"stale\.edn: this certificate is about another history"
    ):
        verify(made, INVALID, SER)
    other = Certificate.of(VALID, SER, WITNESS)
    force_setattr(other, "spec_sha256", "00")
    with pytest.raises(CertificateError, match="this certificate is about another specification"):
        verify(other, VALID, SER)


def test_a_proof_that_does_not_hold_is_rejected():
    wrong = Certificate.of(INVALID, SER, Refutation.of([("rup", [])]))
    with pytest.raises(CertificateRejected, match="step 0"):
        verify(wrong, INVALID, SER)
    verify(Certificate.of(INVALID, SI, Refutation.of(STALE)), INVALID, SI)


def test_steps_are_typed():
    steps = Refutation.of(
        [
            *STALE,
            ["choice", 3],
            ["rup", [[True, ["source", 1, 2]], (False, ("before", 0, 1, 2)), [True, ["in", 4]]]],
        ]
    ).steps
    assert steps[0] == CycleStep("c0", (Edge("so", 0, 1), Edge("rw", 1, 0, 0, 1, 2)))
    assert steps[1] == ChoiceStep(3)
    assert steps[2] == RupStep(((True, Source(1, 2)), (False, Before(0, 1, 2)), (True, In(4))))
    assert Refutation(steps) == Refutation.of(Refutation(steps).plain())
    assert json.loads(json.dumps(Refutation.of(STALE).plain())) == [
        ["cycle", "c0", [["so", 0, 1, -1, -1, -1], ["rw", 1, 0, 0, 1, 2]]]
    ]


def damaged(**changes):
    data = json.loads(Certificate.of(VALID, SER, WITNESS).to_json())
    for path, value in changes.items():
        where, *rest = path.split("__")
        if rest:
            data[where][rest[0]] = value
        elif value is None:
            del data[where]
        else:
            data[where] = value
    return json.dumps(data)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "not a certificate"),
        ("{}", "not a certificate"),
        (damaged(format=2), "format 2"),
        (damaged(format=True), "format True"),
        (damaged(verdict="maybe"), "verdict"),
        (damaged(verdict="invalid"), "'refutation' is missing"),
        (damaged(verdict=None), "'verdict' is missing"),
        (damaged(history=None), "'history' is missing"),
        (damaged(history=3), "wrong type"),
        (damaged(spec__texts=[]), "wrong type"),
        (damaged(spec__texts={"a": 1}), "wrong type"),
        (damaged(spec__name=None), "wrong type"),
        (damaged(witness__source="abc"), "wrong type"),
        (damaged(witness__source=[1.0]), "wrong type"),
        (damaged(witness__source=[True]), "wrong type"),
        (damaged(witness__source=[2**40]), "wrong type"),
        (damaged(witness__source=[[1], [2]]), "wrong type"),
        (damaged(verdict="invalid", witness=None, refutation=[["what"]]), "not a step"),
        (damaged(verdict="invalid", witness=None, refutation=7), "wrong type"),
        (damaged(tool=1), "wrong type"),
    ],
)
def test_a_damaged_file_is_a_clear_error(tmp_path, text, said):
    path = tmp_path / "c.json"
    path.write_text(text)
    with pytest.raises(CertificateError, match=said) as caught:
        Certificate.load(path)
    assert str(path) in str(caught.value)


def test_a_file_that_cannot_be_read(tmp_path):
    with pytest.raises(CertificateError, match="cannot read"):
        Certificate.load(tmp_path / "none.json")
    binary = tmp_path / "binary.json"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(CertificateError, match="cannot read"):
        Certificate.load(binary)

"""A forged certificate is refused with the field that is wrong; none says more than it did."""

from __future__ import annotations

import json
import random

import pytest
from support.cli import run_here
from support.mutations import mutants_of
from support.paths import ROOT

import isolang
from isolang.certify.certificate import Certificate, CertificateError, verify
from isolang.cli.verify import reading_options, spec_of
from isolang.errors import IsolangError
from isolang.history import read_history

CASES = [
    ("examples/on-call.edn", "si"),  # a witness
    ("examples/on-call.edn", "ser"),  # a refutation
    ("tests/litmus/serial.edn", "ser-vis"),  # relations
]


def accepted(text: str, history: str) -> Certificate:
    """What ``isocheck verify`` does."""
    proof = Certificate.from_json(text)
    spec = spec_of(proof)
    verify(proof, proof.about(read_history(history, reading_options(proof))), spec)
    return proof


def meaning(proof: Certificate) -> tuple[object, ...]:
    """What is claimed of what."""
    options = {name: value for name, value in proof.history_options.items() if value}
    return (
        proof.verdict, proof.history_sha256, proof.history_format, options, proof.spec_name,
        proof.spec_sha256,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("history", "spec"), CASES)
def test_no_mutation_is_an_internal_error_or_changes_the_meaning(history, spec):
    """Typed mutations of each field, and changed bytes."""
    path = str(ROOT / history)
    proof = isolang.check(isolang.load_history(path), spec).certificate()
    text = proof.to_json()
    rng = random.Random(1)
    forged = [json.dumps(made) for _, made in mutants_of(json.loads(text), rng, most=50)]
    for _ in range(200):
        at = rng.randrange(len(text))
        forged.append(text[:at] + chr(ord(text[at]) ^ 1 << rng.randrange(7)) + text[at + 1 :])
    refused = 0
    for made in forged:
        try:
            found = accepted(made, path)
        except IsolangError:
            refused += 1
        else:
            assert meaning(found) == meaning(proof), made
    assert refused > 800


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("zzz", 1, "the field 'zzz' is unknown"),
        ("history.options", [], "history.options has the wrong type"),
        ("history.options.zzz", 1, "zzz"),
        ("history.sha", "", "the field 'history.sha' is unknown"),
        ("spec.texts", [], "spec.texts has the wrong type"),
        ("spec.name", "SSER", "spec.name differs from the level's name"),
        ("witness.seem", [], "the field 'witness.seem' is unknown"),
        ("witness.source", ["x"], "witness has the wrong type"),
        ("refutation", [], "the field 'refutation' is unknown"),
    ],
)
def test_a_wrong_field_is_named(tmp_path, capfd, field, value, said):
    """With exit code 2."""
    path = str(ROOT / "examples" / "on-call.edn")
    proof = isolang.check(isolang.load_history(path), "si").certificate()
    made = json.loads(proof.to_json())
    *outer, name = field.split(".")
    inner = made
    for one in outer:
        inner = inner[one]
    inner[name] = value
    file = tmp_path / "forged.json"
    file.write_text(json.dumps(made))
    found = run_here(capfd, "verify", str(file), path)
    assert found.code == 2
    assert said in found.err


def test_a_missing_field_is_named():
    """Wherever it stands."""
    proof = isolang.check(isolang.load_history(ROOT / "examples" / "on-call.edn"), "si")
    made = json.loads(proof.certificate().to_json())
    del made["spec"]["texts"]
    with pytest.raises(CertificateError, match=r"the field 'spec\.texts' is missing"):
        Certificate.from_json(json.dumps(made))

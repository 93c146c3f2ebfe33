"""The kernel accepts no proof of the opposite verdict, and takes any text without a crash."""

import random
import re

import pytest
from support.kernel import text_of, unsupported_reason
from support.paths import TESTS

from isolang.api import load_history
from isolang.certify.kernel import run_kernel
from isolang.language.load import load_spec

LEVELS = ("ser", "si", "psi", "cc", "ra", "sser", "ser-co", "pl-2")
PROOF = re.compile(r"^(?=witness$|refutation$)", re.M)


@pytest.fixture(scope="module")
def texts():
    """Texts of small histories and proofs: the history with its level, the proof, the verdict."""
    found = []
    for path in sorted((TESTS / "litmus").glob("*.edn")):
        history = load_history(path)
        for level in LEVELS:
            spec = load_spec(level)
            if not unsupported_reason(history, spec):
                text, valid = text_of(history, spec)
                found.append((*PROOF.split(text), valid))
    assert len(found) > 200
    return found


@pytest.mark.slow
def test_a_proof_of_the_opposite_is_refused(program, texts):
    """A proof of another history or level, which claims what does not hold here."""
    rng = random.Random(1)
    tried = 0
    while tried < 250:
        (about, _, valid), (_, proof, other) = rng.sample(texts, 2)
        if valid == other:
            continue
        tried += 1
        code, said = run_kernel(program, about + proof)
        assert code in (1, 2), (said, about + proof)


def _changed(rng, proof):
    """A proof in which a number is another one, or two numbers have changed places."""
    places = list(re.finditer(r"(?<![\w-])\d+", proof))
    one = rng.choice(places)
    if rng.random() < 0.6:
        number = max(0, int(one[0]) + rng.choice((-2, -1, 1, 2)))
        return f"{proof[: one.start()]}{number}{proof[one.end() :]}"
    other = rng.choice(places)
    one, other = sorted((one, other), key=re.Match.start)
    if one.start() == other.start():
        return proof
    between = proof[one.end() : other.start()]
    return proof[: one.start()] + other[0] + between + one[0] + proof[other.end() :]


@pytest.mark.slow
def test_a_changed_proof_changes_no_verdict(program, texts):
    """It is accepted for the same verdict, refused, or no proof at all; most are not accepted."""
    rng = random.Random(2)
    accepted = 0
    for _ in range(400):
        about, proof, valid = rng.choice(texts)
        code, said = run_kernel(program, about + _changed(rng, proof))
        assert code in (0, 1, 2), (said, proof)
        if code == 0:
            assert said == ("accepted valid" if valid else "accepted invalid")
            accepted += 1
    assert accepted < 160


@pytest.mark.slow
def test_malformed_text(program, texts):
    """Exit code 2 and one line that names the place, whatever the text is."""
    rng = random.Random(3)
    about, proof, _ = texts[0]
    whole = about + proof
    some = [whole[: rng.randrange(len(whole) - 4)] for _ in range(10)]
    some += [whole.replace(" 1 ", f" {word} ", 1) for word in ("-1", "x", "0x1", "9" * 40, "é")]
    some += [
        "",
        "\0",
        "isolang-kernel 3\n",
        whole + "more",
        "isolang-kernel 2\nhistory 99999999999 t",
    ]
    for text in some:
        code, said = run_kernel(program, text)
        assert code == 2, text
        assert re.fullmatch(r"malformed: line \d+: .+", said)


@pytest.mark.slow
def test_the_end_of_a_text_is_needed(program, texts):
    """A proof that is cut off before its end is none."""
    about, proof, _ = texts[0]
    assert run_kernel(program, about + proof)[0] == 0
    assert run_kernel(program, about + proof.removesuffix("end\n"))[0] == 2

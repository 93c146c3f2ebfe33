"""What the kernel's program understands of its input is what isolang meant, and all of it."""

import random
import subprocess

import pytest
from support.kernel import history_and_level, unsupported_reason
from support.kernel_definitions import judging_relations
from support.kernel_levels import random_level, small_histories
from support.paths import TESTS

from isolang import History, Transaction
from isolang.api import check, load_history
from isolang.certify.errors import CertificateRejected
from isolang.certify.kernel import check_by_kernel
from isolang.certify.kernel_text import JUDGING
from isolang.errors import SpecError
from isolang.language.load import load_spec
from isolang.language.vocabulary import OF_READS

LEVELS = ("ser", "si", "sser", "psi", "ra", "ser-co", "pl-1", "pl-2", "cc-adya")


def texts():
    """Histories and levels in the kernel's input format: litmus histories, and random ones."""
    rng = random.Random(5)
    histories = [load_history(path) for path in sorted((TESTS / "litmus").glob("*.edn"))]
    pairs = [(history, load_spec(rng.choice(LEVELS))) for history in histories]
    for number, history in small_histories(range(300)):
        try:
            pairs.append((history, load_spec(random_level(random.Random(number)))))
        except SpecError:
            continue
    return [history_and_level(h, spec) for h, spec in pairs if not unsupported_reason(h, spec)]


def echo(program, text):
    done = subprocess.run(
        [program, "--echo"], input=text, capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.mark.slow
def test_the_program_understands_what_was_exported(program):
    """It prints the history and the level again, word for word."""
    exported = texts()
    words = {word for text in exported for word in text.split()}
    assert {"t", "c", "a", "u", "-", "w", "r", "o", "n", "l", "order", "no-order"} <= words
    assert {"acyclic", "irreflexive", "empty", "inorder", "for", "inv", "minus", "inter"} <= words
    assert len(exported) > 100
    for text in exported:
        assert echo(program, text).split() == text.split()


@pytest.mark.parametrize("base", [0, 2**62 - 2, 2**62, 2**63 - 10, -(2**63) + 1])
def test_times_of_any_size(kernel, base):
    """The order of times is exported, however large they are."""
    history = History.from_transactions(
        [
            Transaction([("w", "x", 1)], session="a", begin=base + 1, end=base + 2),
            Transaction([("r", "x", None)], session="b", begin=base + 3, end=base + 4),
        ]
    )
    verdict = check(history, "sser")
    check_by_kernel(history, verdict.spec, verdict.refutation)
    with pytest.raises(CertificateRejected):
        check_by_kernel(history, load_spec("sser"), check(history, "ser").witness)
    text = history_and_level(history, load_spec("sser"))
    assert echo(kernel, text).split() == text.split()
    lines = [line.split() for line in text.splitlines() if line.startswith("t ")]
    assert [line[3:5] for line in lines] == [["0", "1"], ["2", "3"]]


def test_the_relations_that_judge_reads():
    """docs/language.md lists them; isolang and its exporter mean the same relations."""
    assert judging_relations() == OF_READS | {"rf"}
    assert set(JUDGING) == judging_relations() & {"wr", "rw", "ww", "so", "rt", "init"}

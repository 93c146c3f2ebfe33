"""``isocheck verify`` names the kernel, where its program is there."""

import re

import pytest
from support.cli import run_here
from support.paths import TESTS

from isolang import History, Transaction
from isolang.api import check
from isolang.certify.errors import NotCertifiedError
from isolang.certify.kernel import VARIABLE, check_by_kernel
from isolang.certify.proofs import Witness
from isolang.language.load import load_spec
from isolang.watch import Stream, Watch

HISTORY = TESTS / "litmus" / "lost-update.edn"


@pytest.fixture
def certificate(tmp_path, capfd):
    def of(level):
        (report,) = run_here(
            capfd, "-s", level, "-o", "json", "--certificate", tmp_path, HISTORY
        ).reports()
        return report["certificate"]

    return of


def test_the_kernel_is_a_third_checker(kernel, certificate, capfd):
    run = run_here(capfd, "verify", "--kernel", certificate("si"), HISTORY)
    assert run.code == 0
    assert (
        "accepted by: native checker (all), by definition (all: 2 of 2 cycle steps), kernel (all)\n"
        in run.out
    )


def test_the_reason_why_the_kernel_does_not_judge(kernel, certificate, capfd):
    """The others still accept; --kernel insists, so the answer is unknown."""
    saved = certificate("psi-vis")
    run = run_here(capfd, "verify", saved, HISTORY)
    assert run.code == 0
    assert "; not by the kernel: the level chooses the relation vis\n" in run.out
    run = run_here(capfd, "verify", "--kernel", saved, HISTORY)
    assert run.code == 3
    assert "not certified by the kernel: the level chooses the relation vis" in run.out


def test_without_the_program(certificate, capfd, monkeypatch):
    """Nothing changes without --kernel, which names what is missing and how it is built."""
    monkeypatch.setenv(VARIABLE, "/nonexistent/kernel")
    saved = certificate("si")
    run = run_here(capfd, "verify", saved, HISTORY)
    assert run.code == 0
    assert "kernel (" not in run.out
    assert "by the kernel" not in run.out
    run = run_here(capfd, "verify", "--kernel", saved, HISTORY)
    assert run.code == 2
    assert "there is no isolang-kernel" in run.err
    assert "make -C kernel" in run.err


def test_a_kernel_that_refuses(certificate, capfd, monkeypatch, tmp_path):
    """A proof that one checker rejects is rejected."""
    program = tmp_path / "refusing"
    program.write_text("#!/bin/sh\ncat >/dev/null\necho refused valid\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv(VARIABLE, str(program))
    run = run_here(capfd, "verify", certificate("si"), HISTORY)
    assert run.code == 4
    assert "kernel: the proof does not hold (refused valid)" in run.out


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("cat >/dev/null; echo gave up: memory; exit 3", "gave up: memory"),
        ("echo malformed: line 1: x; exit 2", "malformed: line 1: x"),
        ("kill -9 $$", "the program ended with exit code"),
    ],
)
def test_a_kernel_that_fails(certificate, capfd, monkeypatch, tmp_path, script, reason):
    """What it says is the reason why it does not certify."""
    program = tmp_path / "failing"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv(VARIABLE, str(program))
    run = run_here(capfd, "verify", certificate("si"), HISTORY)
    assert run.code == 0
    assert f"; not by the kernel: {reason}" in run.out


def _log(many):
    """Transactions of two clients on two registers and a list."""
    for n in range(many):
        asked = f"[:r :k nil] [:w :k {n}] [:append :l {n}] [:r :l nil]"
        elements = " ".join(map(str, range(n + 1)))
        answer = (
            f"[:r :k {n - 1 if n else 'nil'}] [:w :k {n}] [:append :l {n}] [:r :l [{elements}]]"
        )
        for kind, ops in (("invoke", asked), ("ok", answer)):
            yield f"{{:type :{kind}, :process {n % 2}, :f :txn, :value [{ops}]}}\n"


@pytest.mark.parametrize("level", ["ser", "si", "psi", "sser", "ra"])
def test_each_part_of_a_chain(kernel, tmp_path, capfd, level):
    """The kernel judges each part, from the values that the parts before it left."""
    log, state = tmp_path / "log.edn", tmp_path / "state"
    log.write_text("".join(_log(12)))
    stream = Stream([log], follow=False, batch=300)
    watch = Watch(level, stream=stream, folder=state, round=2)
    for batch in stream:
        list(watch.feed(batch))
    watch.close()
    stream.close()
    run = run_here(capfd, "verify", "--kernel", state, log)
    assert (run.code, run.out.split()[0]) == (0, "ACCEPTED"), run.out
    parts = re.search(
        r"  accepted by: native checker \(all parts\), kernel \(all (\d+) parts\)\n", run.out
    )
    assert int(parts[1]) > 2


def test_a_chain_beyond_the_kernel(kernel, tmp_path, capfd):
    """Without --kernel the reason is printed; with it, the answer is unknown."""
    log, state = tmp_path / "log.edn", tmp_path / "state"
    log.write_text("".join(_log(4)))
    run_here(capfd, "watch", log, "--spec", "psi-vis", "--until-idle", "0", "--state", state)
    run = run_here(capfd, "verify", state, log)
    assert run.code == 0
    assert "kernel (0 of 1 parts); " in run.out
    assert "the level chooses the relation vis" in run.out
    assert run_here(capfd, "verify", "--kernel", state, log).code == 3


def test_a_kernel_that_refuses_a_part(tmp_path, capfd, monkeypatch):
    """A chain is rejected if one of its parts is."""
    log, state = tmp_path / "log.edn", tmp_path / "state"
    log.write_text("".join(_log(4)))
    run_here(capfd, "watch", log, "--spec", "ser", "--until-idle", "0", "--state", state)
    program = tmp_path / "refusing"
    program.write_text("#!/bin/sh\ncat >/dev/null\necho refused valid\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv(VARIABLE, str(program))
    run = run_here(capfd, "verify", state, log)
    assert run.code == 4
    assert "part 1: kernel: the proof does not hold" in run.out


def test_a_refusal_that_says_nothing(certificate, capfd, monkeypatch, tmp_path):
    """At a level with an order of all transactions, the kernel does not try every order."""
    program = tmp_path / "refusing"
    program.write_text("#!/bin/sh\ncat >/dev/null\necho refused valid\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv(VARIABLE, str(program))
    run = run_here(capfd, "verify", certificate("ra"), HISTORY)
    assert run.code == 0
    assert (
        "; not by the kernel: it rejects the proof, but the level does not try every order"
        in run.out
    )


def test_the_order_of_a_part_contains_its_version_orders(kernel):
    """A part is followed by others, which begin with the last versions that its witness states.

    RA alone does not mention version orders: another order of the versions is a witness, too.
    """
    history = History.from_transactions(
        [
            Transaction([("w", "x", 1)], session="a"),
            Transaction([("r", "x", 1), ("w", "x", 2)], session="b"),
        ]
    )
    verdict = check(history, "ra")
    proof = verdict.witness
    check_by_kernel(history, verdict.spec, proof, of_part=True)
    wrong = Witness.of(proof.source, proof.order_start, proof.order_txn[::-1])
    check_by_kernel(history, load_spec("ra"), wrong)
    with pytest.raises(NotCertifiedError, match="rejects the proof"):
        check_by_kernel(history, load_spec("ra"), wrong, of_part=True)

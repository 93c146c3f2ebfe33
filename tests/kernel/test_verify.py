"""``isocheck verify`` names the kernel, where its program is there."""

import hashlib
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
        f"  kernel {kernel} sha256 {hashlib.sha256(kernel.read_bytes()).hexdigest()}\n" in run.out
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


@pytest.mark.parametrize(
    "script",
    [
        "exit 0",
        "exit 1",
        "echo accepted valid",
        "echo accepted",
        "echo accepted invalid; echo accepted invalid",
        "echo accepted invalid >&2",
        "echo accepted invalid; exit 1",
        "echo refused invalid",
        "echo refused valid; exit 1",
    ],
)
def test_a_program_that_is_no_kernel(certificate, capfd, monkeypatch, tmp_path, script):
    """Its exit code alone proves nothing, and neither does a line about the other verdict."""
    program = tmp_path / "other"
    program.write_text(f"#!/bin/sh\ncat >/dev/null\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv(VARIABLE, str(program))
    saved = certificate("si")
    run = run_here(capfd, "verify", saved, HISTORY)
    assert run.code == 0
    assert f"; not by the kernel: {program} is no kernel of this version (exit code" in run.out
    assert "kernel (all)" not in run.out
    run = run_here(capfd, "verify", "--kernel", saved, HISTORY)
    assert (run.code, run.out.split()[0]) == (3, "UNKNOWN")


def test_a_level_that_only_asks_who_read(kernel, capfd, tmp_path):
    """It allows an aborted read, so the kernel accepts the witness."""
    level, log = tmp_path / "noread.iso", tmp_path / "aborted.edn"
    level.write_text(
        'spec noread "only who read"\ninclude "adya.iso"\nacyclic so | ([R] ; ww) as c\n'
    )
    log.write_text(
        "{:type :fail, :f :txn, :value [[:w :x 1]], :process 0}\n"
        "{:type :ok, :f :txn, :value [[:r :x 1]], :process 1}\n"
    )
    run = run_here(capfd, "-s", level, "-o", "json", "--certificate", tmp_path / "saved", log)
    (report,) = run.reports()
    assert report["verdict"] == "valid"
    run = run_here(capfd, "verify", "--kernel", report["certificate"], log)
    assert run.code == 0, run.out
    assert "kernel (all)" in run.out


WEAK = 'spec SI "snapshot isolation, with session order"\ninclude "adya.iso"\nacyclic so as SI\n'


def test_the_certificate_for_another_level(capfd, tmp_path):
    """A text may have any name, so --spec compares the texts."""
    level = tmp_path / "weak.iso"
    level.write_text(WEAK)
    run = run_here(capfd, "-s", level, "-o", "json", "--certificate", tmp_path / "saved", HISTORY)
    saved = run.reports()[0]["certificate"]
    assert run_here(capfd, "verify", saved, HISTORY).code == 0
    run = run_here(capfd, "verify", "--spec", "si", saved, HISTORY)
    assert (run.code, run.out.split()[0]) == (4, "REJECTED")
    assert "--spec: the certificate is for another text (got SI, sha256" in run.out
    assert "its checks: acyclic so as SI\n" in run.out
    assert run_here(capfd, "verify", "--spec", level, saved, HISTORY).code == 0


def test_the_certificate_for_another_verdict(certificate, capfd):
    """--expect names the verdict that the certificate must prove."""
    saved = certificate("si")
    run = run_here(capfd, "verify", "--spec", "si", "--expect", "invalid", saved, HISTORY)
    assert run.code == 0
    run = run_here(capfd, "verify", "--expect", "valid", saved, HISTORY)
    assert run.code == 4
    assert (
        "--expect: the certificate is for another verdict (got invalid, expected valid)" in run.out
    )
    run = run_here(capfd, "verify", "--expect", "maybe", saved, HISTORY)
    assert run.code == 2


def test_a_kernel_that_refuses(certificate, capfd, monkeypatch, tmp_path):
    """A proof that one checker rejects is rejected."""
    program = tmp_path / "refusing"
    program.write_text("#!/bin/sh\ncat >/dev/null\necho refused invalid\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv(VARIABLE, str(program))
    run = run_here(capfd, "verify", certificate("si"), HISTORY)
    assert run.code == 4
    assert "kernel: the proof does not hold (refused invalid)" in run.out


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


def test_what_is_expected_of_a_chain(kernel, tmp_path, capfd):
    """A chain proves its own level, and that the log is valid; the kernel is named."""
    log, state = tmp_path / "log.edn", tmp_path / "state"
    log.write_text("".join(_log(4)))
    run_here(capfd, "watch", log, "--spec", "ser", "--until-idle", "0", "--state", state)
    run = run_here(capfd, "verify", "--spec", "ser", "--expect", "valid", state, log)
    assert run.code == 0
    assert f"  kernel {kernel} sha256 " in run.out
    assert run_here(capfd, "verify", "--spec", "si", state, log).code == 4
    assert run_here(capfd, "verify", "--expect", "invalid", state, log).code == 4


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

"""Verdicts on histories whose reads are superseded by reads under a lock."""

import gzip
import io
from pathlib import Path
from random import Random

import pytest
from support.cli import run_here
from support.sampling import quick_first

import isolang
from isolang.certify.verification import accept
from isolang.history.superseded import without_superseded_reads
from isolang.pipeline.findings import findings_of
from isolang.pipeline.levels import levels_of
from isolang.verdict import Invalid, Unknown, Valid

READ_THEN_LOCK = [
    [("w", "x", 1, "1"), ("w", "y", 1, "2")],
    [("r", "x", 1, "1"), ("w", "x", 2, "2")],
    [("r", "x", 1, "1"), ("r", "x", 2, "2 for update"), ("w", "x", 3, "3")],
]
LOST_UPDATE = [
    [("r", "y", 1, "1"), ("w", "y", 2, "2")],
    [("r", "y", 1, "1"), ("w", "y", 3, "2")],
]


def text(transactions):
    """Transactions one after another, each in a session of its own, as a recording."""
    lines = []
    for n, ops in enumerate(transactions):
        value = " ".join(f"[:{kind} :{key} {value}]" for kind, key, value, _ in ops)
        statements = " ".join(f'"{statement}"' for *_, statement in ops)
        head = f":process {n}, :f :txn"
        lines += [
            f"{{:index {2 * n}, :type :invoke, {head}, :value []}}",
            f"{{:index {2 * n + 1}, :type :ok, {head}, :value [{value}], "
            f":statements [{statements}]}}",
        ]
    return "\n".join(lines) + "\n"


@pytest.fixture
def load(tmp_path):
    """Write transactions to a file, and read it."""

    def load(transactions, **options):
        path = tmp_path / "history.edn"
        path.write_text(text(transactions))
        return isolang.load_history(path, **options)

    return load


def test_right_if_the_program_uses_the_second_value(load):
    """The verdict is unknown and says at which two places the row was read."""
    history = load(READ_THEN_LOCK)
    verdict = isolang.check(history, "ser")
    assert isinstance(verdict, Unknown)
    assert verdict.cause == "superseded reads"
    assert verdict.history is history
    places = "T5 read :x at {0}, and read it again under a lock at {0}, with another result: right"
    where = f"{history.name}:6"
    assert places.format(where) in verdict.reason
    assert "(fractured read)" in verdict.reason
    assert "without 1 read of 1 transaction like this one it satisfies it" in verdict.reason


def test_an_option_decides(load):
    """Both verdicts have certificates, which state the option and hold for the file read so."""
    for option, kind in (("ignore", Valid), ("count", Invalid)):
        history = load(READ_THEN_LOCK, superseded_reads=option)
        verdict = isolang.check(history, "ser")
        assert isinstance(verdict, kind)
        assert verdict.certified
        assert verdict.certificate().history_options == {"superseded_reads": option}
        proof = verdict.witness if kind is Valid else verdict.refutation
        accept(load(READ_THEN_LOCK, superseded_reads=option), verdict.spec, proof)
        caveat = 'read with superseded_reads "ignore"'
        assert (caveat in verdict.caveats) == (option == "ignore")


def test_another_violation_stays(load):
    """The violation shown is one that does not need a superseded read, and it is certified."""
    verdict = isolang.check(load(READ_THEN_LOCK + LOST_UPDATE), "ser")
    assert isinstance(verdict, Invalid)
    assert verdict.certified
    assert verdict.violation.anomaly == "lost update"
    again = load(READ_THEN_LOCK + LOST_UPDATE, **verdict.history.options)
    accept(again, verdict.spec, verdict.refutation)


@pytest.mark.parametrize("lock", ["2", "2 for update"])
def test_what_wrote_in_between_is_accused(load, lock):
    """What a transaction wrote between the two reads may depend on the first one."""
    third = [("r", "x", 1, "1"), ("w", "y", 2, "1"), ("r", "x", 2, lock), ("w", "x", 3, "3")]
    verdict = isolang.check(load([*READ_THEN_LOCK[:2], third]), "ser")
    assert verdict.outcome == "invalid"


def test_a_satisfied_level_does_not_ask(load):
    """Where both reads are allowed, the verdict is valid, with both of them."""
    verdict = isolang.check(load(READ_THEN_LOCK), "pl-2")
    assert verdict.outcome == "valid"
    assert not verdict.history.options


def test_levels_and_findings(load):
    """Levels that only superseded reads violate are unknown; such reads are no finding."""
    history = load(READ_THEN_LOCK)
    levels = levels_of(history).levels
    assert {levels[name].standing for name in ("ser", "si", "ra")} == {"unknown"}
    assert "superseded reads" in levels["ser"].reason
    assert levels["rc"].standing == "satisfied"
    assert levels_of(without_superseded_reads(history)).levels["ser"].standing == "satisfied"
    both = levels_of(load(READ_THEN_LOCK + LOST_UPDATE)).levels
    assert (both["ser"].standing, both["ser"].anomaly) == ("violated", "fractured read")
    found = findings_of(load(READ_THEN_LOCK + LOST_UPDATE))
    assert [one.anomaly for one in found.anomalies] == ["lost update"]
    assert "1 read of 1 transaction" in found.not_finished


def test_the_commands(load, capfd, tmp_path):
    """`check` says unknown with exit code 3, and decides with the option; so do its files."""
    history = load(READ_THEN_LOCK + LOST_UPDATE)
    minimal = tmp_path / "minimal.edn"
    arguments = ("--minimal", str(minimal), "--certificate", str(tmp_path / "certificates"))
    run = run_here(capfd, "check", "--spec", "ser", *arguments, history.name)
    assert run.code == 1
    assert isolang.check(isolang.load_history(minimal), "ser").outcome == "invalid"
    (certificate,) = (tmp_path / "certificates").iterdir()
    assert run_here(capfd, "verify", str(certificate), history.name).code == 0
    load(READ_THEN_LOCK)
    run = run_here(capfd, "check", "--spec", "ser", history.name)
    assert (run.code, run.out.split()[0]) == (3, "UNKNOWN")
    for option, code in (("ignore", 0), ("count", 1)):
        arguments = ("--spec", "ser", "--superseded-reads", option)
        assert run_here(capfd, "check", *arguments, history.name).code == code


def random_transactions(random):
    """A few transactions that read what some earlier one wrote, often twice and under a lock."""
    versions = {"x": [1], "y": [1]}
    transactions = [[("w", "x", 1, "1"), ("w", "y", 1, "2")]]
    for _ in range(random.randrange(2, 5)):
        ops = []
        for n in range(1, random.randrange(2, 6)):
            key = random.choice("xy")
            lock = random.choice(["", "", " for update", " for share"])
            if random.random() < 0.7:
                ops.append(("r", key, random.choice(versions[key][-3:]), f"{n}{lock}"))
            else:
                versions[key].append(len(versions[key]) + 1)
                ops.append(("w", key, versions[key][-1], str(n)))
        transactions.append(ops)
    return transactions


def without(ops):
    """Operations without the superseded reads, found by the definition."""
    kept = []
    for n, (kind, key, value, _) in enumerate(ops):
        later = ops[n + 1 :]
        until = next((i for i, one in enumerate(later) if one[0] == "w"), len(later))
        superseded = kind == "r" and any(
            other[1] == key and other[2] != value and "for" in other[3] for other in later[:until]
        )
        if not superseded:
            kept.append(ops[n])
    return kept


@pytest.mark.slow
@pytest.mark.parametrize(
    "level", quick_first(["ser", "si", "ra", "pl-2", "sser"], 2, rest="campaign")
)
def test_random_histories(load, level):
    """`ignore` judges what is left without these reads, and the default is never more definite."""
    random, seen = Random(f"superseded {level}"), set()
    for _ in range(50):
        transactions = random_transactions(random)
        left = [without(ops) for ops in transactions]
        plain = isolang.check(load(left, superseded_reads="count"), level, certify=False)
        count, ignore, asked = (
            isolang.check(load(transactions, superseded_reads=option), level).outcome
            for option in ("count", "ignore", "auto")
        )
        assert ignore == plain.outcome
        expected = {
            ("valid", "valid"): "valid",
            ("invalid", "valid"): "unknown",
            ("invalid", "invalid"): "invalid",
        }
        assert asked == expected[count, ignore]
        seen.add(asked)
    assert seen == {"valid", "invalid", "unknown"} or level == "pl-2"


@pytest.mark.parametrize("packed", [False, True])
def test_a_recording_that_cannot_be_read_again(load, tmp_path, packed):
    """Locks count also in a compressed file and in a stream."""
    path = Path(load(READ_THEN_LOCK).name)
    if packed:
        path.with_suffix(".edn.gz").write_bytes(gzip.compress(path.read_bytes()))
    for option, outcome in (("auto", "unknown"), ("ignore", "valid"), ("count", "invalid")):
        source = path.with_suffix(".edn.gz") if packed else io.BytesIO(path.read_bytes())
        for more in ({}, {"initial_value": 7}, {"ignore_versions": True}):
            if more and not packed:
                source = io.BytesIO(path.read_bytes())
            history = isolang.load_history(source, superseded_reads=option, **more)
            assert isolang.check(history, "ser").outcome == outcome

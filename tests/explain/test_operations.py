"""Violations in logs of single operations are told in the words of linearizability."""

import pytest

import isolang

#: Process 0 writes 1 and then 2; what process 1 read, and whether that was after the second write.
LOG = """{{:process 0, :type :invoke, :f :write, :value 1}}
{{:process 0, :type :ok, :f :write, :value 1}}
{{:process 0, :type :invoke, :f :write, :value 2}}
{{:process 0, :type :ok, :f :write, :value 2}}
{{:process {process}, :type :invoke, :f :read, :value nil}}
{{:process {process}, :type :ok, :f :read, :value {value}}}
"""
STALE = "a stale read: an operation read a value that had already been replaced"
NO_LINEARIZATION = f"{STALE}; the operations on :register have no linearization"
NOT_SEQUENTIAL = (
    f"{STALE}; no order of the operations on :register that keeps each session's explains what "
    "they read: not sequentially consistent"
)


def check(path, spec, **options):
    verdict = isolang.check(isolang.load_history(path, **options), spec)
    assert verdict.certified
    return verdict


@pytest.mark.parametrize(
    ("spec", "process", "value", "meaning"),
    [
        ("linearizable", 1, 1, NO_LINEARIZATION),
        ("linearizable", 0, 1, NOT_SEQUENTIAL),
        ("sequential", 0, 1, NOT_SEQUENTIAL),
        ("coherence", 0, 1, NOT_SEQUENTIAL),
        ("sequential", 1, 3, "an operation read a value that no operation wrote"),
    ],
)
def test_of_operations(tmp_path, spec, process, value, meaning):
    """What is wrong, and which order there is none of."""
    path = tmp_path / "register.edn"
    path.write_text(LOG.format(process=process, value=value))
    verdict = check(path, spec)
    assert (verdict.outcome, verdict.violation.meaning) == ("invalid", meaning)


def test_each_key_by_itself(tmp_path):
    """Two keys, each fine by itself: together they are not sequentially consistent."""
    path = tmp_path / "registers.edn"
    steps = [(0, "write", "[:x 1]"), (0, "read", "[:y nil]"), (1, "write", "[:y 1]"),
             (1, "read", "[:x nil]")]  # fmt: skip
    path.write_text(
        "".join(
            f"{{:process {p}, :type {kind}, :f :{f}, :value {value}}}\n"
            for p, f, value in steps
            for kind in (":invoke", ":ok")
        )
    )
    meaning = check(path, "sequential").violation.meaning
    assert "; no order of the operations that keeps each session's explains" in meaning
    assert check(path, "sequential", per_key=True).outcome == "valid"
    assert check(path, "coherence").outcome == "valid"


def test_transactions_keep_their_words(tmp_path):
    """A history of transactions speaks of them, though each has one operation."""
    path = tmp_path / "transactions.edn"
    path.write_text(
        "{:process 0, :type :ok, :f :txn, :value [[:w :x 1]]}\n"
        "{:process 0, :type :ok, :f :txn, :value [[:r :x nil]]}\n"
    )
    assert check(path, "ser").violation.meaning.startswith("a transaction missed a write")

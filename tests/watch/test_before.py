"""A stream that is joined late, and a database that had data already."""

import random
from collections import Counter
from pathlib import Path

import pytest
from support.watching import LEVELS, lines, random_history, watch_in_rounds, with_rows_before

from isolang import check, load_history
from isolang.errors import IsolangError
from isolang.history import save_history
from isolang.watch import Stream, Watch, WatchReport, check_chain, verify_chain
from isolang.watch.chain import NAME


def report_of(folder: Path, level: str, text: str, **reading: object) -> WatchReport:
    path = folder / "log.edn"
    path.write_text(text)
    stream = Stream([path], follow=False, batch=150)
    watch = Watch(level, stream=stream, folder=folder / "state", round=1, **reading)
    for batch in stream:
        list(watch.feed(batch))
    stream.close()
    return watch.report


SEEN = {"unwritten_initial": True}
OTHERS = ("1 [:w z 1]", "2 [:w z 2]", "3 [:r z 2]", "1 [:w z 3]", "2 [:r z 3]")


@pytest.mark.slow
def test_the_verdict_is_that_of_the_whole(tmp_path):
    """Random streams of databases with data: one verdict, and each chain is verified."""
    counts: Counter[str] = Counter()
    for number in range(16):
        rng = random.Random(f"before {number}")
        level = rng.choice(LEVELS)
        history, reading = with_rows_before(rng, random_history(rng))
        path = tmp_path / f"{number}.edn"
        save_history(history, path, format="edn")
        whole = check(load_history(path, **reading), level, simplest=False, timeout=2)
        found = watch_in_rounds(rng, path, level, tmp_path / str(number), counts, **reading)
        counts[found.outcome] += 1
        if {whole.outcome, found.outcome} <= {"valid", "invalid"}:
            assert found.outcome == whole.outcome, (number, level)
        if found.outcome == "valid":
            stream = Stream([path], follow=False)
            assert verify_chain(tmp_path / str(number), stream, by_definition=number % 4 == 0) > 0
    assert min(counts["valid"], counts["invalid"], counts["cuts"]) >= 5, counts


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        (("0 [:r x 7]", "1 [:r x 7]", "0 [:w x 1]", *OTHERS, "1 [:r x 1]"), "valid"),
        (("0 [:r x 7]", *OTHERS, "1 [:r x 8]"), "invalid"),  # two values
        (("0 [:r x nil]", *OTHERS, "1 [:r x 7]"), "invalid"),  # nil is one
        (("0 [:r x 7]", *OTHERS, "1 [:r x nil]"), "invalid"),
        (("0 [:w x 1]", *OTHERS, "1 [:r x 7]"), "valid"),  # stale, and the first in its order
        (("0 [:w x 1]", *OTHERS, "1 [:r x 7] [:w q 1]", "1 [:r x 1]", "1 [:r x 7]"), "invalid"),
        (("0 [:r x [5 6]] [:append x 1]", *OTHERS, "1 [:r x [5 6 1]]"), "valid"),
        (("0 [:r x [5 6]] [:append x 1]", *OTHERS, "1 [:r x [6 5 1]]"), "invalid"),
        (("0 [:append x 1]", *OTHERS, "1 [:r x [5 6 1]]", "2 [:r x [5 6 1]]"), "valid"),
    ],
)
def test_what_reads_show(tmp_path, text, outcome):
    """The first committed read of what nobody wrote says what a key held; there is one value."""
    level = "pl-3" if text[0].startswith("0 [:w x 1]") and outcome == "valid" else "ser"
    report = report_of(tmp_path, level, lines(*text), **SEEN)
    assert report.outcome == outcome
    whole = check(load_history(tmp_path / "log.edn", **SEEN), level)
    assert whole.outcome == outcome
    if outcome == "valid":
        assert "at most one for each key" in report.note
        stream = Stream([tmp_path / "log.edn"], follow=False)
        found = check_chain(tmp_path / "state", stream, by_definition=True)
        assert found.transactions == len(text)
        assert dict(found.read_as)["before"] == report.note
    else:
        assert report.verdict.certified


@pytest.mark.parametrize("late", ["3 [:w x 7]", "3 [:append l 5]"])
def test_a_later_write_of_it_decides_nothing(tmp_path, late):
    """What was taken for there before is written: unknown, with the line."""
    text = lines("0 [:r x 7] [:r l [5]]", *OTHERS, late)
    report = report_of(tmp_path, "ser", text, **SEEN)
    assert report.outcome == "unknown"
    assert "log.edn:13" in report.note
    assert "--initial-value" in report.note


def test_what_is_said(tmp_path):
    """A value of all keys, or of one; nil is no value then."""
    text = lines("0 [:r x 0] [:r y 5]", "1 [:w x 1]", *OTHERS, "2 [:r x 1]")
    said = ("0", "y=5")
    assert report_of(tmp_path, "ser", text, initial_value=said).outcome == "valid"
    log = tmp_path / "log.edn"
    assert verify_chain(tmp_path / "state", Stream([log], follow=False), by_definition=True) == 8
    (tmp_path / "other").mkdir()
    text += lines("3 [:r z nil]")
    assert report_of(tmp_path / "other", "ser", text, initial_value=said).outcome == "invalid"


def test_a_key_that_never_came_is_told(tmp_path):
    """It may be misspelt."""
    said = {"initial_value": ("x=7", "y=3")}
    report = report_of(tmp_path, "ser", lines("0 [:r x 7]"), **said)
    assert report.outcome == "valid"
    assert "; the stream contained no key 'y'" in report.note


def test_a_chain_that_says_too_much_is_refused(tmp_path):
    """A value that somebody wrote, or one that nobody asked for, was not there before."""
    text = lines("0 [:r x 7]", *OTHERS)
    report_of(tmp_path, "ser", text, **SEEN)
    chain, log = tmp_path / "state" / NAME, tmp_path / "log.edn"
    good = chain.read_bytes()
    assert b'"entry":"begin"' in good
    log.write_text(text + lines("0 [:w x 7]"))
    with pytest.raises(IsolangError, match="wrong initial value"):
        verify_chain(tmp_path / "state", Stream([log], follow=False))
    log.write_text(text)
    chain.write_bytes(good.replace(b'"unwritten_initial":true', b'"unwritten_initial":false'))
    with pytest.raises(IsolangError):
        verify_chain(tmp_path / "state", Stream([log], follow=False))

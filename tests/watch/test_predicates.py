"""Predicate reads in a stream: what a cut left is known to those that come later."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from support.watching import LEVELS, Scans, lines, watch_and_compare

from isolang.errors import HistoryError, IsolangError
from isolang.watch import Stream, Watch, WatchReport, verify_chain
from isolang.watch.chain import NAME


def watch_of(folder: Path, text: str, level: str, **options: object) -> WatchReport:
    """Watch a log that is complete, in rounds of one transaction."""
    folder.mkdir()
    (folder / "log.edn").write_text(text)
    stream = Stream([folder / "log.edn"], follow=False, batch=150)
    watch = Watch(level, stream=stream, folder=folder / "state", round=1, **options)
    for batch in stream:
        list(watch.feed(batch))
    return watch.report


@pytest.mark.slow
def test_the_verdict_is_that_of_the_whole(tmp_path):
    """Random streams of predicate reads: one verdict, and both checkers accept each chain."""
    counts: Counter[str] = Counter()
    for number in range(24):
        rng = random.Random(f"predicates {number}")
        level = rng.choice(LEVELS)
        path = tmp_path / f"{number}.edn"
        path.write_text(Scans(rng).text())
        found = watch_and_compare(rng, path, level, tmp_path / str(number), counts)
        if found.outcome == "valid":
            stream = Stream([path], follow=False)
            verify_chain(tmp_path / str(number), stream, by_definition=number % 4 == 0)
    assert counts["valid"] > 6 < counts["cuts"]
    assert counts["invalid"] > 3


LONG_AGO = ("0 [:w [:t 1] 5]", "0 [:w [:t 2] 3]", "0 [:w [:u 1] 5]", "0 [:delete [:t 2]]")
BETWEEN = tuple(f"0 [:w y {value}]" for value in range(9))
ALL = "{:table :t :where :true}"


@pytest.mark.parametrize(
    ("rows", "outcome"),
    [("{[:t 1] 5}", "valid"), ("{}", "invalid"), ("{[:t 1] 5, [:t 2] 3}", "invalid")],
)
def test_rows_that_a_cut_left_are_known(tmp_path, rows, outcome):
    """One that is there must be returned, one that was deleted must not, of another table none."""
    text = lines(*LONG_AGO, *BETWEEN, f"1 [:rp {ALL} {rows}]", "1 [:w y 20]")
    report = watch_of(tmp_path / "sser", text, "sser")
    assert report.outcome == outcome
    if outcome == "invalid":
        assert report.verdict.certified
    # Where real time is no edge it may be as old as it likes.
    assert watch_of(tmp_path / "ser", text, "ser").outcome == "valid"


def test_a_chain_whose_reads_miss_a_row_is_refused(tmp_path):
    """The same chain over a log in which the read returned nothing; all hashes are made to fit."""
    import hashlib
    import json

    read = lines(*LONG_AGO, *BETWEEN, f"1 [:rp {ALL} {{[:t 1] 5}}]")
    missed = lines(*LONG_AGO, *BETWEEN, f"1 [:rp {ALL} {{        }}]")
    assert watch_of(tmp_path / "of", read, "sser").outcome == "valid"
    path, state = tmp_path / "of" / "log.edn", tmp_path / "of" / "state"
    assert verify_chain(state, Stream([path], follow=False), by_definition=True) == 14
    path.write_text(missed)
    previous, out = "", b""
    for line in (state / NAME).read_bytes().splitlines():
        entry = json.loads(line) | {"previous": previous}
        entry["spans"] = [
            [file, start, end, hashlib.sha256(missed.encode()[start:end]).hexdigest()]
            for file, start, end, _ in entry.get("spans", ())
        ]
        if entry["entry"] != "part":
            del entry["spans"]
        made = json.dumps(entry).encode() + b"\n"
        previous, out = hashlib.sha256(made).hexdigest(), out + made
    (state / NAME).write_bytes(out)
    for by_definition in (False, True):
        stream = Stream([path], follow=False)
        with pytest.raises(IsolangError, match="part"):
            verify_chain(state, stream, by_definition=by_definition)


def test_a_version_that_was_not_seen_convicts_with_all_writers(tmp_path):
    """A read that saw anything but 1 may have seen what another transaction wrote."""
    text = lines("0 [:w x 1]", "0 [:w x 2]", *BETWEEN, "1 [:r-not-in x [1]]", "2 [:r y 3]")
    report = watch_of(tmp_path / "sser", text, "sser")
    assert report.outcome == "invalid"  # the last read is stale; the one before is none of it
    assert all("r-not-in" not in str(view) for view in report.verdict.violation.transactions)
    text = lines("0 [:w x 1]", "0 [:w x 2]", *BETWEEN, "1 [:r-not-in x [1]]", "2 [:r x 2]")
    assert watch_of(tmp_path / "valid", text, "sser").outcome == "valid"


def test_what_cannot_be_watched_is_refused(tmp_path):
    """With the line: a level without the argument, rows that reads show, a row that is nil."""
    text = lines(f"0 [:rp {ALL} {{}}]")
    with pytest.raises(HistoryError, match=r"log.edn:1: .*under PL-3U \(expected one of"):
        watch_of(tmp_path / "level", text, "pl-3u")
    with pytest.raises(HistoryError, match="together with --initial-value"):
        watch_of(tmp_path / "before", text, "ser", unwritten_initial=True)
    null = lines("0 [:w [:t 1] nil]", *BETWEEN, f"1 [:rp {ALL} {{}}]")
    with pytest.raises(HistoryError, match="a row that is nil"):
        watch_of(tmp_path / "nil", null, "ser")


def test_it_goes_on_after_a_missed_row(tmp_path):
    """With --to-the-end what the accused returned is left out, and the rest is judged."""
    text = lines(
        *LONG_AGO, *BETWEEN, f"1 [:rp {ALL} {{}}]", "2 [:w y 20]", f"2 [:rp {ALL} {{[:t 1] 5}}]"
    )
    report = watch_of(tmp_path / "of", text, "sser", to_the_end=True)
    assert (report.outcome, report.violations, report.seen) == ("invalid", 1, 16)


@pytest.mark.parametrize("where", ["[:= :a 7]", "[:>= :a 99]", '[:= :b "x7"]', "[:mod :a 50 7]"])
def test_rows_that_went_to_disk_are_known(tmp_path, monkeypatch, where):
    """Found by an index of the column, or each row looked at: as they are, whatever they were."""
    monkeypatch.setattr("isolang.watch.parts._SAVE_EACH", 1)
    row = '{{:a {0}, :b "x{0}"}}'
    old = "0 " + " ".join(f"[:w [:t {k}] {row.format(k % 50)}]" for k in range(100))
    new = [
        f"0 [:w [:t 7] {row.format(99)}]",
        "0 [:delete [:t 57]]",
        f"0 [:w [:t 8] {row.format(7)}]",
    ]
    found = f"[:t 8] {row.format(7)}" if "99" not in where else f"[:t 7] {row.format(99)}"
    read = f"1 [:rp {{:table :t, :where {where}}} {{%s}}]"
    before = read % " ".join(f"[:t {k}] {row.format(7)}" for k in (7, 57) if "99" not in where)
    for name, shown, outcome in (("all", found, "valid"), ("none", "", "invalid")):
        text = lines(old, *BETWEEN, before, *new, *BETWEEN, read % shown)
        report = watch_of(tmp_path / name, text, "sser", memory=1)
        assert report.outcome == outcome
        if outcome == "valid":
            stream = Stream([tmp_path / name / "log.edn"], follow=False)
            assert verify_chain(tmp_path / name / "state", stream) == report.seen

"""The states of a round: one table, each row of which happens."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest
from support.watching import lines

from isolang.limits import Deadline
from isolang.watch import Stream, Watch, rounds
from isolang.watch.chain import NAME
from isolang.watch.rounds import OUTCOMES, TRANSITIONS, Event, State


def test_the_table_in_the_docstring_is_the_one_in_the_code():
    """Each row of the documented table is a transition, and none is missing."""
    _, _, rows, _ = re.split(r"^=[= ]+$", rounds.__doc__, maxsplit=3, flags=re.MULTILINE)
    found = {}
    for row in rows.strip().splitlines():
        if not row[0].isspace():
            state, event, following, _ = re.split(r" {2,}", row, maxsplit=3)
            found[state, event] = following
    assert found == TRANSITIONS


def test_each_state_leads_to_an_end():
    """A state has transitions or an outcome, never both; every event is in the table."""
    inner = {state for state, _ in TRANSITIONS}
    assert inner | OUTCOMES.keys() == set(get_args(State))
    assert not inner & OUTCOMES.keys()
    assert {event for _, event in TRANSITIONS} == set(get_args(Event))
    assert set(TRANSITIONS.values()) <= inner | OUTCOMES.keys()


class Recorded(dict):
    """The table, with the rows that were used."""

    def __init__(self) -> None:
        super().__init__(TRANSITIONS)
        self.used = set()

    def __getitem__(self, row):
        self.used.add(row)
        return super().__getitem__(row)


@pytest.fixture(name="table")
def _table(monkeypatch):
    table = Recorded()
    monkeypatch.setattr(rounds, "TRANSITIONS", table)
    return table


def watch_of(folder: Path, text: str, level: str, *, follow: bool = False, **options) -> Watch:
    """Watch a log in rounds of one transaction; one that is followed may go on."""
    folder.mkdir()
    path = folder / "log.edn"
    path.write_text(text)
    stream = Stream([path], follow=follow, batch=60)
    watch = Watch(level, stream=stream, folder=folder / "state", **({"round": 1} | options))
    while watch.report is None:
        batch = stream.next(0)
        list(watch.feed(batch))
        if batch.ended or (follow and not batch.spans):
            break
    stream.close()
    return watch


BAD = ("0 [:w x {0}]", "1 [:r x {0}]", "2 [:r x nil]")
STALE = lines("0 [:w x 1]", "1 [:w x 2]", "2 [:r x 2]", "3 [:w y 1]", "0 [:w z 1]", "4 [:r x 1]")
EARLY = lines("0 [:w z 1]", "1 [:r x 5]", *(f"0 [:w z {i}]" for i in range(2, 9)))
LATE = "{:type :ok, :process 7, :f :txn, :value [[:w x 5]]}\n"


def test_every_transition_happens(tmp_path, table, monkeypatch):
    """Small logs go through each row of the table."""
    bad = "".join(lines(*(one.format(i) for one in BAD)) for i in (1, 2))
    assert watch_of(tmp_path / "a", bad, "sser").report.outcome == "invalid"
    assert watch_of(tmp_path / "b", bad, "sser", to_the_end=True).report.violations == 2
    assert watch_of(tmp_path / "c", STALE, "ser").report.outcome == "valid"
    assert watch_of(tmp_path / "d", STALE, "ser", most=1).report.outcome == "suspected"
    assert watch_of(tmp_path / "e", EARLY + LATE, "ser").report.outcome == "valid"
    assert watch_of(tmp_path / "f", "", "ser").report.outcome == "unknown"
    for value in (1, 2):
        one = lines("0 [:w x 1]", "9 [:w y 1]").splitlines(keepends=True)
        two = lines("1 [:w x 2]").splitlines(keepends=True)
        text = one[0] + two[0] + one[1] + two[1] + "".join(one[2:]) * 9
        found = watch_of(tmp_path / f"j{value}", text + lines(f"2 [:r x {value}]"), "ser", round=3)
        assert found.report.outcome == "valid"
    with monkeypatch.context() as patched:
        # The log is never searched, so that only all transactions together convict.
        patched.setattr("isolang.watch.accusation._MOST_VALUES", -1)
        assert watch_of(tmp_path / "g", bad, "sser", to_the_end=True).report.violations == 2
    with monkeypatch.context() as patched:
        patched.setattr("isolang.watch.judging.Deadline", lambda _: Deadline(1e-9))
        done = "{:type :ok, :process 0, :f :txn, :value [[:r x [2]]]}\n"
        found = watch_of(tmp_path / "h", done, "ser", follow=True, initial_value=["x=[9]"])
        assert found.report is None
        found = watch_of(tmp_path / "i", lines("0 [:w x 1]"), "ser")
        assert found.report.outcome == "unknown"
    assert table.used == TRANSITIONS.keys()


def test_an_undecided_window_with_a_stale_list_ends_once(tmp_path, table, monkeypatch):
    """No time is left to check it, and no room to put cuts back: suspected, and no error."""
    path = tmp_path / "log.edn"
    path.write_text(
        lines("0 [:append x 1]", "1 [:r x [1]]", "2 [:w y 1]", "2 [:w y 2]", "1 [:r x [2 1]]")
    )
    stream = Stream([path], follow=False, batch=60)
    watch = Watch("ser", stream=stream, folder=tmp_path / "state", round=1, most=1)
    for batch in stream:
        if len(watch.chain) == 3:
            monkeypatch.setattr("isolang.watch.judging.Deadline", lambda _: Deadline(1e-9))
        list(watch.feed(batch))
    assert ("check", "undecided") in table.used
    assert (watch.report.outcome, watch.report.parts) == ("suspected", 3)
    assert "3 parts would have to be checked again" in watch.report.note
    assert (tmp_path / "state" / NAME).read_text().count('"entry":"end"') == 1


def test_the_work_of_all_rounds_is_proportional_to_the_log(tmp_path):
    """However many transactions an open one holds: each is judged three times on average."""
    path = tmp_path / "log.edn"
    opens = "{:type :invoke, :process 9, :f :txn, :value [[:w x 0]]}\n"
    after = (f"{i % 4} [:r x {i}] [:w x {i + 1}]" for i in range(400))
    path.write_text(opens + lines(*after))
    stream = Stream([path], follow=False, batch=150)
    watch = Watch("ser", stream=stream, folder=tmp_path / "state", round=4, grace=100)
    rounds = [one for batch in stream for one in watch.feed(batch)]
    watch.close()
    assert watch.report.outcome == "valid"
    assert max(one.kept for one in rounds) > 200
    assert 5 < len(rounds) < 20
    assert sum(one.judged for one in rounds) < 3 * 401

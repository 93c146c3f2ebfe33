"""What a growing log's :index says of what is still to come: who waits for it, and who need not."""

from __future__ import annotations

import random
import re
from collections import Counter
from pathlib import Path
from unittest.mock import patch

import pytest
from support.watching import lines, random_history

from isolang import check, load_history
from isolang.errors import UnsupportedError
from isolang.history import save_history
from isolang.watch import Stream, Watch, WatchReport, position_in


def numbered(text: str, *, first: int = 0, gap: int = -1, restart: int = -1) -> list[str]:
    """The lines with :index and :time, of which one number may be missing or begin again."""
    made, index = [], first
    for number, line in enumerate(line for line in text.splitlines() if line.startswith("{")):
        index = 0 if number == restart else index + (number == gap)
        body = re.sub(r":(?:index|time) \d+, |, :(?:index|time) \d+", "", line.rstrip()[:-1])
        made.append(f"{body}, :time {10 * number}, :index {index}}}\n")
        index += 1
    return made


class Growing:
    """A log that grows, and a watch of it that waits for long for what its beginning may hide."""

    def __init__(self, log: Path, state: Path, level: str, *, folder: bool) -> None:
        self.log, self.state, self.level = log, state, level
        self.source = log.parent if folder else log
        self.log.touch()
        self.until_idle: float | None = None
        self.begin()

    def begin(self) -> None:
        self.stream = Stream(
            [self.source], resume=position_in(self.state), until_idle=self.until_idle, batch=200
        )
        self.watch = Watch(
            self.level, stream=self.stream, folder=self.state, round=8, grace=10**6, timeout=5
        )

    def kill(self) -> None:
        self.stream.close()
        self.watch.close()
        self.begin()

    def add(self, *some: str) -> WatchReport | None:
        with self.log.open("a") as file:
            file.write("".join(some))
        while self.watch.report is None:
            batch = self.stream.next(0.0)
            list(self.watch.feed(batch))
            if not batch.spans:
                if self.watch.report is None:
                    self.last = self.watch.judge_now()
                break
        return self.watch.report

    def end(self) -> WatchReport:
        """Nothing more comes: it is judged to its end, by a watch that goes on."""
        self.until_idle = 1e-9
        self.kill()
        while self.watch.report is None:
            list(self.watch.feed(self.stream.next(0.0)))
        return self.watch.report


BEFORE = lines("0 [:w z 1]", "1 [:r z 1]")
THIN = lines("0 [:r x 5]")
AFTER = lines("1 [:w z 2]", "0 [:w z 3]", "1 [:w z 4]")
EXPLAINS = "{:type :ok, :process 7, :f :txn, :value [[:w x 5]]}\n"
LOST_UPDATE = "".join(
    f"{{:type :{kind}, :process {p}, :f :txn, :value [[:r y nil] [:w y {p}]]}}\n"
    for kind in ("invoke", "ok")
    for p in (0, 1)
)


@pytest.mark.parametrize("folder", [False, True])
@pytest.mark.parametrize("wrong", [THIN, LOST_UPDATE])
@pytest.mark.parametrize("level", ["ser", "sser", "si"])
def test_contiguous_numbers_convict_at_once(tmp_path, level, wrong, folder):
    """Also in a folder, where lines are ordered by their times: nothing earlier can still come."""
    text = numbered(BEFORE + wrong + AFTER)
    log = tmp_path / "log" / "history.edn"
    log.parent.mkdir()
    growing = Growing(log, tmp_path / "state", level, folder=folder)
    before = len(BEFORE.splitlines())
    assert growing.add(*text[:before]) is None
    report = growing.add(*text[before:])
    assert (report.outcome, report.verdict.certified) == ("invalid", True)


#: What keeps the numbers from telling that nothing was in flight where the log begins.
NOT_TOLD = {
    "none": lambda text: [re.sub(r", :index \d+", "", line) for line in text],
    "not from 0": lambda text: numbered("".join(text), first=1),
    "a gap": lambda text: numbered("".join(text), gap=3),
    "begins again": lambda text: numbered("".join(text), restart=2),
    "some have none": lambda text: [text[0], re.sub(r", :index \d+", "", text[1]), *text[2:]],
}


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("how", NOT_TOLD)
def test_what_the_numbers_leave_open_is_waited_for(tmp_path, how, killed):
    """A transaction from before the log explains the read: suspected, saying why, then valid."""
    text = NOT_TOLD[how](numbered(BEFORE + THIN + AFTER + EXPLAINS))
    growing = Growing(tmp_path / "log.edn", tmp_path / "state", "ser", folder=False)
    assert growing.add(*text[:-1]) is None
    assert growing.last.outcome == "suspected"
    assert "no transaction was in progress when the log began" in growing.last.note
    if killed:
        growing.kill()
        assert growing.add() is None
    assert growing.add(text[-1]) is None
    assert growing.end().outcome == "valid"
    assert check(load_history(growing.log), "ser").outcome == "valid"


def test_a_completion_without_an_invocation_takes_the_numbers_word(tmp_path):
    """Who numbers completions alone says nothing of what was in flight."""
    first = EXPLAINS.replace("x 5", "q 1").replace("process 7", "process 8")
    text = numbered(first + BEFORE + THIN + AFTER + EXPLAINS)
    growing = Growing(tmp_path / "log.edn", tmp_path / "state", "ser", folder=False)
    assert growing.add(*text[:-1]) is None
    assert growing.last.outcome == "suspected"
    assert growing.add(text[-1]) is None
    assert growing.end().outcome == "valid"


def test_a_gap_in_a_folder_is_waited_for(tmp_path):
    """The missing line may be earlier by its time."""
    log = tmp_path / "log" / "history.edn"
    log.parent.mkdir()
    text = numbered(BEFORE + THIN + AFTER, gap=6)
    growing = Growing(log, tmp_path / "state", "ser", folder=True)
    assert growing.add(*text) is None
    assert growing.last.outcome == "suspected"
    assert "the order of the lines does not guarantee this" in growing.last.note
    assert growing.end().outcome == "invalid"


def test_a_missing_number_of_a_recorder_is_named(tmp_path):
    """Its lines are in no order: what is missing is waited for, and said."""
    text = [
        re.sub(r"\{(.*), :index (\d+)\}", r"{:index \2, \1}", line)
        for line in numbered(BEFORE + lines("2 [:w q 1]") + THIN + AFTER)
    ]
    growing = Growing(tmp_path / "log.edn", tmp_path / "state", "ser", folder=False)
    assert growing.add(*text[:4], *text[6:]) is None
    assert growing.last.note == "waits for :index 4, which has not appeared yet"
    assert growing.add(*text[4:6]).outcome == "invalid"


def test_another_order_than_the_lines_is_refused(tmp_path):
    """:index says which event is earlier, and so do lines."""
    text = numbered(BEFORE + THIN + AFTER)
    growing = Growing(tmp_path / "log.edn", tmp_path / "state", "ser", folder=False)
    with pytest.raises(UnsupportedError, match="another order than the lines"):
        growing.add(*text[:3], text[4], text[3], *text[5:])


@pytest.mark.slow
def test_random_logs_are_judged_like_the_whole(tmp_path):
    """Growing, with numbers of every kind, killed now and then: what convicts early is final."""
    counts: Counter[str] = Counter()
    for case in range(12):
        rng = random.Random(f"numbered {case}")
        level = rng.choice(("ser", "sser", "si", "strong-si", "rc"))
        log = tmp_path / str(case) / "history.edn"
        log.parent.mkdir()
        save_history(random_history(rng), log, format="edn")
        given = log.read_text()
        if rng.random() < 0.3:  # a value that nobody wrote
            given = re.sub(r"(:type :ok, .*\[:r \S+) \d+\]", r"\1 987654]", given, count=1)
        size = len(given.splitlines())
        how = rng.choice(({}, {}, {"first": 3}, {"gap": size // 3}, {"restart": size // 2}))
        text = numbered(given, **how)
        if "restart" not in how and rng.random() < 0.4:
            # Its beginning is lost, so that completions stand alone.
            text = text[rng.randint(1, 6) :]
            text = numbered("".join(text)) if rng.random() < 0.5 else text
        log.unlink()
        with patch("isolang.watch.parts._SAVE_EACH", 1):
            growing = Growing(log, tmp_path / f"state {case}", level, folder=rng.random() < 0.5)
            report, at = None, 0
            while report is None and at < len(text):
                step = rng.randint(1, 40)
                report, at = growing.add(*text[at : at + step]), at + step
                if report is None and rng.random() < 0.2:
                    growing.kill()
                    counts["killed"] += 1
            counts["early"] += report is not None and at < len(text)
            log.write_text("".join(text))
            report = report or growing.end()
        whole = check(load_history(log), level, simplest=False, timeout=5)
        counts[whole.outcome] += 1
        if {whole.outcome, report.outcome} <= {"valid", "invalid"}:
            assert report.outcome == whole.outcome, (case, level, how)
            counts["compared"] += 1
    assert min(counts["valid"], counts["invalid"], counts["early"]) >= 2, counts
    assert counts["compared"] >= 9, counts

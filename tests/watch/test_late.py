"""What a silent client may still bring is no reason to convict another one."""

from pathlib import Path

import pytest

from isolang import check, load_history
from isolang.watch import Stream, Watch, WatchReport, verify_chain


def transaction(process: int, value: str, begin: int, end: int) -> str:
    return "".join(
        f"{{:type :{kind}, :process {process}, :f :txn, :value [{value}], :time {time}}}\n"
        for kind, time in (("invoke", begin), ("ok", end))
    )


class Clients:
    """Two clients with a log each; nobody waits for one that is silent."""

    def __init__(self, folder: Path, level: str, **options: int) -> None:
        self.folder = folder / "logs"
        self.folder.mkdir()
        self.add("busy", transaction(0, "[:w z 1]", 3, 4))
        self.add("silent", transaction(7, "[:w y 1]", 1, 2))
        self.stream = Stream([self.folder], grace=0.0)
        self.watch = Watch(
            level, stream=self.stream, folder=folder / "state", round=1, grace=0, **options
        )
        self.step()

    def add(self, client: str, text: str) -> None:
        with (self.folder / f"{client}.edn").open("a") as file:
            file.write(text)

    def step(self) -> WatchReport | None:
        list(self.watch.feed(self.stream.next(0)))
        return self.watch.report

    def end(self) -> WatchReport | None:
        self.stream.stop()
        return self.step()


READ = transaction(0, "[:r x 5]", 100, 120) + transaction(0, "[:w z 2]", 130, 140)
WRITE = transaction(7, "[:w x 5]", 90, 95)


@pytest.mark.parametrize("level", ["ser", "sser", "rc"])
def test_a_write_that_is_late_convicts_nobody(tmp_path, level):
    """Its value was read before its line came: it waits, and says in the end what it rests on."""
    clients = Clients(tmp_path, level)
    clients.add("busy", READ)
    assert clients.step() is None
    report = clients.end()
    assert report.outcome == "suspected"
    assert "silent.edn did nothing before 120" in report.note
    assert len(report.places) == 1
    log = tmp_path / "all.edn"
    log.write_text(WRITE + READ)
    assert check(load_history(log), level).outcome == "valid"


def test_more_than_a_window_may_hold_is_not_waited_for(tmp_path):
    """The client stays silent, and the window is full: suspected."""
    clients = Clients(tmp_path, "ser", most=1)
    clients.add("busy", READ)
    assert clients.step().outcome == "suspected"


@pytest.mark.parametrize("level", ["ser", "sser", "rc"])
def test_what_comes_late_explains_the_read(tmp_path, level):
    """The write that was read before its line came is there before the window is full: valid."""
    clients = Clients(tmp_path, level)
    clients.add("busy", READ)
    assert clients.step() is None
    clients.add("silent", WRITE)
    clients.step()
    assert clients.end().outcome == "valid"


@pytest.mark.parametrize("level", ["ser", "sser"])
def test_a_late_write_is_judged(tmp_path, level):
    """One that comes before the next look explains what was read."""
    clients = Clients(tmp_path, level)
    clients.add("busy", transaction(0, "[:w z 2]", 130, 140))
    assert clients.step() is None
    clients.add("silent", WRITE)
    clients.add("busy", transaction(0, "[:r x 5]", 150, 160))
    clients.step()
    assert clients.end().outcome == "valid"
    assert verify_chain(tmp_path / "state", Stream([clients.folder], follow=False)) == 5


@pytest.mark.parametrize("level", ["ser", "sser", "rc"])
def test_a_client_that_has_come_by_explains_nothing(tmp_path, level):
    """It is as silent, but its last line is later than the read."""
    clients = Clients(tmp_path, level)
    clients.add("silent", transaction(7, "[:w y 2]", 125, 126))
    clients.add("busy", READ)
    assert clients.step().outcome == "invalid"


def test_the_end_convicts(tmp_path):
    """Of logs that are complete nothing is late."""
    clients = Clients(tmp_path, "ser")
    clients.add("busy", READ)
    stream = Stream([clients.folder], follow=False, grace=0.0)
    watch = Watch("ser", stream=stream, folder=tmp_path / "again", round=1)
    for batch in stream:
        list(watch.feed(batch))
    assert watch.report.outcome == "invalid"


def line(kind: str, process: int, value: str, more: str = "") -> str:
    return f"{{:type :{kind}, :process {process}, :f :txn, :value [{value}]{more}}}\n"


def in_order(*values: str) -> str:
    """Transactions one after the other, by the order of the lines."""
    return "".join(line(kind, 0, value) for value in values for kind in ("invoke", "ok"))


def by_time(process: int, value: str, begin: int, end: int) -> str:
    """One whose operations have times, so that the order of the lines is none."""
    times = f", :times [[{begin} {begin + 1}]]"
    return line("invoke", process, value, f", :time {begin}") + line(
        "ok", process, value, f", :time {end}{times}"
    )


FOLLOWING = tuple(f"[:w z {value}]" for value in range(2, 9))

#: What explains a read comes after the line of the read, though nothing went back before.
EXPLAINED_LATER = {
    "lines of another order than their times": (
        by_time(0, "[:w z 1]", 1, 3)
        + by_time(1, "[:r x 5]", 100, 120)
        + "".join(by_time(0, w, 130 + 20 * i, 140 + 20 * i) for i, w in enumerate(FOLLOWING)),
        by_time(7, "[:w x 5]", 90, 95),
    ),
    "in flight where the log begins": (
        in_order("[:w z 1]") + in_order("[:r x 5]", *FOLLOWING),
        line("ok", 7, "[:w x 5]"),
    ),
    "invoked without saying what": (
        in_order("[:w z 1]") + line("invoke", 7, "") + in_order("[:r x 5]", *FOLLOWING),
        line("ok", 7, "[:w x 5]"),
    ),
}


@pytest.mark.parametrize("level", ["ser", "sser", "rc"])
@pytest.mark.parametrize("what", EXPLAINED_LATER)
def test_what_a_later_line_explains_convicts_nobody(tmp_path, what, level):
    """Judged after each transaction: valid with that line, as the whole is; invalid without it."""
    reading, explanation = EXPLAINED_LATER[what]
    for number, text in enumerate((reading + explanation, reading)):
        path = tmp_path / f"{number}.edn"
        path.write_text(text)
        stream = Stream([path], follow=False, batch=150)
        watch = Watch(level, stream=stream, folder=tmp_path / f"state {number}", round=1)
        for batch in stream:
            list(watch.feed(batch))
        assert watch.report.outcome == check(load_history(path), level).outcome
        assert watch.report.outcome == ("invalid" if number else "valid")


def test_a_log_that_is_still_written_convicts_nobody(tmp_path):
    """Ctrl-C where a line of the log is missing before the last ones, as its :index says."""
    numbered = in_order("[:w z 1]") + line("invoke", 1, "[:r x 5]") + line("ok", 1, "[:r x 5]")
    text = "".join(
        one.replace("{", f"{{:index {number if number < 3 else number + 2}, ", 1)
        for number, one in enumerate(numbered.splitlines(keepends=True))
    )
    path = tmp_path / "log.edn"
    path.write_text(text)
    stream = Stream([path])
    watch = Watch("ser", stream=stream, folder=tmp_path / "state", round=1)
    list(watch.feed(stream.next(0)))
    stream.stop()
    list(watch.feed(stream.next(0)))
    assert watch.report.outcome == "suspected"


@pytest.mark.parametrize(
    ("value", "outcome"), [("[:r z 3]", "valid"), ("[:r z 20]", "suspected"), ("[:w q 1]", "valid")]
)
def test_a_file_that_is_new_at_the_end_is_judged(tmp_path, value, outcome):
    """It began long before what was cut: the cuts are put back, and nothing of it is missed."""
    clients = Clients(tmp_path, "sser")
    for number in range(2, 30):
        clients.add("busy", transaction(0, f"[:w z {number}]", 10 * number, 10 * number + 5))
        clients.step()
    assert len(clients.watch.chain) > 20
    clients.add("new", transaction(9, value, 31, 34))
    report = clients.end()
    while report is None:
        report = clients.step()
    assert (report.outcome, report.seen) == (outcome, 31)

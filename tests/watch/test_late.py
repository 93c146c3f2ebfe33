"""What a silent client may still bring is no reason to convict another one."""

from pathlib import Path

import pytest

from isolang import check, load_history
from isolang.watch import Report, Stream, Watch, verify_chain


def transaction(process: int, value: str, begin: int, end: int) -> str:
    return "".join(
        f"{{:type :{kind}, :process {process}, :f :txn, :value [{value}], :time {time}}}\n"
        for kind, time in (("invoke", begin), ("ok", end))
    )


class Clients:
    """Two clients with a log each; nobody waits for one that is silent."""

    def __init__(self, folder: Path, level: str) -> None:
        self.folder = folder / "logs"
        self.folder.mkdir()
        self.add("busy", transaction(0, "[:w z 1]", 3, 4))
        self.add("silent", transaction(7, "[:w y 1]", 1, 2))
        self.stream = Stream([self.folder], grace=0.0)
        self.watch = Watch(level, stream=self.stream, folder=folder / "state", round=1)
        self.step()

    def add(self, client: str, text: str) -> None:
        with (self.folder / f"{client}.edn").open("a") as file:
            file.write(text)

    def step(self) -> Report | None:
        list(self.watch.feed(self.stream.next(0)))
        return self.watch.report

    def end(self) -> Report | None:
        self.stream.stop()
        return self.step()


READ = transaction(0, "[:r x 5]", 100, 120) + transaction(0, "[:w z 2]", 130, 140)
WRITE = transaction(7, "[:w x 5]", 90, 95)


@pytest.mark.parametrize("level", ["ser", "sser", "rc"])
def test_a_write_that_is_late_convicts_nobody(tmp_path, level):
    """Its value was read before its line came: suspected, and in which case it is a violation."""
    clients = Clients(tmp_path, level)
    clients.add("busy", READ)
    report = clients.step()
    assert report.outcome == "suspected"
    assert "silent.edn did nothing before 120" in report.note
    assert len(report.places) == 1
    log = tmp_path / "all.edn"
    log.write_text(WRITE + READ)
    assert check(load_history(log), level).outcome == "valid"


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

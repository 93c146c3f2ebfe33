"""Recordings whose writes are those of a server's log, which the audit at their end confirms."""

import pytest
from support.cli import run_here

import isolang
from isolang.run.play.live import _GrowingWatch, judge_prefix
from isolang.watch import Stream

HEAD = "{:versions :ordered}\n"
INIT = "".join(
    f"{{:index {n}, :type :{kind}, :process 1, :time 0, {more}:f :init, "
    ':value {["a" "1"] {"v" 0 "t" ", :versions [7]" "xmin" 0}}}\n'
    for n, (kind, more) in enumerate((("invoke", ":observed true, "), ("ok", "")))
)
ROW = '["a" "1"] {"v" %d "t" ", :versions [7]" "xmin" %d}'


def line(index, kind, process, operations, versions=""):
    """A line about a transaction."""
    more = f", :versions [{versions}]" if versions else ""
    return (
        f"{{:index {index}, :type :{kind}, :process {process}, :time {index}, :f :txn, "
        f":value [{operations}]{more}}}\n"
    )


def written(version):
    """A write of a version."""
    return f"[:w {ROW % (version, version)}]"


def read(version):
    """A read of a version."""
    return f"[:r {ROW % (version, version)}]"


LOST_UPDATE = (
    line(2, "invoke", 2, written(1))
    + line(3, "invoke", 3, written(2))
    + line(4, "ok", 2, f"{read(0)}\t{written(1)}", "nil\t1")
    + line(5, "ok", 3, f"{read(0)}\t{written(2)}", "nil\t2")
    + line(6, "invoke", 4, "")
    + line(7, "ok", 4, read(2), "nil")
)
END = ";:unseen {}\n"
OPEN = HEAD + INIT + LOST_UPDATE


@pytest.fixture
def path(tmp_path):
    """The path of a recording."""
    return tmp_path / "h.edn"


def test_without_its_end_it_convicts_nobody(path, capfd):
    """A violation is only suspected, as the audit may leave the table out; then it is certain."""
    path.write_text(OPEN)
    run = run_here(capfd, "check", "-s", "si", path)
    assert (run.code, run.out.split()[0]) == (3, "UNKNOWN")
    assert "the recording has no end" in run.out.replace("\n  ", " ")
    assert (
        isolang.check(isolang.load_history(path, allow_unseen={"end"}), "si").outcome == "invalid"
    )
    run = run_here(capfd, "watch", "-s", "si", "--until-idle", "0", path)
    assert (run.code, run.out.split()[0]) == (3, "SUSPECTED")
    assert "its audit there may leave tables out" in run.out
    assert "lost update" in run.out
    path.write_text(OPEN + END)
    for command in ("check", "watch"):
        more = ("--until-idle", "0") if command == "watch" else ()
        run = run_here(capfd, command, "-s", "si", *more, path)
        assert (run.code, run.out.split()[0]) == (1, "INVALID"), command


def test_the_order_of_versions_is_not_followed(path, capfd):
    """So a watch says valid of no such log; a check does."""
    path.write_text(OPEN + END)
    run = run_here(capfd, "check", "-s", "pl-2", path)
    assert (run.code, run.out.split()[0]) == (0, "VALID")
    run = run_here(capfd, "watch", "-s", "pl-2", "--until-idle", "0", path)
    assert (run.code, run.out.split()[0]) == (3, "UNKNOWN")
    assert "the order of versions (:versions)" in run.out
    # Only the versions say that the second write came first, against what the third one read.
    path.write_text((OPEN + END).replace("nil\t2", "nil\t1").replace("nil\t1]", "nil\t3]", 1))
    run = run_here(capfd, "check", "-s", "pl-2", path)
    assert run.code == 0
    run = run_here(capfd, "check", "-s", "sser", path)
    assert run.code == 1


@pytest.mark.parametrize("is_rewritten", [True, False])
def test_an_audit_of_another_file_confirms_nothing(path, tmp_path, is_rewritten):
    """The observer writes the file again without the doubtful table while a watch reads the old."""
    path.write_text(OPEN)
    stream = Stream([path], follow=False)
    stream.next(0.0)
    assert stream.is_unaudited()
    if is_rewritten:
        audited = tmp_path / "audited.edn"
        audited.write_text(HEAD + INIT + END)
        audited.replace(path)
    else:
        with path.open("a") as file:
            file.write(END)
    assert stream.is_unaudited() == is_rewritten


def test_the_observer_announces_what_its_audit_still_decides(path, tmp_path):
    """The live check of a short prefix knows the versions; that of a long one follows the file."""
    path.write_text(OPEN)
    assert judge_prefix(OPEN.encode(), "si", 60).outcome == "invalid"
    watch = _GrowingWatch(path, "si", 60, folder=tmp_path / "chain")
    verdict = watch.look(len(OPEN))
    assert (verdict.outcome, verdict.anomaly) == ("invalid", "lost update")

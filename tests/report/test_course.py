"""The course of a run, from the lines that a recorder writes."""

from isolang.report import course_of

LINES = """\
; SQLite; a remark
{:index 0, :type :invoke, :process 0, :time 0, :f :txn, :value [[:w "a :time 7" 1]]}
{:index 1, :type :ok, :process 0, :time 100000000, :f :txn, :value [[:w "a :time 7" 1]]}
{:index 2, :type :invoke, :process 1, :time 150000000, :f :txn, :value [[:w "b" 1]]}
{:index 3, :type :info, :process :nemesis, :time 200000000, :f :kill, :value nil}
{:index 4, :type :invoke, :process 0, :time 200000000, :f :txn, :value [[:w "a" 2]]}
{:index 5, :type :info, :process 1, :time 250000000, :f :txn, :value [[:w "b" 1]]}
{:index 6, :type :fail, :process 0, :time 400000000, :f :txn, :value [[:w "a" 2]]}
{:index 7, :type :invoke, :process 2, :time 380000000, :f :txn, :value [[:w "a" 3]]}
"""


def test_what_ended_when(tmp_path):
    """Each end falls into its stretch with its outcome; what a value says is not read."""
    path = tmp_path / "run.edn"
    path.write_text(LINES)
    course = course_of(path)
    assert course.seconds == 0.4
    assert course.stretch == 0.1
    assert course.committed == [0, 1, 0, 0]
    assert course.maybe == [0, 0, 1, 0]
    assert course.aborted == [0, 0, 0, 1]
    assert course.median == [None, 100.0, None, None]
    assert [(fault.at, fault.name) for fault in course.faults] == [(0.2, "kill")]


def test_without_times(tmp_path):
    """A history without times has no course."""
    path = tmp_path / "h.edn"
    path.write_text("{:type :ok, :process 0, :f :txn, :value [[:w :x 1]]}\n")
    assert course_of(path) is None

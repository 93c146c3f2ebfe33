"""The violations of an application's recording, in groups: the most harmful one first."""

import pytest
from support.paths import ROOT

import isolang
from isolang.certify.certificate import verify
from isolang.language.classify.route import route
from isolang.pipeline.groups import with_groups
from isolang.testing.assertion import assert_level

SELECT_STOCK = "SELECT n FROM stock WHERE id = 1"
UPDATE_STOCK = "UPDATE stock SET n = {} WHERE id = 1"
COUNT = "SELECT count(*) FROM ticket WHERE show = {}"
INSERT = "INSERT INTO ticket VALUES ({}, 'a')"


def stock(n, xmin):
    """A version of the row of stock, with columns that are not in alphabetical order."""
    return f'{{"id" 1 "n" {n} "code" "c" "xmin" "{xmin}(0,1)"}}'


def ticket(number, show):
    """A row of a ticket, with its key."""
    return f'["ticket" "{number}"] {{"show" {show} "id" {number} "xmin" "{number}(1,1)"}}'


class Recording:
    """A recording of transactions, each at the same time as all others."""

    def __init__(self):
        self.completions = []

    def add(self, *operations):
        """Add a transaction; each operation comes with its statement."""
        value = " ".join(operation for operation, _ in operations)
        callers = " ".join(f'"{statement}"' for _, statement in operations)
        process = len(self.completions)
        self.completions.append(
            f"{{:type :ok, :process {process}, :f :txn, :value [{value}], :callers [{callers}]}}\n"
        )

    def add_lost_updates(self, first, count):
        """Let several transactions read one version of a row, and replace it."""
        for number in range(first, first + count):
            self.add(
                (f'[:r ["stock" "1"] {stock(9, 5)}]', SELECT_STOCK),
                (f'[:w ["stock" "1"] {stock(8, number)}]', UPDATE_STOCK.format(number)),
            )

    def add_write_skew(self, show, numbers):
        """Let several transactions count no ticket of a show, and insert one."""
        for number in numbers:
            self.add(
                (f'[:rp {{:table "ticket" :where [:= :show {show}]}} {{}}]', COUNT.format(show)),
                (f"[:insert {ticket(number, show)}]", INSERT.format(number)),
            )

    def add_fractured_read(self):
        """Let a report see one of two writes of a transaction, and miss the other."""
        for name in ("a", "b"):
            self.add((f'[:w ["{name}" "1"] {{"v" 0 "xmin" "2(0,1)"}}]', f"INSERT INTO {name}"))
        self.add(
            *(
                operation
                for name in ("a", "b")
                for operation in (
                    (f'[:r ["{name}" "1"] {{"v" 0 "xmin" "2(0,1)"}}]', f"SELECT v FROM {name}"),
                    (f'[:w ["{name}" "1"] {{"v" 1 "xmin" "3(0,1)"}}]', f"UPDATE {name}"),
                )
            )
        )
        self.add(
            ('[:r ["a" "1"] {"v" 1 "xmin" "3(0,1)"}]', "SELECT v FROM a"),
            ('[:r ["b" "1"] {"v" 0 "xmin" "2(0,1)"}]', "SELECT v FROM b"),
        )

    def history(self, tmp_path):
        """Write the recording, with the first version of stock, and read it."""
        first = f'{{:type :ok, :process 99, :f :init, :value {{["stock" "1"] {stock(9, 5)}}}}}\n'
        path = tmp_path / "recording.edn"
        path.write_text("".join([first, *self.completions]))
        return isolang.load_history(path)


def grouped(history, level):
    """The verdict with the first violation, and the groups."""
    spec = isolang.load_spec(level)
    return with_groups(isolang.check(history, spec), route(spec))


@pytest.fixture
def recording():
    return Recording()


def test_the_most_harmful_violation_is_first(recording, tmp_path):
    """A report that saw half of a transaction comes last, although it has the shortest cycle."""
    recording.add_fractured_read()
    recording.add_write_skew(1, (11, 12))
    recording.add_lost_updates(21, 3)
    verdict, groups = grouped(recording.history(tmp_path), "ser")
    assert [(g.anomaly, g.count, g.tables) for g in groups.groups] == [
        ("lost update", 3, ("stock",)),
        ("predicate write skew", 1, ("ticket",)),
        ("non-monotonic read", 1, ("b",)),
    ]
    assert groups.groups[0].statements == (
        "SELECT n FROM stock WHERE id = ?",
        "UPDATE stock SET n = ? WHERE id = ?",
    )
    assert verdict.violation == groups.groups[0].violation
    verify(verdict.certificate(), verdict.history, verdict.spec)
    assert not groups.not_finished


def test_a_group_is_of_statements_and_tables(recording, tmp_path):
    """Statements that differ only in values are equal; other statements make another group."""
    for show in (1, 2, 3):
        recording.add_write_skew(show, (10 * show, 10 * show + 1))
    recording.add(
        ('[:rp {:table "ticket" :where [:= :show 4]} {}]', "SELECT 1 FROM ticket"),
        (f"[:insert {ticket(40, 4)}]", INSERT.format(40)),
    )
    recording.add(
        ('[:rp {:table "ticket" :where [:= :show 4]} {}]', "SELECT 1 FROM ticket"),
        (f"[:insert {ticket(41, 4)}]", INSERT.format(41)),
    )
    _, groups = grouped(recording.history(tmp_path), "ser")
    assert [(g.count, g.statements[0]) for g in groups.groups] == [
        (3, "SELECT count(*) FROM ticket WHERE show = ?"),
        (1, "SELECT ? FROM ticket"),
    ]


def test_a_mixture_of_two_groups_is_no_group(recording, tmp_path):
    """Two transactions that lose an update and insert one ticket too many have three cycles."""
    for number in (21, 22):
        recording.add(
            (f'[:r ["stock" "1"] {stock(9, 5)}]', SELECT_STOCK),
            ('[:rp {:table "ticket" :where [:= :show 1]} {}]', COUNT.format(1)),
            (f"[:insert {ticket(number, 1)}]", INSERT.format(number)),
            (f'[:w ["stock" "1"] {stock(8, number)}]', UPDATE_STOCK.format(number)),
        )
    _, groups = grouped(recording.history(tmp_path), "ser")
    assert [(group.anomaly, group.tables) for group in groups.groups] == [
        ("lost update", ("stock",)),
        ("predicate write skew", ("ticket",)),
    ]


def test_an_update_that_reads_the_newest_version_loses_nothing(recording, tmp_path):
    """As `SET n = n + 1` after a SELECT, of an offer whose update is lost in the same transactions.

    The explanation is about the lost update, although these transactions violate the level in a
    shorter way.
    """
    offer = '["offer" "1"] {{"id" 1 "used" {} "xmin" "{}(0,2)"}}'
    last, increment = 5, "UPDATE stock SET n = n + 1"
    for number in (21, 22, 23):
        recording.add(
            (f'[:r ["stock" "1"] {stock(9, 5)}]', SELECT_STOCK),
            (f"[:r {offer.format(0, 4)}]", "SELECT used FROM offer"),
            (f"[:w {offer.format(1, number)}]", "UPDATE offer SET used = 1"),
            *([(f'[:r ["stock" "1"] {stock(9, last)}]', increment)] * (last > 5)),
            (f'[:w ["stock" "1"] {stock(9, number)}]', increment),
        )
        last = number
    recording.completions.insert(
        0, f"{{:type :ok, :process 98, :f :txn, :value [[:w {offer.format(0, 4)}]]}}\n"
    )
    verdict, groups = grouped(recording.history(tmp_path), "ser")
    first, *others = groups.groups
    assert (first.anomaly, first.count, first.tables) == ("lost update", 3, ("offer",))
    assert {group.tables for group in others} == {("stock",)}
    assert all(group.anomaly != "lost update" for group in others)
    assert verdict.violation.anomaly == "lost update"
    assert "UPDATE offer SET used = 1" in str(verdict)


def test_only_what_the_level_forbids_is_in_a_group(recording, tmp_path):
    """Snapshot isolation allows write skew, and a lost update remains."""
    recording.add_write_skew(1, (11, 12))
    recording.add_lost_updates(21, 2)
    _, groups = grouped(recording.history(tmp_path), "si")
    assert [group.anomaly for group in groups.groups] == ["lost update"]


def test_violations_that_need_an_inferred_order_are_found(recording, tmp_path):
    """Nothing read the rows that were replaced, so no known edge orders these writes."""
    recording.add_lost_updates(21, 2)
    for name in ("a", "b"):
        recording.add((f'[:w ["{name}" "1"] {{"v" 0 "xmin" "2(0,1)"}}]', f"INSERT INTO {name}"))
    recording.add(
        *(
            (f'[:w ["{name}" "1"] {{"v" 1 "xmin" "3(0,1)"}}]', f"UPDATE {name}")
            for name in ("a", "b")
        )
    )
    recording.add(
        ('[:r ["a" "1"] {"v" 1 "xmin" "3(0,1)"}]', "SELECT v FROM a"),
        ('[:r ["b" "1"] {"v" 0 "xmin" "2(0,1)"}]', "SELECT v FROM b"),
        ('[:r ["a" "1"] {"v" 0 "xmin" "2(0,1)"}]', "SELECT v FROM a"),
    )
    _, groups = grouped(recording.history(tmp_path), "ser")
    first, second, *_ = groups.groups
    assert first.anomaly == "lost update"
    assert {"a", "b"}.issuperset(second.tables)


def test_the_work_is_limited(recording, tmp_path, monkeypatch):
    """Then the groups found so far are shown, with a note."""
    recording.add_lost_updates(21, 3)
    recording.add_write_skew(1, (11, 12))
    monkeypatch.setattr("isolang.pipeline.groups._WORK", 0)
    _, groups = grouped(recording.history(tmp_path), "ser")
    assert len(groups.groups) == 1
    assert groups.not_finished


def test_many_violations_are_not_all_counted(recording, tmp_path, monkeypatch):
    """The group says so, and the other groups are found all the same."""
    monkeypatch.setattr("isolang.pipeline.groups._MOST_OF_NAME", 4)
    recording.add_lost_updates(21, 5)
    recording.add_write_skew(1, (11, 12))
    _, groups = grouped(recording.history(tmp_path), "ser")
    assert [group.headline() for group in groups.groups] == [
        "lost update of stock, at least 4 times",
        "predicate write skew of ticket, once",
    ]
    assert groups.not_finished


def test_a_level_that_the_engine_does_not_decide_has_one_group(recording, tmp_path):
    """The verdict's own."""
    recording.add_write_skew(1, (11, 12))
    history = recording.history(tmp_path)
    spec = isolang.load_spec(ROOT / "examples" / "levels" / "ssi-pivot.iso")
    verdict = isolang.check(history, spec)
    assert verdict.outcome == "invalid"
    first, groups = with_groups(verdict, route(spec))
    assert first is verdict
    assert [group.violation for group in groups.groups] == [verdict.violation]


def test_the_message_of_a_test_names_all_groups(recording, tmp_path):
    """The first one is explained."""
    recording.add_fractured_read()
    recording.add_lost_updates(21, 3)
    with pytest.raises(AssertionError) as error:
        assert_level(recording.history(tmp_path), "ser")
    text = str(error.value)
    assert "lost update: a transaction overwrote a key" in text
    assert " 1  lost update of stock, 3 times\n" in text
    assert " 2  non-monotonic read of b, once\n" in text

"""The comments at the end of a recording of MariaDB."""

from isolang.history import read_history
from isolang.observe.log.tables import Foreign, LoggedTable
from isolang.observe.mariadb.contents import NamedTables
from isolang.observe.mariadb.lines import write_end
from isolang.observe.unseen import Unseen


def key(table, columns, parent):
    return Foreign(
        table=("d", table), columns=columns, parent=("d", parent), parents=["id"],
        on_delete="RESTRICT", on_update="RESTRICT",
    )  # fmt: skip


def test_the_end_names_the_database_and_the_foreign_keys(tmp_path):
    """Of the tables in the history: a reference to another one is left out."""
    tables, path = NamedTables(), tmp_path / "run.edn"
    for name in ("room", "booking"):
        tables.of(LoggedTable(schema="d", name=name, key=["id"], unique=[frozenset({"id"})]))
    path.write_text("{:type :ok, :process 0, :f :txn, :value [[:r 1 nil]]}\n")
    foreign = [key("booking", ["room"], "room"), key("booking", ["guest"], "guest")]
    write_end(path, tables.all(), Unseen(), foreign=foreign, keeps_snapshots=True)
    history = read_history(str(path))
    assert history.database() == {"name": "MariaDB", "innodb_snapshot_isolation": True}
    assert history.foreign_keys() == {"booking": [(["room"], "room", ["id"])]}
    assert history.unique_indexes() == {"room": [["id"]], "booking": [["id"]]}

"""Histories that are written anew with what the database's log tells, without a database."""

from __future__ import annotations

import isolang
from isolang.run.operation import DELETED
from isolang.run.record.database_log import LoggedVersion, rewrite_history

RECORDED = """\
{:index 0, :type :invoke, :process 0, :time 1, :f :txn, :value [[:delete "k"] [:r "j" nil]]}
{:index 1, :type :ok, :process 0, :time 2, :f :txn, :value [[:delete "k"] [:r "j" 7]], \
:versions ["7(0,1)" "7(0,2)"], :xid "7"}
{:index 2, :type :invoke, :process 1, :time 3, :f :txn, :value [[:r "k" nil] [:r "j" nil]]}
{:index 3, :type :ok, :process 1, :time 4, :f :txn, :value [[:r "k" nil] [:r "j" 7]], \
:versions [nil "7(0,2)"], :xid "8"}
"""


def test_a_delete_has_no_value(tmp_path):
    """It stays as it is where a write beside it is added that nobody recorded."""
    path = tmp_path / "h.edn"
    path.write_text(RECORDED)
    log = [
        LoggedVersion(transaction=7, key="k", value=DELETED),
        LoggedVersion(transaction=7, key="j", value=7),
    ]
    account = rewrite_history(path, log, is_initial=lambda text: False, values_are_writers=True)
    assert (account.versions, account.others) == (2, 0)
    first, second = isolang.load_history(path).transactions()
    assert first.ops == [("delete", "k"), ("w", "j", 7)]
    assert second.ops == [("r", "k", None), ("r", "j", 7)]
    assert isolang.check(isolang.load_history(path), "ser").outcome == "valid"

"""What is known of played calls, without a server."""

from pathlib import Path
from types import SimpleNamespace

import pytest

import isolang
from isolang.court.case import parse_case
from isolang.court.schedules import CallSchedule
from isolang.court.stage import PlayedCalls, _Performance
from isolang.observe.wire.holds import Turn, TurnStatement

TRANSACTION = (
    "{{:index {index}, :type :invoke, :process 1, :f :txn, :value [[:w 1 {index}]]}}\n"
    "{{:index {end}, :type :{ending}, :process 1, :f :txn, :value [[:w 1 {index}]]}}\n"
)


@pytest.fixture
def judged(tmp_path):
    """Whether the history of a call judges it; its transactions end so, and it sends this."""

    def ask(*endings, error="", kind="update"):
        path = Path(tmp_path, "played.edn")
        path.write_text(
            "".join(
                TRANSACTION.format(index=2 * n, end=2 * n + 1, ending=ending)
                for n, ending in enumerate(endings)
            )
        )
        history = isolang.load_history(path)
        played = PlayedCalls(
            schedule=CallSchedule(0), path=path, events=(), waited=(), complaints={},
            turns=(Turn(1, 0, 0, [TurnStatement(kind, "")]),),
            outcome=SimpleNamespace(answers={0: SimpleNamespace(error=error)}),
            calls=dict.fromkeys(history.columns.txn_position.tolist(), 1),
        )  # fmt: skip
        return played.is_judged_by(history)

    return ask


def test_what_was_rolled_back_is_not_judged(judged):
    """Its reads may decide what the call does afterwards."""
    assert judged("ok")
    assert not judged("fail", "ok")
    assert not judged("fail")
    assert judged("fail", error="SerializationFailure")
    assert not judged("fail", "fail", error="SerializationFailure")
    assert not judged("ok", kind="back")


@pytest.mark.parametrize("waits", [True, False])
def test_a_slow_statement_is_no_wait_for_a_lock(waits):
    """The held call goes on, but the schedule was not played."""
    case = parse_case('calls = ["echo ann", "echo bob"]', "x")
    observer = SimpleNamespace(listener=SimpleNamespace(call=lambda function: function()))
    performance = _Performance(observer, case, lambda: waits)
    performance.holds = SimpleNamespace(awaits_server=lambda call: True)
    assert performance._may_go_on(1, 0) is waits
    assert (performance.waited, len(performance.events)) == (([1], 0) if waits else ([], 1))

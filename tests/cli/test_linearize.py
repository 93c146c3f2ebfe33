"""``isocheck linearize``, as users see it."""

from __future__ import annotations

import json

import jsonschema
import pytest
from support.cli import run_here
from support.paths import ROOT

QUEUE = ROOT / "examples/queue.edn"
STORE = ("--model", f"{ROOT / 'examples/store_model.py'}:STORE")


@pytest.fixture
def log(tmp_path):
    def written(text, name="log.edn"):
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return written


def events(*calls):
    """Operation maps: ``process type f value``."""
    return "\n".join(
        f"{{:process {process}, :type :{kind}, :f :{f}, :value {value}}}"
        for process, kind, f, value in calls
    )


def test_a_violation_names_the_operation_and_its_state(capfd):
    """The text shows the order that came furthest, the state after it, and what cannot follow."""
    run = run_here(capfd, "linearize", "--model", "queue", str(QUEUE))
    assert run.code == 1
    lines = run.out.splitlines()
    assert lines[0] == f"INVALID  {QUEUE}  queue (linearizability)"
    stuck = "dequeue → 2 (line 4, process 0)"
    assert f"    then the state is [1 2], and {stuck} is not possible" in lines
    assert any(line.startswith("  certified  yes: a second algorithm") for line in lines)


def test_each_verdict_has_its_exit_code(capfd, log):
    """0 valid, 1 invalid, 2 wrong input, 3 unknown; of several logs, that of ``check``."""
    valid = ("linearize", "--model", "unordered-queue", str(QUEUE))
    assert run_here(capfd, *valid).code == 0
    assert run_here(capfd, *valid, log("{:process")).code == 2
    unknown = run_here(capfd, "linearize", "-m", "queue", str(QUEUE), "--limit", "1")
    assert (unknown.code, unknown.out.splitlines()[1]) == (
        3,
        "  the limit of configurations (1) was reached",
    )
    run = run_here(capfd, "linearize", "--model", "queue", str(QUEUE), log("nonsense", "b"))
    assert run.code == 1
    assert run.err.startswith("isocheck: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--model", "quue"), "did you mean 'queue'?"),
        (("--model", "nowhere.py:MINE"), "nowhere.py: no such file"),
        ((STORE[0], STORE[1][:-1]), "did you mean 'STORE'?"),
        ((*STORE, "--initial-value", '"a"'), "write it into the file"),
        (("--model", "queue", "--initial-value", "1 2"), "not one value in EDN"),
        (("--model", "queue", "--initial-value", "1"), "not an initial state (got 1"),
        (("--model", "stack"), "line 1: model stack: enqueue: the model has no such function"),
        (("--model", "queue", "--independent"), "line 1: no [key value] of an independent object"),
    ],
)
def test_mistakes_are_named(capfd, arguments, message):
    """A wrong model, initial state or log has exit code 2, and a message that says what to do."""
    run = run_here(capfd, "linearize", *arguments, str(QUEUE))
    assert (run.code, run.out) == (2, "")
    assert message in run.err


def test_a_file_with_a_fault_is_named(capfd, log):
    """A file that fails, one without a model, and a step that fails, are errors with a reason."""
    for text, message in (
        ("1 / 0", "cannot load the model (ZeroDivisionError"),
        ("x = 1", "has no model; hint: `MINE = isolang.Model(…)`"),
        ("import isolang\nMINE = isolang.Model(0, lambda s, c: 1 / 0)", "step failed"),
        ("import isolang\nMINE = isolang.Model(0, lambda s, c: [[1]])", "cannot hash (got [1])"),
        ("import isolang\nMINE = isolang.Model(0, 'step')", "step (got str, expected a function)"),
    ):
        run = run_here(capfd, "linearize", "-m", f"{log(text, 'mine.py')}:MINE", str(QUEUE))
        assert run.code == 2
        assert message in run.err


def test_json_follows_its_schema(capfd):
    """The report has the linearization, or what refutes it, with the lines of the log."""
    schema = json.loads((ROOT / "docs/schema/linearize.json").read_text())
    reports = []
    for arguments in (
        ("--model", "queue", str(QUEUE)),
        ("--model", "unordered-queue", str(QUEUE)),
        (*STORE, str(ROOT / "examples/store.edn")),
        ("--model", "queue", "--limit", "1", str(QUEUE)),
    ):
        run = run_here(capfd, "linearize", *arguments, "-o", "json")
        reports.append(json.loads(run.out))
        jsonschema.validate(reports[-1], schema)
    invalid, valid, store, unknown = reports
    assert [report["verdict"] for report in reports] == ["invalid", "valid", "valid", "unknown"]
    assert invalid["stuck"] == {"line": 4, "process": "0", "text": "dequeue → 2"}
    assert [operation["line"] for operation in invalid["window"]] == [1, 3, 4]
    assert invalid["longest"][0]["state"] == "[1 2]"
    assert sorted(operation["line"] for operation in valid["linearization"]) == [1, 3, 4, 7]
    assert (store["operations"], store["certified"]) == (4, True)
    assert unknown["certified"] is False


def test_a_failed_operation_took_no_effect(capfd, log):
    """``:fail`` is left out and counted, and ``:info`` may take effect later, or never."""
    text = events(
        (0, "invoke", "enqueue", 1),
        (0, "fail", "enqueue", 1),
        (0, "invoke", "enqueue", 2),
        (0, "info", "enqueue", 2),
        (1, "invoke", "dequeue", "nil"),
        (1, "ok", "dequeue", "nil"),
        (1, "invoke", "dequeue", "nil"),
        (1, "ok", "dequeue", 2),
    )
    run = run_here(capfd, "linearize", "-m", "queue", log(text))
    assert run.code == 0
    assert "  ignored    1 operation that failed, and took no effect" in run.out
    assert "  input      3 operations, 1 of which never returned" in run.out
    text = text.replace(":ok, :f :dequeue, :value 2", ":ok, :f :dequeue, :value 1")
    run = run_here(capfd, "linearize", "-m", "queue", log(text))
    assert run.code == 1


@pytest.mark.parametrize(
    ("error", "option", "code"),
    [
        (":did-not-match", "auto", 1),
        (":timeout", "compared", 0),
        ("nil", "auto", 0),
        ("nil", "compared", 1),
        (":did-not-match", "nothing", 0),
    ],
)
def test_a_failed_comparison_is_an_answer(capfd, log, error, option, code):
    """A ``:cas`` whose comparison failed saw another value, by the rules of registers."""
    text = events((0, "invoke", "write", 1), (0, "ok", "write", 1), (0, "invoke", "cas", "[1 2]"))
    text += f"\n{{:process 0, :type :fail, :f :cas, :value [1 2], :error {error}}}"
    run = run_here(capfd, "linearize", "-m", "register", "--failed-cas", option, log(text))
    assert run.code == code, run.out


def test_independent_keys_are_objects_of_their_own(capfd, log):
    """With ``--independent``, the key of a value names the object; without, the value is a pair."""
    text = events(
        (0, "invoke", "write", '["a" 1]'),
        (0, "ok", "write", '["a" 1]'),
        (1, "invoke", "read", '["b" nil]'),
        (1, "ok", "read", '["b" nil]'),
        (1, "invoke", "read", '["a" nil]'),
        (1, "ok", "read", '["a" 2]'),
    )
    run = run_here(capfd, "linearize", "-m", "register", "--independent", log(text))
    assert run.code == 1
    assert 'no order of the first 2 operations on "a" explains read → 2 (line 5' in run.out
    run = run_here(capfd, "linearize", "-m", "register", log(text))
    assert (run.code, "read: takes no argument" in run.err) == (2, True)


def test_a_log_needs_invocations(capfd, log):
    """Without ``:invoke``, it is not known which operations overlapped."""
    run = run_here(capfd, "linearize", "-m", "queue", log(events((0, "ok", "enqueue", 1))))
    assert (run.code, "no :invoke" in run.err) == (2, True)


def test_the_lines_that_jepsen_logs(capfd, log):
    """The lines of ``jepsen.util`` are read as their maps would be, and other lines are counted."""
    text = "".join(
        f"INFO  jepsen.util - {line}\n"
        for line in (
            "0\t:invoke\t:acquire\tnil",
            "1\t:invoke\t:acquire\tnil",
            "0\t:ok\t:acquire\tnil",
            "1\t:fail\t:acquire\tnil",
        )
    )
    run = run_here(capfd, "linearize", "-m", "mutex", log(text + "INFO  other - a\n", "j.log"))
    assert run.code == 0
    assert "  ignored    1 line that other loggers wrote" in run.out
    run = run_here(capfd, "linearize", "-m", "mutex", "--initial-value", "true", log(text, "j.log"))
    assert run.code == 1

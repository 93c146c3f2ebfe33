"""Jepsen's bank, set, counter, comments and sequential, as reads and writes of keys."""

import io
import itertools
import json
import random
import re

import pytest

import isolang
from isolang.cli.main import main as isocheck
from isolang.comparison.normal import normal
from isolang.comparison.walks import prove_implication
from isolang.errors import HistoryError, UnsupportedError
from isolang.history.readers.workloads.bank import KEEP_THE_TOTAL
from isolang.language.load import load_spec


def log(text):
    """Lines ``process type f value`` as EDN; a dash is no process."""
    maps = []
    for line in filter(None, map(str.strip, text.splitlines())):
        process, kind, function, value = line.split(None, 3)
        who = "" if process == "-" else f":process {process}, "
        maps.append(f"{{{who}:type :{kind}, :f :{function}, :value {value}}}")
    return "\n".join(maps)


def load(text, **options):
    return isolang.load_history(io.BytesIO(log(text).encode()), **options)


def outcome(text, spec, anomaly=None):
    """The verdict, which is certified; its anomaly."""
    verdict = isolang.check(load(text), spec)
    assert verdict.certified or verdict.outcome == "unknown"
    return verdict.violation.anomaly if verdict.outcome == "invalid" else verdict.outcome


def operations(history):
    return [list(t.ops) for t in (history.transaction(i) for i in range(history.t0))]


# --- sets ---

LOST = """
    0 invoke add 0
    0 ok add 0
    1 invoke add 1
    1 info add 1
    2 invoke read nil
    2 ok read {}
"""


@pytest.mark.parametrize(
    ("shown", "spec", "anomaly"),
    [
        ("#{0}", "sser", "valid"),
        ("[1 0]", "sser", "valid"),
        ("#{1}", "sser", "G-single-realtime"),
        ("#{1}", "ser", "valid"),
        ("#{0 5}", "pl-2", "thin-air read"),
        ("[0 0]", "pl-2", "thin-air read"),
        ("nil", "sser", "valid"),
    ],
)
def test_a_set(shown, spec, anomaly):
    """What was added and acknowledged is read; what nobody added, or added once, is not."""
    assert outcome(LOST.format(shown), spec) == anomaly


def test_elements_are_keys():
    """A read says of each element of the file whether it was there; of unknown ones, nothing."""
    history = load(LOST.format("#{1}"))
    there = isolang.Keyword("in")
    assert operations(history) == [
        [("w", 0, there)],
        [("w", 1, there)],
        [("r", 0, None), ("r", 1, there)],
    ]
    assert operations(load(LOST.format("nil")))[2] == []


def test_elements_keep_their_types():
    """1, 1.0 and true are three elements."""
    history = load("0 invoke add 1\n0 ok add 1\n0 invoke read nil\n0 ok read [1.0 true]")
    assert [op[1] for op in operations(history)[1]] == [1, 1.0, True]
    assert operations(history)[1][0][2] is None


def test_an_element_added_twice_may_be_there_twice():
    twice = (
        "0 invoke add 1\n0 ok add 1\n0 invoke add 1\n0 ok add 1\n0 invoke read nil\n0 ok read [1 1]"
    )
    assert outcome(twice, "sser") == "valid"
    assert "1 time a read returned an element twice" in load(twice).notes[-1]


def test_an_add_that_failed():
    assert (
        outcome("0 invoke add 1\n0 fail add 1\n0 invoke read nil\n0 ok read #{1}", "pl-2") == "G1a"
    )


def test_independent_sets():
    """[k e] is the element e of the set k."""
    text = "0 invoke add [7 1]\n0 ok add [7 1]\n0 invoke read [7 nil]\n0 ok read [7 #{}]"
    assert [op[1] for op in operations(load(text))[1]] == [(7, 1)]
    assert outcome(text, "ser") == "G-single-session"
    lost = text.replace("[7 #{}]", "[1 2 3]")
    with pytest.raises(HistoryError, match=r"line 3: the value has no key \(got \(1, 2, 3\)"):
        load(lost)


def test_comments():
    """Comments are a set whose adds are called writes; processes may be left out."""
    missed = """
        - invoke read nil
        - invoke write 425
        - ok write 425
        - invoke write 430
        - ok write 430
        - ok read #{430}
    """
    assert outcome(missed, "sser") == "G-single-realtime"
    assert outcome(missed, "ser") == "valid"


# --- counters ---


def linearizable(operations, step):
    """Whether some order of the operations, and of some that may have run, gives each read."""
    must = [o for o in operations if o["status"] == "ok"]
    may = [o for o in operations if o["status"] in ("info", "") and o["f"] == "add"]

    def ends(left, value):
        return not left or any(
            ends([o for o in left if o is not first], value + step * (first["f"] == "add"))
            for first in left
            if not any(o["status"] == "ok" and o["end"] < first["begin"] for o in left)
            and (first["f"] == "add" or first["value"] == value)
        )

    return any(
        ends(must + list(more), 0)
        for count in range(len(may) + 1)
        for more in itertools.combinations(may, count)
    )


def random_counter(rng, step):
    """Lines of a log, and its operations."""
    lines, operations, running, value = [], [], {}, 0
    count = rng.randint(2, 6)
    while len(operations) < count or running:
        free = [p for p in range(3) if p not in running]
        if len(operations) < count and free and (not running or rng.random() < 0.6):
            process, f = rng.choice(free), rng.choice(["add", "read"])
            one = {"f": f, "begin": len(lines), "end": 10**6, "status": "", "value": None}
            running[process] = one
            operations.append(one)
            lines.append(f"{process} invoke {f} {step if f == 'add' else 'nil'}")
        elif rng.random() < 0.05:
            break
        else:
            process = rng.choice(list(running))
            one = running.pop(process)
            one["status"] = status = rng.choices(["ok", "info", "fail"], [8, 1, 1])[0]
            one["end"] = len(lines)
            if one["f"] == "add":
                value += step * (status == "ok" or (status == "info" and rng.random() < 0.5))
                one["value"] = step
            else:
                one["value"] = value + rng.choices([0, step, -step, 1], [6, 1, 1, 0.2])[0]
            lines.append(f"{process} {status} {one['f']} {one['value']}")
    return "\n".join(lines), operations


def test_an_element_that_nobody_added_is_named_as_such():
    """Not as a value of the key that it becomes."""
    text = """
    0 invoke add 1
    0 ok add 1
    1 invoke read nil
    1 ok read #{1 2}
    """
    verdict = isolang.check(load(text), "ser")
    said = " ".join(str(verdict).split())
    assert re.search(r"read the element 2 \(<stream>:\d+\), which nobody added\.", said)
    twice = isolang.check(load(text.replace("1 2", "1 1")), "ser")
    said = " ".join(str(twice).split())
    assert re.search(r"read the element 1 twice \(<stream>:\d+\), which nobody added twice\.", said)


def test_counters_by_all_orders():
    """A counter is strictly serializable iff some order of its operations gives what was read."""
    rng = random.Random(7)
    seen = {"valid": 0, "invalid": 0}
    while sum(seen.values()) < 120:
        step = rng.choice([1, 1, 3, -2])
        text, operations = random_counter(rng, step)
        if not any(o["f"] == "read" and o["status"] == "ok" for o in operations):
            continue
        if not any(o["f"] == "add" for o in operations):
            continue
        verdict = isolang.check(load(text), "sser")
        expected = "valid" if linearizable(operations, step) else "invalid"
        assert (verdict.outcome, verdict.certified) == (expected, True), text
        seen[expected] += 1
    assert min(seen.values()) > 20


BACK = """
    0 invoke add 1
    1 invoke read nil
    1 ok read 1
    2 invoke read nil
    2 ok read 0
    0 ok add 1
"""


def test_a_counter_that_goes_back():
    """The order that was tried is refuted at strict serializability; elsewhere nothing is said."""
    assert outcome(BACK, "linearizable") == "G-single-realtime"
    verdict = isolang.check(load(BACK), "ser")
    assert verdict.outcome == "unknown"
    assert verdict.reason.endswith("SER does not apply to it, only sser and stronger levels")
    assert "only the reader's count" in load(BACK).notes[-1]


def test_a_counter_of_too_much():
    """More than all adds together is wrong at any level."""
    assert outcome("0 invoke add 2\n0 ok add 2\n1 invoke read nil\n1 ok read 4", "pl-2") == (
        "thin-air read"
    )


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (
            "0 invoke add 1\n0 invoke add 2\n1 invoke read nil\n1 ok read 3",
            "line 2: .* got 2, expected 1.*; hint: the nearest model is a set",
        ),
        ("0 invoke add 0\n1 invoke read nil\n1 ok read 3", "line 1: .* got 0, expected an integer"),
        ("0 ok add 1\n1 ok read 1", "a counter needs :invoke lines"),
    ],
)
def test_counters_that_do_not_tell_enough(text, what):
    with pytest.raises(UnsupportedError, match=what.replace(" got", r" \(got")):
        load(text)


# --- banks ---

BANK = """
    1 invoke read nil
    1 ok read {0 50, 1 50}
    0 invoke transfer {:from 0, :to 1, :amount 5}
    0 ok transfer {:from 0, :to 1, :amount 5}
    1 invoke read nil
    1 ok read %s
    2 invoke read nil
    2 ok read {0 45, 1 55}
"""


@pytest.mark.parametrize(
    ("balances", "spec", "anomaly"),
    [
        ("{0 45, 1 55}", "sser", "valid"),
        ("{0 45, 1 50}", "sser", "thin-air read"),
        ("{0 45, 1 50}", "psi", "thin-air read"),
        ("{0 45, 1 50}", "cc", "unknown"),
        ("{0 45, 1 55}", "read-committed", "unknown"),
        ("{0 105, 1 -5}", "serializable", "valid"),
        ("{0 45}", "si", "valid"),
        ("{0 45, 1 nil}", "si", "valid"),
    ],
)
def test_a_bank(balances, spec, anomaly):
    """Reads of all accounts have one total, where the level says so; others are not judged."""
    assert outcome(BANK % balances, spec) == anomaly


def test_what_a_bank_does_not_tell():
    """Verdicts on a bank say what they rest on."""
    notes = load(BANK % "{0 105, 1 -5}").notes
    assert "for each read of all accounts, only the total is checked" in notes[1]
    assert "1 read of a negative balance" in notes[-1]
    assert load(BANK % "{0 45}").notes[-1].startswith("1 read without the balance of each account")
    assert "taken to be 100, as 2 of 3 reads show" in load(BANK % "{0 1, 1 2}").notes[-1]


def test_levels_of_a_bank():
    """Each level that a bank is judged by implies parallel snapshot isolation."""
    psi = normal(load_spec("psi-nosession"))
    for name in KEEP_THE_TOTAL:
        assert prove_implication(normal(load_spec(name)), psi) is not None, name


def test_a_bank_is_not_written_as_another_format(tmp_path):
    """Read back, it would be judged by levels of which it tells nothing."""
    with pytest.raises(HistoryError, match="no format can state that only some levels apply to it"):
        isolang.save_history(load(BANK % "{0 45, 1 50}"), tmp_path / "bank.edn")
    isolang.save_history(load(LOST.format("#{0}")), tmp_path / "set.edn")


# --- the model by its name ---

BALANCES = """
    0 invoke read nil
    0 ok read {0 50, 1 50}
    1 invoke read nil
    1 ok read %s
"""


@pytest.mark.parametrize("name", ["bank", "jepsen-bank", "Jepsen-Bank"])
def test_a_bank_without_a_transfer(tmp_path, name):
    """By its name it is one: its totals are judged, and a certificate says how it was read."""
    assert load(BALANCES % "{0 45, 1 55}", format=name).format == "bank"
    path = tmp_path / "bank.edn"
    path.write_text(log(BALANCES % "{0 45, 1 50}"))
    verdict = isolang.check(isolang.load_history(path, format=name), "si")
    assert verdict.violation.anomaly == "thin-air read"
    folder = tmp_path / "certificates"
    assert isocheck(["--from", name, "-s", "si", "--certificate", str(folder), str(path)]) == 1
    (certificate,) = folder.iterdir()
    assert json.loads(certificate.read_text())["history"]["format"] == "bank"
    assert isocheck(["verify", str(certificate), str(path)]) == 0


@pytest.mark.parametrize("name", ["counter", "jepsen-counter"])
def test_a_counter_by_its_name(name):
    """Without a read that was answered the operations would make a set."""
    text = "0 invoke add 1\n0 ok add 1\n1 invoke read nil\n1 info read nil"
    assert load(text, format=name).notes[0].startswith("a counter")
    assert load(text).notes[0].startswith("a set")
    with pytest.raises(HistoryError, match="a :read of a counter"):
        load("0 invoke add 1\n0 ok add 1\n1 invoke read nil\n1 ok read #{1}", format=name)


@pytest.mark.parametrize("name", ["set", "jepsen-set", "set-full", "jepsen-set-full"])
def test_a_set_by_its_name(name):
    """A read of a number is a mistake there, and no sum."""
    assert load(LOST.format("#{0}"), format=name).notes[0].startswith("a set")
    with pytest.raises(HistoryError, match="a :read"):
        load("0 invoke add 1\n0 ok add 1\n1 invoke read nil\n1 ok read 1", format=name)


@pytest.mark.parametrize("name", ["bank", "counter", "set"])
def test_a_model_that_a_file_has_nothing_of(name):
    """The name of a model makes no other operations ones of it."""
    with pytest.raises(UnsupportedError, match="unknown workload"):
        load("0 invoke acquire nil\n0 ok acquire nil", format=name)


# --- rows inserted one after the other ---

ROWS = """
    0 invoke add [7 "7_0"]
    0 ok add [7 "7_0"]
    0 invoke add [7 "7_1"]
    0 ok add [7 "7_1"]
    1 invoke read [7 nil]
    1 ok read [7 {}]
"""


@pytest.mark.parametrize(
    ("rows", "spec", "anomaly"),
    [
        ('["7_1" "7_0"]', "sser", "valid"),
        ('[nil "7_0"]', "sequential", "valid"),
        ("[nil nil]", "sequential", "valid"),
        ("[nil nil]", "sser", "G-single-realtime"),
        ('["7_1" nil]', "sequential", "causality violation-session"),
        ('["7_1" nil]', "serializable", "valid"),
    ],
)
def test_rows(rows, spec, anomaly):
    """Who sees the last row of a client sees those before it."""
    assert outcome(ROWS.format(rows), spec) == anomaly


def test_all_rows_at_once():
    """A write of all rows that failed may have inserted some of them."""
    text = "0 invoke write 7\n0 fail write 7\n1 invoke read [7 nil]\n1 ok read [7 {}]"
    assert outcome(text.format('[nil "7_0"]'), "sequential") == "valid"
    assert outcome(text.format('["7_1" nil]'), "sequential") == "causality violation-session"


# --- operations ---


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("0 invoke add 1\n0 ok read #{1}", "line 2: the completion belongs to another operation"),
        ("0 invoke add nil\n0 invoke read #{}", "line 1: wrong element of :add"),
        (
            "0 invoke transfer {}\n0 ok transfer {}\n0 invoke read nil\n0 ok read 5",
            "line 3: not a :read of a bank",
        ),
        (
            "0 invoke add 1\n0 ok add 1\n0 invoke read nil\n0 ok read {1 2}",
            "line 3: not a :read of a set",
        ),
        ("0 invoke add 1\n0 gone add 1", "line 2: wrong :type"),
        ('"0" invoke add 1', "line 1: wrong :process .got '0', expected an integer of 64 bits"),
        (f"{2**63} invoke add 1", "line 1: wrong :process .got 9223372036854775808, expected"),
        (
            "- invoke add 1\n- invoke add 1\n- ok add 1",
            "line 3: several operations are open, those of lines 1 and 2",
        ),
    ],
)
def test_operations_that_do_not_fit(text, what):
    with pytest.raises(HistoryError, match=what):
        load(text, format="workload")


def test_sessions():
    """Other functions and other processes are counted; after :info a new session goes on."""
    history = load("""
        :nemesis info start nil
        0 invoke add 1
        0 info add 1
        0 invoke add 2
        0 ok add 2
        1 invoke dump nil
        1 ok dump nil
        2 invoke read nil
    """)
    assert [history.session_name(s) for s in range(3)] == ["0", "0.2", "1"]
    assert history.ignored == (
        "1 operation that no client sent (:nemesis)",
        "1 operation of an unknown kind (:f :dump)",
    )
    assert "1 invocation without a completion, so the outcome is unknown" in history.notes


def test_a_process_with_several_open_operations():
    """Each is a session of its own, so that nothing is claimed of their order."""
    text = """
        0 invoke add 1
        0 invoke add 2
        0 invoke read nil
        0 ok add 1
        0 ok add 2
        0 ok read #{2}
    """
    assert len({load(text).transaction(i).session for i in range(3)}) == 3
    assert outcome(text, "sser") == "valid"


def test_an_index_beyond_64_bits_orders_nothing():
    text = f"{{:index {2**64} :process 0 :type :ok :f :add :value 1}}"
    history = isolang.load_history(io.BytesIO(text.encode()))
    assert (history.name_of(0), history.real_time) == (
        "T1",
        "none, because the file has only completions and no :invoke",
    )


def test_json():
    """The same operations in JSON, as one array."""
    text = (
        '[{"type":"invoke","f":"add","value":1,"process":0},{"type":"ok","f":"add","value":1,'
        '"process":0},\n{"type":"invoke","f":"read","value":null,"process":0},'
        '{"type":"ok","f":"read","value":[1],"process":0}]'
    )
    history = isolang.load_history(io.BytesIO(text.encode()))
    assert history.where(1).endswith(":2")
    assert isolang.check(history, "sser").outcome == "valid"


def test_an_operation_that_no_workload_has_gets_advice():
    """As a transaction it can be checked, and other workloads are read: so the hint names both."""
    line = "{:type :%s, :process 0, :f :debit, :value {:from 1, :amount 5}}\n"
    with pytest.raises(UnsupportedError) as error:
        isolang.load_history(io.BytesIO((line % "invoke" + line % "ok").encode()), format="edn")
    assert "write it as a transaction of reads and writes" in str(error.value)
    assert "docs/formats.md has the operations of other workloads" in str(error.value)

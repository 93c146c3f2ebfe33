"""The page as a file: nothing from elsewhere, nothing obeyed, everything of the verdict there."""

import base64
import hashlib
import re
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.pages import HOSTILE, data_of
from support.paths import CORPORA, ROOT

import isolang
from isolang.history import History, Transaction
from isolang.language.vocabulary import VOCABULARY
from isolang.pipeline.levels import levels_of
from isolang.report import advice, page
from isolang.report.age import age_of
from isolang.report.columns import LONGEST_VALUE
from isolang.report.relations import COLOURS, RELATIONS
from isolang.run.record.recorder import Recorder
from isolang.simulator import Workload, generate

sys.path.insert(0, str(ROOT / "benchmarks"))

ON_CALL = ROOT / "examples" / "on-call.edn"


def on_call(level):
    return isolang.check(isolang.load_history(ON_CALL), level)


def test_the_policy_allows_this_style_and_this_script_alone():
    """By their hashes; nothing may be fetched, framed or sent."""
    text = page(on_call("ser"))
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.S)
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.S)
    for kind, inner in (("style", style), ("script", script)):
        digest = base64.b64encode(hashlib.sha256(inner.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}';" in policy
    assert policy.startswith("default-src 'none';")


def test_nothing_is_loaded():
    """No address in the page is one that a browser would fetch."""
    text = page(on_call("ser"))
    assert re.findall(r"""(?:src|href)\s*=\s*["'](?!#)""", text.split('id="contents"')[0]) == []
    assert "@import" not in text
    assert "url(http" not in text


def test_the_frame_is_small():
    """All but the contents takes less than 165 KB."""
    text = page(on_call("ser"))
    (contents,) = re.findall(r'id="contents">(.*?)</script>', text, re.S)
    assert len(text) - len(contents) < 165_000


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_keys_and_values_are_data(text):
    """What they contain cannot end the block that they stand in; a long one is cut."""
    history = History.from_transactions(
        [
            Transaction([("w", text, 1), ("w", "x", text)], session=text),
            Transaction([("r", text, 2), ("r", "x", text)], session="b"),
        ],
        name=text[:200],
    )
    made = page(isolang.check(history, "ser"))
    data = data_of(made)
    assert made.count("<script") == 2
    assert all(len(key) <= LONGEST_VALUE + 2 for key in data["columns"]["keys"])
    assert len(made) < 400_000


def test_every_edge_of_the_argument_knows_its_ends():
    """Transactions by number, operations by their place in them."""
    data = data_of(page(on_call("ser")))
    edges = data["violation"]["argument"]["conclusion"]["edges"]
    label = data["columns"]["labels"]
    found = [(label[e["from"]], label[e["to"]], e["joins"]) for e in edges]
    assert found == [("T4", "T5", [1, 2]), ("T5", "T4", [0, 2])]


def test_a_valid_history_is_shown_in_a_serial_order():
    """Run in that order, each read returns what was written last."""
    history = generate(Workload(rule="serializable", transactions=60, keys=5, seed=3))
    data = data_of(page(isolang.check(history, "ser-nosession")))
    assert data["order"]["kind"] == "serial"
    state = {}
    for number in data["order"]["txns"]:
        for kind, key, value in (op[:3] for op in history.transaction(number).ops):
            if kind == "w":
                state[key] = value
            else:
                assert state.get(key) == value


def test_under_snapshot_isolation_commits_are_in_order():
    """Write skew has no serial order, so the page says which order it has."""
    assert data_of(page(on_call("si")))["order"]["kind"] == "commit"


def test_levels_are_drawn_with_what_they_imply():
    """Where the history stands with each level of the library."""
    history = isolang.load_history(ON_CALL)
    data = data_of(page(on_call("ser"), levels=levels_of(history)))
    standing = {level["name"]: level["standing"] for level in data["levels"]["levels"]}
    assert (standing["si"], standing["ser"]) == ("satisfied", "violated")
    assert data["levels"]["folded"] == ("si-nosession" not in standing)
    titles = {level["name"]: level["title"] for level in data["levels"]["levels"]}
    assert titles["si"] == "snapshot isolation, with session order"
    assert "si" in next(one["implies"] for one in data["levels"]["levels"] if one["name"] == "ser")


def test_the_smallest_part_is_a_history_with_the_same_violation(tmp_path):
    """As EDN that isocheck reads."""
    data = data_of(page(on_call("ser")))
    (tmp_path / "part.edn").write_text(data["part"])
    found = isolang.check(isolang.load_history(tmp_path / "part.edn"), "ser")
    assert found.outcome == "invalid"
    assert found.violation.anomaly == "write skew"


ELEMENTS = st.lists(st.integers(0, 4), max_size=4, unique=True)


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from("xy"), ELEMENTS), max_size=6))
def test_lists_are_packed_without_loss(reads):
    """As prefixes of the longest list of the key, or element by element."""
    history = History.from_transactions([Transaction([("r", k, v) for k, v in reads], session="a")])
    columns = data_of(page(isolang.check(history, "pl-1")))["columns"]
    found = []
    for kind, key, value in zip(columns["kind"], columns["key"], columns["value"], strict=True):
        packed = columns["lists"][value]
        items = columns["longest"][str(key)][:packed] if isinstance(packed, int) else packed
        assert kind == "l"
        found.append((columns["keys"][key], [int(columns["values"][i]) for i in items]))
    assert found == reads


@pytest.mark.skipif(not CORPORA.is_dir(), reason="the corpora are not here")
def test_every_edge_of_a_page_is_one_of_the_certificate():
    """And both its ends are in the page; ``benchmarks/pages.py`` opens all of them in a browser."""
    from pages import edges_of_certificate, edges_of_page

    for path in sorted((CORPORA / "anomalies" / "ser").glob("invalid-*"))[::6]:
        verdict = isolang.check(isolang.load_history(path), "ser")
        data = data_of(page(verdict, certificate="not saved"))
        named = {txn["name"] for txn in data["violation"]["transactions"]} | {"the initial state"}
        text = str(data["violation"]["argument"])
        assert set(re.findall(r"'(?:source|target)': '([^']*)'", text)) <= named
        assert edges_of_page(verdict) <= edges_of_certificate(verdict)


def test_operations_stand_where_they_were_at_work():
    """Of a history with times of operations, after the begin of their transactions."""
    history = History.from_transactions(
        [
            Transaction(
                [("w", "x", 1), ("w", "y", 1)],
                begin=5, end=40, times=[(7, 9), (20, 26)], commit=30,
            ),
            Transaction([("r", "x", 1)], begin=10, end=50),
        ]
    )  # fmt: skip
    columns = data_of(page(isolang.check(history, "pl-1")))["columns"]
    assert columns["begin"] == [0, 5]
    assert columns["sent"] == [2, 15, None]
    assert columns["took"] == [2, 6, None]
    assert columns["commit"][0] == 25


def test_predicates_deletes_and_failures_are_told():
    """A read of rows with its predicate, a delete as such."""
    history = History.from_transactions(
        [
            Transaction([("insert", "x", 5), ("insert", "y", 1)]),
            Transaction([("scan", (">", "value", 3), {"x": 5}), ("delete", "y")]),
        ]
    )
    columns = data_of(page(isolang.check(history, "ser")))["columns"]
    assert columns["kind"][-1] == "d"
    ((first, end, predicate),) = columns["statements"]
    assert (columns["kind"][first], end - first) == ("r", 1)
    assert ":value 3" in predicate


def test_the_page_draws_the_relations_that_there_are():
    """The page has each letter of the vocabulary, drawn as in figures, in a colour of its style."""
    text = page(on_call("ser"))
    drawn = data_of(text)["relations"]
    assert set(drawn) == {word.name for word in VOCABULARY if word.letter}
    for name, one in drawn.items():
        style = RELATIONS[name]
        assert tuple(one["dash"]) == style.dash
        assert one["long"] == f"{name}: {style.meaning}"
        assert f"--{one['colour']}: {style.colour};" in text
    assert {one["colour"] for one in drawn.values()} == set(COLOURS)


def test_every_anomaly_says_what_it_means_and_what_to_do():
    """Each name of docs/anomalies.md, by a sentence; no page is without an advice."""
    text = (ROOT / "docs" / "anomalies.md").read_text()
    names = set(re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE))
    assert names == set(advice._MEANS)
    for sentence in advice._MEANS.values():
        assert sentence[0].isupper()
        assert sentence.endswith(".")
    data = data_of(page(on_call("ser")))
    assert data["meaning"] == advice._MEANS["write skew"]
    assert data["advice"]
    assert data["part"].count(":ok") == 3
    assert data_of(page(on_call("si")))["meaning"] == ""


def test_the_head_names_the_server_and_its_version(tmp_path):
    """As the first line of a recording states them; of another file it says nothing."""
    assert data_of(page(on_call("ser")))["database"] == ""
    path = tmp_path / "run.edn"
    about = "TinyDB 3.1; level snapshot (as it says); workload rmw; seed 4"
    with Recorder(path, about=about) as recorder, recorder.transaction(0) as t:
        t.write("x", 1)
    assert data_of(page(isolang.check(isolang.load_history(path), "ser")))["database"] == (
        "TinyDB 3.1"
    )


@pytest.mark.parametrize(
    ("nanoseconds", "said"), [(696_000, "0.7 ms"), (12_300_000, "12 ms"), (1_070_000_000, "1.07 s")]
)
def test_durations_have_the_unit_that_suits_them(tmp_path, nanoseconds, said):
    """Of how long a transaction was open: no 0.000696 s."""
    path = tmp_path / "h.edn"
    lines = [
        "{:index 0, :type :invoke, :process 0, :time 0, :value [[:r :x nil] [:w :x 1]]}",
        "{:index 1, :type :invoke, :process 1, :time 10, :value [[:r :x nil] [:w :x 2]]}",
        "{:index 2, :type :ok, :process 1, :time 20, :value [[:r :x nil] [:w :x 2]], "
        ":times [[11 12] [13 14]], :commit [15 16]}",
        f"{{:index 3, :type :ok, :process 0, :time {nanoseconds}, :value [[:r :x nil] [:w :x 1]], "
        ":times [[1 2] [3 4]], :commit [5 6]}",
    ]
    path.write_text("\n".join(line.replace(":value", ":f :txn, :value") for line in lines))
    history = isolang.load_history(path)
    assert age_of(history, 0) == f"open for {said} while 1 other committed"

"""Other forms of a verdict are what their readers take: graphs, traces, test results, Markdown."""

import json
import re
from xml.etree import ElementTree

import networkx as nx
import pytest
from support.pages import HOSTILE
from support.paths import ROOT

import isolang
from isolang.history import History, Transaction
from isolang.output.records import Report, Seconds, report_of
from isolang.report import forms
from isolang.run.record.recorder import Recorder

VERDICT = isolang.check(isolang.load_history(ROOT / "examples" / "on-call.edn"), "ser")
VALID = isolang.check(isolang.load_history(ROOT / "examples" / "on-call.edn"), "si")


def hostile(text):
    """A lost update on a key, with values, of hostile text."""
    ops = [("r", text, None), ("w", text, text)]
    return isolang.check(
        History.from_transactions(
            [Transaction(ops, session="a"), Transaction([*ops[:1], ("w", text, 2)], session="b")],
            name="history",
        ),
        "si",
    )


def test_graphviz_has_every_edge_of_the_cycle():
    """With its relation, key and colour."""
    text = forms.dot(VERDICT)
    assert re.findall(r'(\d+) -> (\d+) \[label="(rw [^"]*)"', text) == [
        ("1", "2", "rw :bob"),
        ("2", "1", "rw :alice"),
    ]
    assert text.count("{") == text.count("}") == 1


def test_graphml_comes_back_as_the_graph():
    """Nodes, edges and their attributes."""
    graph = nx.parse_graphml(forms.graphml(VERDICT), node_type=int, force_multigraph=True)
    own = VERDICT.violation.graph()
    assert sorted(graph.nodes) == sorted(own.nodes)
    found = sorted(data["relation"] + data["key"] for *_, data in graph.edges(data=True))
    assert found == sorted(data["relation"] + data["key"] for *_, data in own.edges(data=True))


def test_perfetto_has_a_slice_for_each_transaction_and_a_flow_for_each_edge():
    """Flows begin and end on the rows of their transactions."""
    events = json.loads(forms.perfetto(VERDICT))["traceEvents"]
    phases = [event["ph"] for event in events]
    assert phases.count("X") == VERDICT.history.counts()["transactions"]
    assert phases.count("s") == phases.count("f") == 2
    rows = {event["tid"] for event in events if event["ph"] == "M"}
    assert {event["tid"] for event in events} <= rows


def test_junit_counts_what_is_wrong():
    """Invalid is a failure, an unreadable history an error, unknown is skipped."""
    reports = [
        Report(verdict=v, history="h", spec="ser", reason="why", seconds=Seconds(total=1.5))
        for v in ("valid", "invalid", "error", "unknown")
    ]
    (suite,) = ElementTree.fromstring(forms.junit((r, f"all of {r.verdict}") for r in reports))
    wanted = {"tests": "4", "failures": "1", "errors": "1", "skipped": "1", "name": "isocheck"}
    assert suite.attrib == wanted
    assert [[child.tag for child in case] for case in suite] == [
        [], ["failure"], ["error"], ["skipped"],
    ]  # fmt: skip
    assert [suite[1][0].get("message"), suite[1][0].text] == ["why", "all of invalid"]


def test_sarif_leads_to_the_lines_of_the_application():
    """Where the recording knows them; else to those of the history; what is valid has no result."""
    history = ROOT / "examples" / "on-call.edn"
    report = report_of(str(history), "ser", isolang.check(isolang.load_history(history), "ser"))
    valid = report_of(str(history), "si", VALID)
    (run,) = json.loads(forms.sarif([(valid, "fine"), (report, "all of it")]))["runs"]
    (result,) = run["results"]
    assert (result["ruleId"], result["level"]) == ("isocheck/write-skew", "error")
    assert result["message"]["text"].startswith("ser: write skew: ")
    assert result["message"]["text"].endswith("\n\nall of it")
    lines = [
        place["physicalLocation"]["region"]["startLine"]
        for place in (*result["locations"], *result["relatedLocations"])
    ]
    assert lines == [txn.place.position for txn in report.violation.transactions]


def test_forms_of_a_watched_application_have_its_lines_and_rows(tmp_path):
    """As text has them: what a reader knows, and not the numbers that are checked."""
    with Recorder(tmp_path / "history.edn") as recorder:
        for session in range(2):
            with recorder.transaction(session) as t:
                t.read("user/7", None)
                t.write("user/7", 765 + session)
                t.callers = ["app.py:1", "app.py:2"]
    callers, rows = '"app.py:1" "app.py:2"]', ', :rows ["{age: 4}" "{age: 4 → 5}"]'
    path = tmp_path / "history.edn"
    path.write_text(path.read_text().replace(callers, callers + rows))
    verdict = isolang.check(isolang.load_history(path), "si")
    report = report_of("history.edn", "si", verdict)
    assert "`w(user/7 {age: 4 → 5})` `app.py:2`" in forms.markdown(verdict)
    assert "w(user/7 {age: 4 → 5})" in forms.perfetto(verdict).replace("\\u2192", "→")
    (result,) = json.loads(forms.sarif([(report, "")]))["runs"][0]["results"]
    places = [*result["locations"], *result["relatedLocations"]]
    assert [
        (
            place["physicalLocation"]["artifactLocation"]["uri"],
            place["physicalLocation"]["region"]["startLine"],
            place["message"]["text"].split(": ", 1)[1],
        )
        for place in places
    ] == [
        ("app.py", 1, "r(user/7 {age: 4})"),
        ("app.py", 2, "w(user/7 {age: 4 → 5})"),
    ] * 2


def test_markdown_has_a_part_that_shows_the_same(tmp_path):
    """What a reader copies out of a bug report is judged as the whole was."""
    text = forms.markdown(VERDICT, command="isocheck --spec ser on-call.edn")
    (part,) = re.findall(r"```clojure\n(.*?)```", text, re.S)
    (tmp_path / "part.edn").write_text(part)
    found = isolang.check(isolang.load_history(tmp_path / "part.edn"), "ser")
    assert found.violation.anomaly == VERDICT.violation.anomaly
    assert "`isocheck --spec ser on-call.edn`" in text


@pytest.mark.parametrize("name", forms.FORMS)
def test_a_valid_history_has_every_form(name):
    """Without a violation there is nothing to draw, and that is no error."""
    assert forms.FORMS[name](VALID)


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_stays_inside(text):
    """No key or value ends a string, a tag, a label or a line that it stands in."""
    verdict = hostile(text)
    assert verdict.outcome == "invalid"
    quoted = re.sub(r'"(?:[^"\\]|\\.)*"', '""', forms.dot(verdict), flags=re.S)
    assert re.fullmatch(r"[\w\s{}\[\]=,;>\-\"#]*", quoted)
    assert nx.parse_graphml(forms.graphml(verdict)).number_of_nodes() == 2
    json.loads(forms.perfetto(verdict))
    assert set(re.findall(r'"([^"]*)"', forms.mermaid(verdict))) == set(
        re.findall(r'"([\w .,\-#;/<>]*)"', forms.mermaid(verdict))
    )
    report = Report(verdict="invalid", history=text, spec="si", reason=text)
    ElementTree.fromstring(forms.junit([(report, text)]))
    (found,) = json.loads(forms.sarif([(report, text)]))["runs"][0]["results"]
    assert found["message"]["text"].endswith(text)


MARKUP = [
    "<img src=x onerror=alert(1)>",
    "[click](https://example.invalid)",
    "see https://example.invalid",
    "@somebody",
    "`` ` ```",
    "a\x1b[2Jb",
    "a | b",
    "\u202ereversed",
]


@pytest.mark.parametrize("text", [*HOSTILE, *MARKUP], ids=range(len(HOSTILE) + len(MARKUP)))
def test_markdown_has_no_markup_of_the_history(text):
    """Keys, values and names are text or code: no tag, no link, no control character."""
    markdown_it = pytest.importorskip("markdown_it")
    verdict = hostile(text)
    found = forms.markdown(verdict, command=f"isocheck {text}")
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", found)
    tokens = markdown_it.MarkdownIt("gfm-like", {"linkify": False}).parse(found)
    kinds = {t.type for token in tokens for t in [token, *(token.children or [])]}
    assert kinds.isdisjoint({"html_block", "html_inline", "link_open", "image", "heading_open"})
    fences = [token.info for token in tokens if token.type == "fence"]
    assert fences == (["mermaid", "clojure"] if "clojure" in found else ["mermaid"])
    prose = "".join(
        child.content for token in tokens for child in token.children or [] if child.type == "text"
    )
    assert "://" not in prose
    assert "@" not in prose


@pytest.mark.parametrize("form", ["dot", "mermaid", "graphml"])
def test_graphs_have_no_control_characters(form):
    """A terminal that a form is printed on obeys nothing of the history."""
    found = forms.FORMS[form](hostile("a\x1b[2Jb\x9b\u202e"))
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", found)

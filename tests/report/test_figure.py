"""Figures for papers: what they say, whether it can be read, and the kinds of files."""

import re
from itertools import combinations
from xml.etree import ElementTree

import pytest
from support.cli import LOST_UPDATE, run_here
from support.pages import HOSTILE
from support.paths import CORPORA, ROOT

import isolang
from isolang.errors import OptionError
from isolang.history import History, Transaction
from isolang.pipeline.levels import levels_of
from isolang.report.chart import chart
from isolang.report.figure import figure, lattice
from isolang.report.picture import Box, TextLine, save_picture, svg, width_of
from isolang.report.relations import RELATIONS

ON_CALL = isolang.load_history(ROOT / "examples" / "on-call.edn")


def words(picture):
    return [shape.text for shape in picture.shapes if isinstance(shape, TextLine)]


def boxes(picture):
    """The boxes of transactions: those with a line around them."""
    return [shape for shape in picture.shapes if isinstance(shape, Box) and shape.thick]


def test_a_figure_names_every_edge_and_what_it_rests_on():
    """The relation and the key stand at the edge, lemmas below, and a key says what lines mean."""
    said = words(figure(isolang.check(ON_CALL, "ser")))
    assert {"T4", "T5", "rw :bob (1)", "rw :alice (2)"} <= set(said)
    assert any(line.startswith("(1) T1 wrote :bob = 1") for line in said)
    assert RELATIONS["rw"].meaning in said
    assert RELATIONS["wr"].meaning not in said


def test_relations_are_told_apart_without_colour():
    """No two relations have the same dashes."""
    dashes = [style.dash for style in RELATIONS.values()]
    assert len(set(dashes)) == len(dashes)


def test_there_is_no_figure_of_a_valid_history():
    """As there is no cycle to draw."""
    with pytest.raises(OptionError, match="no cycle to draw"):
        figure(isolang.check(ON_CALL, "si"))


@pytest.mark.parametrize("transactions", range(2, 9))
def test_boxes_do_not_overlap(transactions):
    """A cycle of any length: each transaction misses what the next one wrote."""
    n = transactions
    history = History.from_transactions(
        [
            Transaction([("r", f"key{i}", None), ("w", f"key{(i + 1) % n}", "value")], session=i)
            for i in range(n)
        ]
    )
    picture = figure(isolang.check(history, "ser"))
    found = boxes(picture)
    assert len(found) == n
    for a, b in combinations(found, 2):
        apart = (abs(a.x - b.x) - (a.width if a.x < b.x else b.width)) >= 10
        below = (abs(a.y - b.y) - (a.height if a.y < b.y else b.height)) >= 10
        assert apart or below
    assert all(b.x >= 0 and b.x + b.width <= picture.width for b in found)


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_stays_text(text):
    """In the file there is no element but those of the drawing."""
    ops = [("r", text, None), ("w", text, 1)]
    history = History.from_transactions(
        [Transaction(ops, session="a"), Transaction([*ops[:1], ("w", text, 2)], session="b")]
    )
    drawn = svg(figure(isolang.check(history, "si")))
    root = ElementTree.fromstring(drawn)
    assert {e.tag.rpartition("}")[2] for e in root.iter()} <= {
        "svg", "title", "rect", "path", "polygon", "text",
    }  # fmt: skip
    assert len(drawn) < 20_000
    assert not set(drawn) & set("\u202e\u202c\x1b\u2028")


def test_the_lattice_has_every_level_and_where_the_history_stands():
    """The mark stands before the name; sessions make no difference, and are not drawn twice."""
    found = levels_of(ON_CALL)
    picture = lattice(found)
    assert {f"{mark} {name}" for mark, name in (("✓", "si"), ("✗", "ser"))} <= set(words(picture))
    assert {w[2:] for w in words(picture) if w[:2] in ("✓ ", "✗ ") and len(w.split()) == 2} == set(
        found.worth_listing()
    )
    assert {f"{name}-nosession" for name in found.worth_listing()} & set(found.levels) == set(
        found.levels
    ) - set(found.worth_listing())
    for box, text in zip(boxes(picture), words(picture), strict=False):
        assert width_of(text, 11) < box.width


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "start"), [("svg", b"<svg"), ("png", b"\x89PNG"), ("pdf", b"%PDF")]
)
def test_each_kind_of_file(tmp_path, kind, start):
    """Without a browser; a dollar sign is no formula."""
    if kind != "svg":
        pytest.importorskip("matplotlib")
    path = tmp_path / f"figure.{kind}"
    ops = [("r", "$x_1$", None), ("w", "$x_1$", 1)]
    history = History.from_transactions(
        [Transaction(ops), Transaction([*ops[:1], ("w", "$x_1$", 2)])]
    )
    save_picture(figure(isolang.check(history, "si")), path)
    assert path.read_bytes().startswith(start)


def test_a_chart_has_a_curve_and_a_name_for_each():
    """With axes of powers of ten around the points."""
    picture = chart({"a": [(10, 0.5), (1000, 20)], "b": [(10, 3)]}, title="t", across="n", up="s")
    assert {"a", "b", "10", "1,000", "0.1", "100", "n", "↑ s"} <= set(words(picture))


def test_plot_draws_verdicts_certificates_and_levels(tmp_path, capfd):
    """Each command says what it wrote, and a valid verdict that there is nothing to draw."""
    (tmp_path / "lost").write_text(LOST_UPDATE)
    lost, saved = tmp_path / "lost", tmp_path / "saved"
    one, other, third = (tmp_path / f"{i}.svg" for i in range(3))
    run = run_here(capfd, "-s", "si", "--plot", one, "--certificate", saved, "-o", "json", lost)
    (report,) = run.reports()
    assert (run.code, report["plot"]) == (1, str(one))
    (certificate,) = saved.iterdir()
    assert run_here(capfd, "verify", certificate, lost, "--plot", other).code == 0
    drawn = [re.findall(r">([^<>]*)</text>", path.read_text()) for path in (one, other)]
    assert drawn[0] == drawn[1]
    assert run_here(capfd, "levels", lost, "--plot", third).code == 0
    assert "✗ si" in third.read_text()
    run = run_here(capfd, "-s", "pl-2", "--plot", one, "-o", "json", lost)
    (report,) = run.reports()
    assert run.code == 0
    assert report["plot"] is None
    assert "no cycle to draw" in report["warnings"][-1]


def test_a_plot_that_cannot_be_is_refused_before_the_work(tmp_path, capfd):
    """By the end of its name; and two verdicts are no figure."""
    (tmp_path / "lost").write_text(LOST_UPDATE)
    for more in (
        ("--plot", "a.foo"),
        ("--plot", tmp_path / "none" / "a.svg"),
        ("-s", "ser", "--plot", "a.svg"),
    ):
        run = run_here(capfd, "-s", "si", *more, tmp_path / "lost")
        assert (run.code, run.out) == (2, "")
        assert "--plot" in run.err


def test_a_page_of_a_certificate_shows_what_the_verdict_showed(tmp_path, capfd):
    """The same argument, and the hash of the certificate's file, without deciding anything."""
    import hashlib

    from support.pages import data_of

    (tmp_path / "lost").write_text(LOST_UPDATE)
    lost, saved = tmp_path / "lost", tmp_path / "saved"
    first, again = tmp_path / "first.html", tmp_path / "again.html"
    run_here(capfd, "-s", "si", "--html", first, "--certificate", saved, lost)
    (certificate,) = saved.iterdir()
    assert run_here(capfd, "verify", certificate, lost, "--html", again).code == 0
    one, other = (data_of(path.read_text()) for path in (first, again))
    assert other["violation"]["argument"] == one["violation"]["argument"]
    assert other["certificate"] == hashlib.sha256(certificate.read_bytes()).hexdigest()
    assert (other["certified"], other["statistics"][0][0]) == (True, "seconds: read")


@pytest.mark.skipif(not CORPORA.is_dir(), reason="the corpora are not here")
def test_a_tree_of_cases_is_drawn_whole():
    """Each case with its assumption, and every edge of its cycle."""
    path = CORPORA / "anomalies" / "ser" / "invalid-002.bincode"
    verdict = isolang.check(isolang.load_history(path), "ser")
    said = words(figure(verdict))
    cases = verdict.violation.argument.conclusion.cases
    for number, case in enumerate(cases, 1):
        assert any(line.startswith(f"Case {number}: ") for line in said)
        for edge in case.argument.conclusion.edges:
            assert any(line.startswith(f"{edge.relation} {edge.key}") for line in said)

"""Pages without a history: comparisons of solvers, and specifications."""

import base64
import hashlib
import re

from support.cli import VALID, run_here

from isolang.cli.plot import time_against_size
from isolang.output.contest import ContestRow
from isolang.report.contest import html


def row(solver, total, **more):
    return ContestRow(
        history="<h>", transactions=100, spec="si", encoding="e", solver=solver, verdict="valid",
        total=total, **more,
    )  # fmt: skip


def allowed(page, kind):
    """Whether the policy allows the page's own style or script, by its hash."""
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    (inner,) = re.findall(rf"<{kind}>(.*?)</{kind}>", page, re.S)
    digest = base64.b64encode(hashlib.sha256(inner.encode()).digest()).decode()
    return f"{kind}-src 'sha256-{digest}';" in policy and policy.startswith("default-src 'none';")


def test_pages_allow_nothing_but_themselves():
    """By a policy with the hashes of style and script."""
    page = html([row("a", 1.0)], time_against_size([row("a", 1.0)]), messages=[])
    assert allowed(page, "style")
    assert allowed(page, "script")
    assert "http" not in re.sub(r'xmlns="[^"]*"|http-equiv', "", page)


def test_compare_writes_a_page(tmp_path, capfd):
    """With every run in it."""
    (tmp_path / "h").write_text(VALID)
    page = tmp_path / "page.html"
    run = run_here(
        capfd, "solvers", "-s", "si", "--only", "event-graph", "--html", page, tmp_path / "h"
    )
    assert run.code == 0
    assert "event-graph/native/fixpoint" in page.read_text()


def test_a_specification_is_drawn_with_what_it_forbids(tmp_path, capfd):
    """Its automaton, a smallest history for the check, and one for each next weaker level."""
    page = tmp_path / "si.html"
    assert run_here(capfd, "spec", "explain", "si", "--html", page).code == 0
    text = page.read_text()
    assert allowed(text, "style")
    assert all(f">{word}</text>" in text for word in ("q0", "q1", "so | wr | ww", "rw | ε"))
    assert "psi allows this, SI forbids it" in text
    assert "long fork" in text
    assert "pc allows this, SI forbids it" in text
    assert "lost update" in text
    assert "<mark>acyclic (so | wr | ww) ; rw? as SI" in text


def test_a_check_that_the_others_imply_forbids_nothing_alone(tmp_path, capfd):
    """And the page says so instead of showing a history."""
    spec = tmp_path / "two.iso"
    spec.write_text(
        'spec two "<b>two</b>"\ninclude "adya.iso"\nacyclic so | wr | ww | rw as strong\n'
        "acyclic so | wr | ww as weak\n"
    )
    page = tmp_path / "two.html"
    assert run_here(capfd, "spec", "explain", spec, "--html", page).code == 0
    assert "None: the other checks imply it." in page.read_text()
    assert "<b>two" not in page.read_text()


def test_a_survey_has_a_policy_too():
    """It is made as the other pages are."""
    from isolang.report.plain import plain_page

    assert allowed(plain_page("<t>", "<p>b</p>"), "style")
    assert "<title>&lt;t&gt;</title>" in plain_page("<t>", "<p>b</p>")

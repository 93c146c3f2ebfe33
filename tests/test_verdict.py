"""What a verdict is for those who print it, test it, or look at it in a notebook."""

from html import unescape

import pytest
from support.paths import ROOT

import isolang


@pytest.fixture(scope="module")
def history():
    return isolang.load_history(ROOT / "examples" / "on-call.edn")


@pytest.mark.parametrize("spec", ["ser", "si"])
def test_a_verdict_has_no_truth_value(history, spec):
    """``assert check(…)`` fails whatever the verdict is, and says what to write."""
    verdict = isolang.check(history, spec)
    with pytest.raises(TypeError, match=r"\.outcome.*match.*assert_level"):
        assert verdict
    with pytest.raises(TypeError):
        _ = not verdict


def test_str_is_the_report(history):
    """The whole argument, as the command line shows it, without colours."""
    text = str(isolang.check(history, "ser"))
    assert text.startswith("INVALID")
    assert "T4 -rw :bob-> T5" in text
    assert "\x1b" not in text


def test_repr_is_one_line(history):
    """A debugger shows what was judged, and what came of it."""
    path = str(ROOT / "examples" / "on-call.edn")
    expected = f"<Invalid: {path}, SER: write skew, certified>"
    assert repr(isolang.check(history, "ser")) == expected
    assert repr(isolang.check(history, "si")) == f"<Valid: {path}, SI: certified>"
    unknown = repr(isolang.check(history, "ser", timeout=1e-9))
    assert unknown.startswith(f"<Unknown: {path}, SER: timeout:")
    assert "\n" not in unknown


def test_notebooks_show_the_page(history):
    """In a frame that may run the page's own script and nothing else."""
    verdict = isolang.check(history, "ser")
    shown = verdict._repr_html_()
    frame, _, page = shown.partition('srcdoc="')
    assert 'sandbox="allow-scripts"' in frame
    assert unescape(page.removesuffix('"></iframe>')) == verdict.to_html()
    assert '"' not in page.removesuffix('"></iframe>')

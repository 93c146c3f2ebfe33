"""The pages of the documentation point at what is there."""

from __future__ import annotations

import re
from importlib import import_module

import pytest
from support import relations_table
from support.paths import ROOT

from isolang.certify import certificate
from isolang.language.vocabulary import VOCABULARY
from isolang.output import records
from isolang.watch import chain

PAGES = sorted([
    *(ROOT / "docs").glob("*.md"), *(ROOT / "docs/recipes").glob("*.md"),
    *(ROOT / "docs/applications").glob("*.md"), *ROOT.glob("*.md")
])  # fmt: skip
# Prose names a file from the root, from its own folder, or from a folder that the text is about.
BASES = ("", "isolang", "isolang/encodings", "isolang/language", "native", "native/engine")
# Written with a capitalised word in place of a name, or made by a command that the page shows.
EXAMPLES = re.compile(r"[A-Z]{3,}|^campaign/|^isocheck-runs/")
FILE = re.compile(r"[\w.-]+(?:/[\w.-]+)+\.(?:py|hpp|cpp|md|toml|iso|edn|csv|json|txt)|[\w./-]+/")


# It speaks of revisions, whose files may be gone.
PAST = {"CHANGELOG.md"}


def prose(page):
    """The text of a page without its blocks of code."""
    return re.sub(r"^( *)```.*?^\1```", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)


def without_spans(text):
    return re.sub(r"`[^`]*`", "code", text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_relative_links_lead_somewhere(page):
    """A link to a page, an image or a source file names one that exists."""
    links = re.findall(r"\]\(([^)\s]+)\)", without_spans(prose(page)))
    files = {link.split("#")[0] for link in links if not re.match(r"\w+:|#", link)}
    assert [f for f in sorted(files) if not (page.parent / f).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_sections_lead_to_a_heading(page):
    """A link with an anchor names a heading of its page."""
    for link in re.findall(r"\]\(([^)\s]*#[^)\s]+)\)", without_spans(prose(page))):
        if re.match(r"\w+:", link):
            continue
        name, anchor = link.split("#")
        target = page.parent / name if name else page
        headings = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), flags=re.M)
        slugs = {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}
        assert anchor in slugs, link


@pytest.mark.parametrize("page", [p for p in PAGES if p.name not in PAST], ids=lambda p: p.name)
def test_paths_in_the_text_exist(page):
    """A path between backticks is one of the repository, but for examples."""
    named = {span for span in re.findall(r"`([^`\n]+)`", prose(page)) if FILE.fullmatch(span)}
    missing = [
        path
        for path in sorted(named)
        if not EXAMPLES.search(path)
        and not any((ROOT / base / path).exists() for base in BASES)
        and not (page.parent / path).exists()
    ]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_modules_in_the_text_exist(page):
    """A dotted name that begins with ``isolang`` can be imported, or is a name in such a module."""
    for name in sorted(set(re.findall(r"`(isolang(?:\.\w+)+)", prose(page)))):
        *path, last = name.split(".")
        module = import_module(path[0])
        for part in [*path[1:], last]:
            if not hasattr(module, part):
                import_module(f"{module.__name__}.{part}")
            module = getattr(module, part)


def test_the_architecture_names_every_package():
    """Each package and module at the top of ``isolang`` has its row in the table of layers."""
    table = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    files = [
        *(ROOT / "isolang").glob("*.py"),
        *(f.parent for f in ROOT.glob("isolang/*/__init__.py")),
    ]
    names = sorted(file.stem for file in files if not file.name.startswith("_"))
    assert [n for n in names if f"isolang.{n}" not in table and f"{n}.py" not in table] == []


def test_the_versions_that_are_promised_are_those_of_the_code():
    """docs/stability.md names those of reports, certificates and chains."""
    promised = (ROOT / "docs" / "stability.md").read_text(encoding="utf-8")
    for what, number in (
        ("--output", f"`schema` {records.SCHEMA}"),
        ("certificates.md", f"`format` {certificate.FORMAT}"),
        ("--state", f"`format` {chain.FORMAT}"),
    ):
        (row,) = [line for line in promised.splitlines() if line.startswith("|") and what in line]
        assert number in row


def test_every_page_has_its_place_in_the_site():
    """mkdocs.yml names each page of the folder once; findings are listed on a page of their own."""
    pages = re.findall(r"^ +- (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.M)
    there = [page.name for page in (ROOT / "docs").glob("*.md")]
    there += [
        f"{folder}/{page.name}"
        for folder in ("recipes", "applications")
        for page in (ROOT / "docs" / folder).glob("*.md")
    ]
    assert sorted(pages) == sorted([*there, "findings/README.md"])


def test_the_table_of_relations_is_that_of_the_vocabulary():
    """Each word is there once, with its meaning; `tests/support/relations_table.py` writes it."""
    text = relations_table.PAGE.read_text()
    assert relations_table.page_with_table(text) == text
    assert all(text.count(f"\n| `{word.name}`") == 1 for word in VOCABULARY)


def test_another_table_of_relations_is_noticed():
    """A changed row, and a page without a place for the table."""
    text = relations_table.PAGE.read_text()
    assert (
        relations_table.page_with_table(text.replace("in session order", "in its session")) == text
    )
    with pytest.raises(ValueError, match="no place for the table"):
        relations_table.page_with_table("| name | what it relates | from |")


def test_the_changes_say_everything_once():
    """A merge of two branches may keep both of what it should have joined."""
    lines = [
        line for line in (ROOT / "CHANGELOG.md").read_text().splitlines() if line.startswith("* ")
    ]
    assert len(lines) == len(set(lines))
    themes = [line for line in prose(ROOT / "CHANGELOG.md").splitlines() if line.startswith("#")]
    assert len(themes) == len(set(themes))

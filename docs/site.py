"""Add to the site what `mkdocs build` makes, in addition to the pages of this folder.

These are the pages of the repository's root, and the files that pages link to; the reference of the
public names, from their docstrings; a page for each level of the library, which
`isocheck spec explain` draws; the tables of the lattice, and its picture with links to the levels.
"""

from __future__ import annotations

import importlib
import re
import tempfile
from contextlib import redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
REFERENCE = {
    "isolang": "what `import isolang` gives",
    "isolang.models": "models of objects, for `isolang.linearize`",
    "isolang.testing.isolation": "the fixture `isolation`",
    "isolang.testing.database": "the fixture `database`",
    "isolang.testing.target": "tests of an adapter of one's own",
    "isolang.strategies": "interleavings for Hypothesis",
    "isolang.pipeline.levels": "all levels of the library",
}
PROJECT = {"SECURITY.md": "Security", "CONTRIBUTING.md": "Contributing", "CHANGELOG.md": "Changes"}
_COLOURS = (
    ".lattice svg{width:100%}.lattice .b{fill:var(--md-code-bg-color);"
    "stroke:var(--md-default-fg-color--light)}.lattice .e{fill:none;"
    "stroke:var(--md-default-fg-color--lighter)}.lattice text{fill:var(--md-typeset-a-color)}"
    ".lattice a:hover .b{fill:var(--md-accent-fg-color--transparent)}"
    ".lattice .e:hover{stroke:var(--md-accent-fg-color);stroke-width:3}"
)
_LINK = re.compile(r"(\]\()([^)\s#:]+)((?:#[^)\s]*)?\))")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages of the root, the reference, the levels and what is pointed at."""
    for name in PROJECT:
        text = (ROOT / name).read_text(encoding="utf-8")
        files.append(File.generated(config, f"project/{name}", content=text))
    for module, what in REFERENCE.items():
        members = "".join(f"        - {name}\n" for name in _public(module))
        text = f"# {module}\n\n{what[:1].upper()}{what[1:]}.\n\n::: {module}\n"
        text += "    options:\n      show_root_heading: false\n      inherited_members: true\n"
        text += f"      members:\n{members}"
        files.append(File.generated(config, f"reference/{module}.md", content=text))
    levels = _levels()
    for name in levels:
        files.append(File.generated(config, f"explain/{name}.html", content=_explained(name)))
    listed = "".join(f"| [`{name}`]({name}.html) | {title} |\n" for name, title in levels.items())
    index = f"# Every level, drawn\n\n| level | what it is |\n|---|---|\n{listed}"
    files.append(File.generated(config, "explain/index.md", content=index))
    for page in list(files.documentation_pages()):
        for path in _outside(page):
            inside = sorted(path.iterdir()) if path.is_dir() else [path]
            for one in inside:
                at = f"source/{one.relative_to(ROOT)}"
                if one.is_file() and files.get_file_from_path(at) is None:
                    files.append(File.generated(config, at, content=one.read_bytes()))
            at = f"source/{path.relative_to(ROOT)}/index.md"
            if path.is_dir() and files.get_file_from_path(at) is None:
                listed = "".join(f"* [{one.name}]({one.name})\n" for one in inside if one.is_file())
                text = f"# {path.relative_to(ROOT)}\n\n{listed}"
                files.append(File.generated(config, at, content=text))
    return files


def on_config(config: Any) -> Any:
    """Put what is made into the navigation."""
    config.nav += [
        {"Reference": [f"reference/{module}.md" for module in REFERENCE]},
        {"Project": [f"project/{name}" for name in PROJECT]},
    ]
    levels = next(part for part in config.nav if "Write a level" in part)
    levels["Write a level"].append("explain/index.md")
    return config


def on_page_markdown(text: str, page: Any, config: Any, files: Files) -> str:
    """Point links that leave the folder at their copies, and complete the page of the lattice."""
    at = page.file.src_uri

    def moved(found: re.Match[str]) -> str:
        path = _target(at, found.group(2))
        if path is None:
            return found.group(0)
        up = "../" * at.count("/")
        if path.parent == ROOT and path.name in PROJECT:
            where = f"project/{path.name}"
        elif path.parent == ROOT and path.name == "README.md":
            where = "index.md"
        elif path.is_relative_to(ROOT / "docs"):
            where = str(path.relative_to(ROOT / "docs"))
        else:
            where = f"source/{path.relative_to(ROOT)}" + "/index.md" * path.is_dir()
        return f"{found.group(1)}{up}{where}{found.group(3)}"

    text = _LINK.sub(moved, text)
    if at == "lattice.md":
        text = re.sub(r"!\[[^]]*\]\(images/lattice\.svg\)", lambda _: _clickable(), text, count=1)
        text = re.sub(r"<!-- lattice: .* -->", lambda _: _lattice_tables(), text, count=1)
    return text


def _outside(page: File) -> list[Path]:
    """The files of the repository outside this folder that a page points at."""
    found = []
    for link in _LINK.finditer(page.content_string):
        path = _target(page.src_uri, link.group(2))
        if path is not None and not path.is_relative_to(ROOT / "docs") and path.name not in PROJECT:
            found.append(path)
    return found


def _target(at: str, link: str) -> Path | None:
    """What a link of a page means in the repository; nothing if it stays in this folder."""
    if at.startswith(("explain/", "reference/", "source/")):
        return None
    base = ROOT if at.startswith("project/") else (ROOT / "docs" / at).parent
    path = (base / link).resolve()
    stays = base != ROOT and path.is_relative_to(ROOT / "docs")
    return None if stays or not path.is_relative_to(ROOT) or not path.exists() else path


def _levels() -> dict[str, str]:
    """The levels of the library that are no other's second name, with what they are."""
    from isolang.language.library import list_library
    from isolang.language.load import load_spec

    names = [entry.name for entry in list_library() if not entry.alias_of]
    return {name: load_spec(name).title for name in names}


def _public(module: str) -> list[str]:
    """The public names of a module, in its order."""
    found = importlib.import_module(module)
    own = [name for name, one in vars(found).items() if getattr(one, "__module__", "") == module]
    return [name for name in getattr(found, "__all__", own) if not name.startswith("_")]


def _explained(name: str) -> str:
    """The page of a level."""
    from isolang.cli.spec_explain import explain

    with tempfile.TemporaryDirectory() as folder, redirect_stdout(StringIO()):
        page = Path(folder) / "page.html"
        explain(name=name, page=str(page))
        return page.read_text(encoding="utf-8")


@cache
def _lattice_tables() -> str:
    """What `isocheck spec lattice` finds: equal levels, edges with histories, proofs."""
    from isolang.comparison.lattice import lattice, library_levels
    from isolang.comparison.separate import Bounds
    from isolang.report.lattice import markdown

    page = markdown(lattice(library_levels(), bounds=Bounds(transactions=4, keys=3)))
    return page[page.index("## Equal levels") :]


def _clickable() -> str:
    """The picture of the lattice, each of whose boxes leads to the page of its level."""
    drawn = (ROOT / "docs" / "images" / "lattice.svg").read_text(encoding="utf-8")
    box = re.compile(r"<g><title>([^<]*)</title>(.*?)</g>")

    def linked(found: re.Match[str]) -> str:
        name = found.group(1).split(" = ")[0]
        return f'<a href="explain/{name}.html">{found.group(0)}</a>'

    # The site has a switch of its own between light and dark, and colours for both.
    drawn = re.sub(r"<style>.*?</style>", f"<style>{_COLOURS}</style>", drawn)
    return f'<div class="lattice" markdown="0">{box.sub(linked, drawn)}</div>'

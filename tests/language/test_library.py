"""The library of levels: every file parses, and compiles to the automaton of its definition."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from oracle import relational
from oracle.history import parse
from support.paths import DOCS

from isolang.errors import SpecError
from isolang.language import library
from isolang.language.classify.automaton import Automaton
from isolang.language.classify.event_graph import classify
from isolang.language.classify.route import (
    native_plan,
    without_real_time,
    without_sessions,
)
from isolang.language.library import (
    FRAGMENTS,
    SPECS,
    LibraryEntry,
    library_source,
    list_library,
    similar_names,
)
from isolang.language.load import load_spec
from isolang.language.meaning import mentions
from isolang.language.meaning.show import show_check

LOOP = ((0, 0),)
LEAVE = ((0, 1),)
BACK = ((1, 0),)


def one(check: str, relations: str, repeatable: str = "") -> Automaton:
    """One state, a loop per relation: all relations T → S."""
    steps = dict.fromkeys(relations.split(), LOOP)
    return Automaton(
        check=check, states=1, steps=steps, epsilon=(), repeatable=frozenset(repeatable.split())
    )


def two(check: str, relations: str, repeatable: str = "", ww: str = "leave") -> Automaton:
    """State 0 is the commit, state 1 the start: what is seen leads from 0 to 1, rw from 1 to 0."""
    steps = dict.fromkeys(relations.split(), LEAVE)
    steps["ww"] = LEAVE if ww == "leave" else LOOP
    steps["rw"] = BACK
    return Automaton(
        check=check, states=2, steps=steps, epsilon=BACK, repeatable=frozenset(repeatable.split())
    )


EVENT_GRAPHS = {
    "pl-1": one("G0", "ww"),
    "pl-2": one("G1c", "wr ww"),
    "pl-3": one("G2", "wr ww rw"),
    "pc": two("PC", "so wr", "so", ww="loop"),
    "pc-nosession": two("PC", "init wr", ww="loop"),
    "si": two("SI", "so wr", "so"),
    "si-nosession": two("SI", "init wr"),
    "ser": one("SER", "so wr ww rw", "so"),
    "ser-nosession": one("SER", "init wr ww rw"),
    "sser": one("SSER", "so rt wr ww rw", "so rt"),
    "sser-nosession": one("SSER", "init rt wr ww rw", "rt"),
    "strong-si": two("strong-SI", "so rt wr", "so rt"),
    "strong-si-nosession": two("strong-SI", "init rt wr", "rt"),
}
STYLES = {"": "dependencies", "-adya": "dependencies", "-co": "commit order", "-vis": "visibility"}
#: Each level, and the styles in which it has a file; all of them with and without sessions.
LEVELS = {
    "rc": {"": "commit order"},
    "ra": {**STYLES, "": "commit order"},
    "cc": {**STYLES, "": "commit order"},
    "pc": STYLES,
    "psi": STYLES,
    "si": STYLES,
    "ser": STYLES,
    "sser": STYLES,
    "strong-si": STYLES,
}
#: Forms that a level does not have, because its plain name is that form.
_PLAIN = {"rc": (), "ra": ("-co",), "cc": ("-co",), "psi": ("-adya", "-co")}
FILES = {
    f"{level}{form}{session}": style
    for level, styles in LEVELS.items()
    for form, style in styles.items()
    if form not in _PLAIN.get(level, ("-adya",))
    for session in ("", "-nosession")
}
FILES |= dict.fromkeys(("pl-1", "pl-2", "pl-3"), "dependencies")
FILES |= dict.fromkeys(("ryw", "mr", "mw", "wfr"), "visibility")
for literature in (
    "pl-2-99",
    "locking-repeatable-read",
    "pl-cs",
    "pl-fcv",
    "pl-3u",
    "pl-2l",
    "pl-msr",
    "strong-pl-1",
    "strong-pl-2",
    "strong-partition-si",
    "strong-partition-si-nosession",
    "processor",
    "processor-nosession",
):
    FILES[literature] = "dependencies"
for literature in ("strong-session-pl-1", "strong-session-pl-2", "update-atomic"):
    FILES[literature] = FILES[f"{literature}-nosession"] = "dependencies"
FILES["update-atomic-vis"] = FILES["update-atomic-vis-nosession"] = FILES["pram"] = "visibility"
for literature in ("rss", "per-key-sequential", "per-key-causal"):
    FILES[literature] = FILES[f"{literature}-nosession"] = "dependencies"
FILES |= {"strong-pl-1-nosession": "dependencies", "strong-pl-2-nosession": "dependencies"}
ALIASES = {
    "cursor-stability": "pl-cs",
    "forward-consistent-view": "pl-fcv",
    "update-serializable": "pl-3u",
    "monotonic-view": "pl-2l",
    "monotonic-snapshot-read": "pl-msr",
    "monotonic-atomic-view": "rc-nosession",
    "mav": "rc-nosession",
    "nmsi": "psi-nosession",
    "non-monotonic-snapshot-isolation": "psi-nosession",
    "rola": "update-atomic-nosession",
    "update-atomicity": "update-atomic",
    "regular-sequential-serializable": "rss",
    "coherence": "per-key-sequential",
    "sequential": "ser",
    "one-copy-serializable": "ser-nosession",
    "one-copy-sr": "ser-nosession",
    "tcc-plus": "cc",
    "strong-session-read-uncommitted": "strong-session-pl-1",
    "strong-session-read-committed": "strong-session-pl-2",
    "strong-read-uncommitted": "strong-pl-1",
    "strong-read-committed": "strong-pl-2",
    "causal": "cc",
    "causal-consistency": "cc",
    "consistent-view": "psi-nosession",
    "monotonic-reads": "mr",
    "monotonic-writes": "mw",
    "parallel-snapshot-isolation": "psi-nosession",
    "pl-2-plus": "psi-nosession",
    "read-atomic": "ra-nosession",
    "read-your-writes": "ryw",
    "repeatable-read": "pl-2-99",
    "strong-session-consistent-view": "psi",
    "writes-follow-reads": "wfr",
    "read-uncommitted": "pl-1",
    "read-committed": "pl-2",
    "prefix-consistency": "pc",
    "snapshot-isolation": "si-nosession",
    "serializable": "ser-nosession",
    "strong-session-snapshot-isolation": "si",
    "strong-session-serializable": "ser",
    "strong-snapshot-isolation": "strong-si",
    "strict-serializable": "sser",
    "linearizable": "sser",
    "strong-serializable": "sser",
    "conflict-serializable": "pl-3",
    "view-serializable": "ser-nosession",
    "session-serializable": "ser",
    "causal-cerone": "cc-nosession",
    "prefix": "pc-nosession",
    "pl-si": "si-nosession",
    "pl-ss": "sser",
    "generalized-snapshot-isolation": "si-nosession",
    "prefix-consistent-snapshot-isolation": "si",
}


@pytest.mark.parametrize("name", EVENT_GRAPHS)
def test_level_compiles_to_its_automaton(name: str) -> None:
    plan = classify(load_spec(name))
    assert plan.automata == (EVENT_GRAPHS[name],)
    assert plan.warnings == ()
    assert plan.spec.notes == ()


@pytest.mark.parametrize(("alias", "level"), ALIASES.items())
def test_alias_shares_the_checks_of_its_level(alias: str, level: str) -> None:
    one, other = load_spec(alias), load_spec(level)
    assert one.checks == other.checks
    assert f"library:{level}.iso" in {check.file for check in one.checks}
    assert one.name.lower() == alias
    assert one.sha256 != other.sha256


def test_library_is_exactly_these() -> None:
    assert {entry.name: entry.alias_of for entry in list_library()} == {
        **dict.fromkeys(FILES, ""),
        **ALIASES,
    }


def test_every_level_has_its_style() -> None:
    """Through an alias too."""
    styles = {entry.name: entry.style for entry in list_library()}
    assert styles == FILES | {alias: FILES[level] for alias, level in ALIASES.items()}


def test_nosession_forms_are_the_level_without_sessions() -> None:
    """The checks and the bounds are those of the level with `init` in place of `so`."""
    pairs = [name for name in FILES if f"{name}-nosession" in FILES]
    assert len(pairs) == 35
    for name in pairs:
        weaker, expected = (
            load_spec(f"{name}-nosession"),
            mentions.without_sessions(load_spec(name)),
        )
        assert weaker.exists == expected.exists, name
        assert [(c.name, c.kind, c.expr, c.bound) for c in weaker.checks] == [
            (c.name, c.kind, c.expr, c.bound) for c in expected.checks
        ], name


@pytest.mark.parametrize("entry", list_library(), ids=lambda entry: entry.name)
def test_every_level_says_what_it_is(entry: LibraryEntry) -> None:
    text = entry.text
    spec = load_spec(entry.name)
    assert spec.texts[spec.source] == text
    assert text.startswith("// ")
    assert spec.name.lower() == entry.name
    assert spec.title == entry.title != ""
    if not entry.alias_of:
        for part in ("// Source: ", "// Theorem: ", "// Forbids ", "// Complexity: "):
            assert part in text, part


def test_fragments_parse_and_are_no_levels() -> None:
    files = {path.stem for path in FRAGMENTS.glob("*.iso")}
    assert files == {"prelude", "adya", "commit-order", "operations", "statements", "visibility"}
    for name in (*files, "commit-order-nosession", "visibility-nosession"):
        checks = [check.name for check in load_spec(name).checks]
        assert checks == (["EXT"] if name.startswith("visibility") else [])


@pytest.mark.parametrize("folder", ["SPECS", "DATABASES", "MIXED"])
def test_a_level_without_a_header_is_an_error(tmp_path: Path, monkeypatch, folder: str) -> None:
    """It is no silent fragment: fragments have a folder of their own."""
    (tmp_path / "mine.iso").write_text("acyclic so | wr as mine\n")
    monkeypatch.setattr(library, folder, tmp_path)
    for cached in (library._files, library.list_library, library._profiles_and_mixed):
        function = cached.__wrapped__
        monkeypatch.setattr(library, cached.__name__, function)
    with pytest.raises(SpecError, match=r"mine\.iso: this level of the library has no header") as e:
        library_source.__wrapped__("mine")
    assert 'write `spec mine "title"`' in e.value.hint


@pytest.mark.parametrize("name", EVENT_GRAPHS)
def test_what_a_level_uses(name: str) -> None:
    plan = classify(load_spec(name))
    assert plan.uses_reads_from == (name != "pl-1")
    assert plan.uses_version_order
    assert plan.uses_sessions == (name in ("pc", "si", "ser", "sser", "strong-si"))
    assert plan.uses_real_time == name.startswith(("sser", "strong-si"))


@pytest.mark.parametrize(
    ("level", "weaker"),
    [("si", "si-nosession"), ("ser", "ser-nosession"), ("strong-si", "strong-si-nosession")],
)
def test_without_sessions_is_the_nosession_level(level: str, weaker: str) -> None:
    plan = without_sessions(classify(load_spec(level)))
    assert plan.automata == classify(load_spec(weaker)).automata
    assert not plan.uses_sessions
    assert plan.spec.name == f"{load_spec(level).name} without sessions"


def test_without_real_time() -> None:
    plan = without_real_time(classify(load_spec("sser")))
    (automaton,) = plan.automata
    assert set(automaton.steps) == {"init", "so", "wr", "ww", "rw"}
    assert not plan.uses_real_time
    assert plan.uses_sessions


def test_facts_follow_definitions() -> None:
    text = 'include "adya.iso"\nlet hb = (so | wr)^+\nlet seen = hb\nacyclic seen as X\n'
    spec = load_spec(text)
    assert mentions.uses_reads_from(spec)
    assert mentions.uses_sessions(spec)
    assert not mentions.uses_version_order(spec)
    # What is defined but not judged does not count.
    spec = load_spec('include "adya.iso"\nacyclic ww as X\n')
    assert not mentions.uses_reads_from(spec)
    spec = load_spec('include "adya.iso"\nacyclic ww as X\nflag acyclic so | wr as Y\n')
    assert not mentions.uses_reads_from(spec)
    assert not mentions.uses_sessions(spec)


@pytest.mark.parametrize(
    "name",
    [
        *("si", "SI", "Si", "si.iso", "strong-session-snapshot-isolation", "Strong_SI", "PL-SI"),
        "Generalized Snapshot Isolation",
    ],
)
def test_names_in_any_case(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert classify(load_spec(name)).automata[0].states == 2


def test_a_number_in_a_name_may_have_a_dot() -> None:
    assert load_spec("PL-2.99").checks == load_spec("pl-2-99").checks


def test_the_documentation_lists_every_level() -> None:
    text = (DOCS / "levels.md").read_text(encoding="utf-8")
    for entry in list_library():
        assert f"`{entry.name}`" in text


def test_the_documented_level_is_what_it_says(tmp_path: Path) -> None:
    text = (DOCS / "language.md").read_text(encoding="utf-8")
    block = text.split("```iso\n// my-si.iso\n", 1)[1].split("```", 1)[0]
    plan = classify(load_spec("// my-si.iso\n" + block))
    assert plan.automata[0].steps == EVENT_GRAPHS["si"].steps
    # The message that the page shows is the one that users get.
    broken = tmp_path / "my-si.iso"
    lines = ("// my-si.iso\n" + block).split("\n")
    lines[6] = "acyclic seen ; rw? & so as no-cycle"
    broken.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(SpecError) as caught:
        load_spec(broken)
    assert str(caught.value).replace(str(broken), "my-si.iso") in text


def test_the_documented_session_guarantees_run_natively() -> None:
    text = (DOCS / "language.md").read_text(encoding="utf-8")
    block = text.split("```iso\n// pram.iso\n", 1)[1].split("```", 1)[0]
    assert native_plan(load_spec("// pram.iso\n" + block)).kind == "saturation"


def test_the_documented_tutorial_is_true() -> None:
    """Its first attempt forbids increments in a row, its second only the lost update."""
    text = (DOCS / "language.md").read_text(encoding="utf-8")
    first = text.split("```iso\n// no-lost-update.iso\n", 1)[1].split("```", 1)[0]
    (second,) = re.findall(r"^irreflexive for x: .*$", text, re.MULTILINE)
    allowed, forbidden = re.findall(r'^(?:allows|forbids) "(.*)"$', text, re.MULTILINE)[:2]
    increments, lost = parse(allowed), parse(forbidden)
    attempt = load_spec(first)
    assert not relational.satisfied(increments, attempt)
    meant = load_spec(first.replace(first[first.index("empty") :], second + "\n"))
    assert relational.satisfied(increments, meant)
    assert not relational.satisfied(lost, meant)


def test_near_names() -> None:
    assert similar_names("serialisable")[0] == "serializable"
    assert similar_names("snapshot")[0].endswith("snapshot-isolation")
    assert similar_names("qqqq") == []
    assert similar_names("si-nosesion")[0] == "si-nosession"
    assert library_source("qqqq") is None


@pytest.mark.parametrize(
    "name",
    ["pl-2-nosession", "ryw-nosession", "adya-nosession", "si-nosession-nosession", "-nosession"],
)
def test_only_what_speaks_of_sessions_has_a_form_without(name: str) -> None:
    """A session guarantee means its `so`; Adya's levels have none; an alias has another name."""
    with pytest.raises(SpecError, match="a level of the library has this name"):
        load_spec(name)


def test_a_text_may_include_any_name_of_the_library() -> None:
    """Also those that have no file, in any case, and from beside the library's files."""
    for name in ("SI-nosession.iso", "serializable", "visibility-nosession.iso"):
        assert load_spec(f'include "{name}"\n').texts.keys() > {"<text>"}
    spec = load_spec('include "si-vis-nosession.iso"\n')
    assert list(spec.texts) == [
        "<text>",
        "library:si-vis-nosession.iso",
        "library:visibility-nosession.iso",
        "library:prelude.iso",
    ]


def test_no_folder_changes_what_the_library_includes(tmp_path: Path) -> None:
    """A level of the library is the same whatever lies about."""
    for name in ("prelude", "visibility", "visibility-nosession"):
        (tmp_path / f"{name}.iso").write_text("acyclic so as nonsense\n")
    for name in ("si-vis", "si-vis-nosession"):
        assert load_spec(name, include_path=[tmp_path]).texts == load_spec(name).texts


def test_a_form_without_sessions_says_nothing_of_them() -> None:
    """`so` is gone from the text, and the titles say so."""
    for entry in list_library():
        if entry.name.endswith("-nosession"):
            assert not mentions.uses_sessions(load_spec(entry.name))
            assert entry.title.endswith(", without sessions")
            assert entry.title.count("session") == 1


def test_library_files_have_no_crlf_and_end_in_a_newline() -> None:
    for path in filter(Path.is_file, SPECS.rglob("*")):
        data = path.read_bytes()
        assert b"\r" not in data
        assert data.endswith(b"\n")


def test_what_compares_sessions_without_init_becomes_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what contains ``init`` is replaced by it: of others nothing is left."""
    monkeypatch.setattr(mentions, "COMPARING_SESSIONS", frozenset(("so", "group-rt")))
    spec = load_spec("empty so | group-rt as a\nempty group-rt as b\n")
    first, second = mentions.without_sessions(spec).checks
    assert show_check(first) == "empty init | init ; init as a"
    assert show_check(second) == "empty init ; init as b"

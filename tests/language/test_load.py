"""``load_spec``: where a specification comes from, its hash, notes and warnings."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from isolang.errors import SpecError
from isolang.language.classify.event_graph import classify
from isolang.language.load import load_spec
from isolang.language.meaning.core import ForKey, Inverse, Rel, Seq, Union
from isolang.language.meaning.show import show

CHECK = "acyclic so as one\n"


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(path: str, text: str) -> Path:
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def test_text_with_a_line_break_or_a_keyword_is_a_text() -> None:
    for text in (CHECK, "\n" + CHECK, CHECK.strip(), "// c\n" + CHECK, "acyclic(so)as one"):
        assert load_spec(text).source == "<text>"
        assert load_spec(text).name == "text"


def test_path_object_string_path_and_bare_file_name() -> None:
    path = write("dir/my.iso", CHECK)
    for given in (path, str(path), "./dir/my.iso"):
        spec = load_spec(given)
        assert (spec.name, spec.checks[0].name) == ("my", "one")
        assert spec.checks[0].file == spec.source
    write("levelfile", CHECK)
    assert load_spec("levelfile").checks[0].name == "one"


def test_header_names_the_spec() -> None:
    spec = load_spec('spec mine "what it is"\n' + CHECK)
    assert (spec.name, spec.title) == ("mine", "what it is")


def test_library_name_wins_over_a_file_of_that_name_with_a_note() -> None:
    write("si", CHECK)
    spec = load_spec("si")
    assert spec.checks[0].name == "SI"
    assert "./si" in spec.notes[0]
    assert load_spec("./si").checks[0].name == "one"


def test_a_missing_local_file_means_the_librarys_with_a_note() -> None:
    spec = load_spec("si.iso")
    assert spec.checks[0].name == "SI"
    assert spec.notes == ("there is no file si.iso; the library's si.iso is used",)
    write("si.iso", CHECK)
    spec = load_spec("si.iso")
    assert spec.checks[0].name == "one"
    assert spec.notes == ()


def test_unknown_names_list_near_ones() -> None:
    with pytest.raises(
        SpecError,
        match="snapshot-isolatin: neither a file nor a level of the library has this name",
    ):
        load_spec("snapshot-isolatin")
    with pytest.raises(SpecError, match="did you mean `snapshot-isolation`"):
        load_spec("snapshot-isolatin")
    with pytest.raises(SpecError, match=r"the library has cc, .*, ser, si, "):
        load_spec("zzz")
    with pytest.raises(SpecError, match=r"dir/mine\.iso: no such file"):
        load_spec("dir/mine.iso")
    for given in ("", " ", "a" * 5000, "x/" + "b" * 300, "si\0.iso", "\0"):
        with pytest.raises(SpecError) as caught:
            load_spec(given)
        assert len(str(caught.value)) < 1000
        assert "\0" not in str(caught.value)
    with pytest.raises(SpecError, match="include not found"):
        load_spec('include "\0"\n')


def test_files_that_are_no_specifications() -> None:
    Path("folder.iso").mkdir()
    with pytest.raises(SpecError, match="is a folder"):
        load_spec("folder.iso")
    Path("binary.iso").write_bytes(b"acyclic so as x\n\xff\xfe")
    with pytest.raises(SpecError, match="got byte 0xff in line 2, expected UTF-8"):
        load_spec("binary.iso")
    Path("large.iso").write_bytes(b" " * (1 << 21))
    with pytest.raises(SpecError, match="too large"):
        load_spec("large.iso")


def test_byte_order_mark_and_crlf() -> None:
    Path("dos.iso").write_bytes(b"\xef\xbb\xbfspec dos\r\n// c\r\nacyclic so | rt\r\n  as one\r\n")
    spec = load_spec("dos.iso")
    assert (spec.checks[0].line, spec.checks[0].column) == (3, 1)


def test_hash_covers_all_texts_that_were_read() -> None:
    write("main.iso", 'include "other.iso"\n')
    write("other.iso", CHECK)
    before = load_spec("main.iso")
    digest = hashlib.sha256()
    for text in ('include "other.iso"\n', CHECK):
        digest.update(len(text).to_bytes(8, "little") + text.encode())
    assert before.sha256 == digest.hexdigest()
    write("other.iso", CHECK + "\n")
    assert load_spec("main.iso").sha256 != before.sha256


def test_unused_bindings_of_the_main_file_are_warnings() -> None:
    text = (
        'include "adya.iso"\nlet used = so\nlet between = used\nlet unused = rt\n'
        "exists co : order on T\nlet f(p) = so\nacyclic between | f(so) as x\n"
    )
    warnings = load_spec(text).warnings
    assert [warning.split("\n")[0] for warning in warnings] == [
        "<text>:6:7: warning: `p` is bound but never used",
        "<text>:4:5: warning: `unused` is defined but never used",
        "<text>:5:8: warning: no check uses `co`, although it must exist",
    ]
    assert load_spec("adya").warnings == ()
    assert load_spec("si").warnings == ()
    assert "`x` is bound" in load_spec("acyclic for x: so as c\n").warnings[0]


def test_definitions_expand_and_wr_and_rw_stay() -> None:
    text = 'include "adya.iso"\nlet hb[y] = wr[y] | rw[y]\nacyclic (for k: hb[k]) ; wr as x\n'
    (check,) = load_spec(text).checks
    hb = ForKey("k", Union((Rel("wr", "k"), Rel("rw", "k"))))
    assert check.expr == Seq((hb, Rel("wr")))


def test_a_keyed_definition_without_its_key_is_the_union() -> None:
    text = 'include "adya.iso"\nlet hb[y] = wr[y] | rw[y]\nacyclic hb as x\n'
    (check,) = load_spec(text).checks
    assert check.expr == ForKey("y", Union((Rel("wr", "y"), Rel("rw", "y"))))


def test_parameters_are_never_captured() -> None:
    """The ``x`` of ``obs`` is not the ``x`` of its argument."""
    text = 'include "adya.iso"\nacyclic for x: obs(ww[x]) as c\n'
    (check,) = load_spec(text).checks
    assert show(check.expr) == "for x: for x_2: ([W[x_2]] ; ww[x] ; wr[x_2]^-1) \\ id"


def test_the_languages_own_definitions_may_be_restated() -> None:
    text = (
        "exists rf[k] : choice of cand[k]\nlet wr[y] = tx^-1 ; rf[y] ; tx\n"
        "exists ww[k] : order on W[k] containing vo[k]\nlet rw[z] = (wr[z]^-1 ; ww[z]) \\ id\n"
        "acyclic so | wr | ww | rw as SER\n"
    )
    assert classify(load_spec(text)).automata == classify(load_spec("ser")).automata


def test_the_whole_grammar_loads() -> None:
    """Also what does not compile to event graphs."""
    text = """
        spec everything "all of it"
        include "adya.iso" (* a
        comment *) // another
        exists co : order on T containing so | wr | vo
        exists vis : relation on T containing so | wr within co
        exists pick[x] : choice of cand[x]
        let conflict = for x: (W[x] * W[x]) \\ id
        let pair(a, b) = (a ; b) | (b ; a)
        require obs(vis) in co as EXT "external"
        require (for x: ([W[x]]; tx^-1; rf; po; rf[x]^-1; tx) \\ id) in co as monotonic-reads
        flag not empty pair(so, conflict) & (T * T) as odd
        irreflexive [domain(co) & range(vis)] ; pair(co, pick-lifted) as ends
        not acyclic conflict^* ; conflict? as loops
        show conflict \\ (so | so^-1) as concurrent
    """
    lifted = "let pick-lifted = tx^-1 ; pick ; tx\n        let pair"
    spec = load_spec(text.replace("let pair", lifted))
    assert [check.name for check in spec.checks] == [
        "EXT",
        "monotonic-reads",
        "odd",
        "ends",
        "loops",
    ]
    assert [exists.name for exists in spec.exists] == ["rf", "ww", "co", "vis", "pick"]
    odd = spec.checks[2]
    assert (odd.flag, odd.negated, odd.kind) == (True, True, "empty")
    assert spec.shows[0][0] == "concurrent"
    assert spec.definitions["wr"] == Seq((Inverse(Rel("tx")), Rel("rf", "x"), Rel("tx")))
    # What is shown parses again, to the same.
    declared = text[: text.index("require obs(vis)")].replace("let pair", lifted)
    shown = "".join(f"empty {show(check.expr)} as {check.name}\n" for check in spec.checks)
    again = load_spec(declared + shown)
    assert [c.expr for c in again.checks] == [c.expr for c in spec.checks]


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("let f[x](a) = [W[x]] ; a\nempty for y: f[y](wr[y]) as c", "for y: [W[y]] ; wr[y]"),
        ("let f[x](a) = [W[x]] ; a\nempty f(so) as c", "for x: [W[x]] ; so"),
        ("let f[k](a) = ww[k] ; a\nempty for k: f(rw[k]) as c", "for k: for k_2: ww[k_2] ; rw[k]"),
        ("let f[k](a, b) = a | b\nempty for z: f[z](so, ww[z]) as c", "for z: so | ww[z]"),
    ],
)
def test_definitions_with_a_key_and_parameters(text: str, same: str) -> None:
    """With the key, or without it as the union over keys; no key is captured."""
    spec = load_spec(f'include "adya.iso"\n{text}\n')
    again = load_spec(f'include "adya.iso"\nempty {same} as c\n')
    assert show(spec.checks[0].expr) == show(again.checks[0].expr)


def test_wrong_keys_of_definitions_with_parameters() -> None:
    start = 'include "adya.iso"\nlet f(a) = a\nlet g[x](a) = ww[x] ; a\n'
    for text, message in (
        ("empty for x: f[x](so) as c", "`f` has no key"),
        ("empty g[x](so) as c", "unknown key variable `x`"),
        ("empty for x: g[x] as c", "`g` needs arguments"),
    ):
        with pytest.raises(SpecError, match=message):
            load_spec(f"{start}{text}\n")

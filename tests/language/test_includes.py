"""What an include may mean, and what it may not reach."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from isolang.errors import SpecError
from isolang.language.load import load_spec, load_texts

CHECK = "acyclic so as one\n"


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(path: str, text: str) -> Path:
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def test_includes_look_in_the_own_folder_then_the_path_then_the_library() -> None:
    main = write("a/main.iso", 'include "level.iso"\ninclude "adya.iso"\n')
    write("inc/level.iso", "acyclic rt as from-path\n")
    with pytest.raises(SpecError, match="include not found"):
        load_spec(main)
    assert load_spec(main, include_path=["inc"]).checks[0].name == "from-path"
    write("a/level.iso", "acyclic rt as from-folder\n")
    assert load_spec(main, include_path=["inc"]).checks[0].name == "from-folder"
    with pytest.raises(SpecError, match="nowhere: not a folder"):
        load_spec(main, include_path=["nowhere"])


def test_an_included_file_includes_from_its_own_folder() -> None:
    write("main.iso", 'include "sub/one.iso"\n')
    write("sub/one.iso", 'include "two.iso"\n')
    write("sub/two.iso", CHECK)
    spec = load_spec("main.iso")
    assert spec.checks[0].file == "sub/two.iso"


def test_each_file_is_read_once_also_in_a_circle() -> None:
    write("a.iso", 'include "b.iso"\ninclude "sub/../b.iso"\nacyclic f as one\n')
    write("b.iso", 'include "a.iso"\nlet f = so\n')
    Path("sub").mkdir()
    spec = load_spec("a.iso")
    assert [check.name for check in spec.checks] == ["one"]
    assert list(spec.texts) == ["a.iso", "b.iso"]


def test_a_local_file_hides_the_librarys_with_a_note() -> None:
    write("adya.iso", 'include "prelude.iso"\nlet mine = so\n')
    main = write("main.iso", 'include "adya.iso"\nacyclic mine as one\n')
    spec = load_spec(main)
    assert spec.notes == ('include "adya.iso" is adya.iso, not the library\'s file',)


@pytest.mark.parametrize("name", ["/etc/passwd", "../secret.iso", "sub/../../secret.iso"])
def test_an_include_stays_within_its_folder(name: str) -> None:
    """Neither an absolute path nor one that leaves the folder is looked at."""
    write("secret.iso", CHECK)
    main = write("a/main.iso", f'include "{name}"\n')
    Path("a/sub").mkdir()
    with pytest.raises(SpecError, match="can only name a file in its folder"):
        load_spec(main, include_path=["a/sub"])
    assert load_spec(write("a/b.iso", 'include "secret.iso"\n'), include_path=["."]).checks


def test_an_include_does_not_follow_a_link_out_of_its_folder() -> None:
    write("secret.iso", CHECK)
    main = write("a/main.iso", 'include "link.iso"\n')
    Path("a/link.iso").symlink_to(Path("secret.iso").resolve())
    with pytest.raises(SpecError, match=r"a/link\.iso is a link that leaves its folder"):
        load_spec(main)


def test_an_include_is_a_regular_file() -> None:
    """What may never end is not opened, and a folder is not what was meant."""
    os.mkfifo("pipe.iso")
    Path("folder.iso").mkdir()
    with pytest.raises(SpecError, match="is not a regular file"):
        load_spec(write("one.iso", 'include "pipe.iso"\n'))
    with pytest.raises(SpecError, match="include not found"):
        load_spec(write("two.iso", 'include "folder.iso"\n'))


@pytest.mark.parametrize("secret", ["hunter2:x:0:0", "= hunter2", "'hunter2'", "12 hunter2"])
def test_what_is_no_specification_is_not_quoted(secret: str) -> None:
    """An include is a way to read a file, but not to see it."""
    write("notes.txt", secret + "\n")
    with pytest.raises(SpecError, match=r"notes\.txt is not a specification") as caught:
        load_spec(write("main.iso", 'include "notes.txt"\n'))
    assert "hunter2" not in str(caught.value)


def test_texts_alone_are_the_same_specification() -> None:
    """``load_texts`` gives back what ``load_spec`` read, also of several folders."""
    write("a/main.iso", 'include "sub/one.iso"\ninclude "level.iso"\ninclude "adya.iso"\n')
    write("a/sub/one.iso", 'include "two.iso"\n')
    write("a/sub/two.iso", CHECK)
    write("a/two.iso", "acyclic rt as another\n")
    write("inc/level.iso", "acyclic rt as from-path\n")
    spec = load_spec("a/main.iso", include_path=["inc"])
    for path in Path().rglob("*.iso"):
        path.unlink()
    again = load_texts(spec.texts)
    assert (again.checks, again.texts, again.sha256) == (spec.checks, spec.texts, spec.sha256)


def test_texts_alone_include_no_file_but_the_librarys() -> None:
    write("other.iso", CHECK)
    assert load_texts({"main.iso": 'include "adya.iso"\nacyclic ww as one\n'}).checks
    for name in ("other.iso", str(Path("other.iso").resolve()), "./other.iso"):
        with pytest.raises(SpecError, match="include not found"):
            load_texts({"main.iso": f'include "{name}"\n'})
    with pytest.raises(SpecError, match="got no text"):
        load_texts({})


def test_an_error_in_an_included_file_is_shown_there() -> None:
    write("main.iso", 'include "other.iso"\n')
    write("other.iso", "\nacyclic so | nope as x\n")
    with pytest.raises(SpecError) as caught:
        load_spec("main.iso")
    assert (caught.value.file, caught.value.line, caught.value.column) == ("other.iso", 2, 14)

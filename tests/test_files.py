"""Files are written whole or not at all."""

import errno
import os
import threading

import pytest
from support.cli import run_here

from isolang import files
from isolang.files import open_replacement, write_atomically


def test_a_file_takes_the_place_of_another(tmp_path):
    """It keeps the permissions of the one before, and a link stays a link."""
    path, link = tmp_path / "a", tmp_path / "link"
    path.write_text("before")
    path.chmod(0o640)
    link.symlink_to(path)
    write_atomically(link, "after")
    assert path.read_text() == "after"
    assert path.stat().st_mode & 0o777 == 0o640
    assert link.is_symlink()


def test_a_failure_leaves_what_was_there(tmp_path):
    """Neither half a file nor a temporary one stays."""
    path = tmp_path / "a"
    path.write_text("before")

    def half():
        with open_replacement(path) as stream:
            stream.write(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        half()
    assert path.read_text() == "before"
    assert os.listdir(tmp_path) == ["a"]


def test_a_pipe_is_written_as_it_stands(tmp_path):
    """What is no regular file stays what it is."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    write_atomically(pipe, "text")
    reader.join()
    assert got == [b"text"]
    assert not pipe.is_file()


@pytest.fixture
def no_room(monkeypatch):
    """The disk is full when a file is to take its place."""

    def full(old, new):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files.os, "replace", full)


@pytest.mark.parametrize(
    "command",
    [
        "convert examples/on-call.edn {}/out.edn --to edn",
        "generate {}/out.edn",
        "encode examples/on-call.edn {}/out.cnf -s si --to dimacs --encoding binary_labeling",
        "check -s si examples/on-call.edn --certificate {}",
        "check -s si examples/on-call.edn --html {}/out.html",
    ],
)
def test_no_room(command, tmp_path, capfd, no_room):
    """A command says so in a line, and leaves no part of a file."""
    run = run_here(capfd, *command.format(tmp_path).split())
    said = "".join((run.out + run.err).split())
    assert "Nospaceleft" in said
    assert run.code == (0 if command.startswith("check") else 2)
    assert os.listdir(tmp_path) == []

"""What an editor is told about a specification, and the language server that tells it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from support.cli import ENVIRONMENT
from support.sampling import quick_first

from isolang.cli.lsp import path_of, uri_of
from isolang.language import editing
from isolang.language.library import FRAGMENTS

TEXT = """\
spec mine "mine"

include "adya.iso"

let seen = so | wr | ww
acyclic seen ; rw? as snapshot "a cycle"
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "mine.iso"


def test_a_good_text_has_no_note(path):
    assert editing.notes(TEXT, path) == []


def test_each_error_stands_where_it_is_with_its_hint(path):
    (note,) = editing.notes(TEXT.replace("seen ; rw?", "sen ; rw?"), path)
    assert (note.severity, note.line, note.column) == ("error", 6, 9)
    assert "sen" in note.message
    assert "did you mean" in note.message
    assert "^" not in note.message


def test_a_warning_is_one(path):
    (note,) = editing.notes(TEXT + "let unused = so\n", path)
    assert (note.severity, note.line) == ("warning", 7)


def test_hover_tells_what_a_name_is(path):
    assert editing.hover(TEXT, path, 6, 9) == "```iso\nlet seen = so | wr | ww\n```"
    assert "decided by: event graph" in editing.hover(TEXT, path, 6, 23)
    assert "session order" in editing.hover(TEXT, path, 5, 12)
    assert "order on W[x]" in editing.hover(TEXT, path, 5, 22)
    assert editing.hover(TEXT, path, 2, 1) == ""


def test_a_definition_is_found_across_includes(path):
    assert editing.definition(TEXT, path, 6, 9) == (str(path), 5, 1)
    name, line, _ = editing.definition(TEXT, path, 5, 22)
    assert name == "library:adya.iso"
    assert (FRAGMENTS / "adya.iso").read_text().splitlines()[line - 1].startswith("exists ww")
    assert uri_of(name) == (FRAGMENTS / "adya.iso").as_uri()
    assert editing.definition(TEXT, path, 5, 12) is None


def test_completion_knows_words_names_and_levels_also_while_the_text_is_broken(path):
    words = editing.completions(TEXT, path)
    assert {"acyclic", "so", "ww", "seen", '"si.iso"'} <= words.keys()
    assert {"acyclic", "seen"} <= editing.completions(TEXT + "acyclic (", path).keys()


def test_layout_of_what_does_not_parse_is_left_alone(path):
    assert editing.format_buffer("let  a=so", path) == "let a = so\n"
    assert editing.format_buffer("let let", path) is None


def test_files_and_uris(path):
    assert path_of(path.as_uri()) == path
    assert path_of("untitled:Untitled-1").name == "unsaved.iso"


@pytest.mark.slow
def test_the_server_answers_an_editor(path):
    """Over standard input and output: an error is published when the file is opened."""
    pytest.importorskip("pygls")
    uri = path.as_uri()
    document = {"uri": uri, "languageId": "iso", "version": 1}
    asked = [
        {"id": 1, "method": "initialize",
         "params": {"processId": None, "rootUri": None, "capabilities": {}}},
        {"method": "initialized", "params": {}},
        {"method": "textDocument/didOpen",
         "params": {"textDocument": document | {"text": TEXT.replace("seen ;", "sen ;")}}},
        {"method": "textDocument/didChange",
         "params": {"textDocument": {"uri": uri, "version": 2},
                    "contentChanges": [{"text": TEXT}]}},
        {"id": 2, "method": "textDocument/hover",
         "params": {"textDocument": {"uri": uri}, "position": {"line": 5, "character": 9}}},
        {"id": 3, "method": "shutdown"},
        {"method": "exit"},
    ]  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-P", "-m", "isolang.cli.main", "lsp"],
        input=b"".join(map(_message, asked)),
        capture_output=True,
        timeout=120,
        check=False,
        env=ENVIRONMENT,
    )
    assert (done.returncode, done.stderr) == (0, b""), "an orderly shutdown is none of our errors"
    answers = list(_messages(done.stdout))
    published = [a["params"] for a in answers if a.get("method", "").endswith("publishDiagnostics")]
    assert [len(one["diagnostics"]) for one in published] == [1, 0]
    assert published[0]["diagnostics"][0]["range"]["start"] == {"line": 5, "character": 8}
    (hover,) = [a["result"] for a in answers if a.get("id") == 2]
    assert "let seen" in hover["contents"]["value"]


@pytest.mark.slow
@pytest.mark.parametrize("length", quick_first([64 * 2**20 + 1, 10**15, 10**30]))
def test_the_server_refuses_a_message_that_no_memory_can_hold(length):
    """It says so, and does not try."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "isolang.cli.main", "lsp"],
        input=f"Content-Length: {length}\r\n\r\n{{}}".encode(),
        capture_output=True,
        timeout=120,
        check=False,
        env=ENVIRONMENT,
    )
    assert done.returncode == 2
    assert (
        f"the message is too long (got Content-Length: {length}, expected" in done.stderr.decode()
    )
    assert b"Traceback" not in done.stderr


def _message(content):
    data = json.dumps({"jsonrpc": "2.0", **content}).encode()
    return f"Content-Length: {len(data)}\r\n\r\n".encode() + data


def _messages(data):
    while data:
        head, _, data = data.partition(b"\r\n\r\n")
        length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if b"Length" in line)
        yield json.loads(data[:length])
        data = data[length:]

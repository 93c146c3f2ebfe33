"""What people see: no character of a history or a specification reaches the terminal as a command.

The fuzz test writes odd characters wherever a name, a key, a value or a text can stand, and reads
all that each command prints for people.
"""

import ast
import json
import random
import re
import unicodedata

import pytest
from support.cli import run_here, run_there
from support.paths import ROOT
from support.sampling import quick_first

from isolang.output.terminal import escaped

ODD = [
    "\x1b[2J", "\x1b]0;title\x07", "\x9b31m", "\x07", "\x08\x08", "\x7f", "\u202e", "\u2066",
    "\u200f", "\u2028", "\u200b", "\ufeff", "\U000e0041", "\x00", "\r", "\t", "\n", "\nVALID  all",
]  # fmt: skip


DIRECTIONS = {"LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI"}
UNSEEN = set("\u00ad\u061c\u180e\u200b\u200c\u200d\u200e\u200f\u2060\ufeff")


def is_hidden(c):
    """Whether a terminal would obey a character, not show it, or show others in another order."""
    controls = unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp")
    tag = 0xE0000 <= ord(c) < 0xE0080
    return controls or tag or c in UNSEEN or unicodedata.bidirectional(c) in DIRECTIONS


def hidden(text):
    """The hidden characters of a text, line breaks left out."""
    return [c for c in text if c != "\n" and is_hidden(c)]


@pytest.mark.slow
def test_visible_escapes_all_that_is_hidden():
    """Over all of Unicode: controls, formats and separators; nothing that is seen is changed."""
    for number in range(0x110000):
        shown = escaped(chr(number))
        assert hidden(shown) == []
        if unicodedata.category(chr(number))[0] in "LNPSM":
            assert shown == chr(number)
    assert escaped("a\nb") == "a\\nb"
    assert escaped("a\nb\x1b", lines=True) == "a\nb\\x1b"


@pytest.mark.slow
def test_all_output_passes_one_place():
    """No module of the command line prints but by ``output/terminal.py``."""
    wrong = []
    for path in sorted(
        p for room in ("cli", "output") for p in (ROOT / "isolang" / room).glob("*.py")
    ):
        if path.name in ("terminal.py", "child.py"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            text = ast.unparse(node) if isinstance(node, ast.Call) else ""
            if re.match(r"(print|sys\.(stdout|stderr)\.write\w*)\(", text):
                wrong.append(f"{path.name}:{node.lineno}: {text}")
    assert wrong == []


def history(rng):
    """An EDN history of a lost update with odd characters in keys and values."""

    def word():
        return "".join(rng.choice([*ODD, "a", "é", " "]) for _ in range(rng.randint(1, 4)))

    def quoted(text):
        return json.dumps(text, ensure_ascii=False)

    key = rng.choice([quoted(word()), ":k" + rng.choice(["\x1b", "\u202e", "\x9b"])])
    values = [quoted(word() + str(i)) for i in range(2)]
    lines = []
    for process, value in enumerate(values):
        mops = f"[[:r {key} nil] [:w {key} {value}]]"
        lines.append(f"{{:type :ok, :process {process}, :f :txn, :value {mops}}}")
    return "\n".join(lines) + "\n"


@pytest.mark.slow
@pytest.mark.parametrize("seed", quick_first(range(6), 3, rest="campaign"))
def test_odd_characters_in_histories(tmp_path, monkeypatch, capfd, seed):
    """Keys, values and file names, in every output for people."""
    rng = random.Random(seed)
    monkeypatch.chdir(tmp_path)
    name = f"h{rng.choice(ODD)}.edn".replace("\x00", "").replace("/", "")
    (tmp_path / name).write_text(history(rng), newline="")
    commands = [
        ["-s", "si", "-s", "pl-1", "--profile", name],
        ["-s", "si", "--certificate", "c", "--minimal", f"m{name}", name],
        ["-s", "sser", "--timeout", "60", name, f"missing{name}"],
        ["levels", name],
        ["stats", name],
        ["convert", name, f"to{name}", "--to", "plume"],
        ["convert", name, "to.edn", "--to", "edn"],
        ["solvers", "-s", "si", "--only", "event-graph", name],
        ["encode", "-s", "si", "--to", "dimacs", "--encoding", name, name, "-"],
    ]
    for command in commands:
        run = run_here(capfd, *command)
        shown = run.out + run.err
        assert shown
        assert hidden(shown) == [], command
        assert not re.search(r"^VALID  all", shown, re.MULTILINE), (command, shown)
        assert "internal error" not in shown
    (certificate,) = (tmp_path / "c").iterdir()
    again = run_here(capfd, "verify", certificate, name)
    assert again.code == 0, again.err
    assert hidden(again.out + again.err) == []


@pytest.mark.parametrize("odd", ODD)
def test_odd_characters_in_specifications(tmp_path, monkeypatch, capfd, odd):
    """Titles, names, notes and the lines that errors quote."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "h").write_text("r(0,0,1,1)\nw(0,1,1,1)\nr(0,0,2,2)\nw(0,2,2,2)\n")
    (tmp_path / "a.iso").write_text(
        f'spec "own{odd}" "title {odd}"\ninclude "adya.iso"\nacyclic so | wr as "c{odd}" // {odd}\n'
    )
    (tmp_path / "b.iso").write_text(f"acyclic {odd} wx as c // {odd}\n")
    for command in (
        ["-s", "a.iso", "h"],
        ["-s", "b.iso", "h"],
        ["-s", f"no{odd}", "h".replace("\x00", "")],
        ["spec", "show", "a.iso"],
        ["spec", "show", "--expand", "a.iso"],
        ["spec", "explain", "a.iso"],
        ["spec", "lint", "--seconds", "0", "a.iso", "b.iso"],
        ["spec", "format", "--diff", "a.iso"],
        ["--solver", f"z{odd}", "-s", "si", "h"],
        [f"chek{odd}"],
        [f"--sp{odd}"],
    ):
        run = run_here(capfd, *command)
        assert hidden(run.out + run.err) == [], command
        assert "internal error" not in run.err, command


def test_bytes_that_are_no_text_in_a_file_name(tmp_path):
    """They are shown as escapes, and the history is judged."""
    path = bytes(tmp_path) + b"/h\xff\x1b.txt"
    with open(path, "wb") as file:
        file.write(b"w(0,1,1,1)\nr(0,1,2,2)\n")
    run = run_there("-s", "si", path.decode(errors="surrogateescape"))
    assert run.code == 0, run.err
    assert "\\udcff\\x1b.txt" in run.out

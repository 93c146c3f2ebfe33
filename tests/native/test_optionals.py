"""No optional of the native core is taken for its value unless the code shows that it has one.

An empty optional that is dereferenced is undefined behaviour: it ended whole runs without a word.
``core/required.hpp`` throws instead, which is the internal error of one history.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from support.paths import ROOT

NATIVE = ROOT / "native"
_TYPE = r"std::optional<[^;={}()]*?>+&?\s+"
SOURCES = {path: path.read_text(encoding="utf-8") for path in sorted(NATIVE.rglob("*.?pp"))}
FUNCTIONS = {
    name for text in SOURCES.values() for name in re.findall(_TYPE + r"(?:\w+::)*(\w+)\(", text)
}
#: Names that other functions have too, which return no optional.
SHARED = {"compare", "copy", "given", "model", "of", "order", "run", "filtered", "bounds"}


def _unguarded(text: str, header: str) -> Iterator[str]:
    """Yield the lines that take the value of an optional that their function has not tested."""
    declared = _TYPE + r"(\w+)\s*[;={,)]"
    names = {*re.findall(declared, text), *re.findall(declared, header)}
    lines = text.splitlines()
    for number, line in enumerate(lines):
        for either in re.findall(r"(?<![\w)\]] )\*(?:\w+(?:\.|->))*(\w+)\b|\b(\w+)->", line):
            name = "".join(either)
            if name in names and not _is_tested(name, lines[: number + 1]):
                yield f"{number + 1}: {line.strip()}"


def _is_tested(name: str, lines: list[str]) -> bool:
    """Return whether the function that the last line belongs to tests or sets the name."""
    test = re.compile(
        rf"(?:if|while|for) \(.*\b{name}\b(?!->)|!{name}\b|\b{name} (?:&&|\?|!=|==)|&& {name}\b"
        rf"|\b{name} = |\b{name}\.emplace|\b{name}\.has_value|begin\({name}\b|const auto {name}\b"
    )
    for line in reversed(lines):
        if test.search(line):
            return True
        if re.match(r" {0,2}\w.*\{$", line):
            return False
    return False


def test_optionals_are_tested() -> None:
    """Each is tested in the same function, or taken by ``required``."""
    functions = "|".join(FUNCTIONS - SHARED)
    taken = re.compile(rf"(?<![\w)\]] )\*[\w.>:-]*\b(?:{functions})\(.*")
    unguarded = []
    for path, whole in SOURCES.items():
        header, text = SOURCES.get(path.with_suffix(".hpp"), ""), re.sub(r"//.*", "", whole)
        lines = [*taken.findall(text), *_unguarded(text, header)]
        unguarded += [f"{path.relative_to(NATIVE)}: {line}" for line in lines]
    assert not unguarded


def test_an_optional_that_nothing_tests_is_found() -> None:
    """The rule finds what it is for."""
    text = "void f(int a) {\n  std::optional<int> {0} = g();\n  if (a) return;\n  use(*b);\n}\n"
    assert list(_unguarded(text.replace("{0}", "b").replace("b = g()", "b"), "")) == ["4: use(*b);"]
    assert not list(_unguarded(text.replace("{0}", "b").replace("if (a)", "if (!b)"), ""))

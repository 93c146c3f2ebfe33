"""Writes the page about a verdict: template, style, scripts and data in one file.

The page loads no other files, and its content security policy forbids loading any. The policy
allows only the style and the script, by their hashes. The data are a JSON block with ``<`` escaped.
The scripts insert the data into the page only as text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final

import msgspec

from isolang.errors import OptionError
from isolang.files import write_atomically
from isolang.report.contents import contents
from isolang.report.plain import policy_hash

if TYPE_CHECKING:
    from pathlib import Path

    from isolang.explain.harm import Harm
    from isolang.explain.violation import ViolationGroups
    from isolang.pipeline.levels import Levels
    from isolang.report.course import Course
    from isolang.verdict import Verdict

# The order matters: each script uses definitions from earlier ones.
_SCRIPTS: Final = (
    "vendor/dagre-3.1.3.min.js",
    "page/model.js",
    "page/argument.js",
    "page/timeline.js",
    "page/columns.js",
    "page/graph.js",
    "page/facts.js",
    "page/course.js",
    "page/main.js",
)


def page(
    verdict: Verdict,
    *,
    name: str = "",
    levels: Levels | None = None,
    course: Course | None = None,
    certificate: str = "",
    statements: Mapping[str, Sequence[str]] | None = None,
    harm: Harm | None = None,
    groups: ViolationGroups | None = None,
) -> str:
    """Return the page about a verdict.

    Args:
        harm: the harm of the verdict's violation; ``None`` if it was not sought.
        groups: all violations in groups; ``None`` to show only the verdict's.
        certificate: the hash of the certificate, if the verdict was read from one. If so, no other
            verdicts are computed for the page.
    """
    shown = contents(
        verdict,
        name=name,
        levels=levels,
        course=course,
        certificate=certificate,
        statements=statements,
        harm=harm,
        groups=groups,
    )
    data = msgspec.json.encode(shown).decode()
    for character in "<>&\u2028\u2029":
        data = data.replace(character, f"\\u{ord(character):04x}")
    before, after = _frame()
    return before + data + after


def save_page(text: str, path: Path) -> str:
    """Write a page to a file, creating its folder if necessary.

    Raises:
        OptionError: if the page cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, text)
    except OSError as error:
        reason = error.strerror or str(error)
        raise OptionError(f"{path}: cannot write the page: {reason}") from None
    return str(path)


@cache
def _frame() -> tuple[str, str]:
    """Return the parts of the page before and after its data."""
    here = files("isolang.report")
    style = (here / "page/style.css").read_text("utf-8")
    script = "\n".join((here / name).read_text("utf-8") for name in _SCRIPTS)
    policy = (
        f"default-src 'none'; script-src {policy_hash(script)}; style-src {policy_hash(style)}; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    text = (here / "page/page.html").read_text("utf-8")
    before, after = text.split('"contents"</script>')
    before = before.replace('content="policy"', f'content="{policy}"').replace("/* style */", style)
    return before, "</script>" + after.replace("/* script */", script)

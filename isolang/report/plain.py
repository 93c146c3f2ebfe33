"""Writes pages of tables and pictures as self-contained files, secured by hashes."""

from __future__ import annotations

import base64
import hashlib
from html import escape
from importlib.resources import files

from isolang.report.picture import Picture, escape_invisible, svg


def plain_page(title: str, body: str, *, script: str = "", refresh: int = 0) -> str:
    """Return a page with a title and a body.

    Args:
        refresh: the seconds after which the page reloads itself; 0 for never.
    """
    style = (files("isolang.report") / "page/plain.css").read_text("utf-8")
    code = (files("isolang.report") / f"page/{script}").read_text("utf-8") if script else ""
    allowed = f"script-src {policy_hash(code)}; " if code else ""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; {allowed}'
        f"style-src {policy_hash(style)}; base-uri 'none'; form-action 'none'\">"
        + (f'<meta http-equiv="refresh" content="{refresh}">' if refresh else "")
        + '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{text(title)}</title><style>{style}</style></head>\n<body>{body}"
        + (f"<script>{code}</script>" if code else "")
        + "</body></html>\n"
    )


def policy_hash(code: str) -> str:
    """Return the hash for allowing a script or a style in a content security policy."""
    digest = hashlib.sha256(code.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def text(value: str) -> str:
    """Return a text escaped for HTML."""
    return escape(escape_invisible(value))


def figure(picture: Picture, *, caption: str = "") -> str:
    """Return a picture as HTML, with its caption if there is one."""
    below = f"<figcaption>{text(caption)}</figcaption>" if caption else ""
    return f'<figure class="wide">{svg(picture)}{below}</figure>'


def table(heads: list[str], rows: list[list[str]], *, numbers: frozenset[int] = frozenset()) -> str:
    """Return a table as HTML, for the script ``sort.js`` to sort by the selected column."""
    head = "".join(f'<th scope="col"><button>{text(name)}</button></th>' for name in heads)
    body = "".join(
        "<tr>"
        + "".join(
            f'<td class="number">{text(cell)}</td>' if i in numbers else f"<td>{text(cell)}</td>"
            for i, cell in enumerate(row)
        )
        + "</tr>\n"
        for row in rows
    )
    return (
        f'<div class="wide"><table class="sorted"><thead><tr>{head}</tr></thead>\n'
        f"<tbody>{body}</tbody></table></div>"
    )

"""Converts JSON values to EDN; map keys become keywords."""

from __future__ import annotations

import json
import re
from typing import Any

_KEYWORD = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*\Z")


def to_edn(value: Any) -> str:
    """Return a JSON value as EDN.

    Keys that are names become keywords, with underscores and spaces replaced by ``-``. Other keys
    remain strings.

    >>> to_edn({"verdict": "valid", "certified_reason": None, "keys": [1, True]})
    '{:verdict "valid", :certified-reason nil, :keys [1 true]}'
    """
    if value is None:
        return "nil"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, dict):
        pairs = (f"{_key(str(key))} {to_edn(item)}" for key, item in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list | tuple):
        return "[" + " ".join(to_edn(item) for item in value) + "]"
    return json.dumps(value)


def _key(key: str) -> str:
    name = key.replace("_", "-").replace(" ", "-")
    return f":{name}" if _KEYWORD.match(name) else _string(key)


def _string(text: str) -> str:
    # EDN has the same escapes as JSON. File-name bytes that are not UTF-8 become \uXXXX.
    shown = json.dumps(text, ensure_ascii=False)
    return re.sub("[\ud800-\udfff]", lambda half: f"\\u{ord(half[0]):04x}", shown)

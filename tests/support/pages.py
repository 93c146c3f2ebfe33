"""Pages in a real browser: headless Chromium, driven by Playwright; and what hostile input is."""

import os
import re
import shutil
from contextlib import contextmanager

import pytest

# What a page must show as it is, and never obey.
HOSTILE = (
    "</script><script>document.title='owned'</script>",
    "<img src=x onerror=\"document.title='owned'\">",
    "'\"`;--",
    "\u202eturned\u202c",
    "\x1b[31mred",
    "\u2028\u2029",
    "🧨",
    "a" * 1_000_000,
)


def chromium():
    """The browser's path; skips the test where there is none."""
    pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    named = os.environ.get("ISOLANG_CHROMIUM")
    found = named or shutil.which("chromium") or shutil.which("google-chrome")
    if not found:
        pytest.skip("no Chromium here (Debian: apt-get install chromium)")
    return found


@contextmanager
def browser():
    """A browser; each test opens pages of its own."""
    path = chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Without its sandbox: root has none in a container.
        running = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            yield running
        finally:
            running.close()


def data_of(page):
    """The contents that a page carries."""
    import json

    (text,) = re.findall(
        r'<script type="application/json" id="contents">(.*?)</script>', page, re.S
    )
    return json.loads(text)

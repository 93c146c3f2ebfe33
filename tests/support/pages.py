"""Opens pages in headless Chromium, driven by Playwright, and provides hostile input for them."""

import os
import re
import shutil
from contextlib import contextmanager

import pytest

# Texts that a page must display literally and never interpret.
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
    """Return the path of Chromium; skip the test if it is not installed."""
    pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    named = os.environ.get("ISOLANG_CHROMIUM")
    found = named or shutil.which("chromium") or shutil.which("google-chrome")
    if not found:
        pytest.skip("no Chromium here (Debian: apt-get install chromium)")
    return found


@contextmanager
def browser():
    """Yield a browser, in which each test opens its own pages."""
    path = chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # The sandbox is disabled, because root cannot use it inside a container.
        running = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            yield running
        finally:
            running.close()


def data_of(page):
    """Return the data that a page contains."""
    import json

    (text,) = re.findall(
        r'<script type="application/json" id="contents">(.*?)</script>', page, re.S
    )
    return json.loads(text)

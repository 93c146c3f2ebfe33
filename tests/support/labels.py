"""Finds labels of a page that overlap, by measuring the page in a browser."""

WIDTHS = (400, 800, 1400)

#: All visible labels: on the edges of the timeline, its columns, the edges and boxes of the graph,
#: and charts. Each label is given by its kind, left, top, right and bottom.
LABELS = """() => {
  const found = [];
  const shown = (one) => one.checkVisibility ? one.checkVisibility() : one.offsetParent !== null;
  const add = (kind, r) => r.width && found.push([kind, r.left, r.top, r.right, r.bottom]);
  for (const canvas of document.querySelectorAll('canvas')) {
    const at = canvas.getBoundingClientRect();
    if (!at.width || !shown(canvas)) continue;
    for (const [l, t, r, b] of canvas.labels || []) {
      found.push(['timeline', at.left + l, at.top + t, at.left + r, at.top + b]);
    }
  }
  for (const svg of document.querySelectorAll('#graph svg, .columns, .chart')) {
    if (!shown(svg)) continue;
    for (const text of svg.querySelectorAll('text')) add('text', text.getBoundingClientRect());
  }
  return found;
}"""


#: The font size in pixels, after scaling, and the beginning of each text on a page. For a canvas,
#: the fonts with which it was drawn; a script that runs before the page collects these fonts.
SIZES = """() => {
  const pixels = (font) => parseFloat(font.match(/([\\d.]+)px/)[1]);
  const found = (window.fonts || []).map((font) => [pixels(font), font]);
  for (const one of document.querySelectorAll('body *')) {
    const own = [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || !one.getClientRects().length || !one.getBoundingClientRect().width) continue;
    const at = one.getScreenCTM ? one.getScreenCTM() : null;
    const scale = at ? Math.hypot(at.a, at.b) : 1;
    found.push([parseFloat(getComputedStyle(one).fontSize) * scale, one.textContent.slice(0, 40)]);
  }
  return found;
}"""

FONTS = """
  window.fonts = [];
  const plain = CanvasRenderingContext2D.prototype.fillText;
  CanvasRenderingContext2D.prototype.fillText = function (...what) {
    if (!window.fonts.includes(this.font)) window.fonts.push(this.font);
    return plain.apply(this, what);
  };
"""


def overlapping_labels(tab):
    """Return the pairs of labels that overlap by more than a pixel or two."""
    labels = tab.evaluate(LABELS)
    return [
        (a, b)
        for i, a in enumerate(labels)
        for b in labels[i + 1 :]
        if a[0] == b[0]
        and min(a[3], b[3]) - max(a[1], b[1]) > 1
        and min(a[4], b[4]) - max(a[2], b[2]) > 2
    ]


def wait_until(tab, what):
    """Wait until an expression is true in the page.

    Playwright's own function is not used, because the security policy of the page forbids it.
    """
    for _ in range(600):
        if tab.evaluate(what):
            return
        tab.wait_for_timeout(50)
    raise AssertionError(f"never so: {what}")


def open_drawn_page(running, file, width):
    """Open a page in a window of the given width, and return its tab when it has been drawn."""
    tab = running.new_page(viewport={"width": width, "height": 900})
    tab.add_init_script(FONTS)
    tab.goto(file.as_uri())
    wait_until(tab, "performance.getEntriesByName('drawn').length")
    return tab

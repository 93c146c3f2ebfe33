"""Whether labels of a page stand on each other: measured in a browser."""

WIDTHS = (400, 800, 1400)

#: All labels that can be seen: of the timeline's edges, of its columns, of the graph's edges and
#: boxes, and of charts, each as its kind and left, top, right, bottom.
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


#: The size in pixels and the text of everything that is written on a page, with its scale; of a
#: canvas, the fonts with which it was drawn (which a script before the page collects).
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


def overlaps(tab):
    """The pairs of labels that intersect by more than a pixel."""
    labels = tab.evaluate(LABELS)
    return [
        (a, b)
        for i, a in enumerate(labels)
        for b in labels[i + 1 :]
        if a[0] == b[0]
        and min(a[3], b[3]) - max(a[1], b[1]) > 1
        and min(a[4], b[4]) - max(a[2], b[2]) > 2
    ]


def until(tab, what):
    """Wait for what an expression of the page says; its policy forbids what Playwright would do."""
    for _ in range(600):
        if tab.evaluate(what):
            return
        tab.wait_for_timeout(50)
    raise AssertionError(f"never so: {what}")


def drawn(running, file, width):
    """The page at a width, once it is drawn."""
    tab = running.new_page(viewport={"width": width, "height": 900})
    tab.add_init_script(FONTS)
    tab.goto(file.as_uri())
    until(tab, "performance.getEntriesByName('drawn').length")
    return tab

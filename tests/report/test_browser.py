"""The page in a browser: the panes agree, nothing is fetched, hostile text stays text."""

import pytest
from support.labels import LABELS, SIZES, WIDTHS, open_drawn_page, overlapping_labels, wait_until
from support.pages import HOSTILE, browser, data_of
from support.paths import ROOT

import isolang
from isolang.cli.plot import time_against_size
from isolang.history import History, Transaction
from isolang.output.contest import ContestRow
from isolang.pipeline.levels import levels_of
from isolang.report import course_of, page
from isolang.report.contest import html
from isolang.run.record.recorder import Recorder
from isolang.simulator import Workload, generate

pytestmark = pytest.mark.slow  # a browser takes twenty seconds of CPU time

FOCUSED = """(document.activeElement.getAttribute('data-edge') || '')
  + document.activeElement.tagName"""

CONTRASTS = """() => {
  const rgb = (name) => {
    const probe = document.body.appendChild(document.createElement('i'));
    probe.style.color = `var(--${name})`;
    const text = getComputedStyle(probe).color;
    probe.remove();
    return text.match(/[\\d.]+/g).slice(0, 3).map(Number);
  };
  const linear = (c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const light = (name) => rgb(name).map((c) => linear(c / 255))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const pairs = [];
  for (const front of ['ink', 'faint', 'wr', 'ww', 'rw', 'so', 'rt', 'aborted', 'maybe'])
    for (const back of ['paper', 'page']) {
      const [a, b] = [light(front), light(back)].sort((x, y) => y - x);
      pairs.push([front, back, (a + 0.05) / (b + 0.05)]);
    }
  return pairs;
}"""


@pytest.fixture(scope="module")
def chromium():
    with browser() as running:
        yield running


@pytest.fixture
def opened(chromium, tmp_path):
    """Open a page from a file; whatever it complains of, or asks for, fails the test."""
    wrong = []

    def show(text, fragment="", **how):
        file = tmp_path / "page.html"
        file.write_text(text, encoding="utf-8")
        tab = chromium.new_page(viewport={"width": 1300, "height": 800}, **how)
        tab.on("console", lambda message: wrong.append(message.text))
        tab.on("pageerror", lambda error: wrong.append(str(error)))
        tab.on("request", lambda request: asked.append(request.url))
        asked = []
        tab.goto(file.as_uri() + fragment)
        tab.wait_for_function("document.title !== 'isocheck'")
        assert [url.split("#")[0] for url in asked] == [file.as_uri()]
        return tab

    yield show
    assert wrong == []


def write_skew():
    verdict = isolang.check(isolang.load_history(ROOT / "examples" / "on-call.edn"), "ser")
    return page(verdict)


def test_an_edge_that_is_chosen_is_marked_everywhere(opened):
    """In the argument and in the graph; the address names it."""
    tab = opened(write_skew())
    tab.click("#argument [data-edge='1']")
    assert tab.locator("#graph [data-edge='1'].on").count() == 1
    assert tab.locator("#graph [data-edge='0'].on").count() == 0
    assert tab.evaluate("location.hash") == "#e=1"
    tab.click("#graph [data-edge='0'] text")
    assert tab.locator("#argument [data-edge='0'].on").count() == 1


def test_an_address_shows_what_it_names(opened):
    """A link shows the same to whoever opens it."""
    tab = opened(write_skew(), "#e=0")
    assert tab.locator("#argument [data-edge='0'].on").count() == 1
    assert "T4" in tab.locator("#graph .detail").inner_text()


def test_an_address_names_the_view(opened):
    """A page of levels opens with them; another view changes the address, and keeps the edge."""
    history = isolang.load_history(ROOT / "examples" / "on-call.edn")
    text = page(isolang.check(history, "ser"), levels=levels_of(history))
    tab = opened(text)
    assert tab.evaluate("location.hash") == "#v=levels"
    assert tab.locator("#more .level.violated", has_text="ser").count() >= 1
    tab.click("#tab-verdict")
    tab.click("#argument [data-edge='1']")
    tab.click("#tab-input")
    assert tab.evaluate("location.hash") == "#e=1&v=input"
    assert opened(text, "#e=1&v=input").locator("#more th").count() > 5


def test_an_address_that_names_nothing_is_ignored(opened):
    """Also one that is made to do harm."""
    tab = opened(write_skew(), "#e=99&t=-1&<script>=1")
    assert tab.locator(".on").count() == 0


def test_a_transaction_on_the_timeline_can_be_chosen(opened):
    """A click on its box says what it did."""
    tab = opened(write_skew())
    box = tab.locator("canvas").bounding_box()
    tab.mouse.click(box["x"] + box["width"] * 0.55, box["y"] + box["height"] * 0.5)
    assert tab.locator("#argument button.txn.on").count() == 1
    assert "committed" in tab.locator("#timeline .detail").inner_text()


def test_all_is_reachable_by_keyboard(opened):
    """Tab comes to every edge; keys move the timeline; Enter chooses."""
    tab = opened(write_skew())
    reached = set()
    for _ in range(60):
        tab.keyboard.press("Tab")
        reached.add(tab.evaluate(FOCUSED))
    assert {"0BUTTON", "1BUTTON", "0g", "1g", "CANVAS", "SELECT", "INPUT"} <= reached
    tab.focus("#graph [data-edge='1']")
    tab.keyboard.press("Enter")
    assert tab.evaluate("location.hash") == "#e=1"
    tab.focus("canvas")
    tab.keyboard.press("Escape")
    tab.keyboard.press("]")
    assert tab.evaluate("location.hash").startswith("#t=") or tab.evaluate("location.hash") == ""


def test_search_finds_keys_values_and_transactions(opened):
    """And says so if there is nothing."""
    tab = opened(write_skew())
    for text, found in (("T5", "T5"), ("bob = 0", "T5"), (":alice", "T")):
        tab.fill("input[type=search]", text)
        tab.keyboard.press("Enter")
        wait_until(
            tab, f"document.querySelector('#timeline .detail').innerText.startsWith('{found}')"
        )
    tab.fill("input[type=search]", "nobody")
    tab.keyboard.press("Enter")
    wait_until(tab, "document.querySelector('#timeline form').innerText.includes('nothing found')")


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_stays_text(opened, text):
    """No element, no script, no turned line comes from a key, a value or a name."""
    history = History.from_transactions(
        [
            Transaction([("w", text, 1), ("w", "y", text)], session=text),
            Transaction([("r", text, None), ("r", "y", text)], session="b" + text),
        ],
        name=text[:300],
    )
    tab = opened(page(isolang.check(history, "ser")))
    for name in ("input", "statistics", "verdict"):
        tab.click(f"#tab-{name}")
    assert tab.evaluate("document.title") != "owned"
    assert tab.locator("img").count() == 0
    assert tab.locator("script").count() == 2
    shown = tab.evaluate("document.body.innerText")
    assert not set(shown) & set("\u202e\u202c\x1b\u2028")


def test_dark_and_light_are_readable(opened):
    """Text and lines stand out from what is behind them: contrast AA, of 4.5."""
    for scheme in ("light", "dark"):
        tab = opened(write_skew(), color_scheme=scheme)
        assert [p for p in tab.evaluate(CONTRASTS) if p[2] < 4.5] == []


def test_valid_and_unknown_have_pages(opened):
    """An order for the one; for the other what was tried."""
    tab = opened(page(isolang.check(generate(Workload(transactions=300, seed=1)), "ser")))
    assert tab.locator("ol.order li").count() > 100
    assert tab.locator("#graph").is_hidden()
    history = generate(Workload(rule="serializable", transactions=2000, keys=20, values=2, seed=2))
    tab = opened(page(isolang.check(history, "ser", timeout=0.02)))
    assert "unknown" in tab.locator("#outcome").inner_text()


def test_a_long_history_is_drawn_and_moved(opened):
    """A hundred thousand transactions: found, zoomed, panned, all of it seen at once."""
    history = generate(
        Workload(
            rule="serializable", transactions=100_000, sessions=50, keys=1000, operations=2, seed=4
        )
    )
    tab = opened(page(isolang.check(history, "pl-1")))
    tab.fill("input[type=search]", "T77777")
    tab.keyboard.press("Enter")
    assert tab.locator("#timeline .detail b").inner_text() == "T77777"
    tab.focus("canvas")
    for key in ("0", "+", "+", "ArrowRight", "ArrowDown", "-", "0"):
        tab.keyboard.press(key)


def test_the_course_of_a_run(opened, tmp_path):
    """Its view draws each outcome that there was, and says the sums as a table."""
    path = tmp_path / "run.edn"
    events = []
    for i in range(0, 300, 2):
        txn = f':process {i % 7}, :time {i}0000000, :f :txn, :value [[:w "x" {i}]]}}'
        events.append(f"{{:index {i}, :type :invoke, {txn}")
        end = txn.replace(f"time {i}", f"time {i + 1}")
        kind = "fail" if i % 6 == 0 else "ok"
        events.append(f"{{:index {i + 1}, :type :{kind}, {end}")
    path.write_text("\n".join(events) + "\n")
    verdict = isolang.check(isolang.load_history(path), "ser")
    tab = opened(page(verdict, course=course_of(path)))
    tab.click("#tab-run")
    assert tab.locator("#more .chart").count() == 2
    assert tab.locator("#more .chart").first.locator(".curve").count() == 2
    assert tab.locator("#more td").all_text_contents() == ["100", "50", "0"]


def test_a_column_of_the_contest_sorts_when_it_is_chosen(chromium, tmp_path):
    """By size and not by text; what is missing comes last, whichever way."""
    common = {"history": "<h>", "transactions": 100, "spec": "si", "encoding": "e"}
    rows = [
        ContestRow(solver="slow", verdict="valid", total=11.5, **common),
        ContestRow(solver="fast", verdict="valid", total=2.25, **common),
        ContestRow(solver="never", verdict="unknown", total=None, detail="timeout", **common),
    ]
    path = tmp_path / "contest.html"
    path.write_text(html(rows, time_against_size(rows), messages=["a & b disagree"]))
    said = []
    tab = chromium.new_page()
    tab.on("console", lambda message: said.append(message.text))
    tab.goto(path.as_uri())
    order = "[...document.querySelectorAll('tbody tr')].map(r => r.cells[3].textContent)"
    for wanted in (["fast", "slow", "never"], ["slow", "fast", "never"]):
        tab.click("th:nth-child(10) button")
        assert tab.evaluate(order) == wanted
    assert tab.locator("th[aria-sort=descending]").count() == 1
    assert tab.locator("td").first.inner_text() == "<h>"
    assert said == []


def test_the_timeline_says_how_many_it_draws(chromium, tmp_path):
    """On its first scale those of the argument, of all that there are."""
    quiet = [Transaction([("w", f"p{i}", 1)], session=f"p{i}") for i in range(3)]
    lost = [Transaction([("r", "x", None), ("w", "x", i)], session=f"s{i}") for i in (1, 2)]
    file = tmp_path / "page.html"
    file.write_text(page(isolang.check(History.from_transactions([*quiet, *lost]), "ser")))
    tab = chromium.new_page(viewport={"width": 1300, "height": 800})
    tab.add_init_script("""
        window.written = [];
        const plain = CanvasRenderingContext2D.prototype.fillText;
        CanvasRenderingContext2D.prototype.fillText = function (text, ...where) {
          window.written.push(String(text).trim());
          return plain.call(this, text, ...where);
        };
    """)
    tab.goto(file.as_uri())
    wait_until(tab, "window.written.some((text) => text.endsWith(' transactions'))")
    counts = {text for text in tab.evaluate("window.written") if text.endswith(" transactions")}
    tab.close()
    assert counts == {"2 of 5 transactions"}


def knot():
    """A violation of many sessions, whose edges pass rows that they do not join."""
    ring = 5
    return History.from_transactions(
        [
            Transaction([("r", f"k{i}", None), ("w", f"k{(i + 2) % ring}", i + 1)], session=f"s{i}")
            for i in range(ring)
        ]
    )


@pytest.mark.parametrize("width", WIDTHS)
def test_no_two_labels_stand_on_each_other(chromium, tmp_path, width):
    """On narrow and wide screens, in the timeline, its columns and the graph."""
    histories = [
        (isolang.load_history(ROOT / "examples" / "on-call.edn"), "ser"),
        (isolang.load_history(ROOT / "examples" / "long-fork.bincode"), "si"),
        (knot(), "ser"),
    ]
    file = tmp_path / "page.html"
    for history, level in histories:
        file.write_text(page(isolang.check(history, level), certificate="-"), encoding="utf-8")
        tab = open_drawn_page(chromium, file, width)
        assert overlapping_labels(tab) == []
        assert len(tab.evaluate(LABELS)) >= 6
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        tab.close()


def ring(count, kind="rw"):
    """A cycle of so many transactions, of anti-dependencies or of reads."""
    seen = (lambda i: None) if kind == "rw" else (lambda i: 1 + (i - 1) % count)
    return History.from_transactions(
        [
            Transaction(
                [("r", f"key/{i}", seen(i)), ("w", f"key/{(i + 1) % count}", i + 1)],
                session=f"s{i}",
            )
            for i in range(count)
        ]
    )


@pytest.mark.parametrize("width", WIDTHS)
def test_every_label_can_be_read_however_long_the_cycle_is(chromium, tmp_path, width):
    """None is smaller than 11 pixels, none covers another, and no transaction is cut off."""
    file = tmp_path / "page.html"
    for history in (ring(2), ring(7, "wr"), ring(10), ring(13, "wr")):
        file.write_text(page(isolang.check(history, "ser"), certificate="-"), encoding="utf-8")
        tab = open_drawn_page(chromium, file, width)
        assert [one for one in tab.evaluate(SIZES) if one[0] < 11] == []
        assert overlapping_labels(tab) == []
        sheet, *nodes = tab.evaluate(
            """() => ['#graph .sheet', '#graph g.node'].flatMap((one) =>
            [...document.querySelectorAll(one)].map((o) => o.getBoundingClientRect())
            .map((r) => [r.left, r.right, r.top, r.bottom]))"""
        )
        assert len(nodes) >= history.columns.transactions()
        for left, right, top, bottom in nodes:
            assert sheet[0] <= left < right <= sheet[1]
            assert sheet[2] <= top < bottom <= sheet[3]
        tab.close()


def test_the_timeline_has_room_for_all_sessions_of_the_argument(chromium, tmp_path):
    """Also for ten; what the window cannot show is scrolled to."""
    file = tmp_path / "page.html"
    file.write_text(page(isolang.check(ring(10), "ser"), certificate="-"), encoding="utf-8")
    for width in (800, 1400):
        tab = open_drawn_page(chromium, file, width)
        assert tab.evaluate("document.querySelector('canvas').clientHeight") >= 10 * 34 + 18
        tab.close()


def test_a_graph_of_rows_is_whole_on_a_narrow_screen(chromium, tmp_path):
    """Two transactions with the columns of their rows stand below each other, and none is cut."""
    with Recorder(tmp_path / "history.edn") as recorder:
        for session in range(2):
            with recorder.transaction(session) as t:
                t.read("account/bob", None)
                t.write("account/bob", 765 + session)
                t.callers = ["app.py:41", "app.py:43"]
                t.rows = ["{owner: Bob, balance: 50}", "{owner: Bob → Bob Jr., balance: 50 → 61}"]
        verdict = isolang.check(recorder.history(), "ser")
    file = tmp_path / "page.html"
    file.write_text(page(verdict), encoding="utf-8")
    for width in WIDTHS:
        tab = open_drawn_page(chromium, file, width)
        box, *shapes = tab.evaluate(
            """() => ['#graph .sheet', '#graph g.node'].flatMap((one) =>
            [...document.querySelectorAll(one)].map((o) => o.getBoundingClientRect())
            .map((r) => [r.left, r.right]))"""
        )
        assert len(shapes) == 2
        assert all(box[0] <= left < right <= box[1] for left, right in shapes)
        assert overlapping_labels(tab) == []
        assert tab.locator("#argument").inner_text().count("app.py:4") == 4
        tab.close()


def test_a_narrow_screen_has_a_column_for_each_session(chromium, tmp_path):
    """Time goes down; the edges of the cycle have numbers, and the list below explains them."""
    file = tmp_path / "page.html"
    file.write_text(write_skew(), encoding="utf-8")
    tab = open_drawn_page(chromium, file, 400)
    assert tab.locator("canvas").is_hidden()
    assert tab.locator(".columns .node").count() == 3
    assert tab.locator(".columns .badge").all_text_contents() == ["1", "2"]
    top = [tab.locator(f".columns .node:has-text('{t}') rect").bounding_box() for t in ("T1", "T4")]
    assert top[0]["y"] + top[0]["height"] <= top[1]["y"]
    assert top[0]["x"] + top[0]["width"] <= top[1]["x"]
    tab.click(".narrow ol .edge >> nth=1")
    assert tab.locator("#argument [data-edge='1'].on").count() == 1
    tab.set_viewport_size({"width": 1300, "height": 800})
    wait_until(tab, "document.querySelector('.narrow').hidden")
    assert tab.locator("canvas").is_visible()


def test_the_graph_shows_who_was_overwritten(chromium, tmp_path):
    """Whom both read from stands beside the cycle, thin and grey."""
    file = tmp_path / "page.html"
    file.write_text(write_skew(), encoding="utf-8")
    tab = open_drawn_page(chromium, file, 1300)
    assert tab.locator("#graph .node.grey").count() == 1
    assert tab.locator("#graph .edge.grey text").all_text_contents() == ["wr :bob", "wr :alice"]


def test_a_page_says_how_long_a_transaction_was_open(tmp_path):
    """And how many others committed meanwhile; seconds only by a clock."""
    begin = [(0, 99), (50, 60)]
    busy = [
        Transaction([("w", f"b{i}", 1)], session=f"b{i}", begin=20 + i, end=21 + i)
        for i in range(12)
    ]
    lost = [
        Transaction([("r", "x", None), ("w", "x", i)], session=f"s{i}", begin=b, end=e)
        for i, (b, e) in enumerate(begin, 1)
    ]
    text = page(isolang.check(History.from_transactions([*lost, *busy]), "ser"), certificate="-")
    first, second = data_of(text)["violation"]["transactions"]
    assert first["age"] == "open while 13 others committed"
    assert second["age"] == ""

// The timeline: a row for each session, a box for each transaction, the argument's edges as arrows.
// What is off the screen is not drawn, and what is smaller than a pixel is drawn once.
"use strict";

const LOW = 34; // height of a row, in pixels, where there are many
const HIGH = 120; // and where there are few
const HEAD = 18; // above the first row: the scale
const MOST = 24; // rows of the argument that have room at once
const SIDE = 96; // left of the rows: the sessions' names
const BEHIND = -2; // the number of what is drawn thin and grey: an edge that the cycle rests on
const MANY = 400; // sessions from which rows are shared, as each would have a row of its own

/**
 * Where transactions stand on one scale.
 * @typedef {{begin: Float64Array, end: Float64Array, row: Int32Array, rows: number[][], names: string[],
 *   says: string, cells: (txn: number) => Cell[]}} Layout
 * An operation's share of its transaction's box; `exact` if it is where the operation was at work.
 * @typedef {{op: number, from: number, to: number, text: string, exact: boolean}} Cell
 */

/** Operations, as far as they are shown, with equal shares of a box.
 * @param {number} from @param {number} to @param {{op: number, text: string}[]} shown @returns {Cell[]} */
function shares(from, to, shown) {
  const each = (to - from) / Math.max(1, shown.length);
  return shown.map(({ op, text }, i) => ({ op, text, from: from + i * each, to: from + (i + 1) * each, exact: false }));
}

/** All operations of a transaction. @param {number} txn */
function allOf(txn) {
  const shown = [];
  for (let op = H.first[txn]; op < H.first[txn + 1]; op++) shown.push({ op, text: M.text(op) });
  return shown;
}

/** Those that the argument is about, and how many more there are. @param {number} txn */
function shownOf(txn) {
  const view = D.violation.transactions.find((/** @type {Shown} */ t) => M.place(t.number) === txn);
  if (!view || !view.operations.length || H.first[txn + 1] - H.first[txn] <= 6) return allOf(txn);
  const some = view.operations.map((/** @type {any} */ { index }) => ({ op: H.first[txn] + index, text: M.text(H.first[txn] + index) }));
  return [...some, { op: -1, text: `+${view.omitted}` }];
}

/** When each operation was at work, and COMMIT was sent, where that is known.
 * @param {number} txn @param {Float64Array} begin @returns {{op: number, text: string, from: number, to: number}[]} */
function momentsOf(txn, begin) {
  const found = [];
  for (let op = H.first[txn]; op < H.first[txn + 1]; op++) {
    if (H.sent[op] === null || H.sent[op] === undefined || H.took[op] === null) return [];
    const from = begin[txn] + H.sent[op];
    found.push({ op, text: M.text(op), from, to: from + H.took[op] });
  }
  const commit = H.commit[txn];
  const ended = H.end[txn];
  if (typeof commit === "number" && typeof ended === "number") found.push({ op: -2, text: "COMMIT", from: begin[txn] + commit, to: ended });
  return found;
}

/** A scale on which only what happens takes room: a step after a begin, a small one after an end.
 * @param {number[]} txns @param {Float64Array} from @param {Float64Array} to
 * @param {{from: number, to: number}[]} [inner] what happens inside of transactions
 * @returns {[Float64Array, Float64Array, (time: number) => number]} */
function ranked(txns, from, to, inner = []) {
  const begins = Float64Array.from([...(inner.length ? inner.map((m) => m.from) : []), ...(inner.length ? [] : txns.map((t) => from[t]))]).sort();
  const times = new Float64Array(2 * txns.length + 2 * inner.length);
  times.set(txns.map((t) => from[t]));
  times.set(txns.map((t) => to[t]), txns.length);
  times.set(inner.flatMap((m) => [m.from, m.to]), 2 * txns.length);
  times.sort();
  const distinct = times.filter((t, i) => !i || t !== times[i - 1]);
  const at = new Float64Array(distinct.length);
  for (let i = 1, k = 0; i < distinct.length; i++) {
    while (k < begins.length && begins[k] < distinct[i - 1]) k++;
    at[i] = at[i - 1] + (begins[k] === distinct[i - 1] ? 1 : 0.3);
  }
  const rank = (/** @type {number} */ t) => {
    let [a, b] = [0, distinct.length - 1];
    while (a < b) {
      const m = (a + b) >> 1;
      if (distinct[m] < t) a = m + 1;
      else b = m;
    }
    return at[a] || 0;
  };
  const [begin, end] = [new Float64Array(M.n), new Float64Array(M.n)];
  for (const t of txns) {
    begin[t] = rank(from[t]);
    end[t] = Math.max(begin[t] + 0.6, rank(to[t]));
  }
  return [begin, end, rank];
}

/** One after the other, each as wide as what it shows needs. @param {number[]} txns
 * @returns {[Float64Array, Float64Array, (time: number) => number]} */
function wide(txns) {
  const [begin, end] = [new Float64Array(M.n), new Float64Array(M.n)];
  let x = 0;
  for (const t of txns) {
    begin[t] = x;
    end[t] = x + roomOf(t);
    x = end[t] + 0.3;
  }
  return [begin, end, (time) => time];
}

/** The room that what is shown of a transaction needs, in steps of the scale. @param {number} txn */
function roomOf(txn) {
  return Math.max(0.7, shownOf(txn).reduce((sum, { text }) => sum + 0.3 + text.length / 14, 0));
}

/** The same scale, stretched where boxes are too narrow for what they show.
 * @param {number[]} txns @param {Float64Array} begin @param {Float64Array} end @param {(time: number) => number} rank
 * @returns {[Float64Array, Float64Array, (time: number) => number]} */
function stretched(txns, begin, end, rank) {
  const stops = [...new Set(txns.flatMap((t) => [begin[t], end[t]]))].sort((a, b) => a - b);
  const at = new Map([[stops[0], 0]]);
  for (let i = 1; i < stops.length; i++) {
    let x = (at.get(stops[i - 1]) ?? 0) + (stops[i] - stops[i - 1]);
    for (const t of txns) if (end[t] === stops[i]) x = Math.max(x, (at.get(begin[t]) ?? 0) + roomOf(t));
    at.set(stops[i], x);
  }
  const moved = (/** @type {Float64Array} */ old) => {
    const now = new Float64Array(M.n);
    for (const t of txns) now[t] = at.get(old[t]) ?? 0;
    return now;
  };
  return [moved(begin), moved(end), rank];
}

/** The sessions of the argument: what the cycle rests on, then those of the cycle in its order, so that
 * most of its edges join neighbours. */
function sessionsOfArgument() {
  const last = CYCLES[CYCLES.length - 1];
  const cycle = last ? last.edges.map((e) => M.place(e.from)).filter((t) => t >= 0) : [];
  const around = new Set(cycle);
  return [...new Set([...INVOLVED.filter((t) => !around.has(t)).map((t) => H.session[t]).filter((s) => !cycle.some((t) => H.session[t] === s)), ...cycle.map((t) => H.session[t])])];
}

/** Rows for the sessions of some transactions, those of the argument on top; or, of more sessions than
 * anyone looks at, rows that they share. @param {number[]} txns by their begin @param {Float64Array} begin
 * @param {Float64Array} end @returns {{row: Int32Array, rows: number[][], names: string[]}} */
function rowsOf(txns, begin, end) {
  const row = new Int32Array(M.n).fill(-1);
  const first = sessionsOfArgument();
  const sessions = [...new Set(txns.map((t) => H.session[t]))].filter((s) => s >= 0).sort((a, b) => a - b);
  /** @type {string[]} */
  let names;
  if (sessions.length > MANY) {
    /** @type {number[]} */
    const free = [];
    for (const t of txns) {
      let r = free.findIndex((until) => until <= begin[t]);
      if (r < 0) r = free.length < 200 ? free.length : t % 200;
      free[r] = Math.max(free[r] || 0, end[t]);
      row[t] = H.session[t] < 0 ? -1 : r;
    }
    names = free.map(() => "");
  } else {
    const known = new Set(sessions);
    const sorted = [...first.filter((s) => known.has(s)), ...sessions.filter((s) => !first.includes(s))];
    const at = new Map(sorted.map((s, r) => [s, r]));
    for (const t of txns) row[t] = at.get(H.session[t]) ?? -1;
    names = sorted.map((s) => H.sessions[s]);
  }
  /** @type {number[][]} */
  const rows = names.map(() => []);
  for (const t of txns) if (row[t] >= 0) rows[row[t]].push(t);
  return { row, rows, names };
}

/** The scales: the argument alone, all events by rank, and true time. @returns {Map<string, Layout>} */
function layouts() {
  const from = new Float64Array(M.n);
  const to = new Float64Array(M.n);
  const timed = H.begin.length > 0;
  if (timed) {
    let last = 0;
    for (let i = 0; i < M.n; i++) last = Math.max(last, H.begin[i], H.end[i] ?? 0);
    for (let i = 0; i < M.n; i++) {
      from[i] = H.begin[i];
      to[i] = H.end[i] ?? last;
    }
  } else {
    for (let i = 0; i < M.n; i++) from[i] = i;
    if (D.order) D.order.txns.forEach((/** @type {number} */ t, /** @type {number} */ i) => { if (M.place(t) >= 0) from[M.place(t)] = i; });
    for (let i = 0; i < M.n; i++) to[i] = from[i] + 0.9;
  }
  const all = Array.from({ length: M.n }, (_, i) => i).sort((a, b) => from[a] - from[b]);
  const [begin, end] = timed ? ranked(all, from, to) : [from, to];
  const says = timed ? "order of events" : D.order ? `${D.order.kind} order (the history has no times)` : "order of the file (the history has no times)";
  const rows = rowsOf(all, begin, end);
  /** @type {Map<string, Layout>} */
  const found = new Map();
  if (INVOLVED.length) {
    const few = all.filter((t) => INVOLVED.includes(t));
    const moments = new Map(few.map((t) => [t, H.sent.length ? momentsOf(t, from) : []]));
    const inner = [...moments.values()].flat();
    let [b, e, rank] = timed || inner.length ? ranked(few, from, to, inner) : wide(few);
    if (timed && !inner.length) [b, e, rank] = stretched(few, b, e, rank);
    const cells = (/** @type {number} */ t) => {
      const at = moments.get(t) || [];
      return at.length ? at.map((m) => ({ ...m, from: rank(m.from), to: rank(m.to), exact: true })) : shares(b[t], e[t], shownOf(t));
    };
    found.set("the argument", { begin: b, end: e, ...rowsOf(few, b, e), says: `${says}, of the argument alone`, cells });
  }
  found.set("all", { begin, end, ...rows, says, cells: (t) => shares(begin[t], end[t], allOf(t)) });
  if (timed) {
    found.set("true time", {
      begin: from, end: to, ...rows, says: "time",
      cells: (t) => {
        const at = H.sent.length ? momentsOf(t, from) : [];
        return at.length ? at.map((m) => ({ ...m, exact: true })) : shares(from[t], to[t], allOf(t));
      },
    });
  }
  return found;
}

/** @param {HTMLElement} pane */
function timelinePane(pane) {
  const scales = layouts();
  let L = /** @type {Layout} */ (scales.values().next().value);
  const canvas = el("canvas", {
    tabindex: "0", role: "application",
    "aria-label": "Timeline. Arrows move, plus and minus zoom, brackets go to the previous and next transaction of the session, V goes to the violation.",
  });
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const view = { x: 0, scale: 1, y: 0, width: 0, height: 0, neighbours: false };
  const from = () => L.begin;
  const to = () => L.end;
  /** @type {{edge: number, points: number[]}[]} */
  let drawn = [];
  let ROW = LOW;
  let palette = readPalette();
  let waiting = false;

  const search = el("input", { type: "search", placeholder: "T12, key, or key = value", "aria-label": "Search transactions, keys and values" });
  const found = el("span", { class: "note", "aria-live": "polite" });
  const scale = el("select", { "aria-label": "Scale", onchange: () => rescale(scale.value) });
  for (const name of scales.keys()) scale.append(el("option", { value: name }, name));
  const near = el("button", { "aria-pressed": "false", title: "Whom the selected transaction read from, and who read from it", onclick: toggleNeighbours }, "neighbours");
  const bar = el("div", { class: "bar" }, el("h2", {}, "Timeline"),
    scales.size > 1 ? scale : null,
    INVOLVED.length ? el("button", { onclick: toViolation, title: "V" }, "to the violation") : null,
    el("button", { onclick: whole, title: "0" }, "fit"),
    el("button", { onclick: () => zoom(1.6), "aria-label": "Zoom in", title: "+" }, "+"),
    el("button", { onclick: () => zoom(1 / 1.6), "aria-label": "Zoom out", title: "-" }, "−"),
    near,
    el("form", { onsubmit: (/** @type {Event} */ e) => { e.preventDefault(); find(1); } }, search, found));
  const detail = el("div", { class: "detail", "aria-live": "polite" });
  pane.append(bar, el("div", { class: "sheet" }, canvas), legend(), detail);

  function readPalette() {
    /** @type {Record<string, string>} */
    const read = {};
    for (const name of ["ink", "faint", "line", "paper", "box", "boxline", "aborted", "maybe", "on", "onbox", "reads", "versions", "overwrites", "order", "time"]) read[name] = colour(name);
    return read;
  }

  const pad = () => 4 + (ROW - LOW) / 5;
  /** @param {number} x */
  const px = (x) => SIDE + (x - view.x) * view.scale;
  /** @param {number} row */
  const py = (row) => HEAD + row * ROW - view.y;

  const narrow = el("div", { class: "narrow" });
  /** @type {HTMLElement} */ (canvas.parentElement).after(narrow);
  /** On a narrow screen the argument stands in columns; the canvas has the other scales. */
  function columns() {
    const on = innerWidth < NARROW && INVOLVED.length > 0 && scale.value === "the argument";
    pane.classList.toggle("in-columns", on);
    narrow.hidden = !on;
    if (!on) return;
    const last = CYCLES[CYCLES.length - 1];
    const edges = last ? last.edges : [];
    const { picture, list } = columnsPicture(/** @type {Layout} */ (scales.get("the argument")), edges, pane.clientWidth - 24);
    narrow.replaceChildren(el("div", { class: "wide" }, picture), list);
    mark();
  }
  function mark() {
    for (const one of narrow.querySelectorAll("[data-edge]")) one.classList.toggle("on", S.hasEdge(Number(one.dataset.edge)));
    for (const one of narrow.querySelectorAll("[data-txn]")) one.classList.toggle("on", S.hasTxn(Number(one.dataset.txn)));
  }
  S.listeners.push(mark);

  function resize() {
    const box = canvas.parentElement.getBoundingClientRect();
    view.width = Math.max(200, box.width);
    view.height = Math.max(120, box.height);
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(view.width * ratio);
    canvas.height = Math.round(view.height * ratio);
    canvas.style.width = `${view.width}px`;
    canvas.style.height = `${view.height}px`;
    ROW = Math.min(HIGH, Math.max(LOW, (view.height - HEAD) / Math.max(1, L.rows.length)));
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    draw();
  }

  function later() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; draw(); });
  }

  function extent() {
    let last = 1;
    const ends = to();
    for (let i = 0; i < M.n; i++) if (ends[i] > last) last = ends[i];
    return last;
  }

  function bound() {
    const most = Math.max(0, L.rows.length * ROW + HEAD + 8 - view.height);
    view.y = Math.min(Math.max(0, view.y), most);
    const last = extent();
    const room = (view.width - SIDE) / view.scale;
    view.x = Math.min(Math.max(view.x, -room * 0.1), Math.max(-room * 0.1, last - room * 0.9));
  }

  function whole() {
    view.x = 0;
    view.y = 0;
    view.scale = (view.width - SIDE - 8) / extent();
    later();
  }

  /** @param {number[]} txns */
  function show(txns) {
    if (!txns.length) return;
    let a = Infinity;
    let b = -Infinity;
    for (const t of txns) {
      a = Math.min(a, from()[t]);
      b = Math.max(b, to()[t]);
    }
    const room = view.width - SIDE - 24;
    // Readable if it can be: operations have room, else all of it is in sight.
    view.scale = Math.min(room / Math.max(1e-9, b - a) / 1.15, 260 / Math.max(1e-9, Math.min(...txns.map((t) => to()[t] - from()[t]))));
    view.x = a - (room / view.scale - (b - a)) / 2;
    const rows = txns.map((t) => L.row[t]).filter((r) => r >= 0);
    view.y = Math.min(...rows) * ROW - 8;
    bound();
    later();
  }

  function toViolation() {
    if (scales.has("the argument")) rescale("the argument");
    say(`${INVOLVED.length} transactions of the argument`);
  }

  /** @param {number} factor @param {number} [at] */
  function zoom(factor, at) {
    const x = at ?? SIDE + (view.width - SIDE) / 2;
    const time = view.x + (x - SIDE) / view.scale;
    view.scale = Math.min(Math.max(view.scale * factor, (view.width - SIDE) / extent() / 2), 1e6);
    view.x = time - (x - SIDE) / view.scale;
    bound();
    later();
  }

  /** All sessions of the argument are in sight; of more rows than `MOST`, the canvas moves. */
  function makeRoom() {
    const sheet = /** @type {HTMLElement} */ (canvas.parentElement);
    const rows = scale.value === "the argument" && narrow.hidden ? Math.min(L.rows.length, MOST) : 0;
    const high = rows * LOW + HEAD + 12 + pane.clientHeight - sheet.clientHeight;
    pane.parentElement?.style.setProperty("--timeline", rows ? `${high}px` : "0px");
  }

  /** @param {string} name */
  function rescale(name) {
    L = /** @type {Layout} */ (scales.get(name));
    scale.value = name;
    columns();
    makeRoom();
    resize();
    if (name === "the argument" || !INVOLVED.length) whole();
    else show(S.selected.txn === undefined ? cycleTxns() : [S.selected.txn]);
  }

  /** The transactions of the final cycle, or all of the argument. */
  function cycleTxns() {
    const last = CYCLES[CYCLES.length - 1];
    const txns = last ? last.edges.map((e) => M.place(e.from)).filter((t) => t >= 0) : [];
    return txns.length ? txns : INVOLVED;
  }

  /** Show all transactions if one is asked for that the scale leaves out. @param {number} txn */
  function include(txn) {
    if (L.row[txn] < 0 && H.session[txn] >= 0) rescale("all");
  }

  function toggleNeighbours() {
    view.neighbours = !view.neighbours;
    near.setAttribute("aria-pressed", String(view.neighbours));
    later();
  }

  /** The first of a row that ends after a place. @param {number[]} row @param {number} x */
  function firstAfter(row, x) {
    const ends = to();
    let a = 0;
    let b = row.length;
    while (a < b) {
      const m = (a + b) >> 1;
      if (ends[row[m]] < x) a = m + 1;
      else b = m;
    }
    return a;
  }

  /** @param {number[]} row @param {number} i @param {number} x the first of a row from i that begins after x */
  function skip(row, i, x) {
    const begins = from();
    let a = i;
    let b = row.length;
    while (a < b) {
      const m = (a + b) >> 1;
      if (begins[row[m]] < x) a = m + 1;
      else b = m;
    }
    return Math.max(a, i);
  }

  function draw() {
    const c = context;
    c.clearRect(0, 0, view.width, view.height);
    c.font = "11px system-ui, sans-serif";
    c.textBaseline = "middle";
    const involved = new Set(INVOLVED);
    const left = view.x;
    const right = view.x + (view.width - SIDE) / view.scale;
    const top = Math.max(0, Math.floor((view.y - HEAD) / ROW));
    const bottom = Math.min(L.rows.length, Math.ceil((view.y + view.height) / ROW));
    c.save();
    c.beginPath();
    c.rect(SIDE, 0, view.width - SIDE, view.height);
    c.clip();
    for (let r = top; r < bottom; r++) {
      const row = L.rows[r];
      c.fillStyle = palette.line;
      c.fillRect(SIDE, py(r) + ROW - 1, view.width - SIDE, 1);
      for (let k = firstAfter(row, left); k < row.length; k++) {
        const txn = row[k];
        const x = px(from()[txn]);
        if (from()[txn] > right) break;
        const w = Math.max(1, px(to()[txn]) - x);
        if (w <= 1.5 && !involved.has(txn) && !S.hasTxn(txn)) {
          c.fillStyle = H.status[txn] === "c" ? palette.boxline : H.status[txn] === "a" ? palette.aborted : palette.maybe;
          c.fillRect(x, py(r) + pad(), 1, ROW - 2 * pad() - 1);
          // One line a pixel is enough; those of the argument are drawn below in any case.
          k = Math.max(k, skip(row, k + 1, view.x + (x + 1 - SIDE) / view.scale) - 1);
          continue;
        }
        box(txn, x, py(r) + pad(), w, ROW - 2 * pad() - 1, involved.has(txn));
      }
    }
    // Arrows pass behind the boxes that they do not join, labels stand before them.
    /** @type {Rectangle[]} */
    const taken = [];
    for (const txn of INVOLVED) {
      if (L.row[txn] < 0 || L.row[txn] < top || L.row[txn] >= bottom) continue;
      const x = px(from()[txn]);
      const [y, w, h] = [py(L.row[txn]) + pad(), Math.max(3, px(to()[txn]) - x), ROW - 2 * pad() - 1];
      taken.push([x, y, x + w, y + h]);
    }
    const list = arrows();
    const points = list.map((one) => arrow(one, taken));
    for (const txn of INVOLVED) {
      if (L.row[txn] < 0 || L.row[txn] < top || L.row[txn] >= bottom) continue;
      const x = px(from()[txn]);
      box(txn, x, py(L.row[txn]) + pad(), Math.max(3, px(to()[txn]) - x), ROW - 2 * pad() - 1, true);
    }
    /** @type {Rectangle[]} */
    const labels = [];
    for (const [i, one] of list.entries()) label(one, points[i], taken, labels);
    // What was written where, for those who measure the page.
    Object.assign(canvas, { labels });
    c.restore();
    names(top, bottom);
    axis();
    drawDetail();
  }

  /** @param {number} txn @param {number} x @param {number} y @param {number} w @param {number} h @param {boolean} involved */
  function box(txn, x, y, w, h, involved) {
    const c = context;
    const status = H.status[txn];
    const on = S.hasTxn(txn);
    c.fillStyle = on ? palette.onbox : involved ? palette.paper : palette.box;
    c.strokeStyle = on || involved ? palette.on : status === "a" ? palette.aborted : status === "m" ? palette.maybe : palette.boxline;
    c.lineWidth = on ? 2.5 : involved ? 2 : 1;
    c.setLineDash(status === "m" ? [4, 3] : []);
    c.beginPath();
    // Committed: square; indeterminate: dashed, open at the end; aborted: crossed out.
    c.rect(x, y, w, h);
    c.fill();
    c.stroke();
    c.setLineDash([]);
    if (status === "a") {
      c.strokeStyle = palette.aborted;
      c.beginPath();
      c.moveTo(x, y);
      c.lineTo(x + w, y + h);
      c.stroke();
    }
    if (w < 26) return;
    const start = Math.max(x, SIDE);
    const room = Math.min(x + w, view.width) - start - 6;
    if (room < 20) return;
    c.save();
    c.beginPath();
    c.rect(start, y, room + 4, h);
    c.clip();
    const tall = h >= 40;
    c.fillStyle = involved || on ? palette.ink : palette.faint;
    c.font = `600 ${tall ? 12 : 11}px system-ui, sans-serif`;
    c.fillText(visible(M.label(txn)) + (status === "m" ? " ?" : "") + (RANK.has(txn) ? `  #${RANK.get(txn)}` : ""), start + (tall ? 6 : 3), y + (tall ? 11 : 7));
    const cells = L.cells(txn);
    if (cells.length && w / cells.length > 22) inside(cells, x, y, w, h, tall);
    else {
      c.font = "11px ui-monospace, monospace";
      c.fillText(`${cells.length} op${cells.length === 1 ? "" : "s"}`, start + (tall ? 6 : 3), y + h - 7);
    }
    c.restore();
  }

  /** The operations inside of a box; each has a line of its own where that gives it more room.
   * @param {Cell[]} cells @param {number} x @param {number} y @param {number} w @param {number} h @param {boolean} tall */
  function inside(cells, x, y, w, h, tall) {
    const c = context;
    const size = 11;
    const letter = size * 0.602;
    c.font = `${size}px ui-monospace, monospace`;
    const most = tall ? Math.max(1, Math.floor((h - 18) / 12)) : 1;
    const each = w / cells.length;
    const longest = Math.max(...cells.map(({ text }) => text.length)) * letter + 8;
    const lines = Math.min(most, cells.length, Math.max(1, cells[0].exact ? most : Math.ceil(longest / each)));
    cells.forEach(({ from: a, to: b, text, exact }, i) => {
      const [x1, x2] = [px(a), px(b)];
      const next = cells[i + lines] ? px(cells[i + lines].from) : x + w;
      if (next < SIDE || x1 > view.width) return;
      const middle = tall ? y + 25 + 12 * (i % lines) : y + h - 7;
      if (exact) {
        c.fillStyle = palette.line;
        c.fillRect(x1, middle - 6, Math.max(2, x2 - x1), 12);
        c.fillStyle = palette.ink;
      }
      const said = visible(text);
      // Alone on its line it may begin further to the left.
      const inset = tall ? 6 : 4;
      const start = lines < cells.length ? x1 + inset : Math.max(x + inset, Math.min(x1 + inset, next - said.length * letter - 4));
      const room = Math.floor((next - start - 2) / letter);
      if (room < 2) return;
      c.fillText(said.length > room ? `${said.slice(0, room - 1)}…` : said, start, middle);
    });
  }

  /** Where an edge touches its transaction: at the operation, else at the begin or the end.
   * @param {number} txn @param {number} op its place in the transaction, or -1 @param {boolean} out @param {string} relation */
  function anchor(txn, op, out, relation) {
    const a = px(from()[txn]);
    const b = Math.max(a + 3, px(to()[txn]));
    const cell = op < 0 ? undefined : L.cells(txn).find((one) => one.op === H.first[txn] + op);
    if (cell) return Math.min(px(cell.from) + Math.min(24, (px(cell.to) - px(cell.from)) / 2), b - 2);
    // What ends comes before what begins; of the moments of COMMIT both are ends.
    const late = out || RELATIONS[base(relation)].late;
    const inset = Math.min(10, (b - a) / 3);
    return late ? b - inset : a + inset;
  }

  /** @typedef {{relation: string, text: string, x1: number, y1: number, x2: number, y2: number, flat: boolean,
   *   shift: number, on: boolean, pale: boolean, far: boolean, id: number}} Arrow */

  function arrows() {
    drawn = [];
    const chosen = S.selected.edge !== undefined || S.hovered.edge !== undefined;
    const last = CYCLES.length ? new Set(CYCLES[CYCLES.length - 1].edges.map((e) => e.id)) : new Set();
    const few = last.size <= 8;
    /** @type {Arrow[]} */
    const list = [];
    /** @type {Map<string, number>} */
    const together = new Map();
    const add = (/** @type {number} */ a, /** @type {number} */ b, /** @type {string} */ relation, /** @type {[number, number]} */ joins, /** @type {any} */ rest) => {
      const pair = a < b ? `${a} ${b}` : `${b} ${a}`;
      const shift = together.get(pair) ?? 0;
      together.set(pair, shift + 1);
      const [r1, r2] = [a < 0 ? -1 : L.row[a], L.row[b]];
      const border = (/** @type {number} */ row, /** @type {number} */ other) => py(row) + (other > row ? ROW - pad() - 1 : pad());
      list.push({
        relation, shift, flat: r1 === r2, far: a >= 0 && Math.abs(r1 - r2) > 1, ...rest,
        x1: a < 0 ? SIDE + 4 : anchor(a, joins[0], true, relation), y1: a < 0 ? HEAD : border(r1, r2),
        x2: anchor(b, joins[1], false, relation), y2: border(r2, r1),
      });
    };
    for (const edge of EDGES) {
      const on = S.hasEdge(edge.id);
      // The final cycle is always there; the edges of lemmas and cases when they are asked for.
      if (!last.has(edge.id) && !on) continue;
      const [a, b] = [M.place(edge.from), M.place(edge.to)];
      if (b < 0 || L.row[b] < 0 || (a >= 0 && L.row[a] < 0)) continue;
      const text = few || on ? `${edge.relation} ${edge.key}`.trim() : "";
      add(a, b, edge.relation, edge.joins, { text, on, pale: chosen && !on, id: edge.id });
    }
    for (const edge of few ? behind([...last].map((id) => EDGES[id])) : []) {
      const [a, b] = [M.place(edge.from), M.place(edge.to)];
      if (a < 0 || b < 0 || L.row[a] < 0 || L.row[b] < 0) continue;
      add(a, b, "wr", edge.joins, { text: `wr ${edge.key}`, on: false, pale: chosen, id: BEHIND });
    }
    if (view.neighbours && S.selected.txn !== undefined) {
      for (const [a, b, op] of neighboursOf(S.selected.txn)) {
        if (L.row[a] < 0 || L.row[b] < 0) continue;
        add(a, b, "wr", [-1, -1], { text: H.keys[H.key[op]], on: false, pale: false, id: -1 });
      }
    }
    return list;
  }

  /** Where a line may pass the rows between two, near a place: no box of the argument stands there.
   * @param {number} near @param {number} y1 @param {number} y2 @param {Rectangle[]} boxes */
  function passage(near, y1, y2, boxes) {
    const [a, b] = [Math.min(y1, y2) + 2, Math.max(y1, y2) - 2];
    const between = boxes.filter(([, t, , d]) => t > a && d < b);
    const clear = (/** @type {number} */ x) => between.every(([l, , r]) => x < l - 8 || x > r + 8);
    for (let far = 0; far < view.width; far += 6) {
      for (const x of [near + far, near - far]) if (x > SIDE + 4 && x < view.width - 6 && clear(x)) return x;
    }
    return near;
  }

  /** Draw an arrow, around the boxes between its ends, and give the points of its curves.
   * @param {Arrow} one @param {Rectangle[]} boxes @returns {number[]} */
  function arrow({ relation, x1, y1, x2, y2, flat, shift, on, pale, id, far }, boxes) {
    const c = context;
    // Edges between the same two transactions are bent apart, to one side and the other.
    const apart = (shift % 2 ? -1 : 1) * Math.ceil(shift / 2) * 34;
    const bend = flat ? 0 : Math.min(60, 20 + Math.abs(x2 - x1) / 6) * (x2 >= x1 ? 1 : -1);
    const high = flat ? Math.max(14, pad()) + 6 * shift : 0;
    let points = [x1, y1, x1 + bend + apart, flat ? y1 - high : (y1 + y2) / 2, x2 - bend + apart, flat ? y2 - high : (y1 + y2) / 2, x2, y2];
    if (far) {
      // Down beside its own row, straight past the others, and on to the end.
      const way = y2 > y1 ? 1 : -1;
      const step = way * Math.max(6, 2 * pad());
      const x = passage((x1 + x2) / 2 + apart, y1, y2, boxes);
      const [ya, yb] = [y1 + step, y2 - step];
      points = [x1, y1, x1, ya, x, y1, x, ya, x, ya, x, yb, x, yb, x, y2, x2, yb, x2, y2];
    }
    c.globalAlpha = pale ? 0.35 : 1;
    c.strokeStyle = c.fillStyle = id === BEHIND ? palette.faint : palette[hue(relation)];
    c.lineWidth = id === BEHIND ? 1 : on ? 3.5 : 2;
    c.setLineDash(RELATIONS[base(relation)].dash);
    c.beginPath();
    c.moveTo(x1, y1);
    for (let k = 2; k < points.length; k += 6) c.bezierCurveTo(points[k], points[k + 1], points[k + 2], points[k + 3], points[k + 4], points[k + 5]);
    c.stroke();
    c.setLineDash([]);
    const last = points.length - 4;
    const angle = Math.atan2(y2 - points[last + 1], x2 - points[last]);
    const size = id === BEHIND ? 7 : 10;
    c.beginPath();
    c.moveTo(x2, y2);
    c.lineTo(x2 - size * Math.cos(angle - 0.4), y2 - size * Math.sin(angle - 0.4));
    c.lineTo(x2 - size * Math.cos(angle + 0.4), y2 - size * Math.sin(angle + 0.4));
    c.fill();
    c.beginPath();
    c.arc(x1, y1, id === BEHIND ? 2 : 3, 0, 7);
    c.fill();
    c.globalAlpha = 1;
    if (id >= 0) drawn.push({ edge: id, points });
    return points;
  }

  /** Put the label of an arrow where on its curve there is room, or beside it; on top of others it would
   * say nothing. @param {Arrow} one @param {number[]} p the curve @param {Rectangle[]} taken @param {Rectangle[]} labels */
  function label({ relation, text, pale, id }, p, taken, labels) {
    if (!text) return;
    const c = context;
    c.font = `${id === BEHIND ? 400 : 600} ${id === BEHIND ? 11 : 12}px system-ui, sans-serif`;
    const said = visible(text.length > 24 ? `${text.slice(0, 23)}…` : text);
    const w = c.measureText(said).width;
    const around = (/** @type {[number, number]} */ [x, y]) => /** @type {Rectangle} */ ([x - w / 2 - 3, y - 8, x + w / 2 + 3, y + 8]);
    const spots = [0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8, 0.12, 0.88].map((t) => curveAt(p, t));
    const [mx, my] = spots[0];
    for (let far = 12; far < 240; far += 8) {
      for (const [dx, dy] of [[far, 0], [-far, 0], [0, far / 2], [0, -far / 2], [far, far / 4], [-far, -far / 4]]) spots.push([mx + dx, my + dy]);
    }
    const free = spots.find((spot) => {
      const [a, b, e, f] = around(spot);
      return a > SIDE && e < view.width && b > HEAD - 2 && f < view.height && !taken.some(([l, t, r, d]) => a < r && l < e && b < d && t < f);
    });
    if (!free) return;
    const [x, y] = free;
    taken.push(around(free));
    labels.push(around(free));
    c.globalAlpha = pale ? 0.5 : 1;
    c.fillStyle = palette.paper;
    c.fillRect(x - w / 2 - 3, y - 8, w + 6, 16);
    c.fillStyle = id === BEHIND ? palette.faint : palette[hue(relation)];
    c.fillText(said, x - w / 2, y);
    c.globalAlpha = 1;
  }

  /** @param {number} top @param {number} bottom */
  function names(top, bottom) {
    const c = context;
    c.fillStyle = palette.paper;
    c.fillRect(0, 0, SIDE - 2, view.height);
    c.fillStyle = palette.faint;
    c.font = "11px system-ui, sans-serif";
    for (let r = top; r < bottom; r++) {
      const name = visible(L.names[r]);
      c.fillText(name.length > 15 ? `${name.slice(0, 14)}…` : name, 6, py(r) + ROW / 2);
    }
  }

  function axis() {
    const c = context;
    c.fillStyle = palette.paper;
    c.fillRect(0, 0, view.width, HEAD - 2);
    c.fillStyle = palette.faint;
    c.fillText(L.names.some((name) => name) ? "session" : "rows are shared", 6, 8);
    const drawn = L.rows.reduce((sum, row) => sum + row.length, 0);
    const all = Math.max(H.of, M.n);
    const count = ` ${drawn.toLocaleString("en")}${all > drawn ? ` of ${all.toLocaleString("en")}` : ""} transactions`;
    const left = view.width - c.measureText(count).width - 6;
    c.fillText(count, left, 8);
    if (SIDE + 4 + c.measureText(`${L.says} →`).width < left - 8) c.fillText(`${L.says} →`, SIDE + 4, 8);
  }

  function drawDetail() {
    const txn = S.selected.txn ?? (S.selected.edge === undefined ? undefined : M.place(EDGES[S.selected.edge].to));
    const key = `${txn}`;
    if (detail.dataset.of === key) return;
    detail.dataset.of = key;
    detail.replaceChildren();
    if (txn === undefined || txn < 0) return;
    const ops = el("span", { class: "ops" });
    const [a, b] = [H.first[txn], H.first[txn + 1]];
    for (let op = a; op < Math.min(b, a + 60); op++) {
      const predicate = PREDICATES.get(op);
      if (predicate !== undefined) ops.append(el("span", { class: "statement note" }, `where ${predicate} `));
      const took = typeof H.sent[op] === "number" ? `, sent at ${H.begin[txn] + H.sent[op]}${typeof H.took[op] === "number" ? `, answered at ${H.begin[txn] + H.sent[op] + H.took[op]}` : ""}` : "";
      ops.append(el("code", { title: visible(M.at(H.place_of[op], txn) + took) }, M.text(op)), " ");
    }
    const times = H.begin.length ? `, ${H.begin[txn].toLocaleString("en")} to ${H.end[txn]?.toLocaleString("en") ?? "?"}` : "";
    const session = M.session(txn);
    detail.append(el("b", {}, M.label(txn)), ` ${STATUS[/** @type {"c"} */ (H.status[txn])]}${session ? `, session ${session}` : ""}, ${place(M.where(txn))}${times} `, ops,
      b - a > 60 ? el("span", { class: "note" }, `+${b - a - 60} more`) : "");
  }

  /** @param {MouseEvent} event @returns {Chosen} */
  function under(event) {
    const box = canvas.getBoundingClientRect();
    const x = event.clientX - box.left;
    const y = event.clientY - box.top;
    for (const { edge, points: p } of drawn) {
      for (let t = 0; t <= 1; t += 0.04) {
        const [bx, by] = curveAt(p, t);
        if (Math.abs(bx - x) < 6 && Math.abs(by - y) < 6) return { edge };
      }
    }
    if (x < SIDE || y < HEAD) return {};
    const r = Math.floor((y - HEAD + view.y) / ROW);
    const row = L.rows[r];
    if (!row) return {};
    const time = view.x + (x - SIDE) / view.scale;
    const k = firstAfter(row, time);
    for (const i of [k, k + 1]) {
      const txn = row[i];
      if (txn !== undefined && px(from()[txn]) - 2 <= x && x <= Math.max(px(to()[txn]), px(from()[txn]) + 3) + 1) return { txn };
    }
    return {};
  }

  /** @type {{x: number, y: number, moved: boolean} | null} */
  let drag = null;
  canvas.addEventListener("pointerdown", (/** @type {PointerEvent} */ e) => {
    drag = { x: e.clientX, y: e.clientY, moved: false };
    canvas.setPointerCapture(e.pointerId);
  });
  canvas.addEventListener("pointermove", (/** @type {PointerEvent} */ e) => {
    if (!drag) {
      S.hover(under(e));
      return;
    }
    const dx = e.clientX - drag.x;
    const dy = e.clientY - drag.y;
    if (Math.abs(dx) + Math.abs(dy) > 3) drag.moved = true;
    view.x -= dx / view.scale;
    view.y -= dy;
    drag.x = e.clientX;
    drag.y = e.clientY;
    bound();
    later();
  });
  canvas.addEventListener("pointerup", (/** @type {PointerEvent} */ e) => {
    if (drag && !drag.moved) S.select(under(e));
    drag = null;
  });
  canvas.addEventListener("pointerleave", () => S.hover({}));
  canvas.addEventListener("wheel", (/** @type {WheelEvent} */ e) => {
    e.preventDefault();
    if (e.ctrlKey || e.metaKey || Math.abs(e.deltaY) > Math.abs(e.deltaX)) {
      if (e.shiftKey) view.y += e.deltaY;
      else return zoom(Math.exp(-e.deltaY / 300), e.clientX - canvas.getBoundingClientRect().left);
    } else view.x += e.deltaX / view.scale;
    bound();
    later();
  }, { passive: false });
  canvas.addEventListener("dblclick", (/** @type {MouseEvent} */ e) => {
    const { txn } = under(e);
    if (txn !== undefined) show([txn]);
  });
  canvas.addEventListener("keydown", (/** @type {KeyboardEvent} */ e) => {
    const step = (view.width - SIDE) / view.scale / 6;
    const act = /** @type {Record<string, () => void>} */ ({
      ArrowLeft: () => (view.x -= step), ArrowRight: () => (view.x += step),
      ArrowUp: () => (view.y -= ROW), ArrowDown: () => (view.y += ROW),
      "+": () => zoom(1.6), "=": () => zoom(1.6), "-": () => zoom(1 / 1.6), 0: whole,
      v: toViolation, V: toViolation, "[": () => along(-1), "]": () => along(1), Escape: () => S.select({}),
    })[e.key];
    if (!act || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    act();
    bound();
    later();
  });

  /** Go to the next transaction of the session. @param {number} by */
  function along(by) {
    const txn = S.selected.txn ?? INVOLVED[0] ?? 0;
    const row = L.rows[L.row[txn]] || [];
    const next = row[row.indexOf(txn) + by];
    if (next === undefined) return;
    S.select({ txn: next });
    reveal(next);
  }

  /** Bring a transaction in sight. @param {number} txn */
  function reveal(txn) {
    include(txn);
    const x = px(from()[txn]);
    const y = py(L.row[txn]);
    if (x < SIDE || px(to()[txn]) > view.width) view.x = from()[txn] - (view.width - SIDE) / view.scale / 3;
    if (y < HEAD || y > view.height - ROW) view.y = L.row[txn] * ROW - view.height / 3;
    bound();
    later();
  }

  let place_found = -1;
  let sought = "";
  /** Search from the last place found. @param {number} by */
  function find(by) {
    const text = search.value.trim();
    if (!text) return;
    if (text !== sought) place_found = -1;
    sought = text;
    const matches = matcher(text);
    for (let i = 0; i < M.n; i++) {
      place_found = (place_found + by + M.n) % M.n;
      if (matches(place_found)) {
        found.textContent = "";
        S.select({ txn: place_found });
        include(place_found);
        if (view.scale * (to()[place_found] - from()[place_found]) < 30) show([place_found]);
        else reveal(place_found);
        return;
      }
    }
    found.textContent = " nothing found";
  }

  S.listeners.push(later);
  new ResizeObserver(resize).observe(canvas.parentElement);
  addEventListener("resize", () => { columns(); makeRoom(); }); // a canvas that is hidden has no size that could change
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { palette = readPalette(); later(); });
  columns();
  makeRoom();
  resize();
  whole();
  pane.addEventListener("reveal", () => { if (S.selected.txn !== undefined) reveal(S.selected.txn); });
}

/** Left, top, right, bottom. @typedef {[number, number, number, number]} Rectangle */

/** The point of some curves, one after the other, at t, from 0 to 1. @param {number[]} p @param {number} whole
 * @returns {[number, number]} */
function curveAt(p, whole) {
  const curves = (p.length - 2) / 6;
  const k = Math.min(curves - 1, Math.floor(whole * curves));
  const t = whole * curves - k;
  const u = 1 - t;
  const at = (/** @type {number} */ i) => u * u * u * p[i] + 3 * u * u * t * p[i + 2] + 3 * u * t * t * p[i + 4] + t * t * t * p[i + 6];
  return [at(6 * k), at(6 * k + 1)];
}

/** Whom a transaction read from, and who read from it: by key and value, where it is the only writer.
 * @param {number} txn @returns {[number, number, number][]} */
function neighboursOf(txn) {
  const index = neighbourIndex();
  /** @type {[number, number, number][]} */
  const out = [];
  for (let op = H.first[txn]; op < H.first[txn + 1] && out.length < 200; op++) {
    const value = H.value[op];
    if (value < 0) continue;
    if (M.isRead(op)) {
      const of = H.kind[op] === "l" ? lastOf(op) : value;
      for (const w of index.writers.get(`${H.key[op]}:${of}`) || []) if (w !== txn) out.push([w, txn, op]);
    } else for (const r of index.readers.get(`${H.key[op]}:${value}`) || []) if (r !== txn) out.push([txn, r, op]);
  }
  return out;
}

/** The last element of a read list. @param {number} op */
function lastOf(op) {
  const list = H.lists[H.value[op]];
  const items = typeof list === "number" ? H.longest[H.key[op]].slice(0, list) : list;
  return items.length ? items[items.length - 1] : -1;
}

/** @type {{writers: Map<string, number[]>, readers: Map<string, number[]>} | null} */
let neighbourTables = null;
/** Who wrote and who read each value of each key; made when it is first asked for. */
function neighbourIndex() {
  if (neighbourTables) return neighbourTables;
  neighbourTables = { writers: new Map(), readers: new Map() };
  for (let txn = 0; txn < M.n; txn++) {
    for (let op = H.first[txn]; op < H.first[txn + 1]; op++) {
      if (H.value[op] < 0) continue;
      const read = M.isRead(op);
      const name = `${H.key[op]}:${H.kind[op] === "l" ? lastOf(op) : H.value[op]}`;
      const into = read ? neighbourTables.readers : neighbourTables.writers;
      const list = into.get(name);
      if (list) list.push(txn);
      else into.set(name, [txn]);
    }
  }
  return neighbourTables;
}

/** What a search text means. @param {string} text @returns {(txn: number) => boolean} */
function matcher(text) {
  const pair = text.split("=").map((part) => part.trim());
  const keys = new Set();
  H.keys.forEach((/** @type {string} */ key, /** @type {number} */ i) => { if (key === pair[0] || key === `:${pair[0]}`) keys.add(i); });
  const values = new Set();
  const wanted = pair.length > 1 ? pair[1] : text;
  H.values.forEach((/** @type {string} */ value, /** @type {number} */ i) => { if (value === wanted) values.add(i); });
  return (txn) => {
    if (M.label(txn) === text) return true;
    for (let op = H.first[txn]; op < H.first[txn + 1]; op++) {
      const key = keys.has(H.key[op]);
      const value = H.kind[op] === "l" ? H.value[op] >= 0 && values.has(lastOf(op)) : values.has(H.value[op]);
      if (pair.length > 1 ? key && value : key || (value && !keys.size)) return true;
    }
    return false;
  };
}

/** What the lines and boxes mean; each relation has dashes of its own, each outcome a shape. */
function legend() {
  const box = el("div", { class: "legend", "aria-label": "Legend" });
  for (const [name, { colour, dash, long }] of Object.entries(RELATIONS)) {
    if (D.violation && !EDGES.some((e) => base(e.relation) === name)) continue;
    if (!D.violation && name !== "wr") continue;
    const line = svg("svg", { width: 34, height: 10, "aria-hidden": "true" }, svg("line", { x1: 0, y1: 5, x2: 34, y2: 5, class: colour, "stroke-dasharray": dash.join(" ") }));
    box.append(el("span", { class: name }, line, ` ${long}`));
  }
  for (const [letter, name] of Object.entries(STATUS)) {
    if (letter === "i" || !H.status.includes(letter)) continue;
    const parts = [svg("rect", { x: 1, y: 1, width: 18, height: 10, class: `status-${letter}`, "stroke-dasharray": letter === "m" ? "4 3" : "" })];
    if (letter === "a") parts.push(svg("line", { x1: 1, y1: 1, x2: 19, y2: 11, class: "status-a" }));
    box.append(el("span", {}, svg("svg", { width: 20, height: 12, "aria-hidden": "true" }, ...parts), ` ${name}`));
  }
  return box;
}

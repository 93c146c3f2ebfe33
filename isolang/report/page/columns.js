// The argument on a narrow screen: a column for each session, time downwards. Edges have numbers, which
// the list below explains, as no label would have room between the columns.
"use strict";

const NARROW = 600; // pixels of the window, below which there are columns
const LINE = 15; // of an operation
const BADGE = 9; // the radius of a number

/** @typedef {{left: number, top: number, width: number, height: number, column: number, lines: {op: number, text: string}[]}} Standing */

/** @param {Layout} L the scale of the argument alone @param {Edge[]} edges @param {number} width pixels that there are
 * @returns {{picture: any, list: any}} */
function columnsPicture(L, edges, width) {
  const txns = INVOLVED.filter((t) => L.row[t] >= 0);
  const count = L.rows.length;
  const gap = 26; // right of each column, for edges and their numbers
  const wide = Math.max(56, (width - 4) / count - gap);
  const left = (/** @type {number} */ column) => 4 + column * (wide + gap);
  const places = standing(L, txns, wide, left);
  const height = Math.max(...[...places.values()].map((p) => p.top + p.height)) + 24;
  const whole = 4 + count * (wide + gap);
  const picture = svg("svg", { viewBox: `0 0 ${whole} ${height}`, width: whole, height, class: "columns", role: "group", "aria-label": "The argument, a column for each session, time downwards" });
  for (const [column, name] of L.names.entries()) picture.append(wordsAt(left(column) + wide / 2, 14, clip(name, Math.floor(wide / 7)), "middle", "session"));
  const lines = svg("g");
  const badges = svg("g");
  picture.append(markers());
  for (const [txn, place] of places) picture.append(standingBox(txn, place));
  picture.append(lines, badges);
  /** @type {{x: number, y: number}[]} */
  const taken = [];
  const list = el("ol", { class: "edges" });
  edges.forEach((edge, i) => {
    const [a, b] = [places.get(M.place(edge.from)), places.get(M.place(edge.to))];
    const kind = base(edge.relation);
    if (a && b) {
      const points = way(a, b, edge, [...places.values()], gap, i);
      const d = path(points);
      const hit = { "data-edge": String(edge.id), onclick: () => S.select({ edge: edge.id }) };
      lines.append(svg("g", { class: `edge ${hue(kind)}`, ...hit }, svg("path", { d, class: "reach" }),
        svg("path", { d, class: "line", "stroke-dasharray": RELATIONS[kind].dash.join(" "), "marker-end": `url(#tip-${kind})` })));
      const { x, y } = free(points, taken, [...places.values()]);
      taken.push({ x, y });
      badges.append(svg("g", { class: `edge badge ${hue(kind)}`, ...hit }, svg("circle", { cx: x, cy: y, r: BADGE, class: "behind" }), wordsAt(x, y + 4, String(i + 1), "middle", "")));
    }
    list.append(el("li", {}, el("button", { class: "edge", "data-edge": String(edge.id), onclick: () => S.select({ edge: edge.id }) },
      el("span", { class: `arrow ${hue(kind)}` }, `${short(edge.source)} —${`${edge.relation} ${edge.key}`.trim()}→ ${short(edge.target)}`))));
  });
  return { picture, list };
}

/** Boxes as high as what they show, each below whatever ended before it began.
 * @param {Layout} L @param {number[]} txns @param {number} wide @param {(column: number) => number} left
 * @returns {Map<number, Standing>} */
function standing(L, txns, wide, left) {
  const lines = new Map(txns.map((t) => [t, shownOf(t)]));
  const high = (/** @type {number} */ t) => 24 + LINE * (lines.get(t) || []).length;
  const stops = [...new Set(txns.flatMap((t) => [L.begin[t], L.end[t]]))].sort((a, b) => a - b);
  const at = new Map([[stops[0], 26]]);
  for (let i = 1; i < stops.length; i++) {
    let y = (at.get(stops[i - 1]) ?? 0) + 22;
    for (const t of txns) if (L.end[t] === stops[i]) y = Math.max(y, (at.get(L.begin[t]) ?? 0) + high(t));
    at.set(stops[i], y);
  }
  return new Map(txns.map((t) => {
    const top = at.get(L.begin[t]) ?? 0;
    return [t, { left: left(L.row[t]), top, width: wide, height: (at.get(L.end[t]) ?? 0) - top, column: L.row[t], lines: lines.get(t) || [] }];
  }));
}

/** @param {number} txn @param {Standing} place */
function standingBox(txn, { left, top, width, height, lines }) {
  const status = H.status[txn];
  const group = svg("g", { class: `node status-${status}`, tabindex: "0", role: "button", "data-txn": String(txn), "aria-label": visible(describe({ txn })), onclick: () => S.select({ txn }), onkeydown: pressed(() => S.select({ txn })) },
    svg("rect", { x: left, y: top, width, height, rx: 3, "stroke-dasharray": status === "m" ? "4 3" : "" }),
    wordsAt(left + 6, top + 15, M.label(txn) + (status === "m" ? " ?" : status === "a" ? " ✗" : ""), "start", "name"));
  const most = Math.floor((width - 10) / 7);
  for (const [i, { text }] of lines.entries()) group.append(wordsAt(left + 6, top + 31 + i * LINE, clip(text, most), "start", "op"));
  return group;
}

/** Where an edge touches a box: at its operation, else at the begin or the end. @param {Standing} place
 * @param {number} txn @param {number} op @param {boolean} late */
function touches({ top, height, lines }, txn, op, late) {
  const line = op < 0 ? -1 : lines.findIndex((one) => one.op === H.first[txn] + op);
  if (line >= 0) return top + 27 + line * LINE;
  return late ? top + height - 6 : top + 8;
}

/** From the side of a box to that of another; past the columns between them where no box stands.
 * @param {Standing} a @param {Standing} b @param {Edge} edge @param {Standing[]} all @param {number} gap
 * @param {number} i */
function way(a, b, edge, all, gap, i) {
  const y1 = touches(a, M.place(edge.from), edge.joins[0], true);
  const y2 = touches(b, M.place(edge.to), edge.joins[1], RELATIONS[base(edge.relation)].late);
  const shift = ((i % 3) - 1) * 7; // edges in one gap do not lie on each other
  if (a.column === b.column) {
    const x = a.left + a.width + gap / 2 + shift;
    return [{ x: a.left + a.width, y: y1 }, { x, y: y1 }, { x, y: y2 }, { x: b.left + b.width, y: y2 }];
  }
  const right = b.column > a.column;
  const [from, to] = [{ x: right ? a.left + a.width : a.left, y: y1 }, { x: right ? b.left : b.left + b.width, y: y2 }];
  const first = right ? from.x + gap / 2 + shift : from.x - gap / 2 + shift;
  const between = all.filter((p) => (right ? p.column > a.column && p.column < b.column : p.column < a.column && p.column > b.column));
  if (!between.length && Math.abs(a.column - b.column) === 1) return [from, { x: first, y: y1 }, { x: first, y: y2 }, to];
  const last = right ? to.x - gap / 2 + shift : to.x + gap / 2 + shift;
  const clear = (/** @type {number} */ y) => between.every((p) => y < p.top - 6 || y > p.top + p.height + 6);
  let y = (y1 + y2) / 2;
  for (let far = 0; far < 4000 && !clear(y); far += 6) y = clear((y1 + y2) / 2 + far) ? (y1 + y2) / 2 + far : Math.max(22, (y1 + y2) / 2 - far);
  return [from, { x: first, y: y1 }, { x: first, y }, { x: last, y }, { x: last, y: y2 }, to];
}

/** A place of a line for its number, away from boxes and other numbers.
 * @param {{x: number, y: number}[]} points @param {{x: number, y: number}[]} taken @param {Standing[]} boxes */
function free(points, taken, boxes) {
  const spots = [];
  for (let t = 0.5, k = 0; k < 40; k++, t = 0.5 + (k % 2 ? -1 : 1) * Math.ceil(k / 2) / 41) spots.push(along(points, t));
  const far = Math.max(...boxes.map((p) => p.left + p.width));
  const ok = (/** @type {{x: number, y: number}} */ s) => taken.every((o) => Math.hypot(o.x - s.x, o.y - s.y) > 2 * BADGE + 2)
    && boxes.every((p) => s.x + BADGE < p.left || s.x - BADGE > p.left + p.width || s.y + BADGE < p.top || s.y - BADGE > p.top + p.height);
  for (const spot of spots) if (ok(spot)) return spot;
  // Beside the line, then further and further down.
  for (let down = 0; down < 4000; down += 6) {
    const spot = { x: Math.min(far + 16, Math.max(12, spots[0].x)), y: spots[0].y + down };
    if (ok(spot)) return spot;
  }
  return spots[0];
}

/** The point of a polyline at a share of its length. @param {{x: number, y: number}[]} points @param {number} t */
function along(points, t) {
  const pieces = points.slice(1).map((p, i) => Math.hypot(p.x - points[i].x, p.y - points[i].y));
  let rest = t * pieces.reduce((sum, one) => sum + one, 0);
  for (let i = 0; i < pieces.length; i++) {
    if (rest <= pieces[i] || i === pieces.length - 1) {
      const share = pieces[i] ? Math.min(1, rest / pieces[i]) : 0;
      return { x: points[i].x + share * (points[i + 1].x - points[i].x), y: points[i].y + share * (points[i + 1].y - points[i].y) };
    }
    rest -= pieces[i];
  }
  return points[0];
}

/** @param {number} x @param {number} y @param {string} text @param {string} anchor @param {string} name */
function wordsAt(x, y, text, anchor, name) {
  const made = svg("text", { x, y, "text-anchor": anchor, class: name });
  made.textContent = visible(text);
  return made;
}

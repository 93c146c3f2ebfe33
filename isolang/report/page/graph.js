// The graph: the transactions of the argument and its edges, in layers.
"use strict";

const SMALLEST = 0.96; // of the graph's own size: its letters have 11 pixels or more, and the pane scrolls
const LANE = 34; // between the rows of a long cycle and the edge that closes it

/** @param {HTMLElement} pane */
function graphPane(pane) {
  const choose = el("select", { "aria-label": "Which part of the argument", onchange: draw });
  const all = EDGES.length && CYCLES.length > 1;
  CYCLES.forEach((cycle, i) => {
    const last = i === CYCLES.length - 1;
    choose.append(el("option", { value: String(i), selected: last }, `${last ? "conclusion" : `cycle ${i + 1}`}: ${cycle.anomaly || "cycle"}`));
  });
  if (all) choose.append(el("option", { value: "all" }, "all edges of the argument"));
  const box = el("div", { class: "sheet" });
  const reason = el("p", { class: "detail", "aria-live": "polite" });
  pane.append(el("div", { class: "bar" }, el("h2", {}, "Graph"), CYCLES.length > 1 ? choose : null), box, reason);
  /** @type {any} */
  let picture = null;
  let shown = -2;

  function edges() {
    return choose.value === "all" ? unique(EDGES) : (CYCLES[Number(choose.value)] || { edges: [] }).edges;
  }

  function draw() {
    const list = edges();
    if (!list.length) {
      box.replaceChildren();
      return;
    }
    const grey = list.length <= 8 ? behind(list) : [];
    const room = box.getBoundingClientRect();
    const { nodes, lines, width, height } = isRing(list) && !grey.length ? cycleIn(room, list) : layersIn(room, list, grey);
    const larger = Math.max(SMALLEST, Math.min(1.4, room.width / width, room.height / height));
    picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, width: width * larger, height: height * larger, role: "group", "aria-label": "Graph of the argument" });
    // The panes are as high as this needs, and scroll together.
    pane.parentElement?.style.setProperty("--graph", `${Math.ceil(height * larger) + pane.clientHeight - box.clientHeight + 2}px`);
    picture.append(markers());
    for (const shape of lines) picture.append(edgeShape(shape));
    for (const [name, shape] of nodes) picture.append(nodeShape(name, shape));
    box.replaceChildren(picture);
    mark();
  }

  /** A cycle around an ellipse, or in rows if that has no room. @param {DOMRect} room @param {Edge[]} list */
  function cycleIn(room, list) {
    const round = ring(list, room);
    const fits = round.width * SMALLEST <= room.width && (list.length < 5 || round.height * SMALLEST <= room.height);
    return fits ? round : folded(list, room.width);
  }

  /** Layers from left to right, or downwards if that has no room. @param {DOMRect} room @param {Edge[]} list @param {Edge[]} grey */
  function layersIn(room, list, grey) {
    const across = layers(list, grey, false);
    if (innerWidth >= NARROW && across.width * SMALLEST <= room.width) return across;
    const down = layers(list, grey, true);
    return down.width < across.width ? down : across;
  }

  /** A long cycle in rows that go right and left in turn; the last edge goes up beside them.
   * @param {Edge[]} list @param {number} room pixels that there are */
  function folded(list, room) {
    const shapes = list.map((e) => ({ ...node(e.source, e.from), x: 0, y: 0 }));
    const wide = Math.max(...shapes.map((s) => s.width));
    const step = wide + Math.max(...list.map(labelWidth)) + 40;
    const lane = labelWidth(list[list.length - 1]) / 2 + 4;
    const left = lane + LANE;
    const fit = Math.max(1, Math.floor((room - left - wide - 8) / step) + 1);
    // An even number of rows ends on the left, below the first transaction.
    let rows = Math.ceil(list.length / fit);
    if (rows % 2 && fit > 1) rows += 1;
    const columns = Math.ceil(list.length / rows);
    let y = 12;
    for (let row = 0, at = 0; row < rows; row++) {
      const count = Math.floor(list.length / rows) + (row < list.length % rows ? 1 : 0);
      const some = shapes.slice(at, at + count);
      const high = Math.max(...some.map((s) => s.height));
      some.forEach((s, i) => {
        const place = count > 1 ? (i * (columns - 1)) / (count - 1) : 0;
        s.x = left + wide / 2 + (row % 2 ? columns - 1 - (count > 1 ? place : columns - 1) : place) * step;
        s.y = y + high / 2;
      });
      at += count;
      y += high + 58;
    }
    const lines = list.map((edge, i) => {
      const [a, b] = [shapes[i], shapes[(i + 1) % list.length]];
      if (i < list.length - 1 || (rows === 2 && columns > 1)) return { edge, points: [border(a, b), border(b, a)] };
      const points = [{ x: a.x - a.width / 2, y: a.y }, { x: lane, y: a.y }, { x: lane, y: b.y }, { x: b.x - b.width / 2, y: b.y }];
      return { edge, points, x: lane, y: (a.y + b.y) / 2, straight: true };
    });
    return {
      nodes: list.map((e, i) => /** @type {[string, any]} */ ([e.source, shapes[i]])), lines,
      width: left + (columns - 1) * step + wide + 10, height: y - 58 + 12,
    };
  }

  /** In layers, by dagre; what the cycle rests on is thin and grey.
   * @param {Edge[]} list @param {Edge[]} grey @param {boolean} down */
  function layers(list, grey, down) {
    const graph = new dagre.graphlib.Graph({ multigraph: true });
    graph.setGraph({ rankdir: down ? "TB" : "LR", nodesep: 46, ranksep: down ? 40 : 60, edgesep: 30, marginx: 10, marginy: 16 });
    graph.setDefaultEdgeLabel(() => ({}));
    const cycle = new Set(list.flatMap((edge) => [edge.source, edge.target]));
    for (const edge of [...list, ...grey]) {
      for (const [name, number] of /** @type {[string, number][]} */ ([[edge.source, edge.from], [edge.target, edge.to]])) {
        if (!graph.hasNode(name)) graph.setNode(name, { ...node(name, number), grey: !cycle.has(name) });
      }
      graph.setEdge(edge.source, edge.target, { edge, width: labelWidth(edge) + 8, height: 20, labelpos: "c" }, `${edge.id} ${edge.relation} ${edge.key}`);
    }
    dagre.layout(graph);
    const { width, height } = graph.graph();
    return {
      nodes: graph.nodes().map((/** @type {string} */ name) => /** @type {[string, any]} */ ([name, graph.node(name)])),
      lines: graph.edges().map((/** @type {any} */ e) => graph.edge(e)), width, height,
    };
  }

  /** A cycle, around an ellipse that is just large enough for the boxes and the labels.
   * @param {Edge[]} list @param {DOMRect} room */
  function ring(list, room) {
    const flat = list.length < 3 ? 0 : Math.min(0.9, Math.max(0.3, (room.height || 300) / (room.width || 900)));
    const start = -Math.PI / 2 - Math.PI / list.length;
    const shapes = list.map((e) => ({ ...node(e.source, e.from), x: 0, y: 0 }));
    const straight = () => list.map((edge, i) => {
      const [a, b] = [shapes[i], shapes[(i + 1) % list.length]];
      return { edge, a, b, points: [border(a, b), border(b, a)] };
    });
    for (let radius = 40; radius < 20000; radius *= 1.06) {
      shapes.forEach((s, i) => {
        const angle = start + (2 * Math.PI * i) / list.length;
        Object.assign(s, { x: radius * Math.cos(angle), y: radius * flat * Math.sin(angle) });
      });
      if (apart(shapes) && clear(straight()) && straight().every(({ edge, points: [p, q] }) => Math.abs(p.x - q.x) >= labelWidth(edge) + 46 || Math.abs(p.y - q.y) >= 72)) break;
    }
    const bend = list.length === 2 ? 56 : 0;
    const lines = straight().map(({ edge, a, b, points }) => {
      if (!bend) return { edge, points };
      const middle = { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 + (b.x > a.x ? -2 : 2) * bend / 2 };
      return { edge, points: [border(a, middle), middle, border(b, middle)] };
    });
    const left = Math.min(...shapes.map((s) => s.x - s.width / 2)) - 24;
    const top = Math.min(...shapes.map((s) => s.y - s.height / 2), -bend) - 16;
    const width = Math.max(...shapes.map((s) => s.x + s.width / 2)) + 24 - left;
    const height = Math.max(...shapes.map((s) => s.y + s.height / 2), bend) + 16 - top;
    for (const s of shapes) Object.assign(s, { x: s.x - left, y: s.y - top });
    const moved = lines.map(({ edge, points }) => ({ edge, points: points.map((q) => ({ x: q.x - left, y: q.y - top })) }));
    return { nodes: list.map((e, i) => /** @type {[string, any]} */ ([e.source, shapes[i]])), lines: moved, width, height };
  }

  /** @param {string} name @param {number} number */
  function node(name, number) {
    const shown = D.violation.transactions.find((/** @type {Shown} */ t) => t.number === number);
    const lines = shown ? shown.operations.map((/** @type {any} */ op) => clip(op.text, 26)) : [];
    if (shown?.omitted) lines.push(`+${shown.omitted} more`);
    const widest = Math.max(name.length + 2, ...lines.map((/** @type {string} */ l) => l.length));
    return { txn: M.place(number), lines, width: 18 + widest * 7, height: 24 + lines.length * 15 };
  }

  /** @param {any} shape */
  function edgeShape({ edge, points, x: labelX, y: labelY, straight }) {
    const name = edgeName(edge);
    const kind = base(edge.relation);
    const d = straight ? path(points) : smooth(points);
    const line = svg("path", { d, class: "line", "stroke-dasharray": RELATIONS[kind].dash.join(" "), "marker-end": `url(#tip-${edge.id === undefined ? "so" : kind})` });
    const middle = line.getPointAtLength(line.getTotalLength() / 2);
    const [x, y] = [labelX ?? middle.x, labelY ?? middle.y];
    const grey = edge.id === undefined;
    const text = svg("text", { x, y: y + 4, "text-anchor": "middle" });
    text.textContent = name;
    const half = labelWidth(edge) / 2;
    if (grey) {
      return svg("g", { class: "edge grey" }, line, svg("rect", { x: x - half, y: y - 9, width: 2 * half, height: 18, class: "behind" }), text);
    }
    return svg("g", {
      class: `edge ${hue(kind)}`, tabindex: "0", role: "button", "data-edge": String(edge.id),
      "aria-label": visible(`${short(edge.source)} ${name} ${short(edge.target)}: ${edge.text}`),
      onclick: () => S.select({ edge: edge.id }), onkeydown: pressed(() => S.select({ edge: edge.id })),
      onmouseenter: () => S.hover({ edge: edge.id }), onmouseleave: () => S.hover({}),
    }, svg("path", { d, class: "reach" }), line, svg("rect", { x: x - half, y: y - 9, width: 2 * half, height: 18, class: "behind" }), text);
  }

  /** @param {string} name @param {any} shape */
  function nodeShape(name, { txn, lines, x, y, width, height, grey }) {
    const title = svg("text", { x: x - width / 2 + 8, y: y - height / 2 + 16, class: "name" });
    title.textContent = visible(short(name)) + (txn >= 0 && H.status[txn] === "m" ? " ?" : "");
    const group = svg("g", {
      class: `node status-${txn < 0 ? "c" : H.status[txn]}${grey ? " grey" : ""}`, tabindex: txn < 0 ? "-1" : "0", role: "button", "data-txn": String(txn),
      "aria-label": visible(txn < 0 ? name : describe({ txn })),
      onclick: () => txn >= 0 && S.select({ txn }), onkeydown: pressed(() => txn >= 0 && S.select({ txn })),
      onmouseenter: () => S.hover({ txn }), onmouseleave: () => S.hover({}),
    }, svg("rect", { x: x - width / 2, y: y - height / 2, width, height, rx: 4, "stroke-dasharray": txn >= 0 && H.status[txn] === "m" ? "4 3" : "" }), title);
    lines.forEach((/** @type {string} */ line, /** @type {number} */ i) => {
      const text = svg("text", { x: x - width / 2 + 8, y: y - height / 2 + 32 + i * 15, class: "op" });
      text.textContent = visible(line);
      group.append(text);
    });
    return group;
  }

  function mark() {
    if (!picture) return;
    const id = S.selected.edge;
    if (id !== undefined && id !== shown && !edges().some((e) => e.id === id)) {
      shown = id;
      const at = CYCLES.findIndex((cycle) => cycle.edges.some((e) => e.id === id));
      if (at >= 0) {
        choose.value = String(at);
        draw();
        return;
      }
    }
    for (const one of picture.querySelectorAll("[data-edge]")) one.classList.toggle("on", S.hasEdge(Number(one.dataset.edge)));
    for (const one of picture.querySelectorAll("[data-txn]")) one.classList.toggle("on", S.hasTxn(Number(one.dataset.txn)));
    const edge = id === undefined ? null : EDGES[id];
    reason.textContent = edge ? visible(`${short(edge.source)} —${edge.relation} ${edge.key}→ ${short(edge.target)}: ${edge.text}${because(edge.because)}. ${edge.where.map(place).join(", ")}`) : "";
  }

  draw();
  let wide = box.clientWidth;
  new ResizeObserver(() => {
    if (Math.abs(wide - box.clientWidth) > 20) draw(); // less is a scroll bar
    wide = box.clientWidth;
  }).observe(box);
  S.listeners.push(mark);
}

/** @param {Edge} edge */
function edgeName(edge) {
  return visible(clip(`${edge.relation} ${edge.key}`.trim(), 22));
}

/** @param {Edge} edge */
function labelWidth(edge) {
  return 8 + 7.2 * edgeName(edge).length;
}

/** Whether no boxes are near each other. @param {any[]} shapes */
function apart(shapes) {
  return shapes.every((a, i) => shapes.slice(i + 1).every((b) =>
    Math.abs(a.x - b.x) - (a.width + b.width) / 2 >= 24 || Math.abs(a.y - b.y) - (a.height + b.height) / 2 >= 28));
}

/** Whether the labels of straight edges, in their middles, are apart. @param {any[]} lines */
function clear(lines) {
  const at = lines.map(({ edge, points: [p, q] }) => ({ x: (p.x + q.x) / 2, y: (p.y + q.y) / 2, width: labelWidth(edge), height: 18 }));
  return at.length < 3 || apart(at.map((one) => ({ ...one, width: one.width - 20, height: one.height - 24 })));
}

/** Whether edges are one cycle that comes to no transaction twice. @param {Edge[]} edges */
function isRing(edges) {
  return new Set(edges.map((e) => e.source)).size === edges.length
    && edges.every((e, i) => e.target === edges[(i + 1) % edges.length].source);
}

/** Where the line between the middles of two boxes leaves the first. @param {any} a @param {any} b */
function border(a, b) {
  const [dx, dy] = [b.x - a.x, b.y - a.y];
  const scale = Math.min(a.width / 2 / Math.max(1e-9, Math.abs(dx)), a.height / 2 / Math.max(1e-9, Math.abs(dy)));
  return { x: a.x + dx * scale, y: a.y + dy * scale };
}

/** @param {string} text @param {number} most */
function clip(text, most) {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

/** Each edge once, though several cycles may have it. @param {Edge[]} edges */
function unique(edges) {
  const seen = new Set();
  return edges.filter((e) => {
    const name = `${e.source} ${e.relation} ${e.key} ${e.target}`;
    return !seen.has(name) && seen.add(name);
  });
}

/** @param {() => void} act @returns {(e: KeyboardEvent) => void} */
function pressed(act) {
  return (e) => {
    if (e.key === "Enter" || e.key === " ") {
      e.preventDefault();
      act();
    }
  };
}

function markers() {
  const defs = svg("defs");
  for (const name of Object.keys(RELATIONS)) {
    defs.append(svg("marker", { id: `tip-${name}`, viewBox: "0 0 10 10", refX: 9, refY: 5, markerWidth: 9, markerHeight: 9, markerUnits: "userSpaceOnUse", orient: "auto" },
      svg("path", { d: "M0,0L10,5L0,10z", class: `tip ${hue(name)}` })));
  }
  return defs;
}

/** A curve through the middles of a polyline. @param {{x: number, y: number}[]} p */
function smooth(p) {
  if (p.length < 3) return path(p);
  let d = `M${p[0].x},${p[0].y}`;
  for (let i = 1; i < p.length - 1; i++) {
    const end = i === p.length - 2 ? p[i + 1] : { x: (p[i].x + p[i + 1].x) / 2, y: (p[i].y + p[i + 1].y) / 2 };
    d += `Q${p[i].x},${p[i].y} ${end.x},${end.y}`;
  }
  return d;
}

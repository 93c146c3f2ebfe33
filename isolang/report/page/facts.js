// The other views: the input, the library's levels, statistics; and what can be saved.
"use strict";

/** @param {[string, string][]} rows */
function table(rows) {
  const body = el("tbody");
  for (const [name, value] of rows) body.append(el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, value)));
  return el("table", {}, body);
}

function inputView() {
  return el("div", {}, el("h2", {}, "The input, and how it was read"), table(D.facts));
}

function statisticsView() {
  return el("div", {}, el("h2", {}, "What deciding took"), table(D.statistics));
}

/** The levels of the library, the strongest on top, coloured and marked by where the history stands. */
function levelsView() {
  const box = el("div", {}, el("h2", {}, "Where this history stands"));
  const graph = new dagre.graphlib.Graph().setGraph({ rankdir: "TB", nodesep: 14, ranksep: 26 }).setDefaultEdgeLabel(() => ({}));
  for (const level of D.levels) graph.setNode(level.name, { width: 20 + level.name.length * 7.2, height: 26, level });
  for (const level of D.levels) for (const weaker of level.implies) graph.setEdge(level.name, weaker);
  dagre.layout(graph);
  const { width, height } = graph.graph();
  const picture = svg("svg", { viewBox: `-8 -8 ${width + 16} ${height + 16}`, class: "lattice", role: "img", "aria-label": "The library's levels; the table has the same" });
  for (const e of graph.edges()) picture.append(svg("path", { d: path(graph.edge(e).points), class: "implies" }));
  const mark = /** @type {Record<string, string>} */ ({ satisfied: "✓ ", violated: "✗ ", unknown: "? ", "no times": "– " });
  for (const name of graph.nodes()) {
    const { x, y, width: w, height: h, level } = graph.node(name);
    const text = svg("text", { x, y: y + 4, "text-anchor": "middle" });
    text.textContent = (mark[level.standing] || "") + name;
    picture.append(svg("g", { class: `level ${level.standing.replace(" ", "-")}` }, svg("rect", { x: x - w / 2, y: y - h / 2, width: w, height: h, rx: 6 }), text));
  }
  box.append(picture, table(D.levels.map((/** @type {any} */ l) => [l.name, `${l.standing}${l.anomaly ? `: ${l.anomaly}` : ""}`])));
  return box;
}

/** @param {{x: number, y: number}[]} points */
function path(points) {
  return points.map((p, i) => `${i ? "L" : "M"}${p.x.toFixed(1)},${p.y.toFixed(1)}`).join("");
}

function downloads() {
  const stem = (D.history.split("/").pop() || "history").replace(/[^\w.-]/g, "_");
  return el("p", { class: "downloads" }, "Save: ",
    D.part ? saver("smallest part (EDN)", `${stem}.part.edn`, "text/plain", () => D.part) : null, " ",
    saver("graph (DOT)", `${stem}.dot`, "text/vnd.graphviz", dot), " ",
    saver("all of it (JSON)", `${stem}.json`, "application/json", () => JSON.stringify(D)));
}

/** @param {string} text @param {string} name @param {string} type @param {() => string} make */
function saver(text, name, type, make) {
  return el("button", {
    onclick() {
      const url = URL.createObjectURL(new Blob([make()], { type }));
      el("a", { href: url, download: name }).click();
      setTimeout(() => URL.revokeObjectURL(url), 1000);
    },
  }, text);
}

function dot() {
  const quote = (/** @type {string} */ text) => JSON.stringify(visible(text));
  const lines = ["digraph violation {", "  node [shape=box];"];
  for (const txn of INVOLVED) lines.push(`  ${quote(M.label(txn))} [label=${quote(`${M.label(txn)}\n${operations(txn)}`)}];`);
  const drawn = new Set();
  for (const e of EDGES) {
    const line = `  ${quote(short(e.source))} -> ${quote(short(e.target))} [label=${quote(`${e.relation} ${e.key}`.trim())}];`;
    if (!drawn.has(line)) lines.push(line);
    drawn.add(line);
  }
  return `${lines.join("\n")}\n}\n`;
}

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
  const { width, height, levels, lines } = D.levels;
  const picture = svg("svg", { viewBox: `-8 -8 ${width + 16} ${height + 16}`, class: "lattice", role: "img", "aria-label": "The library's levels; the table has the same" });
  for (const points of lines) picture.append(svg("path", { d: `M${points[0]}C${points.slice(1).join(" ")}`, class: "implies" }));
  const mark = /** @type {Record<string, string>} */ ({ satisfied: "✓", violated: "✗", unknown: "?", "no times": "–" });
  for (const { name, standing, anomaly, x, y, width: w } of levels) {
    const text = svg("text", { x, y: y + 4, "text-anchor": "middle" });
    text.textContent = `${mark[standing]} ${name}`;
    const title = svg("title");
    title.textContent = visible(`${standing}${anomaly ? `: ${anomaly}` : ""}`);
    picture.append(svg("g", { class: `level ${standing.replace(" ", "-")}` }, title, svg("rect", { x: x - w / 2, y: y - 12, width: w, height: 24, rx: 6 }), text));
  }
  const body = el("tbody");
  for (const standing of ["satisfied", "violated", "unknown", "no times"]) {
    for (const one of levels.filter((/** @type {any} */ l) => l.standing === standing)) {
      const said = `${standing === "no times" ? "needs real time, which the history has not" : standing}${one.anomaly ? `: ${one.anomaly}` : ""}`;
      body.append(el("tr", {}, el("th", { scope: "row" }, `${mark[standing]} ${one.name}`), el("td", {}, one.title), el("td", {}, said)));
    }
  }
  const note = D.levels.folded ? el("p", { class: "note" }, "Sessions make no difference here: without their order (NAME-nosession) each level stands as with it.") : null;
  return el("div", {}, el("h2", {}, "Where this history stands"), note, el("div", { class: "beside" }, picture, el("table", {}, body)));
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

// The argument: what the text report says, each step a line, each edge a button.
"use strict";

const LINES = 24; // of the smallest part are shown at once

/** @param {HTMLElement} pane */
function argumentPane(pane) {
  if (D.harm) pane.append(el("h2", {}, "Harm"), el("p", {}, el("b", {}, D.harm.headline)), table(D.harm.details));
  if (D.groups.length) pane.append(el("h2", {}, "Kinds of violations, the worst first"), el("ol", { class: "groups" }, ...D.groups.map(groupItem)));
  if (D.violation) pane.append(el("h2", {}, "What it means"), el("p", {}, D.meaning));
  pane.append(el("h2", {}, D.violation ? "Why" : D.outcome === "valid" ? "Why it holds" : "What is known"));
  if (!D.violation) {
    pane.append(el("p", {}, D.outcome === "valid" ? orderSentence() : D.reason));
    if (D.order) pane.append(orderList());
    if (D.outcome === "valid") pane.append(proofBox());
    else pane.append(...adviceBox(), el("details", { open: true }, el("summary", {}, "What was tried"), table([["level", `${D.spec.name} (${D.spec.title})`], ...D.statistics])));
    return;
  }
  const v = D.violation;
  const list = el("ul", { class: "txns", "aria-label": "Transactions of the argument" });
  for (const txn of v.transactions) list.append(transactionItem(txn));
  const alone = v.queries.length > 0 && v.argument.conclusion.kind === "sentence";
  pane.append(list, ...v.queries.map(queryBox));
  if (!alone) pane.append(argumentNode(v.argument)); // that a query is wrong by itself stands there
  for (const [how, outcome] of Object.entries(v.relaxed)) pane.append(el("p", { class: "note" }, relaxed(how, outcome)));
  pane.append(...adviceBox(), partBox(), axiomBox(), proofBox(), downloads());
  S.listeners.push(() => markArgument(pane));
}

/** @param {{headline: string, harm: string, programs: string[], statements: string[]}} group */
function groupItem(group) {
  const item = el("li", {}, group.headline);
  if (group.harm) item.append(el("div", {}, group.harm));
  if (group.programs.length) item.append(el("div", {}, `by ${group.programs.join(", ")}`));
  for (const statement of group.statements) item.append(el("div", { class: "note" }, statement));
  return item;
}

/** @param {string} how @param {any} outcome */
function relaxed(how, outcome) {
  const name = D.spec.name;
  const start = how[0].toUpperCase() + how.slice(1);
  if (outcome === "valid") return `${start}, the history satisfies ${name}.`;
  if (outcome === "invalid") return `${start}, the history violates ${name} all the same.`;
  return `Whether it satisfies ${name} ${how} was not checked: for a large history that takes as long ` +
    "as this verdict; isocheck levels decides it.";
}

function orderSentence() {
  if (!D.order) return "The witness gives each read a source and each key an order of its versions.";
  const { kind, sessions, txns } = D.order;
  const keeping = sessions ? ", keeping the order of each session" : "";
  return kind === "serial"
    ? `Run one after the other in this order${keeping}, the ${txns.length.toLocaleString("en")} transactions give every read the value it returned.`
    : `In this order of commits${keeping}, every read returned a version that was there, and every version follows the one before it. (Snapshots need not be the latest.)`;
}

function orderList() {
  const shown = D.order.txns.slice(0, 200);
  const list = el("ol", { class: "order" });
  for (const number of shown) {
    const txn = M.place(number);
    if (txn >= 0) list.append(el("li", {}, txnButton(txn, M.label(txn)), ` ${operations(txn)}`));
  }
  const more = D.order.txns.length - shown.length;
  return more > 0 ? el("div", {}, list, el("p", { class: "note" }, `and ${more.toLocaleString("en")} more`)) : list;
}

/** @param {number} txn */
function operations(txn) {
  const from = H.first[txn];
  const to = H.first[txn + 1];
  const some = [];
  for (let op = from; op < Math.min(to, from + 8); op++) some.push(M.text(op));
  return some.join("  ") + (to - from > 8 ? `  (+${to - from - 8} more)` : "");
}

/** @param {number} txn @param {string} text */
function txnButton(txn, text) {
  return el("button", {
    class: "txn", "data-txn": String(txn), onclick: () => S.select({ txn }),
    onmouseenter: () => S.hover({ txn }), onmouseleave: () => S.hover({}),
  }, text);
}

/** @param {Shown} shown */
function transactionItem(shown) {
  const txn = M.place(shown.number);
  const name = txn < 0 ? el("b", {}, shown.name) : txnButton(txn, shown.name);
  const status = shown.status === "committed" ? "" : ` ${shown.status === "maybe" ? "indeterminate: its client was interrupted or got no answer" : shown.status}`;
  const where = [shown.session ? `session ${shown.session}` : "", place(shown.where)].filter(Boolean).join(", ");
  const ops = el("div", { class: "ops" });
  for (const op of shown.operations) {
    ops.append(el("code", { title: visible(op.where) }, op.text), " ");
    if (op.caller) ops.append(el("span", { class: "note" }, op.caller), " ");
  }
  if (shown.omitted) ops.append(el("span", { class: "note" }, `+${shown.omitted} more`));
  const age = shown.age ? el("div", { class: "note" }, `${shown.name} was ${shown.age}.`) : null;
  const sent = shown.sent && shown.sent.length ? el("details", {}, el("summary", { class: "note" }, "what was sent"), el("pre", {}, shown.sent.join("\n"))) : null;
  return el("li", {}, name, status ? el("b", {}, status) : null, el("span", { class: "note" }, ` ${where}`), ops, age, sent);
}

/** A predicate read: what it asked, what it answered, and what is said of its rows. @param {Query} query */
function queryBox(query) {
  const rows = [];
  if (query.sent) rows.push(el("dt", {}, "sent"), el("dd", {}, el("code", {}, query.sent)));
  const answer = query.answer.length || query.omitted
    ? `${query.answer.length + query.omitted} row${query.answer.length + query.omitted === 1 ? "" : "s"}: ${[...query.answer, ...(query.omitted ? [`and ${query.omitted} more`] : [])].join(", ")}`
    : "no row";
  rows.push(el("dt", {}, "answer"), el("dd", {}, answer));
  for (const one of query.remarks) {
    const wrong = one.kind !== "in it" && one.kind !== "not in it";
    rows.push(el("dt", { class: wrong ? "wrong" : "" }, one.kind), el("dd", {}, el("b", {}, one.row), `: ${one.text}`));
  }
  const txn = M.place(query.transaction);
  const name = txn < 0 ? el("b", {}, query.name) : txnButton(txn, query.name);
  const what = ` asked for ${query.selected}`;
  return el("section", { class: "query", "aria-label": `A query of ${query.name}` },
    el("p", {}, name, what, el("span", { class: "note" }, ` ${place(query.where)}`)), el("dl", {}, ...rows));
}

/** A place without the name of the only file. @param {string} where */
function place(where) {
  const file = H.files[0] || D.history;
  if (H.files.length > 1 || !where.startsWith(file)) return where;
  const rest = where.slice(file.length);
  return rest.startsWith(":") ? `line ${rest.slice(1)}` : rest.trim();
}

/** @param {number[]} lemmas */
function because(lemmas) {
  return lemmas.length ? ` (by ${lemmas.map((n) => `(${n})`).join(", ")})` : "";
}

/** @param {any} node @returns {HTMLElement} */
function argumentNode(node) {
  switch (node.kind) {
    case "argument": {
      const box = el("div", { class: "argument" });
      for (const lemma of node.lemmas) box.append(lemmaNode(lemma));
      box.append(argumentNode(node.conclusion));
      return box;
    }
    case "cycle":
      return cycleNode(node);
    case "split": {
      // What is said of a single case is no assumption.
      if (node.cases.length === 1) return el("div", {}, el("p", {}, `${node.cases[0].assumption}:`), argumentNode(node.cases[0].argument));
      const box = el("div", { class: "split" }, el("p", {}, `${node.text}:`));
      node.cases.forEach((/** @type {any} */ one, /** @type {number} */ i) => {
        box.append(el("details", { open: true, class: "case" },
          el("summary", {}, `Case ${i + 1}: `, el("s", { title: "refuted" }, one.assumption)), argumentNode(one.argument)));
      });
      return box;
    }
    default:
      return el("p", {}, node.text + because(node.because));
  }
}

/** @param {Lemma} lemma */
function lemmaNode(lemma) {
  const head = el("span", { class: "lemma", id: `lemma-${lemma.number}` }, `(${lemma.number}) `);
  if (lemma.reason.kind === "sentence") {
    return el("p", { class: "step" }, head, `${lemma.text}: ${lemma.reason.text}${because(lemma.reason.because)}.`);
  }
  return el("details", { class: "step" },
    el("summary", {}, head, lemma.text, el("span", { class: "note" }, "; otherwise there would be this")), argumentNode(lemma.reason));
}

/** @param {Cycle} cycle */
function cycleNode(cycle) {
  const list = el("ol", { class: "cycle", "aria-label": `Cycle: ${cycle.anomaly}` });
  for (const edge of cycle.edges) list.append(el("li", {}, edgeButton(edge)));
  const name = cycle.anomaly ? el("p", { class: "note" }, `A cycle${cycle.check ? ` that ${cycle.check} forbids` : ""}: ${cycle.anomaly}.`) : null;
  return el("div", {}, name, list);
}

/** @param {Edge} edge */
function edgeButton(edge) {
  const reason = edge.text + (edge.assumed ? " (assumed)" : because(edge.because));
  return el("button", {
    class: "edge", "data-edge": String(edge.id), onclick: () => S.select({ edge: edge.id }),
    onmouseenter: () => S.hover({ edge: edge.id }), onmouseleave: () => S.hover({}),
  },
  el("span", { class: `arrow ${hue(edge.relation)}` }, `${short(edge.source)} `, el("b", {}, `—${`${edge.relation} ${edge.key}`.trim()}→`), ` ${short(edge.target)}`),
  el("span", { class: "reason" }, reason),
  el("span", { class: "note" }, edge.where.map(place).join(", ")));
}

/** @param {string} name */
function short(name) {
  return name === "the initial state" ? "T0" : name;
}

/** The failing check, underlined, in the text of its file; what that says of itself unfolds. */
function axiomBox() {
  const { spec } = D;
  const [file, text] = spec.texts.find((/** @type {[string, string]} */ [name]) => name === spec.file) || spec.texts[0] || ["", ""];
  const lines = /** @type {string[]} */ (text.trimEnd().split("\n"));
  const start = Math.max(0, lines.findIndex((line) => line.trim() && !line.startsWith("//")));
  const about = lines.slice(0, start).map((line) => line.replace(/^\/\/ ?/, "")).join("\n").trim();
  const code = el("pre", { tabindex: "0", "aria-label": "The level" });
  lines.slice(start).forEach((line, i) => {
    const failing = start + i + 1 === spec.line;
    code.append(failing ? el("mark", {}, line) : visible(line), "\n");
  });
  return el("details", { open: true },
    el("summary", {}, `The level ${spec.name}`, el("span", { class: "note" }, ` ${file}${spec.check ? `, failing check: ${spec.check}` : ""}`)),
    code, about ? el("details", {}, el("summary", { class: "note" }, "what it forbids, and where it is from"), el("pre", {}, about)) : null);
}

function adviceBox() {
  if (!D.advice.length) return [];
  return [el("details", { open: true }, el("summary", {}, "What to do"), ...D.advice.map((/** @type {string} */ one) => el("p", {}, one)))];
}

function partBox() {
  const lines = D.part.trimEnd().split("\n");
  const box = el("details", { open: lines.length <= LINES }, el("summary", {}, "The smallest part"));
  if (D.part) box.append(el("p", { class: "note" }, `These events violate ${D.spec.name} by themselves; isocheck reads them, and a bug report needs no more.`), el("pre", { tabindex: "0", "aria-label": "The smallest part" }, D.part.trimEnd()));
  else box.append(el("p", {}, `${D.violation.transactions.map((/** @type {Shown} */ t) => t.name).join(", ")} and what they read from: EDN cannot express this part as a history of its own.`));
  return box;
}

function proofBox() {
  const who = D.certified ? `Certified: ${D.certified_reason}.` : `Not certified: ${D.certified_reason || "nobody was asked"}.`;
  return el("details", { open: true }, el("summary", {}, D.certified ? "Certified" : "Not certified"),
    el("p", {}, who), D.certificate ? el("p", { class: "note" }, `certificate sha256 ${D.certificate}`) : null,
    el("p", { class: "note" }, `level sha256 ${D.spec.sha256}`));
}

/** The edge that the pane was last opened at. @type {number | undefined} */
let shownEdge;

/** @param {HTMLElement} pane */
function markArgument(pane) {
  for (const one of pane.querySelectorAll("[data-edge]")) {
    one.classList.toggle("on", S.hasEdge(Number(one.getAttribute("data-edge"))));
    one.setAttribute("aria-pressed", String(S.selected.edge === Number(one.getAttribute("data-edge"))));
  }
  const chosen = pane.querySelector(`[data-edge="${S.selected.edge}"]`);
  if (chosen && shownEdge !== S.selected.edge) {
    for (let up = chosen.parentElement; up && up !== pane; up = up.parentElement) if (up instanceof HTMLDetailsElement) up.open = true;
    chosen.scrollIntoView({ block: "nearest" });
  }
  shownEdge = S.selected.edge;
  for (const one of pane.querySelectorAll("[data-txn]")) {
    one.classList.toggle("on", S.hasTxn(Number(one.getAttribute("data-txn"))));
  }
}

// The contents of the page, the history's columns, and what is selected.
"use strict";

/**
 * @typedef {{relation: string, source: string, target: string, key: string, text: string,
 *   where: string[], because: number[], assumed: boolean, from: number, to: number,
 *   joins: [number, number], id: number, behind?: Edge}} Edge
 * @typedef {{kind: "cycle", check: string, anomaly: string, edges: Edge[]}} Cycle
 * @typedef {{kind: "sentence", text: string, because: number[]}} Sentence
 * @typedef {{kind: "split", text: string, cases: {assumption: string, argument: Argument}[]}} Split
 * @typedef {{number: number, text: string, reason: Cycle | Argument | Sentence}} Lemma
 * @typedef {{kind: "argument", lemmas: Lemma[], conclusion: Cycle | Split | Sentence}} Argument
 * @typedef {{number: number, name: string, status: string, session: string, where: string,
 *   operations: {index: number, text: string, where: string, caller: string}[], omitted: number, age: string, sent: string[]}} Shown
 * @typedef {{transaction: number, name: string, where: string, selected: string, sent: string, answer: string[],
 *   omitted: number, remarks: {kind: string, row: string, text: string, operation: number}[]}} Query
 * @typedef {{txn?: number, edge?: number}} Chosen
 */

const D = JSON.parse(/** @type {string} */ (byId("contents").textContent));
const H = D.columns;

/**
 * How relations are drawn: the colour, and the dashes, which tell them apart without it.
 * @type {Record<string, {colour: string, dash: number[], long: string, late: boolean}>}
 */
const RELATIONS = D.relations;

/** The relation that another one is a part of: rt, of rt[W,R]. @param {string} relation */
function base(relation) {
  const name = relation.split("[")[0];
  return name in RELATIONS ? name : "so";
}

/** The name of the colour of a relation, or of a part of one. @param {string} relation */
function hue(relation) {
  return RELATIONS[base(relation)].colour;
}

const STATUS = { c: "committed", a: "aborted", m: "indeterminate (no answer)", i: "initial" };
const KIND = { r: "r", w: "w", a: "append", l: "r", s: "r", d: "delete" };
const FAILED = new Set(H.failed);
/** The predicate of a read of rows, by its first operation. @type {Map<number, string>} */
const PREDICATES = new Map(H.statements.map((/** @type {[number, number, string]} */ [first, , said]) => [first, said]));

/** @param {string} id @returns {HTMLElement} */
function byId(id) {
  return /** @type {HTMLElement} */ (document.getElementById(id));
}

/**
 * Make an element; text becomes text, never markup.
 * @param {string} tag @param {Record<string, any>} [attributes] @param {...(Node | string | null)} inner
 * @returns {any}
 */
function el(tag, attributes, ...inner) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null) made.setAttribute(name, value);
  }
  for (const one of inner) {
    if (one !== null) made.append(typeof one === "string" ? visible(one) : one);
  }
  return made;
}

/** @param {string} tag @param {Record<string, any>} [attributes] @param {...Node} inner @returns {any} */
function svg(tag, attributes, ...inner) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value);
  }
  made.append(...inner);
  return made;
}

/**
 * Show control characters, and those that turn the direction of text, as escapes.
 * @param {string} text
 */
function visible(text) {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** The history: transactions by their place here; `number` is that in the whole history. */
const M = {
  n: H.session.length,
  /** @type {Map<number, number>} */
  byNumber: new Map(H.numbers.map((/** @type {number} */ number, /** @type {number} */ i) => [number, i])),
  /** @param {number} number the place of a transaction here; -1 if it is not in the page */
  place(number) {
    if (!H.numbers.length) return number < M.n ? number : -1;
    return M.byNumber.get(number) ?? -1;
  },
  /** @param {number} txn */
  number(txn) {
    return H.numbers.length ? H.numbers[txn] : txn;
  },
  /** @param {number} txn */
  label(txn) {
    return txn < 0 ? "T0" : H.labels.length ? H.labels[txn] : `T${txn + 1}`;
  },
  /** @param {number} txn */
  session(txn) {
    return H.session[txn] < 0 ? "" : H.sessions[H.session[txn]];
  },
  /** @param {number} txn */
  where(txn) {
    return M.at(H.place[txn], txn);
  },
  /** @param {number} place @param {number} txn */
  at(place, txn) {
    const file = H.files[H.file.length ? H.file[txn] : 0] || D.history;
    if (H.unit === "line") return `${file}:${place}`;
    return `${file} ${H.unit === "byte" ? "byte" : "transaction"} ${place}`;
  },
  /** @param {number} op */
  value(op) {
    const value = H.value[op];
    if (value < 0) return "?";
    if (H.kind[op] !== "l") return H.values[value];
    const list = H.lists[value];
    const items = typeof list === "number" ? H.longest[H.key[op]].slice(0, list) : list;
    if (items.length <= 12) return `[${items.map((/** @type {number} */ v) => H.values[v]).join(" ")}]`;
    const few = (/** @type {number[]} */ part) => part.map((v) => H.values[v]).join(" ");
    return `[${few(items.slice(0, 3))} … ${few(items.slice(-6))}] (${items.length})`;
  },
  /** @param {number} op */
  text(op) {
    const key = H.keys[H.key[op]];
    if (H.kind[op] === "s" && M.value(op) === "not found") return `${/^[-\d]/.test(key) ? "key " : ""}${key} not found`;
    const value = H.rows[op] ? ` ${H.rows[op]}` : H.kind[op] === "d" ? "" : `, ${M.value(op)}`;
    return `${KIND[/** @type {"r"} */ (H.kind[op])]}(${key}${value})${FAILED.has(op) ? " failed" : ""}`;
  },
  /** @param {number} op */
  isRead(op) {
    return "rls".includes(H.kind[op]);
  },
};

/** All edges of the argument, numbered in the order in which it has them. @type {Edge[]} */
const EDGES = [];
/** The cycles of the argument, in the same order. @type {Cycle[]} */
const CYCLES = [];

/** @param {any} node */
function number(node) {
  if (node.kind === "argument") {
    for (const lemma of node.lemmas) number(lemma.reason);
    number(node.conclusion);
  } else if (node.kind === "split") {
    for (const one of node.cases) number(one.argument);
  } else if (node.kind === "cycle") {
    CYCLES.push(node);
    for (const edge of node.edges) {
      edge.id = EDGES.length;
      EDGES.push(edge);
    }
  }
}
if (D.violation) number(D.violation.argument);

/** Whom the transactions of edges read what others then overwrote from: as edges of their own, each once,
 * where the edges do not have them. @param {Edge[]} edges @returns {Edge[]} */
function behind(edges) {
  const there = new Set(edges.map((e) => `${e.relation} ${e.source} ${e.target} ${e.key}`));
  /** @type {Edge[]} */
  const found = [];
  for (const { behind: one } of edges) {
    const name = one ? `wr ${one.source} ${one.target} ${one.key}` : "";
    if (!one || there.has(name)) continue;
    there.add(name);
    found.push(one);
  }
  return found;
}

/** The transactions of the argument, by their place here. @type {number[]} */
const INVOLVED = D.violation
  ? D.violation.transactions.map((/** @type {Shown} */ t) => M.place(t.number)).filter((/** @type {number} */ t) => t >= 0)
  : [];

/** The place of each transaction in the order that explains a valid history. @type {Map<number, number>} */
const RANK = new Map();
for (const txn of D.order ? D.order.txns : []) RANK.set(M.place(txn), RANK.size + 1);

/** What is selected; panes listen, and the address of the page follows. */
const S = {
  /** @type {Chosen} */
  selected: {},
  /** @type {Chosen} */
  hovered: {},
  /** The view that is open; empty for the verdict. */
  view: "",
  /** @type {(() => void)[]} */
  listeners: [],
  /** @param {Chosen} what */
  select(what) {
    S.selected = what;
    const parts = [];
    if (what.txn !== undefined) parts.push(`t=${M.number(what.txn)}`);
    if (what.edge !== undefined) parts.push(`e=${what.edge}`);
    if (S.view) parts.push(`v=${S.view}`);
    const fragment = parts.length ? `#${parts.join("&")}` : " ";
    if (location.hash !== fragment.trim()) history.replaceState(null, "", fragment.trim() || "#");
    S.changed();
    say(describe(what));
  },
  /** @param {Chosen} what */
  hover(what) {
    if (what.txn === S.hovered.txn && what.edge === S.hovered.edge) return;
    S.hovered = what;
    S.changed();
  },
  changed() {
    for (const listener of S.listeners) listener();
  },
  /** @param {number} id */
  hasEdge(id) {
    return S.selected.edge === id || S.hovered.edge === id;
  },
  /** @param {number} txn */
  hasTxn(txn) {
    if (S.selected.txn === txn || S.hovered.txn === txn) return true;
    for (const id of [S.selected.edge, S.hovered.edge]) {
      const edge = id === undefined ? undefined : EDGES[id];
      if (edge && (M.place(edge.from) === txn || M.place(edge.to) === txn) && txn >= 0) return true;
    }
    return false;
  },
  fromAddress() {
    /** @type {Chosen} */
    const what = {};
    S.view = "";
    for (const part of location.hash.slice(1).split("&")) {
      const [name, value] = part.split("=");
      const n = Number(value);
      if (name === "v") S.view = value || "";
      if (!/^\d+$/.test(value || "")) continue;
      if (name === "t" && M.place(n) >= 0) what.txn = M.place(n);
      if (name === "e" && n < EDGES.length) what.edge = n;
    }
    S.selected = what;
    S.changed();
  },
};

/** @param {Chosen} what */
function describe(what) {
  if (what.edge !== undefined) {
    const edge = EDGES[what.edge];
    return `${edge.source} ${edge.relation} ${edge.key} ${edge.target}: ${edge.text}`;
  }
  if (what.txn === undefined) return "";
  const status = STATUS[/** @type {"c"} */ (H.status[what.txn])];
  return `${M.label(what.txn)}, ${status}, session ${M.session(what.txn)}, ${H.first[what.txn + 1] - H.first[what.txn]} operations`;
}

/** Tell those who cannot see it. @param {string} text */
function say(text) {
  byId("said").textContent = visible(text);
}

/** @param {string} name a custom property of the style @returns {string} */
function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

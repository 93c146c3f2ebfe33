// The course of a run: how many transactions ended in each stretch of time and how, how long they took, and faults.
"use strict";

const CHART = { height: 190, left: 56, right: 12, top: 14, bottom: 26 };

/** As wide as the screen, so that its words are as large as all others. */
function chartWidth() {
  return Math.max(280, Math.min(900, innerWidth - 70));
}

function courseView() {
  const c = D.course;
  const rate = (/** @type {number[]} */ counts) => counts.map((n) => n / c.stretch);
  const about = c.about.length ? table(c.about.filter((/** @type {[string, string]} */ [name]) => name)) : null;
  const box = el("div", {}, el("h2", {}, "The run"), about, el("h2", {}, "Its course"),
    el("p", { class: "note" }, `${c.seconds} s, in stretches of ${c.stretch.toFixed(2)} s${c.faults.length ? "; dashed lines are faults" : ""}`),
    chart("transactions per second", [["committed", rate(c.committed)], ["aborted", rate(c.aborted)], ["unknown", rate(c.maybe)]]),
    chart("milliseconds from begin to commit", [["median", c.median], ["95 of 100", c.slow]], true));
  const total = (/** @type {number[]} */ counts) => counts.reduce((a, b) => a + b, 0).toLocaleString("en");
  box.append(table([["committed", total(c.committed)], ["aborted", total(c.aborted)], ["of unknown outcome", total(c.maybe)],
    .../** @type {[string, string][]} */ (c.faults.map((/** @type {any} */ f) => [`fault at ${f.at.toFixed(2)} s`, f.name]))]));
  return box;
}

/**
 * Curves over the run, each with its own dashes besides its colour.
 * @param {string} title @param {[string, (number | null)[]][]} curves @param {boolean} [powers] of ten, not equal steps
 */
function chart(title, curves, powers = false) {
  const { height, left, right, top, bottom } = CHART;
  const width = chartWidth();
  const shown = curves.filter(([, values], i) => !i || values.some((v) => v));
  const most = Math.max(1e-9, ...shown.flatMap(([, values]) => values.map((v) => v ?? 0)));
  const least = powers ? Math.min(most, ...shown.flatMap(([, values]) => values.map((v) => v || most))) : 0;
  const x = (/** @type {number} */ seconds) => left + (seconds / D.course.seconds) * (width - left - right);
  const lines = powers ? powersOver(least, most) : stepsOver(most);
  const scale = (/** @type {number} */ value) => (powers ? Math.log10(Math.max(value, lines[0])) : value);
  const [low, high] = [scale(lines[0]), scale(lines[lines.length - 1])];
  const y = (/** @type {number} */ value) => height - bottom - ((scale(value) - low) / (high - low)) * (height - top - bottom);
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img", "aria-label": `${title}: ${shown.map(([name]) => name).join(", ")}` });
  for (const v of lines) {
    picture.append(svg("path", { d: `M${left},${y(v)}H${width - right}`, class: "grid" }), words(left - 6, y(v) + 4, v.toLocaleString("en", { maximumSignificantDigits: 3 }), "end"));
  }
  const tick = nice(D.course.seconds / Math.max(2, Math.floor((width - left - right) / 90)));
  for (let s = 0; s <= D.course.seconds; s += tick) picture.append(words(Math.min(x(s), width - 20), height - 8, `${Number(s.toPrecision(6))} s`, "middle"));
  let free = 0; // from here on a fault's name has room; the table has all of them
  for (const fault of D.course.faults) {
    const at = x(fault.at) + 3;
    picture.append(svg("path", { d: `M${x(fault.at)},${top}V${height - bottom}`, class: "fault" }));
    const end = at + 6.5 * fault.name.length;
    if (at < free || end > width) continue;
    picture.append(words(at, top + 10, fault.name, "start"));
    free = end + 6;
  }
  shown.forEach(([, values], i) => {
    let line = "";
    values.forEach((v, k) => {
      if (v !== null) line += `${line && values[k - 1] !== null ? "L" : "M"}${x(Math.min((k + 0.5) * D.course.stretch, D.course.seconds)).toFixed(1)},${y(v).toFixed(1)}`;
    });
    picture.append(svg("path", { d: line, class: `curve curve-${i}` }));
  });
  const legend = el("div", { class: "legend" }, el("strong", {}, title));
  shown.forEach(([name], i) => {
    legend.append(el("span", {}, svg("svg", { width: 30, height: 10 }, svg("path", { d: "M0,5H28", class: `curve curve-${i}` })), ` ${name}`));
  });
  return el("figure", {}, legend, picture);
}

/** @param {number} most */
function stepsOver(most) {
  const step = nice(most / 4);
  return Array.from({ length: Math.ceil(most / step) + 1 }, (_, i) => i * step);
}

/** @param {number} least @param {number} most */
function powersOver(least, most) {
  const first = Math.floor(Math.log10(least));
  const last = Math.max(first + 1, Math.ceil(Math.log10(most)));
  return Array.from({ length: last - first + 1 }, (_, i) => 10 ** (first + i));
}

/** The next of 1, 2, 5, 10, 20 … @param {number} value */
function nice(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= value) ?? 10 * power;
}

/** @param {number} x @param {number} y @param {string} text @param {string} anchor */
function words(x, y, text, anchor) {
  const made = svg("text", { x, y, "text-anchor": anchor });
  made.textContent = visible(text);
  return made;
}

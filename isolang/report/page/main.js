// The page: its head, its views, and what holds for all of them.
"use strict";

(() => {
  const words = /** @type {Record<string, string>} */ ({ valid: "✓ valid", invalid: "✗ invalid", unknown: "? unknown" });
  document.title = visible(`${D.outcome}: ${D.history} (${D.spec.name})`);
  byId("outcome").textContent = words[D.outcome] + (D.harm ? `, ${D.harm.word}` : "");
  byId("outcome").classList.add(D.outcome);
  byId("title").textContent = visible(D.violation ? `${D.violation.anomaly}: ${D.violation.meaning}` : D.outcome === "valid" ? `satisfies ${D.spec.name}` : D.reason);
  byId("subtitle").textContent = visible(`${D.database ? `${D.database} · ` : ""}${D.history} · ${D.spec.name}${D.spec.title ? ` (${D.spec.title})` : ""}`);
  byId("proof").textContent = visible(`${D.certified ? "✓ certified" : "not certified"} · ${D.tool}`);
  byId("proof").title = visible(D.certified_reason);

  argumentPane(byId("argument"));
  timelinePane(byId("timeline"));
  if (EDGES.length) graphPane(byId("graph"));
  else byId("graph").hidden = true;

  /** @type {[string, string, (() => HTMLElement) | null][]} */
  const views = [["verdict", "Verdict", null], ["input", "Input", inputView], ["statistics", "Statistics", statisticsView]];
  if (D.levels) views.splice(2, 0, ["levels", "Levels", levelsView]);
  if (D.course) views.splice(1, 0, ["run", "Run", courseView]);
  const tabs = byId("tabs");
  for (const [id, name, make] of views) {
    tabs.append(el("button", { id: `tab-${id}`, "aria-pressed": String(!make), onclick: () => { S.view = make ? id : ""; S.select(S.selected); } }, name));
  }
  // Whoever asked for the levels sees them first.
  if (D.levels && !location.hash) history.replaceState(null, "", "#v=levels");
  let shown = "";

  S.listeners.push(() => {
    const [id, , make] = views.find(([name]) => name === S.view) || views[0];
    if (id === shown) return;
    shown = id;
    for (const tab of tabs.children) tab.setAttribute("aria-pressed", String(tab.id === `tab-${id}`));
    byId("panes").hidden = !!make;
    byId("more").hidden = !make;
    byId("more").replaceChildren(...(make ? [make()] : []));
  });

  addEventListener("hashchange", () => S.fromAddress());
  S.fromAddress();
  byId("timeline").dispatchEvent(new Event("reveal"));
  requestAnimationFrame(() => performance.mark("drawn"));
})();

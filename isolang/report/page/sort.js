// Tables that are sorted by the column whose head is chosen; once more: the other way round.
"use strict";

for (const table of document.querySelectorAll("table.sorted")) {
  const heads = [...table.querySelectorAll("th")];
  heads.forEach((head, column) => {
    head.querySelector("button")?.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const one of heads) one.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const body = /** @type {HTMLTableSectionElement} */ (table.querySelector("tbody"));
      const rows = [...body.rows].map((row) => ({ row, cell: row.cells[column].textContent || "" }));
      // What is missing comes last, whichever way.
      rows.sort((a, b) => Number(!a.cell) - Number(!b.cell) || (down ? -1 : 1) * compared(a.cell, b.cell));
      body.append(...rows.map(({ row }) => row));
    });
  });
}

/** Numbers by size, all else as text. @param {string} a @param {string} b */
function compared(a, b) {
  const [x, y] = [a, b].map((text) => Number(text.replaceAll(",", "")));
  return Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b, "en", { numeric: true }) : x - y;
}

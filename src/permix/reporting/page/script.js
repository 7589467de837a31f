"use strict";
// Adds sorting and search; the page says the same without it.
for (const table of document.querySelectorAll("table[data-sortable]")) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  const value = (row, at) => {
    const text = row.cells[at].textContent.trim();
    const number = parseFloat(text.replace(/^[<>]/, "").replace(/,/g, ""));
    return Number.isNaN(number) || at === 0 ? text : number;
  };
  heads.forEach((head, at) => {
    const button = document.createElement("button");
    button.type = "button";
    while (head.firstChild) button.append(head.firstChild);
    if (!button.textContent.trim()) return;
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const compare = (a, b) => {
        const x = value(a, at), y = value(b, at);
        if (typeof x === "number" && typeof y === "number") return x - y;
        return String(x).localeCompare(String(y));
      };
      const rows = [...body.rows].sort(compare);
      if (down) rows.reverse();
      body.append(...rows);
    });
  });
  if (body.rows.length > 12) {
    const line = document.createElement("p");
    line.className = "search";
    const label = document.createElement("label");
    label.textContent = "Search this table: ";
    const input = document.createElement("input");
    input.type = "search";
    label.append(input);
    line.append(label);
    table.parentElement.before(line);
    input.addEventListener("input", () => {
      const wanted = input.value.toLowerCase();
      for (const row of body.rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
    });
  }
}

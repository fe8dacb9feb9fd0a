"use strict";
(() => {
  const form = document.getElementById("filter");
  if (!form) return;
  const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
  const tables = [...document.querySelectorAll("table")].map(prepare);

  function prepare(table) {
    const heads = [...table.tHead.rows[0].cells];
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row) => ({
      row,
      text: row.textContent.toLowerCase().replace(/\s+/g, " "),
      policies: (row.dataset.policies || "").split(" "),
      effects: (row.dataset.effects || "").split(" "),
    }));
    const made = { table, heads, body, rows, apart: "apart" in table.dataset, select: null, turn: null };
    heads.forEach((head, index) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      button.addEventListener("click", () => sort(made, index));
      head.replaceChildren(button);
    });
    if (!made.apart) {
      table.before(order(made));
      const none = body.insertRow();
      none.className = "none-shown";
      none.hidden = true;
      none.setAttribute("role", "row");
      const cell = none.insertCell();
      cell.colSpan = heads.length;
      cell.setAttribute("role", "cell");
      cell.textContent = "Nothing here fits the filter.";
      made.none = none;
    }
    return made;
  }

  /* Where a table is drawn as cards its heads are not seen: the same order, by a list. */
  function order(made) {
    const box = document.createElement("div");
    const label = document.createElement("label");
    made.select = document.createElement("select");
    made.turn = document.createElement("button");
    box.className = "order";
    made.select.id = `order-${made.table.closest("section").id}`;
    label.htmlFor = made.select.id;
    label.textContent = "Sort by";
    made.select.add(new Option("as it came", ""));
    made.heads.forEach((head, index) => made.select.add(new Option(head.textContent, String(index))));
    made.select.addEventListener("change", () => made.select.value && sort(made, Number(made.select.value), true));
    made.turn.type = "button";
    made.turn.textContent = "Reverse";
    made.turn.addEventListener("click", () => made.select.value && sort(made, Number(made.select.value)));
    box.append(label, made.select, made.turn);
    return box;
  }

  function sort(made, index, afresh = false) {
    const head = made.heads[index];
    const was = afresh ? null : head.getAttribute("aria-sort");
    const now = was ? (was === "ascending" ? "descending" : "ascending") : head.dataset.first;
    made.heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", now);
    const numbers = head.dataset.kind === "number" || head.dataset.kind === "rank";
    const value = ({ row }) => {
      const cell = row.cells[index];
      const text = "value" in cell.dataset ? cell.dataset.value : cell.textContent.trim();
      return numbers ? Number(text) : text;
    };
    const keyed = made.rows.map((entry) => [value(entry), entry]);
    const sign = now === "ascending" ? 1 : -1;
    keyed.sort(([a], [b]) => sign * (numbers ? a - b : collator.compare(a, b)));
    made.rows = keyed.map(([, entry]) => entry);
    made.body.append(...made.rows.map(({ row }) => row));
    if (made.select) made.select.value = String(index);
  }

  const words = document.getElementById("words");
  const policy = document.getElementById("policy");
  const effect = document.getElementById("effect");
  const shown = document.getElementById("shown");

  function filter() {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (entry) => wanted.every((word) => entry.text.includes(word))
      && (!policy.value || entry.policies.includes(policy.value))
      && (!effect.value || entry.effects.includes(effect.value) || entry.effects[0] === "");
    const filtered = wanted.length || policy.value || effect.value;
    const own = tables.filter((made) => !made.apart && !made.table.dataset.follows);
    const counts = own.map((made) => show(made, fits));
    /* A policy is shown when any of its writers is. */
    for (const made of tables.filter((one) => one.table.dataset.follows)) {
      const leader = tables.find((one) => one.table.closest("section").id === made.table.dataset.follows);
      const left = new Set(leader.rows.filter(({ row }) => !row.hidden).flatMap(({ policies }) => policies));
      show(made, (entry) => !filtered || fits(entry) || left.has(entry.policies[0]));
    }
    const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
    shown.textContent = filtered ? `${sum(counts)} of ${sum(own.map((made) => made.rows.length))} rows` : "";
  }

  function show(made, fits) {
    let count = 0;
    for (const entry of made.rows) {
      entry.row.hidden = !fits(entry);
      count += !entry.row.hidden;
    }
    made.none.hidden = count > 0;
    return count;
  }

  let waiting = 0;
  words.addEventListener("input", () => {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(filter);
  });
  policy.addEventListener("change", filter);
  effect.addEventListener("change", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => requestAnimationFrame(filter));
  window.addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((one) => { one.open = true; }));
  form.hidden = false;
  filter();
})();

// Makes the plain forms smooth. Everything works without it, but for hovering, sorting and searching.

import "./chart.js";

const number = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });

// Uploads: drop a file, watch it travel.
for (const form of document.querySelectorAll("form[data-progress]")) {
  const drop = form.querySelector(".drop");
  const input = form.querySelector("input[type=file]");
  for (const kind of ["dragover", "dragleave", "drop"]) {
    drop.addEventListener(kind, (event) => {
      event.preventDefault();
      drop.classList.toggle("over", kind === "dragover");
      if (kind === "drop" && event.dataTransfer.files.length) input.files = event.dataTransfer.files;
    });
  }
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send(form);
  });
}

function send(form) {
  const request = new XMLHttpRequest();
  const bar = working(form, "Uploading…");
  request.upload.addEventListener("progress", (event) => {
    if (!event.lengthComputable) return;
    bar.progress.value = (100 * event.loaded) / event.total;
    bar.text.textContent = `${Math.round(bar.progress.value)} % of ${size(event.total)}`;
  });
  request.upload.addEventListener("load", () => {
    bar.progress.removeAttribute("value");
    bar.text.textContent = "Reading the file…";
  });
  request.addEventListener("load", () => {
    if (request.status < 400) location.assign(request.responseURL);
    else fail(request, bar, form);
  });
  request.addEventListener("error", () => fail(request, bar, form));
  request.open("POST", form.action);
  request.setRequestHeader("Accept", "text/html");
  request.send(new FormData(form));
}

function fail(request, bar, form) {
  const page = new DOMParser().parseFromString(request.responseText || "", "text/html");
  const found = page.querySelector(".alert");
  const alert = document.createElement("div");
  alert.className = "alert";
  alert.setAttribute("role", "alert");
  const text = document.createElement("p");
  text.textContent = found ? found.textContent.trim() : "The upload did not arrive: it may be too large, or the connection was lost.";
  alert.append(text);
  form.parentNode.querySelectorAll(".alert").forEach((old) => old.remove());
  form.before(alert);
  bar.box.hidden = true;
  form.querySelectorAll("button").forEach((button) => (button.disabled = false));
}

function working(form, said) {
  const box = form.querySelector(".progress");
  const bar = { box, progress: box.querySelector("progress"), text: box.querySelector("span") };
  bar.progress.removeAttribute("value");
  bar.text.textContent = said;
  box.hidden = false;
  form.querySelectorAll("button").forEach((button) => (button.disabled = true));
  return bar;
}

function size(bytes) {
  return bytes < 1e6 ? `${Math.max(1, Math.round(bytes / 1e3))} kB` : `${number.format(bytes / 1e6)} MB`;
}

for (const form of document.querySelectorAll("form[data-working]")) {
  form.addEventListener("submit", () => setTimeout(() => working(form, form.dataset.working)));
  addEventListener("pageshow", () => {
    form.querySelector(".progress").hidden = true;
    form.querySelectorAll("button").forEach((button) => (button.disabled = false));
  });
}

// Columns: under each choice what that column holds.
for (const block of document.querySelectorAll("script#about")) {
  const about = JSON.parse(block.textContent);
  for (const line of document.querySelectorAll("[data-holds]")) {
    const select = document.getElementById(line.dataset.holds);
    select.addEventListener("change", () => {
      line.textContent = about[select.value] || "";
      const asked = document.getElementById("pos_label");
      if (select.id === "label" && asked) asked.hidden = asked.dataset.of !== select.value;
    });
  }
}

// Previews: chosen columns stay in sight while the others scroll.
for (const table of document.querySelectorAll("table.pinned")) {
  const pinned = [...table.tHead.rows[0].cells].filter((cell) => cell.classList.contains("pin"));
  if (pinned.reduce((sum, cell) => sum + cell.offsetWidth, 0) > table.parentElement.clientWidth / 2) continue;
  let left = 0;
  pinned.forEach((head, column) => {
    for (const row of table.rows) Object.assign(row.cells[column].style, { position: "sticky", left: `${left}px` });
    left += head.offsetWidth;
  });
}

// The promise in words: numbers typed once are repeated, and typing one chooses its sentence.
for (const form of document.querySelectorAll("form.promise")) {
  form.addEventListener("input", (event) => {
    for (const mirror of form.querySelectorAll(`[data-from="${event.target.name}"]`)) {
      mirror.textContent = event.target.value || "…";
    }
    const radio = event.target.type === "number" && event.target.closest(".choice")?.querySelector("input[type=radio]");
    const shared = event.target.dataset.mirror && form.querySelector(`input[type=radio]:checked`)?.closest(".choice")?.querySelector(`[data-from="${event.target.name}"]`);
    if (radio && !shared) radio.checked = true;
  });
}

// Tables: sort by a heading, search in all cells.
for (const table of document.querySelectorAll("table[data-sortable]")) {
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    if ("fixed" in head.dataset) return;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => sort(table, head, column));
  });
}

function sort(table, head, column) {
  const up = head.getAttribute("aria-sort") !== "ascending";
  for (const each of table.tHead.rows[0].cells) each.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", up ? "ascending" : "descending");
  const value = (row) => row.cells[column].textContent;
  const order = (a, b) => {
    const [x, y] = [Number(value(a)), Number(value(b))];
    const both = !Number.isNaN(x) && !Number.isNaN(y);
    return (both ? x - y : value(a).localeCompare(value(b))) * (up ? 1 : -1);
  };
  table.tBodies[0].append(...[...table.tBodies[0].rows].sort(order));
}

for (const field of document.querySelectorAll("input[data-search]")) {
  field.parentElement.hidden = false;
  const rows = document.getElementById(field.dataset.search).tBodies[0].rows;
  field.addEventListener("keydown", (event) => event.key === "Enter" && event.preventDefault());
  field.addEventListener("input", () => {
    const wanted = field.value.toLowerCase();
    for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
  });
}

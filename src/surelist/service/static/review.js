// Reviewing by keys, without reloading the page. Every key presses a button or follows a link that is there anyway.

const main = document.querySelector("main");
let line = Promise.resolve(); // one thing after the other, however fast someone types

function show(page, address) {
  main.replaceChildren(...page.querySelector("main").childNodes);
  document.title = page.title;
  history.replaceState(null, "", address);
  ready();
}

async function load(address, options) {
  const answer = await fetch(address, { headers: { Accept: "text/html" }, ...options });
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (answer.ok && page.querySelector(".work")) show(page, answer.url);
  else if (answer.ok) location.assign(answer.url); // logged out, or somewhere else
  else complain(page.querySelector(".alert")?.textContent.trim() ?? "That was not saved.");
}

function complain(text) {
  main.querySelectorAll(":scope > .alert").forEach((old) => old.remove());
  const alert = document.createElement("div");
  alert.className = "alert";
  alert.setAttribute("role", "alert");
  alert.append(Object.assign(document.createElement("p"), { textContent: text }));
  main.querySelector(".said").before(alert);
}

function next(step) {
  line = line.then(step).catch(() => complain("The connection was lost: the last step was not saved. Try again."));
}

function follow(link) {
  return load(link.href);
}

function press(form, button) {
  const body = new URLSearchParams(new FormData(form));
  if (button?.name) body.set(button.name, button.value);
  return load(form.action, { method: "POST", body });
}

main.addEventListener("click", (event) => {
  const link = event.target.closest(".work a[href]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  next(() => follow(link));
});

main.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "post" || form.enctype === "multipart/form-data") return;
  event.preventDefault();
  next(() => press(form, event.submitter));
});

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || !document.getElementById("keys")?.checked) return;
  if (event.target.closest("input:not([type=checkbox]), select, textarea")) return;
  next(() => {
    const target = main.querySelector(`[data-key="${CSS.escape(event.key.toLowerCase())}"]`);
    if (!target) return undefined;
    return target.form ? press(target.form, target) : follow(target);
  });
});

function ready() {
  const keys = main.querySelector(".keys"); // none where the reviews are finished
  if (keys) {
    const box = keys.querySelector("#keys");
    keys.hidden = false;
    box.checked = localStorage.getItem("surelist keys") !== "off";
    box.addEventListener("change", () => localStorage.setItem("surelist keys", box.checked ? "on" : "off"));
  }
  main.querySelector(".lines [aria-current]")?.scrollIntoView({ block: "nearest" });
}

ready();

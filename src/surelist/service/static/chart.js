// Charts: read them at the pointer, by keyboard and by touch; a slider beside a chart moves a mark on it.
// Without script the picture stands as it is, with its numbers in a table beside it.

const number = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

function readable(chart) {
  const lines = [...chart.querySelectorAll("path[data-points]")]
    .map((path) => ({ ...path.dataset, points: JSON.parse(path.dataset.points) }))
    .filter((line) => line.points.length);
  if (!lines.length) return null;
  const [first] = lines;
  const hover = chart.querySelector(".hover");
  const [guide, dot] = [hover.querySelector("line"), hover.querySelector("circle")];
  const box = chart.viewBox.baseVal;

  const reading = document.createElement("p");
  reading.className = "reading";
  const slider = document.createElement("input");
  Object.assign(slider, { type: "range", min: 0, max: first.points.length - 1, step: 1, value: 0, className: "read" });
  slider.setAttribute("aria-label", `Read the chart: ${first.x.toLowerCase()}`);
  chart.after(slider, reading);

  const at = (line, x) => line.points.findLast((point) => point[0] <= x + 0.5);
  // how many of one list: counts as they are, in a sentence
  const list = chart.closest("[data-counts]");
  const counts = list && JSON.parse(list.dataset.counts).map((row) => row.map((each) => each.toLocaleString("en")));
  const told = (x, point) => {
    const known = point || at(first, x) || first.points[0];
    if (counts) {
      const [size, least, most] = counts[first.points.indexOf(known)];
      return `In the first ${size} of this list at least ${least} and at most ${most} are qualified.`;
    }
    const rest = lines.map((line) => [line, at(line, known[0])]);
    const values =
      lines.length === 1
        ? `${first.y}: ${number.format(known[3])}`
        : rest.map(([line, point]) => `${line.name}: ${point ? number.format(point[3]) : 0}`).join(" · ");
    return `${first.x}: ${number.format(known[2])} · ${values}`;
  };
  const show = (point) => {
    const place = { x1: point[0], x2: point[0], y1: box.y + 16, y2: chart.querySelector(".axis").y1.baseVal.value };
    for (const [name, value] of Object.entries(place)) guide.setAttribute(name, value);
    dot.setAttribute("cx", point[0]);
    dot.setAttribute("cy", point[1]);
    hover.setAttribute("visibility", "visible");
    slider.value = first.points.indexOf(point);
    reading.textContent = told(point[0], point);
    slider.setAttribute("aria-valuetext", reading.textContent);
  };
  const rest = () => {
    hover.setAttribute("visibility", "hidden");
    reading.textContent = "";
  };
  slider.addEventListener("input", () => show(first.points[Number(slider.value)]));
  slider.addEventListener("focus", () => show(first.points[Number(slider.value)]));
  if (counts) slider.value = list.dataset.at;
  if (counts) reading.textContent = told(0, first.points[Number(list.dataset.at)]);
  const chosen = chart.querySelector(".mark[data-at]");
  if (chosen) slider.value = Math.max(0, first.points.findLastIndex((point) => point[0] <= Number(chosen.dataset.at) + 0.5));
  if (chosen) {
    const { x, y } = chosen.dataset;
    reading.textContent = `Marked: about ${x} candidates on the shortlist · ${first.y}: ${y}`;
  }
  slider.setAttribute("aria-valuetext", told(first.points[Number(slider.value)][0]));
  chart.addEventListener("pointermove", (event) => {
    const size = chart.getBoundingClientRect();
    const point = at(first, ((event.clientX - size.left) / size.width) * box.width);
    if (point) show(point);
  });
  return { points: first.points, show, rest };
}

const charts = [...document.querySelectorAll("svg.chart")].map(readable);

// Exploring: the slider and the number say the same, how long the list would be, and where that is on the chart.
for (const form of document.querySelectorAll("form[data-explore]")) {
  const [slider, typed] = [form.querySelector("[type=range]"), form.querySelector("[name=k]")];
  const chart = charts.find(Boolean);
  const tell = (from, to) => {
    to.value = from.value;
    const found = chart.points.find((point) => point[3] >= Number(from.value));
    if (found) chart.show(found);
    else chart.rest();
    form.querySelector(".found").textContent = found
      ? `At least ${number.format(Number(from.value))} qualified: a list of about ${number.format(found[2])}.`
      : "These rows do not carry that.";
  };
  slider.addEventListener("input", () => tell(slider, typed));
  typed.addEventListener("input", () => tell(typed, slider));
  tell(slider, typed);
}

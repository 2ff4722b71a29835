// Line charts of the last minutes.

import {el, svg} from "./dom.js";
import * as format from "./format.js";

const WIDTH = 480, HEIGHT = 130, LEFT = 4, TOP = 8, BOTTOM = 4;

// 1, 2 or 5 times a power of ten that is not below the value.
export function ceiling(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= value);
}

// The path of a series: a gap where a value is null.
export function path(values, most) {
  const x = (i) => LEFT + (WIDTH - 2 * LEFT) * (values.length > 1 ? i / (values.length - 1) : 1);
  const y = (v) => HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * v / most;
  let text = "", pen = false;
  values.forEach((v, i) => {
    if (!Number.isFinite(v)) {
      pen = false;
      return;
    }
    const point = `${x(i).toFixed(1)} ${y(v).toFixed(1)}`;
    const alone = !pen && !Number.isFinite(values[i + 1]);
    text += alone ? `M${point}h.1` : `${pen ? "L" : "M"}${point}`;
    pen = true;
  });
  return text;
}

const known = (values) => values.filter(Number.isFinite);
const last = (values) => values.findLast(Number.isFinite);
const greatest = (values) => Math.max(...known(values), 0);

function words(lines, show) {
  return lines.map(({name, values}) => known(values).length === 0 ? `${name}: not known`
    : `${name}: ${show(last(values))} now, at most ${show(greatest(values))}`).join("; ");
}

function legend(lines, show) {
  return el("ul", {class: "legend"}, lines.map(({name, values}, i) => el("li", {},
    svg("svg", {viewBox: "0 0 16 6", "aria-hidden": "true", class: `line${i}`}, svg("path", {d: "M0 3h16"})),
    `${name} `, el("strong", {}, known(values).length > 0 ? show(last(values)) : "–"))));
}

const opened = new Set();  // titles whose values are shown: a chart is drawn anew every few seconds

function table(title, lines, times, show) {
  const rows = times.map((at, i) => [at, ...lines.map((l) => l.values[i])]).reverse().slice(0, 60);
  const toggle = (event) => event.target.open ? opened.add(title) : opened.delete(title);
  const head = el("tr", {}, el("th", {scope: "col", class: "left"}, "Until"),
    lines.map((l) => el("th", {scope: "col", class: "right"}, l.name)));
  const body = rows.map(([at, ...values]) => el("tr", {}, el("td", {}, format.time(at)),
    values.map((v) => el("td", {class: "right"}, Number.isFinite(v) ? show(v) : "–"))));
  return el("details", {open: opened.has(title), on: {toggle}},
    el("summary", {"data-key": `values ${title}`, "aria-label": `Values of ${title}`}, "Values"),
    el("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": `${title}: values`},
      el("table", {}, el("thead", {}, head), el("tbody", {}, body))));
}

// lines: [{name, values}], oldest first, null where unknown; times: the end of each; show(value).
export function chart(title, lines, times, show) {
  const most = ceiling(Math.max(...lines.map((l) => greatest(l.values))));
  return el("section", {class: "chart"}, el("h3", {}, title),
    svg("svg", {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${title}: ${words(lines, show)}`,
      preserveAspectRatio: "none"},
    [0, 0.5, 1].map((part) => svg("path", {class: "grid",
      d: `M0 ${(TOP + (HEIGHT - TOP - BOTTOM) * part).toFixed(1)}H${WIDTH}`})),
    lines.map((l, i) => svg("path", {class: `line line${i}`, d: path(l.values, most)}))),
    el("p", {class: "scale"}, `0 to ${show(most)}`), legend(lines, show), table(title, lines, times, show));
}

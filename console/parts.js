// Pieces that several pages have.

import {el, svg} from "./dom.js";
import * as format from "./format.js";

// A state is a word and a shape, never a colour alone.
const SHAPES = {
  good: () => svg("circle", {cx: 6, cy: 6, r: 4.5}),
  warn: () => svg("path", {d: "M6 1 11.5 11H.5z"}),
  bad: () => svg("path", {d: "M3.5 1h5L11 3.5v5L8.5 11h-5L1 8.5v-5z"}),
  busy: () => svg("path", {d: "M2 1.5 10.5 6 2 10.5z"}),
  idle: () => svg("rect", {x: 2, y: 5, width: 8, height: 2.4, rx: 1.2}),
};

export function badge(kind, text) {
  return el("span", {class: `badge ${kind}`},
    svg("svg", {viewBox: "0 0 12 12", "aria-hidden": "true"}, SHAPES[kind]()), text);
}

const HEALTH = {green: ["good", "Healthy"], yellow: ["warn", "Needs attention"],
  red: ["bad", "Not healthy"]};
export function healthBadge(colour) {
  const [kind, text] = HEALTH[colour] ?? ["idle", "Unknown"];
  return badge(kind, text);
}

// Of one reason of the health.
export function reasonBadge(colour) {
  return colour === "red" ? badge("bad", "critical") : badge("warn", "warning");
}

const NODE = {active: "good", maintenance: "warn", decommissioning: "warn", unreachable: "bad"};
export function nodeBadge(node) {
  if (node.late) return badge("warn", "late");
  return badge(NODE[node.state] ?? "warn", node.state ?? "unknown");
}

const PROTECTION = {protected: ["good", "protected"], one_copy: ["idle", "one copy"],
  degraded: ["warn", "degraded"], unavailable: ["bad", "unavailable"]};
export function protectionBadge(word, quiet = false) {
  const [kind, text] = PROTECTION[word] ?? ["idle", word ?? "unknown"];
  return badge(quiet ? "idle" : kind, text);
}

export const ENDED = ["finished", "failed", "aborted"];
const JOB = {finished: "good", failed: "bad", aborted: "idle", queued: "idle"};
export function jobBadge(job) {
  if (job.stopping) return badge("warn", "stopping");
  if (job.state === "finished" && job.partial) return badge("warn", "finished, partial");
  return badge(JOB[job.state] ?? "busy", job.state);
}

// A bar with its value in words.  kind: as of badge().
export function bar(part, whole, label, kind = "good") {
  const share = whole > 0 ? Math.min(1, Math.max(0, part / whole)) : 0;
  const fill = el("div", {class: `fill ${kind}`});
  fill.style.width = `${(100 * share).toFixed(1)}%`;
  return el("div", {class: "bar", role: "meter", "aria-label": label, "aria-valuemin": 0,
    "aria-valuemax": 100, "aria-valuenow": Math.round(100 * share),
    "aria-valuetext": `${label}: ${format.percent(part, whole)}`}, fill);
}

export function spaceKind(capacity) {
  if (capacity?.mountpaths_out > 0) return "bad";
  return capacity?.mountpaths_high > 0 ? "warn" : "good";
}

export function when(ms) {
  return ms > 0 ? el("time", {datetime: format.utc(ms), title: format.utc(ms)}, format.time(ms)) : "–";
}

// columns: [["Name", "left"], ["Size", "right"]]; rows: arrays of cells.
export function table(caption, columns, rows, empty = "There is nothing here.") {
  if (rows.length === 0) return el("p", {class: "empty"}, empty);
  return el("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": caption},
    el("table", {}, el("caption", {class: "hidden"}, caption),
      el("thead", {}, el("tr", {}, columns.map(([text, side]) =>
        el("th", {scope: "col", class: side ?? "left"}, text)))),
      el("tbody", {}, rows.map((cells) => el("tr", {}, cells.map((cell, i) =>
        el("td", {class: columns[i][1] ?? "left"}, cell)))))));
}

// [["Role", "target"], …]; a pair without a value is left out.
export function facts(pairs) {
  return el("dl", {class: "facts"}, pairs.filter(([, v]) => v !== undefined && v !== null && v !== "")
    .map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}

export function card(title, ...children) {
  return el("section", {class: "card"}, title && el("h2", {}, title), children);
}

export function head(title, ...actions) {
  return el("div", {class: "head"}, el("h1", {}, title),
    actions.length > 0 && el("div", {class: "buttons"}, actions));
}

export function button(text, fn, kind = "", key = text) {
  return el("button", {type: "button", class: kind, "data-key": key, on: {click: fn}}, text);
}

export function errorBox(err) {
  return el("p", {class: "error", role: "alert"}, err.describe ? err.describe() : String(err));
}

export const link = {
  node: (id) => el("a", {href: `#/nodes/${encodeURIComponent(id)}`, "data-key": `node ${id}`}, id),
  bucket: (name) => el("a", {href: `#/buckets/${encodeURIComponent(name)}`, "data-key": `bucket ${name}`}, name),
  objects: (bucket, prefix = "") => `#/objects/${encodeURIComponent(bucket)}` +
    (prefix ? `?prefix=${encodeURIComponent(prefix)}` : ""),
  job: (id) => el("a", {href: `#/jobs/${encodeURIComponent(id)}`, "data-key": `job ${id}`}, id),
};

export function progressOf(job) {
  const p = job.progress ?? {};
  return Number.isFinite(p.percent) ? p.percent : null;
}

export function jobBar(job) {
  const done = progressOf(job);
  if (ENDED.includes(job.state)) return "–";
  if (done === null) return "running";
  return el("div", {class: "withbar"}, bar(done, 100, `progress of ${job.id}`, "busy"),
    el("span", {}, `${Math.floor(done)} %`));
}

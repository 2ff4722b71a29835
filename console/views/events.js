// Events: what happened of late.

import * as api from "../api.js";
import {draw, el} from "../dom.js";
import * as parts from "../parts.js";

const SHOWN_MAX = 1000;
const LEVELS = {info: ["idle", "info"], warning: ["warn", "warning"], error: ["bad", "error"]};

function about(e) {
  if (e.node) return parts.link.node(e.node);
  if (e.bucket) return parts.link.bucket(e.bucket);
  return e.job ? parts.link.job(e.job) : "–";
}

export function row(e) {
  const [kind, text] = LEVELS[e.level] ?? ["idle", e.level];
  return [parts.when(e.at_ms), parts.badge(kind, text), e.text, about(e)];
}

export const COLUMNS = [["Time"], ["Level"], ["What happened"], ["About"]];

// Calls fn(events), the newest first, whenever there are new ones.
export function follow(page, fn, failed, limit = 100) {
  let after = "", events = [];
  page.repeat(async () => {
    try {
      const doc = await api.get(`/v1/events${api.query({after, limit})}`, {signal: page.signal});
      const known = doc.anew || after === "" ? [] : events;
      after = doc.next;
      events = [...doc.events.reverse(), ...known].slice(0, SHOWN_MAX);
      fn(events);
    } catch (err) {
      if (err.name !== "AbortError") failed(err);
    }
  });
}

export async function show(page) {
  const box = el("div", {});
  const error = el("div", {});
  const levels = el("select", {"aria-label": "Level", on: {change: () => render()}},
    [["", "All events"], ["warning", "Warnings and errors"], ["error", "Errors"]].map(([value, text]) =>
      el("option", {value}, text)));
  let events = [];
  page.root.append(parts.head("Events"), el("div", {class: "filters"}, levels), error, box,
    el("p", {class: "hint"}, "The primary keeps them in memory. Another primary has those that it has seen itself."));

  function render() {
    const wanted = {"": Object.keys(LEVELS), warning: ["warning", "error"], error: ["error"]}[levels.value];
    const shown = events.filter((e) => wanted.includes(e.level));
    draw(box, [shown.map((e) => e.number), levels.value], () => parts.card(null,
      parts.table("Events", COLUMNS, shown.map(row), "There is no such event.")));
  }

  follow(page, (list) => {
    events = list;
    draw(error, null, () => null);
    render();
  }, (err) => draw(error, err.message, () => parts.errorBox(err)), SHOWN_MAX);
}

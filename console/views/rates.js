// How fast the cluster or one target is: charts of the last minutes, on the pages of both.

import * as api from "../api.js";
import {chart} from "../charts.js";
import {draw, el} from "../dom.js";
import * as format from "../format.js";
import * as parts from "../parts.js";

const POLL_MS = 5000;

const perSecond = (text) => (v) => `${text(v)}/s`;
const few = (v) => v < 100 ? v.toFixed(1).replace(/\.0$/, "") : format.count(Math.round(v));
const milliseconds = (v) => `${few(v)} ms`;
const percent = (v) => `${few(v)} %`;

// [title, show, [[name, field, how a value of the interval is shown]]]
const CHARTS = [
  ["Throughput", perSecond(format.bytes), [["Read", "read_bytes", (v, s) => v / s], ["Written", "write_bytes", (v, s) => v / s]]],
  ["Operations", perSecond(few), [["Reads", "reads", (v, s) => v / s], ["Writes", "writes", (v, s) => v / s],
    ["Deletes", "deletes", (v, s) => v / s], ["Errors", "errors", (v, s) => v / s]]],
  ["Latency (p99)", milliseconds, [["GET", "read_p99_us", (v) => v / 1000], ["PUT", "write_p99_us", (v) => v / 1000]]],
  ["CPU", percent, [["CPU", "cpu_us", (v, s) => v / s / 10000]]],
];

function build(doc, series) {
  const seconds = doc.interval_ms / 1000;
  const times = Array.from({length: doc.samples}, (_, i) => doc.end_ms - (doc.samples - 1 - i) * doc.interval_ms);
  const value = (how) => (v) => Number.isFinite(v) ? how(v, seconds) : null;
  return CHARTS.map(([title, show, lines]) =>
    chart(title, lines.map(([name, field, how]) => ({name, values: (series[field] ?? []).map(value(how))})), times, show));
}

// Into `box`, as long as the page is shown.  `node`: of this target alone.
export function show(page, box, node) {
  page.repeat(async () => {
    try {
      const doc = await api.get(`/v1/cluster/stats${api.query({samples: 180, nodes: node ? "true" : ""})}`,
        {signal: page.signal});
      const series = node ? doc.nodes?.[node] : doc.cluster;
      const minutes = format.duration(doc.samples * doc.interval_ms);
      draw(box, [doc.end_ms, doc.proxy, node], () => parts.card(`The last ${minutes}`,
        series ? el("div", {class: "charts"}, build(doc, series))
          : el("p", {class: "empty"}, "The primary has not heard of this node yet.")));
    } catch (err) {
      if (err.name !== "AbortError") draw(box, err.message, () => parts.card("Rates", parts.errorBox(err)));
    }
  }, POLL_MS);
}

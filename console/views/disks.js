// The mountpaths of a target, as it shows them itself.

import * as api from "../api.js";
import {draw, el} from "../dom.js";
import * as format from "../format.js";
import * as parts from "../parts.js";

const POLL_MS = 5000;
const STATES = {enabled: "good", leaving: "warn", disabled: "bad", missing: "bad"};

const slow = (op) => op?.p99_us > 0 ? `${(op.p99_us / 1000).toFixed(1)} ms` : "–";
const fast = (op) => Number.isFinite(op?.bytes_s) ? `${format.bytes(Math.round(op.bytes_s))}/s` : "–";

function row(d) {
  const used = d.total_bytes - d.available_bytes;
  return [d.path, [parts.badge(STATES[d.state] ?? "warn", d.state), d.why && ` ${d.why}`],
    Number.isFinite(used) ? `${format.percent(used, d.total_bytes)} of ${format.bytes(d.total_bytes)}` : "–",
    Number.isFinite(d.objects) ? format.count(d.objects) : "–", fast(d.load?.read), slow(d.load?.read), fast(d.load?.write),
    slow(d.load?.write), format.count(d.load?.queue), format.count(d.io_errors), format.count(d.quarantined)];
}

const COLUMNS = [["Mountpath"], ["State"], ["Used"], ["Objects", "right"], ["Read", "right"], ["p99", "right"],
  ["Written", "right"], ["p99", "right"], ["Queue", "right"], ["Errors", "right"], ["Quarantine", "right"]];

// Into `box`, as long as the page is shown.  One that is unreachable is not asked.
export function show(page, box, isThere) {
  page.repeat(async () => {
    if (!isThere()) {
      draw(box, "away", () => parts.card("Mountpaths", el("p", {class: "empty"}, "The target does not answer.")));
      return;
    }
    try {
      const doc = await api.get(`/v1/nodes/${encodeURIComponent(page.id)}/mountpaths`, {signal: page.signal});
      draw(box, doc.mountpaths, () => parts.card("Mountpaths", parts.table("Mountpaths", COLUMNS, doc.mountpaths.map(row))));
    } catch (err) {
      if (err.name !== "AbortError") draw(box, err.message, () => parts.card("Mountpaths", parts.errorBox(err)));
    }
  }, POLL_MS);
}

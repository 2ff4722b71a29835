// Jobs: all of them, one, and those that can be started here.

import * as api from "../api.js";
import {ask} from "../dialog.js";
import {draw, el, note} from "../dom.js";
import * as format from "../format.js";
import * as parts from "../parts.js";

const STARTS = {
  cleanup: "removes expired tombstones, destroyed buckets and abandoned files",
  scrub: "reads and verifies everything, and moves damaged files aside",
  validate: "reads and verifies everything, and changes nothing",
  rebalance: "moves objects to their owners",
  repair: "brings missing replicas and slices",
  lru: "evicts the least recently used objects of backends from full disks",
};

const COLUMNS = [["Job"], ["Kind"], ["State"], ["Progress"], ["Created"], ["Took", "right"], ["Description"]];

function took(j) {
  const end = j.ended_ms ?? j.finished_ms;
  return j.started_ms > 0 && end > 0 ? format.duration(end - j.started_ms) : "–";
}

function row(j) {
  return [parts.link.job(j.id), j.kind, parts.jobBadge(j), parts.jobBar(j), parts.when(j.created_ms), took(j),
    j.description || "–"];
}

function select(label, options, value, change) {
  const input = el("select", {"aria-label": label, "data-key": label, on: {change: () => change(input.value)}},
    options.map(([v, text]) => el("option", {value: v, selected: v === value}, text)));
  return input;
}

function askStart(page) {
  ask({title: "Start a job", action: "Start", fields: [{name: "kind", label: "Job",
    options: Object.entries(STARTS).map(([name, text]) => [name, `${name}: ${text}`])}],
  act: async ({kind}) => {
    const doc = await api.call("POST", "/v1/jobs", {body: {action: "start", name: kind}});
    note(`${kind}: started as ${doc.id}`);
    page.go(`#/jobs/${encodeURIComponent(doc.id)}`);
  }});
}

export async function show(page) {
  const filter = {kind: page.query.get("kind") ?? "", state: ""};
  const bar = el("div", {class: "filters"});
  const box = el("div", {});
  const error = el("div", {});
  let jobs = [];
  page.root.append(parts.head("Jobs", parts.button("Start a job", () => askStart(page), "primary")), bar, error, box);

  function render() {
    const kinds = [...new Set(jobs.map((j) => j.kind))].sort();
    draw(bar, [kinds, filter], () => [
      select("Kind", [["", "All kinds"], ...kinds.map((k) => [k, k])], filter.kind,
        (v) => { filter.kind = v; render(); }),
      select("State", [["", "All states"], ["running", "Running"], ["ended", "Ended"], ["failed", "Failed"]],
        filter.state, (v) => { filter.state = v; render(); })]);
    const ended = (j) => parts.ENDED.includes(j.state);
    const states = {"": () => true, running: (j) => !ended(j), ended, failed: (j) => j.state === "failed"};
    const shown = jobs.filter((j) => (!filter.kind || j.kind === filter.kind) && states[filter.state](j))
      .sort((a, b) => b.created_ms - a.created_ms).slice(0, 1000);
    draw(box, shown, () => parts.card(null, parts.table("Jobs", COLUMNS, shown.map(row), "No job is listed.")));
  }

  page.repeat(async () => {
    try {
      jobs = (await api.get("/v1/jobs", {signal: page.signal})).jobs;
      draw(error, null, () => null);
      render();
    } catch (err) {
      if (err.name !== "AbortError") draw(error, err.message, () => parts.errorBox(err));
    }
  });
}

// --- one job ------------------------------------------------------------------------------------

function ofTotal(pair, show) {
  if (!pair) return null;
  return pair.total > 0 ? `${show(pair.done ?? 0)} of ${show(pair.total)}` : show(pair.done ?? 0);
}

function objectCounts(objects) {
  if (!objects) return null;
  const words = ["skipped", "missing", "failed"].filter((w) => objects[w] > 0).map((w) => `${format.count(objects[w])} ${w}`);
  return [ofTotal(objects, format.count), ...words].join(", ");
}

function progress(j) {
  const p = j.progress ?? {};
  const done = parts.progressOf(j);
  const running = !parts.ENDED.includes(j.state);
  const plan = j.plan;
  return parts.card("Progress", running && done !== null && el("div", {class: "withbar wide"},
    parts.bar(done, 100, `progress of ${j.id}`, "busy"), el("span", {}, `${Math.floor(done)} %`)),
  parts.facts([["State", parts.jobBadge(j)], ["Phase", running ? p.phase : null],
    ["Shards", ofTotal(p.shards, format.count)], ["Records", Number.isFinite(p.records) ? format.count(p.records) : null],
    ["Objects", objectCounts(p.objects)], ["Bytes", ofTotal(p.bytes, format.bytes)],
    ["Rate", running && p.rate_bytes_s > 0 ? `${format.bytes(p.rate_bytes_s)}/s` : null],
    ["Time left", running && p.eta_s > 0 ? format.duration(1000 * p.eta_s) : null],
    ["Output", plan && [format.plural(plan.shards, "shard"), format.plural(plan.records, "record"),
      format.bytes(plan.bytes)].join(", ")],
    ["Through the network", plan && format.bytes(plan.moved_bytes)],
    ["Dry run", j.spec?.dry_run ? "nothing is stored" : null],
    ["Waits for", j.waits_for?.join(", ")], ["Without", j.without?.join(", ")]]));
}

function lines(title, kind, list) {
  const texts = (list ?? []).map((x) => typeof x === "string" ? x : `${x.message} (${x.code})`);
  return texts.length > 0 && parts.card(title, el("ul", {class: "reasons"}, texts.map((text) =>
    el("li", {}, parts.badge(kind, kind === "bad" ? "error" : "warning"), el("span", {}, text)))));
}

function targets(j) {
  const rows = Object.entries(j.targets ?? {});
  return rows.length > 0 && parts.card("Targets", parts.table("Targets of the job", [["Target"], ["State"], ["Report"]],
    rows.map(([id, t]) => [parts.link.node(id), t?.state ?? t?.phase ?? "–",
      el("details", {}, el("summary", {}, "Report"), el("pre", {}, JSON.stringify(t, null, 2)))])));
}

function askAbort(page, j) {
  ask({title: `Abort ${j.id}`, danger: true, action: "Abort the job",
    text: `The ${j.kind} ends, and its output is removed. Objects that it has deleted or copied stay so.`,
    act: async () => {
      await api.call("DELETE", j.kind === "sort" ? `/v1/sort/abort${api.query({id: j.id})}` : api.paths.job(j.id));
      note(`${j.id}: is being aborted`);
    }});
}

function forget(page, j) {
  ask({title: `Forget ${j.id}`, action: "Forget", text: "The job is taken off the list. Its output stays.", act: async () => {
    await api.call("DELETE", `/v1/sort${api.query({id: j.id})}`);
    note(`${j.id}: forgotten`);
    page.go("#/jobs");
  }});
}

function buttons(page, j) {
  if (!parts.ENDED.includes(j.state)) return !j.stopping && parts.button("Abort", () => askAbort(page, j), "danger");
  return j.kind === "sort" && parts.button("Forget", () => forget(page, j));
}

export async function showOne(page) {
  const top = el("div", {});
  const box = el("div", {});
  const error = el("div", {});
  page.root.append(top, error, box);
  draw(top, page.id, () => parts.head(page.id));
  page.repeat(async () => {
    try {
      const j = await api.get(api.paths.job(page.id), {signal: page.signal});
      const ended = parts.ENDED.includes(j.state);
      draw(error, null, () => null);
      draw(top, [ended, j.stopping, j.kind], () => parts.head(`${j.kind} ${j.id}`, buttons(page, j)));
      draw(box, j, () => [progress(j), lines("Errors", "bad", j.errors), lines("Warnings", "warn", j.warnings),
        parts.card("Job", parts.facts([["Description", j.description], ["Created", parts.when(j.created_ms)],
          ["Started", parts.when(j.started_ms)], ["Took", ended ? took(j) : null]])),
        targets(j),
        j.spec && parts.card("Request", el("details", {}, el("summary", {}, "As JSON"),
          el("pre", {}, JSON.stringify(j.spec, null, 2))))]);
    } catch (err) {
      if (err.name !== "AbortError") draw(error, err.message, () => parts.errorBox(err));
    }
  }, 1000);
}

// Overview: is it healthy, is it full, what is running?

import * as api from "../api.js";
import {draw, el} from "../dom.js";
import * as format from "../format.js";
import * as parts from "../parts.js";
import * as events from "./events.js";
import * as rates from "./rates.js";

const sum = (list, of) => list.reduce((total, x) => total + (of(x) ?? 0), 0);

function reason(r) {
  return el("li", {}, parts.reasonBadge(r.health), el("span", {}, r.text),
    r.node && el("a", {href: `#/nodes/${encodeURIComponent(r.node)}`, "data-key": `reason ${r.node}`},
      `Node ${r.node}`));
}

function health(doc) {
  const {reasons} = doc;
  if (!reasons)
    return parts.card("Health", el("p", {class: "big"}, parts.healthBadge(doc.health)),
      el("p", {}, "The primary is of an older release and does not say: ", el("code", {}, "dfcctl cluster health")));
  return parts.card("Health", el("p", {class: "big"}, parts.healthBadge(doc.health)),
    reasons.length === 0 ? el("p", {}, "All nodes are there, and all objects are served.")
      : el("ul", {class: "reasons"}, reasons.map(reason)));
}

function tile(name, value, detail, href) {
  const body = [el("span", {class: "name"}, name), el("span", {class: "value"}, value),
    el("span", {class: "detail"}, detail)];
  return href ? el("a", {class: "tile", href, "data-key": `tile ${name}`}, body)
    : el("div", {class: "tile"}, body);
}

function tiles(doc) {
  const of = (role) => doc.nodes.filter((n) => n.role === role);
  const active = (nodes) => nodes.filter((n) => n.state === "active").length;
  const targets = of("target"), proxies = of("proxy");
  const total = sum(targets, (n) => n.capacity?.total_bytes);
  const free = sum(targets, (n) => n.capacity?.available_bytes);
  return el("div", {class: "tiles"},
    tile("Used", format.percent(total - free, total), `${format.bytes(total - free)} of ${format.bytes(total)}`),
    tile("Targets", `${active(targets)} of ${targets.length}`, "active", "#/nodes"),
    tile("Proxies", `${active(proxies)} of ${proxies.length}`, `primary ${doc.primary || "none"}`, "#/nodes"),
    tile("Buckets", format.count(doc.buckets), "in the cluster", "#/buckets"),
    tile("Running jobs", format.count(doc.jobs_running), "now", "#/jobs"));
}

function capacity(doc) {
  const targets = doc.nodes.filter((n) => n.role === "target");
  return parts.card("Capacity of the targets",
    parts.table("Capacity of the targets", [["Target"], ["Used"], ["Free", "right"], ["Total", "right"]],
      targets.map((n) => {
        const c = n.capacity;
        if (!c) return [parts.link.node(n.id), "not known", "–", "–"];
        const used = c.total_bytes - c.available_bytes;
        return [parts.link.node(n.id),
          el("div", {class: "withbar"}, parts.bar(used, c.total_bytes, `space used on ${n.id}`, parts.spaceKind(c)),
            el("span", {}, format.percent(used, c.total_bytes))),
          format.bytes(c.available_bytes), format.bytes(c.total_bytes)];
      }), "There is no target yet."));
}

function protection(doc) {
  const words = ["protected", "one_copy", "degraded", "unavailable"];
  const risks = doc.at_risk ?? [];
  return parts.card("Protection of the buckets",
    el("ul", {class: "counts"}, words.map((word) =>
      el("li", {}, parts.protectionBadge(word, !doc.protection?.[word]),
        el("strong", {}, format.count(doc.protection?.[word] ?? 0))))),
    risks.length > 0 && parts.table("Buckets at risk", [["Bucket"], ["Protection"], ["Why"]],
      risks.map((b) => [parts.link.bucket(b.bucket), parts.protectionBadge(b.protection), b.why])));
}

function running(jobs) {
  const now = jobs.filter((j) => !parts.ENDED.includes(j.state));
  return parts.card("Running jobs", parts.table("Running jobs", [["Job"], ["Kind"], ["State"], ["Progress"]],
    now.map((j) => [parts.link.job(j.id), j.kind, parts.jobBadge(j), parts.jobBar(j)]), "No job is running."));
}

function latest(list) {
  const rows = list.slice(0, 10).map(events.row);
  return parts.card("Latest events", parts.table("Latest events", events.COLUMNS, rows, "There is none yet."),
    el("p", {}, el("a", {href: "#/events", "data-key": "all events"}, "All events")));
}

// An older primary does not say it.
const access = (on) => typeof on === "boolean" ? (on ? "on" : "off") : null;

function about(doc) {
  const releases = [...new Set(doc.nodes.map((n) => n.release).filter(Boolean))];
  return parts.card("This cluster", parts.facts([["Cluster", doc.cluster], ["Release", releases.join(", ")],
    ["Primary", doc.primary && parts.link.node(doc.primary)], ["State", `${doc.term}.${doc.version}`],
    ["Access control", access(doc.public_auth)]]));
}

export async function show(page) {
  const box = (name) => el("div", {class: `area-${name}`});
  const areas = {health: box("health"), tiles: box("tiles"), capacity: box("capacity"),
    rates: box("rates"), protection: box("protection"), jobs: box("jobs"), events: box("events"),
    about: box("about")};
  page.root.append(parts.head("Overview"), el("div", {class: "overview"}, Object.values(areas)));
  rates.show(page, areas.rates);
  events.follow(page, (list) => draw(areas.events, list.slice(0, 10).map((e) => e.number), () => latest(list)),
    (err) => draw(areas.events, err.message, () => parts.card("Latest events", parts.errorBox(err))), 10);
  page.onCluster((doc) => {
    if (!doc) return;
    draw(areas.health, [doc.health, doc.reasons], () => health(doc));
    draw(areas.tiles, [doc.nodes.map((n) => [n.id, n.state, n.capacity]), doc.primary, doc.buckets,
      doc.jobs_running], () => tiles(doc));
    draw(areas.capacity, doc.nodes.map((n) => [n.id, n.capacity]), () => capacity(doc));
    draw(areas.protection, [doc.protection, doc.at_risk], () => protection(doc));
    draw(areas.about, [doc.cluster, doc.primary, doc.term, doc.version, doc.nodes.map((n) => n.release),
      doc.public_auth],
      () => about(doc));
  });
  page.repeat(async () => {
    try {
      const doc = await api.get("/v1/jobs", {signal: page.signal});
      draw(areas.jobs, doc.jobs, running);
    } catch (err) {
      if (err.name !== "AbortError") draw(areas.jobs, err.message, () => parts.card("Running jobs", parts.errorBox(err)));
    }
  });
}

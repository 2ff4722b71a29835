// Nodes: all of them, and one.

import * as api from "../api.js";
import {ask} from "../dialog.js";
import {draw, el, note} from "../dom.js";
import * as format from "../format.js";
import * as parts from "../parts.js";
import * as diskView from "./disks.js";
import * as rates from "./rates.js";

function row(n) {
  const c = n.role === "target" ? n.capacity : null;
  const used = c && c.total_bytes - c.available_bytes;
  return [
    [parts.link.node(n.id), n.primary && el("span", {class: "mark"}, "primary")],
    n.role, parts.nodeBadge(n),
    c ? el("div", {class: "withbar"}, parts.bar(used, c.total_bytes, `space used on ${n.id}`, parts.spaceKind(c)),
      el("span", {}, format.percent(used, c.total_bytes))) : "–",
    c ? format.bytes(c.total_bytes) : "–", n.role === "target" ? format.count(n.weight) : "–",
    n.lag ?? "–", n.release ?? "–", parts.when(n.since_ms),
  ];
}

const COLUMNS = [["Node"], ["Role"], ["State"], ["Used"], ["Total", "right"], ["Weight", "right"],
  ["Copies to repair"], ["Release"], ["In this state since"]];

export async function show(page) {
  const box = el("div", {});
  page.root.append(parts.head("Nodes"), box);
  page.onCluster((doc) => {
    if (!doc) return;
    const stable = doc.nodes.map((n) => ({...n, silent_ms: undefined}));
    draw(box, stable, () => parts.card(null, parts.table("Nodes", COLUMNS, doc.nodes.map(row))));
  });
}

// --- one node -----------------------------------------------------------------------------------

function disks(n) {
  const c = n.capacity;
  if (!c) return null;
  const used = c.total_bytes - c.available_bytes;
  return parts.card("Disks", el("div", {class: "withbar wide"},
    parts.bar(used, c.total_bytes, `space used on ${n.id}`, parts.spaceKind(c)),
    el("span", {}, `${format.bytes(used)} of ${format.bytes(c.total_bytes)} used`)),
  parts.facts([["Free", format.bytes(c.available_bytes)],
    ["Mountpaths above space_high", format.count(c.mountpaths_high)],
    ["Mountpaths that refuse writes", format.count(c.mountpaths_out)],
    ["Mountpaths that are disabled or missing", format.count(c.mountpaths_missing)],
    ["Files in quarantine", format.count(c.quarantined)], ["Lost objects", format.count(c.lost)],
    ["Writes that wait for a backend", format.count(c.uploads_waiting)],
    ["Backends that fail", format.count(c.backends_failing)]]));
}

const ACTIONS = {
  startmaintenance: {text: "Start maintenance", states: ["active"], role: "target",
    what: (id) => `The objects of ${id} move to other targets. Then ${id} can be stopped without a loss. ` +
      "It keeps its place in the cluster."},
  stopmaintenance: {text: "End maintenance", states: ["maintenance"], role: "target",
    what: (id) => `Objects move back to ${id}.`},
  decommission: {text: "Decommission", states: ["active", "maintenance"], role: "target", danger: true,
    what: (id) => `The objects of ${id} move to other targets. Then ${id} leaves the cluster.`},
  removenode: {text: "Remove", states: ["unreachable"], danger: true,
    what: (id) => `${id} leaves the map. What only ${id} has is given up.`},
};

function askFor(page, n, action, row2) {
  ask({title: `${row2.text}: ${n.id}`, text: row2.what(n.id), action: row2.text, danger: row2.danger,
    confirm: row2.danger ? n.id : null, act: async () => {
      await api.call("PUT", "/v1/cluster", {body: {action, name: n.id}});
      note(`${row2.text}: ${n.id} – accepted`);
      await page.refresh();
    }});
}

function actions(page, doc, n) {
  const rows = Object.entries(ACTIONS).filter(([, r]) => r.states.includes(n.state) && (!r.role || r.role === n.role));
  if (rows.length === 0) return null;
  if (!doc.public_auth)
    return parts.card("Administration", el("p", {}, "Without access control nodes are administrated by ",
      el("code", {}, "dfcctl node"), " alone, at the control address. With ", el("code", {}, "--public-auth"),
      " this page has the buttons."));
  return parts.card("Administration", el("div", {class: "buttons"}, rows.map(([action, r]) =>
    parts.button(r.text, () => askFor(page, n, action, r), r.danger ? "danger" : ""))));
}

function details(n) {
  return parts.card("Node", parts.facts([["Role", n.role], ["State", parts.nodeBadge(n)],
    ["Since", parts.when(n.since_ms)], ["Primary", n.primary ? "yes" : "no"],
    ["Weight", n.role === "target" ? format.count(n.weight) : null],
    ["Copies to repair", n.lag && `yes (${n.lag})`], ["Passed over", n.absent ? "yes: it does not answer" : null],
    ["Release", n.release && `${n.release} ${n.commit ?? ""}`], ["State version", n.version],
    ["Certificate expires in", n.certificate_left_s && format.duration(1000 * n.certificate_left_s)],
    ["Public address", n.public_url], ["Control address", n.control_url], ["Data address", n.data_url]]));
}

export async function showOne(page) {
  const box = el("div", {}), paths = el("div", {}), charts = el("div", {});
  let begun = false, state = "";
  page.root.append(parts.head(page.id), box, paths, charts);
  page.onCluster((doc) => {
    const n = doc?.nodes.find((x) => x.id === page.id);
    if (!doc) return;
    if (!n) {
      draw(box, "gone", () => el("p", {class: "empty"}, "The cluster has no node of this name. ",
        el("a", {href: "#/nodes"}, "All nodes")));
      return;
    }
    state = n.state;
    if (n.role === "target" && !begun) {
      begun = true;
      diskView.show(page, paths, () => state !== "unreachable");
      rates.show(page, charts, n.id);
    }
    const reasons = (doc.reasons ?? []).filter((r) => r.node === n.id);
    draw(box, [{...n, silent_ms: undefined}, reasons, doc.public_auth], () => [
      reasons.length > 0 && parts.card("Needs attention", el("ul", {class: "reasons"},
        reasons.map((r) => el("li", {}, parts.reasonBadge(r.health), el("span", {}, r.text))))),
      details(n), disks(n), actions(page, doc, n)]);
  });
}

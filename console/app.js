// The frame: header, routes by location.hash, and the overview that every page follows.

import * as api from "./api.js";
import {draw, el, note, noteError, put} from "./dom.js";
import * as format from "./format.js";
import {errorBox, healthBadge} from "./parts.js";
import * as session from "./session.js";
import * as theme from "./theme.js";
import * as buckets from "./views/buckets.js";
import * as events from "./views/events.js";
import * as jobs from "./views/jobs.js";
import * as login from "./views/login.js";
import * as nodes from "./views/nodes.js";
import * as object from "./views/object.js";
import * as objects from "./views/objects.js";
import * as overview from "./views/overview.js";
import * as settings from "./views/settings.js";
import * as sort from "./views/sort.js";
import * as users from "./views/users.js";

const POLL_MS = 2000;
const VIEWS = {
  overview: {title: "Overview", show: overview.show},
  nodes: {title: "Nodes", show: nodes.show, one: nodes.showOne},
  buckets: {title: "Buckets", show: buckets.show, one: buckets.showOne},
  objects: {title: "Objects", one: objects.show, below: "buckets"},
  object: {title: "Object", one: object.show, below: "buckets"},
  jobs: {title: "Jobs", show: jobs.show, one: jobs.showOne},
  sort: {title: "Sort", show: sort.show},
  events: {title: "Events", show: events.show},
  users: {title: "Users", show: users.show, one: users.showOne},
  settings: {title: "Settings", show: settings.show},
  login: {title: "Log in", show: login.show, hidden: true},
};

const main = document.getElementById("main");
const header = document.getElementById("header");
let leave = () => {};  // ends the page that is shown

// --- the cluster, polled ------------------------------------------------------------------------

const cluster = {doc: null, error: null, since: 0, listeners: new Set()};

async function pollCluster() {
  try {
    cluster.doc = await api.get("/v1/cluster");
    cluster.error = null;
    cluster.since = Date.now();
  } catch (err) {
    if (err.status === 401) return;
    cluster.error = err;
  }
  drawHeader();
  for (const listener of cluster.listeners) listener(cluster.doc, cluster.error);
}

// Repeats fn() until `signal` ends it; while the page is hidden it rests.  fn() reports its errors.
function repeat(fn, signal, ms = POLL_MS) {
  let timer;
  async function round() {
    if (!document.hidden) await fn();
    if (!signal.aborted) timer = setTimeout(round, ms);
  }
  signal.addEventListener("abort", () => clearTimeout(timer));
  round();
}

// --- the header ---------------------------------------------------------------------------------

function tabs(current) {
  const names = Object.entries(VIEWS).filter(([, v]) => !v.hidden && !v.below);
  return el("nav", {"aria-label": "Pages"}, names.map(([name, v]) =>
    el("a", {href: `#/${name}`, "data-key": `tab ${name}`,
      "aria-current": current === name ? "page" : null}, v.title)));
}

function logOut() {
  session.end();
  cluster.doc = null;
  location.hash = "#/login";
}

function account() {
  if (session.token())
    return [el("span", {class: "user"}, session.userName()),
      el("button", {type: "button", class: "quiet", "data-key": "logout", on: {click: logOut}}, "Log out")];
  return cluster.doc?.public_auth && el("a", {href: "#/login", "data-key": "login"}, "Log in");
}

function trouble() {
  const {error, since} = cluster;
  if (error.status === 403) return `This user may not see the cluster: ${error.message}`;
  return since ? `Not connected since ${format.time(since)}, so that what is shown is old: ${error.message}`
    : `Not connected: ${error.message}`;
}

function drawHeader() {
  const at = route();
  const view = VIEWS[at.name];
  const current = view?.below ?? at.name;
  const stale = cluster.error && cluster.error.status !== 403;
  const data = [current, cluster.doc?.health, cluster.error && trouble(), session.userName(), cluster.doc?.public_auth];
  document.body.classList.toggle("stale", Boolean(stale));
  draw(header, data, () => [
    el("div", {class: "top"},
      el("a", {class: "brand", href: "#/overview", "data-key": "brand"},
        el("img", {src: "logo.svg", alt: "", width: 26, height: 26}), "DFC"),
      at.name !== "login" && tabs(current),
      el("div", {class: "side"},
        cluster.doc && el("a", {class: "plain", href: "#/overview", "data-key": "health"},
          healthBadge(cluster.doc.health)),
        account(), theme.chooser())),
    cluster.error && el("p", {class: "strip bad", role: "alert"}, trouble()),
    cluster.doc && cluster.doc.public_auth === false && el("p", {class: "strip bad"},
      "This cluster has no access control: anybody who reaches this address may read and delete data. ",
      "Start all nodes with ", el("code", {}, "--public-auth"), "."),
  ]);
}

// --- routes -------------------------------------------------------------------------------------

// "#/objects/b?prefix=x" is {name: "objects", id: "b", query: URLSearchParams}.
function route() {
  const [path, search] = location.hash.replace(/^#\/?/, "").split("?", 2);
  const [name, id] = path.split("/");
  try {
    return {name: name || "overview", id: id && decodeURIComponent(id), query: new URLSearchParams(search)};
  } catch {
    return {name: "overview", query: new URLSearchParams()};
  }
}

function go(hash) {
  if (location.hash === hash) show();
  else location.hash = hash;
}

async function show() {
  leave();
  const ended = new AbortController();
  leave = () => ended.abort();
  const at = route();
  const view = VIEWS[at.name];
  const fn = at.id ? view?.one : view?.show;
  put(main);
  if (!fn) {
    put(main, el("h1", {}, "There is no such page"), el("p", {}, el("a", {href: "#/overview"}, "Overview")));
    return;
  }
  document.title = `${at.id ?? view.title} – DFC console`;
  drawHeader();
  const signal = ended.signal;
  const page = {
    id: at.id, query: at.query, root: main, signal, go,
    // fn(doc, error) now and whenever the overview has been asked for.
    onCluster(fn2) {
      cluster.listeners.add(fn2);
      signal.addEventListener("abort", () => cluster.listeners.delete(fn2));
      if (cluster.doc) fn2(cluster.doc, cluster.error);
    },
    repeat: (fn2, ms) => repeat(fn2, signal, ms),
    refresh: pollCluster,
  };
  try {
    await fn(page);
  } catch (err) {
    if (!signal.aborted && err.name !== "AbortError") main.append(errorBox(err));
    if (!err.describe && err.name !== "AbortError") console.error(err);
  }
}

api.whenUnauthorized(() => {
  const was = session.token() !== null;
  session.end();
  cluster.doc = null;
  if (route().name === "login") return;
  if (was) note("The login has ended: log in again.", "bad");
  go(`#/login?to=${encodeURIComponent(location.hash)}`);
});

window.addEventListener("hashchange", () => {
  show();
  main.focus({preventScroll: true});
  window.scrollTo(0, 0);
});
window.addEventListener("unhandledrejection", (event) => noteError(event.reason));
document.addEventListener("visibilitychange", () => { if (!document.hidden) pollCluster(); });

theme.begin();
drawHeader();
show();
repeat(async () => { if (route().name !== "login") await pollCluster(); }, new AbortController().signal);

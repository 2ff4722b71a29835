// Objects of a bucket: prefixes as folders, pages of the server's list, uploads, deletes.

import * as api from "../api.js";
import {ask} from "../dialog.js";
import {el, note, put} from "../dom.js";
import * as format from "../format.js";
import * as parts from "../parts.js";
import {uploader} from "./uploads.js";

const LIMIT = 200;

function objectLink(bucket, name) {
  return `#/object/${encodeURIComponent(bucket)}?name=${encodeURIComponent(name)}`;
}

// "a/b/c" has the folders "a/" and "a/b/".
function crumbs(bucket, prefix) {
  const links = [el("a", {href: parts.link.objects(bucket)}, bucket)];
  let at = 0;
  for (let slash; (slash = prefix.indexOf("/", at)) >= 0; at = slash + 1)
    links.push(el("a", {href: parts.link.objects(bucket, prefix.slice(0, slash + 1))}, prefix.slice(at, slash) || "/"));
  if (at < prefix.length) links.push(el("span", {}, `${prefix.slice(at)}…`));
  return el("nav", {class: "crumbs", "aria-label": "Folders"},
    links.map((l, i) => [i > 0 && el("span", {"aria-hidden": "true"}, "/"), l]));
}

async function deleteAll(page, bucket, names, load) {
  ask({title: `Delete ${format.plural(names.length, "object")}`, action: "Delete", danger: true,
    text: [names.slice(0, 5).join(", ") + (names.length > 5 ? ", …" : ""), "This cannot be undone."],
    act: async () => {
      for (const name of names)
        await api.request("DELETE", `${api.paths.object(bucket, name)}${api.query({redirect: "never"})}`);
      note(`${format.plural(names.length, "object")} deleted`);
      await load();
    }});
}

function rows(bucket, doc, prefix, chosen, changed) {
  const folders = (doc.prefixes ?? []).map((p) => [null,
    el("a", {class: "folder", href: parts.link.objects(bucket, p)}, p.slice(prefix.lastIndexOf("/") + 1)), "folder", "–", "–"]);
  const objects = doc.entries.map((e) => [
    el("input", {type: "checkbox", "aria-label": `Select ${e.name}`, on: {change: (event) => {
      if (event.target.checked) chosen.add(e.name);
      else chosen.delete(e.name);
      changed();
    }}}),
    el("a", {class: "break", href: objectLink(bucket, e.name)}, e.name.slice(prefix.lastIndexOf("/") + 1)),
    e.cached === false ? "in the backend" : "object", format.bytes(e.size), parts.when(e.modified_ms)]);
  return [...folders, ...objects];
}

function picker(bucket, prefix, up) {
  const folder = prefix.slice(0, prefix.lastIndexOf("/") + 1);
  const input = el("input", {type: "file", multiple: true, id: "files", class: "hidden", on: {change: () => {
    for (const file of input.files) up.add(file, folder + file.name);
    input.value = "";
  }}});
  const drop = el("div", {class: "drop", on: {
    dragover: (event) => { event.preventDefault(); drop.classList.add("over"); },
    dragleave: () => drop.classList.remove("over"),
    drop: (event) => {
      event.preventDefault();
      drop.classList.remove("over");
      for (const file of event.dataTransfer.files) up.add(file, folder + file.name);
    }}},
  el("label", {class: "button", for: "files"}, "Choose files"), input,
  el("span", {}, ` or drop them here: they become objects ${folder ? `below ${folder}` : `of ${bucket}`}.`));
  return drop;
}

export async function show(page) {
  const bucket = page.id;
  const prefix = page.query.get("prefix") ?? "";
  const tokens = [""];
  const chosen = new Set();
  const box = el("div", {});
  const remove = parts.button("Delete the selected", () => deleteAll(page, bucket, [...chosen], load), "danger");
  const search = el("input", {type: "search", value: prefix, placeholder: "Names that begin with",
    "aria-label": "Names that begin with", spellcheck: "false"});
  const changed = () => {
    remove.hidden = chosen.size === 0;
    remove.textContent = `Delete ${format.plural(chosen.size, "object")}`;
  };

  async function load() {
    const path = `${api.paths.list(bucket)}${api.query({prefix, delimiter: "/", limit: LIMIT, token: tokens.at(-1)})}`;
    const doc = await api.get(path, {signal: page.signal});
    chosen.clear();
    changed();
    put(box, parts.card(null, doc.incomplete && el("p", {class: "error"}, "Some targets did not answer: the list has gaps."),
      parts.table("Objects", [["", "tick"], ["Name"], ["Kind"], ["Size", "right"], ["Modified"]],
        rows(bucket, doc, prefix, chosen, changed), "There is no object here."),
      el("div", {class: "buttons"},
        tokens.length > 1 && parts.button("Back", () => { tokens.pop(); return load(); }),
        doc.next && parts.button("Next page", () => { tokens.push(doc.next); return load(); }))));
  }

  const up = uploader(bucket, () => load().catch(() => {}));
  page.signal.addEventListener("abort", () => {
    if (up.busy()) note("Uploads of the page before go on; their progress is not shown any more.");
  });
  page.root.append(parts.head("Objects", remove), crumbs(bucket, prefix),
    el("form", {class: "filters", on: {submit: (event) => {
      event.preventDefault();
      page.go(parts.link.objects(bucket, search.value));
    }}}, search, el("button", {type: "submit"}, "Search")),
    box, parts.card("Upload", picker(bucket, prefix, up), up.list));
  changed();
  await load();
}

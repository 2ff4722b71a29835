// Buckets: all of them, one, create, change, destroy.

import * as api from "../api.js";
import {ask} from "../dialog.js";
import {draw, el, note} from "../dom.js";
import * as format from "../format.js";
import * as parts from "../parts.js";

function kept(props) {
  if (props.ec) return `slices ${typeof props.ec === "string" ? props.ec : `${props.ec.data}+${props.ec.parity}`}`;
  if (props.ring) return "ring";
  return format.plural(props.copies ?? 1, "copy", "copies");
}

function quota(props) {
  const limits = [props.quota_bytes > 0 && format.bytes(props.quota_bytes),
    props.quota_objects > 0 && format.plural(props.quota_objects, "object")];
  return limits.filter(Boolean).join(", ") || "–";
}

function row(b) {
  return [parts.link.bucket(b.name),
    el("a", {href: parts.link.objects(b.name), "data-key": `objects ${b.name}`}, "Browse"),
    parts.protectionBadge(b.protection), kept(b.props), b.props.backend ?? "–", quota(b.props),
    parts.when(b.created_ms)];
}

const COLUMNS = [["Bucket"], ["Objects"], ["Protection"], ["Kept as"], ["Backend"], ["Quota"], ["Created"]];

function askCreate(page) {
  ask({title: "Create a bucket", action: "Create", fields: [
    {name: "name", label: "Name", required: true, trim: true},
    {name: "copies", label: "Copies of each object", type: "number", min: 1, value: "1"},
    {name: "ec", label: "Or slices", placeholder: "4+2", trim: true,
      hint: "DATA+PARITY slices of large objects, on as many targets. Leave it empty for copies."},
    {name: "backend", label: "Backend", placeholder: "s3://bucket", trim: true,
      hint: "Where objects that are not here are read from. Leave it empty for a bucket of its own."},
  ], act: async ({name, copies, ec, backend}) => {
    const value = {};
    if (ec) value.ec = slices(ec);
    else if (copies) value.copies = Number(copies);
    if (backend) value.backend = backend;
    await api.call("POST", api.paths.bucket(name), {body: {action: "create", value}});
    note(`Bucket ${name}: created`);
    page.go(`#/buckets/${encodeURIComponent(name)}`);
  }});
}

function slices(text) {
  const [, data, parity] = /^(\d+)\+(\d+)$/.exec(text) ?? [];
  if (!data) throw new api.ApiError(0, {message: `slices: '${text}' is not DATA+PARITY, as in 4+2`});
  return {data: Number(data), parity: Number(parity)};
}

export async function show(page) {
  const filter = el("input", {type: "search", placeholder: "Filter by name", "aria-label": "Filter by name",
    on: {input: () => render()}});
  const box = el("div", {});
  const error = el("div", {});
  let all = [];
  page.root.append(parts.head("Buckets", parts.button("Create a bucket", () => askCreate(page), "primary")),
    el("div", {class: "filters"}, filter), error, box);

  function render() {
    const found = all.filter((b) => b.name.includes(filter.value.trim()));
    draw(box, [found, found.length], () => parts.card(null,
      parts.table("Buckets", COLUMNS, found.slice(0, 1000).map(row), "There is no such bucket."),
      found.length > 1000 && el("p", {class: "hint"}, `The first 1000 of ${format.count(found.length)}: filter by name.`)));
  }

  page.repeat(async () => {
    try {
      all = (await api.get("/v1/buckets", {signal: page.signal})).buckets;
      all.sort((a, b) => (a.name < b.name ? -1 : 1));
      draw(error, null, () => null);
      render();
    } catch (err) {
      if (err.name !== "AbortError") draw(error, err.message, () => parts.errorBox(err));
    }
  }, 5000);
}

// --- one bucket ---------------------------------------------------------------------------------

function shown(value) {
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function askRename(page, b) {
  ask({title: `Rename ${b.name}`, action: "Rename", text: "Its objects stay where they are.",
    fields: [{name: "name", label: "New name", required: true, value: b.name, trim: true}], act: async ({name}) => {
      await api.call("POST", api.paths.bucket(b.name), {body: {action: "rename", name}});
      note(`${b.name} is ${name} now`);
      page.go(`#/buckets/${encodeURIComponent(name)}`);
    }});
}

function askDestroy(page, b) {
  ask({title: `Destroy ${b.name}`, action: "Destroy the bucket", danger: true, confirm: b.name,
    text: "The bucket and all objects in it are deleted. This cannot be undone.", act: async () => {
      await api.call("DELETE", api.paths.bucket(b.name));
      note(`Bucket ${b.name}: destroyed`);
      page.go("#/buckets");
    }});
}

// A value keeps the type that it has.
function parse(text, old) {
  if (typeof old === "number" || typeof old === "boolean" || typeof old === "object") {
    try {
      return JSON.parse(text);
    } catch {
      return text;
    }
  }
  return text;
}

function askChange(page, b, name, load) {
  const old = b.props[name];
  ask({title: `${name} of ${b.name}`, action: "Change", fields: [
    typeof old === "boolean" ? {name: "value", label: name, value: String(old), options: [["true", "true"], ["false", "false"]]}
      : {name: "value", label: name, required: true, value: shown(old), trim: true}],
  act: async ({value}) => {
    await api.call("PUT", api.paths.bucket(b.name), {body: {action: "setprops", value: {[name]: parse(value, old)}}});
    note(`${b.name}: ${name} is changed`);
    await load();
  }});
}

export async function showOne(page) {
  const box = el("div", {});
  page.root.append(parts.head(page.id), box);
  async function load() {
    const b = await api.get(api.paths.bucket(page.id), {signal: page.signal});
    draw(box, b, () => [
      el("div", {class: "buttons"}, el("a", {class: "button primary", href: parts.link.objects(b.name)}, "Browse the objects"),
        el("a", {class: "button", href: `#/sort?bucket=${encodeURIComponent(b.name)}`}, "Sort"),
        parts.button("Rename", () => askRename(page, b)), parts.button("Destroy", () => askDestroy(page, b), "danger")),
      parts.card("Bucket", parts.facts([["Protection", parts.protectionBadge(b.protection)], ["Why", b.why],
        ["Kept as", kept(b.props)], ["Quota", quota(b.props)], ["Created", parts.when(b.created_ms)]])),
      parts.card("Properties", parts.table("Properties", [["Property"], ["Value"], [""]],
        Object.entries(b.props).map(([name, value]) => [el("code", {}, name), el("span", {class: "break"}, shown(value)),
          parts.button("Change", () => askChange(page, b, name, load), "quiet", `change ${name}`)])))]);
  }
  await load();
}

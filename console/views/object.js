// One object: what it is, a look inside, download, rename, delete.

import * as api from "../api.js";
import {ask} from "../dialog.js";
import {el, note, noteError, put} from "../dom.js";
import * as format from "../format.js";
import * as parts from "../parts.js";
import * as session from "../session.js";

const TEXT_MAX = 64 << 10;
const IMAGE_MAX = 16 << 20;
// A type of our choice: SVG and HTML are offered for download alone.
const IMAGES = {png: "image/png", jpg: "image/jpeg", jpeg: "image/jpeg", gif: "image/gif", webp: "image/webp",
  bmp: "image/bmp", avif: "image/avif"};
const TEXTS = ["txt", "json", "jsonl", "csv", "tsv", "md", "yaml", "yml", "log", "xml", "py", "c", "h", "js", "sh",
  "toml", "ini", "cls", "html", "svg"];

const extension = (name) => name.slice(name.lastIndexOf(".") + 1).toLowerCase();
const through = (bucket, name, more = {}) => `${api.paths.object(bucket, name)}${api.query({redirect: "never", ...more})}`;

function metadata(headers) {
  const rows = [];
  headers.forEach((value, name) => {
    if (name.startsWith("dfc-meta-")) rows.push([name.slice(9), el("span", {class: "break"}, value)]);
  });
  const tags = headers.get("dfc-tags");
  if (tags) for (const [name, value] of new URLSearchParams(tags)) rows.push([`tag ${name}`, value]);
  return rows;
}

function facts(bucket, name, headers) {
  const sum = headers.get("dfc-checksum-type");
  const size = Number(headers.get("content-length"));
  return parts.facts([["Bucket", parts.link.bucket(bucket)], ["Name", el("span", {class: "break"}, name)],
    ["Size", `${format.bytes(size)} (${format.count(size)} bytes)`],
    ["Content type", headers.get("content-type")], ["Modified", parts.when(Date.parse(headers.get("last-modified")))],
    ["Version", headers.get("dfc-version")], ["Entity tag", headers.get("etag")],
    ["Checksum", sum && el("span", {class: "break"}, `${sum} ${headers.get("dfc-checksum-value")}`)],
    ["Address", el("code", {class: "break"}, `dfc://${bucket}/${name}`)]]);
}

async function textOf(page, bucket, name, size) {
  const reply = await api.request("GET", through(bucket, name), {signal: page.signal,
    headers: size > TEXT_MAX ? {Range: `bytes=0-${TEXT_MAX - 1}`} : {}});
  const text = await reply.text();
  return [size > TEXT_MAX && el("p", {class: "hint"}, `The first ${format.bytes(TEXT_MAX)} of ${format.bytes(size)}.`),
    el("pre", {class: "preview", tabindex: "0", "aria-label": "Contents"}, text)];
}

async function imageOf(page, bucket, name) {
  const reply = await api.request("GET", through(bucket, name), {signal: page.signal});
  const url = URL.createObjectURL(new Blob([await reply.arrayBuffer()], {type: IMAGES[extension(name)]}));
  page.signal.addEventListener("abort", () => URL.revokeObjectURL(url));
  return el("img", {class: "preview", src: url, alt: `The object ${name}`});
}

async function membersOf(page, bucket, name) {
  const doc = await api.get(through(bucket, name, {members: "list", limit: 200}), {signal: page.signal});
  return [parts.table("Members of the archive", [["Member"], ["Kind"], ["Size", "right"]], doc.members.map((m) =>
    [el("span", {class: "break"}, m.name ?? m.escaped), m.type, format.bytes(m.size)])),
  doc.truncated && el("p", {class: "hint"}, `The first 200 of ${format.count(doc.count)} members.`)];
}

function viewer(name, size) {
  const ext = extension(name);
  if (ext in IMAGES) return size <= IMAGE_MAX ? imageOf : null;
  if (TEXTS.includes(ext)) return textOf;
  return /\.(tar|tar\.gz|tgz|tar\.zst|tar\.lz4|tar\.xz|zip|cpio)$/i.test(name) ? membersOf : null;
}

// A link has no token: a user's is a signed URL.  Without access control the plain one does.
async function downloadUrl(bucket, name) {
  if (!session.token()) return through(bucket, name);
  const doc = await api.call("POST", "/v1/auth/url", {body: {method: "GET", bucket, object: name, seconds: 60}});
  const url = new URL(doc.url);
  return `${url.pathname}${url.search}&redirect=never`;
}

async function download(bucket, name) {
  const a = el("a", {href: await downloadUrl(bucket, name), download: name.slice(name.lastIndexOf("/") + 1) || "object"});
  document.body.append(a);
  a.click();
  a.remove();
}

function askRename(page, bucket, name) {
  ask({title: "Rename the object", action: "Rename", fields: [{name: "to", label: "New name", value: name, required: true}],
    act: async ({to}) => {
      await api.request("POST", through(bucket, name), {body: {action: "rename", name: to}});
      note(`${name} is ${to} now`);
      page.go(`#/object/${encodeURIComponent(bucket)}?name=${encodeURIComponent(to)}`);
    }});
}

function askDelete(page, bucket, name, folder) {
  ask({title: "Delete the object", text: [name, "This cannot be undone."], action: "Delete", danger: true, act: async () => {
    await api.request("DELETE", through(bucket, name));
    note(`${name}: deleted`);
    page.go(folder);
  }});
}

export async function show(page) {
  const bucket = page.id;
  const name = page.query.get("name") ?? "";
  const folder = parts.link.objects(bucket, name.slice(0, name.lastIndexOf("/") + 1));
  const box = el("div", {});
  page.root.append(parts.head(name.slice(name.lastIndexOf("/") + 1) || name,
    parts.button("Download", () => download(bucket, name).catch(noteError), "primary"),
    parts.button("Rename", () => askRename(page, bucket, name)),
    parts.button("Delete", () => askDelete(page, bucket, name, folder), "danger")),
  el("p", {class: "crumbs"}, el("a", {href: folder}, "Back to the folder")), box);
  const head = await api.request("HEAD", through(bucket, name), {signal: page.signal});
  const size = Number(head.headers.get("content-length"));
  const rows = metadata(head.headers);
  const look = el("div", {});
  put(box, parts.card("Object", facts(bucket, name, head.headers)),
    rows.length > 0 && parts.card("Metadata", parts.table("Metadata", [["Name"], ["Value"]], rows)),
    parts.card("Preview", look));
  const view = size > 0 ? viewer(name, size) : null;
  if (!view) {
    put(look, el("p", {class: "empty"}, size === 0 ? "The object is empty." : "There is no preview of this kind."));
    return;
  }
  put(look, el("p", {class: "hint"}, "Loading…"));
  try {
    put(look, await view(page, bucket, name, size));
  } catch (err) {
    if (err.name !== "AbortError") put(look, parts.errorBox(err));
  }
}

// A sort of shards: a form, the request that it makes, a dry run, the start.  The server checks it.

import * as api from "../api.js";
import {el, put} from "../dom.js";
import * as parts from "../parts.js";

// name, label, flag of dfcctl, where it is in the request, and for whom it is: of an order or always.
// trim takes blanks off both ends: names of objects may have some.
const FIELDS = [
  {name: "input", label: "Input bucket", flag: "input-bucket", at: ["input_bck", "name"], required: true, trim: true},
  {name: "template", label: "Input shards", flag: "template", at: ["input_format", "template"],
    placeholder: "shard-{00000..00999}.tar", hint: "A template of their names. Or give a prefix."},
  {name: "prefix", label: "Or a prefix", flag: "prefix", at: ["input_format", "prefix"], placeholder: "train/"},
  {name: "kind", label: "Order", flag: "algorithm", at: ["algorithm", "kind"], options: [
    ["alphanumeric", "Names, byte by byte"], ["natural", "Names, numbers by value"], ["shuffle", "Shuffle"],
    ["content", "A key in each record"], ["md5", "MD5 of the names"], ["none", "As they are"]]},
  {name: "seed", label: "Seed", flag: "seed", at: ["algorithm", "seed"], of: "shuffle", trim: true,
    hint: "The same seed gives the same order."},
  {name: "extension", label: "Member with the key", flag: "extension", at: ["algorithm", "extension"], of: "content",
    placeholder: ".cls"},
  {name: "type", label: "Type of the key", flag: "content-key-type", at: ["algorithm", "content_key_type"], of: "content",
    options: [["string", "text"], ["int", "whole number"], ["float", "number"]]},
  {name: "output", label: "Output bucket", flag: "output-bucket", at: ["output_bck", "name"], trim: true,
    hint: "Empty: the input bucket."},
  {name: "format", label: "Output shards", flag: "output-format", at: ["output_format"], placeholder: "out-%06d.tar",
    required: true},
  {name: "size", label: "Size of a shard", flag: "shard-size", at: ["output_shard_size"], value: "256MiB", trim: true},
  {name: "memory", label: "Memory of each target", flag: "max-mem", at: ["max_mem_usage"], placeholder: "60%", trim: true},
  {name: "description", label: "Description", flag: "description", at: ["description"], trim: true},
];

function given(values) {
  return FIELDS.filter((f) => values[f.name] && (!f.of || f.of === values.kind));
}

export function request(values) {
  const spec = {};
  for (const f of given(values)) {
    const last = f.at.length - 1;
    let at = spec;
    for (const step of f.at.slice(0, last)) at = at[step] ??= {};
    at[f.at[last]] = values[f.name];
  }
  return spec;
}

const quoted = (text) => (/^[\w.,:/%@+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

export function commandLine(values) {
  return ["dfcctl sort start", ...given(values).map((f) => `--${f.flag} ${quoted(values[f.name])}`)].join(" ");
}

function field(f, inputs, changed) {
  const id = `sort-${f.name}`;
  const input = f.options
    ? el("select", {id, on: {change: changed}}, f.options.map(([value, text]) => el("option", {value}, text)))
    : el("input", {id, type: "text", required: f.required, placeholder: f.placeholder, value: f.value ?? "",
      spellcheck: "false", autocomplete: "off", on: {input: changed}});
  const hint = f.hint && el("small", {id: `${id}-hint`}, f.hint);
  if (hint) input.setAttribute("aria-describedby", `${id}-hint`);
  inputs.set(f, input);
  return el("div", {class: "field"}, el("label", {for: id}, f.label), input, hint);
}

export async function show(page) {
  const inputs = new Map();
  const shown = el("div", {});
  const error = el("p", {class: "error", role: "alert"});
  const values = () => Object.fromEntries([...inputs].map(([f, input]) =>
    [f.name, f.trim ? input.value.trim() : input.value]));

  function changed() {
    const now = values();
    for (const [f, input] of inputs) {
      input.parentElement.hidden = Boolean(f.of) && f.of !== now.kind;
    }
    put(shown, el("h3", {}, "As JSON"), el("pre", {tabindex: "0", "aria-label": "The request as JSON"},
      JSON.stringify(request(now), null, 2)),
    el("h3", {}, "As a command"), el("pre", {class: "preview", tabindex: "0", "aria-label": "The request as a command"},
      commandLine(now)));
  }

  async function start(dry) {
    const body = request(values());
    if (dry) body.dry_run = true;
    error.textContent = "";
    try {
      const doc = await api.call("POST", "/v1/sort", {body});
      page.go(`#/jobs/${encodeURIComponent(doc.id)}`);
    } catch (err) {
      error.textContent = err.describe ? err.describe() : String(err);
    }
  }

  const form = el("form", {class: "form", on: {submit: (event) => { event.preventDefault(); start(false); }}},
    FIELDS.map((f) => field(f, inputs, changed)));
  const dry = parts.button("Dry run", () => { if (form.reportValidity()) start(true); });
  form.append(error, el("div", {class: "buttons"}, dry, el("button", {type: "submit", class: "primary"}, "Start the sort")));
  page.root.append(parts.head("Sort a dataset"), el("div", {class: "halves"}, parts.card("Sort", form),
    parts.card("Request", shown)));
  const bucket = page.query.get("bucket");
  if (bucket) document.getElementById("sort-input").value = bucket;
  changed();
}

// Settings of the whole cluster.

import * as api from "../api.js";
import {ask} from "../dialog.js";
import {draw, el, note} from "../dom.js";
import * as parts from "../parts.js";

const CLASSES = {boolean: "true or false", count: "a number", size: "a size, as 64MiB", duration: "a time, as 30s",
  percent: "a share, as 90%", text: "text"};

// As the server takes them.
const UNITS = {size: [["TiB", 2 ** 40], ["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 1024], ["", 1]],
  duration: [["d", 864e5], ["h", 36e5], ["m", 6e4], ["s", 1000], ["ms", 1]], percent: [["%", 1]]};

// 12000 of a duration is "12s".
export function valueText(type, value) {
  const [unit, size] = UNITS[type]?.find(([, n]) => value % n === 0) ?? ["", 1];
  return UNITS[type] && value > 0 ? `${value / size}${unit}` : String(value);
}

// "12s" of a duration is 12000.
export function valueOf(type, text) {
  const [, digits, unit] = /^(\d+)(\D*)$/.exec(text) ?? [];
  const size = UNITS[type]?.find(([name]) => name === unit)?.[1];
  return digits && (size || unit === "") ? Number(digits) * (size ?? 1) : text;
}

function bounds(s) {
  return s.min || s.max ? `${s.min} to ${s.max}` : "–";
}

function askChange(s, load) {
  ask({title: s.name, text: s.help, action: "Change", fields: [
    s.type === "boolean"
      ? {name: "value", label: s.name, value: String(s.value), options: [["true", "true"], ["false", "false"]]}
      : {name: "value", label: s.name, value: valueText(s.type, s.value), trim: true,
        hint: [CLASSES[s.type], s.max && `from ${s.min} to ${s.max}`, `empty: back to the default, ${s.default}`]
          .filter(Boolean).join("; ")}],
  act: async ({value}) => {
    await api.call("PUT", "/v1/cluster", {body: {action: "setconfig", name: s.name, value: value === "" ? null : value}});
    note(`${s.name}: changed`);
    await load();
  }});
}

function row(s, changes, load) {
  const own = String(s.value) !== String(valueOf(s.type, s.default));
  return [el("code", {}, s.name),
    el("span", {class: "break"}, valueText(s.type, s.value), own && el("span", {class: "mark"}, "changed")),
    s.default || "–", bounds(s), el("span", {class: "break"}, s.help),
    changes && parts.button("Change", () => askChange(s, load), "quiet", `change ${s.name}`)];
}

const COLUMNS = [["Setting"], ["Value"], ["Default"], ["Bounds"], ["Meaning"], [""]];

export async function show(page) {
  const box = el("div", {});
  const hint = el("div", {});
  let changes = false;
  page.root.append(parts.head("Settings"), hint, box);

  async function load() {
    const {params} = await api.get("/v1/cluster?what=settings", {signal: page.signal});
    draw(box, [params, changes], () => parts.card(null,
      parts.table("Settings", COLUMNS, params.map((s) => row(s, changes, load)))));
  }

  page.onCluster(async (doc) => {
    if (!doc || page.signal.aborted) return;
    const may = doc.public_auth === true;
    draw(hint, may, () => el("p", {class: "hint"}, may ? "A change lasts, and reaches every node at once. "
      : "Without access control settings are changed by dfcctl config set alone. ",
    "Parameters of a single node: dfcctl config show --node NODE."));
    if (may === changes && box.childNodes.length > 0) return;
    changes = may;
    await load().catch((err) => { if (err.name !== "AbortError") draw(box, err.message, () => parts.errorBox(err)); });
  });
}

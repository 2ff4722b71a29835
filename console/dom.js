// Elements.  Text of the cluster becomes text nodes: nothing here reads markup.

// el("a", {href: "#/nodes", class: "link", on: {click: f}}, "text", otherElement, null)
export function el(tag, props, ...children) {
  return fill(document.createElement(tag), props, children);
}

export function svg(tag, props, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), props, children);
}

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") {
      for (const [event, fn] of Object.entries(value)) node.addEventListener(event, fn);
    } else if (name === "value" || name === "checked" || name === "selected") {
      node[name] = value;
    } else {
      node.setAttribute(name, value === true ? "" : String(value));
    }
  }
  append(node, children);
  return node;
}

function append(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) node.append(child);
  }
}

export function put(node, ...children) {
  node.replaceChildren();
  append(node, children);
}

// Draws `node` anew when `data` has changed since the last time.  What had the focus keeps it: it
// is found by its data-key.
const drawn = new WeakMap();
export function draw(node, data, build) {
  const text = JSON.stringify(data);
  if (drawn.get(node) === text) return;
  drawn.set(node, text);
  const key = node.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  put(node, build(data));
  if (!key) return;
  for (const other of node.querySelectorAll("[data-key]")) {
    if (other.dataset.key === key) other.focus({preventScroll: true});
  }
}

// A line for the moment: what was done, or what went wrong.
export function note(text, kind = "good") {
  const box = el("div", {class: `note ${kind}`}, el("span", {}, text),
    el("button", {type: "button", class: "quiet", "aria-label": "Close this message",
      on: {click: () => box.remove()}}, "✕"));
  document.getElementById("notes").append(box);
  if (kind === "good") setTimeout(() => box.remove(), 6000);
}

export function noteError(err) {
  if (err.name !== "AbortError") note(err.describe ? err.describe() : String(err), "bad");
}

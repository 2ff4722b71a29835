// Dialogs: forms, and the second step before something is taken away.

import {el, noteError} from "./dom.js";

// fields: [{name, label, type, value, hint, options, required, trim}].  trim takes blanks off both ends:
// never those of a password, a prefix or an object's name.  act(values) may throw: the dialog then
// shows the error and stays.  Nothing is sent before the button is pressed.  A page that is left
// takes its dialog along.
export function ask({title, text, fields = [], action, danger = false, confirm, act}) {
  const inputs = new Map();
  const rows = fields.map((f) => row(f, inputs));
  const word = confirm ? el("input", {type: "text", autocomplete: "off", spellcheck: "false",
    id: "dialog-word", on: {input: judge}}) : null;
  const error = el("p", {class: "error", role: "alert"});
  const go = el("button", {type: "submit", class: danger ? "danger" : "primary"}, action);
  const cancel = el("button", {type: "button", on: {click: () => box.close()}}, "Cancel");
  const form = el("form", {method: "dialog", on: {submit}},
    el("h2", {id: "dialog-title"}, title),
    [text].flat().filter(Boolean).map((line) => el("p", {}, line)), rows,
    word && el("div", {class: "field"}, el("label", {for: "dialog-word"}, "Type ",
      el("strong", {}, confirm), " to go on"), word),
    error, el("div", {class: "buttons"}, cancel, go));
  const box = el("dialog", {"aria-labelledby": "dialog-title", on: {close: closed}}, form);
  const leave = () => box.close();

  function closed() {
    window.removeEventListener("hashchange", leave);
    box.remove();
  }

  function judge() {
    go.disabled = Boolean(word) && word.value !== confirm;
  }

  async function submit(event) {
    event.preventDefault();
    const values = {};
    for (const [f, input] of inputs)
      values[f.name] = input.type === "checkbox" ? input.checked : f.trim ? input.value.trim() : input.value;
    go.disabled = true;
    error.textContent = "";
    try {
      await act(values);
      box.close();
    } catch (err) {
      if (err.name === "AbortError") return box.close(); // what was asked is done, and the page is left
      error.textContent = err.describe ? err.describe() : String(err);
      if (!err.describe) noteError(err);
      judge();
    }
  }

  judge();
  window.addEventListener("hashchange", leave);
  document.body.append(box);
  box.showModal();
  return box;
}

function row(f, inputs) {
  const id = `dialog-${f.name}`;
  let input;
  if (f.options) {
    input = el("select", {id}, f.options.map(([value, text]) =>
      el("option", {value, selected: value === f.value}, text)));
  } else {
    input = el("input", {id, type: f.type ?? "text", required: f.required, min: f.min, max: f.max,
      autocomplete: "off", spellcheck: "false", placeholder: f.placeholder,
      value: f.type === "checkbox" ? undefined : f.value ?? "", checked: f.type === "checkbox" && f.value});
  }
  if (f.hint) input.setAttribute("aria-describedby", `${id}-hint`);
  inputs.set(f, input);
  const hint = f.hint && el("small", {id: `${id}-hint`}, f.hint);
  return f.type === "checkbox"
    ? el("div", {class: "field check"}, el("label", {for: id}, input, " ", f.label), hint)
    : el("div", {class: "field"}, el("label", {for: id}, f.label), input, hint);
}

// Light, dark, or what the system says.

import {el} from "./dom.js";

const PLACE = "dfc-theme";
const NAMES = {system: "Automatic", light: "Light", dark: "Dark"};

function set(name) {
  if (name === "system") document.documentElement.removeAttribute("data-theme");
  else document.documentElement.setAttribute("data-theme", name);
}

function stored() {
  const name = localStorage.getItem(PLACE);
  return name in NAMES ? name : "system";
}

export function begin() {
  set(stored());
}

export function chooser() {
  const choice = el("select", {"aria-label": "Colours", "data-key": "theme", on: {change: () => {
    localStorage.setItem(PLACE, choice.value);
    set(choice.value);
  }}}, Object.entries(NAMES).map(([name, text]) =>
    el("option", {value: name, selected: name === stored()}, text)));
  return choice;
}

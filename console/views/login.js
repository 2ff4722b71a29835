// Login: a person's password, or an access key's proof.

import * as api from "../api.js";
import {el, put} from "../dom.js";
import * as session from "../session.js";

function field(id, label, props) {
  return el("div", {class: "field"}, el("label", {for: id}, label),
    el("input", {id, required: true, spellcheck: "false", autocapitalize: "none", ...props}));
}

const KINDS = {
  password: {
    title: "User and password",
    fields: () => [field("login-user", "User", {type: "text", autocomplete: "username"}),
      field("login-secret", "Password", {type: "password", autocomplete: "current-password"})],
    body: (user, secret) => ({user, password: secret}),
  },
  key: {
    title: "Access key",
    fields: () => [field("login-user", "Access key", {type: "text", autocomplete: "off"}),
      field("login-secret", "Secret key", {type: "password", autocomplete: "off"})],
    body: (access, secret) => session.keyLogin(access, secret),
  },
};

export async function show(page) {
  const inClear = session.isInClear(location);
  let kind = inClear ? KINDS.key : KINDS.password;
  const fields = el("div", {});
  const error = el("p", {class: "error", role: "alert"});
  const choose = (name) => { kind = KINDS[name]; put(fields, kind.fields()); };
  const kinds = el("fieldset", {class: "choice"}, el("legend", {}, "Log in with"),
    Object.entries(KINDS).map(([name, k]) => el("label", {},
      el("input", {type: "radio", name: "kind", value: name, checked: k === kind,
        on: {change: () => choose(name)}}), " ", k.title)));
  const go = el("button", {type: "submit", class: "primary"}, "Log in");

  async function submit(event) {
    event.preventDefault();
    const user = document.getElementById("login-user").value.trim();
    const secret = document.getElementById("login-secret").value;
    error.textContent = "";
    if (kind === KINDS.password && inClear) {
      error.textContent = "A password is not sent in clear: use https, or an access key.";
      return;
    }
    go.disabled = true;
    try {
      const doc = await api.call("POST", "/v1/auth/token", {body: kind.body(user, secret)});
      session.begin(doc, doc.user ?? user);
      await page.refresh();
      const to = page.query.get("to") ?? "";
      page.go(to.startsWith("#/") && !to.startsWith("#/login") ? to : "#/overview");
    } catch (err) {
      error.textContent = err.describe ? err.describe() : String(err);
    } finally {
      go.disabled = false;
    }
  }

  put(fields, kind.fields());
  put(page.root, el("form", {class: "card login", on: {submit}}, el("h1", {}, "Log in"),
    kinds, fields, error, go,
    el("p", {class: "hint"}, "The login is kept in this tab alone, and ends with it.")));
}

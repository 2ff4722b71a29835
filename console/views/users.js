// Users and roles: who may do what.

import * as api from "../api.js";
import {ask} from "../dialog.js";
import {draw, el, note} from "../dom.js";
import * as parts from "../parts.js";

const at = (name) => `/v1/users/${encodeURIComponent(name)}`;
const RIGHTS = {bucket: ["list", "read", "write", "delete", "admin"],
  cluster: ["see", "jobs", "operate", "users", "create", "admin"]};

function grantText(g) {
  const place = g.bucket ? `on ${g.bucket}${g.prefix ? `/${g.prefix}` : ""}` : "on the cluster";
  return `${(g.rights ?? []).join(", ")} ${place}`;
}

const grantsText = (from) => (from.grants ?? []).map(grantText).join("; ") || "–";

function askCreate(page) {
  ask({title: "Create a user", action: "Create", fields: [{name: "name", label: "Name", required: true, trim: true},
    {name: "kind", label: "Kind", options: [["service", "service: a program, with access keys"],
      ["person", "person: may have a password, too"]]},
    {name: "roles", label: "Roles", hint: "Names of roles, separated by commas. Grants can be given afterwards."}],
  act: async ({name, kind, roles}) => {
    const list = roles.split(",").map((r) => r.trim()).filter(Boolean);
    await api.call("POST", "/v1/users", {body: {name, kind, ...(list.length > 0 && {roles: list})}});
    note(`User ${name}: created`);
    page.go(`#/users/${encodeURIComponent(name)}`);
  }});
}

const COLUMNS = [["User"], ["Kind"], ["State"], ["Roles"], ["Grants"], ["Keys", "right"]];

function stateBadge(u) {
  return u.enabled === false ? parts.badge("warn", "disabled") : parts.badge("good", "enabled");
}

function row(u) {
  return [el("a", {href: `#/users/${encodeURIComponent(u.name)}`, "data-key": `user ${u.name}`}, u.name),
    u.kind ?? "–", stateBadge(u), (u.roles ?? []).join(", ") || "–",
    el("span", {class: "break"}, grantsText(u)), String(u.keys?.length ?? 0)];
}

function roleRow(r) {
  return [r.name, r.builtin ? "built in" : "of this cluster", el("span", {class: "break"}, grantsText(r))];
}

const OPEN = () => el("p", {}, "This cluster has no access control, and so no users: start all nodes with ",
  el("code", {}, "--public-auth"), ".");

// Calls fn() once it is known that the cluster has access control.
function guarded(page, box, fn) {
  let begun = false;
  page.onCluster((doc) => {
    if (!doc || begun) return;
    begun = true;
    if (doc.public_auth === false) draw(box, "open", OPEN);
    else fn().catch((err) => { if (err.name !== "AbortError") draw(box, err.message, () => parts.errorBox(err)); });
  });
}

export async function show(page) {
  const box = el("div", {});
  page.root.append(parts.head("Users"), box);
  guarded(page, box, async () => {
    const {users} = await api.get("/v1/users", {signal: page.signal});
    const {roles} = await api.get("/v1/roles", {signal: page.signal});
    draw(box, [users, roles], () => [
      el("div", {class: "buttons"}, parts.button("Create a user", () => askCreate(page), "primary")),
      parts.card(null, parts.table("Users", COLUMNS, users.map(row), "There is no user.")),
      parts.card("Roles", parts.table("Roles", [["Role"], ["Origin"], ["Grants"]], roles.map(roleRow)))]);
  });
}

// --- one user -----------------------------------------------------------------------------------

function askGrant(u, load) {
  ask({title: `Give ${u.name} a right`, action: "Give", fields: [
    {name: "rights", label: "Rights", required: true, value: "read,list",
      hint: `On a bucket: ${RIGHTS.bucket.join(", ")}. On the cluster: ${RIGHTS.cluster.join(", ")}.`},
    {name: "bucket", label: "Bucket", trim: true, hint: "A name, or the begin of names and *. Empty: on the cluster."},
    {name: "prefix", label: "Prefix", hint: "Of objects' names. Empty: all objects."}],
  act: async ({rights, bucket, prefix}) => {
    const list = rights.split(",").map((r) => r.trim()).filter(Boolean);
    const value = {rights: list, ...(bucket && {bucket}), ...(prefix && {prefix})};
    await api.call("POST", `${at(u.name)}/grants`, {body: {action: "grant", value}});
    note(`${u.name}: ${grantText(value)}`);
    await load();
  }});
}

function askRevoke(u, g, load) {
  ask({title: `Take a right from ${u.name}`, text: grantText(g), action: "Take it", danger: true, act: async () => {
    await api.call("POST", `${at(u.name)}/grants`, {body: {action: "revoke", value: g}});
    await load();
  }});
}

function askRemove(page, u) {
  ask({title: `Remove ${u.name}`, text: "The user and its keys are removed. Its tokens end.", danger: true,
    action: "Remove the user", confirm: u.name, act: async () => {
      await api.call("DELETE", at(u.name));
      note(`User ${u.name}: removed`);
      page.go("#/users");
    }});
}

function askKey(u, secretBox, load) {
  ask({title: `Make an access key of ${u.name}`, text: "Its secret is shown once. A user has two keys at most.",
    action: "Make a key", act: async () => {
      const key = await api.call("POST", `${at(u.name)}/keys`);
      draw(secretBox, key, () => parts.card("The new key", el("p", {}, "Copy the secret now: it is not shown again."),
        parts.facts([["Access key", el("code", {}, key.access)], ["Secret key", el("code", {}, key.secret)]])));
      await load();
    }});
}

function askRemoveKey(u, key, load) {
  ask({title: `Remove a key of ${u.name}`, text: `The key ${key.access} and its tokens end.`, danger: true,
    action: "Remove the key", act: async () => {
      await api.call("DELETE", `${at(u.name)}/keys/${encodeURIComponent(key.access)}`);
      await load();
    }});
}

function askPassword(u) {
  ask({title: `Password of ${u.name}`, text: "Tokens that were issued before end.", action: "Set the password",
    fields: [{name: "password", label: "New password", type: "password", required: true}], act: async ({password}) => {
      await api.call("PUT", `${at(u.name)}/password`, {body: {password}});
      note(`${u.name}: the password is set`);
    }});
}

async function setEnabled(u, load) {
  await api.call("PUT", at(u.name), {body: {enabled: u.enabled === false}});
  await load();
}

function buttons(page, u, secretBox, load) {
  return el("div", {class: "buttons"}, parts.button("Give a right", () => askGrant(u, load)),
    parts.button("Make a key", () => askKey(u, secretBox, load)),
    u.kind === "person" && parts.button("Set a password", () => askPassword(u)),
    parts.button(u.enabled === false ? "Enable" : "Disable", () => setEnabled(u, load)),
    parts.button("Remove", () => askRemove(page, u), "danger"));
}

export async function showOne(page) {
  const box = el("div", {});
  const secretBox = el("div", {});
  page.root.append(parts.head(page.id), secretBox, box);
  async function load() {
    const u = await api.get(at(page.id), {signal: page.signal});
    const grants = u.grants ?? [], keys = u.keys ?? [];
    draw(box, u, () => [buttons(page, u, secretBox, load),
      parts.card("User", parts.facts([["State", stateBadge(u)], ["Kind", u.kind], ["Roles", (u.roles ?? []).join(", ") || "–"],
        ["Requests a second", u.rate?.requests], ["Bytes a second", u.rate?.bytes]])),
      parts.card("Rights", parts.table("Rights", [["Rights"], [""]], grants.map((g) => [grantText(g),
        parts.button("Take", () => askRevoke(u, g, load), "quiet", `take ${grantText(g)}`)]),
      "The user has no grant of its own.")),
      parts.card("Access keys", parts.table("Access keys", [["Access key"], ["Created"], [""]], keys.map((k) => [
        el("code", {}, k.access), parts.when(k.created_ms),
        parts.button("Remove", () => askRemoveKey(u, k, load), "quiet", `remove ${k.access}`)]),
      "The user has no key."))]);
  }
  guarded(page, box, load);
}

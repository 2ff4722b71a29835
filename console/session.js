// Who is logged in.  The token is in this tab's memory and sessionStorage: there is no cookie, so
// that no page of another site can use it.

import {hmacHex, randomHex} from "./sha256.js";

const PLACE = "dfc-session";
let current = read();
const watchers = new Set();  // called when the login ends

function read() {
  try {
    const doc = JSON.parse(sessionStorage.getItem(PLACE));
    return doc && doc.expires_ms > Date.now() ? doc : null;
  } catch {
    return null;
  }
}

export function token() {
  return current?.token ?? null;
}

export function userName() {
  return current?.name ?? null;
}

export function begin(doc, name) {
  current = {token: doc.token, expires_ms: doc.expires_ms, name};
  sessionStorage.setItem(PLACE, JSON.stringify(current));
}

export function end() {
  current = null;
  sessionStorage.removeItem(PLACE);
  for (const fn of [...watchers]) fn();
}

export function watchEnd(fn) {
  watchers.add(fn);
}

export function unwatchEnd(fn) {
  watchers.delete(fn);
}

// Would the network read a password that is sent to this location?  The proxy refuses it then, but
// only when it has come.
export function isInClear({protocol, hostname}) {
  const here = hostname === "localhost" || hostname === "[::1]" || /^127(\.\d{1,3}){3}$/.test(hostname);
  return protocol !== "https:" && !here;
}

// The body of a login with an access key: a proof of its secret, which is not sent.
export function keyLogin(access, secret) {
  const time_ms = Date.now();
  const nonce = randomHex(32);
  const text = `dfc-login-1\n${access}\n${time_ms}\n${nonce}\n`;
  return {access, time_ms, nonce, proof: hmacHex(secret, text)};
}

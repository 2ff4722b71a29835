// Calls of the public API, as any client makes them.

import * as session from "./session.js";

export class ApiError extends Error {
  constructor(status, doc) {
    super(doc.message ?? `the reply has status ${status}`);
    Object.assign(this, {status, code: doc.code ?? "", node: doc.node, id: doc.request_id});
  }

  describe() {
    const where = [this.code, this.node, this.id].filter(Boolean).join(" · ");
    return where ? `${this.message} (${where})` : this.message;
  }
}

let onDenied = () => {};
export function whenUnauthorized(fn) {
  onDenied = fn;
}

const segment = encodeURIComponent;

export const paths = {
  bucket: (bucket) => `/v1/buckets/${segment(bucket)}`,
  list: (bucket) => `/v1/objects/${segment(bucket)}`,
  job: (id) => `/v1/jobs/${segment(id)}`,
  // "." and ".." as segments of a path would be taken away by the browser.
  object: (bucket, object) => `/v1/objects/${segment(bucket)}/` +
    (/(^|\/)\.{1,2}(\/|$)/.test(object) ? segment(object) : object.split("/").map(segment).join("/")),
};

export function query(params) {
  const text = Object.entries(params).filter(([, v]) => v !== undefined && v !== null && v !== "")
    .map(([k, v]) => `${k}=${segment(v)}`).join("&");
  return text ? `?${text}` : "";
}

export function authorization() {
  const token = session.token();
  return token ? {Authorization: `Bearer ${token}`} : {};
}

// `sent`: the authorization() of the request.  A refusal of an earlier login ends no later one.
export async function failure(status, text, sent) {
  let doc = {};
  try {
    doc = JSON.parse(text);
  } catch {
    doc = {message: text ? text.slice(0, 300) : undefined};
  }
  if (status === 401 && sent.Authorization === authorization().Authorization) onDenied();
  return new ApiError(status, doc);
}

// The reply; an ApiError for anything but 2xx.  A node that cannot be reached is one, too.
export async function request(method, path, {body, headers, signal} = {}) {
  const sent = authorization();
  const options = {method, signal, headers: {...sent, ...headers}, redirect: "follow",
    credentials: "omit", cache: "no-store"};
  if (body !== undefined) {
    options.body = JSON.stringify(body);
    options.headers["Content-Type"] = "application/json";
  }
  let reply;
  try {
    reply = await fetch(path, options);
  } catch (err) {
    if (err.name === "AbortError") throw err;
    throw new ApiError(0, {message: "this proxy does not answer", code: "not_connected"});
  }
  if (!reply.ok) throw await failure(reply.status, method === "HEAD" ? "" : await reply.text(), sent);
  return reply;
}

export async function call(method, path, options) {
  const reply = await request(method, path, options);
  const text = await reply.text();
  return text ? JSON.parse(text) : null;
}

export const get = (path, options) => call("GET", path, options);

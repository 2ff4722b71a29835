// Uploads: one streamed PUT for each file, with its progress, through the proxy.  Each is sent with
// the login that it was added with.  The end of a login aborts all of them.

import * as api from "../api.js";
import {el, note} from "../dom.js";
import * as format from "../format.js";
import {bar, button} from "../parts.js";
import * as session from "../session.js";

const AT_ONCE = 3;

export function uploader(bucket, done) {
  const list = el("ul", {class: "uploads"});
  const waiting = [];
  const running = new Set();
  const busy = () => running.size > 0 || waiting.length > 0;

  function next() {
    while (running.size < AT_ONCE && waiting.length > 0) {
      const upload = waiting.shift();
      running.add(upload);
      upload.start();
    }
    if (!busy()) session.unwatchEnd(abortAll);
  }

  // The queue first: the end of one that runs begins the next.
  function abortAll() {
    for (const upload of waiting.splice(0)) upload.end("Aborted.");
    for (const upload of [...running]) upload.abort();
  }

  function add(file, name, overwrite = false) {
    const state = el("span", {class: "detail"}, "waits");
    const meter = el("div", {});
    const buttons = el("div", {class: "buttons"});
    const item = el("li", {}, el("span", {class: "break name"}, name), meter, state, buttons);
    const xhr = new XMLHttpRequest();
    const sent = api.authorization();
    const upload = {start, end, abort: () => xhr.abort()};
    const close = button("Close", () => item.remove(), "quiet");
    let ended = false;

    function end(text, ...more) {
      if (ended) return;
      ended = true;
      running.delete(upload);
      state.textContent = text;
      buttons.replaceChildren(...more, close);
      next();
    }

    function start() {
      xhr.open("PUT", `${api.paths.object(bucket, name)}${api.query({redirect: "never"})}`);
      for (const [header, value] of Object.entries(sent)) xhr.setRequestHeader(header, value);
      xhr.setRequestHeader("Content-Type", file.type || "application/octet-stream");
      if (!overwrite) xhr.setRequestHeader("If-None-Match", "*");
      xhr.upload.onprogress = (event) => {
        meter.replaceChildren(bar(event.loaded, event.total, `upload of ${name}`, "busy"));
        state.textContent = `${format.bytes(event.loaded)} of ${format.bytes(event.total)}`;
      };
      xhr.onload = loaded;
      xhr.onerror = () => end("This proxy does not answer.");
      xhr.onabort = () => end("Aborted.");
      xhr.send(file);
    }

    async function loaded() {
      if (xhr.status === 412 && !overwrite) {
        end("An object of this name exists.", button("Replace it", () => {
          item.remove();
          add(file, name, true);
        }, "danger"));
      } else if (xhr.status >= 200 && xhr.status < 300) {
        end(`Stored, ${format.bytes(file.size)}.`);
        note(`${name}: stored`);
        done();
      } else {
        end((await api.failure(xhr.status, xhr.responseText, sent)).describe());
      }
    }

    buttons.append(button("Abort", () => {
      const at = waiting.indexOf(upload);
      if (at < 0) {
        xhr.abort();
      } else {
        waiting.splice(at, 1);
        end("Aborted.");
      }
    }, "quiet"));
    list.append(item);
    session.watchEnd(abortAll);
    waiting.push(upload);
    next();
  }

  return {list, add, busy};
}

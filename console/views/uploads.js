// Uploads: one streamed PUT for each file, with its progress, through the proxy.

import * as api from "../api.js";
import {el, note} from "../dom.js";
import * as format from "../format.js";
import {bar, button} from "../parts.js";

const AT_ONCE = 3;

export function uploader(bucket, done) {
  const list = el("ul", {class: "uploads"});
  const waiting = [];
  let running = 0;

  function next() {
    while (running < AT_ONCE && waiting.length > 0) {
      running++;
      waiting.shift()();
    }
  }

  function add(file, name, overwrite = false) {
    const state = el("span", {class: "detail"}, "waits");
    const meter = el("div", {});
    const buttons = el("div", {class: "buttons"});
    const item = el("li", {}, el("span", {class: "break name"}, name), meter, state, buttons);
    const xhr = new XMLHttpRequest();
    const close = button("Close", () => item.remove(), "quiet");
    let ended = false;

    function end(text, ...more) {
      if (ended) return;
      ended = true;
      running--;
      state.textContent = text;
      buttons.replaceChildren(...more, close);
      next();
    }

    function start() {
      xhr.open("PUT", `${api.paths.object(bucket, name)}${api.query({redirect: "never"})}`);
      for (const [header, value] of Object.entries(api.authorization())) xhr.setRequestHeader(header, value);
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
        end((await api.failure(xhr.status, xhr.responseText)).describe());
      }
    }

    buttons.append(button("Abort", () => {
      const at = waiting.indexOf(start);
      if (at >= 0) {
        waiting.splice(at, 1);
        running++;  // as if it had begun: end() takes it off
        end("Aborted.");
      } else {
        xhr.abort();
      }
    }, "quiet"));
    list.append(item);
    waiting.push(start);
    next();
  }

  return {list, add, busy: () => running > 0 || waiting.length > 0};
}

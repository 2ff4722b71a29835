#!/usr/bin/env python3
"""A cluster in one process, for tests of clients: a proxy and two targets that follow
docs/reference/http.md
closely, and misbehave when they are told to.

In Python:

    with MockCluster() as m:
        m.plan({"at": "target", "method": "GET", "do": "cut", "bytes": 1000})
        ... m.endpoint, m.log, m.buckets ...

From other languages:  mock_cluster.py  prints the proxy's port and serves until standard input
ends; PUT /mock/plan, PUT /mock/auth (mock_auth.py), GET /mock/log and DELETE /mock (forget
everything) steer it.

A step of a plan applies to the first request that matches (`at`: proxy or target; `method`;
`path`: a regular expression), once, or `times` times.  What it can `do`:

    status   reply with `status` and `code`, maybe `retry_after` (seconds), `location`
             and `challenge` (WWW-Authenticate)
    drop     read the request, then close without a reply
    act      do what was asked, then close without a reply
    cut      send only `bytes` bytes of the body, then close; with `change` the object is
             replaced by those bytes afterwards
    hold     send only `bytes` bytes of the body, then nothing until the mock is closed
    corrupt  flip a bit of the body
    damage   store an upload's part with a flipped bit
    stall    wait `seconds` before the reply (the wait ends early when the mock is closed)
    garbage  reply with a body that is not JSON
"""
import http.server
import json
import re
import socket
import socketserver
import sys
import threading
import urllib.parse

import mock_archives
import mock_auth
import mock_uploads
from mock_objects import Failure, Object, listed


class Handler(mock_uploads.Calls, http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    invited = False

    # -- plumbing

    @property
    def mock(self):
        return self.server.mock

    def log_message(self, *args):
        pass

    def handle_expect_100(self):
        """The body is invited only once nothing speaks against the request."""
        self.invited = True
        return True

    def read_body(self):
        if self.invited:
            self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self.invited = False
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            parts = []
            while True:
                size = int(self.rfile.readline().split(b";")[0], 16)
                parts.append(self.rfile.read(size))
                self.rfile.readline()
                if size == 0:
                    return b"".join(parts)
        length = int(self.headers.get("Content-Length", 0))
        data = self.rfile.read(length)
        if len(data) != length:
            raise ConnectionError("short body")
        return data

    def note(self, body):
        if self.noted:
            return
        self.noted = True
        with self.mock.lock:
            self.mock.log.append({
                "at": self.server.role, "node": self.server.node, "method": self.command,
                "path": self.path, "body": None if body is None else len(body),
                "headers": {k.lower(): v for k, v in self.headers.items()}})

    def send(self, status, body=b"", headers=None, cut=None):
        self.send_response(status)
        self.send_header("Dfc-Node", self.server.node)
        self.send_header("X-Request-Id", self.headers.get("X-Request-Id", "none"))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if "Content-Length" not in (headers or {}):
            self.send_header("Content-Length", str(len(body)))
        if self.invited:
            self.close_connection = True
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command == "HEAD":
            return
        if cut is not None:
            self.wfile.write(body[:cut])
            if self.step["do"] == "hold":
                self.wfile.flush()
                self.mock.closing.wait()
            self.hang_up()
            return
        self.wfile.write(body)

    def send_json(self, status, value, headers=None):
        all_headers = {"Content-Type": "application/json"}
        all_headers.update(headers or {})
        self.send(status, json.dumps(value).encode(), all_headers)

    def hang_up(self):
        self.wfile.flush()
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def fail(self, f):
        body = {"status": f.status, "code": f.code, "message": f.message,
                "node": self.server.node, "request_id": self.headers.get("X-Request-Id", "none")}
        self.send_json(f.status, body, f.headers)

    # -- the plan

    def planned(self):
        with self.mock.lock:
            for step in self.mock.steps:
                if step.get("at") not in (None, self.server.role):
                    continue
                if step.get("method") not in (None, self.command):
                    continue
                if not re.search(step.get("path", ""), self.path):
                    continue
                step["times"] = step.get("times", 1) - 1
                if step["times"] <= 0:
                    self.mock.steps.remove(step)
                return step
        return {"do": None}

    def serve(self):
        self.body = None
        self.noted = False
        parts = urllib.parse.urlsplit(self.path)
        self.url_path = parts.path
        self.query = dict(urllib.parse.parse_qsl(parts.query, keep_blank_values=True))
        if parts.path.startswith("/mock"):
            self.steer()
            return
        self.step = self.planned()
        do = self.step["do"]
        try:
            if do == "stall":
                self.mock.closing.wait(self.step["seconds"])
            if do == "status":
                if not self.invited and self.command in ("PUT", "POST"):
                    self.body = self.read_body()
                headers = {}
                if "retry_after" in self.step:
                    headers["Retry-After"] = str(self.step["retry_after"])
                if "challenge" in self.step:
                    headers["WWW-Authenticate"] = self.step["challenge"]
                if "location" in self.step:
                    headers["Location"] = self.step["location"]
                raise Failure(self.step["status"], self.step.get("code", "overloaded"),
                              "as planned", headers)
            if do == "drop":
                self.body = self.read_body()
                self.note(self.body)
                self.hang_up()
                return
            if do == "garbage":
                self.send(200, b"<html>no JSON</html>")
                return
            self.route()
        except Failure as f:
            if self.body is None and not self.invited:
                self.body = self.read_body()  # the next request stands behind it
            self.note(self.body)
            self.fail(f)
        except (BrokenPipeError, ConnectionError, ValueError):
            self.note(self.body)
            self.close_connection = True

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = serve

    def steer(self):
        if self.path == "/mock/auth":
            self.mock.auth.change(json.loads(self.read_body()))
            self.send_json(200, {})
            return
        with self.mock.lock:
            if self.command == "PUT":
                self.mock.steps.extend(json.loads(self.read_body()))
                value = {}
            elif self.command == "DELETE":
                self.mock.steps.clear()
                self.mock.log.clear()
                self.mock.buckets.clear()
                self.mock.jobs.clear()
                self.mock.auth.forget()
                value = {}
            else:
                value = self.mock.log
        self.send_json(200, value)

    # -- routes

    def login(self):
        body = self.body = self.read_body()
        self.note(body)
        reply = self.mock.auth.login(body)
        if reply is None:
            raise Failure(401, "unauthorized", "the proof is not of the key's secret")
        self.send_json(200, reply)

    def check_proof(self):
        word = self.mock.auth.refusal(self.server.role, self.headers.get("Authorization"),
                                      self.query)
        if word is not None:
            challenge = 'Bearer realm="dfc", error="%s"' % word
            raise Failure(401, "unauthorized", "the call needs a token",
                          {"WWW-Authenticate": challenge})

    def route(self):
        if self.url_path == "/v1/auth/token":
            self.login()
            return
        self.check_proof()
        words = self.url_path.split("/", 4)  # "", "v1", noun, a, rest
        noun = words[2] if len(words) > 2 else ""
        first = urllib.parse.unquote(words[3]) if len(words) > 3 else ""
        rest = urllib.parse.unquote(words[4]) if len(words) > 4 else ""
        if noun == "objects" and rest:
            self.object_call(first, rest)
        elif noun == "uploads" and rest:
            self.upload_call(first, rest)
        elif noun == "uploads":
            self.upload_list(first)
        elif noun == "objects":
            self.list_call(first)
        elif noun == "buckets":
            self.bucket_call(first)
        elif noun == "cluster":
            self.note(None)
            self.send_json(200, self.mock.overview())
        elif noun == "auth" and first == "whoami":
            self.note(None)
            self.send_json(200, {"id": "0" * 32, "name": "somebody", "kind": "service",
                                 "enabled": True})
        elif noun == "daemon":
            self.note(None)
            if self.query.get("what") in ("summary", "cached") and self.mock.summaries:
                self.send_json(200, self.mock.summary())
                return
            if self.query.get("what") in self.mock.shown:
                self.send_json(200, self.mock.shown[self.query["what"]])
                return
            self.send_json(200, {"id": self.server.node, "role": self.server.role,
                                 "pid": 1, "what": self.query.get("what", "")})
        elif noun in ("sort", "jobs"):
            self.job_call(noun, first)
        else:
            raise Failure(404, "no_such_route", "no call has the path " + self.url_path)

    def bucket(self, name):
        if name not in self.mock.buckets:
            raise Failure(404, "bucket_not_found", "bucket '%s' does not exist" % name)
        return self.mock.buckets[name]

    def bucket_document(self, name):
        return {"name": name, "id": 7, "created_ms": 1700000000000, "props": self.bucket(name)[0]}

    def bucket_call(self, name):
        body = self.body = self.read_body()
        self.note(body)
        action = json.loads(body) if body else {}
        if self.command == "GET" and name in ("", "*"):
            names = sorted(self.mock.buckets)
            self.send_json(200, {"buckets": [self.bucket_document(n) for n in names], **self.mock.more})
        elif self.command == "POST":
            if name in self.mock.buckets:
                raise Failure(409, "bucket_exists", "bucket '%s' exists" % name)
            props = {"copies": 1, "durability": "sync", "checksum": "xxh3",
                     "verify_on_read": False, "backend": None}
            if ((action.get("value") or {}).get("backend") or "").startswith("tape:"):
                raise Failure(501, "not_supported", "backend: this release reads no tapes")
            props.update(action.get("value") or {})
            self.mock.buckets[name] = (props, {})
            self.reply_unless_act(201, {})
        elif self.command == "PUT":
            self.bucket(name)[0].update(action["value"])
            self.send_json(200, {})
        elif self.command == "DELETE":
            self.bucket(name)
            del self.mock.buckets[name]
            self.reply_unless_act(204, None)
        else:
            self.send_json(200, self.bucket_document(name))

    def reply_unless_act(self, status, value):
        if self.step["do"] == "act":
            self.hang_up()
        elif value is None:
            self.send(status)
        else:
            self.send_json(status, value)

    def list_call(self, name):
        self.note(None)
        objects = self.bucket(name)[1]
        prefix, delimiter = self.query.get("prefix", ""), self.query.get("delimiter", "")
        after = self.query.get("token") or self.query.get("start_after", "")
        limit = min(int(self.query.get("limit", 1000)), self.mock.page_limit)
        entries, prefixes, last, more = [], [], "", False
        for key in sorted(listed(objects, self.query), key=lambda k: k.encode()):
            if not key.startswith(prefix) or key.encode() <= after.encode():
                continue
            fold = None
            if delimiter and delimiter in key[len(prefix):]:
                fold = prefix + key[len(prefix):].split(delimiter)[0] + delimiter
                if after.startswith(fold):
                    continue
            if fold is not None and fold in prefixes:
                last = key
                continue
            if len(entries) + len(prefixes) >= limit:
                more = True
                break
            if fold is not None:
                prefixes.append(fold)
            else:
                o = objects[key]
                entries.append({"name": key, "size": len(o.data), "version": o.version,
                                "checksum": o.checksum, "modified_ms": o.modified * 1000})
            last = key
        self.send_json(200, {"entries": entries, "prefixes": prefixes,
                             "next": last if more else "",
                             "incomplete": self.query.get("partial") == "true"})

    def redirect(self, key):
        if not self.invited and self.command in ("PUT", "POST"):
            self.body = self.read_body()
        self.note(self.body)
        joint = "&" if "?" in self.path else "?"
        proof = "&dfca=" + mock_auth.PROOF if self.mock.auth.secrets else ""
        location = "http://%s:%d%s%sdfcb=7&dfcv=1.1%s" % (
            "127.0.0.1", self.mock.owner(key), self.path, joint, proof)
        self.send(307, b"", {"Location": location})

    def object_call(self, bucket, key):
        if self.server.role == "proxy":
            self.redirect(key)
            return
        objects = self.bucket(bucket)[1]
        if self.command == "PUT":
            self.object_put(objects, key)
            return
        self.note(None)
        if key not in objects:
            raise Failure(404, "object_not_found", "object '%s/%s' does not exist" % (bucket, key))
        if self.command == "DELETE":
            objects[key].need_match(self.headers.get("If-Match"))
            del objects[key]
            self.reply_unless_act(204, None)
        else:
            self.object_get(objects, key)

    def object_put(self, objects, key):
        if self.headers.get("If-None-Match") == "*" and key in objects:
            raise Failure(412, "precondition_failed", "it is there")
        match = self.headers.get("If-Match")
        if match and (key not in objects or objects[key].etag != match):
            raise Failure(412, "precondition_failed", "it is another")
        if "members" in self.query and key not in objects:
            raise Failure(404, "object_not_found", "there is no archive")
        body = self.body = self.read_body()
        self.note(body)
        if self.step["do"] == "corrupt":
            body = body[:-1] + bytes([body[-1] ^ 1])
        if "members" in self.query:
            new = mock_archives.appended(objects[key], self.query, self.headers, body)
            self.object_store(objects, key, new)
            return
        sent = self.headers.get("Dfc-Checksum-Value")
        new = Object(body, self.headers.get("Content-Type"),
                     {k[9:]: v for k, v in self.headers.items()
                      if k.lower().startswith("dfc-meta-")})
        if sent and self.headers["Dfc-Checksum-Type"] == new.checksum["type"] \
                and sent != new.checksum["value"]:
            raise Failure(422, "checksum_mismatch", "the bytes do not have the checksum")
        self.object_store(objects, key, new)

    def object_store(self, objects, key, new):
        objects[key] = new
        self.reply_unless_act(200, {"size": len(new.data), "checksum": new.checksum,
                                    "version": new.version, "etag": new.etag})

    def object_get(self, objects, key):
        o = objects[key]
        headers = {"Content-Type": o.content_type, "ETag": o.etag, "Dfc-Version": o.version,
                   "Accept-Ranges": "bytes", "Last-Modified": self.date_time_string(o.modified),
                   "Dfc-Checksum-Type": o.checksum["type"],
                   "Dfc-Checksum-Value": o.checksum["value"]}
        headers.update({"Dfc-Meta-" + k: v for k, v in o.meta.items()})
        o.need_match(self.headers.get("If-Match"))
        if self.headers.get("If-None-Match") == o.etag:
            self.send(304, b"", headers)
            return
        status, data = 200, o.data
        asked = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if asked and self.command == "GET":
            first, last = self.resolve(asked, len(data))
            status = 206
            headers["Content-Range"] = "bytes %d-%d/%d" % (first, last, len(data))
            data = data[first:last + 1]
        if self.command == "HEAD":
            headers["Content-Length"] = str(len(data))
        if self.step["do"] == "corrupt":
            data = bytes([data[0] ^ 1]) + data[1:]
        cut = self.step["bytes"] if self.step["do"] in ("cut", "hold") else None
        self.send(status, data, headers, cut)
        if "change" in self.step:
            objects[key] = Object(self.step["change"].encode())

    @staticmethod
    def resolve(asked, size):
        first, last = asked.group(1), asked.group(2)
        if first == "":
            first, last = max(size - int(last), 0), size - 1
        else:
            first, last = int(first), min(int(last) if last else size - 1, size - 1)
        if first > last:
            raise Failure(416, "range_not_satisfiable", "the range lies outside",
                          {"Content-Range": "bytes */%d" % size})
        return first, last

    def job_call(self, noun, first):
        body = self.body = self.read_body()
        self.note(body)
        jobs = self.mock.jobs
        if self.command == "POST":
            spec = json.loads(body)
            if "input_bck" not in spec:
                raise Failure(400, "invalid_spec", "field 'input_bck' is missing")
            ident = "srt-%010d" % (len(jobs) + 1)
            jobs[ident] = {"id": ident, "kind": "sort", "state": "queued", "created_ms": 1,
                           "description": spec.get("description", ""), "started_ms": 1,
                           "ended_ms": 0, "progress": {"percent": 0, "phase": "queued"},
                           "warnings": [], "errors": [], "targets": {}, "spec": spec}
            if self.step["do"] == "act":
                self.hang_up()
            else:
                self.send_json(202, {"id": ident})
            return
        aborts = first == "abort" or (noun == "jobs" and self.command == "DELETE")
        ident = self.query.get("id") or (first if noun == "jobs" else "")
        if not ident:
            wanted = [j for j in jobs.values()
                      if self.query.get("state", j["state"]) == j["state"]
                      and self.query.get("kind", j["kind"]) == j["kind"]
                      and re.search(self.query.get("regex", ""), j["description"])]
            self.send_json(200, {"jobs": wanted})
            return
        if ident not in jobs:
            raise Failure(404, "job_not_found", "there is no job '%s'" % ident)
        job = jobs[ident]
        if self.command == "GET":
            self.mock.advance(job)
            self.send_json(200, job)
        elif aborts:
            if job["state"] in ("finished", "failed", "aborted"):
                raise Failure(409, "job_state", "it has ended")
            job["state"] = "aborted"
            self.send_json(202, {})
        else:
            del jobs[ident]
            self.send(204)


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, mock, role, node):
        super().__init__(("127.0.0.1", 0), Handler)
        self.mock, self.role, self.node = mock, role, node

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], (ConnectionError, OSError)):
            super().handle_error(request, client_address)


class MockCluster:
    STATES = ["queued", "extracting", "merging", "creating", "finished"]

    def __init__(self):
        self.lock = threading.Lock()
        self.closing = threading.Event()
        self.steps, self.log = [], []
        self.auth = mock_auth.Auth(self.lock)
        self.buckets, self.jobs, self.more = {}, {}, {}  # more: fields of the list of buckets
        self.page_limit = 10000
        self.summaries = []  # what a target says of itself, whichever is asked; the last one stays
        self.shown = {}  # what a target says of a part of itself: {"stats": document}
        self.verdict = {}  # {"health": word, "reasons": [...]}: what the overview has of them
        self.uploads = mock_uploads.Uploads()  # None: a release without them
        self.job_end = "finished"
        self.job_warnings = []
        self.job_pace = 1  # states that a job advances by when it is looked at
        self.servers = [Server(self, "proxy", "p1"), Server(self, "target", "t1"),
                        Server(self, "target", "t2")]
        self.threads = [threading.Thread(target=s.serve_forever, args=(0.05,), daemon=True)
                        for s in self.servers]
        for t in self.threads:
            t.start()

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.close()

    def close(self):
        self.closing.set()
        for s in self.servers:
            s.shutdown()
            s.server_close()

    @property
    def port(self):
        return self.servers[0].server_address[1]

    @property
    def endpoint(self):
        return "http://127.0.0.1:%d" % self.port

    def owner(self, key):
        return self.servers[1 + len(key) % 2].server_address[1]

    def plan(self, *steps):
        with self.lock:
            self.steps.extend(dict(s) for s in steps)

    def summary(self):
        with self.lock:
            return self.summaries.pop(0) if len(self.summaries) > 1 else self.summaries[0]

    def requests(self, **match):
        with self.lock:
            return [r for r in self.log if all(r[k] == v for k, v in match.items())]

    def create(self, bucket, objects=None):
        self.buckets[bucket] = ({"copies": 1, "durability": "sync"}, {})
        for key, data in (objects or {}).items():
            self.buckets[bucket][1][key] = Object(data)

    def objects(self, bucket):
        return {k: o.data for k, o in self.buckets[bucket][1].items()}

    def advance(self, job):
        if job["state"] not in self.STATES or job["state"] == "finished":
            return
        at = min(self.STATES.index(job["state"]) + self.job_pace, len(self.STATES) - 1)
        job["state"] = self.STATES[at]
        job["progress"] = {"percent": at * 25, "phase": job["state"],
                           "shards": {"done": at, "total": 4}, "records": at * 10,
                           "bytes": {"done": at << 20, "total": 4 << 20},
                           "rate_bytes_s": 1 << 20, "eta_s": 4 - at}
        if job["state"] == "finished":
            job["state"], job["ended_ms"] = self.job_end, 2000
            job["warnings"] = self.job_warnings
            if self.job_end == "failed":
                job["errors"] = [{"code": "shard_missing", "message": "shard 'a.tar' is missing"}]

    def overview(self):
        def node(server, primary=False):
            return {"id": server.node, "role": server.role, "state": "active", "primary": primary,
                    "public_url": "http://127.0.0.1:%d" % server.server_address[1],
                    "weight": 1, "since_ms": 1700000000000, "version": 12,
                    "capacity": {"total_bytes": 1 << 40, "available_bytes": 1 << 39}}
        nodes = [node(self.servers[0], True)] + [node(s) for s in self.servers[1:]]
        return {"cluster": "mock", "term": 1, "version": 12, "primary": "p1", "healthy": True, **self.verdict,
                "nodes": nodes, "buckets": len(self.buckets), "jobs_running": 0}


def main():
    with MockCluster() as mock:
        print(mock.port, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""A target whose only proxy is this script: joining, keeping alive, and what it does while it knows
less, or more, than who sends it a client."""

import atexit
import http.server
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import urllib.parse

from lib import (BUILD, WAIT_SECONDS, Failed, Http, check, end_on_signals, equal, escape,
                 run_one, sanitizer_found, wait_for)


def node(node_id, role, urls, state="active", boot="x"):
    return {"id": node_id, "role": role, "state": state, "public_url": urls[0],
            "control_url": urls[1], "data_url": urls[2], "weight": 1024 if role == "target" else 0,
            "boot": boot, "since": 1}


class FakeProxy(http.server.ThreadingHTTPServer):
    """Says what the test wants it to say, on one control address."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.version = 1  # of the state that it holds
        self.told = None  # the version that keepalives are answered with; None: the true one
        self.buckets = {"b": 1}
        self.others = []  # nodes of the map besides us and the target
        self.target = None  # as it registered
        self.registrations = self.keepalives = self.fetches = 0
        self.forgotten = False  # keepalives get 404 until the next registration
        self.broken = False  # the state cannot be had
        self.gate = threading.Event()  # closed, a fetch of the state waits
        self.gate.set()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def state(self, version=None, cluster="c-test"):
        nodes = [node("p1", "proxy", ("http://127.0.0.1:1", self.url, ""))] + self.others
        if self.target:
            nodes.append(self.target)
        buckets = [{"id": i, "name": name, "created": 1, "props": {"durability": "sync"}}
                   for name, i in sorted(self.buckets.items())]
        version = version or self.version
        return {"format": 1, "cluster": cluster, "term": 1, "version": version,
                "next_bucket_id": 100, "primary": "p1",
                "smap": {"version": version, "nodes": sorted(nodes, key=lambda n: n["id"])},
                "bmd": {"version": version, "buckets": buckets},
                "config": {"version": 0, "values": {}}, "jobs": {"version": 0, "jobs": []}}

    def change(self, quietly=False, **fields):
        """A new state; quietly: nobody is told, only who asks for the state gets it."""
        if quietly and self.told is None:
            self.told = self.version
        if not quietly:
            self.told = None
        self.__dict__.update(fields)
        self.version += 1


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, document):
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def error(self, status, code):
        self.reply(status, {"status": status, "code": code, "message": code, "node": "p1",
                            "request_id": "x"})

    def do_POST(self):
        p = self.server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.endswith("/register"):
            p.registrations += 1
            p.forgotten = False
            p.target = body
            self.reply(200, p.state())
        elif p.forgotten:
            self.error(404, "node_not_found")
        else:
            p.keepalives += 1
            p.last_keepalive = body
            self.reply(200, {"term": 1, "version": p.told or p.version})

    def do_GET(self):
        p = self.server
        p.fetches += 1
        p.gate.wait(4 * WAIT_SECONDS)
        if p.broken:
            self.error(503, "not_ready")
        else:
            self.reply(200, p.state())


class Target:
    """One dfc-targetd with two mountpaths and its proxy."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="dfc-test-")
        self.proxy = FakeProxy()
        self.http = Http()
        self.process = None
        self.log_path = os.path.join(self.dir, "log")
        atexit.register(self.remove)
        self.start()

    def start(self):
        ready = os.path.join(self.dir, "t1", "ready.json")
        argv = [os.path.join(BUILD, "dfc-targetd"), "--id=t1", f"--dir={self.dir}/t1",
                f"--mountpaths={self.dir}/mp1,{self.dir}/mp2", f"--join={self.proxy.url}",
                "--keepalive-interval=100ms", "--call-timeout=10m"]
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(argv, stderr=log, stdin=subprocess.DEVNULL)
        wait_for(lambda: os.path.exists(ready) or self.process.poll() is not None, "ready")
        check(self.process.poll() is None, f"it ended:\n{self.log()[-2000:]}")
        with open(ready, encoding="utf-8") as f:
            self.ready = json.load(f)
        self.public, self.control = self.ready["public_url"], self.ready["control_url"]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        equal(self.process.wait(WAIT_SECONDS), 0, f"status of the end:\n{self.log()[-2000:]}")

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as f:
            return f.read()

    def remove(self):
        self.proxy.gate.set()
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.proxy.shutdown()
        shutil.rmtree(self.dir, ignore_errors=True)

    def call(self, method, name, body=None, bucket="b", version=None, bucket_id=None, headers=None,
             **options):
        """A request for an object, as a proxy that holds state 1.`version` would send it."""
        query = {"dfcv": f"1.{version}"} if version else {}
        if bucket_id:
            query["dfcb"] = bucket_id
        url = f"{self.public}/v1/objects/{bucket}/{escape(name)}?" + urllib.parse.urlencode(query)
        return self.http.request(method, url, body, headers, follow=False, **options)

    def put(self, name, body, **options):
        return self.call("PUT", name, body, **options).expect(200)

    def held_version(self):
        url = f"{self.control}/v1/health"
        return self.http.request("GET", url).expect(200).json()["version"]

    def settle(self):
        """Until the target holds what the proxy holds."""
        self.proxy.told = None
        wait_for(lambda: self.held_version() == self.proxy.version, "the newest state")

    def push(self, document):
        return self.http.request("PUT", f"{self.control}/v1/cluster/state",
                                 json.dumps(document).encode())


def test_it_registers_and_keeps_alive(t):
    mine = t.proxy.target
    equal((mine["id"], mine["role"], mine["weight"]), ("t1", "target", 1024), "who it says it is")
    for field in ("public_url", "control_url", "data_url", "boot"):
        equal(mine[field], t.ready[field], field)
    before = t.proxy.keepalives
    wait_for(lambda: t.proxy.keepalives > before + 2, "keepalives")
    told = t.proxy.last_keepalive
    equal((told["id"], told["boot"]), ("t1", mine["boot"]), "who keeps alive")
    check(0 < told["capacity"]["available_bytes"] <= told["capacity"]["total_bytes"], "capacity")
    t.settle()
    t.put("x", b"hello")
    equal(t.call("GET", "x").expect(200).body, b"hello", "contents")


def test_it_fetches_what_it_hears_of(t):
    t.proxy.change(buckets={**t.proxy.buckets, "heard": 2})
    wait_for(lambda: t.held_version() == t.proxy.version, "the new state")
    t.put("x", b"1", bucket="heard")


def test_who_is_forgotten_registers_again(t):
    before = t.proxy.registrations
    t.proxy.forgotten = True
    wait_for(lambda: t.proxy.registrations > before, "a second registration")
    kept = t.proxy.keepalives
    wait_for(lambda: t.proxy.keepalives > kept + 1, "keepalives afterwards")


def test_a_newer_sender_makes_it_refresh_first(t):
    """The bucket is known to the proxy that sent the client, and not yet to the target."""
    bodies = {"plain": b"some bytes", "empty": b"", "large": bytes(3 << 20)}
    for i, (name, body) in enumerate(bodies.items(), start=10):
        t.proxy.change(quietly=True, buckets={**t.proxy.buckets, f"new{i}": i})
        options = {"bucket": f"new{i}", "version": t.proxy.version, "bucket_id": i}
        t.put(name, body, **options)
        equal(t.call("GET", name, **options).expect(200).body, body, name)
    t.proxy.change(quietly=True, buckets={**t.proxy.buckets, "chunky": 20})
    t.put("x", iter([b"a" * 1000, b"b" * 100000]), bucket="chunky", version=t.proxy.version)
    for method, status in (("GET", 404), ("HEAD", 404), ("DELETE", 404)):
        t.proxy.change(quietly=True)
        reply = t.call(method, "nothing", version=t.proxy.version)
        equal(reply.status, status, f"{method} after a refresh")
        equal(t.held_version(), t.proxy.version, "the version that it holds")
    t.settle()


def test_many_that_wait_share_a_fetch(t):
    t.proxy.gate.clear()
    t.proxy.change(quietly=True, buckets={**t.proxy.buckets, "shared": 30})
    before, replies = t.proxy.fetches, []

    def put(i):
        replies.append(t.put(f"o{i}", b"x" * i, bucket="shared", version=t.proxy.version))

    threads = [threading.Thread(target=put, args=(i,)) for i in range(16)]
    for thread in threads:
        thread.start()
    wait_for(lambda: t.proxy.fetches > before, "a fetch")
    equal(t.call("GET", "x").expect(200).body, b"hello", "what needs no newer state goes on")
    t.proxy.gate.set()
    for thread in threads:
        thread.join()
    equal(len(replies), 16, "stored")
    check(t.proxy.fetches <= before + 3, f"{t.proxy.fetches - before} fetches for 16 requests")
    t.settle()


def test_a_push_is_enough_for_who_waits(t):
    """Though the fetch hangs, and somebody waits for a state that does not exist."""
    t.proxy.gate.clear()
    t.proxy.change(quietly=True)
    before, answers = t.proxy.fetches, {}

    def get(version):
        answers[version] = t.call("GET", "x", version=version, timeout=4 * WAIT_SECONDS)

    wanted, forged = t.proxy.version, t.proxy.version + 1000
    threads = {v: threading.Thread(target=get, args=(v,)) for v in (forged, wanted)}
    threads[forged].start()
    wait_for(lambda: t.proxy.fetches > before, "a fetch")
    threads[wanted].start()
    t.push(t.proxy.state()).expect(200)
    threads[wanted].join(WAIT_SECONDS)
    equal(answers.keys(), {wanted}, "who has an answer while the fetch hangs")
    equal(answers[wanted].expect(200).body, b"hello", "by the state that was pushed")
    t.proxy.gate.set()
    threads[forged].join()
    answers[forged].expect(503, "not_ready")
    t.settle()


def test_clients_that_leave_while_they_wait(t):
    host, port = re.match(r"http://(.*):(\d+)", t.public).groups()
    t.proxy.gate.clear()
    t.proxy.change(quietly=True, buckets={**t.proxy.buckets, "left": 31})
    for sent in (0, 10, 100000):
        for method, length in (("PUT", 200000), ("GET", 0)):
            head = (f"{method} /v1/objects/left/o{sent}?dfcv=1.{t.proxy.version} HTTP/1.1\r\n"
                    f"Host: localhost\r\nContent-Length: {length}\r\n\r\n").encode()
            with socket.create_connection((host, int(port)), timeout=WAIT_SECONDS) as s:
                s.sendall(head + b"x" * (sent if method == "PUT" else 0))
    t.proxy.gate.set()
    t.settle()
    for sent in (0, 10, 100000):
        t.call("GET", f"o{sent}", bucket="left").expect(404, "object_not_found")
    for mountpath in ("mp1", "mp2"):
        tmp = os.path.join(t.dir, mountpath, ".dfc", "tmp")
        wait_for(lambda path=tmp: not os.listdir(path), "temporary files are gone")


def test_a_state_that_cannot_be_had(t):
    t.proxy.broken = True
    t.proxy.change(quietly=True)
    for method, body in (("GET", None), ("PUT", b"x"), ("PUT", b""), ("DELETE", None)):
        reply = t.call(method, "x", body, version=t.proxy.version)
        reply.expect(503, "not_ready", f"1.{t.proxy.version}")
        check(int(reply.headers["Retry-After"]) > 0, "no Retry-After")
    t.proxy.broken = False
    equal(t.call("GET", "x", version=t.proxy.version).expect(200).body, b"hello", "afterwards")
    t.settle()


def test_senders_that_know_less_are_refused(t):
    old = t.proxy.version
    t.proxy.change(buckets={**t.proxy.buckets, "later": 40})
    t.settle()
    for method, body in (("GET", None), ("PUT", b"x"), ("DELETE", None)):
        t.call(method, "x", body, version=old).expect(409, "stale_map")
        t.call(method, "x", body, version=t.proxy.version, bucket_id=7).expect(409, "stale_map")
        t.call(method, "x", body, version="nonsense").expect(400, "invalid_argument", "dfcv")
    equal(t.call("GET", "x", version=t.proxy.version, bucket_id=1).expect(200).body, b"hello", "")


def test_pushed_states(t):
    equal(t.push(t.proxy.state(version=1)).expect(200).json()["version"], t.proxy.version,
          "an older state changes nothing")
    t.push(t.proxy.state(version=9999, cluster="c-other")).expect(409, "wrong_cluster", "c-other")
    t.push({"format": 1}).expect(400)
    t.push({**t.proxy.state(), "version": "x"}).expect(400)
    t.proxy.change(quietly=True, buckets={**t.proxy.buckets, "pushed": 50})
    equal(t.push(t.proxy.state()).expect(200).json(),
          {"term": 1, "version": t.proxy.version, "deltas": True}, "the reply to a push")
    t.put("x", b"1", bucket="pushed")


def test_other_owners(t):
    away = ("http://127.0.0.1:2", "http://127.0.0.1:3", "http://127.0.0.1:4")
    t.proxy.change(others=[node("t2", "target", away)])
    t.settle()
    redirected = 0
    for i in range(40):
        reply = t.call("PUT", f"spread/{i}", b"x")
        if reply.status == 307:
            redirected += 1
            check(reply.headers["Location"].startswith(away[0] + f"/v1/objects/b/spread/{i}?"),
                  reply.headers["Location"])
            check("dfcb=1" in reply.headers["Location"], "the bucket's id")
    check(5 < redirected < 35, f"{redirected} of 40 are another target's")
    t.proxy.change(others=[node("t2", "target", away, state="unreachable")])
    t.settle()
    for i in range(40):
        reply = t.call("GET", f"spread/{i}")
        if reply.status != 200:
            reply.expect(503, "node_unreachable", "t2")
            redirected -= 1
    equal(redirected, 0, "each one is here, or said to be at t2")
    t.proxy.change(others=[])
    t.settle()


def bucket_directories(t, bucket_id):
    return [m for m in ("mp1", "mp2")
            if os.path.exists(os.path.join(t.dir, m, ".dfc", "obj", str(bucket_id)))]


def test_destroyed_buckets_leave_the_disks(t):
    t.proxy.change(buckets={**t.proxy.buckets, "gone": 60})
    t.settle()
    for i in range(20):
        t.put(f"o{i}", b"x", bucket="gone")
    check(bucket_directories(t, 60), "the bucket has directories")
    t.proxy.change(buckets={k: v for k, v in t.proxy.buckets.items() if k != "gone"})
    t.settle()
    t.call("GET", "o1", bucket="gone").expect(404, "bucket_not_found")
    wait_for(lambda: not bucket_directories(t, 60), "the directories are gone")
    for mountpath in ("mp1", "mp2"):
        trash = os.path.join(t.dir, mountpath, ".dfc", "trash")
        wait_for(lambda path=trash: not os.listdir(path), "the trash is empty")
    check(bucket_directories(t, 1), "other buckets stay")


def test_it_starts_without_a_proxy(t):
    held = t.held_version()
    t.stop()
    t.proxy.shutdown()
    t.proxy.server_close()
    t.start()
    equal(t.held_version(), held, "the state that it remembers")
    equal(t.call("GET", "x").expect(200).body, b"hello", "contents")
    t.put("y", b"written without a proxy")
    t.call("GET", "x", version=held + 1).expect(503, "not_ready")


def test_it_ends_cleanly(t):
    t.stop()
    check(not os.path.exists(os.path.join(t.dir, "t1", "ready.json")), "ready.json is gone")
    found = sanitizer_found("t1", t.log())
    if found is not None:
        raise Failed(found)


def main():
    end_on_signals()
    t = Target()
    passed = True
    for name, function in list(globals().items()):
        if name.startswith("test_"):
            passed = run_one(name, function, t) and passed
    if not passed:
        print(f"--- end of its log\n{t.log()[-3000:]}")
    raise SystemExit(0 if passed else 1)


if __name__ == "__main__":
    main()

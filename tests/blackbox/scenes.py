"""One object of a bucket with several copies, whose owners are known beforehand: what each of a row
of events does to it is told step by step, and what clients saw is judged at the end
(reference/linear.py).

    s = Scene(c, "lease", copies=2)     # owned by t1 (which acts), t2, and with more copies t3, …
    s.put("one"); s.kill("t1"); s.get()
    s.end()                             # everybody comes back, the object is read, and all is
    judged

Nothing here asserts who is quicker: a machine that stands still for a while makes other things
happen, and
what clients see is right all the same.  So a scene that goes well shows little by itself:
copies_mutants.py
shows what each of them finds."""

import concurrent.futures
import contextlib
import http.client
import itertools
import json
import os
import shutil
import signal
import sys
import time

from lib import Failed, check, escape, wait_for
from wires import WiredCluster

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "reference"))
import hrwref  # noqa: E402
from linear import (  # noqa: E402
    ANY, MATCH, NEVER, check as judge, delete, missing, put, read, refused)

CUT = (OSError, http.client.HTTPException)
# Codes of errors that are said before anything is done.
REFUSED = ("stale_map", "not_ready", "overloaded", "no_targets", "wrong_owner")
REQUEST_SECONDS, LOOK_SECONDS, GLANCE_SECONDS, TOMBSTONE_SECONDS = 20, 10, 3, 1
HASTE = {"proxy": ["keepalive-timeout=1500ms", "keepalive-interval=100ms"],
         "target": ["keepalive-interval=100ms", f"tombstone-ttl={TOMBSTONE_SECONDS}s",
                    "sweep-interval=300ms"],
         "node": ["connect-timeout=500ms", "call-timeout=2s", "stall-timeout=4s"]}


def make(**shape):
    """A cluster in which little time passes until somebody is given up."""
    args = [
        f"--{role}-arg=--{arg}" for role in ("proxy", "target")
        for arg in HASTE[role] + HASTE["node"]
    ]
    return WiredCluster(args=args, **shape)


def owners_in_rank(bucket_id, name, targets):
    key = hrwref.xxh3(name.encode(), bucket_id)
    return [targets[i] for i in hrwref.rank(key, [(t, 100) for t in targets])]


def names_owned_by(bucket_id, wanted, targets):
    """As many as are taken."""
    return (name for name in (f"o{i}" for i in range(100000))
            if owners_in_rank(bucket_id, name, targets)[:len(wanted)] == wanted)


class Scene:
    def __init__(self, c, bucket, copies, **props):
        self.c, self.bucket, self.began = c, bucket, time.monotonic()
        self.operations, self.cuts, self.etags, self.background = [], [], {}, []
        self.armed = set()
        self.pool = concurrent.futures.ThreadPoolExecutor(4)
        self.repairs(True)
        self.id = c.create(bucket, copies=copies, **props).json()["id"]
        self.name = self.names(*[f"t{i + 1}" for i in range(copies)])[0]

    def names(self, *owners):
        """Two that these own first."""
        return list(
            itertools.islice(names_owned_by(self.id, list(owners), sorted(self.c.targets())), 2))

    # --- what clients do ---

    def now(self):
        return time.monotonic() - self.began

    def url(self, node, name=None):
        return f"{self.c.url(node)}/v1/objects/{self.bucket}/{escape(name or self.name)}"

    def ask(self, method, node, body=None, headers=None):
        """(reply or None, when it began, when it was known)."""
        begin = self.now()
        try:
            reply = self.c.http.request(method, self.url(node), body, headers,
                                        timeout=REQUEST_SECONDS)
        except CUT:
            return None, begin, NEVER
        return reply, begin, self.now()

    def note(self, operation, reply):
        operation.note = repr(reply)
        self.operations.append(operation)

    def get(self, node="p1"):
        """The value, "" where there is none; None: not known."""
        reply, *times = self.ask("GET", node)
        if reply is not None and reply.status == 200:
            value = reply.body.decode()
            self.etags[value] = reply.headers["ETag"]
            self.note(read(value, *times, who=node), reply)
            return value
        if reply is not None and reply.status == 404 and reply.json()["code"] == "object_not_found":
            self.note(missing(*times, who=node), reply)
            return ""
        return None

    def look(self, node="p1", seconds=LOOK_SECONDS):
        """Asks until it is known, or for so long."""
        with contextlib.suppress(Failed):
            wait_for(lambda: self.get(node) is not None, "a look", seconds)

    def write(self, method, node, operation, body=None, headers=None):
        """Whether it was done, as far as is known."""
        self.c.http.close()  # what is sent on a new connection is sent once
        reply, operation.begin, end = self.ask(method, node, body, headers)
        done = reply is not None and reply.status in (200, 204)
        if reply is not None and reply.status == 412:
            operation = refused(operation.need, operation.begin, end)
        elif reply is not None and reply.status == 404 and reply.json(
        )["code"] == "object_not_found":
            operation = missing(operation.begin, end)
        elif reply is not None and not done and reply.json()["code"] in REFUSED:
            return False
        elif not done:
            end = NEVER
        operation.end, operation.who = end, node
        if done and method == "PUT":
            self.etags[body.decode()] = reply.headers["ETag"]
        self.note(operation, reply)
        return done

    def try_put(self, value, node="p1", over=None):
        """over: only if that is what is there."""
        headers = {} if over is None else {"If-Match": self.etags[over]}
        return self.write("PUT", node, put(value, 0, need=ANY if over is None else MATCH(over)),
                          value.encode(), headers)

    def put(self, value, node="p1"):
        """Until one is done; the value that is."""
        tries = (f"{value}.{i}" for i in itertools.count())
        return wait_for(lambda: next((v for v in [next(tries)] if self.try_put(v, node)), None),
                        f"a PUT of {value}")

    def try_delete(self, node="p1"):
        return self.write("DELETE", node, delete(0))

    def delete(self):
        wait_for(self.try_delete, "a DELETE")

    def rename(self, node, name, new_name):
        """The status; None: no answer.  Nothing is judged of it."""
        try:
            return self.c.http.request("POST", self.url(node, name),
                                       json.dumps({"action": "rename", "name": new_name}).encode(),
                                       timeout=REQUEST_SECONDS).status
        except CUT:
            return None

    def put_no_further_than(self, target, value):
        """A write that goes on when this one of the owners has it."""
        before = self.held(target)
        done = self.in_background(self.try_put, value)
        wait_for(lambda: done.done() or self.held(target) != before, f"{value} at {target}")

    def write_and_reset(self, write):
        """A write through t1 that t2 commits; the connections between them die before t2 says so,
        and t1 sends the commit again.  Meanwhile t4 leaves the map."""
        before = self.held("t2")
        done = self.in_background(write)
        wait_for(lambda: done.done() or self.held("t2") != before, "a commit at t2")
        made = self.held("t2")
        self.act("startmaintenance", "t4", force=True)
        self.c.wait_node("t4", "maintenance")
        self.c.wires.reset([("t1", "t2")])
        done.result()
        return made

    def in_background(self, function, *args, **more):
        self.background.append(self.pool.submit(function, *args, **more))
        return self.background[-1]

    # --- what befalls it ---

    def repairs(self, wanted):
        self.c.setting("repair_delay", "0s" if wanted else "1h")

    def await_staged(self, target):
        """Until the bytes of the last write in the background are there (or it is over)."""
        def staged():
            top = self.c.node_dir(target)
            dirs = [
                os.path.join(top, m, ".dfc", "tmp") for m in os.listdir(top) if m.startswith("mp")
            ]
            return any(os.listdir(d)
                       for d in dirs if os.path.isdir(d)) or self.background[-1].done()

        wait_for(staged, f"a write at {target}")

    def arm(self, **faults):
        """Targets are started anew with these faults; the repair is over."""
        for target, spec in faults.items():
            self.restart(target, f"--arg=--faults={spec}")
            self.armed.add(target)
        self.calm()

    def restart(self, target, *args):
        self.kill(target)
        self.c.start(target, *args)

    def kill(self, target):
        if self.c.pid(target) is not None:
            self.c.kill(target)

    def signal(self, target, number):
        pid = self.c.pid(target)
        if pid is not None:
            os.kill(pid, number)

    def freeze(self, target):
        self.signal(target, signal.SIGSTOP)

    def thaw(self, target):
        self.signal(target, signal.SIGCONT)

    def cut(self, *pairs):
        links = [link for a, b in pairs for link in ((a, b), (b, a))]
        self.cuts += links
        self.c.wires.cut(links)

    def cut_off(self, target, others=None):
        self.cut(*[(target, o) for o in others or self.c.nodes if o != target])

    def heal(self, late=True):
        """late: what was sent meanwhile arrives now; else it is lost."""
        self.c.wires.heal(self.cuts, late=late)
        self.cuts = []

    def lose(self, target):
        """It is called unreachable, and nobody waits for it any more."""
        self.c.wait_node(target, "unreachable")

    def lose_for_good(self, target):
        self.kill(target)
        self.lose(target)

    def back(self, target, *args):
        self.c.start(target, *args)
        self.c.wait_node(target, "active")

    def come_back_empty(self, target):
        self.kill(target)
        top = self.c.node_dir(target)
        for mountpath in (m for m in os.listdir(top) if m.startswith("mp")):
            shutil.rmtree(os.path.join(top, mountpath))
        self.back(target, "--arg=--mountpath-lost-ok=true")

    def act(self, action, target, **value):
        self.c.call("PUT", "/v1/cluster",
                    {"action": action, "name": target, "value": value}).expect(200)

    def let_tombstones_go(self, target):
        """They are as old as targets keep them (make()): until it has none, or for so long."""
        with contextlib.suppress(Failed):
            wait_for(lambda: self.held(target) is None, "the end of a tombstone",
                     3 * TOMBSTONE_SECONDS)

    def held(self, target, name=None):
        """The version that it has."""
        there = next(n for n in self.c.get_json("/v1/cluster?what=smap")["nodes"]
                     if n["id"] == target)
        url = f"{there['data_url']}/v1/held/{self.id}/{escape(name or self.name)}?dfcv=0.0"
        return self.c.member.request("GET", url).expect(200).json().get("version")

    # --- the end ---

    def calm(self):
        """Everybody is there, and has what the others have."""
        self.heal()
        for target in self.c.targets():
            self.thaw(target)
            if self.c.pid(target) is None:
                self.c.start(target)
        self.repairs(True)
        wait_for(lambda: self.is_whole(self.c.get_json("/v1/cluster?what=smap")), "a whole cluster",
                 120)

    def is_whole(self, smap):
        for n in smap["nodes"]:
            if n["state"] == "maintenance":
                self.c.call("PUT", "/v1/cluster", {"action": "stopmaintenance", "name": n["id"]})
        return not smap.get("earlier") and all(n["state"] == "active" and not n.get("lag")
                                               for n in smap["nodes"])

    def end(self):
        for done in self.background:
            done.result()
        self.heal()
        for target in self.armed:
            self.restart(target)
        self.calm()
        check(wait_for(lambda: self.get() is not None, "a last look"), "a last look")
        verdict = judge(self.operations)
        check(verdict.ok is True, verdict.story)

#!/usr/bin/env python3
"""Mountpaths of a target come and go while clients read and write: nothing is lost, nothing old is
read, nothing that is there is said not to exist; a kill at any point leaves a state to go on
from."""

import http.client
import json
import os
import random
import re
import shutil
import tempfile
import threading

from lib import check, equal, in_parallel, main, wait_for

T = "t1"  # the only target: every object is its
FIXED = [f"fixed/{i:03d}" for i in range(120)]
OUT = "mountpath_disabled"


def contents(name):
    return name.encode() * 200


def path(c, number):
    return os.path.join(c.node_dir(T), f"mp{number}")


def ask(c, action, number, **value):
    value = {"path": path(c, number), **value}
    return c.call("PUT", "/v1/daemon/mountpaths", {"action": action, "value": value}, node=T)


def view(c):
    return c.get_json("/v1/daemon?what=mountpaths", node=T)


def state_of(c, number):
    for m in view(c)["mountpaths"]:
        if m["path"] == path(c, number):
            return m["state"]
    return None


def settled(c, seconds=60):
    wait_for(lambda: view(c)["settled"], "a settled set", seconds)


def files_on(c, number):
    top = os.path.join(path(c, number), ".dfc", "obj")
    return sum(len(files) for _, _, files in os.walk(top))


# What a client sees of a target that is killed.
CUT = (OSError, http.client.HTTPException)


class Client:
    """Writes and reads names of its own, in a thread, and knows what each answer has to be.  While
    `may_refuse` is set, a 503 that names the mountpath is one of them; while `may_break` is set,
    the target may be gone."""

    def __init__(self, c, number):
        self.c = c
        self.prefix = f"client{number}/"
        self.random = random.Random(number)
        self.have = {}  # name -> contents, None: deleted; a set of both where an answer was lost
        self.wrong = None
        self.calls = self.refused = 0
        self.may_refuse = self.may_break = False
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.stop.is_set() and self.wrong is None:
            try:
                self.step()
            except CUT as e:
                if not self.may_break:
                    self.wrong = repr(e)
            except Exception as e:  # whatever it is, the test must see it
                self.wrong = repr(e)

    def maybe(self, name, body):
        """The answer to a write was lost: it was made, or not."""
        old = self.have.get(name)
        self.have[name] = (old if isinstance(old, set) else {old}) | {body}

    def step(self):
        name = self.prefix + str(self.random.randrange(40))
        what = self.random.choice(["PUT", "GET", "GET", "DELETE"])
        body = os.urandom(self.random.choice([10, 5000, 200000])) if what == "PUT" else None
        try:
            reply = self.c.object(what, "b", name, body)
        except CUT:
            if what != "GET":
                self.maybe(name, body)
            raise
        self.calls += 1
        if reply.status == 503 or (self.may_break and reply.status == 409):
            self.refuse(reply)  # 409: the redirect is of before the restart
        else:
            self.judge(what, name, body, reply)

    def refuse(self, reply):
        self.refused += 1
        code = reply.json()["code"]
        if code == OUT and self.may_refuse:
            equal("mountpath" in reply.json()["message"], True, "the message names the mountpath")
        elif not self.may_break:
            self.wrong = repr(reply)

    def judge(self, what, name, body, reply):
        had = self.have.get(name)
        had = had if isinstance(had, set) else {had}
        if what == "PUT" and reply.status == 200:
            self.have[name] = body
        elif what == "DELETE" and reply.status == 204 and had != {None}:
            self.have[name] = None
        elif what == "DELETE" and reply.status == 404 and None in had:
            self.have[name] = None
        elif what == "GET" and reply.status == 200 and reply.body in had:
            self.have[name] = reply.body
        elif what == "GET" and reply.status == 404 and None in had:
            self.have[name] = None
        else:
            self.wrong = f"{what} {name}: {reply!r}"

    def check(self):
        check(self.wrong is None, f"a client saw: {self.wrong}")

    def end(self):
        self.stop.set()
        self.thread.join()
        self.check()


class Clients:
    count = 0

    def __init__(self, c, **may):
        self.all = [Client(c, Clients.count + i) for i in range(2)]
        Clients.count += len(self.all)
        self.may(**may)

    def may(self, refuse=False, break_=False):
        for client in self.all:
            client.may_refuse, client.may_break = refuse, break_

    def progress(self):
        """Some calls later."""
        before = [x.calls for x in self.all]
        wait_for(lambda: all(x.calls > n + 10 or x.wrong for x, n in zip(self.all, before)),
                 "answers to the clients")
        for client in self.all:
            client.check()

    def __enter__(self):
        return self

    def __exit__(self, failed, *_):
        for client in self.all:
            client.stop.set()
        if failed is not None:
            return
        for client in self.all:
            client.end()
        for client in self.all:  # what they know is still so
            for name, body in client.have.items():
                wanted = body if isinstance(body, set) else {body}
                reply = client.c.get("b", name)
                got = reply.body if reply.status == 200 else None
                check(got in wanted, f"{name} at the end: {reply!r}")


def check_all(c):
    def one(name):
        equal(c.get("b", name).expect(200).body, contents(name), name)

    in_parallel(one, FIXED)
    equal(c.names("b", prefix="fixed/"), FIXED, "the list")


def test_before(c):
    c.create("b")
    in_parallel(lambda name: c.put("b", name, contents(name)), FIXED)
    equal(view(c)["settled"], True, "settled")


def metric(c, name, **labels):
    """The sum of this metric over all label sets that have these."""
    text = c.call("GET", "/metrics", node=T).body.decode()
    lines = re.findall(rf"^{name}\{{(.*)\}} (\d+)", text, re.M)
    return sum(int(n) for given, n in lines
               if all(f'{k}="{v}"' in given for k, v in labels.items()))


def test_what_each_disk_does(c):
    moved = len(FIXED) * len(contents(FIXED[0]))
    for number in (1, 2):
        mine = {"mountpath": path(c, number)}
        files = files_on(c, number)
        for op, what in (("write", "io_seconds"), ("write", "io_bytes"), ("sync", "io_seconds")):
            count = metric(c, f"dfc_mountpath_{what}_count", op=op, **mine)
            check(count >= files, f"{count} of {op} in {what}, for {files} files")
        check(metric(c, "dfc_mountpath_queue_depth_count", **mine) >= 2 * files, "queue depths")
        wait_for(lambda: metric(c, "dfc_mountpath_queue", **mine) == 0, "an empty queue")
    equal(metric(c, "dfc_mountpath_io_bytes_sum", op="write"), moved, "bytes written")
    before = metric(c, "dfc_mountpath_sent_bytes_total")
    check_all(c)
    equal(metric(c, "dfc_mountpath_sent_bytes_total") - before, moved, "bytes sent")
    done = c.dfcctl("storage", "mountpath", "load", T)
    equal(done.returncode, 0, done.stderr)
    for number in (1, 2):
        check(re.search(rf"{T} +{path(c, number)} .*/s .*\d\.\d\d/\d", done.stdout), done.stdout)
    load = json.loads(c.dfcctl("storage", "mountpath", "load", T, "-o", "json").stdout)
    for m in load[T]["mountpaths"]:
        sync = m["load"]["sync"]
        check(sync["ops_s"] > 0 and 0 < sync["p50_us"] <= sync["p99_us"], repr(m["load"]))


def test_reads_of_what_is_not_in_memory_are_seen(c):
    c.restart(T, "--arg=--faults=disk.cold=EAGAIN")
    equal(c.get("b", FIXED[0]).expect(200).body, contents(FIXED[0]), "the object")
    for op in ("open", "read"):
        check(metric(c, "dfc_mountpath_io_seconds_count", op=op) >= 1, f"no {op} was counted")
    equal(metric(c, "dfc_mountpath_io_bytes_sum", op="read"), len(contents(FIXED[0])), "bytes")
    c.restart(T)


def test_attach(c):
    with Clients(c) as clients:
        clients.progress()
        done = c.dfcctl("storage", "mountpath", "attach", T, path(c, 3), "--create")
        equal(done.returncode, 0, done.stderr)
        check(path(c, 3) in done.stdout, done.stdout)
        check_all(c)
        settled(c)
        clients.progress()
    check(files_on(c, 3) > len(FIXED) / 6, f"{files_on(c, 3)} objects were moved")
    jobs = c.get_json("/v1/jobs?kind=resilver")["jobs"]
    wait_for(lambda: c.get_json(f"/v1/jobs/{jobs[0]['id']}")["state"] == "finished", "its job")
    check_all(c)
    ask(c, "attach", 3).expect(409, "exists", "already")


def test_summary(c):
    done = c.dfcctl("storage", "summary", "b", "-o", "json")
    equal(done.returncode, 0, done.stderr)
    names = [e for page in c.pages("b") for e in page["entries"]]
    got = json.loads(done.stdout)["b"]
    equal((got["objects"], got["bytes"]), (len(names), sum(e["size"] for e in names)), "the sums")
    check(str(len(names)) in c.dfcctl("storage", "summary").stdout, "the table")


def test_an_absent_directory_is_an_error(c):
    """A typing error, or a disk that is not mounted, would fill another file system."""
    before = [m["path"] for m in view(c)["mountpaths"]]
    done = c.dfcctl("storage", "mountpath", "attach", T, path(c, 5))
    equal(done.returncode, 3, done.stderr)
    check(f"'{path(c, 5)}' does not exist: mount the disk first" in done.stderr, done.stderr)
    check("--create" in done.stderr, done.stderr)
    ask(c, "attach", 5).expect(404, "not_found", "does not exist")
    check(not os.path.exists(path(c, 5)), "it was made")
    equal([m["path"] for m in view(c)["mountpaths"]], before, "the mountpaths")
    equal(c.dfcctl("storage", "mountpath", "detach", T, path(c, 1), "--create").returncode, 2,
          "--create of a detach")


def test_only_below_the_roots(c):
    """What is foreign is no mountpath, and nothing of it is made."""
    away = tempfile.mkdtemp(prefix="dfc-test-away-")
    link = os.path.join(c.node_dir(T), "link")
    os.symlink(away, link)
    try:
        for new in (os.path.join(away, "mp"), os.path.join(away, "a", "mp"), os.path.join(
                link, "mp"), link, os.path.join(c.node_dir(T), "..", "mp"), "/"):
            reply = c.call("PUT", "/v1/daemon/mountpaths", {"action": "attach", "value": new},
                           node=T)
            check(reply.status in (400, 404), f"{new}: {reply!r}")
        outside = {"action": "attach", "value": os.path.join(away, "mp")}
        c.call("PUT", "/v1/daemon/mountpaths", outside,
               node=T).expect(400, "invalid_argument", f"({c.node_dir(T)})")
        shown = c.dfcctl("config", "show", "--node", T, "mountpath_roots").stdout
        check(f"  {c.node_dir(T)}  " in shown, f"the roots in force: {shown}")
        deep = {"action": "attach", "value": os.path.join(c.node_dir(T), "a", "b")}
        c.call("PUT", "/v1/daemon/mountpaths", deep, node=T).expect(404, "not_found",
                                                                    "make its parent")
        line = {"action": "attach", "value": path(c, 7) + "\nx"}
        c.call("PUT", "/v1/daemon/mountpaths", line, node=T).expect(400, "invalid_argument",
                                                                    "control character")
        equal(os.listdir(away), [], "what was made there")
        check(not os.path.exists(os.path.join(c.node_dir(T), "a")), "no parent is made")
        equal([m["path"] for m in view(c)["mountpaths"] if c.node_dir(T) + "/mp" not in m["path"]],
              [], "strangers")
        c.restart(T, f"--arg=--mountpath-roots={away}")
        outside["value"] = {"path": os.path.join(away, "mp"), "create": True}
        c.call("PUT", "/v1/daemon/mountpaths", outside, node=T).expect(200)
        settled(c)
        c.call("PUT", "/v1/daemon/mountpaths", {"action": "detach", "value": os.path.join(away, "mp")},
               node=T).expect(200)
        wait_for(lambda: not any(away in m["path"] for m in view(c)["mountpaths"]),
                 "it is released")
        settled(c)
        c.restart(T)
    finally:
        os.unlink(link)
        shutil.rmtree(away, ignore_errors=True)


def test_what_is_refused(c):
    ask(c, "attach", 4, lost=True).expect(400, "invalid_argument")
    ask(c, "detach", 4, create=True).expect(400, "invalid_argument")
    ask(c, "detach", 9).expect(404, "not_found", "has no mountpath")
    c.call("PUT", "/v1/daemon/mountpaths", {"action": "explode", "value": "/x"}, node=T).expect(
        400, "invalid_argument", "explode")
    c.call("PUT", "/v1/daemon/mountpaths", {"action": "attach"}, node=T).expect(400)
    c.call("PUT", "/v1/daemon/mountpaths", {"action": "attach", "value": "mp4"}, node=T).expect(
        400, "invalid_argument", "absolute")
    os.makedirs(os.path.join(path(c, 8), ".dfc"))
    with open(os.path.join(path(c, 8), ".dfc", "format.json"), "w", encoding="ascii") as f:
        json.dump({"format": 2, "cluster": "", "target": "t9", "mountpath": "mp-x",
                   "path": path(c, 8)}, f)
    ask(c, "attach", 8).expect(409, "mountpath_state", "belongs to target 't9'")
    equal(state_of(c, 8), None, "it")


def test_detach(c):
    with Clients(c) as clients:
        clients.progress()
        ask(c, "detach", 1).expect(200)
        check_all(c)
        settled(c)
        clients.progress()
        equal(state_of(c, 1), None, "the detached one")
        wait_for(lambda: not os.path.exists(os.path.join(path(c, 1), ".dfc")), "its release")
    check_all(c)


def test_the_set_survives_a_restart(c):
    c.restart(T)
    equal(sorted(m["path"] for m in view(c)["mountpaths"]), [path(c, 2), path(c, 3)], "the set")
    check_all(c)
    ask(c, "attach", 1).expect(200)
    settled(c)
    check_all(c)


def test_disable_and_enable(c):
    with Clients(c, refuse=True) as clients:
        done = c.dfcctl("storage", "mountpath", "disable", T, path(c, 2))
        equal(done.returncode, 0, done.stderr)
        clients.progress()
        refused = 0
        for name in FIXED:
            reply = c.get("b", name)
            if reply.status == 503:
                reply.expect(503, OUT, f"mountpath '{path(c, 2)}' of target '{T}'")
                c.object("PUT", "b", name, b"new").expect(503, OUT)
                c.object("DELETE", "b", name).expect(503, OUT)
                refused += 1
            else:
                equal(reply.expect(200).body, contents(name), name)
        check(len(FIXED) / 6 < refused < len(FIXED) / 2, f"{refused} were refused")
        c.call("GET", "/v1/objects/b").expect(503)
        page = c.call("GET", "/v1/objects/b?partial=true").expect(200).json()
        equal(page["incomplete"], True, "a partial list is incomplete")
        shown = c.dfcctl("storage", "mountpath", "ls").stdout
        check("by request" in shown and "disabled" in shown, shown)
        mine = next(m for m in view(c)["mountpaths"] if m["path"] == path(c, 2))
        check(mine["objects"] >= refused, f"it held {mine['objects']} objects")
        clients.may(refuse=True, break_=True)
        c.restart(T)
        equal(state_of(c, 2), "disabled", "after a restart")
        clients.may(refuse=True)
        ask(c, "enable", 2).expect(200)
        clients.progress()
        clients.may()
        clients.progress()
    check_all(c)


def test_a_detach_can_be_taken_back(c):
    ask(c, "detach", 2).expect(200)
    ask(c, "enable", 2).expect(200)
    settled(c)
    equal(state_of(c, 2), "enabled", "it")
    check_all(c)


def test_an_aborted_resilver_waits_to_be_asked(c):
    c.restart(T, "--arg=--faults=resilver.rename=delay:300")
    ask(c, "attach", 4, create=True).expect(200)

    def running():
        jobs = c.get_json("/v1/jobs?kind=resilver&state=running")["jobs"]
        return jobs[0]["id"] if jobs else None

    job = wait_for(running, "the resilver")
    c.call("DELETE", f"/v1/jobs/{job}").expect(202)
    wait_for(lambda: c.get_json(f"/v1/jobs/{job}")["state"] == "aborted", "its end")
    check_all(c)
    equal(view(c)["settled"], False, "settled")
    c.stop(T)
    c.start(T)
    done = c.dfcctl("storage", "mountpath", "resilver", T)
    equal(done.returncode, 0, done.stderr)
    settled(c)
    check_all(c)


def test_kill_anywhere(c):
    """kill -9 in the middle of an attach and a detach; the next start goes on by itself."""
    points = ["roster.write=kill@2", "resilver.rename=EXDEV,resilver.copy=kill@5",
              "resilver.publish=kill@9", "resilver.rename=EXDEV,resilver.remove=kill@7",
              "resilver.settle=kill", "resilver.rename=EXDEV,resilver.publish=kill@3"]
    with Clients(c, refuse=True, break_=True) as clients:
        for i, point in enumerate(points):
            c.restart(T, f"--arg=--faults={point}")
            action = "detach" if i % 2 == 0 else "attach"
            try:
                ask(c, action, 4)
            except ConnectionError:
                pass  # it died of it
            wait_for(lambda: c.state(T) == "dead", f"the kill by {point}")
            c.start(T)
            c.wait_node(T, "active")
            if i == 0:  # before it was written down on all: then it may not have happened
                ask(c, action, 4)
            settled(c)
            check_all(c)
            equal(state_of(c, 4), None if action == "detach" else "enabled", f"after {point}")
        clients.may()
        clients.progress()
    check_all(c)


if __name__ == "__main__":
    main(targets=1)

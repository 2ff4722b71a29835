#!/usr/bin/env python3
"""Buckets with several copies (docs/design/replication.md): what is stored is on all owners before
it is
acknowledged; what was acknowledged stays, and nobody reads anything older, while an owner is killed
under a mixed load and comes back, while steps of a write fail, and while owners change; a repair
brings all copies to where they belong.

DFC_SECONDS (2): how long the load runs at each stage; DFC_KILLS (1): at how many steps an owner is
killed."""

import concurrent.futures
import itertools
import os
import random
import threading
import time

from cold_lib import metric
from lib import Failed, check, contents, equal, main, size_of, wait_for

SECONDS = float(os.environ.get("DFC_SECONDS", 2))
TARGETS = 4
PATIENCE = 60
NOTHING = None
PASSING = (409, 500, 502, 503, 504)  # what a client repeats; 500: the tests' own I/O errors


def create(c, bucket, copies, **props):
    c.setting("repair_delay", "0s")
    body = {"action": "create", "value": {"copies": copies, **props}}
    c.call("POST", f"/v1/buckets/{bucket}", body).expect(201)


def patient(c, method, bucket, name, body=None, headers=None):
    """As a client does that repeats what may pass; the last reply, and whether any was in doubt."""
    deadline, doubt = time.monotonic() + PATIENCE, False
    while True:
        try:
            reply = c.object(method, bucket, name, body, headers)
        except OSError:
            reply, doubt = None, True
        if reply is not None and reply.status not in PASSING:
            return reply, doubt
        if reply is not None:
            doubt = doubt or reply.json()["code"] in ("in_doubt", "network_error", "timeout")
        if time.monotonic() > deadline:
            raise Failed(f"{method} {bucket}/{name}: still {reply!r} after {PATIENCE} s")
        time.sleep(0.05)


def put(c, bucket, name, body, headers=None):
    return patient(c, "PUT", bucket, name, body, headers)[0].expect(200)


def get(c, bucket, name):
    return patient(c, "GET", bucket, name)[0]


def holders(c, bytes_):
    """The targets on whose disks these bytes lie as an object."""
    found = []
    for target in c.targets():
        for path in c.object_files(target):
            if size_of(path) == len(bytes_) and contents(path) == bytes_:
                found.append(target)
    return found


def test_copies_lie_on_distinct_targets(c):
    for copies in (2, 3):
        bucket = f"b{copies}"
        create(c, bucket, copies)
        for size in (1, 700, 300000, 5000000):
            body = random.randbytes(size) + b"%d" % copies
            put(c, bucket, f"o{size}", body, {"Dfc-Meta-Color": "red", "Content-Type": "a/b"})
            found = holders(c, body)
            equal(len(found), copies, f"copies of {size} bytes, on {found}")
            equal(len(set(found)), copies, f"targets of {size} bytes, on {found}")
            reply = get(c, bucket, f"o{size}").expect(200)
            check(reply.body == body, f"other bytes of {size}")
            equal(reply.headers["Dfc-Meta-Color"], "red", "metadata")
        put(c, bucket, "empty", b"")
        equal(get(c, bucket, "empty").expect(200).body, b"", "the empty object")


def test_conditions_and_deletes(c):
    create(c, "cond", 2)
    first = put(c, "cond", "a", b"one")
    c.object("PUT", "cond", "a", b"two", {"If-None-Match": "*"}).expect(412, "precondition_failed")
    c.object("PUT", "cond", "a", b"two", {"If-Match": first.headers["ETag"]}).expect(200)
    equal(get(c, "cond", "a").body, b"two", "the object")
    c.object("DELETE", "cond", "a").expect(204)
    get(c, "cond", "a").expect(404, "object_not_found")
    c.object("DELETE", "cond", "a").expect(404, "object_not_found")
    put(c, "cond", "a", b"three")
    equal(get(c, "cond", "a").body, b"three", "the object")
    bad = {"Dfc-Checksum-Type": "crc32c", "Dfc-Checksum-Value": "00000000"}
    c.object("PUT", "cond", "a", b"four", bad).expect(422, "checksum_mismatch")
    equal(get(c, "cond", "a").body, b"three", "after a refused write")


class Load:
    """Clients with a few names each, and what each name may hold."""

    def __init__(self, c, bucket, clients=6, names=5):
        self.c, self.bucket = c, bucket
        self.stop = threading.Event()
        self.failed = []
        self.acknowledged = 0
        self.numbers = itertools.count(1)
        self.may_be = {f"c{i}/{k}": {NOTHING} for i in range(clients) for k in range(names)}
        self.threads = [threading.Thread(target=self.client, args=(i,)) for i in range(clients)]
        for t in self.threads:
            t.start()

    @staticmethod
    def body(number):
        rng = random.Random(number)
        return b"%d " % number + rng.randbytes(rng.choice((0, 10, 5000, 70000)))

    def client(self, index):
        rng = random.Random(index)
        mine = [n for n in self.may_be if n.startswith(f"c{index}/")]
        try:
            while not self.stop.is_set():
                name = rng.choice(mine)
                kind = rng.random()
                if kind < 0.45:
                    self.read(name)
                else:
                    self.write(name, NOTHING if kind < 0.6 else next(self.numbers))
        except Exception as e:
            self.failed.append(e)
        self.c.http.close()

    def write(self, name, number):
        method = "DELETE" if number is NOTHING else "PUT"
        body = None if number is NOTHING else self.body(number)
        reply, doubt = patient(self.c, method, self.bucket, name, body)
        if reply.status == 404 and method == "DELETE":
            check(doubt or NOTHING in self.may_be[name],
                  f"{name} is gone, and may be {self.may_be[name]}")
        elif reply.status not in (200, 204):
            raise Failed(f"{method} {name}: {reply!r}")
        self.may_be[name] = {number}
        self.acknowledged += 1

    def read(self, name):
        reply = get(self.c, self.bucket, name)
        if reply.status == 404:
            got = NOTHING
        else:
            got = int(reply.expect(200).body.split(b" ", 1)[0])
            check(reply.body == self.body(got), f"{name}: not the bytes of write {got}")
        check(got in self.may_be[name], f"{name} holds {got}, and may be {self.may_be[name]}")

    def run_for(self, seconds):
        self.stop.wait(seconds)
        if self.failed:
            self.end()

    def end(self):
        self.stop.set()
        for t in self.threads:
            t.join()
        if self.failed:
            raise self.failed[0]

    def check_all(self):
        for name in self.may_be:
            self.read(name)


def everywhere(c, load, copies):
    """What each name holds lies on so many targets."""
    for name in load.may_be:
        reply = get(c, load.bucket, name)
        if reply.status == 200:
            wait_for(lambda: len(set(holders(c, reply.body))) >= copies, f"copies of {name}")


def test_an_owner_dies_under_load_and_comes_back(c):
    create(c, "load", 2)
    load = Load(c, "load")
    load.run_for(SECONDS)
    before = load.acknowledged
    c.kill("t2")
    wait_for(lambda: load.acknowledged > before + 100 or load.failed, "writes after the kill")
    load.run_for(SECONDS)
    c.start("t2")
    c.wait_node("t2", "active")
    wait_repaired(c)
    load.run_for(SECONDS)
    load.end()
    load.check_all()
    everywhere(c, load, 2)


def dead(c, node):
    return c.state(node) == "dead"


def smap(c):
    return c.get_json("/v1/cluster?what=smap")


def wait_repaired(c):
    """Until nobody lags: a repair has compared what all have."""
    wait_for(lambda: not any(n.get("lag") for n in smap(c)["nodes"]), "the end of the repair", 120)


# Of the acting owner: copies.decided, own, answer; of the others: stage, commit, committed.
POINTS = ("copies.stage", "copies.decided", "copies.commit", "copies.committed", "copies.own",
          "copies.answer")


def test_a_step_that_fails_undoes_nothing(c):
    create(c, "steps", 3)
    faults = ",".join(f"{p}=EIO@{3 + i}" for i, p in enumerate(POINTS))
    c.restart("t1", f"--arg=--faults={faults}")
    wait_repaired(c)
    load = Load(c, "steps")
    load.run_for(SECONDS)
    load.end()
    load.check_all()


def test_an_owner_killed_in_the_middle_of_a_step_undoes_nothing(c):
    create(c, "killed", 3)
    for point in random.sample(POINTS, int(os.environ.get("DFC_KILLS", "1"))):
        print(f"killed at {point}")
        c.restart("t3", f"--arg=--faults={point}=kill@20")
        wait_repaired(c)
        load = Load(c, "killed")
        wait_for(lambda: dead(c, "t3") or load.failed, f"the kill at {point}")
        c.ended_by_test.add("t3")
        load.run_for(SECONDS)
        c.start("t3")
        c.wait_node("t3", "active")
        load.run_for(SECONDS / 2)
        load.end()
        load.check_all()


def send_as_it_is(c, to, bucket, name, version, body):
    """What another target does that finds that `to` lacks it."""
    state = c.get_json("/v1/cluster?what=state")
    number = next(b["id"] for b in state["bmd"]["buckets"] if b["name"] == bucket)
    url = c.get_json("/v1/daemon", to)["data_url"] + f"/v1/objects/{bucket}/{name}" \
        f"?dfcb={number}&dfcv={state['term']}.{state['version']}"
    c.member.request("PUT", url, body, {
        "Dfc-Copy": "move", "Dfc-Version": version, "Dfc-Modified": "1700000000000"}).expect(200)


def test_an_owner_that_got_it_from_another_meanwhile(c):
    """Who was about to send it goes on as if it had."""
    create(c, "even", TARGETS)
    c.setting("repair", "false")
    c.kill("t2")
    versions = {name: put(c, "even", name, b"x").json()["version"] for name in "abcdefgh"}
    c.start("t2")
    c.wait_node("t2", "active")
    for target in ("t1", "t3", "t4"):
        c.restart(target, "--arg=--faults=copies.send=delay:3000@1")
    heard = 'dfc_http_requests_total{route="object_held",code="2xx"}'
    own = c.url("t2")
    name = next(n for n in versions  # one that another target answers for
                if not c.get("even", n, follow=False).headers["Location"].startswith(own))
    asked = metric(c, heard, "t2")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        reading = pool.submit(get, c, "even", name)
        wait_for(lambda: metric(c, heard, "t2") > asked, "the question what t2 has")
        send_as_it_is(c, "t2", "even", name, versions[name], b"x")
        equal(reading.result().expect(200).body, b"x", "what was read")
    c.setting("repair", "true")


def settled(c):
    return not smap(c).get("earlier")


def test_a_target_joins_under_load(c):
    create(c, "moves", 2)
    c.setting("rebalance_delay", "0s")
    c.setting("rebalance_keep", "2s")
    still = {f"s{i}": b"still %d" % i for i in range(20)}
    for name, body in still.items():
        put(c, "moves", name, body)
    load = Load(c, "moves", clients=3)
    c.add_target()
    wait_for(lambda: not settled(c) or load.failed, "moves")
    wait_for(lambda: settled(c) or load.failed, "the end of the moves", 300)
    load.run_for(SECONDS)
    load.end()
    load.check_all()
    for name, body in still.items():
        equal(get(c, "moves", name).expect(200).body, body, name)
        equal(len(holders(c, body)), 2, f"copies of {name}")


if __name__ == "__main__":
    main(targets=TARGETS)

#!/usr/bin/env python3
"""kill -9 of a target at random instants, under PUT, overwrite and DELETE by several clients: what
was acknowledged is there, with the right bytes; what was deleted stays away; the list says what can
be read; nothing unfinished is left in tmp/.

DFC_ROUNDS (10; 5 with a sanitizer) says how often; DFC_SEED repeats the clients' choices.

That it can fail is a test of its own, below: a target that does not write down which names it is
about to change (the fault point index.intend), killed between the index and the rename, comes back
with an index that says something else than its files, and the comparison at the end of a round says
so."""

import os
import random
import threading

from lib import SANITIZED, Failed, check, equal, in_parallel, main, wait_for

ROUNDS = int(os.environ.get("DFC_ROUNDS", 5 if SANITIZED else 10))
SEED = int(os.environ.get("DFC_SEED", 0)) or random.randrange(1, 1 << 31)
BUCKETS = {"kept": "sync", "loose": "async"}  # a killed process loses nothing of either
CLIENTS = 6
NAMES = 6  # of each client in each bucket
SIZES = (0, 1, 700, 5000, 5000, 40000, 40000, 300000, 1500000)
NOTHING = None
REFUSALS = ("node_unreachable", "stale_map", "not_ready")


def body_of(number):
    """The bytes that operation `number` stores."""
    rng = random.Random(number)
    return rng.randbytes(rng.choice(SIZES))


class Names:
    """What each name may hold: the numbers of operations, or NOTHING."""

    def __init__(self):
        self.may_be = {(bucket, f"c{client}/{i}"): {NOTHING} for bucket in BUCKETS
                       for client in range(CLIENTS) for i in range(NAMES)}

    def of_client(self, client):
        return sorted(key for key in self.may_be if key[1].startswith(f"c{client}/"))


class Round:
    """The clients, until they are told to stop, and how many of their writes were acknowledged."""

    def __init__(self, c, names, number):
        self.c, self.names, self.number = c, names, number
        self.stop = threading.Event()
        self.changed = threading.Condition()
        self.acknowledged = 0
        self.failed = []
        self.threads = [threading.Thread(target=self.client, args=(i,)) for i in range(CLIENTS)]

    def client(self, index):
        rng = random.Random(f"{SEED} {self.number} {index}")
        mine = self.names.of_client(index)
        try:
            for i in range(100000):
                if self.stop.is_set():
                    break
                number = (self.number * CLIENTS + index) * 100000 + i
                self.write(rng.choice(mine), NOTHING if rng.random() < 0.25 else number)
        except Exception as e:  # one that is not expected ends the test, not only the thread
            self.failed.append(e)
        self.c.http.close()

    def write(self, key, number):
        may_be = self.names.may_be[key]
        method = "DELETE" if number is NOTHING else "PUT"
        body = None if number is NOTHING else body_of(number)
        try:
            reply = self.c.object(method, *key, body)
        except OSError:
            may_be.add(number)  # nobody said what became of it
            return
        if reply.status in (200, 204):
            self.names.may_be[key] = {number}
            self.count()
        elif reply.status == 404 and number is NOTHING:
            check(NOTHING in may_be, f"{key} is gone, but was {may_be}")
            self.names.may_be[key] = {NOTHING}
        elif reply.status in (409, 503) and reply.json()["code"] in REFUSALS:
            may_be.add(number)  # it may be the answer to a second try
            self.stop.wait(0.01)
        else:
            raise Failed(f"{method} {key}: {reply!r}")

    def count(self):
        with self.changed:
            self.acknowledged += 1
            self.changed.notify_all()

    def run_until(self, acknowledged):
        for thread in self.threads:
            thread.start()
        with self.changed:
            self.changed.wait_for(lambda: self.acknowledged >= acknowledged or self.failed, 60)

    def end(self):
        self.stop.set()
        for thread in self.threads:
            thread.join()
        if self.failed:
            raise self.failed[0]


def look_at(c, key, may_be):
    """What the name holds, one of what it may be, and its version."""
    reply = c.get(*key)
    if reply.status == 404:
        check(NOTHING in may_be, f"{key} is lost: it was acknowledged as one of {may_be}")
        return NOTHING, None
    reply.expect(200)
    for number in may_be - {NOTHING}:
        if reply.body == body_of(number):
            return number, reply.headers["Dfc-Version"]
    raise Failed(f"{key} has {len(reply.body)} bytes that are none of {may_be}")


def look_at_all(c, names):
    keys = sorted(names.may_be)
    found = in_parallel(lambda key: look_at(c, key, names.may_be[key]), keys)
    names.may_be = {key: {number} for key, (number, _) in zip(keys, found)}
    for bucket in BUCKETS:
        entries = [e for page in c.pages(bucket) for e in page["entries"]]
        equal({e["name"]: (e["size"], e["version"]) for e in entries},
              {key[1]: (len(body_of(number)), version) for key, (number, version)
               in zip(keys, found) if key[0] == bucket and number is not NOTHING},
              f"the list of {bucket}")


def unfinished(c, target):
    """Files in tmp/ of the target's mountpaths."""
    top = c.node_dir(target)
    return [os.path.join(mp, name) for mp in os.listdir(top) if mp.startswith("mp")
            for name in os.listdir(os.path.join(top, mp, ".dfc", "tmp"))]


def kill_and_restart(c, target, pid):
    os.kill(pid, 9)
    c.ended_by_test.add(target)
    wait_for(lambda: c.pid(target) is None, f"the end of {target}")
    c.start(target)
    c.wait_node(target, "active")


def one_round(c, names, number, rng):
    target = rng.choice(c.targets())
    pid = c.pid(target)
    clients = Round(c, names, number)
    clients.run_until(rng.randrange(1, 120))
    clients.stop.wait(rng.random() * 0.02)  # not always right behind an answer
    kill_and_restart(c, target, pid)
    clients.end()
    wait_for(lambda: not unfinished(c, target), "an empty tmp/")
    look_at_all(c, names)
    return clients.acknowledged


def known(c):
    """What is known of the names so far."""
    if not hasattr(c, "known"):
        c.known = Names()
        for bucket, durability in BUCKETS.items():
            c.create(bucket, durability=durability)
    return c.known


def test_nothing_acknowledged_is_lost(c):
    print(f"DFC_SEED={SEED} DFC_ROUNDS={ROUNDS}")
    rng, names, acknowledged = random.Random(SEED), known(c), 0
    for number in range(ROUNDS):
        acknowledged += one_round(c, names, number, rng)
    print(f"{ROUNDS} kills, {acknowledged} writes acknowledged")


def killed_by(c, faults, number):
    """Everybody has ended before the target comes back, and so nothing is written over."""
    names = known(c)
    c.restart("t1", f"--arg=--faults={faults}")
    clients = Round(c, names, number)
    clients.run_until(1)
    wait_for(lambda: c.state("t1") == "dead", f"the kill by {faults}")
    c.ended_by_test.add("t1")
    clients.end()
    c.start("t1")
    c.wait_node("t1", "active")
    return names


def test_a_target_that_forgets_what_it_was_about_is_found_out(c):
    look_at_all(c, killed_by(c, "disk.rename=kill@40", ROUNDS + 1))
    names = killed_by(c, "index.intend=skip,disk.rename=kill@40", ROUNDS + 2)
    try:
        look_at_all(c, names)
    except Failed as e:
        print(f"found out: {e}")
    else:
        raise Failed("an index that differs from the files was not noticed")
    equal(c.dfcctl("storage", "reindex", "t1", "--wait").returncode, 0, "the rebuild")
    look_at_all(c, names)


if __name__ == "__main__":
    main(targets=2)

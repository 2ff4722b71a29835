#!/usr/bin/env python3
"""kill -9 of a target in the middle of cold reads, a prefetch and writes through: whatever it was
doing, nothing
wrong is served afterwards, and the job ends well.

DFC_ROUNDS (3) says how often it is killed, DFC_SEED repeats the choices."""

import os
import random
import threading

from cold_lib import QUICK, FakeS3, get_or_none
from lib import ENDED, Failed, check, equal, in_parallel, main, wait_for

ROUNDS = int(os.environ.get("DFC_ROUNDS", 3))
SEED = int(os.environ.get("DFC_SEED", 0)) or random.randrange(1, 1 << 31)
RANDOM = random.Random(SEED)
S3 = FakeS3()
NOISE = random.Random(6).randbytes(300_000)
READS, WRITES, FETCHES = 120, 6, 60


def body_of(name):
    at = sum(name.encode()) % 200_000
    return name.encode() + NOISE[at:at + 1000 * (len(name) % 7) ** 3 + 10]


class Clients:
    """They go on until they are told to end; what they find wrong ends them."""

    def __init__(self, c, number):
        self.c, self.number, self.wrong = c, number, []
        self.ending = threading.Event()
        self.tried = {f"w/{number}/{i}": [] for i in range(WRITES)}
        self.known = {}  # of an acknowledged write: since then it is this, or a later one
        seeds = [RANDOM.random() for _ in range(6)]
        self.threads = [
            threading.Thread(target=self.run, args=(self.read, random.Random(s))) for s in seeds[:3]
        ]
        self.threads += [threading.Thread(target=self.run, args=(self.write, random.Random(s), i))
                         for i, s in enumerate(seeds[3:])]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ending.set()
        for thread in self.threads:
            thread.join()

    def run(self, client, *args):
        while not self.ending.is_set():
            try:
                client(*args)
            except OSError:  # the target is not there
                self.c.http.close()
                self.ending.wait(0.05)
            except Failed as e:
                self.wrong.append(str(e))
                return

    def read(self, rng):
        name = f"r/{self.number}/{rng.randrange(READS)}"
        reply = get_or_none(self.c, "s3", name, node="t1")
        if reply is not None and reply.status == 200:
            check(reply.body == body_of(name), f"{name}: {len(reply.body)} wrong bytes")

    def write(self, rng, own):
        """Each writer has names of its own: what it reads is its last write, or a later one that it
        does not
        know the end of."""
        name = f"w/{self.number}/{rng.randrange(own, WRITES, 3)}"
        data = b"%s %d " % (name.encode(), len(self.tried[name])) + rng.randbytes(
            rng.choice((10, 90_000)))
        self.tried[name].append(data)
        reply = self.c.object("PUT", "s3", name, data, node="t1")
        if reply.status == 200:
            self.known[name] = len(self.tried[name]) - 1
        self.look(name)

    def look(self, name):
        reply = get_or_none(self.c, "s3", name, node="t1")
        if reply is None or reply.status not in (200, 404):
            return
        known = self.known.get(name)
        if reply.status == 404:
            check(known is None, f"{name}: not there, and it was written")
        else:
            check(reply.body in self.tried[name][known or 0:],
                  f"{name}: not one of the writes that may be there")


def fetched(number, prefix):
    with S3.lock:
        return sum(key.startswith(f"{prefix}/{number}/") for _, key, _ in S3.requests)


def test_buckets(c):
    print(f"        DFC_SEED={SEED} DFC_ROUNDS={ROUNDS}", flush=True)
    S3.put("data", "seed", b"seed")
    c.create("s3", backend=f"s3://data?endpoint={S3.url}&auth=none", write_policy="through")
    c.get("s3", "seed").expect(200)  # by the proxy: from here on the target knows the bucket


def strike(c, number):
    """Killed when the backend has seen some of all of it; some answers stand still until then."""
    go = threading.Event()
    names = [f"p/{number}/{i}" for i in range(FETCHES)]
    for name in names + [f"r/{number}/{i}" for i in range(READS)]:
        S3.put("data", name, body_of(name))
        if RANDOM.random() < 0.03:
            S3.fail(name, hold=go, held_bytes=RANDOM.randrange(200))
    job = c.call("POST", "/v1/buckets/s3",
                 {"action": "prefetch", "value": {"list": names}}).expect(202).json()["id"]
    with Clients(c, number) as clients:
        some = RANDOM.randrange(5, 30)
        wait_for(lambda: all(fetched(number, p) >= some for p in "prw"), "all of them work")
        c.kill("t1")
        go.set()
        S3.calm()
        wait_for(S3.is_idle, "what the dead one has sent is done, or is not")
        c.start("t1")
        c.wait_node("t1", "active")
        before = fetched(number, "w")
        wait_for(lambda: clients.wrong or fetched(number, "w") > before, "they go on")
    equal(clients.wrong, [], "what was found wrong")
    return job, names, clients


def backend_or_none(c, name):
    reply = wait_for(lambda: (lambda r: r is not None and r.status in (200, 404) and r)(
        get_or_none(c, "s3", name)), f"an answer for {name}")
    return reply.body if reply.status == 200 else None


def test_kills(c):
    for number in range(ROUNDS):
        job, names, clients = strike(c, number)
        wait_for(lambda j=job: c.get_json(f"/v1/jobs/{j}")["state"] in ENDED, "the prefetch's end")
        equal(c.get_json(f"/v1/jobs/{job}")["state"], "finished", "the prefetch")
        here = set(c.names("s3", prefix=f"p/{number}/", cached="true"))
        equal(here, set(names), "what it has brought")
        in_parallel(
            lambda n: check(c.get("s3", n).expect(200).body == body_of(n), f"{n}: wrong bytes"),
            [*names, *(f"r/{number}/{i}" for i in range(READS))])
        for name in clients.tried:
            equal(backend_or_none(c, name), S3.has("data", name), f"{name}: what the backend has")


if __name__ == "__main__":
    with S3:
        main(targets=1, args=QUICK)

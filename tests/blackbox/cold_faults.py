#!/usr/bin/env python3
"""A campaign of faults of a backend: whatever it does, nothing wrong or partial is served as whole,
or kept;
tries are bounded; connections, files and memory come back to where they were.

DFC_ROUNDS (1) says how many campaigns are run, DFC_SEED repeats one."""

import gzip
import os
import random
import threading

from cold_lib import QUICK, FakeS3, files_open, get_or_none, is_broken, memory_kib, metric
from lib import SANITIZED, check, equal, in_parallel, main, wait_for

ROUNDS = int(os.environ.get("DFC_ROUNDS", 1))
SEED = int(os.environ.get("DFC_SEED", 0)) or random.randrange(1, 1 << 31)
RANDOM = random.Random(SEED)
KEYS = {"AKIDFAULTS": "aSecretOfTheFaults"}
S3, WEB = FakeS3(KEYS), FakeS3(plain=True)
NOISE = random.Random(5).randbytes(400_000)
SIZES = (0, 1, 1000, 65_535, 65_537, 131_073, 400_000)
RETRIES = 2
# A range, and the whole where the range is not to be had; what breaks off within the body is
# carried on so many
# times, each time with tries of its own; and libcurl repeats by itself what a kept connection dies
# under.
REQUESTS_MAX = 2 * (1 + RETRIES + (1 + RETRIES) * (1 + RETRIES))
CONNECTIONS_SPARE = 8  # kept for the next request, also by the test
FAILURES, MEMORY_SPARE_KIB = 150, 24 << 10  # a fetch has a pipe of 1 MiB

WHOLE = {"gzip": {"encoding": "gzip"}, "trickle": {"trickle": 0.0005}, "chunked": {"chunked": True},
         "deaf": {"no_ranges": True}}


def wrong_bytes(place, size):
    """Only a checksum tells."""
    if size == 0 or place.server is WEB:
        return {"status": 500}
    return RANDOM.choice(({"flip": True}, {"flip": True, "chunked": True}))


def fault(place, size):
    """One that breaks an answer."""
    stall = threading.Event()
    return RANDOM.choice((
        {"short": RANDOM.randint(1, max(1, size))},
        {"cut_at": RANDOM.randint(0, size)},
        {"raw_cut": RANDOM.randint(1, 500)},
        {"raw_cut": RANDOM.randint(1, size + 500)},
        wrong_bytes(place, size),
        wrong_bytes(place, size),
        {"etag": '"%032x"' % RANDOM.getrandbits(128)},
        {"stall": stall},
        {"hold": stall, "held_bytes": RANDOM.randint(0, size)},
        {"status": 429},
        {"status": 503},
        {"status": 503, "retry_after": "0"},
        {"status": 429, "retry_after": "1"},
        {"status": 503, "retry_after": "3600"},
        {"status": 502},
        {"status": 403, "code": "ExpiredToken"},
        {"status": 400, "code": "ExpiredToken"},
        {"redirect": "/nowhere"},
        {"redirect": "http://127.0.0.1:1/"},
        {"status": 416},
        {"status": 304},
        {"status": 504},
        {"short": 1, "chunked": True},
    ))


class Place:
    """A bucket here, its backend, and what the objects are."""

    def __init__(self, bucket, server, where, prefix):
        self.bucket, self.server, self.where, self.prefix = bucket, server, where, prefix
        self.bodies = {}

    def put(self, name, data):
        self.bodies[name] = data
        self.server.put(self.where, self.prefix + name, data)

    def disturb(self, name):
        key, size = self.prefix + name, len(self.bodies[name])
        self.server.is_so(key,
                          **RANDOM.choice(list(WHOLE.values())) if RANDOM.random() < 0.3 else {})
        for _ in range(RANDOM.choice((1, 1, 2, 3, 9))):
            self.server.fail(key, **fault(self, size))

    def count(self, name):
        return self.server.count(self.prefix + name)


PLACES = [Place("s3", S3, "data", ""), Place("web", WEB, "", "base/")]


AT_FIRST = {}


def start(c):
    S3.put("data", "seed", b"seed")
    c.create("s3", backend=f"s3://data?endpoint={S3.url}", write_policy="through")
    c.create("web", backend=WEB.url + "/base")
    AT_FIRST["files"] = files_open(c)


def read_whole(c, place, name):
    reply = get_or_none(c, place.bucket, name)
    if reply is not None and reply.status == 200:
        check(reply.body == place.bodies[name],
              f"{name}: {len(reply.body)} wrong bytes served as whole")


def read_range(c, place, name):
    data = place.bodies[name]
    first = RANDOM.randrange(len(data) + 1)
    last = first + RANDOM.randrange(len(data) + 1)
    reply = get_or_none(c, place.bucket, name, {"Range": f"bytes={first}-{last}"})
    if reply is not None and reply.status == 206:
        wanted = data[first:last + 1]
        equal(len(reply.body), len(wanted), f"{name}: length of a range")
        # A range has no checksum that could be compared: a bit that the backend turns is not seen.
        check(reply.body[:-1] == wanted[:-1], f"{name}: bytes {first} to {last} are wrong")


def strike(c, task):
    """Requests while the backend fails, and how many it has cost."""
    place, name, kind = task
    before = place.count(name)
    kind(c, place, name)
    used = place.count(name) - before
    check(used <= REQUESTS_MAX, f"{name}: {used} requests for one")


def round_of_reads(c, number):
    tasks = []
    for place in PLACES:
        for i in range(40):
            name, size = f"r{number}/{i}", RANDOM.choice(SIZES)
            data = NOISE[-size:] if size else b""
            place.put(name, gzip.compress(data, 1) if i % 5 == 0 else data)
            place.disturb(name)
            tasks.append((place, name, RANDOM.choice((read_whole, read_whole, read_range))))
    in_parallel(lambda t: strike(c, t), tasks)
    for place in PLACES:
        place.server.calm()
    in_parallel(lambda t: settled(c, *t[:2]), tasks)


def read_at_last(c, bucket, name):
    """An answer that is none of a timeout, which is short here."""
    def read():
        reply = get_or_none(c, bucket, name)
        return reply if reply is not None and reply.status in (200, 404) else None

    return wait_for(read, f"an answer for {name}")


def settled(c, place, name):
    """What was kept is right, and what was not can be read."""
    reply = read_at_last(c, place.bucket, name)
    check(reply.body == place.bodies[name], f"{name}: wrong bytes after the faults")


def test_reads(c):
    print(f"        DFC_SEED={SEED} DFC_ROUNDS={ROUNDS}", flush=True)
    start(c)
    for number in range(ROUNDS):
        round_of_reads(c, number)


def test_what_cannot_be_right_is_not_kept(c):
    """Every answer is wrong: it is said, every time, and nothing is here in the end."""
    for i, wrong in enumerate(
        ({"flip": True}, {"short": 1}, {"etag": '"%032x"' % 7}, {"raw_cut": 300},
         {"status": 403, "code": "ExpiredToken"}, {"redirect": "/nowhere"})):
        name = f"wrong/{i}"
        PLACES[0].put(name, NOISE)
        S3.is_so(name, **wrong)
        for _ in range(2):
            is_broken(c, "s3", name)
        check(name not in c.names("s3", cached="true"), f"{wrong}: it was kept")
    S3.calm()


# --- writes --------------------------------------------------------------------------------------

def write(c, task):
    """Some fail; what is read is what the backend has, at any time after the answer."""
    name, bodies = task
    for data in bodies:
        reply = c.object("PUT", "s3", name, data)
        if reply.status == 200:
            check(
                S3.has("data", name) == data,
                f"{name}: a write was acknowledged that the backend has not")


def test_writes(c):
    tasks = []
    for i in range(24):
        name, bodies = f"w/{i}", [
            RANDOM.randbytes(RANDOM.choice((0, 10, 70_000))) for _ in range(3)
        ]
        for _ in range(RANDOM.choice((1, 2, 4))):
            S3.fail(
                name, method="PUT",
                **RANDOM.choice(
                    ({"read_at": RANDOM.randrange(70_000)}, {"deaf": True}, {"status": 503},
                     {"status": 429}, {"status": 500}, {"raw_cut": RANDOM.randint(1, 100)},
                     {"status": 403, "code": "ExpiredToken"}, {"stall": threading.Event()})))
        tasks.append((name, bodies))
    in_parallel(lambda t: write(c, t), tasks)
    S3.calm()
    for name, bodies in tasks:
        held, reply = S3.has("data", name), read_at_last(c, "s3", name)
        if held is None:
            reply.expect(404)
        else:
            check(held in bodies and reply.expect(200).body == held,
                  f"{name}: not what the backend has")


# --- the end -------------------------------------------------------------------------------------

def unfinished(c):
    for at, _, files in os.walk(c.node_dir("t1")):
        if os.path.join(".dfc", "tmp") in at:
            yield from files


def test_connections_and_files_come_back(c):
    for place in PLACES:
        place.server.server.cut_connections()
    number = iter(range(1 << 30))

    def is_back():  # connections that are dead are found at the next request
        PLACES[1].put(name := f"after/{next(number)}", b"x")
        c.get("web", name)
        return files_open(c) <= AT_FIRST["files"] + CONNECTIONS_SPARE

    wait_for(is_back, f"{AT_FIRST['files']} descriptors as at first")
    equal(list(unfinished(c)), [], "files of fetches that failed")
    check(metric(c, "dfc_backend_retries_total") > 0, "nothing was tried again")


def fail_often(c, times):
    S3.is_so("leaky", flip=True)
    for _ in range(times):
        is_broken(c, "s3", "leaky")
    S3.calm()


def test_memory_comes_back(c):
    PLACES[0].put("leaky", NOISE)
    fail_often(c, 10)
    before = memory_kib(c)
    fail_often(c, FAILURES)
    grown = memory_kib(c) - before
    # A sanitizer holds back what is freed, and finds by itself at the end what is not.
    check(SANITIZED or grown < MEMORY_SPARE_KIB,
          f"{FAILURES} failures have taken {grown} KiB of memory")
    print(f"        {FAILURES} fetches that failed: {grown} KiB")


if __name__ == "__main__":
    os.environ.update(
        {"AWS_ACCESS_KEY_ID": "AKIDFAULTS", "AWS_SECRET_ACCESS_KEY": KEYS["AKIDFAULTS"]})
    os.environ.pop("AWS_SESSION_TOKEN", None)
    with S3, WEB:
        main(
            targets=1, args=[
                *QUICK, "--target-arg=--backend-timeout=1s", "--target-arg=--cold-range-fetch=64KiB"
            ])

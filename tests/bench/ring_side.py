"""One maker or reader of ring.py, in a process of its own; prints JSON.

    ring_side.py KIND SIDE WHERE PLACE SECONDS SIZE CAP PAUSE

KIND     push: makes samples; read: random batches; train: the same with a step of PAUSE behind each;
         watch: can a sample of the newest generation be read?  All PAUSE seconds
SIDE     dfc: WHERE is the URL of a proxy, PLACE a ring; redis: WHERE is a port; fly: no cache, PLACE
         threads of the reader make a sample in WHERE seconds each
SIZE     bytes of a sample, in two kinds
PAUSE    seconds between the begins of two pushes, or of a step

It says "ready", and begins when it is told a line."""

import json
import os
import queue
import random
import sys
import threading
import time

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[0] = os.path.join(HERE, "..", "..", "python", "src")
BATCH = 8
CHUNK = 10 << 20  # CHUNKSIZE of Wirehead's examples
RETRY_SECONDS = 1.0  # as its dataset does
KINDS = ("data", "label")


class Gone(Exception):
    """A read found that samples are not there."""


class Dfc:
    def __init__(self, where, place, size, cap):
        del size, cap
        import dfc
        from dfc.ring import Ring, RingReader
        self.ring = Ring(dfc.Client(where, profile=""), place)
        self.reader = RingReader(self.ring)

    def push(self, sample):
        self.ring.push(sample)
        return True

    def read(self, indexes):
        return len(self.reader.batch(indexes))

    def is_readable(self):
        """Asked once: what the head names."""
        from dfc.errors import NotFound
        try:
            return len(self.ring.read(self.ring.head().newest(), [0])) == 1
        except NotFound:
            return False


class Wirehead:
    """Wirehead 0.9 on Redis in place of MongoDB: a collection is a hash, a document a field of it.

    An index is taken before the sample is stored.  The maker that completes a generation swaps:
    write becomes temp, what is too much is deleted, ids are checked, and temp becomes read.  A
    sample beyond the cap is thrown away, and so is a generation in which an id is missing."""

    def __init__(self, where, place, size, cap):
        del place
        import redis
        self.db = redis.Redis(port=int(where))
        self.cap, self.errors = cap, (redis.ResponseError,)
        half = size // len(KINDS)
        self.chunks = {kind: range(0, half, CHUNK) for kind in KINDS}

    def push(self, sample):
        """False: it was thrown away."""
        index = self.db.incr("started") - 1
        if index < self.cap:
            fields = {f"{index}:{kind}:{at}": memoryview(data)[at:at + CHUNK]
                      for kind, data in sample.items() for at in self.chunks[kind]}
            self.db.hset("write", mapping={**fields, f"{index}:telomere": b""})
            self.db.incr("completed")
        self.attempt_swap()
        if index > 2 * self.cap:
            self.db.delete("write", "started", "completed", "swap_lock")
        return index < self.cap

    def attempt_swap(self):
        if int(self.db.get("completed") or 0) < self.cap or not self.db.set("swap_lock", 1, nx=True):
            return
        try:
            self.swap()
        except self.errors:
            pass  # there is no write collection
        self.db.delete("write")
        self.db.mset({"started": 0, "completed": 0})
        self.db.delete("write", "swap_lock")

    def swap(self):
        self.db.rename("write", "temp")
        names = [name.decode().split(":") for name in self.db.hkeys("temp")]
        excess = [":".join(name) for name in names if int(name[0]) >= self.cap]
        if excess:
            self.db.hdel("temp", *excess)
        ids = sorted(int(name[0]) for name in names if name[1] == "telomere" and int(name[0]) < self.cap)
        if ids != list(range(self.cap)):
            self.db.delete("temp")
            return
        self.db.rename("temp", "read")
        self.db.incr("swaps")

    def read(self, indexes):
        fields = [f"{index}:{kind}:{at}" for index in indexes for kind in KINDS for at in self.chunks[kind]]
        found = self.db.hmget("read", fields)
        if None in found:
            raise Gone
        b"".join(found)  # a sample is put together of its chunks
        return len(indexes)

    def is_readable(self):
        return self.db.hexists("read", "0:telomere")


class OnTheFly:
    """A training that makes its own samples, as the workers of a DataLoader do, two batches ahead."""

    def __init__(self, where, place, size, cap):
        del size, cap
        self.made = queue.Queue(2 * BATCH)
        for _ in range(int(place)):
            threading.Thread(target=self.make, args=(float(where),), daemon=True).start()

    def make(self, pause):
        while True:
            time.sleep(pause)
            self.made.put(None)

    def read(self, indexes):
        for _ in indexes:
            self.made.get()
        return len(indexes)


SIDES = {"dfc": Dfc, "redis": Wirehead, "fly": OnTheFly}


def push(side, until, sample, _cap, pause):
    stored = thrown = 0
    due = time.monotonic()
    while time.monotonic() < until:
        if side.push(sample):
            stored += 1
        else:
            thrown += 1
        due += pause
        time.sleep(max(0.0, due - time.monotonic()) if pause else 0.0)
    return {"count": stored, "thrown_away": thrown}


def read(side, until, _sample, cap, pause):
    """`gap_ms`: the longest time between the ends of two batches, without the steps."""
    count = failed = 0
    waited = longest = 0.0
    while time.monotonic() < until:
        began = time.monotonic()
        is_read = False
        while not is_read and time.monotonic() < until:
            try:
                count += side.read(random.sample(range(cap), min(BATCH, cap)))
                is_read = True
            except Gone:
                failed += 1
                time.sleep(RETRY_SECONDS)
        took = time.monotonic() - began
        waited += took
        longest = max(longest, took)
        time.sleep(pause)
    return {"count": count, "failed": failed, "waited_s": waited, "gap_ms": longest * 1000}


def watch(side, until, _sample, _cap, pause):
    """From the first look that fails to the next one that does not."""
    count = failed = 0
    unreadable, since = 0.0, None
    while time.monotonic() < until:
        is_readable = side.is_readable()
        now = time.monotonic()
        count += 1
        if is_readable and since is not None:
            unreadable, since = unreadable + now - since, None
        elif not is_readable:
            failed, since = failed + 1, since or now
        time.sleep(pause)
    unreadable += time.monotonic() - since if since is not None else 0.0
    return {"count": count, "failed": failed, "unreadable_s": unreadable}


KINDS_OF_RUN = {"push": push, "read": read, "train": read, "watch": watch}


def main(argv):
    kind, side, where, place, seconds, size, cap, pause = argv
    client = SIDES[side](where, place, int(size), int(cap))
    # Before the begin: random bytes of 33.5 MB take longer than a short run.
    sample = {name: os.urandom(int(size) // len(KINDS)) for name in KINDS} if kind == "push" else {}
    print("ready", flush=True)
    sys.stdin.readline()
    began = time.monotonic()
    result = KINDS_OF_RUN[kind](client, began + float(seconds), sample, int(cap), float(pause))
    print(json.dumps({**result, "seconds": time.monotonic() - began}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

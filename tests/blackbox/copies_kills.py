#!/usr/bin/env python3
"""kill -9 of as many targets as the copies bear (copies 2: one of four; copies 3: two of five,
--targets=5)
under a mixed load, and their return with what they had, and with empty disks: no streamed read
fails, no
other one fails for good or goes back, nothing acknowledged is lost or undone, and a repair brings
all copies back.  Prints how long it
took, and what was received for it, beside the least that had to be.

DFC_ROUNDS (1), DFC_OBJECTS (40) and DFC_SIZE (30000, bytes of each), DFC_SECONDS (1): of load at
each stage."""

import os
import random
import shutil
import sys
import time

from copies import Load, create, everywhere, get, holders, put, wait_repaired
from lib import check, equal, in_parallel, main, wait_for

ROUNDS = int(os.environ.get("DFC_ROUNDS", 1))
OBJECTS = int(os.environ.get("DFC_OBJECTS", 40))
SIZE = int(os.environ.get("DFC_SIZE", 30000))
SECONDS = float(os.environ.get("DFC_SECONDS", 1))


def body(name):
    return random.Random(name).randbytes(SIZE)


def names(bucket):
    return [f"{bucket}/still/{i}" for i in range(OBJECTS)]


def copies_of(c):
    return 3 if len(c.targets()) > 4 else 2


def bytes_on(c, nodes):
    return sum(os.path.getsize(path) for node in nodes for path in c.object_files(node))


def bytes_received(c, nodes):
    """In bodies of requests since they started, those of the load among them."""
    lines = [line for node in nodes
             for line in c.call("GET", "/metrics", node=node).body.decode().splitlines()]
    return sum(int(float(line.split()[-1])) for line in lines
               if line.startswith("dfc_http_bytes_received_total"))


def read_streamed(c, bucket):
    """At once after the kill, each name once: a proxy waits for an owner that can be reached."""
    def read(name):
        reply = c.get(bucket, name, headers={"Dfc-Redirect": "never"}, timeout=120)
        check(reply.expect(200).body == body(name), f"{name}: other bytes")
    began = time.monotonic()
    in_parallel(read, names(bucket))
    print(f"        {OBJECTS} streamed reads, none failed; the last was answered after "
          f"{time.monotonic() - began:.1f} s")


def kill_and_return(c, load, empty):
    victims = random.sample(sorted(c.targets()), copies_of(c) - 1)
    print(f"kill -9 {' '.join(victims)}" + (", and empty their disks" if empty else ""))
    before = load.acknowledged
    for node in victims:
        c.kill(node)
    read_streamed(c, load.bucket)
    wait_for(lambda: load.acknowledged > before + 30 or load.failed, "writes without them", 120)
    load.run_for(SECONDS)
    for name in names(load.bucket)[:5]:
        check(get(c, load.bucket, name).expect(200).body == body(name), f"{name}: other bytes")
    for node in victims:
        for mountpath in [d for d in os.listdir(c.node_dir(node)) if empty and d.startswith("mp")]:
            shutil.rmtree(os.path.join(c.node_dir(node), mountpath))
    began = time.monotonic()
    for node in victims:
        c.start(node, *(["--arg=--mountpath-lost-ok=true"] if empty else []))
    for node in victims:
        c.wait_node(node, "active")
    wait_repaired(c)
    print(
        f"back and repaired in {time.monotonic() - began:.1f} s; {bytes_received(c, victims)} "
        "bytes received"
        f" by them, {bytes_on(c, victims)} are on their disks")
    load.run_for(SECONDS)


def campaign(c, empty):
    copies = copies_of(c)
    bucket = f"kills{int(empty)}"
    create(c, bucket, copies)
    in_parallel(lambda name: put(c, bucket, name, body(name)), names(bucket))
    load = Load(c, bucket, clients=3, names=4)
    try:
        for _ in range(ROUNDS):
            kill_and_return(c, load, empty)
    finally:
        load.stop.set()
    load.end()
    load.check_all()
    for name in names(bucket):
        check(get(c, bucket, name).expect(200).body == body(name), f"{name}: other bytes")
        equal(len(set(holders(c, body(name)))), copies, f"copies of {name}")
    everywhere(c, load, copies)


def test_they_come_back_with_what_they_had(c):
    campaign(c, empty=False)


def test_they_come_back_with_empty_disks(c):
    campaign(c, empty=True)


if __name__ == "__main__":
    if not any(a.startswith("--targets=") for a in sys.argv):
        sys.argv.append("--targets=4")
    main(args=("--proxy-arg=--owner-wait=1m",))

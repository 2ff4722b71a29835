#!/usr/bin/env python3
"""Many clients before a bucket with a backend: what the first byte takes, and what the backend is
asked.

One object of 64 MiB that is not here, for one client and for 64 at once, beside the backend's own
answer to one and
beside what 64 clients get of an object that is here; with a backend that answers at once, as fast
as it can, and with
a distant one that takes 20 ms, and gives 50 MB/s then.  Then 64 clients and 1,000 objects of 64
KiB, each
asked for eight times."""

import random
import selectors
import socket
import sys
import time
import urllib.parse

import benchlib
from benchlib import KIB, MIB, load
from peers import Cluster
from slow_s3 import apart, create

CROWD = 64
BACKENDS = [  # name, milliseconds before the first byte, bytes a second
    ("near", 0, None),
    ("distant", 20, 50_000_000),
]
TIMES = 8
BUFFER = bytearray(256 * KIB)


class Client:
    """A connection with its request sent, that waits for the first byte of the body and then for
    the last."""

    def __init__(self, at, path):
        self.socket = socket.create_connection((at.hostname, at.port), timeout=600)
        lines = (f"GET {path} HTTP/1.1", f"Host: {at.netloc}", "Connection: close", "", "")
        self.request = "\r\n".join(lines).encode()
        self.head, self.body, self.first_ms, self.ended = b"", 0, None, False

    def ask(self):
        self.begun = time.monotonic()
        self.socket.sendall(self.request)

    def read(self):
        got = self.socket.recv_into(BUFFER)
        self.ended = got == 0
        if self.first_ms is None:
            self.head += BUFFER[:got]
            head, _, body = self.head.partition(b"\r\n\r\n")
            self.body = len(body)
            self.is_right = head.startswith(b"HTTP/1.1 200")
        else:
            self.body += got
        if self.body > 0 and self.first_ms is None:
            self.first_ms = (time.monotonic() - self.begun) * 1000


def ask_at_once(url, path, count, size):
    """→ when the first, the median and the last client had its first byte, and the last its
    last."""
    at = urllib.parse.urlsplit(url)
    clients = [Client(at, path) for _ in range(count)]
    selector = selectors.DefaultSelector()
    begun = time.monotonic()
    for client in clients:
        client.ask()
        selector.register(client.socket, selectors.EVENT_READ, client)
    while selector.get_map():
        for key, _ in selector.select():
            key.data.read()
            if key.data.ended:
                selector.unregister(key.fileobj)
                key.fileobj.close()
    if not all(c.is_right and c.body == size for c in clients):
        raise RuntimeError(
            f"{url}{path}: {[(c.head[:80], c.body) for c in clients if c.body != size][:1]}")
    first = sorted(c.first_ms for c in clients)
    return {"first": first[0], "median": benchlib.median(first), "last": first[-1],
            "whole": (time.monotonic() - begun) * 1000}


def one_object(args, cluster, s3, backend, delay_ms, rate):
    size = 64 * MIB if not args.quick else MIB
    s3.be(delay_ms / 1000, rate)
    number = 0

    def cold(count):
        nonlocal number
        number += 1
        name = f"{backend}{number}"
        s3.make(name, size)
        result = ask_at_once(cluster.url, f"/v1/objects/crowd/{name}", count, size)
        result["asked"] = s3.count(name)
        s3.remove("data", name)
        cluster.call("POST", "/v1/buckets/crowd", {"action": "evict", "value": {"list": [name]}})
        return result

    s3.make(f"{backend}0", size)
    straight, here = f"/data/{backend}0", f"/v1/objects/crowd/{backend}0"
    runs = benchlib.interleave(
        {
            "straight": lambda: ask_at_once(s3.where(), straight, 1, size),
            "1 client": lambda: cold(1), f"{CROWD} clients": lambda: cold(CROWD),
            f"{CROWD}, it is here": lambda: ask_at_once(cluster.url, here, CROWD, size)
        }, args.rounds)
    s3.be(0, None)
    ms = {
        side:
        {what: [round(r[what], 2) for r in of]
         for what in ("first", "median", "last", "whole")}
        for side, of in runs.items()
    }
    return {
        "size": size, "backend": backend, "delay_ms": delay_ms, "bytes_per_s": rate, "runs_ms": ms,
        "ms": {
            side: {what: round(benchlib.median(v), 2)
                   for what, v in of.items()}
            for side, of in ms.items()
        }, "first_to_straight": {
            side: benchlib.paired_ratio(ms[side]["median"], ms["straight"]["median"])
            for side in ms if side != "straight"
        }, "backend_requests": max(r["asked"] for of in runs.values() for r in of if "asked" in r)
    }


def read_all(args, work, url, prefix, names):
    paths = work / "paths"
    paths.write_text("".join(f"{prefix}{n}\n" for n in names))
    result = load(args.build, url, mode="get", paths=paths, requests=len(names), connections=CROWD,
                  duration="1h")
    if benchlib.failures(result) > 0 or result["requests"] != len(names):
        raise RuntimeError(f"{url}: {result['status']}, {result['errors']}")
    return result["requests_per_s"]


def many_objects(args, cluster, s3, work):
    count, size = (1000, 64 * KIB) if not args.quick else (50, KIB)
    names = [f"o{i:06d}" for i in range(count)]
    for name in names:
        s3.make(name, size)
    asked = names * TIMES
    runs, requests = {"straight": [], "cold": [], "here": []}, []
    for number in range(args.rounds):
        random.Random(number).shuffle(asked)
        runs["straight"].append(read_all(args, work, s3.where(), "/data/", asked))
        bucket = f"many{number}"
        create(cluster, s3.where(), bucket, "straight")
        before = s3.asked()
        for side in ("cold", "here"):
            runs[side].append(read_all(args, work, cluster.url, f"/v1/objects/{bucket}/", asked))
        requests.append(s3.asked() - before)
        cluster.call("DELETE", f"/v1/buckets/{bucket}")
    return {"objects": count, "size": size, "times": TIMES, "requests_per_s":
            {side: round(benchlib.median(v)) for side, v in runs.items()}, "runs": runs,
            "backend_requests": max(requests)}


def main():
    args = benchlib.arguments(__doc__).parse_args()
    args.rounds = 1 if args.quick else args.rounds
    document = {"machine": benchlib.begin(args), "clients": CROWD}
    with apart() as s3, benchlib.WorkDir(args.dir) as work, Cluster(work / "dfc",
                                                                    args.build) as cluster:
        s3.make("straight", MIB)
        create(cluster, s3.where(), "crowd", "straight")
        document["one"] = [one_object(args, cluster, s3, *backend) for backend in BACKENDS]
        document["many"] = many_objects(args, cluster, s3, work)
    benchlib.table([
        "first byte of 64 MiB, ms", "first", "median", "last", "times straight", "whole",
        "backend asked"
    ], [[
        f"{row['backend']}: {side}",
        *(row["ms"][side][w] for w in ("first", "median", "last")), row["first_to_straight"].get(
            side, {}).get("median"), row["ms"][side]["whole"], row["backend_requests"]
    ] for row in document["one"] for side in row["ms"]])
    m = document["many"]
    benchlib.table([
        f"{m['objects']} x {benchlib.size_text(m['size'])}, each {m['times']} times", "requests/s",
        "backend asked"
    ], [[side, rate, m["backend_requests"] if side == "cold" else None]
        for side, rate in m["requests_per_s"].items()])
    benchlib.finish(args, "crowd", document)
    return 0


if __name__ == "__main__":
    sys.exit(main())

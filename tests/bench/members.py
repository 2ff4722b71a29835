#!/usr/bin/env python3
"""Members of plain tars beside what a client would do without them:

    member   GETs of one member of 10 KiB of a hot tar      ranged GETs of the same bytes
    list     members=list of all members of a hot tar       tar t of the same file
    first    the same of a tar that was not read before     tar t of the same file
    batch    one batch of members over many shards          a GET for each of them

Each side has one connection, to the target that has the object where there is one."""

import http.client
import io
import json
import random
import subprocess
import sys
import tarfile
import time
import urllib.parse

import benchlib
from benchlib import KIB, MIB, log
from peers import Cluster

MEMBER, TAR = 10 * KIB, 256 * MIB
LISTED, PAGE = 100_000, 10_000
SHARDS, BATCH = 32, 256
GETS = 3000


class Link:
    """One connection to a node."""

    def __init__(self, url):
        at = urllib.parse.urlsplit(url)
        self.connection = http.client.HTTPConnection(at.hostname, at.port, timeout=120)

    def call(self, method, path, body=None, headers=None):
        self.connection.request(method, path, body, headers or {})
        answer = self.connection.getresponse()
        data = answer.read()
        if answer.status not in (200, 206):
            raise RuntimeError(f"{method} {path}: {answer.status} {data[:200]}")
        return data


class Owner(Link):
    """The target that has an object, asked for it as a redirect of the proxy says."""

    def __init__(self, cluster, bucket, name):
        proxy = urllib.parse.urlsplit(cluster.proxy["url"])
        connection = http.client.HTTPConnection(proxy.hostname, proxy.port, timeout=60)
        connection.request("GET", f"/v1/objects/{bucket}/{name}")
        answer = connection.getresponse()
        answer.read()
        to = urllib.parse.urlsplit(answer.getheader("Location"))
        connection.close()
        self.path = f"{to.path}?{to.query}"
        super().__init__(f"http://{to.netloc}")

    def get(self, query="", headers=None):
        return self.call("GET", self.path + query, headers=headers)


def make_tar(count, size):
    """→ its bytes: members of one size."""
    out = io.BytesIO()
    rng = random.Random(3)
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for i in range(count):
            info = tarfile.TarInfo(f"set/{i:07}.bin")
            info.size = size
            tar.addfile(info, io.BytesIO(rng.randbytes(size)))
    return out.getvalue()


def put(cluster, name, data):
    Link(cluster.proxy["url"]).call("PUT", f"/v1/objects/b/{name}?redirect=never", data)


def seconds(work):
    begun = time.monotonic()
    work()
    return time.monotonic() - begun


# --- one member ----------------------------------------------------------------------------------

def one_member(cluster, size, gets):
    data = make_tar(size // (MEMBER + 512), MEMBER)
    put(cluster, "hot.tar", data)
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        members = [(m.name, m.offset_data) for m in tar.getmembers()]
    owner = Owner(cluster, "b", "hot.tar")
    wanted = random.Random(5).choices(members, k=gets)
    for name, at in wanted[:20]:
        if owner.get(f"&member={name}") != data[at:at + MEMBER]:
            raise RuntimeError(f"{name}: other bytes")

    def ranges():
        for _, at in wanted:
            owner.get(headers={"Range": f"bytes={at}-{at + MEMBER - 1}"})

    def names():
        for name, _ in wanted:
            owner.get(f"&member={name}")

    return {"members": lambda: seconds(names), "ranges": lambda: seconds(ranges)}


# --- lists ---------------------------------------------------------------------------------------

def list_all(owner, count):
    after, found = "", 0
    while found < count:
        page = json.loads(owner.get(f"&members=list&limit={PAGE}&after={after}"))
        found += len(page["members"])
        after = page["members"][-1]["name"]
    if page["truncated"] or found != count:
        raise RuntimeError(f"{found} members are listed, and not {count}")


def lists(cluster, work, count):
    data = make_tar(count, 100)
    path = work / "listed.tar"
    path.write_bytes(data)
    put(cluster, "listed.tar", data)
    owner = Owner(cluster, "b", "listed.tar")
    fresh = iter(range(10 ** 9))

    def first():
        name = f"new-{next(fresh)}.tar"
        put(cluster, name, data)
        of_name = Owner(cluster, "b", name)
        return seconds(lambda: list_all(of_name, count))

    def tar_t():
        return seconds(lambda: subprocess.run(["tar", "tf", path], stdout=subprocess.DEVNULL,
                                              check=True))

    return {"list": lambda: seconds(lambda: list_all(owner, count)), "first list": first,
            "tar t": tar_t}


# --- batches -------------------------------------------------------------------------------------

def batches(cluster, count):
    per = count // SHARDS or 1
    data = make_tar(per * 4, MEMBER)
    for s in range(SHARDS):
        put(cluster, f"shard-{s:02}.tar", data)
    entries = [(f"shard-{i % SHARDS:02}.tar", f"set/{i // SHARDS:07}.bin") for i in range(count)]
    random.Random(7).shuffle(entries)
    body = json.dumps({"entries": [{"bucket": "b", "object": o, "member": m} for o, m in entries]})
    owners = {o: Owner(cluster, "b", o) for o in {e[0] for e in entries}}
    target = Link(cluster.url)

    def batch():
        got = target.call("POST", "/v1/batch", body)
        if len(got) < count * MEMBER:
            raise RuntimeError(f"the batch has {len(got)} bytes")

    def gets():
        for name, member in entries:
            owners[name].get(f"&member={member}")

    return {"batch": lambda: seconds(batch), "GETs": lambda: seconds(gets)}


# --- all -----------------------------------------------------------------------------------------

def compare(document, row, sides, rounds, pairs):
    runs = benchlib.interleave(sides, rounds)
    document[row] = {"seconds": {s: [round(t, 4) for t in of] for s, of in runs.items()}}
    for mine, other in pairs:
        ratio = benchlib.paired_ratio(runs[other], runs[mine])
        document[row][f"{mine} of {other}"] = ratio
        log(f"{row}: {mine} {benchlib.median(runs[mine]):.4f} s, {other} "
            f"{benchlib.median(runs[other]):.4f} s: {ratio['median']} of its speed")


def main():
    args = benchlib.arguments(__doc__).parse_args()
    quick = args.quick
    rounds = 1 if quick else args.rounds
    document = {"machine": benchlib.begin(args)}
    with benchlib.WorkDir(args.dir) as work, Cluster(work / "dfc", args.build, targets=3) as cluster:
        cluster.call("POST", "/v1/buckets/b", {"action": "create", "value": {"durability": "async"}})
        sides = one_member(cluster, MIB if quick else TAR, 20 if quick else GETS)
        compare(document, "member", sides, rounds, [("members", "ranges")])
        sides = lists(cluster, work, 500 if quick else LISTED)
        compare(document, "list", sides, rounds, [("list", "tar t"), ("first list", "tar t")])
        sides = batches(cluster, 32 if quick else BATCH)
        compare(document, "batch", sides, rounds, [("batch", "GETs")])
    benchlib.finish(args, "members", document)
    return 0


if __name__ == "__main__":
    sys.exit(main())

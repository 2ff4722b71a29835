#!/usr/bin/env python3
"""Lists of millions of names: one target's pages as a proxy asks for them, whole lists through the
proxy, and single pages with prefix and delimiter.  The names stand in the indexes alone: without
files, since only lists are asked for (dfc-fill-index)."""

import http.client
import json
import re
import subprocess
import sys
import time
import urllib.parse

import benchlib
from benchlib import KIB, MIB, log
from peers import Cluster

NAMES = 10_000_000
PAGE = 10_000
MOUNTPATHS = 2
NEXT = re.compile(rb'"next": ?"([^"]*)"')
ENTRY = b'{"name":'


def anonymous(pid):
    """Resident memory without the pages of the index's file, which are the page cache's."""
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as f:
        for line in f:
            if line.startswith("RssAnon"):
                return int(line.split()[1]) * KIB
    raise RuntimeError(f"no RssAnon of {pid}")


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


class Pager:
    """GETs pages over one connection."""

    def __init__(self, url, path):
        at = urllib.parse.urlsplit(url)
        self.connection = http.client.HTTPConnection(at.hostname, at.port, timeout=60)
        self.path = path

    def page(self, **query):
        self.connection.request("GET", f"{self.path}?{urllib.parse.urlencode(query)}")
        answer = self.connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{self.path}: {answer.status} {body[:200]}")
        return body

    def all(self, goes_on, look, **query):
        """→ names of all pages; goes_on makes the next page's query of `next`; look() is called
        after each."""
        names = 0
        while True:
            body = self.page(limit=PAGE, **query)
            look()
            names += body.count(ENTRY)
            following = NEXT.search(body[-4000:]).group(1).decode()
            if following == "":
                return names
            query.update(goes_on(following))


def measure(pids, run):
    """→ names/s, CPU us for each name by process, anonymous memory before and after."""
    before = [cpu_seconds(p) for p in pids]
    memory = [anonymous(p) for p in pids]
    peak = list(memory)
    start = time.monotonic()
    names = run(lambda: [peak.__setitem__(i, max(peak[i], anonymous(p)))
                         for i, p in enumerate(pids)])
    seconds = time.monotonic() - start
    return {"names": names, "seconds": round(seconds, 2), "names_per_s": round(names / seconds),
            "cpu_us_per_name": [round((cpu_seconds(p) - b) / names * 1e6, 2)
                                for p, b in zip(pids, before)],
            "anonymous_mib": [round(m / MIB, 1) for m in memory],
            "anonymous_peak_mib": [round(m / MIB, 1) for m in peak]}


def fill(args, cluster, bucket_id, names):
    """Stops the targets, fills their indexes, starts them again."""
    targets = [t["name"] for t in cluster.targets]
    parts = [(t, m) for t in targets for m in range(1, MOUNTPATHS + 1)]
    total = {"names": 0, "bytes": 0, "seconds": 0.0}
    for t in targets:
        cluster.tool("stop", t)
    for i, (t, m) in enumerate(parts):
        index = next((cluster.dir / t).glob(f"*{m}/.dfc/index"))
        done = subprocess.run([str(args.build / "tests/bench/dfc-fill-index"), str(index),
                               str(bucket_id), str(names), str(i), str(len(parts))],
                              stdout=subprocess.PIPE, text=True, check=True)
        for key, value in json.loads(done.stdout).items():
            total[key] += value
    for t in targets:
        cluster.tool("start", t)
    cluster.nodes = json.loads(cluster.tool("status", "--json"))["nodes"]
    cluster.proxy = next(n for n in cluster.nodes if n["role"] == "proxy")
    cluster.targets = [n for n in cluster.nodes if n["role"] == "target"]
    return total


def seek_rows(pager):
    """Milliseconds of one page each."""
    rows = {}
    for name, query in {
            "prefix in the middle": {"prefix": "train/part-00500/", "limit": 1000},
            "start_after near the end": {"start_after": "train/part-00999", "limit": 1000},
            "delimiter, 1000 folders": {"prefix": "train/", "delimiter": "/", "limit": 10000},
            "a prefix that is not there": {"prefix": "zzz", "limit": 1000}
    }.items():
        times = []
        for _ in range(7):
            start = time.monotonic()
            pager.page(**query)
            times.append((time.monotonic() - start) * 1e3)
        rows[name] = round(benchlib.median(times), 2)
    return rows


def run_cluster(args, work, targets, names):
    with Cluster(work / f"dfc{targets}", args.build, targets=targets,
                 mountpaths=MOUNTPATHS, keyed=False) as cluster:  # we ask as a node does
        cluster.new_place("b")
        bucket = cluster.call("GET", "/v1/buckets/b")
        cluster.put_first("/v1/objects/b/")
        index = fill(args, cluster, bucket["id"], names)
        state = cluster.call("GET", "/v1/cluster")
        urls = {n["id"]: n["data_url"] for n in state["nodes"]}
        version = f"{state['term']}.{state['version']}"
        pids = [cluster.proxy["pid"]] + [t["pid"] for t in cluster.targets]
        rows = []
        first = cluster.targets[0]
        by_target = Pager(urls[first["name"]], f"/v1/list/{bucket['id']}")
        by_proxy = Pager(cluster.proxy["url"], "/v1/objects/b")
        sides = [("one target's pages", [first["pid"]], by_target,
                  lambda n: {"start_after": n}, {"dfcv": version}),
                 (f"through the proxy, {targets} target(s)", pids, by_proxy,
                  lambda n: {"token": n}, {})]
        for name, of, pager, goes_on, query in sides:
            if args.only not in name:
                continue
            runs = []
            for _ in range(args.rounds):
                def run(look, pager=pager, goes_on=goes_on, query=query):
                    return pager.all(goes_on, look, **query)
                runs.append(measure(of, run))
            middle = sorted(runs, key=lambda r: r["names_per_s"])[len(runs) // 2]
            rows.append({"name": name, "rounds": [r["names_per_s"] for r in runs], **middle})
        return {"targets": targets, "index": index,
                "index_bytes_per_name": round(index["bytes"] / index["names"], 1),
                "fill_names_per_s": round(index["names"] / index["seconds"]), "rows": rows,
                "page_ms": seek_rows(by_proxy)}


def main():
    p = benchlib.arguments(__doc__)
    p.set_defaults(rounds=3)
    p.add_argument("--names", type=int, default=NAMES)
    args = p.parse_args()
    names = 20_000 if args.quick else args.names
    if args.quick:
        args.rounds = 1
    document = {"machine": benchlib.begin(args), "names": names, "page": PAGE, "clusters": []}
    with benchlib.WorkDir(args.dir) as work:
        for targets in (1, 3):
            document["clusters"].append(run_cluster(args, work, targets, names))
    for c in document["clusters"]:
        log(f"{c['targets']} target(s): {names} names, {c['index_bytes_per_name']} bytes each in "
            f"the indexes, filled at {c['fill_names_per_s']}/s; pages in ms: {c['page_ms']}")
        benchlib.table(["", "names/s", "rounds", "CPU us/name", "anonymous MiB", "peak"],
                       [[r["name"], r["names_per_s"], r["rounds"], r["cpu_us_per_name"],
                         r["anonymous_mib"], r["anonymous_peak_mib"]] for r in c["rows"]])
        wrong = [r["name"] for r in c["rows"]
                 if "proxy" in r["name"] and r["names"] not in (names, names + 1)]
        if wrong:
            raise RuntimeError(f"not all names were listed: {wrong}")
    benchlib.finish(args, "listing", document)
    return 0


if __name__ == "__main__":
    sys.exit(main())

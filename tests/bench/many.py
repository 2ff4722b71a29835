#!/usr/bin/env python3
"""Many small objects, put, listed, got and deleted: a million of 4 KiB by 64 clients, one target,
beside nginx with its dav module on the same file system.  nginx keeps no index, computes no
checksum, and its folder of a million names is not one that a list could be asked of."""

import os
import random
import subprocess
import sys
import time

import benchlib
from benchlib import KIB, MIB, load, log
from listing import Pager
from peers import Cluster, Nginx

OBJECTS = 1_000_000
SIZE = 4 * KIB
CLIENTS = 64


def disk_use(path):
    """→ files, bytes on the disk."""
    files = subprocess.run(["find", str(path), "-type", "f", "-printf", "."], check=True,
                           stdout=subprocess.PIPE).stdout
    size = subprocess.run(["du", "-s", "--block-size=1", str(path)], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    return len(files), int(size.split()[0])


def measured(server, build, count, **options):
    result = load(build, server.url, pid=server.pids(), connections=CLIENTS, requests=count,
                  duration="1h", **options)
    if benchlib.failures(result) > 0 or result["requests"] != count:
        raise RuntimeError(f"{server.name}: {result['requests']} of {count}, {result['status']}, "
                           f"{result['errors']}")
    return {"per_s": round(result["requests_per_s"]),
            "cpu_us": round(result["server_cpu_us_per_request"], 1),
            "p99_us": round(result["latency_us"]["p99"])}


def put_and_get(args, server, count, names_file):
    prefix = server.new_place("many")
    server.put_first(prefix)
    benchlib.flush_disk(args.dir)
    put = measured(server, args.build, count, mode="put", prefix=prefix + "o", size=SIZE)
    chosen = random.Random(1).sample(range(count), min(count, 100_000))
    names_file.write_text("".join(f"{prefix}o{i:08d}\n" for i in chosen))
    get = measured(server, args.build, len(chosen), mode="get", paths=names_file)
    return {"put": put, "get": get}


def list_all(cluster, count):
    pager = Pager(cluster.proxy["url"], "/v1/objects/many")
    start = time.monotonic()
    names = pager.all(lambda n: {"token": n}, lambda: None)
    seconds = time.monotonic() - start
    if names != count + 1:
        raise RuntimeError(f"{names} names are listed, not {count + 1}")
    return {"per_s": round(names / seconds)}


def delete_all(cluster, count):
    """By a job, as `dfcctl object rm many --prefix o` does."""
    start = time.monotonic()
    job = cluster.call("POST", "/v1/buckets/many",
                       {"action": "delete", "value": {"prefix": "o"}})["id"]
    while True:
        document = cluster.call("GET", f"/v1/jobs/{job}")
        if document["state"] in ("finished", "failed", "aborted"):
            break
        time.sleep(0.02)  # between two looks
    if document["state"] != "finished" or document["progress"]["objects"]["done"] != count:
        raise RuntimeError(f"the delete: {document}")
    return {"per_s": round(count / (time.monotonic() - start))}


def run_nginx(args, work, count):
    with Nginx(work / "nginx") as nginx:
        rows = put_and_get(args, nginx, count, work / "nginx-names")
        start = time.monotonic()
        nginx.remove_place("many")
        rows["delete"] = {"per_s": round(count / (time.monotonic() - start))}  # rm -r, no HTTP
        return rows


def run_cluster(args, work, count):
    with Cluster(work / "dfc", args.build) as cluster:
        pid = cluster.pids()[0]
        before, _ = benchlib.memory_of(pid)
        benchlib.memory_reset(pid)
        with benchlib.PeakMemory(pid) as memory:
            rows = put_and_get(args, cluster, count, work / "dfc-names")
            rows["list"] = list_all(cluster, count)
            files, size = disk_use(work / "dfc")
            index = next((work / "dfc").glob("t1/*/.dfc/index/data.mdb"))
            rows["delete"] = delete_all(cluster, count)
        rows["rss_mib"] = {"before": round(before / MIB, 1), "peak": round(memory.peak / MIB, 1)}
        rows["disk"] = {"files": files, "bytes_per_object": round(size / count),
                        "index_bytes_per_object": round(os.stat(index).st_blocks * 512 / count)}
        return rows


def main():
    p = benchlib.arguments(__doc__)
    p.add_argument("--objects", type=int, default=OBJECTS)
    args = p.parse_args()
    count = 2000 if args.quick else args.objects
    document = {"machine": benchlib.begin(args), "objects": count, "size": SIZE,
                "clients": CLIENTS}
    with benchlib.WorkDir(args.dir) as work:
        document["nginx"] = run_nginx(args, work, count)
        document["dfc"] = run_cluster(args, work, count)
    rows = []
    for what in ("put", "get", "list", "delete"):
        ours, theirs = document["dfc"][what], document["nginx"].get(what, {})
        rows.append([what, theirs.get("per_s"), ours["per_s"], theirs.get("cpu_us"),
                     ours.get("cpu_us")])
    benchlib.table([f"{count} x {benchlib.size_text(SIZE)}", "nginx /s", "dfc /s",
                    "nginx us CPU", "dfc us CPU"], rows)
    log(f"resident MiB {document['dfc']['rss_mib']}, disk {document['dfc']['disk']}")
    benchlib.finish(args, "many", document)
    return 0


if __name__ == "__main__":
    sys.exit(main())

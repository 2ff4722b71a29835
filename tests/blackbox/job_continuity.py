#!/usr/bin/env python3
"""Jobs outlive the primary that began them: killed under a sort and under a delete, it is replaced,
the job goes on to its end, and can be seen, awaited and aborted through any proxy.  Ended jobs stay
listed for jobs_keep."""

import io
import json
import shutil
import tarfile

from lib import ENDED, check, equal, in_parallel, main, skip, wait_for

PROXIES = ("p1", "p2", "p3")
OBJECTS = 500


def primary(c):
    """The proxy that is; None while none says so."""
    for proxy in PROXIES:
        if c.pid(proxy) is None:
            continue
        reply = c.call("GET", "/v1/daemon", node=proxy)
        if reply.status == 200 and reply.json()["primary"]:
            return proxy
    return None


def primary_in_the_end(c):
    return wait_for(lambda: primary(c), "one proxy is primary")


def others(proxy):
    return [p for p in PROXIES if p != proxy]


def ask(c, method, path, body, node, status):
    """As a client does who is told to repeat; the answer."""
    def answered():
        reply = c.call(method, path, body, node=node)
        return None if reply.status == 503 else reply

    return wait_for(answered, f"{method} {path} at {node}").expect(status).json()


def document(c, job_id, node):
    return ask(c, "GET", f"/v1/jobs/{job_id}", None, node, 200)


def dfcctl(c, proxy, *args):
    return c.dfcctl(*args, "--endpoint", c.url(proxy), "--retries", 20)


def slow_targets(c, fault):
    for target in c.targets():
        c.stop(target)
        c.start(target, *([f"--arg=--faults={fault}"] if fault else []))
    for target in c.targets():
        c.wait_node(target, "active")


def is_at_work(c, job_id, node):
    job = document(c, job_id, node)
    check(job["state"] not in ENDED, f"it was to be met at its work: {job['state']}")
    return job["state"] != "queued"


def kill_the_primary_under(c, job_id):
    """Returns the two that are left."""
    first = primary_in_the_end(c)
    wait_for(lambda: is_at_work(c, job_id, first), f"{job_id} is at work")
    c.kill(first)
    return first, others(first)


def shard(number):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for i in range(20):
            info = tarfile.TarInfo(f"{(i * 7 + number) % 20:03d}-{number}.bin")
            info.size = 1000
            tar.addfile(info, io.BytesIO(bytes([number]) * 1000))
    return out.getvalue()


def records(c, bucket):
    found = []
    for name in c.names(bucket):
        with tarfile.open(fileobj=io.BytesIO(c.get(bucket, name).expect(200).body)) as tar:
            found += tar.getnames()
    return found


def test_a_sort_goes_on_under_another_primary(c):
    ask(c, "POST", "/v1/buckets/in", {"action": "create"}, "p1", 201)
    ask(c, "POST", "/v1/buckets/out", {"action": "create"}, "p1", 201)
    for i in range(8):
        c.put("in", f"s-{i}.tar", shard(i))
    slow_targets(c, "sort.extract=delay:1500,sort.create=delay:1500")
    job_id = ask(c, "POST", "/v1/sort", {
        "input_bck": {"name": "in"}, "output_bck": {"name": "out"}, "input_format": {"prefix": ""},
        "output_format": "o-%02d", "output_shard_size": "30KiB"}, "p2", 202)["id"]
    first, left = kill_the_primary_under(c, job_id)
    done = dfcctl(c, left[0], "job", "wait", job_id)
    equal(done.returncode, 0, f"job wait: {done}")
    for proxy in left:
        equal(document(c, job_id, proxy)["state"], "finished", f"state at {proxy}")
    c.start(first)
    slow_targets(c, None)
    got = records(c, "out")
    equal((len(got), got), (160, sorted(got)), "records")


def fill(c):
    in_parallel(lambda i: c.put("many", f"n{i:04d}", b"x"), range(OBJECTS))


def test_a_delete_goes_on_and_counts_right(c):
    ask(c, "POST", "/v1/buckets/many", {"action": "create", "value": {"durability": "async"}}, "p1",
        201)
    fill(c)
    slow_targets(c, "disk.rename=delay:60")
    names = [f"n{i:04d}" for i in range(OBJECTS)] + ["nobody"]
    job_id = ask(c, "POST", "/v1/buckets/many", {"action": "delete", "value": {"list": names}},
                 "p3", 202)["id"]
    first, left = kill_the_primary_under(c, job_id)
    for proxy in left:
        done = dfcctl(c, proxy, "job", "wait", job_id)
        equal(done.returncode, 0, f"job wait at {proxy}: {done}")
    objects = document(c, job_id, left[1])["progress"]["objects"]
    equal((objects["done"], objects["missing"]), (OBJECTS, 1), f"{objects}")
    equal(c.names("many", node=left[0]), [], "names")
    c.start(first)


def test_what_is_aborted_after_a_failover_is_aborted(c):
    slow_targets(c, None)
    fill(c)
    slow_targets(c, "disk.rename=delay:150")
    job_id = ask(c, "POST", "/v1/buckets/many", {"action": "delete", "value": {"prefix": "n"}},
                 "p1", 202)["id"]
    first, left = kill_the_primary_under(c, job_id)
    follower = next(p for p in left if p != primary_in_the_end(c))
    done = dfcctl(c, follower, "job", "abort", job_id)
    equal(done.returncode, 0, f"job abort: {done}")
    done = dfcctl(c, follower, "job", "wait", job_id)
    equal(done.returncode, 1, f"job wait: {done}")
    equal(document(c, job_id, follower)["state"], "aborted", "state")
    check(c.names("many", node=follower), "some are left")
    c.start(first)
    slow_targets(c, None)


def listed(c, proxy):
    return {j["id"] for j in ask(c, "GET", "/v1/jobs", None, proxy, 200)["jobs"]}


def test_ended_jobs_stay_for_their_time(c):
    for proxy in PROXIES:
        equal(len(listed(c, proxy)), 3, f"jobs at {proxy}")
    said = json.loads(dfcctl(c, "p2", "job", "ls", "-o", "json").stdout)
    equal(sorted(j["state"] for j in said["jobs"]), ["aborted", "finished", "finished"], "states")
    for proxy in PROXIES:
        c.stop(proxy)
    for proxy in PROXIES:
        c.start(proxy, "--arg=--jobs-keep=100ms")
    wait_for(lambda: listed(c, "p1") == set(), "they are forgotten")


if __name__ == "__main__":
    if shutil.which("etcd") is None:
        skip("there is no etcd (Debian: etcd-server)")
    main(proxies=3, targets=2, metastore="etcd")

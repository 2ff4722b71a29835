#!/usr/bin/env python3
"""Sorts under trouble that a seed chooses: crashes at any point where a disk, an index or a stream
is touched, nodes killed and frozen, jobs aborted, outputs written or their bucket destroyed by
others, at any time.  Whatever happens, the job ends when all are back; then its output is whole or
not there, was never seen unless it is there, and nothing is left; and what others were told is
written is there.

DFC_SEEDS names the seeds: "1-2" (default), "17", "1-500".  A failure prints its seed."""

import hashlib
import io
import os
import random
import signal
import tarfile
import threading
import time

from lib import ENDED, Failed, check, equal, main, wait_for
from sort_errors import job_files

SHARDS = 12
RECORDS = 25
POINTS = {  # how often a target passes each in such a job, about
    "disk.open": 40, "disk.read": 60, "disk.write": 60, "disk.sync": 60, "disk.rename": 30,
    "disk.xattr": 30, "index.write": 30, "net.connect": 6, "sort.extract": 6, "sort.merge": 2,
    "sort.plan": 1, "sort.create": 8, "sort.finish": 8,
}
PRIMARY_POINTS = {"disk.open": 6, "disk.write": 10, "disk.sync": 10, "net.connect": 30}


def seeds():
    first, _, last = os.environ.get("DFC_SEEDS", "1-2").partition("-")
    return range(int(first), int(last or first) + 1)


def tar_of(shard):
    rng = random.Random(shard)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for i in range(RECORDS):
            info = tarfile.TarInfo(f"{rng.randrange(1000):03d}-{shard}-{i}.bin")
            info.size = rng.randrange(4000)
            tar.addfile(info, io.BytesIO(rng.randbytes(info.size)))
    return out.getvalue()


def spec_of(bucket):
    return {"input_bck": {"name": "in"}, "output_bck": {"name": bucket},
            "input_format": {"prefix": ""}, "output_format": "out-%04d",
            "output_shard_size": "40KiB", "description": bucket}


def contents(c, bucket):
    return {name: hashlib.sha256(c.get(bucket, name).expect(200).body).hexdigest()
            for name in c.names(bucket)}


class Watcher(threading.Thread):
    """Lists the output all the time: was there ever anything to be seen?"""

    def __init__(self, c, bucket):
        super().__init__(daemon=True)
        self.c, self.bucket = c, bucket
        self.seen = set()
        self.over = threading.Event()

    def run(self):
        while not self.over.wait(0.01):
            try:
                self.seen |= set(self.c.names(self.bucket, partial="true"))
            except (OSError, Failed):
                pass  # the proxy is away, or a target

    def stop(self):
        self.over.set()
        self.join()


# --- trouble -------------------------------------------------------------------------------------
#
# Each prepares the nodes and returns what is to be done once the job has been started; that returns
# what others have written into the bucket: {name: digest}.

armed = set()  # nodes that were started with a fault, and run


def start(c, node, *args):
    c.start(node, *args)
    armed.discard(node)
    if args:
        armed.add(node)


def stop(c, node):
    try:
        c.stop(node)
    except Failed:  # it may have met its fault meanwhile
        if c.pid(node) is not None:
            raise


def restart(c, node, *args):
    if c.pid(node) is not None:
        stop(c, node)
    start(c, node, *args)
    c.wait_node(node, "active")


def arm(c, node, fault):
    print(f"        {node} {fault}", flush=True)
    try:
        restart(c, node, f"--arg=--faults={fault}")
    except (Failed, OSError):  # it was met before the node was up
        c.ended_by_test.add(node)
        restart(c, node)


def crash_at_a_point(c, rng, bucket):
    """One or two targets end themselves at the N-th pass of some point."""
    for target in rng.sample(c.targets(), rng.choice((1, 1, 2))):
        point = rng.choice(list(POINTS))
        arm(c, target, f"{point}=kill@{rng.randint(1, POINTS[point])}")
    return lambda job_id: {}


def crash_the_primary(c, rng, bucket):
    slow_down(c, rng)
    point = rng.choice(list(PRIMARY_POINTS))
    arm(c, "p1", f"{point}=kill@{rng.randint(1, PRIMARY_POINTS[point])}")
    return lambda job_id: {}


def error_at_a_point(c, rng, bucket):
    target = rng.choice(c.targets())
    point = rng.choice([p for p in POINTS if p != "disk.read"])
    code = rng.choice(("EIO", "ENOSPC"))
    arm(c, target, f"{point}={code}@{rng.randint(1, POINTS[point])}{rng.choice(('', '', '+'))}")
    return lambda job_id: {}


def slow_down(c, rng):
    """So that what comes at a random time meets all phases."""
    for target in c.targets():
        point = rng.choice(
            ("sort.extract", "sort.create", "sort.finish", "sort.merge", "disk.sync"))
        restart(c, target, f"--arg=--faults={point}=delay:{rng.choice((30, 100, 300))}")


def kill_at_a_time(c, rng, bucket):
    slow_down(c, rng)
    node = rng.choice(c.targets() + ["p1"])
    wait = rng.uniform(0, 2)

    def act(job_id):
        print(f"        kill {node} after {wait:.2f} s", flush=True)
        time.sleep(wait)
        c.kill(node, "-9")
        return {}
    return act


def freeze_at_a_time(c, rng, bucket):
    slow_down(c, rng)
    node = rng.choice(c.targets() + ["p1"])
    wait, length = rng.uniform(0, 2), rng.uniform(1, 9)

    def act(job_id):
        print(f"        freeze {node} after {wait:.2f} s for {length:.2f} s", flush=True)
        time.sleep(wait)
        pid = c.pid(node)
        os.kill(pid, signal.SIGSTOP)
        time.sleep(length)
        os.kill(pid, signal.SIGCONT)
        return {}
    return act


def abort_at_a_time(c, rng, bucket):
    slow_down(c, rng)
    wait = rng.uniform(0, 2)

    def act(job_id):
        print(f"        abort after {wait:.2f} s", flush=True)
        time.sleep(wait)
        reply = c.call("DELETE", f"/v1/sort/abort?id={job_id}")
        check(reply.status in (202, 409), f"abort: {reply}")
        return {}
    return act


def abort_and_kill(c, rng, bucket):
    abort = abort_at_a_time(c, rng, bucket)
    node = rng.choice(c.targets())

    def act(job_id):
        abort(job_id)
        c.kill(node, "-9")
        return {}
    return act


def others_write(c, rng, bucket):
    """An object with the name of an output: refused, or there for good."""
    slow_down(c, rng)
    wait, name = rng.uniform(0, 2.5), f"out-{rng.randrange(30):04d}.tar"

    def act(job_id):
        time.sleep(wait)
        reply = c.object("PUT", bucket, name, b"mine")
        print(f"        PUT {name} after {wait:.2f} s: {reply.status}", flush=True)
        check(reply.status in (200, 409), f"PUT: {reply}")
        return {name: hashlib.sha256(b"mine").hexdigest()} if reply.status == 200 else {}
    return act


def others_destroy(c, rng, bucket):
    slow_down(c, rng)
    wait = rng.uniform(0, 2.5)

    def act(job_id):
        print(f"        destroy the bucket after {wait:.2f} s", flush=True)
        time.sleep(wait)
        c.destroy(bucket)
        return {}
    return act


TROUBLES = (crash_at_a_point, crash_at_a_point, crash_at_a_point, crash_the_primary,
            error_at_a_point, kill_at_a_time, freeze_at_a_time, abort_at_a_time, abort_and_kill,
            others_write, others_destroy)


# --- one seed ------------------------------------------------------------------------------------

def job_or_none(c, job_id):
    try:
        return c.job(job_id)
    except OSError:
        return None


def bring_back(c, rng, job_id):
    """Starts whatever has died, now or a little later, until the job has ended."""
    def ended():
        for node in c.nodes:
            if c.pid(node) is None:
                c.ended_by_test.add(node)
                time.sleep(rng.choice((0, 0, 0.5, 3)))
                start(c, node)
        job = job_or_none(c, job_id)
        return job if job is not None and job["state"] in ENDED else None

    return wait_for(ended, f"end of {job_id}", 90)


def heal(c):
    """Everybody runs, without faults."""
    for node in c.nodes:
        if node in armed or c.pid(node) is None:
            c.ended_by_test.add(node)
            restart(c, node)


def start_job(c, bucket):
    """Its id; None where the primary died over the request, and knows of no job."""
    try:
        return c.sort(spec_of(bucket))
    except (OSError, Failed):
        heal(c)
        jobs = [j for j in c.get_json("/v1/jobs")["jobs"] if j["description"] == bucket]
        return jobs[0]["id"] if jobs else None


def files_of(c, bucket):
    """What the targets' disks have of it."""
    part = f"/.dfc/obj/{c.get_json('/v1/buckets/' + bucket)['id']}/"
    return [path for target in c.targets() for path in c.object_files(target) if part in path]


def check_end(c, bucket, job, seen, others, wanted):
    finished = job["state"] == "finished"
    wait_for(lambda: not job_files(c), "the job's files are removed")
    if c.call("GET", f"/v1/buckets/{bucket}").status == 404:
        return
    equal(contents(c, bucket), {**(wanted if finished else {}), **others}, f"output; {job}")
    check(seen <= set(others) or finished, f"of a job that {job['state']} was to be seen: {seen}")
    if finished:
        return
    equal(len(files_of(c, bucket)), len(others), "files of objects")
    for name in others:
        c.object("DELETE", bucket, name).expect(204)
    again = c.wait_job(c.sort(spec_of(bucket)))  # nothing hidden keeps the names
    equal(again["state"], "finished", f"state of the next job; {again['errors']}")
    equal(contents(c, bucket), wanted, "output of the next job")


def one_seed(c, seed, wanted):
    rng = random.Random(seed)
    bucket = f"out{seed}"
    c.create(bucket, durability=rng.choice(("sync", "async")))
    trouble = rng.choice(TROUBLES)
    print(f"        seed {seed}: {trouble.__name__}", flush=True)
    act = trouble(c, rng, bucket)
    watcher = Watcher(c, bucket)
    watcher.start()
    job_id = start_job(c, bucket)
    if job_id is None:
        watcher.stop()
        c.destroy(bucket)
        return "never begun"
    others = act(job_id)
    job = bring_back(c, rng, job_id)
    watcher.stop()
    heal(c)
    print(f"        {job['state']} {job['errors']}", flush=True)
    check_end(c, bucket, job, watcher.seen, others, wanted)
    c.call("DELETE", f"/v1/buckets/{bucket}")
    return job["state"]


def test_seeds(c):
    c.create("in", durability="async")
    c.create("plain")
    for i in range(SHARDS):
        c.put("in", f"s{i:02d}.tar", tar_of(i))
    job = c.wait_job(c.sort(spec_of("plain")))
    equal(job["state"], "finished", f"state without trouble; {job['errors']}")
    wanted = contents(c, "plain")
    outcomes = {}
    for seed in seeds():
        try:
            state = one_seed(c, seed, wanted)
        except Failed as e:
            raise Failed(f"seed {seed}: {e}") from e
        outcomes[state] = outcomes.get(state, 0) + 1
    print(f"        {outcomes}")


if __name__ == "__main__":
    main(targets=3)

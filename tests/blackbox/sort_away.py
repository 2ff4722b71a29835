#!/usr/bin/env python3
"""Sorts over buckets with copies that lose targets for good: they go on without them, come to the
same bytes, do
about the lost share again, and leave nothing, on those that come back neither.

DFC_COPIES (2): copies of the buckets; DFC_LOST (1): how many of the targets (--targets) die;
DFC_POINTS (sort.extract sort.finish): where, out of sort.extract, sort.merge, sort.plan,
sort.create, sort.finish, commit."""

import os
import time

from cold_lib import run_job
from lib import check, equal, main, wait_for
from sort_copies import SHARDS, contents, copies_on_disk, cost, create, repaired, spec_of
from sort_errors import job_files
from sort_failures import tar_of, with_faults

COPIES = int(os.environ.get("DFC_COPIES", 2))
LOST = int(os.environ.get("DFC_LOST", 1))
TRIES = 40  # some points are passed by one target alone, which a salt decides
LONG = 300
NAME = "away"
# At sort.finish a target has outputs already when it dies.
FAULTS = {"sort.finish": "sort.finish=kill@2", "commit": "disk.xattr=delay:300"}


def lost_of(c):
    return c.targets()[1:1 + LOST]


def test_what_it_comes_to(c):
    c.setting("repair_delay", "0s")
    create(c, "in", COPIES)
    create(c, "out", COPIES)
    for i in range(SHARDS):
        c.put("in", f"s{i:02d}.tar", tar_of(i))
    job = c.wait_job(c.sort(spec_of(NAME)))
    equal(job["state"], "finished", f"state; {job['errors']}")
    equal(job["without"], [], "targets that it went on without")
    c.wanted = contents(c, "out", NAME)
    empty(c)


def empty(c):
    """Deleted, so that the next outputs take the places of tombstones: who is left out has those
    under its own, and
    must not bury with them what the others have committed."""
    equal(
        run_job(c, "out", "delete", {"prefix": NAME})[2:], (0, 0),
        "outputs that could not be deleted")
    equal(c.names("out"), [], "outputs that are left")


def alive(c, nodes):
    return [node for node in nodes if c.pid(node) is not None]


def arm(c, point, lost):
    """They are ready to die at the point; nobody lags."""
    for node in lost:
        c.restart(node, f"--arg=--faults={FAULTS.get(point, point + '=kill@1')}")
    c.ended_by_test.update(lost)
    repaired(c)


def die(c, point, job_id, lost):
    """Who dies first takes the others along.  True when that was before the job was through."""
    def reached():
        return len(alive(c, lost)) < len(lost) if point != "commit" else c.names(
            "out", partial="true")

    wait_for(lambda: reached() or c.job(job_id)["state"] == "finished", f"{point} is reached", LONG)
    if not reached():
        return False
    for node in alive(c, lost):
        c.kill(node, "-9")
    return c.job(job_id)["state"] != "finished"


def come_back(c, lost):
    for node in lost:
        if c.pid(node) is None:
            c.start(node)
    for node in lost:
        c.wait_node(node, "active")


def nothing_is_left(c):
    """Every output on all its owners, and nothing else anywhere."""
    wait_for(lambda: not job_files(c), "the job's files are removed", LONG)
    repaired(c)
    wait_for(lambda: len(copies_on_disk(c, "out")) == COPIES * len(c.wanted),
             "all outputs are on all their owners, and nothing else", LONG)
    equal(contents(c, "out", NAME), c.wanted, "output")


def lose(c, point):
    """False: it was through before."""
    lost = lost_of(c)
    arm(c, point, lost)
    begun = time.monotonic()
    job_id = c.sort(spec_of(NAME))
    died = die(c, point, job_id, lost)
    if died:
        job = c.wait_job(job_id, seconds=LONG)
        equal(job["state"], "finished", f"state; {job['errors']}")
        # then they have a part, and make it seen when they are back
        gone = [] if point == "commit" else lost
        equal(sorted(job["without"]), gone, "targets that it went on without")
        equal(contents(c, "out", NAME), c.wanted, "output without them")
        print(f"        {point}: {cost(job, len(c.wanted), LOST, len(c.targets()))}, "
              f"{time.monotonic() - begun:.0f} s", flush=True)
    come_back(c, lost)
    if c.wait_job(job_id, seconds=LONG)["state"] == "finished":
        nothing_is_left(c)
    empty(c)
    return died


def test_it_goes_on_without_them(c):
    for point in os.environ.get("DFC_POINTS", "sort.extract sort.finish").split():
        check(any(lose(c, point) for _ in range(TRIES)), f"all die at {point}")


def test_it_begins_without_them(c):
    """Who is away already when it is asked for is waited for as long as one that is lost later."""
    lost = lost_of(c)
    repaired(c)
    c.ended_by_test.update(lost)
    for node in lost:
        c.kill(node, "-9")
        c.wait_node(node, "unreachable")
    job = c.wait_job(c.sort(spec_of(NAME)), seconds=LONG)
    equal(job["state"], "finished", f"state; {job['errors']}")
    equal(sorted(job["without"]), lost, "targets that it went on without")
    equal(contents(c, "out", NAME), c.wanted, "output without them")
    c.create("single")
    one = {**spec_of("single"), "output_bck": {"name": "single"}}
    c.call("POST", "/v1/sort", one).expect(503, "node_unreachable")
    come_back(c, lost)
    nothing_is_left(c)
    empty(c)


def test_who_comes_back_meanwhile_is_left_out(c):
    """It is repaired before the job is through, and then lacks what it owns of the output: it does
    not act before
    it has been repaired again, which may be while the others have not taken the job's mark off all
    they have."""
    lost = lost_of(c)
    with_faults(c, "sort.create=delay:2000,disk.xattr=delay:1000")
    arm(c, "sort.create", lost)
    job_id = c.sort(spec_of(NAME))
    wait_for(lambda: c.job(job_id)["without"] != [], "it goes on without them", LONG)
    come_back(c, lost)
    repaired(c)
    job = c.wait_job(job_id, seconds=LONG)
    equal(job["state"], "finished", f"state; {job['errors']}")
    # Who was left out answers 404 until it has the new state.
    wait_for(lambda: all(c.get("out", name).status == 200 for name in c.names("out", prefix=NAME + "-")),
             "every output can be read")
    equal(contents(c, "out", NAME), c.wanted, "output")
    nothing_is_left(c)
    empty(c)


if __name__ == "__main__":
    main(targets=4, args=("--proxy-arg=--jobs-away-wait=2s",))

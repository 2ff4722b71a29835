#!/usr/bin/env python3
"""Sorts and copies into a bucket with a backend and write_policy back: what they make gets to the
backend when it is
visible, each object whole and once, and nothing of what is taken back, whoever dies in between."""

from cold_lib import QUICK, run_job
from cold_sort import RECORDS, S3, SHARDS, records_of, sorted_records, tar_of
from lib import check, equal, main, wait_for


def sort_back(c, output, **changes):
    spec = {
        "input_bck": {"name": "cold"}, "output_bck": {"name": "back"},
        "input_format": {"prefix": "set/"}, "output_format": output + "-%03d",
        "output_shard_size": "8KiB", **changes
    }
    return c.sort(spec)


def check_uploaded(c, prefix):
    """What is here is there, each whole and once."""
    done = c.dfcctl("bucket", "wait", "back")
    equal((done.returncode, done.stdout), (0, "back: nothing waits\n"), "the wait")
    names = c.names("back", prefix=prefix, cached="true")
    equal(sorted(k for k in S3.objects["made"] if k.startswith(prefix)), names,
          "what the backend has")
    for name in names:
        equal(S3.written(name), [c.get("back", name).expect(200).body],
              f"{name}: what was written there")
    return names


def written(prefix):
    return [key for _, key, _ in S3.puts if key.startswith(prefix)]


def test_a_sort(c):
    for i, name in enumerate(SHARDS):
        S3.put("data", name, tar_of(records_of(i)))
    S3.put("made", "seed", b"seed")
    c.create("own")
    c.create("cold", backend=f"s3://data?endpoint={S3.url}&auth=none")
    c.create("back", backend=f"s3://made?endpoint={S3.url}&auth=none", write_policy="back")
    job = c.wait_job(sort_back(c, "made"))
    equal(job["state"], "finished", f"state; {job['errors']}")
    equal(sorted_records(c, "back", "made-"), RECORDS, "records")
    check(len(check_uploaded(c, "made-")) > 3, "there are some shards")


def test_a_copy(c):
    c.put("own", "mine/a", b"a")
    c.put("own", "mine/b", b"b")
    equal(run_job(c, "cold", "copy", {"to": "back", "prepend": "c/", "prefix": "set/"}),
          (40, 0, 0, 0), "of a backend's")
    equal(run_job(c, "own", "copy", {"to": "back", "prefix": "mine/"}), (2, 0, 0, 0), "of our own")
    equal(check_uploaded(c, "c/"), ["c/" + n for n in SHARDS], "what was copied")
    equal(check_uploaded(c, "mine/"), ["mine/a", "mine/b"], "what was copied")
    equal(
        run_job(c, "cold", "copy", {"to": "back", "prepend": "c/", "prefix": "set/"})[:2], (0, 40),
        "again")


def test_what_a_copy_takes_along(c):
    """The user's metadata; what a backend could not give back is refused before anything is
    there."""
    c.put("own", "meta/good", b"a", {"Dfc-Meta-Colour": "blue"})
    c.put("own", "odd/bad", b"a", {"Dfc-Meta-Two_Words": "x"})
    equal(run_job(c, "own", "copy", {"to": "back", "prefix": "meta/"}), (1, 0, 0, 0),
          "of what a backend takes")
    job_id = c.call(
        "POST", "/v1/buckets/own",
        {"action": "copy", "value": {"to": "back", "prefix": "odd/"}}).expect(202).json()["id"]
    equal(c.wait_job(job_id)["progress"]["objects"]["failed"], 1, "of what it does not take")
    equal(check_uploaded(c, "meta/"), ["meta/good"], "what was copied")
    equal(check_uploaded(c, "odd/"), [], "what was refused")
    equal(run_job(c, "back", "evict", {"prefix": "meta/"})[0], 1, "evicted")
    equal(
        c.get("back", "meta/good").expect(200).headers["Dfc-Meta-Colour"], "blue",
        "metadata from the backend")
    equal(
        run_job(c, "cold", "copy", {"to": "own", "prepend": "own/", "prefix": "set/"})[0], 40,
        "of a backend's")
    equal(
        c.get("own", "own/" + SHARDS[0]).headers["Dfc-Meta-Backend-Etag"], None,
        "what its backend has said of it")


def test_what_the_backend_has_is_not_replaced(c):
    S3.put("made", "taken-003.tar", b"theirs")
    job = c.wait_job(sort_back(c, "taken"))
    equal((job["state"], job["errors"][0]["code"]), ("failed", "object_exists"), "state")
    equal((written("taken-"), c.names("back", prefix="taken-")), ([], ["taken-003.tar"]),
          "what is there")


def test_an_aborted_sort_leaves_nothing_there(c):
    for target in c.targets():
        c.restart(target, "--arg=--faults=sort.finish=delay:300")
    job_id = sort_back(c, "aborted")
    equal(c.wait_job(job_id, "creating")["state"], "creating", "state")
    c.call("DELETE", f"/v1/sort/abort?id={job_id}").expect(202)
    equal(c.wait_job(job_id)["state"], "aborted", "state")
    for target in c.targets():
        c.restart(target)
    c.dfcctl("bucket", "wait", "back")
    equal((written("aborted-"), c.names("back", prefix="aborted-")), ([], []), "what is there")


def test_a_target_dies_over_its_outputs(c):
    """The one that makes most, when it has made one: of more than three one of three targets makes
    two."""
    owners = [
        c.owner("back", f"killed-{i:03d}.tar") for i in range(len(c.names("back", prefix="made-")))
    ]
    victim = max(c.targets(), key=owners.count)
    c.restart(victim, "--arg=--faults=sort.finish=kill@2")
    c.ended_by_test.add(victim)
    job_id = sort_back(c, "killed")
    wait_for(lambda: c.pid(victim) is None, f"{victim} dies")
    equal(written("killed-"), [], "what was written there by then")
    c.start(victim)
    job = c.wait_job(job_id)
    equal(job["state"], "finished", f"state; {job['errors']}")
    equal(sorted_records(c, "back", "killed-"), RECORDS, "records")
    check_uploaded(c, "killed-")


if __name__ == "__main__":
    with S3:
        main(targets=3, args=QUICK)

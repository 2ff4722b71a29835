#!/usr/bin/env python3
"""A job kind and a bucket property that were just added (extend.py) do what those of the tree do."""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "blackbox"))
from lib import equal, in_parallel, main  # noqa: E402

COUNTED = 30


def props(c, bucket):
    return c.get_json(f"/v1/buckets/{bucket}")["props"]["census"]


def ctl(c, *args, status=0):
    done = c.dfcctl(*args)
    equal(done.returncode, status, f"dfcctl {args}: {done.stderr}")
    return done.stdout


def census(c):
    """How many objects all targets have counted, by a job that dfcctl starts."""
    job = json.loads(ctl(c, "job", "start", "census", "--wait", "-o", "json"))
    equal((job["kind"], job["state"]), ("census", "finished"), f"{job}")
    return sum(t["status"]["objects"]["done"] for t in job["targets"].values())


def test_the_property_has_its_default_and_is_set(c):
    c.create("plain")
    ctl(c, "bucket", "create", "counted", "--census", "true")
    equal((props(c, "plain"), props(c, "counted")), (False, True), "census")
    equal("census" in ctl(c, "bucket", "props", "counted"), True, "dfcctl shows it")


def test_the_property_is_changed(c):
    c.call("PUT", "/v1/buckets/plain", {"action": "setprops", "value": {"census": True}}).expect(200)
    equal(props(c, "plain"), True, "census, set by the API")
    ctl(c, "bucket", "props", "plain", "--census", "false")
    equal(props(c, "plain"), False, "census, set by dfcctl")


def test_wrong_values_are_refused(c):
    body = {"action": "setprops", "value": {"census": "often"}}
    c.call("PUT", "/v1/buckets/plain", body).expect(400, "invalid_json", "census")
    ctl(c, "bucket", "props", "plain", "--census", "often", status=2)


def test_the_job_runs(c):
    in_parallel(lambda i: c.put("counted", f"o{i}", b"x"), range(COUNTED))
    in_parallel(lambda i: c.put("plain", f"o{i}", b"x"), range(5))
    equal(census(c), COUNTED, "objects of buckets with the property")


def test_the_job_runs_by_the_api(c):
    job = c.call("POST", "/v1/jobs", {"action": "start", "name": "census"}).expect(202).json()
    equal(c.wait_job(job["id"])["state"], "finished", "state")
    kinds = {j["kind"] for j in c.get_json("/v1/jobs?kind=census")["jobs"]}
    equal(kinds, {"census"}, "kinds in the list")


def test_both_survive_a_restart(c):
    jobs = [j["id"] for j in c.get_json("/v1/jobs?kind=census")["jobs"]]
    for node in c.nodes:
        c.stop(node)
    for node in c.nodes:
        c.start(node)
    for node in c.targets():
        c.wait_node(node, "active")
    equal((props(c, "plain"), props(c, "counted")), (False, True), "census")
    equal([j["id"] for j in c.get_json("/v1/jobs?kind=census")["jobs"]], jobs, "jobs")
    equal(census(c), COUNTED, "objects counted by a new job")


if __name__ == "__main__":
    main(targets=2, mountpaths=1)

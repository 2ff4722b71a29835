#!/usr/bin/env python3
"""AIStore's SDK, unmodified, in two releases: it needs no option but the endpoint and, with access
control, a token.  aistore_calls.py and aistore_job_calls.py have the calls, which run in the SDK's
own environment; skipped where a release cannot be installed."""

import os
import sys

import frame
import aistore_lib
from access_lib import GuardedCluster, make_user
from aistore_lib import check_anonymous, check_reader, token_of
from lib import equal, main, wait_for
from venv_lib import environment

sys.path.insert(0, os.path.join(frame.ROOT, "tests", "reference"))
from fake_s3 import FakeS3  # noqa: E402


def run(c, *words, token=None, calls="aistore_calls.py"):
    aistore_lib.run(PYTHON, c, calls, *words, token=token)


def test_every_call(c):
    run(c, "all", token=token_of(c.root))


def test_what_is_not_there_says_so(c):
    run(c, "refused", token=token_of(c.root))


def test_without_a_token_nothing_is_done(c):
    check_anonymous(c, run)


def test_a_user_does_what_its_grants_say(c):
    check_reader(c, run)


def run_jobs(c, *words, token=None):
    run(c, *words, token=token, calls="aistore_job_calls.py")


def test_jobs(c):
    run_jobs(c, "all", token=token_of(c.root))


def test_jobs_over_a_backend(c):
    with FakeS3() as s3:
        for i in range(6):
            s3.put("data", f"o-{i}", b"bytes" * i)
        c.create("cold", backend=f"s3://data?endpoint={s3.url}&auth=none")
        run_jobs(c, "cold", token=token_of(c.root))
        c.destroy("cold")


def test_jobs_are_aborted(c):
    c.create("slow")
    for i in range(16):
        c.put("slow", f"o-{i}", b"x" * 100000)
    for how in ("id", "kind"):
        body = {"action": "start", "name": "scrub", "value": {"rate": 1000}}
        job = c.call("POST", "/v1/jobs", body).expect(202).json()["id"]
        wait_for(lambda job=job: c.get_json(f"/v1/jobs/{job}")["state"] == "running", "the job runs")
        run_jobs(c, "aborts", job, how, token=token_of(c.root))


def test_jobs_need_rights(c):
    c.create("jobless")
    c.put("jobless", "o", b"bytes")
    run_jobs(c, "anonymous")
    run_jobs(c, "jobless", token=token_of(make_user(c, "jobless", [
        {"rights": ["read", "list", "write", "delete"], "bucket": "jobless"}])))
    equal(c.get("jobless", "o").expect(200).body, b"bytes", "the object")


if __name__ == "__main__":
    PYTHON = environment((f"aistore=={sys.argv.pop(1)}",))
    main(GuardedCluster, targets=2)

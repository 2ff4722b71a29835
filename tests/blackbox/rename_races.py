#!/usr/bin/env python3
"""Two renames of one name at once, a DELETE and a delete job beside a rename: one of the two has
the object.

The same in every kind of bucket.  Both clients send `If-Match: *`, as those do that claim work by a
rename.  And what a client gets that sends a rename again because it has lost the answer."""

import json
import os
import socket
import threading

from cold_lib import QUICK, FakeS3
from lib import ENDED, SANITIZED, check, equal, in_parallel, main, wait_for

ACCESS, SECRET = "AKIDRENAMERACES", "theSecretThatNobodyMaySee/+0123"
S3 = FakeS3({ACCESS: SECRET})
ROUNDS = 8 if SANITIZED else 20
JOB_ROUNDS = 4 if SANITIZED else 8  # of 24 objects
DATA = os.urandom(200_000)
KINDS = {
    "one": {},
    "async": {"durability": "async"},
    "two": {"copies": 2},
    "majority": {"copies": 3, "write_quorum": "majority"},
    "slices": {"ec": {"data": 2, "parity": 1, "min_size": 65536}},
    "through": {"backend": "s3://data/through", "write_policy": "through"},
    "back": {"backend": "s3://data/back", "write_policy": "back"},
}


def rename(c, bucket, old, new, headers=None, **options):
    body = json.dumps({"action": "rename", "name": new}).encode()
    return c.object("POST", bucket, old, body, headers, **options)


def at_once(*calls):
    """What each of them returns; they begin together."""
    start = threading.Barrier(len(calls))

    def run(call):
        start.wait()
        return call()

    return in_parallel(run, calls, len(calls))


def exists(c, bucket, name):
    status = c.object("HEAD", bucket, name).status
    check(status in (200, 404), f"HEAD of {bucket}/{name} is {status}")
    return status == 200


def test_buckets(c):
    S3.put("data", "seed", b"seed")
    for bucket, props in KINDS.items():
        if "backend" in props:
            props = {**props, "backend": f"{props['backend']}?endpoint={S3.url}"}
        c.create(bucket, **props)


def answer(ask):
    """Once the backend has what waits: until then it is 503, try again."""
    return wait_for(lambda: None if (r := ask()).status == 503 else r, "an answer")


def race_renames(c, bucket, i):
    name = f"work-{i}"
    c.put(bucket, name, DATA)
    news = [f"claim-{i}-{who}" for who in "xy"]
    claim = {"If-Match": "*"}
    replies = at_once(*(lambda new=new: answer(lambda: rename(c, bucket, name, new, claim))
                        for new in news))
    statuses = [r.status for r in replies]
    check(
        sorted(statuses) in ([204, 404], [204, 412]), f"{bucket}, round {i}: {statuses}, {replies}")
    equal([exists(c, bucket, n) for n in [name, *news]], [False, *(s == 204 for s in statuses)],
          f"{bucket}, round {i}: which names there are")
    equal(c.get(bucket, news[statuses.index(204)]).expect(200).body, DATA, "bytes")


def test_one_of_two_renames_wins(c):
    for bucket in KINDS:
        for i in range(ROUNDS):
            race_renames(c, bucket, i)


def race_delete(c, bucket, i):
    name, new = f"gone-{i}", f"kept-{i}"
    c.put(bucket, name, DATA)
    renamed, deleted = at_once(
        lambda: answer(lambda: rename(c, bucket, name, new, {"If-Match": "*"})),
        lambda: answer(lambda: c.object("DELETE", bucket, name)))
    statuses = (renamed.status, deleted.status)
    check(statuses in ((204, 404), (404, 204), (412, 204)),
          f"{bucket}, round {i}: {statuses}, {renamed}, {deleted}")
    equal([exists(c, bucket, n) for n in (name, new)], [False, renamed.status == 204],
          f"{bucket}, round {i}: which names there are after {statuses}")


def test_a_delete_and_a_rename_do_not_both_succeed(c):
    for bucket in KINDS:
        for i in range(ROUNDS):
            race_delete(c, bucket, i)


def race_delete_job(c, bucket, i):
    names = [f"job-{i}-{j}" for j in range(24)]
    news = [f"saved-{i}-{j}" for j in range(24)]
    in_parallel(lambda name: c.put(bucket, name, DATA), names)
    body = {"action": "delete", "value": {"list": names, "allow_empty": True}}
    job, *renamed = at_once(lambda: c.call("POST", f"/v1/buckets/{bucket}", body),
                            *(lambda pair=pair: rename(c, bucket, *pair)
                              for pair in zip(names, news)))
    job_id = job.expect(202).json()["id"]
    ended = wait_for(
        lambda: now if (now := c.get_json(f"/v1/jobs/{job_id}"))["state"] in ENDED else None,
        f"end of {job_id}")
    equal(ended["state"], "finished", f"{bucket}, round {i}: {ended}")
    check({r.status for r in renamed} <= {204, 404}, f"{bucket}, round {i}: {renamed}")
    equal([exists(c, bucket, n) for n in news], [r.status == 204 for r in renamed],
          f"{bucket}, round {i}: which names there are")
    equal([n for n in names if exists(c, bucket, n)], [], f"{bucket}, round {i}: old names")


def test_a_delete_job_and_a_rename_do_not_both_succeed(c):
    for bucket, props in KINDS.items():
        if "backend" in props or "write_quorum" in props:
            continue  # there are no delete jobs in these
        for i in range(JOB_ROUNDS):
            race_delete_job(c, bucket, i)


def test_many_at_once(c):
    """Ten renames and deletions of one name: one has it, and all are answered."""
    for bucket in KINDS:
        c.put(bucket, "prize", DATA)
        news = [f"prize-{i}" for i in range(8)]
        calls = [lambda new=new: rename(c, bucket, "prize", new) for new in news]
        calls += [lambda: c.object("DELETE", bucket, "prize")] * 2
        replies = at_once(*(lambda call=call: answer(call) for call in calls))
        equal(sorted(r.status for r in replies), [204] + [404] * 9, f"{bucket}: answers")
        equal([exists(c, bucket, n) for n in news], [r.status == 204 for r in replies[:8]],
              f"{bucket}: names")


def refused(ask):
    reply = answer(ask)
    check(reply.status in (404, 412), f"it was not this request that was done: {reply}")


def test_the_same_request_again_has_the_same_answer(c):
    for bucket in KINDS:
        c.put(bucket, "once", DATA)
        same = {"X-Request-Id": f"claim-{bucket}", "If-Match": "*"}
        for query in ("", "redirect=never"):
            answer(lambda q=query: rename(c, bucket, "once", "mine", same, query=q)).expect(204)
        for headers in ({"If-Match": "*"}, {**same, "X-Request-Id": "another"}):
            refused(lambda headers=headers: rename(c, bucket, "once", "mine", headers))
        refused(lambda: rename(c, bucket, "once", "yours", same))
        c.put(bucket, "once", b"later")  # the id of a whole session: there is something to do again
        answer(lambda: rename(c, bucket, "once", "mine", same)).expect(204)
        equal(c.get(bucket, "mine").body, b"later", "bytes")


def test_a_lost_answer(c):
    """The connection is cut as soon as the request is sent."""
    body = json.dumps({"action": "rename", "name": "arrived"}).encode()
    for bucket in KINDS:
        for node in ("p1", c.owner(bucket, "sent")):
            c.put(bucket, "sent", DATA)
            head = (
                f"POST /v1/objects/{bucket}/sent?{'redirect=never' if node == 'p1' else ''} "
                "HTTP/1.1\r\n"
                f"Host: localhost\r\nX-Request-Id: lost-{bucket}-{node}\r\nContent-Length: "
                f"{len(body)}\r\n\r\n"
            )
            with socket.create_connection(c.address(node)) as s:
                s.sendall(head.encode() + body)
            wait_for(lambda: not exists(c, bucket, "sent"), "the rename is carried out")
            headers = {"X-Request-Id": f"lost-{bucket}-{node}"}
            wait_for(lambda: rename(c, bucket, "sent", "arrived", headers).status == 204,
                     "the same answer")
            equal(c.get(bucket, "arrived").expect(200).body, DATA, "bytes")


if __name__ == "__main__":
    os.environ.update({"AWS_ACCESS_KEY_ID": ACCESS, "AWS_SECRET_ACCESS_KEY": SECRET})
    os.environ.pop("AWS_SESSION_TOKEN", None)
    with S3:
        main(targets=3, args=QUICK)

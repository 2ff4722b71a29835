#!/usr/bin/env python3
"""Buckets that are write_once: whatever call, gateway or job tries to, it replaces and removes nothing;
until the property is off again."""

import io
import tarfile

from lib import ENDED, check, equal, in_parallel, main, wait_for
from s3_lib import S3, refused
from uploads_lib import Upload, list_of

KINDS = {"one": {}, "two": {"copies": 2},
         "cut": {"ec": {"data": 2, "parity": 1, "min_size": 1000}}}
FIRST, SECOND = b"first " * 400, b"second" * 400
WRITERS = 8
PAST = (b"<LifecycleConfiguration><Rule><ID>r</ID><Filter><Prefix></Prefix></Filter><Status>Enabled"
        b"</Status><Expiration><Date>2020-01-01T00:00:00Z</Date></Expiration></Rule>"
        b"</LifecycleConfiguration>")


def post(c, bucket, action, **value):
    return c.call("POST", f"/v1/buckets/{bucket}", {"action": action, "value": value})


def ended(c, reply):
    path = f"/v1/jobs/{reply.expect(202).json()['id']}"
    return wait_for(lambda: (lambda job: job if job["state"] in ENDED else None)(c.get_json(path)),
                    f"the end of {path}")


def rename(c, bucket, name):
    return c.object("POST", bucket, name, {"action": "rename", "name": "renamed"})


def tar(name):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as f:
        member = tarfile.TarInfo(name)
        member.size = len(FIRST)
        f.addfile(member, io.BytesIO(FIRST))
    return out.getvalue()


def is_kept(c, bucket, name="x"):
    equal(c.get(bucket, name).expect(200).body, FIRST, f"the bytes of {bucket}/{name}")


def test_the_property(c):
    for kind, props in KINDS.items():
        c.create(kind, write_once=True, **props)
    c.create("free")
    equal(c.get_json("/v1/buckets/one")["props"]["write_once"], True, "the property")
    equal(c.get_json("/v1/buckets/free")["props"]["write_once"], False, "of another bucket")
    c.call("POST", "/v1/buckets/cold", {"action": "create", "value": {
        "backend": "http://127.0.0.1:1/", "write_once": True}}
           ).expect(501, "not_supported", "'write_once': the backend")


def test_the_calls(c):
    for kind in KINDS:
        c.put(kind, "x", FIRST)
        c.object("PUT", kind, "x", SECOND).expect(409, "write_once", f"'{kind}' is write_once")
        c.object("PUT", kind, "x", FIRST).expect(409, "write_once")
        c.object("PUT", kind, "x", SECOND, {"If-None-Match": "*"}).expect(412, "precondition_failed")
        etag = c.get(kind, "x").headers["ETag"]
        c.object("PUT", kind, "x", SECOND, {"If-Match": etag}).expect(409, "write_once")
        c.object("DELETE", kind, "x").expect(409, "write_once", "set its property write_once to false")
        rename(c, kind, "x").expect(409, "write_once")
        c.get(kind, "renamed").expect(404)
        is_kept(c, kind)
        c.destroy("free")
        c.create("free")
        c.call("DELETE", f"/v1/buckets/{kind}").expect(409, "write_once")


def test_members(c):
    for kind in KINDS:
        c.object("PUT", kind, "a.tar", tar("old"), query="members=tar").expect(200)
        before = c.get(kind, "a.tar").expect(200).body
        c.object("PUT", kind, "a.tar", FIRST, query="member=new").expect(409, "write_once")
        equal(c.get(kind, "a.tar").expect(200).body, before, f"the archive of {kind}")


def test_uploads_in_parts(c):
    for kind in KINDS:
        new, over = Upload(c, kind, "parts"), Upload(c, kind, "x")
        for upload, body in ((new, FIRST), (over, SECOND)):
            upload.part(1, body)
        new.complete(list_of([FIRST]))
        over.try_complete(list_of([SECOND])).expect(409, "write_once")
        is_kept(c, kind)
        is_kept(c, kind, "parts")


def test_writers_side_by_side(c):
    """One of them has stored it."""
    for kind in KINDS:
        bodies = [bytes([i]) * 3000 for i in range(WRITERS)]
        replies = in_parallel(lambda i, kind=kind, bodies=bodies: c.object("PUT", kind, "raced", bodies[i]),
                              range(WRITERS))
        stored = [i for i, r in enumerate(replies) if r.status == 200]
        equal(len(stored), 1, f"writers that were not refused, of {[r.status for r in replies]}")
        equal(c.get(kind, "raced").expect(200).body, bodies[stored[0]], "the bytes")


def test_the_gateway(c):
    c.put("free", "source", SECOND)
    for kind in KINDS:
        client = S3(c)
        source = {"x-amz-copy-source": "/free/source"}
        refused(client.call("PUT", f"/{kind}/x", SECOND), 403, "AccessDenied")
        refused(client.call("PUT", f"/{kind}/x", b"", headers=source), 403, "AccessDenied")
        refused(client.call("DELETE", f"/{kind}/x"), 403, "AccessDenied")
        client.call("PUT", f"/{kind}/copied", b"", headers=source).expect(200)
        many = b"<Delete><Object><Key>x</Key></Object><Object><Key>copied</Key></Object></Delete>"
        reply = client.call("POST", f"/{kind}", many, [("delete", "")]).expect(200)
        equal(reply.body.count(b"<Code>AccessDenied</Code>"), 2, f"refusals of {reply.body}")
        is_kept(c, kind)
        equal(c.get(kind, "copied").expect(200).body, SECOND, "the copy")


def test_jobs(c):
    c.put("free", "x", SECOND)
    c.put("free", "added", FIRST)
    for kind in KINDS:
        post(c, kind, "delete", prefix="").expect(409, "write_once")
        job = ended(c, post(c, "free", "copy", to=kind, list=["x", "added"]))
        check("write_once" in str(job), f"the copy over an object says nothing: {job}")
        is_kept(c, kind)
        is_kept(c, kind, "added")
        again = ended(c, post(c, "free", "copy", to=kind, list=["added"]))
        equal(again["state"], "finished", f"a copy of the same bytes: {again}")


def test_a_job_that_makes_an_archive(c):
    """Of a new name; and of one that is there, which stays."""
    for kind in KINDS:
        c.put(kind, "there.tar", FIRST)
        job = ended(c, post(c, "free", "archive", to=kind, list=["added"], archive="there.tar"))
        equal(job["state"], "failed", f"an archive over {kind}/there.tar: {job}")
        check("write_once" in str(job), f"the job does not say why: {job}")
        is_kept(c, kind, "there.tar")
        made = ended(c, post(c, "free", "archive", to=kind, list=["added"], archive="n.tar"))
        equal(made["state"], "finished", f"an archive of a new name: {made}")


def test_lifecycle_rules(c):
    S3(c).call("PUT", "/one", PAST, [("lifecycle", "")]).expect(200)
    job = ended(c, c.call("POST", "/v1/jobs", {"action": "start", "name": "expire", "value": {"bucket": "one"}}))
    equal(job["state"], "finished", f"the job expire: {job}")
    is_kept(c, "one")
    S3(c).call("DELETE", "/one", None, [("lifecycle", "")]).expect(204)


def test_after_a_restart(c):
    for target in c.targets():
        c.kill(target)
        c.start(target)
        c.wait_node(target, "active")
    for kind in KINDS:
        wait_for(lambda kind=kind: c.object("PUT", kind, "x", SECOND).status == 409, "the refusal")
        is_kept(c, kind)


def test_off_again(c):
    for kind in KINDS:
        c.call("PUT", f"/v1/buckets/{kind}", {"action": "setprops", "value": {"write_once": False}}).expect(200)
        c.object("PUT", kind, "x", SECOND).expect(200)
        rename(c, kind, "x").expect(204)
        c.object("DELETE", kind, "renamed").expect(204)
        c.destroy(kind)
    check("bucket properties set" in c.log("p1"), "the log does not say it")


if __name__ == "__main__":
    main(targets=3)

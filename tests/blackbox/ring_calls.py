#!/usr/bin/env python3
"""The object calls of a ring bucket: its head is read as any object is; no call, gateway or job of a client
replaces or removes the head, or stores another object there."""

import io
import json
import tarfile

import ring_lib as ring
from lib import ENDED, check, equal, main, wait_for
from s3_lib import S3, refused

CAP = 4
FALSE = json.dumps({"format": 1, "generation": 9, "samples_total": 0, "lanes": [], "generations": []}).encode()
PAST = (b"<LifecycleConfiguration><Rule><ID>r</ID><Filter><Prefix></Prefix></Filter><Status>Enabled"
        b"</Status><Expiration><Date>2020-01-01T00:00:00Z</Date></Expiration></Rule>"
        b"</LifecycleConfiguration>")


def post(c, bucket, action, **value):
    return c.call("POST", f"/v1/buckets/{bucket}", {"action": action, "value": value})


def tar():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as f:
        member = tarfile.TarInfo("head")
        member.size = len(FALSE)
        f.addfile(member, io.BytesIO(FALSE))
    return out.getvalue()


def goes_on(c):
    """The head has all generations that there were, and gets the next one."""
    before = ring.head(c, "ring")["generation"]
    ring.push(c, "ring", ring.frames(*({"x": b"%d" % i} for i in range(CAP)))).expect(201)
    h = ring.wait_generation(c, "ring", before + 1)
    equal(h["generation"], before + 1, "generation")
    equal(len(ring.read_generation(c, "ring", ring.generation(h))), CAP, "samples")
    equal(c.names("ring"), ["head"], "objects")


def test_the_calls(c):
    c.create("ring", ring=f"cap={CAP}", copies=2)
    c.create("plain")
    c.object("PUT", "ring", "head", FALSE).expect(409, "is_a_ring")
    c.object("PUT", "ring", "other", FALSE).expect(409, "is_a_ring", "'ring' is a ring")
    ring.push(c, "ring", ring.frames(*({"x": b"%d" % i} for i in range(CAP)))).expect(201)
    ring.wait_generation(c, "ring", 1)
    etag = c.get("ring", "head").expect(200).headers["ETag"]
    for headers in ({}, {"If-Match": etag}, {"Dfc-Copy": "made"}, {"Dfc-Copy": "ring"}):
        c.object("PUT", "ring", "head", FALSE, headers).expect(409, "is_a_ring")
    c.object("DELETE", "ring", "head").expect(409, "is_a_ring")
    c.object("POST", "ring", "head", {"action": "rename", "name": "renamed"}).expect(409, "is_a_ring")
    c.object("HEAD", "ring", "head").expect(200)
    goes_on(c)


def test_members_and_uploads(c):
    c.object("PUT", "ring", "a.tar", tar(), query="members=tar").expect(409, "is_a_ring")
    c.object("PUT", "ring", "head", FALSE, query="member=x").expect(409, "is_a_ring")
    c.call("POST", "/v1/uploads/ring/head", b"").expect(409, "is_a_ring")
    goes_on(c)


def test_the_gateway(c):
    client = S3(c)
    c.put("plain", "source", FALSE)
    source = {"x-amz-copy-source": "/plain/source"}
    refused(client.call("PUT", "/ring/head", FALSE), 403, "AccessDenied")
    refused(client.call("PUT", "/ring/new", FALSE), 403, "AccessDenied")
    refused(client.call("PUT", "/ring/head", b"", headers=source), 403, "AccessDenied")
    refused(client.call("DELETE", "/ring/head"), 403, "AccessDenied")
    refused(client.call("POST", "/ring/head", b"", [("uploads", "")]), 403, "AccessDenied")
    many = b"<Delete><Object><Key>head</Key></Object></Delete>"
    reply = client.call("POST", "/ring", many, [("delete", "")]).expect(200)
    equal(reply.body.count(b"<Code>AccessDenied</Code>"), 1, f"refusals of {reply.body}")
    client.call("GET", "/ring/head").expect(200)
    goes_on(c)


def test_jobs(c):
    c.put("plain", "head", FALSE)
    c.put("plain", "a.tar", tar())
    post(c, "ring", "delete", prefix="").expect(409, "is_a_ring")
    post(c, "plain", "copy", to="ring", list=["head"]).expect(409, "is_a_ring")
    post(c, "plain", "archive", to="ring", archive="new.tar", list=["source"]).expect(409, "is_a_ring")
    post(c, "plain", "unarchive", to="ring", list=["a.tar"]).expect(409, "is_a_ring")
    post(c, "ring", "download", list=["http://127.0.0.1:1/x"]).expect(409, "is_a_ring")
    post(c, "ring", "promote", path="/nowhere").expect(409, "is_a_ring")
    goes_on(c)


def test_lifecycle_rules(c):
    S3(c).call("PUT", "/ring", PAST, [("lifecycle", "")]).expect(200)
    path = "/v1/jobs/" + c.call("POST", "/v1/jobs", {
        "action": "start", "name": "expire", "value": {"bucket": "ring"}}).expect(202).json()["id"]
    wait_for(lambda: c.get_json(path)["state"] in ENDED, "the end of the job")
    check(ring.head(c, "ring") is not None, "the head is there")
    S3(c).call("DELETE", "/ring", None, [("lifecycle", "")]).expect(204)
    goes_on(c)


def test_a_copy_of_the_head_is_an_object(c):
    path = "/v1/jobs/" + post(c, "ring", "copy", to="plain", prefix="").expect(202).json()["id"]
    wait_for(lambda: c.get_json(path)["state"] in ENDED, "the end of the job")
    check(json.loads(c.get("plain", "head").expect(200).body)["generation"] > 0, "a copied head")


if __name__ == "__main__":
    main(targets=2)

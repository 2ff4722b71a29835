#!/usr/bin/env python3
"""Buckets with etag md5: the MD5 of an object is its entity tag for S3 clients, and stays with the
bytes on every way that they take.  The entity tag of the native API is the version."""

import hashlib
import os
import socket
import xml.etree.ElementTree as ElementTree

from copies import patient, settled, wait_repaired
from lib import SANITIZED, WAIT_SECONDS, Cluster, check, equal, main, wait_for
from put_cut import temporary_files
from s3_lib import NAMESPACE, S3, refused

DATA = os.urandom(5 << 20)
SIZES = (0, 1, 65535, 65536, 65537, 1 << 20, len(DATA))
KILLS = 3 if SANITIZED else 8


def md5_of(body):
    return hashlib.md5(body).hexdigest()


def s3(c, node="p1"):
    return S3(c, "ANYBODY", "anything", node)


def has_md5(c, bucket, name, body, **options):
    """GET and HEAD of both interfaces say so."""
    for method in ("GET", "HEAD"):
        reply = c.object(method, bucket, name, **options).expect(200)
        equal(reply.headers["Dfc-Md5"], md5_of(body), f"Dfc-Md5 of {method} {bucket}/{name}")
        check(reply.headers["Dfc-Meta-entity-md5"] is None, "metadata of the target's own")
        equal(s3(c).call(method, f"/{bucket}/{name}").expect(200).headers["ETag"],
              f'"{md5_of(body)}"', f"ETag of {method} {bucket}/{name}")
    check(c.get(bucket, name, **options).body == body, f"the bytes of {name}")


def lists_agree(c, bucket):
    """Lists of both interfaces show of each object what a read of it says; how many have an MD5."""
    listed = c.get_json(f"/v1/objects/{bucket}")["entries"]
    root = ElementTree.fromstring(s3(c, "t1").call("GET", "/" + bucket).expect(200).body)
    tags = {e.findtext(NAMESPACE + "Key"): e.findtext(NAMESPACE + "ETag")
            for e in root.findall(NAMESPACE + "Contents")}
    equal(sorted(tags), [e["name"] for e in listed], "names")
    for entry in listed:
        name = entry["name"]
        equal(entry.get("md5"), c.object("HEAD", bucket, name).expect(200).headers["Dfc-Md5"],
              f"MD5 of {bucket}/{name} in a list")
        equal(tags[name], s3(c).call("HEAD", f"/{bucket}/{name}").expect(200).headers["ETag"],
              f"ETag of {bucket}/{name} in a list")
    return sum("md5" in entry for entry in listed)


def has_none(c, bucket, name):
    check(c.get(bucket, name).expect(200).headers["Dfc-Md5"] is None, f"{bucket}/{name} has one")
    tag = s3(c).call("HEAD", f"/{bucket}/{name}").expect(200).headers["ETag"]
    check(tag.endswith('-1"') and len(tag) == 36, f"the tag {tag} of {bucket}/{name}")


def rename(c, bucket, old, new):
    body = b'{"action": "rename", "name": "%s"}' % new.encode()
    c.object("POST", bucket, old, body).expect(204)


def copy_job(c, source, to):
    job = c.call("POST", f"/v1/buckets/{source}", {"action": "copy", "value": {"to": to}})
    c.wait_job(job.expect(202).json()["id"], "finished")


def test_buckets(c):
    c.setting("repair_delay", "0s")
    c.setting("rebalance_delay", "0s")
    c.setting("rebalance_keep", "2s")
    c.create("one", etag="md5")
    c.create("fast")
    c.create("two", copies=2, etag="md5")
    c.create("sliced", ec={"data": 1, "parity": 1, "min_size": 1000}, etag="md5")


def test_every_size_in_one_copy_and_in_two(c):
    for bucket in ("one", "two"):
        for size in SIZES:
            body = DATA[:size]
            put = c.put(bucket, f"o{size}", body)
            equal(put.headers["Dfc-Md5"], md5_of(body), "Dfc-Md5 of PUT")
            equal(put.headers["ETag"], f'"{put.json()["version"]}"', "native tag")
            has_md5(c, bucket, f"o{size}", body)
        pieces = [DATA[:100], DATA[100:200000]]
        c.object("PUT", bucket, "pieces", iter(pieces), node=c.owner(bucket, "pieces")).expect(200)
        has_md5(c, bucket, "pieces", DATA[:200000])
        equal(lists_agree(c, bucket), len(SIZES) + 1, f"MD5s in the list of {bucket}")


def test_s3_puts_have_it_and_conditions_name_it(c):
    client, tag = s3(c, "t1"), f'"{md5_of(DATA[:99999])}"'
    put = client.call("PUT", "/one/cond", DATA[:99999]).expect(200)
    equal(put.headers["ETag"], tag, "tag of a PUT")
    client.call("GET", "/one/cond", headers={"If-Match": tag}).expect(200)
    equal(client.call("GET", "/one/cond", headers={"If-None-Match": tag}).expect(304).headers["ETag"],
          tag, "tag of a 304")
    other = f'"{md5_of(b"other")}"'
    refused(client.call("GET", "/one/cond", headers={"If-Match": other}), 412, "PreconditionFailed")
    refused(client.call("PUT", "/one/cond", b"x", headers={"If-Match": other}), 412,
            "PreconditionFailed")
    client.call("PUT", "/one/cond", b"new", headers={"If-Match": tag}).expect(200)
    has_md5(c, "one", "cond", b"new")
    version = c.get("one", "cond").headers["ETag"]
    c.get("one", "cond", {"If-None-Match": version}).expect(304)


def test_a_fast_bucket_has_none_and_the_property_holds_for_later_objects(c):
    c.put("fast", "before", DATA[:70000]).expect(200)
    has_none(c, "fast", "before")
    c.call("PUT", "/v1/buckets/fast", {"action": "setprops", "value": {"etag": "md5"}}).expect(200)
    c.put("fast", "after", DATA[:70000]).expect(200)
    has_md5(c, "fast", "after", DATA[:70000])
    has_none(c, "fast", "before")
    rename(c, "fast", "before", "renamed")
    has_none(c, "fast", "renamed")
    equal(lists_agree(c, "fast"), 1, "MD5s in the list")


def test_objects_in_slices_have_none(c):
    c.put("sliced", "large", DATA).expect(200)
    c.put("sliced", "small", DATA[:1000]).expect(200)
    has_none(c, "sliced", "large")
    has_md5(c, "sliced", "small", DATA[:1000])
    equal(lists_agree(c, "sliced"), 1, "MD5s in the list")


def test_renames_and_copies_keep_it(c):
    for bucket in ("one", "two"):
        c.put(bucket, "old", DATA).expect(200)
        rename(c, bucket, "old", "new")
        has_md5(c, bucket, "new", DATA)
    c.create("copied")
    copy_job(c, "one", "copied")
    has_md5(c, "copied", "new", DATA)
    equal(lists_agree(c, "copied"), lists_agree(c, "one"), "MD5s in the lists")


def test_an_index_that_is_built_again_has_it(c):
    before = [lists_agree(c, bucket) for bucket in ("one", "two")]
    for target in ("t1", "t2", "t3"):
        equal(c.dfcctl("storage", "reindex", target, "--wait").returncode, 0, "the rebuild")
    equal([lists_agree(c, bucket) for bucket in ("one", "two")], before, "MD5s in the lists")


def test_the_name_is_the_targets_own(c):
    for bucket in ("one", "fast"):
        c.object("PUT", bucket, "mine", b"x", {"Dfc-Meta-Entity-Md5": "x"}).expect(
            400, "invalid_argument", "Content-MD5")
    wrong = c.object("PUT", "one", "mine", b"x", {"Content-MD5": "1B2M2Y8AsgTpgAmY7PhCfg=="})
    wrong.expect(422, "checksum_mismatch")
    c.get("one", "mine").expect(404)


def send_put(s, name, announced, body):
    head = (f"PUT /v1/objects/one/{name} HTTP/1.1\r\nHost: localhost\r\n"
            f"Content-Length: {announced}\r\n\r\n")
    s.sendall(head.encode() + body)


def connection_to(c, node):
    return socket.create_connection(c.address(node), timeout=WAIT_SECONDS)


def test_a_body_that_is_cut_leaves_nothing(c):
    with connection_to(c, c.owner("one", "cut")) as s:
        send_put(s, "cut", len(DATA), DATA[:3 << 20])
    wait_for(lambda: not temporary_files(c), "temporary files of a cut PUT are removed")
    c.get("one", "cut").expect(404, "object_not_found")


def test_a_killed_target_has_the_tag_of_its_bytes(c):
    """It is killed when the last byte was sent: before or after the digest, or the rename."""
    owner = c.owner("one", "killed")
    c.put("one", "killed", DATA).expect(200)
    for number in range(KILLS):
        with connection_to(c, owner) as s:
            send_put(s, "killed", 4 << 20, bytes([number]) * (4 << 20))
            c.kill(owner, "-9")
        c.start(owner)
        c.wait_node(owner, "active")
        reply = c.get("one", "killed").expect(200)
        equal(reply.headers["Dfc-Md5"], md5_of(reply.body), "Dfc-Md5")
        lists_agree(c, "one")


def test_the_other_owner_has_the_same(c):
    wait_repaired(c)
    owner = c.owner("two", f"o{len(DATA)}")
    c.kill(owner, "-9")
    reply = patient(c, "GET", "two", f"o{len(DATA)}")[0].expect(200)
    equal(reply.headers["Dfc-Md5"], md5_of(DATA), "Dfc-Md5")
    patient(c, "PUT", "two", "meanwhile", DATA)[0].expect(200)
    c.start(owner)
    c.wait_node(owner, "active")
    wait_repaired(c)
    has_md5(c, "two", "meanwhile", DATA)


def test_a_new_target_gets_it(c):
    c.add_target()
    wait_for(lambda: not settled(c), "moves")
    wait_for(lambda: settled(c), "the end of the moves", 300)
    for bucket in ("one", "two"):
        for size in SIZES:
            has_md5(c, bucket, f"o{size}", DATA[:size])
        lists_agree(c, bucket)
    has_none(c, "fast", "renamed")


def protection(c):
    return c.get_json("/v1/buckets")["buckets"][0]["protection"]


def test_a_copy_that_repair_makes_has_it(_):
    """The copies of a bucket in use are raised."""
    c = Cluster(targets=2)
    c.setting("repair_delay", "0s")
    c.create("b", etag="md5")
    c.put("b", "o", DATA).expect(200)
    c.call("PUT", "/v1/buckets/b", {"action": "setprops", "value": {"copies": 2}}).expect(200)
    wait_for(lambda: protection(c) == "protected", "the second copy")
    c.kill(c.owner("b", "o"), "-9")
    reply = patient(c, "GET", "b", "o")[0].expect(200)
    equal(reply.headers["Dfc-Md5"], md5_of(DATA), "Dfc-Md5")
    c.remove()


if __name__ == "__main__":
    main(Cluster, targets=3)

#!/usr/bin/env python3
"""Tags of objects: kept with the bytes in buckets of every kind, wherever these are moved or copied,
and changed at every node."""

import itertools
import os
import sys
import urllib.parse
import xml.etree.ElementTree as ElementTree
from xml.sax.saxutils import escape

from access_lib import GuardedCluster, make_user
from cold_lib import metric
from cold_meta import evict
from ec import patient
from lib import ROOT, Cluster, check, equal, in_parallel, main, wait_for
from s3_lib import NAMESPACE, S3, refused, root_of, s3ref, use_backend_keys

sys.path.insert(0, os.path.join(ROOT, "tests", "reference"))
from fake_s3 import FakeS3  # noqa: E402

ACCESS, SECRET = "AKIDTAGS", "theSecretThatNobodyMaySee/+0123"
BACKEND = FakeS3({ACCESS: SECRET})

NODES = ("p1", "t1", "t2", "t3")
CHECKSUM = {"x-amz-checksum-mode": "ENABLED"}
DATA = os.urandom(300000)
KINDS = {"one": {}, "copies": {"copies": 2}, "slices": {"ec": {"data": 2, "parity": 1,
                                                               "min_size": 100000}},
         "md5": {"etag": "md5"}}
TAGS = "a%20b=%C3%A9%26&colour=red"


def internal(reply):
    """Headers of metadata that no client has sent."""
    return [n for n in reply.headers if n.lower().startswith("dfc-meta-")]


def tags_of(c, bucket, name):
    """By HEAD and GET, and no other header says them."""
    texts = []
    for method in ("HEAD", "GET"):
        reply = c.object(method, bucket, name).expect(200)
        equal(internal(reply), [], f"metadata of {bucket}/{name}")
        texts.append(reply.headers["Dfc-Tags"])
    equal(texts[0], texts[1], "tags by HEAD and GET")
    return texts[0]


# --- the native API -----------------------------------------------------------------------------


def test_tags_are_kept_in_every_bucket(c):
    for bucket, props in KINDS.items():
        c.create(bucket, **props)
        for size in (0, 100, len(DATA)):
            c.object("PUT", bucket, f"o{size}", DATA[:size], {"Dfc-Tags": TAGS}).expect(200)
            equal(tags_of(c, bucket, f"o{size}"), TAGS, f"of {size} bytes in {bucket}")


def test_they_have_one_form(c):
    for sent, kept in (("b&a=x+y%2f", "a=x%20y%2F&b="), ("", None), ("a=1&b=2", "a=1&b=2")):
        c.object("PUT", "one", "form", b"x", {"Dfc-Tags": sent}).expect(200)
        equal(tags_of(c, "one", "form"), kept, f"of '{sent}'")
    c.put("one", "form", b"x").expect(200)
    equal(tags_of(c, "one", "form"), None, "of an object that was written again without")


def test_what_is_refused_stores_nothing(c):
    c.put("one", "refused", b"first").expect(200)
    for text in ("a=1&a=2", "=1", "aws:a=1", "a=%zz", "a=%ff", "k" * 129, "a=" + "v" * 257,
                 "&".join(f"k{i}=" for i in range(11))):
        c.object("PUT", "one", "refused", b"x", {"Dfc-Tags": text}).expect(400, "invalid_argument")
    c.object("PUT", "one", "refused", b"x", {"Dfc-Meta-Entity-Tags": "a=1"}).expect(
        400, "invalid_argument", "Dfc-Tags")
    most = {"Dfc-Tags": "a=" + "v" * 256, "Dfc-Meta-A": "m" * 1800}
    c.object("PUT", "one", "refused", b"x", most).expect(400, "invalid_argument", "2048")
    equal(c.get("one", "refused").expect(200).body, b"first", "the object")


def test_they_stay_with_the_bytes(c):
    for bucket in KINDS:
        name = f"o{len(DATA)}"
        c.object("POST", bucket, name, {"action": "rename", "name": "renamed"}).expect(204)
        equal(tags_of(c, bucket, "renamed"), TAGS, f"of a rename in {bucket}")
        c.object("POST", bucket, "renamed", {"action": "rename", "name": name}).expect(204)
        c.create("copy-of-" + bucket, copies=2)
        job = c.call("POST", f"/v1/buckets/{bucket}", {
            "action": "copy", "value": {"prefix": "o", "to": "copy-of-" + bucket}}).expect(202)
        c.wait_job(job.json()["id"], "finished")
        for size in (0, 100, len(DATA)):
            equal(tags_of(c, "copy-of-" + bucket, f"o{size}"), TAGS, "of a job's copy")


def test_an_owner_that_dies_does_not_take_them(c):
    names = [f"k{i}" for i in range(6)]
    for bucket, name in itertools.product(("copies", "slices"), names):
        c.object("PUT", bucket, name, DATA, {"Dfc-Tags": TAGS}).expect(200)
    c.kill("t2", "-9")
    for bucket, name in itertools.product(("copies", "slices"), names):
        reply = patient(c, "GET", bucket, name).expect(200)
        equal((reply.headers["Dfc-Tags"], reply.body == DATA), (TAGS, True), f"{bucket}/{name}")
    c.start("t2")


def wait_uploaded(c):
    wait_for(lambda: sum(metric(c, "dfc_back_waiting", t) for t in c.targets()) == 0,
             "everything is uploaded")


def test_backends_have_them_among_the_metadata(c):
    BACKEND.put("data", "seed", b"seed")
    for policy in ("through", "back"):
        c.create(policy, backend=f"s3://data/{policy}?endpoint={BACKEND.url}", write_policy=policy)
        c.object("PUT", policy, "o", DATA, {"Dfc-Tags": TAGS, "Dfc-Meta-B": "c"}).expect(200)
        wait_uploaded(c)
        equal(BACKEND.meta("data", f"{policy}/o"), {"b": "c", "dfc-tags": TAGS}, "at the backend")
        evict(c, policy)
        for _ in ("from the backend", "from here"):
            reply = c.get(policy, "o").expect(200)
            equal((reply.headers["Dfc-Tags"], reply.headers["Dfc-Meta-B"]), (TAGS, "c"), policy)
        c.object("PUT", policy, "o", b"x", {"Dfc-Meta-Dfc-Tags": TAGS}).expect(
            400, "invalid_argument", "own")
        c.object("PUT", policy, "o", b"x", {"Dfc-Tags": TAGS, "Dfc-Meta-A": "m" * 1500}).expect(
            400, "invalid_argument", "1536")
    BACKEND.put("data", "through/theirs", b"x", {"Dfc-Tags": "a=1&a=2", "B": "c"})
    reply = c.get("through", "theirs").expect(200)
    equal((reply.headers["Dfc-Tags"], reply.headers["Dfc-Meta-B"]), (None, "c"), "no tags")


# --- S3 -----------------------------------------------------------------------------------------


def tagging(tags):
    """The document of (key, value) pairs."""
    inner = "".join(f"<Tag><Key>{escape(k)}</Key><Value>{escape(v)}</Value></Tag>" for k, v in tags)
    return f"<Tagging><TagSet>{inner}</TagSet></Tagging>".encode()


def put_tags(client, path, tags):
    return client.call("PUT", path, tagging(tags), pairs=[("tagging", "")])


def delete_tags(client, path):
    return client.call("DELETE", path, pairs=[("tagging", "")])


def seen(client, path):
    """The tags of an object, in the order of keys; the count in its headers is right."""
    document = client.call("GET", path, pairs=[("tagging", "")]).expect(200).body
    tags = [(e.findtext(NAMESPACE + "Key"), e.findtext(NAMESPACE + "Value"))
            for e in ElementTree.fromstring(document).iter(NAMESPACE + "Tag")]
    for method in ("GET", "HEAD"):
        reply = client.call(method, path).expect(200)
        equal(reply.headers["x-amz-tagging-count"], str(len(tags)) if tags else None,
              f"count by {method} of {path}")
        equal(reply.headers["Dfc-Tags"], None, "native header")
    return tags


def copy(client, source, path, headers=None):
    return client.call("PUT", path, b"", headers={"x-amz-copy-source": source, **(headers or {})})


PAIRS = [("a b", "\u00e9&<"), ("colour", "red"), ("empty", "")]
HEADER = {"x-amz-tagging": "colour=red&a+b=%C3%A9%26%3C&empty"}


def test_a_put_brings_tags(c):
    for bucket in KINDS:
        for node in NODES:
            client, path = root_of(c, node), f"/{bucket}/put-{node}"
            client.call("PUT", path, DATA, headers=HEADER).expect(200)
            equal(seen(client, path), PAIRS, f"of {path}")
            client.call("PUT", path, DATA).expect(200)
            equal(seen(client, path), [], f"of {path} without tags")


def test_tags_are_changed_at_every_node(c):
    meta = {"x-amz-meta-a": "b", "Content-Type": "text/x", "Cache-Control": "no-cache",
            "x-amz-checksum-crc32": s3ref.sum_text("crc32", DATA)}
    for bucket in KINDS:
        for node, size in zip(NODES, (len(DATA), 0, 100, len(DATA))):
            client, path = root_of(c, node), f"/{bucket}/change-{node}"
            client.call("PUT", path, DATA[:size],
                        headers=meta if size == len(DATA) else {}).expect(200)
            before = client.call("HEAD", path, headers=CHECKSUM).expect(200).headers
            put_tags(client, path, PAIRS).expect(200)
            equal(seen(client, path), PAIRS, f"of {path}")
            put_tags(client, path, [("one", "1")]).expect(200)
            equal(seen(client, path), [("one", "1")], f"of {path}, changed")
            got = client.call("GET", path, headers=CHECKSUM).expect(200)
            check(got.body == DATA[:size], "the bytes")
            for name in ("Content-Type", "x-amz-meta-a", "Cache-Control", "x-amz-checksum-crc32"):
                equal(got.headers[name], before[name], f"{name} of {path}")
            if bucket == "md5":
                equal(got.headers["ETag"], before["ETag"], "entity tag")
            for _ in range(2):
                delete_tags(client, path).expect(204)
                equal(seen(client, path), [], f"of {path}, deleted")


def test_the_same_tags_again_write_nothing(c):
    client = root_of(c)
    for tags, change in ((PAIRS, lambda p: put_tags(client, p, PAIRS).expect(200)),
                         ([], lambda p: delete_tags(client, p).expect(204))):
        client.call("PUT", "/one/same", DATA).expect(200)
        if tags:
            put_tags(client, "/one/same", tags).expect(200)
        before = c.get("one", "same").expect(200).headers["Dfc-Version"]
        change("/one/same")
        equal(c.get("one", "same").expect(200).headers["Dfc-Version"], before, "version")


def test_what_s3_refuses(c):
    client = root_of(c)
    client.call("PUT", "/one/bad", b"x", headers=HEADER).expect(200)
    for tags in ([("a", "1"), ("a", "2")], [("", "1")], [("aws:a", "1")], [("k" * 129, "")],
                 [("k", "v" * 257)], [(f"k{i}", "") for i in range(11)]):
        refused(put_tags(client, "/one/bad", tags), 400, "InvalidTag")
        header = {"x-amz-tagging": urllib.parse.urlencode(tags)}
        refused(client.call("PUT", "/one/bad", b"y", headers=header), 400, "InvalidTag")
    refused(client.call("PUT", "/one/bad", b"y", headers={"x-amz-tagging": "a=%"}), 400,
            "InvalidArgument")
    refused(client.call("PUT", "/one/bad", b"<Tagging>", pairs=[("tagging", "")]), 400,
            "MalformedXML")
    refused(client.call("PUT", "/one/bad", b"x" * 70000, pairs=[("tagging", "")]), 400,
            "EntityTooLarge")
    refused(client.call("DELETE", "/one/bad", b"x", pairs=[("tagging", "")]), 400,
            "InvalidRequest")
    for method, body in (("GET", None), ("PUT", tagging(PAIRS)), ("DELETE", None)):
        refused(client.call(method, "/one/nothing", body, pairs=[("tagging", "")]), 404,
                "NoSuchKey")
        refused(client.call(method, "/nothing/o", body, pairs=[("tagging", "")]), 404,
                "NoSuchBucket")
        refused(client.call(method, "/one/bad", body, pairs=[("tagging", ""), ("versionId", "7")]),
                400, "InvalidArgument")
    equal((seen(client, "/one/bad"), client.call("GET", "/one/bad").expect(200).body),
          (PAIRS, b"x"), "the object")


def test_tags_that_find_no_room(c):
    """Nothing is lost: the request fails as a whole."""
    client, large = root_of(c), [(f"k{i}", "v" * 256) for i in range(10)]
    meta = {"x-amz-meta-a": "m" * 1800}
    client.call("PUT", "/one/full", b"x", headers=meta).expect(200)
    for tags in (large, large[:1]):
        refused(put_tags(client, "/one/full", tags), 400, "InvalidArgument")
        header = {"x-amz-tagging": urllib.parse.urlencode(tags), **meta}
        refused(client.call("PUT", "/one/full", b"y", headers=header), 400, "InvalidArgument")
        refused(copy(client, "one/full", "/one/full-copy",
                     {"x-amz-tagging-directive": "REPLACE", **header}), 400, "InvalidArgument")
    refused(client.call("GET", "/one/full-copy"), 404, "NoSuchKey")
    got = client.call("GET", "/one/full").expect(200)
    equal((got.body, got.headers["x-amz-meta-a"]), (b"x", meta["x-amz-meta-a"]), "the object")
    client.call("PUT", "/one/many", b"x").expect(200)
    put_tags(client, "/one/many", large[:7]).expect(200)
    equal(seen(client, "/one/many"), large[:7], "what fits")


def test_copies_take_them_along_or_replace_them(c):
    client = root_of(c, "t2")
    client.call("PUT", "/one/from", DATA, headers=HEADER).expect(200)
    other = {"x-amz-tagging": "other=1"}
    replaced = {"x-amz-tagging-directive": "REPLACE"}
    for bucket in KINDS:
        for headers, tags in (({}, PAIRS), (other, PAIRS), ({**other, **replaced},
                                                            [("other", "1")]),
                              (replaced, []), ({"x-amz-metadata-directive": "REPLACE"}, PAIRS)):
            copy(client, "one/from", f"/{bucket}/to", headers).expect(200)
            equal(seen(client, f"/{bucket}/to"), tags, f"of a copy to {bucket} with {headers}")
    refused(copy(client, "one/from", "/one/no", {"x-amz-tagging-directive": "MOVE"}), 400,
            "InvalidArgument")
    refused(copy(client, "one/from", "/one/no", {**replaced, "x-amz-tagging": "=1"}), 400,
            "InvalidTag")
    refused(client.call("GET", "/one/no"), 404, "NoSuchKey")


def test_rights(c):
    root_of(c).call("PUT", "/one/mine", b"x", headers=HEADER).expect(200)
    may = {"read": ("GET",), "write": ("PUT", "DELETE")}
    for right, methods in may.items():
        user = make_user(c, right, [{"rights": [right], "bucket": "one"}])
        for node in NODES:
            client = S3(c, user.access, user.secret, node)
            for method, body in (("GET", None), ("PUT", tagging(PAIRS)), ("DELETE", None)):
                reply = client.call(method, "/one/mine", body, pairs=[("tagging", "")])
                if method in methods:
                    check(reply.status in (200, 204), f"{right} {method} at {node}: {reply!r}")
                else:
                    refused(reply, 403, "AccessDenied")


def test_writers_at_once(c):
    """Each change ends, none mixes two, and no write of bytes is undone by one."""
    path = "/copies/busy"
    root_of(c).call("PUT", path, b"0").expect(200)

    def one(i):
        client = root_of(c, NODES[i % len(NODES)])
        if i % 4 == 3:
            header = {"x-amz-tagging": f"a={i}&b={i}"}
            patient_call(lambda: client.call("PUT", path, b"bytes", headers=header))
        else:
            patient_call(lambda: put_tags(client, path, [("a", str(i)), ("b", str(i))]))

    in_parallel(one, range(24))
    tags = dict(seen(root_of(c), path))
    equal(tags["a"], tags["b"], "tags of one change")
    equal(root_of(c).call("GET", path).expect(200).body, b"bytes", "the object")


def patient_call(call):
    """As SDKs do, which repeat what gets SlowDown."""
    replies = []
    wait_for(lambda: replies.append(call()) or replies[-1].status != 503, "a reply but SlowDown")
    replies[-1].expect(200)


def test_changes_in_buckets_with_a_backend(c):
    for policy in ("through", "back"):
        client, path = root_of(c), f"/{policy}/s3"
        client.call("PUT", path, DATA, headers={**HEADER, "x-amz-meta-a": "b"}).expect(200)
        equal(seen(client, path), PAIRS, path)
        put_tags(client, path, [("one", "1")]).expect(200)
        wait_uploaded(c)
        equal(BACKEND.meta("data", f"{policy}/s3"), {"a": "b", "dfc-tags": "one=1"}, "there")
        evict(c, policy)
        equal(seen(client, path), [("one", "1")], f"{path} after an eviction")
        delete_tags(client, path).expect(204)
        wait_uploaded(c)
        equal(BACKEND.meta("data", f"{policy}/s3"), {"a": "b"}, "there")
        check(client.call("GET", path).expect(200).body == DATA, "the bytes")
        copy(client, f"{policy}/s3", f"/{policy}/copy").expect(200)
        equal(seen(client, f"/{policy}/copy"), [], "of a copy of what the backend has")
    c.create("seen", backend=f"s3://data/through?endpoint={BACKEND.url}")
    refused(put_tags(root_of(c), "/seen/s3", PAIRS), 501, "NotImplemented")


def test_without_access_control(_):
    c = Cluster(targets=1)
    c.create("b")
    S3(c).call("PUT", "/b/o", b"x", headers=HEADER).expect(200)
    put_tags(S3(c), "/b/o", [("a", "1")]).expect(200)
    equal(seen(S3(c), "/b/o"), [("a", "1")], "tags")
    c.stop("t1")
    c.start("t1")
    equal(tags_of(c, "b", "o"), "a=1", "after a restart")
    c.remove()


if __name__ == "__main__":
    use_backend_keys(ACCESS, SECRET)
    with BACKEND:
        main(GuardedCluster, targets=3)

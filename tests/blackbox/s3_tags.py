#!/usr/bin/env python3
"""Tags of objects: kept with the bytes in buckets of every kind, wherever these are moved or copied.
"""

import itertools
import os
import sys

from access_lib import GuardedCluster
from cold_lib import metric
from cold_meta import evict
from ec import patient
from lib import ROOT, equal, main, wait_for

sys.path.insert(0, os.path.join(ROOT, "tests", "reference"))
from fake_s3 import FakeS3  # noqa: E402

ACCESS, SECRET = "AKIDTAGS", "theSecretThatNobodyMaySee/+0123"
BACKEND = FakeS3({ACCESS: SECRET})

DATA = os.urandom(300000)
KINDS = {"one": {}, "copies": {"copies": 2}, "slices": {"ec": {"data": 2, "parity": 1,
                                                               "min_size": 100000}},
         "md5": {"etag": "md5"}}
TAGS = "colour=red&a%20b=%C3%A9%26"


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
    for sent, kept in (("b&a=x+y%2f", "b=&a=x%20y%2F"), ("", None), ("a=1&b=2", "a=1&b=2")):
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


def test_backends_have_them_among_the_metadata(c):
    BACKEND.put("data", "seed", b"seed")
    for policy in ("through", "back"):
        c.create(policy, backend=f"s3://data/{policy}?endpoint={BACKEND.url}", write_policy=policy)
        c.object("PUT", policy, "o", DATA, {"Dfc-Tags": TAGS, "Dfc-Meta-B": "c"}).expect(200)
        wait_for(lambda: sum(metric(c, "dfc_back_waiting", t) for t in c.targets()) == 0,
                 "everything is uploaded")
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


if __name__ == "__main__":
    os.environ.update({"AWS_ACCESS_KEY_ID": ACCESS, "AWS_SECRET_ACCESS_KEY": SECRET})
    os.environ.pop("AWS_SESSION_TOKEN", None)
    with BACKEND:
        main(GuardedCluster, targets=3)

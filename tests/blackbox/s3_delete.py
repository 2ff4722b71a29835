#!/usr/bin/env python3
"""DeleteObjects: many keys by one request, each with its own right, condition and outcome."""

import base64
import hashlib
import xml.etree.ElementTree as ElementTree
from xml.sax.saxutils import escape

from access_lib import GuardedCluster, make_user
from frozen import frozen
from lib import check, equal, main, wait_for
from s3_lib import NAMESPACE, S3, refused, root_of

AT_ONCE = 16  # calls of one request
NODES = ("p1", "p2", "t1", "t3")
ODD = ["a b", "a&b", "a/b/", "a//b", "a\u00e9<b>", "..", "~"]


def document(keys, quiet=None, more=""):
    """`more`: elements of every <Object>."""
    objects = "".join(f"<Object><Key>{escape(k)}</Key>{more}</Object>" for k in keys)
    flag = "" if quiet is None else f"<Quiet>{quiet}</Quiet>"
    return f"<Delete>{flag}{objects}</Delete>".encode()


def delete(client, bucket, body, headers=None):
    return client.call("POST", "/" + bucket, body, [("delete", "")], headers)


def outcomes(reply):
    """Keys that were deleted; {key: code} of the others."""
    root = ElementTree.fromstring(reply.expect(200).body)
    equal(root.tag, NAMESPACE + "DeleteResult", "root of the reply")
    gone = [e.findtext(NAMESPACE + "Key") for e in root.findall(NAMESPACE + "Deleted")]
    errors = {e.findtext(NAMESPACE + "Key"): e.findtext(NAMESPACE + "Code")
              for e in root.findall(NAMESPACE + "Error")}
    return gone, errors


def fill(c, bucket, keys):
    for key in keys:
        c.put(bucket, key, b"x").expect(200)


def names(c, bucket):
    return [e["name"] for e in c.call("GET", f"/v1/objects/{bucket}?limit=5000")
            .expect(200).json()["entries"]]


def test_every_node_deletes_all_keys(c):
    c.create("many")
    for node in NODES:
        keys = [f"{node}/{i}" for i in range(50)] + ODD
        fill(c, "many", [*keys, "stays"])
        gone, errors = outcomes(delete(root_of(c, node), "many", document([*keys, "never-there"])))
        equal((gone, errors), ([*keys, "never-there"], {}), f"outcomes at {node}")
        equal(names(c, "many"), ["stays"], f"what is left by {node}")


def test_a_thousand_keys_and_no_more(c):
    keys = [f"k{i:04}" for i in range(1000)]
    fill(c, "many", keys[::10])
    refused(delete(root_of(c), "many", document([*keys, "one more"])), 400, "MalformedXML")
    equal(len(names(c, "many")), 101, "a refused request deletes nothing")
    equal(outcomes(delete(root_of(c, "t2"), "many", document(keys))), (keys, {}), "outcomes")
    equal(names(c, "many"), ["stays"], "what is left")


def test_a_quiet_reply_has_only_errors(c):
    fill(c, "many", ["a", "b"])
    equal(outcomes(delete(root_of(c), "many", document(["a"], "true"))), ([], {}), "a quiet reply")
    equal(outcomes(delete(root_of(c), "many", document(["b"], "false"))), (["b"], {}), "the other")


def test_the_right_of_each_key_decides(c):
    fill(c, "many", ["own/a", "own/b", "other"])
    user = make_user(c, "own", [{"rights": ["delete"], "bucket": "many", "prefix": "own/"}])
    reader = make_user(c, "reader", [{"rights": ["read", "list"], "bucket": "many"}])
    body = document(["own/a", "other", "own/b"], "true")
    for node in NODES:
        fill(c, "many", ["own/a", "own/b"])
        client = S3(c, user.access, user.secret, node)
        equal(outcomes(delete(client, "many", body)), ([], {"other": "AccessDenied"}), node)
        equal(names(c, "many"), ["other", "stays"], "what is left")
        refused(delete(S3(c, reader.access, reader.secret, node), "many", body), 403,
                "AccessDenied")
    refused(S3(c, node="t1").call("POST", "/many", body, [("delete", "")]), 403, "AccessDenied")
    check("other" in names(c, "many"), "a request without a right has deleted an object")


def test_conditions_and_versions(c):
    client = root_of(c, "t1")
    fill(c, "many", ["kept", "match", "bare", "version"])
    tags = {k: client.call("HEAD", "/many/" + k).expect(200).headers["ETag"]
            for k in ("kept", "match", "bare")}
    fill(c, "many", ["kept"])  # with another tag now
    objects = [("match", f"<ETag>{tags['match']}</ETag>"),
               ("bare", "<ETag>" + tags["bare"].strip('"') + "</ETag>"),
               ("kept", f"<ETag>{tags['kept']}</ETag>"),
               ("missing", f"<ETag>{tags['match']}</ETag>"),
               ("version", "<VersionId>null</VersionId>"),
               ("other", "<VersionId>3</VersionId>")]
    body = "".join(f"<Object><Key>{k}</Key>{more}</Object>" for k, more in objects)
    gone, errors = outcomes(delete(client, "many", f"<Delete>{body}</Delete>".encode()))
    equal(gone, ["match", "bare", "version"], "deleted")
    equal(errors, {"kept": "PreconditionFailed", "missing": "NoSuchKey",
                   "other": "InvalidArgument"}, "codes")
    equal(names(c, "many"), ["kept", "other", "stays"], "what is left")


def test_requests_that_are_refused(c):
    client, body = root_of(c, "t2"), document(["kept"])
    md5 = base64.b64encode(hashlib.md5(body).digest()).decode()
    refused(delete(client, "many", b"<Delete></Delete>"), 400, "MalformedXML")
    refused(delete(client, "many", document([""])), 400, "MalformedXML")
    refused(delete(client, "many", document(["k" * 1025])), 400, "KeyTooLongError")
    refused(delete(client, "nowhere", body), 404, "NoSuchBucket")
    refused(delete(client, "many", document(["other"]), {"Content-MD5": md5}), 400, "BadDigest")
    refused(delete(client, "many", body, {"x-amz-checksum-crc32": "AAAAAA=="}), 400, "BadDigest")
    check("kept" in names(c, "many"), "a refused request has deleted an object")
    equal(outcomes(delete(client, "many", body, {"Content-MD5": md5})), (["kept"], {}), "its MD5")


def test_an_owner_that_is_away_fails_its_keys_alone(c):
    keys = [f"away{i}" for i in range(60)]
    fill(c, "many", keys)
    c.kill("t2")
    c.wait_node("t2", "unreachable")
    gone, errors = outcomes(delete(root_of(c, "p2"), "many", document(keys)))
    check(gone and errors and len(gone) + len(errors) == 60, f"{len(gone)} gone, {errors}")
    equal(set(errors.values()), {"SlowDown"}, "codes")
    c.start("t2")
    c.wait_node("t2", "active")
    equal([k for k in names(c, "many") if k in keys], sorted(errors), "what is left")
    equal(outcomes(delete(root_of(c, "p2"), "many", document(list(errors)))),
          (list(errors), {}), "again")


def test_a_stopped_owner_is_called_for_some_keys_and_no_more(c):
    """When it goes on, it carries out the calls that it got: those that were under way at once."""
    keys = [f"stopped{i}" for i in range(300)]
    fill(c, "many", keys)
    its_own = {k for k in keys if c.owner("many", k) == "t2"}
    c.restart("p2", "--arg=--stall-timeout=1s")
    with frozen(c, "t2"):
        gone, errors = outcomes(delete(root_of(c, "p2"), "many", document(keys)))
    equal(sorted([*gone, *errors]), sorted(keys), "keys with an outcome")
    equal(set(errors.values()), {"SlowDown"}, "codes")
    check(its_own <= set(errors), "a key of the stopped target was told to be deleted")
    c.wait_node("t2", "active")
    left = its_own & set(names(c, "many"))
    check(len(left) >= len(its_own) - AT_ONCE, f"{len(left)} of {len(its_own)} keys are left")
    wait_for(lambda: not outcomes(delete(root_of(c), "many", document(keys)))[1], "the repetition")


if __name__ == "__main__":
    main(GuardedCluster, proxies=2, targets=3)

#!/usr/bin/env python3
"""Buckets and lists by S3, through every node: names, owners, pages, delimiters, odd keys."""

import concurrent.futures
import socket
from urllib.parse import quote, unquote
import xml.etree.ElementTree as ElementTree

from access_lib import GuardedCluster, make_user
from lib import SANITIZED, WAIT_SECONDS, check, equal, in_parallel, main, wait_for
from put_cut import temporary_files
from s3_lib import NAMESPACE, S3, refused, root_of

NODES = ("p1", "p2", "t1", "t3")
ROUNDS = 20 if SANITIZED else 60


def document(reply):
    return ElementTree.fromstring(reply.expect(200).body)


def texts(root, *path):
    return [e.text for e in root.findall("/".join(NAMESPACE + p for p in path))]


def keys_of(root):
    return texts(root, "Contents", "Key")


def prefixes_of(root):
    return texts(root, "CommonPrefixes", "Prefix")


def text_of(root, name):
    return root.findtext(NAMESPACE + name)


# --- buckets -------------------------------------------------------------------------------------

def test_a_bucket_is_made_seen_and_deleted_at_every_node(c):
    for node in NODES:
        s3, name = root_of(c, node), f"made-at-{node}"
        equal(s3.call("PUT", "/" + name).expect(200).headers["Location"], "/" + name, "Location")
        for other in NODES:
            there = root_of(c, other).call("HEAD", "/" + name).expect(200)
            equal(there.headers["x-amz-bucket-region"], "us-east-1", "region")
            check(name in root_of(c, other).buckets(), f"{name} is not in the list of {other}")
        s3.call("DELETE", "/" + name).expect(204)
        refused(s3.call("DELETE", "/" + name), 404, "NoSuchBucket")
        equal(s3.call("HEAD", "/" + name).status, 404, "HEAD of what was deleted")


def test_internal_names_are_not_listed_and_keep_their_bucket(c):
    s3 = root_of(c, "p1")
    s3.call("PUT", "/inner").expect(200)
    for name in ("a", ".dfc-unique/1", ".dfc-unique/2"):
        s3.call("PUT", "/inner/" + name, name.encode()).expect(200)
    for pairs, names in (((), ["a"]), ((("list-type", "2"),), ["a"]), ((("prefix", ".d"),), []),
                         ((("prefix", ".dfc-unique/2"),), [".dfc-unique/2"])):
        equal(keys_of(document(s3.call("GET", "/inner", pairs=pairs))), names, f"list {pairs}")
    folded = document(s3.call("GET", "/inner", pairs=(("delimiter", "/"),)))
    equal((keys_of(folded), prefixes_of(folded)), (["a"], []), "folded list")
    s3.call("DELETE", "/inner/a").expect(204)
    refused(s3.call("DELETE", "/inner"), 409, "BucketNotEmpty")
    for number in "12":
        s3.call("DELETE", "/inner/.dfc-unique/" + number).expect(204)
    s3.call("DELETE", "/inner").expect(204)


def test_names_of_buckets(c):
    s3 = root_of(c, "p1")
    for name in ("ab", "Big", "a_b", "10.0.0.1", "a..b", "xn--a", "-ab", "a" * 64):
        refused(s3.call("PUT", "/" + name), 400, "InvalidBucketName")


def test_own_and_others_buckets(c):
    one = make_user(c, "one", [{"rights": ["create"]}])
    two = make_user(c, "two", [{"rights": ["create"]}])
    for node in NODES:
        S3(c, one.access, one.secret, node).call("PUT", "/shared-name").expect(200)
        refused(S3(c, two.access, two.secret, node).call("PUT", "/shared-name"), 409,
                "BucketAlreadyExists")
    refused(S3(c, two.access, two.secret, "t1").call("DELETE", "/shared-name"), 403, "AccessDenied")
    S3(c, one.access, one.secret, "t1").call("DELETE", "/shared-name").expect(204)


def test_regions(c):
    s3 = root_of(c, "t1")
    body = b"<CreateBucketConfiguration><LocationConstraint>%s</LocationConstraint>" \
           b"</CreateBucketConfiguration>"
    refused(s3.call("PUT", "/placed", body % b"eu-west-1"), 400, "InvalidLocationConstraint")
    s3.call("PUT", "/placed", body % b"us-east-1").expect(200)
    equal(document(s3.call("GET", "/placed", pairs=[("location", "")])).text, None, "location")
    refused(s3.call("GET", "/nowhere", pairs=[("location", "")]), 404, "NoSuchBucket")
    for name, elements in (("versioning", 0), ("logging", 0), ("notification", 0),
                           ("accelerate", 0), ("requestPayment", 1)):
        equal(len(document(s3.call("GET", "/placed", pairs=[(name, "")]))), elements, name)
    refused(s3.call("PUT", "/digest", b"<a/>", payload="0" * 64), 400, "XAmzContentSHA256Mismatch")
    refused(s3.call("PUT", "/long", b" " * 70_000), 400, "EntityTooLarge")


def test_a_bucket_with_objects_is_not_deleted(c):
    c.create("full")
    c.put("full", "one", b"1")
    refused(root_of(c, "t1").call("DELETE", "/full"), 409, "BucketNotEmpty")
    c.object("DELETE", "full", "one").expect(204)
    root_of(c, "t1").call("DELETE", "/full").expect(204)


class SlowPut:
    """A PUT whose last byte is not sent yet."""

    def __init__(self, c, bucket, key):
        c.get(bucket, key).expect(404, "object_not_found")  # the target knows the bucket
        self.connection = socket.create_connection(c.address(c.owner(bucket, key)),
                                                   timeout=WAIT_SECONDS)
        token = c.root.headers()["Authorization"]
        self.connection.sendall(f"PUT /v1/objects/{bucket}/{key} HTTP/1.1\r\nHost: localhost\r\n"
                                f"Authorization: {token}\r\nContent-Length: 200000\r\n\r\n"
                                .encode() + b"x" * 199_999)
        wait_for(lambda: temporary_files(c), "the target writes")

    def end(self):
        """The status."""
        with self.connection as s:
            s.sendall(b"x")
            return int(s.recv(100).split()[1])


def test_a_put_that_is_under_way_is_not_destroyed_silently(c):
    for copies in (1, 2):
        c.create("going", copies=copies)
        put = SlowPut(c, "going", "late")
        root_of(c, "t1").call("DELETE", "/going").expect(204)
        check(put.end() in (404, 503), "a PUT that ended after its bucket was acknowledged")
        c.get("going", "late").expect(404, "bucket_not_found")
        wait_for(lambda: not temporary_files(c), "the end of the PUT")
        c.create("going", copies=copies)
        put = SlowPut(c, "going", "early")
        equal(put.end() // 100, 2, "a PUT that ends before")
        refused(root_of(c, "t1").call("DELETE", "/going"), 409, "BucketNotEmpty")
        c.put("going", "afterwards", b"").expect(200)  # it is open again
        c.call("DELETE", "/v1/buckets/going").expect(204)


def test_puts_and_a_deletion_at_once(c):
    """What a client was told of keeps the bucket."""
    client, outcomes = root_of(c, "t2"), set()
    for number in range(ROUNDS):
        name = f"race{number}"
        c.create(name, copies=1 + number % 2)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            puts = [pool.submit(c.object, "PUT", name, f"o{i}", b"x") for i in range(number % 7 + 1)]
            deletion = pool.submit(client.call, "DELETE", "/" + name)
            stored = [i for i, p in enumerate(puts) if p.result().status == 200]
        gone = deletion.result().status == 204
        outcomes.add(gone)
        check(not (gone and stored), f"{len(stored)} objects were destroyed with {name}")
        for i in stored:
            c.get(name, f"o{i}").expect(200)
    print(f"# were buckets destroyed? {sorted(outcomes)}")


# --- lists ---------------------------------------------------------------------------------------

ODD = ["a b", "a&b", "a+b", "a/b", "a//b", "a/b/", "a\x08b", "a\u00e9b", "a<b>", "a\"b'", "..", "~"]


def fill(c, bucket, names):
    c.create(bucket)
    for name in names:
        c.put(bucket, name, name.encode()).expect(200)


def pages(s3, bucket, is_v2, size, pairs=()):
    """All keys and prefixes, page by page."""
    keys, prefixes, after = [], [], []
    for _ in range(1000):
        more = [("list-type", "2")] if is_v2 else []
        root = document(s3.call("GET", "/" + bucket,
                                pairs=[*more, ("max-keys", str(size)), *pairs, *after]))
        check(len(keys_of(root)) + len(prefixes_of(root)) <= size, "a page is too long")
        keys += keys_of(root)
        prefixes += prefixes_of(root)
        if text_of(root, "IsTruncated") == "false":
            return keys, prefixes
        after = [("continuation-token", text_of(root, "NextContinuationToken"))] if is_v2 else \
            [("marker", text_of(root, "NextMarker"))]
    raise AssertionError("the list has no end")


def test_an_empty_bucket(c):
    c.create("empty")
    for node in NODES:
        root = document(root_of(c, node).call("GET", "/empty", pairs=[("list-type", "2")]))
        equal((keys_of(root), text_of(root, "KeyCount"), text_of(root, "IsTruncated")),
              ([], "0", "false"), "an empty bucket")
    refused(root_of(c, "t1").call("GET", "/nowhere"), 404, "NoSuchBucket")


def test_pages_of_both_versions(c):
    names = sorted(f"{d}/{i:03}" for d in "abc" for i in range(20)) + ["z"]
    fill(c, "paged", names)
    for node, size in zip(NODES, (1, 7, 30, 1000)):
        for is_v2 in (False, True):
            s3 = root_of(c, node)
            equal(pages(s3, "paged", is_v2, size), (names, []), f"keys, pages of {size}")
            equal(pages(s3, "paged", is_v2, size, [("delimiter", "/")]),
                  (["z"], ["a/", "b/", "c/"]), f"with a delimiter, pages of {size}")
            equal(pages(s3, "paged", is_v2, size, [("prefix", "b/01")]),
                  (names[30:40], []), f"with a prefix, pages of {size}")
            equal(pages(s3, "paged", is_v2, size, [("delimiter", "/00")]),
                  ([n for n in names if "/00" not in n], ["a/00", "b/00", "c/00"]),
                  f"with a long delimiter, pages of {size}")


def test_what_a_list_says_of_an_object(c):
    fill(c, "said", ["one"])
    head = root_of(c, "t3").call("HEAD", "/said/one").expect(200)
    for pairs in ([], [("list-type", "2"), ("fetch-owner", "true")]):
        root = document(root_of(c, "p2").call("GET", "/said", pairs=pairs))
        entry = root.find(NAMESPACE + "Contents")
        equal((text_of(entry, "ETag"), text_of(entry, "Size"), text_of(entry, "StorageClass")),
              (head.headers["ETag"], "3", "STANDARD"), "tag, size and class")
        check(entry.find(NAMESPACE + "Owner") is not None, "no owner")


def test_odd_keys(c):
    fill(c, "odd", ODD)
    for node in NODES:
        s3 = root_of(c, node)
        body = s3.call("GET", "/odd", pairs=[("encoding-type", "url")]).expect(200).body
        wanted = sorted(ODD, key=lambda n: n.encode())
        from_url = [unquote(k) for k in keys_of(ElementTree.fromstring(body))]
        equal(from_url, wanted, "keys, encoded")
        plain = s3.call("GET", "/odd").expect(200).body
        check(b"<Key>a&#x8;b</Key>" in plain, "a control character is no reference")


def pages_of_versions(s3, bucket, size, pairs=()):
    """All <Version> elements and prefixes, page by page."""
    versions, prefixes, after = [], [], []
    for _ in range(1000):
        root = document(s3.call("GET", "/" + bucket,
                                pairs=[("versions", ""), ("max-keys", str(size)), *pairs, *after]))
        equal(root.tag, NAMESPACE + "ListVersionsResult", "root of the reply")
        page = root.findall(NAMESPACE + "Version")
        check(len(page) + len(prefixes_of(root)) <= size, "a page is too long")
        versions += page
        prefixes += prefixes_of(root)
        if text_of(root, "IsTruncated") == "false":
            return versions, prefixes
        version = text_of(root, "NextVersionIdMarker")
        after = [("key-marker", text_of(root, "NextKeyMarker"))]
        after += [("version-id-marker", version)] if version else []
    raise AssertionError("the list has no end")


def test_each_object_has_one_version(c):
    head = root_of(c, "t1").call("HEAD", "/paged/a/000").expect(200)
    names = [f"{d}/{i:03}" for d in "abc" for i in range(20)] + ["z"]
    for node, size in zip(NODES, (1, 7, 30, 1000)):
        s3 = root_of(c, node)
        versions, _ = pages_of_versions(s3, "paged", size)
        equal([text_of(v, "Key") for v in versions], names, f"keys, pages of {size}")
        equal({(text_of(v, "VersionId"), text_of(v, "IsLatest")) for v in versions},
              {("null", "true")}, "version and latest")
        equal((text_of(versions[0], "ETag"), text_of(versions[0], "Size")),
              (head.headers["ETag"], "5"), "tag and size")
        versions, prefixes = pages_of_versions(s3, "paged", size, [("delimiter", "/")])
        equal(([text_of(v, "Key") for v in versions], prefixes), (["z"], ["a/", "b/", "c/"]),
              f"with a delimiter, pages of {size}")
    for pairs in ([("version-id-marker", "null")],
                  [("key-marker", "a"), ("version-id-marker", "7")]):
        refused(root_of(c, "p2").call("GET", "/paged", pairs=[("versions", ""), *pairs]), 400,
                "InvalidArgument")


def test_a_list_of_1001_keys_has_two_pages(c):
    names = sorted([f"d{i % 7} +&/<{i:04}>\u00e9" for i in range(1000)] + ["z"],
                   key=lambda n: n.encode())
    c.create("wide")
    in_parallel(lambda n: c.put("wide", n, b"").expect(200), names)
    for node, is_v2 in (("p1", True), ("t2", False)):
        s3 = root_of(c, node)
        mode = [("list-type", "2")] if is_v2 else []
        first = document(s3.call("GET", "/wide", pairs=[*mode, ("encoding-type", "url")]))
        equal(([unquote(k) for k in keys_of(first)], text_of(first, "IsTruncated")),
              (names[:1000], "true"), "the first page")
        after = ("continuation-token", text_of(first, "NextContinuationToken")) if is_v2 else \
            ("marker", unquote(text_of(first, "NextMarker")))
        second = document(s3.call("GET", "/wide", pairs=[*mode, ("encoding-type", "url"), after]))
        equal(([unquote(k) for k in keys_of(second)], text_of(second, "IsTruncated")),
              (names[1000:], "false"), "the second page")
    s3 = root_of(c, "t3")
    many = document(s3.call("GET", "/wide", pairs=[("list-type", "2"), ("max-keys", "5000")]))
    equal((len(keys_of(many)), text_of(many, "MaxKeys")), (1000, "1000"), "more than AWS gives")
    equal(pages(s3, "wide", True, 1000, [("delimiter", "/"), ("encoding-type", "url")]),
          (["z"], [quote(f"d{i} +&/") for i in range(7)]), "folders, encoded")
    after = [("start-after", names[400])]
    equal(pages(s3, "wide", True, 1000, after), (names[401:], []), "start-after")


def test_bad_parameters(c):
    s3 = root_of(c, "t1")
    for pairs in ([("max-keys", "x")], [("max-keys", "-1")], [("encoding-type", "hex")],
                  [("list-type", "2"), ("continuation-token", "")],
                  [("list-type", "2"), ("continuation-token", "no token")],
                  [("prefix", "p" * 2000)]):
        refused(s3.call("GET", "/empty", pairs=pairs), 400, "InvalidArgument")
    root = document(s3.call("GET", "/odd", pairs=[("max-keys", "0")]))
    equal((keys_of(root), text_of(root, "IsTruncated")), ([], "false"), "max-keys=0")


def test_a_list_is_never_short(c):
    c.kill("t2")
    c.wait_node("t2", "unreachable")
    refused(root_of(c, "p1").call("GET", "/paged"), 503, "SlowDown")
    c.start("t2")
    c.wait_node("t2", "active")


if __name__ == "__main__":
    main(GuardedCluster, proxies=2, targets=3)

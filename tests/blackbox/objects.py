#!/usr/bin/env python3
"""Objects: what is stored comes back, with its headers; overwriting, deleting, metadata."""

import base64
import hashlib
import http.client
import os
import random

from lib import equal, check, main

SIZES = (0, 1, 255, 4096, 65535, 65536, 65537, 1 << 20, (5 << 20) + 3)


def bytes_of(size, seed=0):
    return random.Random(f"{seed} {size}").randbytes(size)


def test_bytes_come_back_whatever_their_number(c):
    c.create("b")
    for size in SIZES:
        data = bytes_of(size)
        reply = c.put("b", f"size/{size}", data)
        equal(reply.json()["size"], size, "size in the reply of PUT")
        got = c.get("b", f"size/{size}").expect(200)
        check(got.body == data, f"{size} bytes came back changed")
        equal(got.headers["Content-Length"], str(size), "Content-Length")


def test_headers_of_get_and_head(c):
    c.put("b", "h", b"hello", {"Content-Type": "text/x-test"})
    get, head = c.get("b", "h").expect(200), c.object("HEAD", "b", "h").expect(200)
    equal(head.body, b"", "body of HEAD")
    for name in ("Content-Length", "Content-Type", "Last-Modified", "Accept-Ranges", "ETag",
                 "Dfc-Version", "Dfc-Checksum-Type", "Dfc-Checksum-Value"):
        check(get.headers[name], f"GET has no {name}")
        equal(head.headers[name], get.headers[name], f"{name} of HEAD")
    equal(get.headers["Content-Type"], "text/x-test", "Content-Type")
    equal(get.headers["Accept-Ranges"], "bytes", "Accept-Ranges")
    equal(get.headers["ETag"], f'"{get.headers["Dfc-Version"]}"', "ETag")
    equal(get.headers["Dfc-Checksum-Type"], "xxh3", "checksum by default")


def test_put_says_what_it_stored(c):
    put = c.put("b", "said", b"12345").json()
    head = c.object("HEAD", "b", "said").expect(200)
    equal(put["version"], head.headers["Dfc-Version"], "version")
    equal(put["etag"].strip('"'), head.headers["ETag"].strip('"'), "etag")
    equal(put["checksum"], {"type": head.headers["Dfc-Checksum-Type"],
                            "value": head.headers["Dfc-Checksum-Value"]}, "checksum")


def version_of(reply):
    return tuple(int(part) for part in reply.headers["Dfc-Version"].split("."))


def test_overwriting_raises_the_version(c):
    versions = []
    for i in range(5):
        c.put("b", "again", b"%d" % i)
        got = c.get("b", "again").expect(200)
        equal(got.body, b"%d" % i, "contents")
        versions.append(version_of(got))
    equal(versions, sorted(set(versions)), "versions grow")


def test_delete(c):
    c.put("b", "gone", b"x")
    before = version_of(c.object("HEAD", "b", "gone"))
    c.object("DELETE", "b", "gone").expect(204)
    c.get("b", "gone").expect(404, "object_not_found")
    equal(c.object("HEAD", "b", "gone").expect(404).body, b"", "body of HEAD")
    c.object("DELETE", "b", "gone").expect(404, "object_not_found")
    check("gone" not in c.names("b", prefix="gone"), "a deleted object is listed")
    c.put("b", "gone", b"back")
    after = c.get("b", "gone").expect(200)
    equal(after.body, b"back", "contents after it was made again")
    check(version_of(after) > before, "the version of a re-created object went back")


def test_what_is_not_there(c):
    c.get("b", "never").expect(404, "object_not_found", "never")
    c.get("nobucket", "x").expect(404, "bucket_not_found", "nobucket")
    c.object("PUT", "nobucket", "x", b"data").expect(404, "bucket_not_found")


def test_user_metadata(c):
    c.put("b", "meta", b"x", {"Dfc-Meta-Colour": "blue", "dfc-meta-size": "XL",
                              "Dfc-Meta-Empty": ""})
    head = c.object("HEAD", "b", "meta").expect(200)
    equal(head.headers["Dfc-Meta-Colour"], "blue", "Dfc-Meta-Colour")
    equal(head.headers["Dfc-Meta-Size"], "XL", "Dfc-Meta-Size")
    c.put("b", "meta", b"x")
    equal(c.object("HEAD", "b", "meta").headers["Dfc-Meta-Colour"], None,
          "metadata after a PUT without any")


def test_metadata_beyond_its_limit_is_refused(c):
    c.put("b", "full", b"x", {"Dfc-Meta-A": "v" * 1900})
    equal(c.object("HEAD", "b", "full").headers["Dfc-Meta-A"], "v" * 1900, "long metadata")
    refused = c.object("PUT", "b", "overfull", b"x", {"Dfc-Meta-A": "v" * 2100})
    check(refused.status in (400, 431), f"more than 2 KiB of metadata: {refused!r}")
    c.get("b", "overfull").expect(404)


def test_checksums_that_are_sent_are_verified(c):
    data = bytes_of(200000)
    sums = {"md5": hashlib.md5(data).hexdigest(), "sha256": hashlib.sha256(data).hexdigest()}
    for kind, value in sums.items():
        c.put("b", f"sum-{kind}", data, {"Dfc-Checksum-Type": kind, "Dfc-Checksum-Value": value})
        wrong = value[:-1] + ("0" if value[-1] != "0" else "1")
        c.object("PUT", "b", f"bad-{kind}", data,
                 {"Dfc-Checksum-Type": kind, "Dfc-Checksum-Value": wrong}
                 ).expect(422, "checksum_mismatch")
        c.get("b", f"bad-{kind}").expect(404)
    md5 = base64.b64encode(hashlib.md5(data).digest()).decode()
    c.put("b", "content-md5", data, {"Content-MD5": md5})
    c.object("PUT", "b", "content-md5", data + b"x", {"Content-MD5": md5}
             ).expect(422, "checksum_mismatch")
    for wrong in ("", "abc", "0" * 24, md5 + "="):
        c.object("PUT", "b", "content-md5", data, {"Content-MD5": wrong}
                 ).expect(400, "invalid_argument", "Content-MD5")
    c.object("PUT", "b", "content-md5", data,
             {"Content-MD5": md5, "Dfc-Checksum-Type": "md5", "Dfc-Checksum-Value": sums["md5"]}
             ).expect(400, "invalid_argument", "one of them")
    equal(c.get("b", "content-md5").expect(200).body, data, "what was verified")
    # The published values of the empty string and of "123456789".
    c.put("b", "sum-xxh3", b"", {"Dfc-Checksum-Type": "xxh3",
                                 "Dfc-Checksum-Value": "2d06800538d394c2"})
    c.put("b", "sum-crc", b"123456789", {"Dfc-Checksum-Type": "crc32c",
                                         "Dfc-Checksum-Value": "e3069283"})


def test_a_refused_overwrite_keeps_the_old_object(c):
    c.put("b", "kept", b"old")
    c.object("PUT", "b", "kept", b"new",
             {"Dfc-Checksum-Type": "md5", "Dfc-Checksum-Value": "0" * 32}).expect(
                 422, "checksum_mismatch")
    equal(c.get("b", "kept").expect(200).body, b"old", "the object after a refused PUT")


def test_a_bucket_chooses_its_checksum(c):
    data = bytes_of(100000)
    for kind in ("md5", "sha256"):
        c.create(f"by-{kind}", checksum=kind)
        c.put(f"by-{kind}", "x", data)
        head = c.object("HEAD", f"by-{kind}", "x")
        equal(head.headers["Dfc-Checksum-Type"], kind, "type")
        equal(head.headers["Dfc-Checksum-Value"], hashlib.new(kind, data).hexdigest(), kind)
    c.create("by-none", checksum="none")
    c.put("by-none", "x", data)
    check(c.get("by-none", "x").expect(200).body == data, "contents without a checksum")


def test_async_buckets_store_too(c):
    c.create("quick", durability="async")
    for i in range(20):
        c.put("quick", str(i), b"%d" % i)
    for i in range(20):
        equal(c.get("quick", str(i)).expect(200).body, b"%d" % i, "contents")


def flip_a_byte(path):
    with open(path, "r+b") as f:
        f.seek(100000)
        byte = f.read(1)
        f.seek(100000)
        f.write(bytes([byte[0] ^ 1]))


def test_verify_on_read_finds_damage(c):
    c.create("careful", verify_on_read=True)
    data = bytes_of(314159)
    c.put("careful", "x", data)
    check(c.get("careful", "x").expect(200).body == data, "undamaged object")
    files = [p for t in c.targets() for p in c.object_files(t) if os.path.getsize(p) == len(data)]
    equal(len(files), 1, "files of this size")
    flip_a_byte(files[0])
    try:
        c.get("careful", "x").expect(500, "corrupt")
    except http.client.IncompleteRead:
        pass  # the damage was found on the way: the reply cannot look complete either


def test_every_reply_names_request_and_node(c):
    reply = c.get("b", "h", {"X-Request-Id": "my-own-id_1"}).expect(200)
    equal(reply.headers["X-Request-Id"], "my-own-id_1", "X-Request-Id")
    check(reply.headers["Dfc-Node"] in c.targets(), "Dfc-Node is not a target")
    made = c.get("b", "h").headers["X-Request-Id"]
    check(made and made != c.get("b", "h").headers["X-Request-Id"], "ids repeat")
    long = c.get("b", "h", {"X-Request-Id": "x" * 65}).expect(200)
    check(long.headers["X-Request-Id"] != "x" * 65, "an overlong request id was taken")


if __name__ == "__main__":
    main(targets=3)

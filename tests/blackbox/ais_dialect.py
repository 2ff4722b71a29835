#!/usr/bin/env python3
"""The dialect of AIStore's SDK, by requests as the SDK sends them: buckets, objects, lists, errors,
at the primary and at another proxy; and nothing of it without the right.  The SDK itself is in
tests/clients/aistore_sdk.py."""

import io
import json
import os
import re
import tarfile
import threading

from access_lib import GuardedCluster, make_user
from lib import check, equal, escape, main, raw_exchange, wait_for

SDK = {"User-Agent": "ais/python/2.0.0", "Content-Type": "application/json",
       "Accept-Encoding": "gzip, deflate", "Accept": "*/*"}
BIG = os.urandom(2 << 20)


def action(name, **value):
    return json.dumps({"action": name, "name": "", "value": value or None}).encode()


def sdk(c, method, path, body=None, node="p1", headers=None, by=None, **options):
    """By root; provider=ais is in every query of the SDK."""
    path += ("&" if "?" in path else "?") + "provider=ais"
    proof = (by or c.root).headers() if by is not False else {}
    return c.http.request(method, c.url(node) + "/v1/" + path, body,
                          {**SDK, **proof, **(headers or {})}, **options)


def refusal(reply, status, code, begin):
    """An error in the SDK's form, whose message begins so."""
    equal((reply.status, reply.headers["Content-Type"]), (status, "application/json"), repr(reply))
    document = reply.json()
    equal((document["status"], document["code"]), (status, code), repr(reply))
    check(document["message"].startswith(begin), f"{document['message']!r} begins not {begin!r}")


# --- MessagePack, as far as lists have it --------------------------------------------------------


def unpack(data):
    """The one value of `data`."""
    stream = io.BytesIO(data)

    def number(count):
        return int.from_bytes(stream.read(count), "big")

    def value():
        head = number(1)
        if head < 0x80:
            return head
        if head < 0x90:
            return table(head & 15)
        if head < 0xa0:
            return [value() for _ in range(head & 15)]
        if head < 0xc0:
            return stream.read(head & 31).decode()
        if 0xcc <= head <= 0xcf:
            return number(1 << (head - 0xcc))
        if 0xd9 <= head <= 0xdb:
            return stream.read(number(1 << (head - 0xd9))).decode()
        if head in (0xdc, 0xdd):
            return [value() for _ in range(number(2 if head == 0xdc else 4))]
        check(head in (0xde, 0xdf), f"a value begins with {head:#x}")
        return table(number(2 if head == 0xde else 4))

    def table(count):
        return {value(): value() for _ in range(count)}

    whole = value()
    equal(stream.read(), b"", "what follows the value")
    return whole


def list_page(c, bucket, node="p1", by=None, **value):
    reply = sdk(c, "GET", f"buckets/{bucket}", action("list", **{"prefix": "", **value}), node,
                {"Accept": "application/msgpack"}, by).expect(200)
    equal(reply.headers["Content-Type"], "application/msgpack", "the type")
    page = unpack(reply.body)
    equal(set(page), {"UUID", "ContinuationToken", "Flags", "Entries"}, "fields of a page")
    check(page["UUID"], "a page without UUID is asked for again and again")
    return page


def names(page):
    return [e["n"] for e in page["Entries"]]


# --- the cluster and buckets ---------------------------------------------------------------------


def test_the_map_of_the_cluster(c):
    for node in ("p1", "p2"):
        smap = sdk(c, "GET", "daemon?what=smap", node=node).expect(200).json()
        equal((set(smap["tmap"]), set(smap["pmap"])), ({"t1", "t2"}, {"p1", "p2"}), "nodes")
        equal(smap["proxy_si"]["public_net"]["direct_url"], c.url("p1"), "the primary")
        for name, n in {**smap["tmap"], **smap["pmap"]}.items():
            equal((n["daemon_id"], n["public_net"]["direct_url"]), (name, c.url(name)), "a node")
            check(0 <= n["id_digest"] < 1 << 63, f"{n}")
        sdk(c, "GET", "health?prr=true", node=node).expect(200)
    refusal(sdk(c, "GET", "daemon?what=log"), 501, "not_supported", "GET '/v1/daemon'")


def test_buckets_are_made_renamed_and_destroyed(c):
    for node, bucket in (("p1", "one"), ("p2", "two")):
        path = f"buckets/{bucket}"
        refusal(sdk(c, "DELETE", path, action("destroy-bck"), node), 404, "bucket_not_found",
                f"ais://{bucket}: ")
        check(sdk(c, "POST", path, action("create-bck"), node).status in (200, 201), "it is made")
        refusal(sdk(c, "POST", path, action("create-bck"), node), 409, "bucket_exists",
                f"ais://{bucket}: ")
        reply = sdk(c, "HEAD", path, node=node).expect(200)
        equal(json.loads(reply.headers["Ais-Bucket-Props"])["mirror"]["copies"], 1, "copies")
        check({"name": bucket, "provider": "ais"} in
              sdk(c, "GET", "buckets", action("list"), node).expect(200).json(), "it is listed")
        for to in ("", "?bck_to=", "?bck_to=other", "?bck_to=aws/@%23/x/", "?bck_to=ais/@%23//"):
            refusal(sdk(c, "POST", path + to, action("move-bck"), node), 400, "invalid_argument",
                    f"ais://{bucket}: parameter 'bck_to'")
        sdk(c, "POST", f"{path}?bck_to=ais/@%23/{bucket}-new/", action("move-bck"),
            node).expect(204)
        sdk(c, "HEAD", f"{path}-new", node=node).expect(200)
        sdk(c, "DELETE", f"{path}-new", action("destroy-bck"), node).expect(204)
        sdk(c, "HEAD", f"{path}-new", node=node).expect(404)


def test_a_bucket_is_not_destroyed_by_what_is_left_of_a_body(c):
    c.create("kept")
    for body in (b"", b"{", b"null", b"{}", b'{"action": null}', action("list")):
        reply = sdk(c, "DELETE", "buckets/kept", body)
        check(reply.status in (400, 501), f"{body}: {reply!r}")
        sdk(c, "HEAD", "buckets/kept").expect(200)


# --- objects -------------------------------------------------------------------------------------


def test_objects(c):
    c.create("objects")
    for node in ("p1", "p2"):
        for name, data in (("a", b"bytes"), ("empty", b""), ("big", BIG), ("a b/ü%&+?#", b"named")):
            path = f"objects/objects/{escape(name)}"
            sdk(c, "PUT", path, data, node, follow=False).expect(200)
            sdk(c, "GET", path, node=node, follow=False).expect(307)
            reply = sdk(c, "GET", path, node=node).expect(200)
            equal((reply.body, reply.headers["Content-Type"]), (data, "application/octet-stream"),
                  name)
            reply = sdk(c, "HEAD", path + "?props=checksum,custom", node=node).expect(200)
            h = reply.headers
            equal((h["Content-Length"], h["ais-present"], h["ais-bucket-name"],
                   h["ais-bucket-provider"], h["ais-location"]),
                  (str(len(data)), "true", "objects", "ais", ""), name)
            equal((h["ais-checksum-value"], h["ais-version"]),
                  (h["Dfc-Checksum-Value"], h["Dfc-Version"]), name)
        path = "objects/objects/big"
        reply = sdk(c, "GET", path, node=node, headers={"Range": "bytes=10-19"}).expect(206)
        equal(reply.body, BIG[10:20], "a range")
        sdk(c, "DELETE", path, node=node).expect(204)
        refusal(sdk(c, "GET", path, node=node), 404, "object_not_found", "ais://objects/big: ")
        refusal(sdk(c, "DELETE", path, node=node), 404, "object_not_found", "ais://objects/big: ")
        for method, body in (("GET", None), ("PUT", b"x"), ("DELETE", None)):
            refusal(sdk(c, method, "objects/nobody/o", body, node), 404, "bucket_not_found",
                    "ais://nobody: ")


def test_a_target_reads_what_the_sdk_asks_it_for(c):
    """`direct`: by a placement that is not ours."""
    c.create("direct")
    c.put("direct", "o", b"bytes", {"Dfc-Meta-Colour": "red", "Dfc-Meta-Odd": "a,b"})
    for node in ("t1", "t2"):
        reply = sdk(c, "GET", "objects/direct/o?archregx=", node=node).expect(200)
        equal((reply.body, reply.headers["ais-custom-md"]), (b"bytes", "colour=red"), node)
        sdk(c, "HEAD", "objects/direct/o?props=custom", node=node).expect(200)
        refusal(sdk(c, "GET", "objects/direct/none", node=node), 404, "object_not_found",
                "ais://direct/none: ")


def test_the_head_alone_of_a_put_is_redirected(c):
    """As the SDK does over TLS, where the body follows to where the redirect leads."""
    c.create("heads")
    lines = {**SDK, **c.root.headers(), "Host": "127.0.0.1", "Connection": "close",
             "Content-Length": str(len(BIG))}
    head = "PUT /v1/objects/heads/o?provider=ais HTTP/1.1\r\n"
    head += "".join(f"{n}: {v}\r\n" for n, v in lines.items()) + "\r\n"
    reply = raw_exchange(c.address(), head.encode(), context=c.http.context).expect(307)
    c.http.request("PUT", reply.headers["Location"] + "&provider=ais", BIG, SDK).expect(200)
    equal(c.get("heads", "o").expect(200).body, BIG, "the object")


def check_members(c, mode, key):
    """Of an archive that tarfile makes in this mode."""
    shard = io.BytesIO()
    with tarfile.open(fileobj=shard, mode=mode) as tar:
        for name in ("a.txt", "b/ü &.txt"):
            info = tarfile.TarInfo(name)
            info.size = len(name.encode())
            tar.addfile(info, io.BytesIO(name.encode()))
    c.put("shards", key, shard.getvalue())
    for name in ("a.txt", "b/ü &.txt"):
        path = f"objects/shards/{key}?archregx=&archpath={escape(name)}"
        equal(sdk(c, "GET", path).expect(200).body, name.encode(), name)
        location = sdk(c, "GET", path, follow=False).expect(307).headers["Location"]
        equal(c.http.request("GET", location, None, SDK).expect(200).body, name.encode(), name)
        other = re.sub(r"member=[^&]*", "member=other", location)
        check(other != location, location)
        equal(c.http.request("GET", other, None, SDK).status, 403, "another member by this proof")
        whole = re.sub(r"&member=[^&]*", "", location)
        equal(c.http.request("GET", whole, None, SDK).status, 403, "the archive by this proof")


def test_members_of_an_archive(c):
    c.create("shards")
    check_members(c, "w", "s.tar")
    check_members(c, "w:gz", "s.tar.gz")
    refusal(sdk(c, "GET", "objects/shards/s.tar?archpath=none"), 404, "member_not_found",
            "ais://shards/s.tar: ")


# --- batches -------------------------------------------------------------------------------------


def moss(*entries, **form):
    return json.dumps({"in": list(entries), **form}).encode()


def test_batches(c):
    c.create("batches")
    c.put("batches", "o", b"bytes")
    for node in ("p1", "p2"):
        reply = sdk(c, "GET", "ml/moss/batches", moss({"objname": "o"}, strm=True), node).expect(200)
        equal(reply.headers["Content-Type"], "application/x-tar", "the type")
        with tarfile.open(fileobj=io.BytesIO(reply.body)) as tar:
            equal([(m.name, tar.extractfile(m).read()) for m in tar], [("batches/o", b"bytes")], node)
        reply = sdk(c, "GET", "ml/moss", moss({"objname": "o", "bucket": "batches"}), node).expect(200)
        check(reply.headers["Content-Type"].startswith("multipart/mixed; boundary="), f"{reply!r}")
        check(b'"objname":"o"' in reply.body and b"bytes" in reply.body, f"{reply!r}")


def test_bad_batches(c):
    c.create("bad")
    for entry, status, code, begin in (
            ({"objname": "none"}, 404, "object_not_found", "ais://bad/none: entry 0"),
            ({"objname": "o", "bucket": "nobody"}, 404, "bucket_not_found", "ais://nobody: entry 0"),
            ({"objname": "o", "bucket": "B/"}, 400, "invalid_name", "entries[0]"),
            ({"objname": "", }, 400, "invalid_name", "entries[0]"),
            ({"bucket": "bad"}, 400, "invalid_json", "ais://bad: "),
            ({"objname": "o", "provider": "aws"}, 501, "not_supported", "ais://bad: "),
            ({"objname": "o", "start": 1}, 400, "invalid_argument", "ais://bad: ")):
        refusal(sdk(c, "GET", "ml/moss/bad", moss(entry)), status, code, begin)
    refusal(sdk(c, "GET", "ml/moss/bad", moss({"objname": "o"}, mime=".rar")), 400,
            "invalid_argument", "field 'format'")
    refusal(sdk(c, "GET", "ml/moss/bad?namespace=n", moss({"objname": "o"})), 501, "not_supported",
            "ais://bad: ")
    for body in (None, b"", b"{", b"[]", moss(), moss({"objname": "o"}, other=1)):
        equal(sdk(c, "GET", "ml/moss/bad", body).status, 400, f"a batch of {body}")
    equal(sdk(c, "GET", "ml/moss/bad", b" " * (2 << 20)).status, 413, "a large body")
    equal(sdk(c, "POST", "ml/moss/bad", moss({"objname": "o"})).status, 501, "another method")


# --- uploads in parts ----------------------------------------------------------------------------

UPLOAD = "AAABk0dnAAABAgMEBQYHCAkKCwwAAAAAAAAA_w"  # no node has its seed


def completion(*numbers):
    return json.dumps({"action": "mpt-complete", "name": "",
                       "value": [{"part-number": n, "etag": ""} for n in numbers]}).encode()


def test_uploads(c):
    c.create("uploads")
    for node, other in (("p1", "p2"), ("p2", "p1")):
        begun = sdk(c, "POST", "objects/uploads/o", action("mpt-upload"), node).expect(200)
        equal(begun.headers["Content-Type"], "text/plain", "the type of the id")
        at = f"objects/uploads/o?uploadId={begun.body.decode()}"
        sdk(c, "PUT", f"{at}&partNumber=2", b"end", other).expect(200)
        # As over TLS: the head alone, then the body to where the reply leads.
        reply = sdk(c, "PUT", f"{at}&partNumber=1", b"", node, {"Connection": "close"}, follow=False)
        equal(reply.status, 307, "a part whose head comes alone")
        c.http.request("PUT", reply.headers["Location"] + "&uploadId=x&partNumber=1&provider=ais",
                       BIG, SDK).expect(200)
        wrong = reply.headers["Location"].replace("/v1/uploads/", "/v1/objects/")
        wrong = re.sub("&?(upload|part)=[^&]*", "", wrong)
        equal(c.http.request("PUT", wrong, b"x", SDK).status, 403, "an object by the proof of a part")
        sdk(c, "POST", at, completion(2, 1), other).expect(200)
        equal(sdk(c, "GET", "objects/uploads/o", node=node).body, BIG + b"end", "the object")
        sdk(c, "DELETE", "objects/uploads/o").expect(204)
    begun = sdk(c, "POST", "objects/uploads/o", action("mpt-upload")).expect(200)
    at = f"objects/uploads/o?uploadId={begun.body.decode()}"
    sdk(c, "PUT", f"{at}&partNumber=1", b"x").expect(200)
    sdk(c, "DELETE", at, action("mpt-abort"), "p2").expect(204)
    refusal(sdk(c, "POST", at, completion(1)), 404, "not_found", "ais://uploads/o: ")
    sdk(c, "GET", "objects/uploads/o").expect(404)


def test_bad_uploads(c):
    c.create("badup")
    c.put("badup", "o", b"bytes")
    at = "objects/badup/o?uploadId="
    for method, path, body, status in (
            ("POST", "objects/badup/o", b"", 400), ("POST", "objects/badup/o", action("mpt"), 501),
            ("POST", "objects/badup/o", completion(1), 501),
            ("POST", "objects/nobody/o", action("mpt-upload"), 404),
            ("POST", at, completion(1), 400), ("POST", at + "x%2F", completion(1), 400),
            ("POST", at + UPLOAD, completion(1), 404), ("POST", at + UPLOAD, completion(), 400),
            ("POST", at + UPLOAD, action("mpt-complete"), 400),
            ("POST", at + UPLOAD, action("mpt-upload"), 501), ("POST", at + UPLOAD, b"", 400),
            ("PUT", at + UPLOAD + "&partNumber=1", b"x", 404), ("PUT", at + UPLOAD, b"x", 400),
            ("PUT", at + "&partNumber=1", b"x", 400), ("PUT", at + "&part=1", b"x", 400),
            ("DELETE", at + UPLOAD, b"", 400), ("DELETE", at + UPLOAD, action("mpt"), 501),
            ("DELETE", at + UPLOAD, action("mpt-abort"), 404),
            ("DELETE", at, action("mpt-abort"), 400),
            # A name of a parameter in other letters does not lead to another call.
            ("PUT", "objects/badup/o?upload%49d=x&partNumber=1", b"x", 400),
            ("DELETE", "objects/badup/o?upload%49d=x", action("mpt-abort"), 400)):
        reply = sdk(c, method, path, body)
        equal(reply.status, status, f"{method} {path} {body}: {reply!r}\nits status")
    equal(c.get("badup", "o").expect(200).body, b"bytes", "the object")


def test_a_writer_aborts_and_does_not_delete(c):
    c.create("written")
    c.put("written", "o", b"bytes")
    writer = make_user(c, "writer", [{"rights": ["write"], "bucket": "written"}])
    begun = sdk(c, "POST", "objects/written/o", action("mpt-upload"), by=writer).expect(200)
    at = f"objects/written/o?uploadId={begun.body.decode()}"
    sdk(c, "PUT", f"{at}&partNumber=1", b"x", by=writer).expect(200)
    sdk(c, "DELETE", at, action("mpt-abort"), by=writer).expect(204)
    equal(sdk(c, "DELETE", "objects/written/o", by=writer).status, 403, "to delete")
    deleter = make_user(c, "deleter", [{"rights": ["delete"], "bucket": "written"}])
    equal(sdk(c, "DELETE", at, action("mpt-abort"), by=deleter).status, 403, "to abort")
    equal(c.get("written", "o").expect(200).body, b"bytes", "the object")


# --- metadata and copies -------------------------------------------------------------------------


def props(**pairs):
    return json.dumps({"action": "", "name": "", "value": pairs}).encode()


def test_metadata(c):
    for bucket, kind in (("meta", {}), ("meta2", {"copies": 2}), ("metamd5", {"etag": "md5"})):
        c.create(bucket, **kind)
        for node in ("p1", "p2"):
            c.put(bucket, "o", BIG, headers={"Content-Type": "a/b", "Dfc-Tags": "t=1",
                                             "Dfc-Meta-Old": "x", "Cache-Control": "no-store"})
            at = f"objects/{bucket}/o"
            sdk(c, "PATCH", at, props(color="red"), node).expect(200)
            reply = c.get(bucket, "o").expect(200)
            equal((reply.body == BIG, reply.headers["Content-Type"], reply.headers["Dfc-Tags"],
                   reply.headers["Dfc-Meta-Old"], reply.headers["Dfc-Meta-Color"],
                   reply.headers["Cache-Control"]), (True, "a/b", "t=1", "x", "red", "no-store"), node)
            sdk(c, "PATCH", at + "?set-new-custom=true", props(new="1"), node).expect(200)
            reply = c.get(bucket, "o").expect(200)
            equal((reply.headers.get("Dfc-Meta-Old"), reply.headers["Dfc-Meta-New"],
                   reply.headers["Dfc-Tags"]), (None, "1", "t=1"), node)


def test_metadata_of_what_others_write(c):
    """No write is lost: the bytes are those of the last PUT, whatever was set meanwhile."""
    c.create("busy")
    c.put("busy", "o", b"0")
    done = threading.Event()

    def patch(node):
        while not done.is_set():
            status = sdk(c, "PATCH", "objects/busy/o", props(by=node), node).status
            check(status in (200, 503), f"{node}: {status}")

    threads = [threading.Thread(target=patch, args=(node,)) for node in ("p1", "p2")]
    for t in threads:
        t.start()
    try:
        for i in range(30):
            c.put("busy", "o", b"%d" % i)
            equal(c.get("busy", "o").expect(200).body, b"%d" % i, "what was written last")
    finally:
        done.set()
        for t in threads:
            t.join()
    equal(c.get("busy", "o").expect(200).body, b"29", "what was written last")


def test_bad_metadata(c):
    c.create("badmeta")
    c.put("badmeta", "o", b"bytes")
    at = "objects/badmeta/o"
    for path, body, status in (
            (at, None, 400), (at, b"{", 400), (at, b"[]", 400), (at, b"{}", 400), (at, props(a=1), 400),
            (at, json.dumps({"value": {"a b": "x"}}).encode(), 400), (at, props(a="x\ny"), 400),
            (at, props(a="x" * 4000), 400), (at, action("append"), 501),
            (at + "?set-new-custom=x", props(a="b"), 400), (at + "?other=x", props(a="b"), 400),
            ("objects/badmeta/none", props(a="b"), 404), ("objects/nobody/o", props(a="b"), 404)):
        equal(sdk(c, "PATCH", path, body).status, status, f"{path} {body}\nstatus")
    reply = c.get("badmeta", "o").expect(200)
    check(reply.body == b"bytes" and "Dfc-Meta-A" not in reply.headers, f"{reply!r}")


def test_copies(c):
    c.create("from")
    c.create("to", copies=2)
    c.put("from", "d/o", BIG, headers={"Content-Type": "a/b", "Dfc-Meta-Color": "red"})
    for node in ("p1", "p2"):
        sdk(c, "PUT", "objects/from/d/o?object_to=ais/@%23/to/e/p", b"", node).expect(200)
        reply = c.get("to", "e/p").expect(200)
        equal((reply.body == BIG, reply.headers["Content-Type"], reply.headers["Dfc-Meta-Color"]),
              (True, "a/b", "red"), node)
    for query, status in (("object_to=", 400), ("object_to=to/p", 400), ("object_to=ais/@%23/to", 400),
                          ("object_to=ais/@%23/to/", 400), ("object_to=ais/@%23/nobody/p", 404),
                          ("object_to=ais/@%23/from/d/o", 400), ("object_to=aws/@%23/to/p", 400),
                          ("object_to=ais/@%23/to/q&latest-ver=true", 501),
                          ("object_to=ais/@%23/to/q&etl_name=e", 501)):
        equal(sdk(c, "PUT", f"objects/from/d/o?{query}", b"").status, status, f"{query}\nstatus")
    equal(sdk(c, "PUT", "objects/from/d/o?object_to=ais/@%23/to/q", b"body").status, 400, "a body")
    c.get("to", "q").expect(404)
    sdk(c, "PUT", "objects/from/d/o?object_to=ais%2F%40%23%2Fto%2Fa+b%2Bc", b"").expect(200)
    equal(c.get("to", "a b+c").expect(200).body == BIG, True, "a name with a blank and a plus")
    refusal(sdk(c, "PUT", "objects/from/none?object_to=ais/@%23/to/q", b""), 404, "object_not_found",
            "ais://from/none: ")


def test_a_copy_needs_both_rights(c):
    c.create("src")
    c.create("dst")
    c.put("src", "o", b"bytes")
    copier = make_user(c, "copier", [{"rights": ["read"], "bucket": "src"},
                                     {"rights": ["write"], "bucket": "dst", "prefix": "mine/"}])
    writer = make_user(c, "onlywriter", [{"rights": ["write"], "bucket": "src"},
                                         {"rights": ["write"], "bucket": "dst"}])
    path = "objects/src/o?object_to=ais/@%23/dst/"
    sdk(c, "PUT", path + "mine/o", b"", by=copier).expect(200)
    equal(c.get("dst", "mine/o").expect(200).body, b"bytes", "the copy")
    for by, name in ((copier, "other"), (writer, "other")):
        equal(sdk(c, "PUT", path + name, b"", by=by).status, 403, f"a copy to {name}")
    c.get("dst", "other").expect(404)
    equal(sdk(c, "PATCH", "objects/src/o", props(a="b"), by=copier).status, 403, "metadata by a reader")
    sdk(c, "PATCH", "objects/src/o", props(a="b"), by=writer).expect(200)


# --- lists ---------------------------------------------------------------------------------------


def test_lists(c):
    c.create("lists")
    equal(list_page(c, "lists")["Entries"], [], "an empty bucket")
    wanted = sorted([f"d/{i:02}" for i in range(20)] + ["a", "d.x", "é" * 200], key=str.encode)
    for name in wanted:
        c.put("lists", name, name.encode())
    for node in ("p1", "p2"):
        page = list_page(c, "lists", node)
        equal((names(page), page["ContinuationToken"]), (wanted, ""), "all")
        equal([e["s"] for e in page["Entries"]], [len(n.encode()) for n in wanted], "sizes")
        check(all(e["f"] == 64 and e["cs"] and e["v"] for e in page["Entries"]), f"{page}")
        equal(names(list_page(c, "lists", node, prefix="d/1")), wanted[12:22], "of a prefix")
        equal(names(list_page(c, "lists", node, start_after="d/05")), wanted[8:], "behind a name")
        seen, token = [], ""
        while True:
            page = list_page(c, "lists", node, pagesize=4, continuation_token=token)
            seen += names(page)
            token = page["ContinuationToken"]
            if not token:
                break
        equal(seen, wanted, "in pages")
        level = list_page(c, "lists", node, flags=str(1 << 11))["Entries"]
        equal([(e["n"], e["f"]) for e in level],
              [("a", 64), ("d.x", 64), ("d/", 256), ("é" * 200, 64)], "one level")
        equal(set(list_page(c, "lists", node, flags="16")["Entries"][0]), {"n", "f"}, "names only")
        equal(names(list_page(c, "lists", node, flags="8")), wanted, "with members, of no archives")
    for flags, status in (("512", 501), (str(1 << 63), 501), ("x", 400), ("-1", 400)):
        reply = sdk(c, "GET", "buckets/lists", action("list", prefix="", flags=flags))
        check(reply.status == status, f"flags {flags}: {reply!r}")
    refusal(sdk(c, "GET", "buckets/nobody", action("list")), 404, "bucket_not_found",
            "ais://nobody: ")
    refusal(sdk(c, "GET", "buckets/lists", action("select")), 501, "not_supported",
            "ais://lists: ")
    for body in (None, b"[]", b"{"):
        equal(sdk(c, "GET", "buckets/lists", body).status, 400, f"a list by {body}")


# --- what is not there, and who may not ----------------------------------------------------------


def test_other_calls_say_that_they_are_not_served(c):
    c.create("rest")
    c.put("rest", "o", b"bytes")
    for method, path in (("GET", "etl"), ("POST", "objects/rest/o"),
                         ("PUT", "buckets/rest"), ("PATCH", "buckets/rest"), ("DELETE", "sort?uuid=x"),
                         ("GET", "cluster?what=log"), ("PUT", "cluster"),
                         ("GET", "reverse/daemon?what=log"),
                         ("DELETE", "buckets/rest"), ("PUT", "objects/rest/o?append_type=a"),
                         ("PUT", "objects/rest/o?partNumber=1"),
                         ("GET", "objects/rest/o?etl_name=e"),
                         ("GET", "objects/rest/o?latest-ver=true"),
                         ("GET", "objects/rest/o?namespace=ns")):
        body = action("etl-bck") if method not in ("GET", "HEAD") else None
        refusal(sdk(c, method, path, body), 501, "not_supported", "")
    equal(sdk(c, "GET", "objects/rest/o?never_heard_of=1").status, 400, "an unknown parameter")
    refusal(sdk(c, "GET", "objects/rest/o?archmode=prefix"), 400, "invalid_argument",
            "ais://rest/o: archmode ")
    other = c.http.request("GET", c.url() + "/v1/objects/rest/o?provider=aws", None,
                           {**SDK, **c.root.headers()})
    refusal(other, 501, "not_supported", "ais://rest/o: parameter 'provider=aws'")
    equal(c.get("rest", "o").expect(200).body, b"bytes", "the object")


def test_who_speaks_it(c):
    c.create("spoken")
    path = c.url() + "/v1/buckets"
    for agent, query, is_dialect in ((None, "?provider=", True), (None, "?x=1&provider=ais", None),
                                     ("ais/go", "", True), ("aistore", "", False),
                                     (None, "", False), (None, "?xprovider=1", None)):
        headers = {**c.root.headers(), **({"User-Agent": agent} if agent else {})}
        reply = c.http.request("GET", path + query, None, headers)
        if is_dialect is None:
            equal(reply.status, 400, f"{agent} {query}")
        else:
            equal(isinstance(reply.expect(200).json(), list), is_dialect, f"{agent} {query}")
    reply = c.http.request("GET", c.url() + "/ais/v1/buckets", None, c.root.headers()).expect(200)
    check(isinstance(reply.json(), list), "the dialect's own path")


def hostile(c, by, statuses):
    """Every row, and nothing has changed."""
    for node in ("p1", "p2"):
        for method, path, body in (
                ("GET", "daemon?what=smap", None), ("GET", "health", None),
                ("GET", "buckets", action("list")), ("POST", "buckets/mine", action("create-bck")),
                ("POST", "buckets/shut?bck_to=ais/@%23/open/", action("move-bck")),
                ("DELETE", "buckets/shut", action("destroy-bck")), ("HEAD", "buckets/shut", None),
                ("GET", "buckets/shut", action("list")), ("GET", "objects/shut/o", None),
                ("GET", "objects/shut/o?archpath=m", None), ("HEAD", "objects/shut/o", None),
                ("PUT", "objects/shut/o", b"other"), ("DELETE", "objects/shut/o", None),
                ("POST", "objects/shut/o", action("promote")), ("PATCH", "objects/shut/o", b"{}"),
                ("PUT", "buckets/shut", action("archive", objnames=["o"], archname="o.tar",
                                               tobck={"name": "shut"})),
                ("PATCH", "buckets/shut", b"{}"),
                ("POST", "objects/shut/o", action("mpt-upload")),
                ("PUT", f"objects/shut/o?uploadId={UPLOAD}&partNumber=1", b"other"),
                ("POST", f"objects/shut/o?uploadId={UPLOAD}", completion(1)),
                ("DELETE", f"objects/shut/o?uploadId={UPLOAD}", action("mpt-abort")),
                ("PUT", "objects/shut/o?object_to=ais/@%23/shut/p", None),
                ("PATCH", "objects/shut/o", props(a="b")),
                ("GET", "ml/moss/shut", moss({"objname": "o"})),
                ("GET", "ml/moss", moss({"objname": "o", "bucket": "shut"}, strm=True))):
            reply = sdk(c, method, path, body, node, by=by)
            check(reply.status in statuses(path), f"{method} {path} at {node}: {reply!r}")
    for node in ("t1", "t2"):
        reply = sdk(c, "GET", "objects/shut/o?dfcd=ais", node=node, by=by)
        check(reply.status in statuses("objects"), f"at {node}: {reply!r}")
    equal(c.get("shut", "o").expect(200).body, b"bytes", "the object")
    c.call("GET", "/v1/buckets/mine").expect(404, "bucket_not_found")


def test_nobody_does_anything(c):
    c.create("shut")
    c.put("shut", "o", b"bytes")
    hostile(c, False, lambda path: (401,))
    nobody = make_user(c, "nobody", [])
    hostile(c, nobody, lambda path: (403,) if path not in ("health", "buckets") else (200,))
    equal(sdk(c, "GET", "buckets", by=nobody).expect(200).json(), [], "buckets that it sees")


def test_a_list_is_for_the_prefix_of_the_grant(c):
    c.create("parts")
    for name in ("mine/a", "other/b"):
        c.put("parts", name, b"x")
    user = make_user(c, "part", [{"rights": ["list"], "bucket": "parts", "prefix": "mine/"}])
    equal(names(list_page(c, "parts", by=user, prefix="mine/")), ["mine/a"], "what it may see")
    for prefix in ("", "m", "other/"):
        reply = sdk(c, "GET", "buckets/parts", action("list", prefix=prefix), by=user)
        refusal(reply, 403, "access_denied", "ais://parts: ")


def test_the_body_of_a_put_is_cut(c):
    """Nothing of it becomes visible."""
    c.create("cuts")
    c.put("cuts", "o", b"before")
    lines = {**SDK, **c.root.headers(), "Host": "127.0.0.1", "Content-Length": "1000"}
    head = "PUT /v1/objects/cuts/o?provider=ais HTTP/1.1\r\n"
    head += "".join(f"{n}: {v}\r\n" for n, v in lines.items()) + "\r\n" + "x" * 500
    reply = raw_exchange(c.address(), head.encode(), shut=True, context=c.http.context)
    check(reply is None or reply.status >= 400, f"{reply!r}")
    wait_for(lambda: sdk(c, "GET", "objects/cuts/o").body == b"before", "the object as it was")
    sdk(c, "PUT", "objects/cuts/o", b"after").expect(200)
    equal(sdk(c, "GET", "objects/cuts/o").body, b"after", "the object")


if __name__ == "__main__":
    main(GuardedCluster, proxies=2, targets=2)

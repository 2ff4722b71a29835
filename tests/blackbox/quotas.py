#!/usr/bin/env python3
"""Quotas of buckets: what is refused and what never is, with clients side by side, over restarts, with
copies and slices, and of jobs."""

import http.client
import http.server
import io
import itertools
import json
import tarfile
import threading
import urllib.parse

from lib import check, equal, in_parallel, main, wait_for

SIZE = 16 << 10
BODY = b"x" * SIZE
OBJECTS = 40
QUOTA = OBJECTS * SIZE
NAMES = (f"n-{i:05d}" for i in itertools.count())


def used(c, bucket):
    """Objects and bytes that count, as all targets say."""
    done = c.dfcctl("storage", "summary", bucket, "-o", "json")
    equal(done.returncode, 0, f"storage summary: {done.stderr}")
    sums = json.loads(done.stdout)[bucket].get("quota_used", {"objects": 0, "bytes": 0})
    return sums["objects"], sums["bytes"]


def becomes(c, bucket, objects, size):
    wait_for(lambda: used(c, bucket) == (objects, size), f"{bucket} counts {objects}, {size} bytes")


def put(c, bucket, name, body=BODY):
    reply = c.object("PUT", bucket, name, body)
    check(reply.status in (200, 403), f"PUT {name}: {reply}")
    if reply.status == 403:
        reply.expect(403, "quota_exceeded", f"dfcctl bucket props {bucket} --quota-")
    return reply.status == 200


def rename(c, bucket, name, new_name):
    c.object("POST", bucket, name, {"action": "rename", "name": new_name}).expect(204)


def is_refused(c, bucket, targets, body=BODY):
    """Writes of new objects are, by each of these targets."""
    asked = set()
    while asked != set(targets):
        name = next(NAMES)
        owner = c.owner(bucket, name)
        if owner in targets and owner not in asked:
            if put(c, bucket, name, body):
                c.object("DELETE", bucket, name).expect(204)
                return False
            asked.add(owner)
    return True


def fill(c, bucket, names=NAMES, clients=8):
    """Until all clients are refused; the names that are there."""
    stored, lock = [], threading.Lock()

    def client(_):
        while True:
            with lock:
                name = next(names)
            if not put(c, bucket, name):
                return
            with lock:
                stored.append(name)

    in_parallel(client, range(clients), workers=clients)
    return stored


def fill_whole(c, bucket):
    """What clients stored while it was counted may have counted twice: there may be room again."""
    stored = []

    def is_full():
        stored.extend(fill(c, bucket))
        return used(c, bucket)[1] >= QUOTA

    wait_for(is_full, f"{bucket} is filled")
    return stored


def test_the_properties(c):
    made = c.dfcctl("bucket", "create", "b", "--quota-bytes", "640KiB", "--quota-objects", "1000")
    equal(made.returncode, 0, made.stderr)
    shown = c.dfcctl("bucket", "props", "b").stdout
    check("quota_bytes" in shown and str(QUOTA) in shown, shown)
    equal(c.get_json("/v1/buckets/b")["props"]["quota_objects"], 1000, "quota_objects")
    c.create("free")
    check("quota" not in json.dumps(c.get_json("/v1/buckets/free")), "a bucket without one")
    c.call("PUT", "/v1/buckets/b", {"action": "setprops", "value": {"quota_bytes": "many"}}
           ).expect(400, "invalid_json", "'many' is not a size")
    c.call("POST", "/v1/buckets/cached", {
        "action": "create", "value": {"backend": "http://127.0.0.1:1/", "quota_objects": 5}}
           ).expect(501, "not_supported", "a bucket with a backend has no quota")


def test_clients_fill_it_and_no_more(c):
    stored = fill_whole(c, "b")
    wait_for(lambda: is_refused(c, "b", c.targets()), "every target refuses")
    becomes(c, "b", len(stored), len(stored) * SIZE)
    equal(sorted(c.names("b")), sorted(stored), "names")
    rename(c, "b", stored.pop(), "renamed")
    stored.append("renamed")
    for name in stored:  # what does not grow
        check(put(c, "b", name, b"y" * SIZE), "an overwrite of the same size is refused")
        check(put(c, "b", name, b""), "a smaller one is refused")
    becomes(c, "b", len(stored), 0)
    wait_for(lambda: put(c, "b", stored[0]), "an object grows into the room that there is")
    in_parallel(lambda name: c.object("DELETE", "b", name).expect(204), stored[1:])
    becomes(c, "b", 1, SIZE)
    wait_for(lambda: put(c, "b", next(NAMES)), "there is room again")
    c.call("PUT", "/v1/buckets/b", {"action": "setprops", "value": {"quota_objects": 3}}).expect(200)
    wait_for(lambda: not put(c, "b", next(NAMES)), "the number of objects is bounded, too")
    check(put(c, "b", stored[0], BODY + b"more"), "an object that grows is no new one")
    c.call("PUT", "/v1/buckets/b", {
        "action": "setprops", "value": {"quota_objects": 0, "quota_bytes": 0}}).expect(200)
    for _ in range(OBJECTS):
        check(put(c, "b", next(NAMES)), "without a quota nothing is refused")


def test_one_target_never_takes_more(c):
    """Its own writes each target knows at once."""
    c.create("one", quota_bytes=QUOTA, quota_objects=1000)
    names = (n for n in NAMES if c.owner("one", n) == "t1")
    stored = fill(c, "one", names)
    check(len(stored) <= OBJECTS, f"{len(stored)} of {OBJECTS} objects were taken")
    wait_for(lambda: put(c, "one", next(names)) or used(c, "one")[1] == QUOTA, "all of it is used")


def connection(c, bucket, name):
    """To the target that takes the object, and the path there."""
    reply = c.object("PUT", bucket, name, b"", follow=False).expect(307)
    at = urllib.parse.urlsplit(reply.headers["Location"])
    return http.client.HTTPConnection(at.hostname, at.port, timeout=60), f"{at.path}?{at.query}"


def test_a_body_that_does_not_fit_is_not_read(c):
    c.create("small", quota_bytes=QUOTA)
    link, path = connection(c, "small", "large")
    link.putrequest("PUT", path)
    link.putheader("Content-Length", str(QUOTA + 1))
    link.endheaders()  # and no byte of it
    equal(link.getresponse().status, 403, "status")
    link.close()


def test_a_body_without_a_length_is_cut(c):
    link, path = connection(c, "small", "unknown")
    link.request("PUT", path, (BODY for _ in range(OBJECTS + 1)), encode_chunked=True,
                 headers={"Transfer-Encoding": "chunked"})
    reply = link.getresponse()
    equal((reply.status, json.loads(reply.read())["code"]), (403, "quota_exceeded"), "reply")
    link.close()
    c.get("small", "unknown").expect(404)
    wait_for(lambda: put(c, "small", "whole", b"z" * QUOTA), "what was cut counts no more")


def test_a_target_that_restarts(c):
    c.create("r", quota_bytes=QUOTA)
    stored = fill_whole(c, "r")
    c.kill("t2", "-9")
    c.start("t2")
    c.wait_node("t2", "active")
    wait_for(lambda: is_refused(c, "r", c.targets()), "the new run refuses")
    wait_for(lambda: used(c, "r")[1] == len(c.names("r")) * SIZE, "it has counted")
    c.kill("t2", "-9")
    wait_for(lambda: is_refused(c, "r", ["t1", "t3"]), "what it has counts while it is away")
    c.start("t2")
    c.wait_node("t2", "active")
    in_parallel(lambda name: c.object("DELETE", "r", name).expect(204), c.names("r"))
    becomes(c, "r", 0, 0)
    wait_for(lambda: put(c, "r", stored[0]), "there is room")


def test_a_primary_that_restarts(c):
    """It knows no sum: nobody is refused for that, and not everything is let in."""
    c.create("p", quota_bytes=QUOTA)
    c.create("full", quota_bytes=QUOTA)
    fill_whole(c, "full")
    c.kill("p1", "-9")
    c.start("p1")
    wait_for(lambda: c.call("GET", "/v1/health").status == 200, "the proxy serves")
    check(put(c, "p", next(NAMES)), "an empty bucket takes objects")
    wait_for(lambda: is_refused(c, "full", c.targets()), "a full one does not")


def test_copies_count_once(c):
    c.create("two", copies=2, quota_bytes=QUOTA)
    for _ in range(10):
        check(put(c, "two", next(NAMES)), "there is room")
    becomes(c, "two", 10, 10 * SIZE)
    stored = fill_whole(c, "two")
    wait_for(lambda: is_refused(c, "two", c.targets()), "every leader refuses")
    rename(c, "two", stored[0], "renamed")


def test_slices_count_once(c):
    c.create("cut", ec={"data": 2, "parity": 1, "min_size": 1000}, quota_bytes=3 << 20)
    check(put(c, "cut", "large", b"l" * (2 << 20)), "there is room")
    becomes(c, "cut", 1, 2 << 20)  # until then it may count twice
    wait_for(lambda: put(c, "cut", "tiny", b"t" * 10), "there is room")
    becomes(c, "cut", 2, (2 << 20) + 10)
    wait_for(lambda: is_refused(c, "cut", c.targets(), b"l" * (2 << 20)), "a second does not fit")
    check(put(c, "cut", "large", b"m" * (2 << 20)), "an overwrite fits")
    rename(c, "cut", "large", "renamed")
    becomes(c, "cut", 2, (2 << 20) + 10)


def fails(c, job_id, bucket):
    job = c.wait_job(job_id)
    equal(job["state"], "failed", f"state of {job_id}")
    check(any(e["code"] == "quota_exceeded" and f"dfcctl bucket props {bucket} --quota" in e["message"]
              for e in job["errors"]), f"{job_id}: {job['errors']}")


def action(c, bucket, name, value):
    reply = c.call("POST", f"/v1/buckets/{bucket}", {"action": name, "value": value})
    return reply.expect(202).json()["id"]


def test_a_copy_fails(c):
    c.create("from")
    in_parallel(lambda name: c.put("from", name, BODY), [next(NAMES) for _ in range(2 * OBJECTS)])
    for bucket, copies in (("to", 1), ("to-two", 2)):
        c.create(bucket, quota_objects=2, copies=copies)  # a target alone has more names than that
        fails(c, action(c, "from", "copy", {"to": bucket, "prefix": ""}), bucket)
        check(len(c.names(bucket)) <= 2 * len(c.targets()), "it ends early")


class Web(http.server.BaseHTTPRequestHandler):
    def do_GET(self):  # noqa: N802
        self.send_response(200)
        self.send_header("Content-Length", str(SIZE))
        self.end_headers()
        self.wfile.write(BODY)

    def log_message(self, *_):
        pass


def test_a_download_fails(c):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Web)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    c.create("web", quota_objects=2)
    url = f"http://127.0.0.1:{server.server_port}/" "{0..99}"
    fails(c, action(c, "web", "download", {"template": url}), "web")
    server.shutdown()


def shard(i):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for k in range(20):
            info = tarfile.TarInfo(f"{i:02d}-{k:02d}.bin")
            info.size = 1000
            tar.addfile(info, io.BytesIO(b"r" * 1000))
    return out.getvalue()


def test_a_sort_fails(c):
    c.create("in")
    for i in range(10):
        c.put("in", f"{i}.tar", shard(i))
    c.create("out", quota_objects=3)
    reply = c.call("POST", "/v1/sort", {
        "input_bck": {"name": "in"}, "output_bck": {"name": "out"}, "input_format": {"prefix": ""},
        "output_format": "o-%04d", "output_shard_size": "4KiB"}).expect(202)
    fails(c, reply.json()["id"], "out")
    equal(c.names("out"), [], "outputs of a failed sort")
    becomes(c, "out", 0, 0)


def metric(c, node, name):
    text = c.call("GET", "/metrics", node=node).expect(200).body.decode()
    return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith(name))


def test_what_is_shown(c):
    c.create("shown", quota_objects=10)
    for _ in range(8):
        check(put(c, "shown", next(NAMES)), "there is room")
    said = "bucket 'shown' has used most of its quota (9 of 10 objects)"
    becomes(c, "shown", 8, 8 * len(BODY))  # what is written during a count may count twice at first
    wait_for(lambda: said not in c.dfcctl("cluster", "health").stdout, "80 % to be no reason")
    before = metric(c, "p1", 'dfc_cluster_quotas{use="near"}')
    check(put(c, "shown", next(NAMES)), "there is room")
    wait_for(lambda: said in c.dfcctl("cluster", "health").stdout, "health says it")
    equal(metric(c, "p1", 'dfc_cluster_quotas{use="near"}'), before + 1, "buckets near their quota")
    equal(metric(c, "p1", 'dfc_bucket_objects{bucket="shown"}'), 9, "objects of the bucket")
    equal(metric(c, "p1", 'dfc_bucket_bytes{bucket="shown"}'), 9 * len(BODY), "bytes of the bucket")
    summary = c.dfcctl("storage", "summary", "shown")
    check("shown: 9 of 10 objects of its quota" in summary.stdout + summary.stderr, str(summary))
    check(sum(metric(c, t, "dfc_quota_refused_total") for t in c.targets()) > 0, "refusals count")


def test_names_of_buckets_can_be_hidden(c):
    c.restart("p1", "--arg=--bucket-metrics-max=0")
    wait_for(lambda: metric(c, "p1", "dfc_cluster_quotas") > 0, "the primary counts buckets")
    shown = c.call("GET", "/metrics").expect(200).body.decode()
    check('bucket="' not in shown, "no bucket is named")
    c.restart("p1")
    wait_for(lambda: 'bucket="shown"' in c.call("GET", "/metrics").expect(200).body.decode(),
             "the names again")


def test_keepalives_with_many_buckets(c):
    """They are larger than other bodies may be here; the primary hears of all."""
    full = 'dfc_cluster_quotas{use="over"}'
    for bucket in c.get_json("/v1/buckets")["buckets"]:
        c.destroy(bucket["name"])
    wait_for(lambda: metric(c, "p1", full) == 0, "no bucket is full")
    for i in range(100):
        c.create(f"many-{i}", quota_objects=1)
        c.put(f"many-{i}", "x", b"x")
    wait_for(lambda: metric(c, "p1", full) == 100, "all are full")
    equal({n["state"] for n in c.get_json("/v1/cluster")["nodes"]}, {"active"}, "states")


if __name__ == "__main__":
    main(targets=3, args=("--target-arg=--keepalive-interval=100ms", "--proxy-arg=--body-max=4KiB"))

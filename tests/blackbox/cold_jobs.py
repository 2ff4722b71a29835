#!/usr/bin/env python3
"""Jobs that bring objects here and let them go: prefetch, evict, download."""

import os
import sys
import threading

from lib import ENDED, ROOT, check, contents, equal, in_parallel, main, wait_for

sys.path.insert(0, os.path.join(ROOT, "tests", "reference"))
from fake_s3 import FakeS3  # noqa: E402

WEB, S3 = FakeS3(plain=True), FakeS3(page_max=7)
NAMES = [f"s-{i:03d}.tar" for i in range(60)]
BODY = {name: (name * 200).encode() for name in NAMES}


def start(c, bucket, action, value):
    return c.call("POST", f"/v1/buckets/{bucket}", {"action": action, "value": value}
                  ).expect(202).json()["id"]


def document(c, job_id):
    return c.get_json(f"/v1/jobs/{job_id}")


def ended(c, job_id, state="finished"):
    job = wait_for(lambda: (lambda j: j["state"] in ENDED and j)(document(c, job_id)),
                   f"end of {job_id}")
    equal(job["state"], state, f"state of {job_id}: {job['errors']}")
    return job


def run(c, bucket, action, value):
    progress = ended(c, start(c, bucket, action, value))["progress"]
    o = progress["objects"]
    return o["done"], o["skipped"], o["missing"], o["failed"], o["total"], progress["bytes"]["done"]


def asked(prefix="base/s-"):
    with WEB.lock:
        return sum(k.startswith(prefix) for _, k, _ in WEB.requests)


def size(names):
    return sum(len(BODY[n]) for n in names)


def test_prefetch(c):
    for name in NAMES:
        WEB.put("", "base/" + name, BODY[name])
    c.create("cold", backend=WEB.url + "/base")
    c.create("asks", backend=WEB.url + "/base", validate="open")
    equal(run(c, "cold", "prefetch", {"template": "s-{000..019}.tar"}),
          (20, 0, 0, 0, 20, size(NAMES[:20])), "by template")
    equal(c.names("cold"), NAMES[:20], "what is here")
    equal(asked(), 20, "requests")
    equal(run(c, "cold", "prefetch", {"list": NAMES[10:30] + ["none"], "parallel": 4}),
          (10, 10, 1, 0, 21, size(NAMES[20:30])), "by list")
    equal(asked(), 30, "requests")
    in_parallel(lambda n: equal(c.get("cold", n).expect(200).body, BODY[n], n), NAMES[:30])
    equal(asked(), 30, "requests after all were read")


def test_prefetch_of_what_the_backend_lists(c):
    names = [f"l/{i:02d}" for i in range(40)] + ["m/x", "m/ü"]
    for name in names:
        S3.put("data", "pre/" + name, name.encode() * 10)
    S3.put("data", "other", b"x")
    c.create("listed", backend=f"s3://data/pre?endpoint={S3.url}&auth=none")
    equal(
        c.get("listed", names[5]).expect(200).body, names[5].encode() * 10,
        "one that is read before")
    equal(run(c, "listed", "prefetch", {"prefix": "l/"})[:5], (39, 1, 0, 0, 40), "by prefix")
    equal(c.names("listed", cached="true"), names[:40], "what is here")
    equal(run(c, "listed", "prefetch", {})[:5], (2, 40, 0, 0, 42), "the whole bucket")
    equal(c.names("listed", cached="true"), names, "what is here")
    equal({S3.count("pre/" + n) for n in names}, {1}, "requests for each")
    equal(
        run(c, "listed", "prefetch", {"prefix": "none/", "allow_empty": True})[:5], (0, 0, 0, 0, 0),
        "nothing of that name")
    in_parallel(lambda n: equal(c.get("listed", n).expect(200).body, n.encode() * 10, n), names)
    c.call("POST", "/v1/buckets/cold",
           {"action": "prefetch", "value": {"prefix": ""}}).expect(501, "not_supported")
    S3.is_so("", status=403)
    job = ended(c, start(c, "listed", "prefetch", {"prefix": "l/"}), "failed")
    equal(job["errors"][0]["code"], "backend_denied", "a list that is refused")
    S3.calm()


def test_prefetch_asks_as_a_reader_would(c):
    run(c, "asks", "prefetch", {"list": NAMES[:10]})
    WEB.put("", "base/" + NAMES[0], b"changed")
    WEB.remove("", "base/" + NAMES[1])
    equal(run(c, "asks", "prefetch", {"list": NAMES[:10]}), (1, 8, 1, 0, 10, 7), "once more")
    WEB.put("", "base/" + NAMES[0], BODY[NAMES[0]])
    WEB.put("", "base/" + NAMES[1], BODY[NAMES[1]])


def test_what_fails_is_said(c):
    WEB.is_so("base/" + NAMES[40], status=500)
    job = ended(c, start(c, "cold", "prefetch", {"list": NAMES[39:42]}), "failed")
    WEB.calm()
    o = job["progress"]["objects"]
    equal((o["done"], o["failed"]), (2, 1), "objects")
    check(NAMES[40] in str(job["errors"]), f"the name is missing in {job['errors']}")


def test_a_prefetch_is_aborted(c):
    hold = threading.Event()
    for name in NAMES[50:]:
        WEB.fail("base/" + name, hold=hold, held_bytes=10)
    job_id = start(c, "cold", "prefetch", {"list": NAMES[50:]})
    wait_for(lambda: asked("base/" + NAMES[50]) > 0, "it fetches")
    c.call("DELETE", f"/v1/jobs/{job_id}").expect(202)
    hold.set()
    ended(c, job_id, "aborted")
    WEB.calm()


def test_a_rate_is_kept(c):
    """Not how fast it is, but that it waits: an abort ends the wait of an hour."""
    job_id = start(c, "cold", "prefetch", {"list": NAMES[42:50], "rate": 1, "parallel": 2})
    wait_for(lambda: asked("base/" + NAMES[42]) > 0, "it fetches")
    check(document(c, job_id)["state"] == "running", "it waits")
    # A client does not: what it wants is given at once.
    equal(c.get("cold", NAMES[42]).expect(200).body, BODY[NAMES[42]], "object")
    c.call("DELETE", f"/v1/jobs/{job_id}").expect(202)
    ended(c, job_id, "aborted")


def test_prefetch_goes_on_after_a_kill(c):
    hold = threading.Event()
    names = [f"k-{i:02d}" for i in range(40)]
    for name in names:
        WEB.put("", "base/" + name, name.encode() * 3000)
    for name in names[20:]:
        WEB.fail("base/" + name, hold=hold, held_bytes=1000)
    job_id = start(c, "cold", "prefetch", {"list": names})
    wait_for(lambda: asked("base/k-") >= 20, "it fetches")
    victim = c.targets()[0]
    c.kill(victim)
    hold.set()
    WEB.calm()
    c.start(victim)
    c.wait_node(victim, "active")
    ended(c, job_id)
    equal([n for n in c.names("cold") if n.startswith("k-")], names, "what is here")
    in_parallel(lambda n: equal(c.get("cold", n).expect(200).body, n.encode() * 3000, n), names)


def test_evict(c):
    run(c, "cold", "prefetch", {"list": NAMES})
    before = asked()
    equal(run(c, "cold", "evict", {"template": "s-{000..009}.tar"}),
          (10, 0, 0, 0, 10, size(NAMES[:10])), "by template")
    equal(run(c, "cold", "evict", {"list": [NAMES[10], NAMES[9]]})[:5], (1, 0, 1, 0, 2), "by list")
    equal(run(c, "cold", "evict", {"prefix": "s-02"})[0], 10, "by prefix")
    left = [n for n in NAMES[11:] if not n.startswith("s-02")]
    equal([n for n in c.names("cold") if n.startswith("s-")], left, "what is left")
    equal(asked(), before, "nothing was asked of the backend")
    check(all("base/" + n in WEB.objects[""] for n in NAMES), "the backend has all")
    equal(c.get("cold", NAMES[0]).expect(200).body, BODY[NAMES[0]], "it is read again")


def test_what_is_refused(c):
    c.create("own")
    for action in ("prefetch", "evict"):
        c.call("POST", "/v1/buckets/own", {"action": action, "value": {"list": ["a"]}}
               ).expect(400, "invalid_argument", "no backend")
    c.call("POST", "/v1/buckets/cold", {"action": "evict"}).expect(400, "invalid_spec")
    c.call("POST", "/v1/buckets/own", {"action": "download", "value": {"list": ["http://u:p@h/x"]}}
           ).expect(400, "invalid_spec", "password")
    c.call("POST", "/v1/buckets/none", {"action": "prefetch", "value": {"list": []}}
           ).expect(404, "bucket_not_found")


def test_download(c):
    for i in range(20):
        WEB.put("", f"set/d-{i:02d}", b"%d" % i * 5000)
    WEB.put("", "one", b"one")
    WEB.fail("moved", redirect="/one")
    WEB.fail("set/d-03", cut_at=1000)
    equal(
        run(c, "own", "download",
            {"template": WEB.url + "/set/d-{00..19}?key=secret", "prepend": "d/"})[:5],
        (20, 0, 0, 0, 20), "by template")
    for i in range(20):
        reply = c.get("own", f"d/d-{i:02d}").expect(200)
        check(reply.body == b"%d" % i * 5000, "bytes")
        equal(reply.headers["Dfc-Meta-source"], f"{WEB.url}/set/d-{i:02d}",
              "where it is from, without the query")
    got = run(c, "own", "download",
              {"list": [WEB.url + "/none", {"url": WEB.url + "/moved", "name": "x/y"}]})
    equal(got[:5], (1, 0, 1, 0, 2), "by list")
    equal(c.get("own", "x/y").expect(200).body, b"one", "a redirect is followed")


def test_a_download_again(c):
    before = asked("set/")
    WEB.put("", "set/d-07", b"changed")
    got = run(c, "own", "download", {"template": WEB.url + "/set/d-{00..19}", "prepend": "d/"})
    equal(got[:5], (1, 19, 0, 0, 20), "what has not changed is passed over")
    equal(asked("set/") - before, 21, "questions, and one fetch")
    equal(c.get("own", "d/d-07").expect(200).body, b"changed", "what has")
    c.put("own", "d/d-08", b"somebody's own")
    equal(
        run(c, "own", "download", {"list": [WEB.url + "/set/d-08"], "prepend": "d/"})[0], 1,
        "replaced")


def on_targets(c, body):
    """How many targets have these bytes as an object."""
    return sum(any(contents(path) == body for path in c.object_files(node)) for node in c.targets())


def test_a_download_into_several_copies(c):
    for i in range(10):
        WEB.put("", f"many/d-{i}", b"%d" % i * 3000)
    WEB.fail("many/d-3", cut_at=1000)
    c.create("two", copies=2)
    value = {"template": WEB.url + "/many/d-{0..9}"}
    equal(run(c, "two", "download", value)[:5], (10, 0, 0, 0, 10), "downloaded")
    for i in range(10):
        reply = c.get("two", f"d-{i}").expect(200)
        check(reply.body == b"%d" % i * 3000, "bytes")
        equal(on_targets(c, reply.body), 2, f"copies of d-{i}")
        equal(reply.headers["Dfc-Meta-source"], f"{WEB.url}/many/d-{i}", "where it is from")
    WEB.put("", "many/d-7", b"changed")
    c.object("DELETE", "two", "d-1").expect(204)
    equal(
        run(c, "two", "download", value)[:5], (2, 8, 0, 0, 10),
        "what has not changed is passed over")
    equal(c.get("two", "d-7").expect(200).body, b"changed", "what has")
    equal(on_targets(c, b"changed"), 2, "copies of it")
    equal(c.get("two", "d-1").expect(200).body, b"1" * 3000, "what was deleted")


def test_a_download_of_which_some_is_not_found(c):
    """It ends with a warning that counts, and the exit code of a partial success; nothing at all is
    a failure."""
    for i in range(3):
        WEB.put("", f"some/e-{i}", b"%d" % i)
    job = ended(
        c, start(c, "own", "download",
                 {"template": WEB.url + "/some/e-{0..4}", "prepend": "some/"}))
    equal((job["state"], job.get("partial")), ("finished", True), f"some of it came: {job}")
    equal(job["warnings"][0], "2 of 5 objects were not found", "the warning")
    check(any("'some/e-4': its URL is not found (404)" in w for w in job["warnings"]),
          f"which: {job['warnings']}")
    words = ("bucket", "download", "own", "--template", WEB.url + "/some/e-{0..4}", "--prepend",
             "some/", "--wait")
    done = c.dfcctl(*words)
    equal(done.returncode, 6, f"status: {done.stdout}{done.stderr}")
    check("2 of 5 objects were not found" in done.stderr, done.stderr)
    check("2 of 5 objects were not found" in c.dfcctl(*words, "-q").stderr, "quiet, but no success")
    job = ended(c, start(c, "own", "download", {"list": [WEB.url + "/some/e-9"]}), "failed")
    equal(job["errors"][0]["code"], "nothing_matched", f"nothing came: {job['errors']}")
    done = c.dfcctl("bucket", "download", "own", WEB.url + "/some/e-9", "--wait")
    equal(done.returncode, 4, f"status: {done.stdout}{done.stderr}")
    check("none of 1 URLs was found (404)" in done.stderr, done.stderr)
    equal(
        c.dfcctl("bucket", "download", "own", WEB.url + "/some/e-9", "--wait",
                 "--allow-empty").returncode, 0, "status with --allow-empty")
    WEB.fail("some/e-1", status=500, times=1000)
    mixed = [WEB.url + "/some/e-1", WEB.url + "/some/e-0"]
    job = ended(c, start(c, "own", "download", {"list": mixed, "prepend": "mixed/"}))
    equal(job["warnings"][0], "1 of 2 objects failed", f"the warning: {job['warnings']}")
    job = ended(c, start(c, "own", "download", {"list": mixed[:1], "prepend": "none/"}), "failed")
    check("nothing was downloaded: 1 URLs failed" in job["errors"][0]["message"],
          f"why: {job['errors']}")


def test_names_that_the_backend_does_not_have(c):
    done = c.dfcctl("bucket", "prefetch", "cold", "--template", "s-{028..091}.tar", "--wait")
    equal(done.returncode, 6, f"status: {done.stdout}{done.stderr}")
    for words in (("prefetch", "cold", "--template", "none-{0..3}"),
                  ("prefetch", "listed", "--prefix", "none/"), ("evict", "cold", "--prefix",
                                                                "none/")):
        done = c.dfcctl("bucket", *words, "--wait")
        equal(done.returncode, 4, f"status of {words}: {done.stdout}{done.stderr}")
        equal(
            c.dfcctl("bucket", *words, "--wait", "--allow-empty").returncode, 0,
            f"{words} --allow-empty")


def test_a_refused_delete_names_the_way(c):
    for name in ("old/a", "old/b", "new"):
        S3.put("gone", name, name.encode())
    c.create("gone", backend=f"s3://gone?endpoint={S3.url}&auth=none", write_policy="through")
    done = c.dfcctl("rm", "gone", "--prefix", "old/", "--yes", "--wait")
    equal(done.returncode, 2, done.stderr)
    check("'dfcctl rm --recursive BUCKET/PREFIX'" in done.stderr, done.stderr)
    done = c.dfcctl("rm", "--recursive", "gone/old/", "--yes")
    equal(done.returncode, 0, done.stderr)
    equal(c.names("gone"), ["new"], "what is left")


def test_dfcctl(c):
    for words, kind in ((("bucket", "prefetch", "cold", "--template", "s-{000..003}.tar", "-j", "2",
                          "--wait"), "prefetch"), (("bucket", "evict", "cold", "--prefix", "",
                                                    "--wait"), "evict"),
                        (("bucket", "download", "own", WEB.url + "/one", "--prepend", "c/",
                          "--rate", "1GiB", "--wait"), "download")):
        done = c.dfcctl(*words)
        equal(done.returncode, 0, f"{words}: {done.stderr}")
        check(c.get_json(f"/v1/jobs?kind={kind}")["jobs"], f"a job of kind {kind}")
    equal(c.names("cold"), [], "what is left")
    equal(c.get("own", "c/one").expect(200).body, b"one", "downloaded")
    equal(c.dfcctl("bucket", "evict", "cold").returncode, 2, "evict without a word which")
    equal(c.dfcctl("bucket", "download", "own").returncode, 2, "download of nothing")
    text = "".join(c.log(node) for node in c.nodes)
    check("secret" not in text, "a URL's query stands in a log")


if __name__ == "__main__":
    with WEB, S3:
        main(targets=2,
             args=[f"--target-arg={a}" for a in ("--backend-backoff=5ms", "--backend-retries=2")])

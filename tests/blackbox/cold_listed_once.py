#!/usr/bin/env python3
"""Jobs whose targets all go through the list of a backend: it is asked for each page once, by one
of them; what
becomes of the job when that one is refused by the backend, or dies."""

import io
import tarfile
import threading

from cold_lib import QUICK, FakeS3
from lib import ENDED, check, equal, main, wait_for

PAGE = 7
S3 = FakeS3(page_max=PAGE)
NAMES = [f"l/{i:03d}.tar" for i in range(70)]
PAGES = len(NAMES) // PAGE


def shard(name):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
        info = tarfile.TarInfo(name.replace("/", "-") + ".txt")
        info.size = len(name)
        tar.addfile(info, io.BytesIO(name.encode()))
    return out.getvalue()


def start(c, bucket, action, value):
    return c.call("POST", f"/v1/buckets/{bucket}",
                  {"action": action, "value": value}).expect(202).json()["id"]


def document(c, job_id):
    return c.get_json(f"/v1/jobs/{job_id}")


def ended(c, job_id, state="finished"):
    job = wait_for(lambda: (lambda j: j["state"] in ENDED and j)(document(c, job_id)),
                   f"end of {job_id}")
    equal(job["state"], state, f"state of {job_id}: {job['errors']}")
    return job


def lists():
    return S3.count("")


def check_lists(before, what):
    """A target that takes another for away for a moment may have asked by itself; but not each of
    them."""
    asked = lists() - before
    check(PAGES <= asked < 2 * PAGES, f"{what}: {asked} requests for {PAGES} pages")


def test_a_prefetch(c):
    for name in NAMES:
        S3.put("data", name, shard(name))
    c.create("cold", backend=f"s3://data?endpoint={S3.url}&auth=none")
    c.create("to")
    c.get("cold", NAMES[3]).expect(200)
    before = lists()
    objects = ended(c, start(c, "cold", "prefetch", {"prefix": "l/"}))["progress"]["objects"]
    check_lists(before, "prefetch")
    equal([objects[k] for k in ("done", "skipped", "missing", "failed", "total")],
          [69, 1, 0, 0, 70], "objects")
    equal(c.names("cold", cached="true"), NAMES, "what is here")


def test_the_next_job_asks_anew(c):
    S3.put("data", "l/071.tar", shard("l/071.tar"))
    S3.remove("data", NAMES[0])
    before = lists()
    objects = ended(c, start(c, "cold", "prefetch", {"prefix": "l/"}))["progress"]["objects"]
    check_lists(before, "prefetch")
    equal([objects[k] for k in ("done", "skipped", "missing", "failed", "total")],
          [1, 69, 0, 0, 70], "objects")
    S3.remove("data", "l/071.tar")
    S3.put("data", NAMES[0], shard(NAMES[0]))
    ended(c, start(c, "cold", "evict", {"list": ["l/071.tar"]}))


def test_a_copy(c):
    before = lists()
    objects = ended(c, start(c, "cold", "copy",
                             {"prefix": "l/", "to": "to"}))["progress"]["objects"]
    check_lists(before, "copy")
    equal([objects[k] for k in ("done", "missing", "failed", "total")], [70, 0, 0, 70], "objects")
    equal(c.names("to"), NAMES, "what was copied")


def test_a_sort(c):
    ended(c, start(c, "cold", "evict", {"prefix": ""}))
    before = lists()
    job = c.wait_job(c.sort({"input_bck": {"name": "cold"}, "output_bck": {"name": "to"},
                             "input_format": {"prefix": "l/"}, "output_format": "sorted-%03d",
                             "output_shard_size": "8KiB"}))
    equal(job["state"], "finished", f"state; {job['errors']}")
    check_lists(before, "sort")
    found = []
    for name in c.names("to", prefix="sorted-"):
        with tarfile.open(fileobj=io.BytesIO(c.get("to", name).expect(200).body)) as tar:
            found += [tar.extractfile(n).read().decode() for n in tar.getnames()]
    equal(sorted(found), NAMES, "records")


def test_what_the_backend_says_is_said(c):
    """Of all targets, though one of them has asked; and it is not remembered."""
    S3.is_so("", status=403, code="NotForYou")
    job = ended(c, start(c, "cold", "prefetch", {"prefix": "l/"}), "failed")
    S3.calm()
    equal({e["code"] for e in job["errors"]}, {"backend_denied"}, "codes")
    check("NotForYou" in str(job["errors"]), f"what the backend says is missing in {job['errors']}")
    ended(c, start(c, "cold", "prefetch", {"prefix": "l/"}))


def test_the_one_that_lists_is_killed(c):
    """In the middle, while the others wait for its page: they turn to another one, and nothing is
    missing."""
    ended(c, start(c, "cold", "evict", {"prefix": ""}))
    go = threading.Event()
    S3.fail("", times=3)
    S3.fail("", stall=go)
    before = lists()
    job_id = start(c, "cold", "prefetch", {"prefix": "l/"})
    owner = c.owner("cold",
                    f"{job_id}/l/")  # the list has the owner that an object of this name would have
    wait_for(lambda: lists() - before >= 4, "the page that does not come")
    c.kill(owner)
    go.set()
    wait_for(lambda: lists() - before >= 4 + PAGES - 3, "the others to go on behind the third page")
    c.start(owner)
    c.wait_node(owner, "active")
    ended(c, job_id)
    equal(c.names("cold", cached="true"), NAMES, "what is here")
    for name in NAMES:
        equal(c.get("cold", name).expect(200).body, shard(name), name)


if __name__ == "__main__":
    with S3:
        main(targets=3, args=QUICK)

#!/usr/bin/env python3
"""Sorts and copies whose input is a bucket with a backend: what is not here is brought first, once,
and nothing
is missing for that."""

import io
import tarfile

from cold_lib import QUICK, FakeS3, metric, run_job
from lib import check, equal, in_parallel, main

S3, WEB = FakeS3(page_max=7), FakeS3(plain=True)
SHARDS = [f"set/{i:02d}.tar" for i in range(40)]
RECORDS = sorted(f"r-{i:02d}-{j}" for i in range(40) for j in range(5))
COUNTS = ("done", "skipped", "missing", "failed", "total")  # of a job's objects


def tar_of(names):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name in names:
            data = name.encode() * 50
            info = tarfile.TarInfo(name + ".txt")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def records_of(i):
    return [f"r-{i:02d}-{j}" for j in (3, 0, 4, 1, 2)]


def fetches(c):
    return sum(metric(c, 'dfc_cold_fetch_total{outcome="stored"}', node) for node in c.targets())


def sorted_records(c, bucket, prefix):
    found = []
    for shard in c.names(bucket, prefix=prefix):
        with tarfile.open(fileobj=io.BytesIO(c.get(bucket, shard).expect(200).body)) as tar:
            found += [n[:-4] for n in tar.getnames()]
    return found


def sort(c, bucket, output, **changes):
    """Its job's document, ended."""
    spec = {
        "input_bck": {"name": bucket}, "output_bck": {"name": "out"},
        "input_format": {"prefix": "set/"}, "output_format": output + "-%03d",
        "output_shard_size": "8KiB", **changes
    }
    return c.wait_job(c.sort(spec))


def must_sort(c, bucket, output, **changes):
    job = sort(c, bucket, output, **changes)
    equal(job["state"], "finished", f"state; {job['errors']}")
    return sorted_records(c, "out", output + "-")


def test_buckets(c):
    for i, name in enumerate(SHARDS):
        S3.put("data", name, tar_of(records_of(i)))
        WEB.put("", "base/" + name, S3.has("data", name))
    S3.put("data", "set/readme.txt", b"no shard")
    S3.put("data", "other/x.tar", tar_of(["x"]))
    c.create("out")
    c.create("copied")
    c.create("cold", backend=f"s3://data?endpoint={S3.url}&auth=none")
    c.create("asks", backend=f"s3://data?endpoint={S3.url}&auth=none", validate="open")
    c.create("web", backend=WEB.url + "/base")


def test_a_sort_by_prefix(c):
    for name in SHARDS[::4]:
        c.get("cold", name).expect(200)
    before = fetches(c)
    equal(must_sort(c, "cold", "prefix"), RECORDS, "records")
    equal(fetches(c) - before, len(SHARDS) - len(SHARDS[::4]), "fetches")
    equal({S3.count(n) for n in SHARDS}, {1}, "requests for each")
    equal(must_sort(c, "cold", "again"), RECORDS, "records, all of it here")
    equal({S3.count(n) for n in SHARDS}, {1}, "requests for each")


def test_what_is_only_here_belongs_to_it(c):
    S3.put("data", "set/99.tar", tar_of(["z-1", "z-2"]))
    c.get("cold", "set/99.tar").expect(200)
    S3.remove("data", "set/99.tar")
    equal(must_sort(c, "cold", "only"), RECORDS + ["z-1", "z-2"], "records")
    run_job(c, "cold", "evict", {"list": ["set/99.tar"]})


def test_a_sort_by_template_and_list(c):
    run_job(c, "cold", "evict", {"prefix": ""})
    equal(must_sort(c, "cold", "template", input_format="set/{00..39}"), RECORDS,
          "records, by template")
    run_job(c, "cold", "evict", {"prefix": ""})
    equal(must_sort(c, "cold", "list", input_format={"objnames": SHARDS}), RECORDS,
          "records, by list")
    equal(must_sort(c, "web", "web", input_format="set/{00..39}"), RECORDS,
          "records of a web server")


def test_what_the_backend_does_not_have_is_missing(c):
    job = sort(c, "cold", "missing", input_format="set/{00..41}")
    equal(job["state"], "failed", "state")
    check("set/40.tar" in str(job["errors"]) or "set/41.tar" in str(job["errors"]),
          f"which: {job['errors']}")
    equal(must_sort(c, "cold", "ignored", input_format="set/{00..41}", missing_shards="ignore"),
          RECORDS, "records")


def test_what_has_changed_is_read_anew(c):
    equal(must_sort(c, "asks", "before"), RECORDS, "records")
    S3.put("data", SHARDS[3], tar_of([n + "-new" for n in records_of(3)]))
    wanted = sorted(n + "-new" if n.startswith("r-03-") else n for n in RECORDS)
    equal(must_sort(c, "asks", "after"), wanted, "records")
    S3.put("data", SHARDS[3], tar_of(records_of(3)))


def test_a_backend_that_fails_fails_the_sort(c):
    run_job(c, "cold", "evict", {"prefix": ""})
    S3.is_so(SHARDS[7], status=403)
    job = sort(c, "cold", "fails")
    S3.calm()
    equal(job["state"], "failed", "state")
    check(any(e["code"] == "backend_denied" and SHARDS[7] in e["message"] for e in job["errors"]),
          f"errors: {job['errors']}")
    equal(c.names("out", prefix="fails-"), [], "outputs")
    equal(must_sort(c, "cold", "later"), RECORDS, "records, later")


def test_copies(c):
    run_job(c, "cold", "evict", {"prefix": ""})
    names = [*SHARDS, "set/readme.txt"]
    c.get("cold", SHARDS[0]).expect(200)
    equal(run_job(c, "cold", "copy", {"to": "copied", "prefix": "set/"}, COUNTS), (41, 0, 0, 0, 41),
          "by prefix")
    equal(c.names("copied"), names, "what was copied")
    in_parallel(lambda n: equal(c.get("copied", n).expect(200).body, S3.has("data", n), n), names)
    equal(run_job(c, "cold", "copy", {"to": "copied", "prefix": "set/"})[:2], (0, 41), "again")
    equal(run_job(c, "cold", "copy", {"to": "copied"})[0], 1, "all")
    equal(
        run_job(c, "web", "copy", {"to": "copied", "prepend": "w/", "template": "set/{38..41}.tar"},
                COUNTS), (2, 0, 2, 0, 4), "by template")
    equal(c.names("copied", prefix="w/"), ["w/set/38.tar", "w/set/39.tar"], "what was copied")


def test_what_is_refused(c):
    spec = {
        "input_bck": {"name": "web"}, "output_bck": {"name": "out"}, "input_format": {"prefix": ""},
        "output_format": "o-%03d", "output_shard_size": "8KiB"
    }
    c.call("POST", "/v1/sort", spec).expect(501, "not_supported", "listed")
    c.call("POST", "/v1/sort",
           {**spec, "input_bck": {"name": "out"}, "output_bck": {"name": "cold"}}).expect(
               501, "not_supported", "backend")
    c.create("through", backend=f"s3://data?endpoint={S3.url}&auth=none", write_policy="through")
    c.call("POST", "/v1/sort",
           {**spec, "input_bck": {"name": "out"}, "output_bck": {"name": "through"}}).expect(
               501, "not_supported", "write_policy")
    for bucket, to in (("web", "copied"), ("copied", "cold"), ("copied", "through")):
        c.call("POST", f"/v1/buckets/{bucket}",
               {"action": "copy", "value": {"to": to}}).expect(501, "not_supported")


if __name__ == "__main__":
    with S3, WEB:
        main(targets=3, args=QUICK)

#!/usr/bin/env python3
"""Sorts that cannot be done fail with their reason, and leave no output, no pin, no work file."""

import io
import os
import subprocess
import tarfile
import tempfile
import threading

from lib import BUILD, check, equal, in_parallel, main, wait_for


def tar_of(*names, size=100):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT,
                      errors="surrogateescape") as tar:
        for name in names:
            info = tarfile.TarInfo(name)
            info.size = size
            tar.addfile(info, io.BytesIO(name.encode(errors="surrogateescape").ljust(size)))
    return out.getvalue()


def spec_of(**changes):
    return {"input_bck": {"name": "in"}, "output_bck": {"name": "out"},
            "input_format": {"prefix": "good/"}, "output_format": "o-%04d",
            "output_shard_size": "4KiB", **changes}


def job_files(c):
    """What jobs have left on the targets' disks."""
    found = []
    for target in c.targets():
        for mountpath in (d for d in os.listdir(c.node_dir(target)) if d.startswith("mp")):
            for sub in ("jobs", "tmp"):
                at = os.path.join(c.node_dir(target), mountpath, ".dfc", sub)
                found += [
                    os.path.join(at, n) for n in (os.listdir(at) if os.path.isdir(at) else ())
                ]
    return found


def nothing_is_left(c, before):
    equal(c.names("out"), before, "names in the output bucket")
    wait_for(lambda: not job_files(c), "the job's files are removed")


def must_fail(c, code, text="", **changes):
    """The job fails with this code, and what was in the output bucket is all that is there."""
    before = c.names("out")
    reply = c.call("POST", "/v1/sort", spec_of(**changes))
    if reply.status != 202:  # what can be known is refused at once
        return reply.expect(reply.status, code, text)
    job = c.wait_job(reply.json()["id"])
    equal(job["state"], "failed", f"state; {job['errors']}")
    check(any(e["code"] == code and text in e["message"] for e in job["errors"]),
          f"wanted {code} with '{text}', got {job['errors']}")
    nothing_is_left(c, before)
    return job


def test_inputs(c):
    c.create("in")
    c.create("out")
    for i in range(12):
        c.put("in", f"good/{i:02d}.tar", tar_of(*(f"r{i}-{j}.txt" for j in range(30))))
    c.put("in", "bad/cut.tar", tar_of("a.txt", "b.txt")[:1500])
    c.put("in", "bad/checksum.tar", b"\0\1" + tar_of("a.txt")[2:])
    c.put("in", "bad/text.tar", b"this is no archive\n" * 100)
    c.put("in", "bad/twice.tar", tar_of("a.txt", "b.txt", "a.txt"))


def test_a_good_one_is_sorted(c):
    job = c.wait_job(c.sort(spec_of(output_format="good-%04d")))
    equal(job["state"], "finished", f"state; {job['errors']}")
    equal(job["progress"]["percent"], 100, "percent")
    check(c.names("out"), "there is output")
    wait_for(lambda: not job_files(c), "the job's files are removed")


def test_missing_shards(c):
    must_fail(c, "shard_missing", "good/99.tar", input_format={"objnames": ["good/01", "good/99"]})
    must_fail(c, "shard_missing", "good/12.tar", input_format={"template": "good/{00..12}.tar"})
    job = c.wait_job(c.sort(spec_of(input_format={"template": "good/{00..12}.tar"},
                                    missing_shards="warn", output_format="warned-%d")))
    equal(job["state"], "finished", f"state; {job['errors']}")
    check(any("good/12.tar" in w for w in job["warnings"]), f"warnings: {job['warnings']}")
    job = c.wait_job(c.sort(spec_of(input_format={"template": "good/{00..12}.tar"},
                                    missing_shards="ignore", output_format="ignored-%d")))
    equal((job["state"], job["warnings"]), ("finished", []), "state and warnings")


def test_corrupt_shards(c):
    for name in ("bad/cut.tar", "bad/checksum.tar", "bad/text.tar"):
        must_fail(c, "shard_corrupt", name, input_format={"objnames": ["good/01.tar", name]})


def sort_local(directory, files, *args):
    for name, data in files.items():
        with open(os.path.join(directory, name), "wb") as f:
            f.write(data)
    return subprocess.run([
        os.path.join(BUILD, "dfcctl"), "sort", "local", "--in", directory, "--out",
        os.path.join(directory, "out"), "--prefix", "x", "--output-format", "o-%d", "--shard-size",
        "1MiB", *args
    ], capture_output=True, text=True, check=False, timeout=60)


def test_shards_without_a_byte(c):
    """Of a tar that is an archive without records, and said; what has a head on disk is damaged."""
    c.put("in", "none/a.tar", b"")
    c.put("in", "none/b.tar", tar_of("a.txt"))
    job = c.wait_job(c.sort(spec_of(input_format={"prefix": "none/"}, output_format="none-%d")))
    equal(job["state"], "finished", f"state; {job['errors']}")
    check(any("'none/a.tar' has no bytes" in w for w in job["warnings"]),
          f"warnings: {job['warnings']}")
    shown = c.dfcctl("job", "show", job["id"])
    check("'none/a.tar' has no bytes" in shown.stdout, f"job show: {shown.stdout}")
    with tempfile.TemporaryDirectory() as directory:
        done = sort_local(directory, {"x1.tar": b"", "x2.tar": tar_of("a.txt")})
        equal(done.returncode, 0, f"sort local: {done.stderr}")
        check("'x1.tar' has no bytes" in done.stdout + done.stderr,
              f"sort local: {done.stdout} {done.stderr}")
    for i, extension in enumerate((".zip", ".tar.gz", ".tar.zst", ".tar.lz4")):
        c.put("in", f"cut{i}/a{extension}", b"")
        changes = {
            "input_format": {"prefix": f"cut{i}/"}, "input_extension": extension,
            "output_extension": ".tar"
        }
        must_fail(c, "shard_corrupt", f"'cut{i}/a{extension}' has no bytes: it was cut short",
                  **changes)
        job = c.wait_job(
            c.sort(
                spec_of(unreadable_shards="warn", output_format=f"cut{i}-%d", allow_empty=True,
                        **changes)))
        equal(job["state"], "finished", f"state; {job['errors']}")
        check(any("the shard is left out" in w for w in job["warnings"]),
              f"warnings: {job['warnings']}")
    with tempfile.TemporaryDirectory() as directory:
        done = sort_local(directory, {"x1.zip": b""}, "--input-extension", ".zip")
        check(done.returncode != 0 and "'x1.zip' has no bytes" in done.stderr,
              f"sort local: {done}")


def test_duplicates(c):
    both = {"objnames": ["good/01.tar", "bad/twice.tar"]}
    must_fail(c, "duplicate_record", "bad/twice.tar", input_format=both)
    job = c.wait_job(c.sort(spec_of(input_format=both, duplicated_records="warn",
                                    output_format="twice-%d")))
    equal(job["state"], "finished", f"state; {job['errors']}")
    check(any("a.txt" in w for w in job["warnings"]), f"warnings: {job['warnings']}")


def test_names_that_are_no_unicode(c):
    """They are sorted like others; a message that quotes one is still JSON."""
    c.put("in", "bad/bytes.tar", tar_of("\udcff\udc80.txt", "b.txt", "\udcff\udc80.txt"))
    must_fail(c, "duplicate_record", "bad/bytes.tar", input_format={"objnames": ["bad/bytes.tar"]})
    job = c.wait_job(c.sort(spec_of(input_format={"objnames": ["bad/bytes.tar"]},
                                    duplicated_records="warn", output_format="bytes-%d")))
    equal(job["state"], "finished", f"state; {job['errors']}")
    check(any("\\xff\\x80.txt" in w for w in job["warnings"]), f"warnings: {job['warnings']}")
    body = c.get("out", "bytes-0.tar").expect(200).body
    with tarfile.open(fileobj=io.BytesIO(body), errors="surrogateescape") as tar:
        equal(tar.getnames(), ["b.txt", "\udcff\udc80.txt"], "members")


def test_template_too_small(c):
    must_fail(c, "template_too_small", "o-", output_format="o-{0..3}")


def test_existing_outputs(c):
    before = c.names("out")
    c.put("out", "o-0002.tar", b"mine")
    must_fail(c, "object_exists", "o-0002.tar")
    equal(c.get("out", "o-0002.tar").expect(200).body, b"mine", "the object that was there")
    c.object("DELETE", "out", "o-0002.tar").expect(204)
    equal(c.names("out"), before, "names")


def indexes(name):
    return {"wids_index": name + "-wids.json", "dali_indexes": True}


def test_existing_indexes(c):
    """An index's name is an output's as any other, though no shard has it."""
    before = c.names("out")
    for name in ("o-0002.idx", "o-wids.json"):
        c.put("out", name, b"mine")
        must_fail(c, "object_exists", name, **indexes("o"))
        equal(c.get("out", name).expect(200).body, b"mine", "the object that was there")
        c.object("DELETE", "out", name).expect(204)
    equal(c.names("out"), before, "names")
    must_fail(c, "invalid_spec", "dali_indexes", output_extension=".zip", **indexes("o"))


def test_indexes(c):
    """They come with the shards, are told of as such, and a comparison passes them by."""
    job = c.wait_job(c.sort(spec_of(output_format="ix-%04d", **indexes("ix"))))
    equal(job["state"], "finished", f"state; {job['errors']}")
    names = c.names("out", prefix="ix-")
    shards = [n for n in names if n.endswith(".tar")]
    equal(names, sorted(shards + [n[:-4] + ".idx" for n in shards] + ["ix-wids.json"]), "names")
    index = c.get("out", "ix-wids.json").expect(200)
    equal(index.headers["content-type"], "application/json", "type of the index")
    listed = index.json()["shardlist"]
    equal([s["url"] for s in listed], shards, "the shards that it names")
    equal(sum(s["nsamples"] for s in listed), 360, "samples")
    for shard in listed:
        body = c.get("out", shard["url"]).expect(200).body
        equal(len(body), shard["filesize"], "size of " + shard["url"])
        lines = c.get("out", shard["url"][:-4] + ".idx").expect(200).body.decode().splitlines()
        equal(lines[0], f"v1.2 {shard['nsamples']}", "head of its index")
        for line in lines[1:]:
            extension, offset, size, path = line.split(" ")
            equal(body[int(offset):int(offset) + int(size)], path.encode().ljust(100), path)
            equal(extension, "txt", "extension of " + path)
    equal(c.dfcctl("sort", "verify", job["id"]).returncode, 0, "status of 'sort verify'")


def test_dry_run_stores_nothing(c):
    before = c.names("out")
    job = c.wait_job(c.sort(spec_of(dry_run=True)))
    equal(job["state"], "finished", f"state; {job['errors']}")
    equal(job["plan"]["records"], 360, "records that it would have sorted")
    nothing_is_left(c, before)


def test_inputs_may_change_under_the_job(c):
    """Planning pins a version: the result is of that one, or the job says that it changed."""
    job_id = c.sort(spec_of(output_format="pinned-%04d"))
    for i in range(12):
        c.put("in", f"good/{i:02d}.tar", tar_of(*(f"new{i}-{j}.txt" for j in range(30))))
    job = c.wait_job(job_id)
    equal(job["state"], "finished", f"state; {job['errors']}")
    members = []
    for name in c.names("out", prefix="pinned-"):
        with tarfile.open(fileobj=io.BytesIO(c.get("out", name).expect(200).body)) as tar:
            members += tar.getnames()
    equal(len(members), 360, "members")
    shards = {}
    for m in members:
        shards.setdefault(m.lstrip("rnew").split("-")[0], set()).add(m.startswith("new"))
    check(all(len(kinds) == 1 for kinds in shards.values()), "a shard of two versions")


def test_names_are_reserved_until_the_job_ends(c):
    """A hidden output's name is nobody's: no GET, no list; a PUT is refused or comes first."""
    job_id = c.sort(spec_of(output_format="hidden-%04d", output_shard_size="1KiB",
                            **indexes("hidden")))
    seen = set()
    while c.job(job_id)["state"] not in ("finished", "failed", "aborted"):
        seen.add(len(c.names("out", prefix="hidden-")))
    equal(c.job(job_id)["state"], "finished", "state")
    total = len(c.names("out", prefix="hidden-"))
    check(seen <= {0, total}, f"part of the output was visible: {sorted(seen)} of {total}")


def test_jobs_are_listed_and_forgotten(c):
    job_id = c.sort(spec_of(description="find me 42", output_format="listed-%d"))
    c.wait_job(job_id)
    found = c.get_json("/v1/sort?regex=find.*42")["jobs"]
    equal([j["id"] for j in found], [job_id], "jobs by regex")
    nested = "(" * 50 + "4" + "%2B)" * 50  # what regcomp() would need exabytes for
    found = c.get_json("/v1/sort?regex=find.*" + nested)["jobs"]
    equal([j["id"] for j in found], [job_id], "jobs by nested repetitions")
    check(any(j["id"] == job_id for j in c.get_json("/v1/jobs?kind=sort&state=finished")["jobs"]),
          "the job is in /v1/jobs")
    equal(c.get_json(f"/v1/jobs/{job_id}")["id"], job_id, "by id")
    c.call("DELETE", f"/v1/sort/abort?id={job_id}").expect(409, "job_state")
    c.call("DELETE", f"/v1/sort?id={job_id}").expect(204)
    c.call("GET", f"/v1/sort?id={job_id}").expect(404, "job_not_found")


def test_several_at_once(c):
    jobs = [
        c.sort(spec_of(output_format=f"par{i}-%04d", algorithm={"kind": "shuffle", "seed": "7"}))
        for i in range(5)
    ]
    for job_id in jobs:
        job = c.wait_job(job_id)
        equal(job["state"], "finished", f"state; {job['errors']}")
    bodies = [[c.get("out", n).expect(200).body for n in c.names("out", prefix=f"par{i}-")]
              for i in range(5)]
    check(all(b == bodies[0] for b in bodies), "the same request came to different results")


def test_two_that_want_the_same_names(c):
    """One gets them; the other fails and takes nothing away."""
    barrier = threading.Barrier(2, timeout=30)

    def start(_):
        barrier.wait()
        return c.call("POST", "/v1/sort", spec_of(output_format="same-%04d"))

    replies = in_parallel(start, range(2), workers=2)
    jobs = [c.wait_job(r.json()["id"]) for r in replies if r.status == 202]
    finished = [j for j in jobs if j["state"] == "finished"]
    equal(len(finished), 1, f"jobs that finished; {[j['errors'] for j in jobs]}")
    check(c.names("out", prefix="same-"), "the winner's output")


if __name__ == "__main__":
    main(targets=3)

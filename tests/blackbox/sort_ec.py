#!/usr/bin/env python3
"""Sorts over buckets whose large objects are in slices (docs/design/erasure-coding.md): the same bytes as of whole
objects, out of such
a bucket and into one, also where a target is lost for good; outputs are in slices, and read with
any of them missing;
slices of outputs that nobody sees yet stay, or are made anew where a disk loses them, and those of
an abort go; who
restarts reads no input again.

DFC_SHAPE (2+1): data and parity, and thereby the number of targets (ec.py)."""

import hashlib
import io
import json
import os
import random
import tarfile

from ec import DATA, MIN_SIZE as JUNK, PARITY, SLICES, TARGETS
from ec import check_object, create, patient, put, slice_files, slices_of_bucket
from ec import restart as restart_all
from lib import ENDED, check, equal, main, wait_for
from sort_copies import contents, copies_on_disk, repaired
from sort_errors import job_files
from sort_failures import tar_of

SHARDS = 12
MIN_SIZE = 20000
LONG = 300
SHUFFLED = {"algorithm": {"kind": "shuffle", "seed": "7"}}


def spec_of(name, source="in", to="out", **more):
    return {
        "input_bck": {"name": source}, "output_bck": {"name": to}, "input_format": {"prefix": "s"},
        "output_format": name + "-%04d", "output_shard_size": "40KiB", **more
    }


def small_tar():
    """One record, which is kept whole."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        info = tarfile.TarInfo("500-small.bin")
        info.size = 100
        tar.addfile(info, io.BytesIO(os.urandom(100)))
    return out.getvalue()


def finished(c, spec, records=SHARDS * 20 + 1):
    job = c.wait_job(c.sort(spec), seconds=LONG)
    equal(job["state"], "finished", f"state; {job['errors']}")
    equal(job["progress"]["records"], records, "records")
    wait_for(lambda: not job_files(c), "the job's files are removed")
    return job


def empty(c):
    """The output bucket, as it was."""
    c.destroy("out")
    create(c, "out", min_size=MIN_SIZE)


def sliced(c, bucket="out"):
    """Its objects that are to be in slices."""
    return [e["name"] for page in c.pages(bucket) for e in page["entries"] if e["size"] > MIN_SIZE]


def shown(c, name, bucket="out"):
    done = c.dfcctl("object", "show", f"{bucket}/{name}", "-o", "json")
    equal(done.returncode, 0, f"object show: {done.stderr}")
    return json.loads(done.stdout)


def in_slices(c, name):
    document = shown(c, name)
    equal((document["ec"]["data"], document["ec"]["parity"]), (DATA, PARITY),
          f"the shape of {name}")
    equal(document["slices_missing"], [], f"missing slices of {name}")


def test_the_same_as_of_whole_objects(c):
    create(c, "in", min_size=MIN_SIZE)
    c.create("whole")
    c.create("plain")
    create(c, "out", min_size=MIN_SIZE)
    for i in range(SHARDS + 1):
        data = tar_of(i) if i < SHARDS else small_tar()
        c.put("whole", f"s{i:02d}.tar", data)
        put(c, "in", f"s{i:02d}.tar", data)
    equal(slices_of_bucket(c, "in"), SLICES * SHARDS, "slices")
    finished(c, spec_of("works", "whole", "plain"))
    c.wanted = contents(c, "plain", "works")
    job = finished(c, spec_of("works"))
    equal(contents(c, "out", "works"), c.wanted, "the output")
    check(len(sliced(c)) >= len(c.wanted) - 1, "outputs above the limit")
    equal(slices_of_bucket(c, "out"), SLICES * len(sliced(c)), "slices of the output")
    for name in sliced(c):
        in_slices(c, name)
        body = c.get("out", name).expect(200).body
        check_object(c, "out", name, body)
    stored_as_slices(c)
    done = c.dfcctl("sort", "verify", job["id"])
    equal(done.returncode, 0, f"sort verify: {done.stdout} {done.stderr}")


def stored_as_slices(c):
    """(k + m) / k of the bytes, and no file with a whole one."""
    sizes = [e["size"] for page in c.pages("out") for e in page["entries"] if e["size"] > MIN_SIZE]
    number = c.get_json("/v1/buckets/out")["id"] | 1 << 62
    stored = sum(
        os.path.getsize(p) for t in c.targets() for p in slice_files(c, t)
        if f"/obj/{number}/" in p)
    least = sum(sizes) * SLICES / DATA
    check(least <= stored <= 1.01 * least + 200 * SLICES * len(sizes),
          f"bytes of slices: {stored} of {sum(sizes)}")
    equal([p for p in copies_on_disk(c, "out") if os.path.getsize(p) > MIN_SIZE], [],
          "whole copies")


def test_outputs_are_sorted_once_more(c):
    """Out of the bucket into it."""
    job = c.wait_job(
        c.sort(spec_of("twice", "plain", "plain", input_format={"prefix": "works-"}, **SHUFFLED)))
    equal(job["state"], "finished", f"state of whole objects; {job['errors']}")
    finished(c, spec_of("twice", "out", "out", input_format={"prefix": "works-"}, **SHUFFLED))
    wanted = contents(c, "plain", "twice")
    check(wanted != c.wanted, "another order")
    equal(contents(c, "out", "twice"), wanted, "the output")
    equal(contents(c, "out", "works"), c.wanted, "the input")
    for bucket in ("plain", "out"):
        for name in c.names(bucket, prefix="twice-"):
            patient(c, "DELETE", bucket, name).expect(204)


def test_outputs_are_read_with_any_of_their_targets_dead(c):
    repaired(c)
    names = c.names("out", prefix="works-")
    dead = random.sample(c.targets(), PARITY)
    print("dead:", *dead)
    for t in dead:
        check(slice_files(c, t), f"slices of {t}")
        c.kill(t)
    bodies = [patient(c, "GET", "out", name).expect(200).body for name in names]
    for t in dead:
        c.start(t)
        c.wait_node(t, "active")
    equal([hashlib.sha256(body).hexdigest() for body in bodies], c.wanted, "the output")
    repaired(c)
    empty(c)


def test_indexes_beside_them(c):
    """Outputs as the shards are: those above the limit are in slices, too."""
    of = {"input_format": {"template": "s{00..11}.tar"}, "dali_indexes": True}
    for to, bucket in (("plain", "plain"), ("out", "out")):
        job = c.wait_job(c.sort(spec_of("index", "whole", to, wids_index="index.json", **of)),
                         seconds=LONG)
        equal(job["state"], "finished", f"state into {bucket}; {job['errors']}")
    names = c.names("out")
    check("index.json" in names and any(n.endswith(".idx") for n in names), "indexes")
    for name in names:
        equal(c.get("out", name).expect(200).body, c.get("plain", name).expect(200).body, name)
    equal(slices_of_bucket(c, "out"), SLICES * len(sliced(c)), "slices")
    empty(c)


def test_a_shard_that_is_missing(c):
    shards = {"objnames": [f"s{i:02d}.tar" for i in range(SHARDS)] + ["s99.tar"]}
    job = c.wait_job(c.sort(spec_of("missing", input_format=shards)))
    equal((job["state"], job["errors"][0]["code"]), ("failed", "shard_missing"), "of a list")
    wait_for(lambda: not job_files(c), "the job's files are removed")


def pins(c):
    """The files that shards were brought to, and are being brought to."""
    found = []
    for path in job_files(c):
        try:
            found += [os.path.join(path, f) for f in os.listdir(path) if f.startswith("in-")]
        except (FileNotFoundError, NotADirectoryError):  # it goes, or is another's
            pass
    return found


def pins_of(c, target):
    return {p for p in pins(c) if p.startswith(c.node_dir(target))}


def test_an_abort_while_they_are_read_leaves_nothing(c):
    c.restart("t1", "--arg=--faults=sort.extract=delay:1000")
    job_id = c.sort(spec_of("abort"))
    wait_for(lambda: pins(c), "a shard that is brought")
    c.call("DELETE", f"/v1/sort/abort?id={job_id}").expect(202)
    equal(c.wait_job(job_id)["state"], "aborted", "state")
    wait_for(lambda: not job_files(c), "the job's files are removed")
    equal(copies_on_disk(c, "out"), [], "outputs")
    c.restart("t1")


def test_who_restarts_has_what_was_brought(c):
    repaired(c)
    c.restart("t2", "--arg=--faults=sort.create=kill@1")
    c.ended_by_test.add("t2")
    repaired(c)
    job_id = c.sort(spec_of("again"))
    wait_for(lambda: c.pid("t2") is None, "t2 dies over its first output")
    brought = pins_of(c, "t2")
    check(brought, "what t2 has brought")
    c.start("t2")
    seen = set()

    def ended():
        seen.update(pins_of(c, "t2"))
        return c.job(job_id)["state"] in ENDED

    wait_for(ended, "the end of the job", LONG)
    check(seen <= brought, f"brought once more: {seen - brought}")
    job = c.job(job_id)
    equal(job["state"], "finished", f"state; {job['errors']}")
    equal(contents(c, "out", "again"), c.wanted, "the output")
    wait_for(lambda: not job_files(c), "the job's files are removed")
    empty(c)


def test_a_target_is_killed_over_its_slices(c):
    """Before their manifest is hidden: nobody knows them, and they go."""
    repaired(c)
    c.restart("t3", "--arg=--faults=ec.stored=kill@2")
    c.ended_by_test.add("t3")
    repaired(c)
    job_id = c.sort(spec_of("killed"))
    wait_for(lambda: c.pid("t3") is None, "t3 dies with the slices of its second output stored",
             LONG)
    c.start("t3")
    job = c.wait_job(job_id, seconds=LONG)
    equal(job["state"], "finished", f"state; {job['errors']}")
    equal(contents(c, "out", "killed"), c.wanted, "the output")
    check(slices_of_bucket(c, "out") > SLICES * len(sliced(c)), "slices that t3 has left")
    restart_all(c, "--slices-grace=1s", "--slices-sweep-interval=500ms")
    wait_for(lambda: slices_of_bucket(c, "out") == SLICES * len(sliced(c)),
             "slices that nobody knows go", LONG)
    restart_all(c)
    repaired(c)
    equal(contents(c, "out", "killed"), c.wanted, "the output, when they are gone")
    for name in sliced(c):
        in_slices(c, name)
    wait_for(lambda: not job_files(c), "the job's files are removed")
    empty(c)


def has_some(c, bucket, target):
    number = c.get_json(f"/v1/buckets/{bucket}")["id"] | 1 << 62
    return any(f"/obj/{number}/" in p for p in slice_files(c, target))


def hidden(c):
    """The files of the outputs, by the hashes of their names."""
    return {os.path.basename(p) for p in copies_on_disk(c, "out")}


def test_slices_of_what_is_hidden_stay(c):
    """While t1 is at its first output, the others look through all slices."""
    others = [t for t in c.targets() if t != "t1"]
    c.restart("t1", "--arg=--faults=sort.create=delay:600000")
    repaired(c)
    job_id = c.sort(spec_of("hidden"))
    wait_for(lambda: len(hidden(c)) >= 3, "hidden outputs", LONG)
    equal(c.names("out"), [], "names before the commit")
    create(c, "junk", min_size=JUNK)
    for i in range(24):
        put(c, "junk", f"j{i:02d}", os.urandom(JUNK + 1))
        patient(c, "DELETE", "junk", f"j{i:02d}").expect(204)
    check(all(has_some(c, "junk", t) for t in others), "slices that nobody knows")
    for t in others:  # the job stands now, until t1 is killed
        c.kill(t)
        c.start(t, "--arg=--slices-grace=1s", "--arg=--slices-sweep-interval=500ms")
    for t in others:
        c.wait_node(t, "active")
    number = c.get_json("/v1/buckets/junk")["id"] | 1 << 62
    wait_for(lambda: not [p for t in others for p in slice_files(c, t) if f"/obj/{number}/" in p],
             "the others have removed what nobody knows", LONG)
    outputs = len(hidden(c))
    check(outputs >= 3, "hidden outputs stay")
    check(
        slices_of_bucket(c, "out") >= SLICES * (outputs - 1),
        "so do their slices (the last output may be whole)")
    for t in c.targets():
        c.kill(t)
        c.start(t)
    job = c.wait_job(job_id, seconds=LONG)
    equal(job["state"], "finished", f"state; {job['errors']}")
    equal(contents(c, "out", "hidden"), c.wanted, "the output")
    wait_for(lambda: not job_files(c), "the job's files are removed")
    empty(c)


def test_slices_of_an_abort_go(c):
    """Without the interval (6 h) being over."""
    repaired(c)
    for t in c.targets():
        args = ["--arg=--faults=sort.create=delay:600000"] if t == "t1" else []
        c.restart(t, "--arg=--slices-grace=4s", *args)
    repaired(c)
    job_id = c.sort(spec_of("gone"))
    wait_for(lambda: slices_of_bucket(c, "out") > 0, "slices of outputs", LONG)
    c.call("DELETE", f"/v1/sort/abort?id={job_id}").expect(202)
    c.kill("t1")  # it would sleep on
    c.start("t1", "--arg=--slices-grace=4s")
    c.wait_job(job_id, seconds=LONG)
    wait_for(lambda: not job_files(c), "the job's files are removed", LONG)
    equal(copies_on_disk(c, "out"), [], "outputs")
    wait_for(lambda: slices_of_bucket(c, "out") == 0, "the slices go, too", LONG)
    restart_all(c)
    repaired(c)


def lose_slices(c, target, bucket="out"):
    """It dies, and comes back without those of a bucket.  How many there were."""
    number = c.get_json(f"/v1/buckets/{bucket}")["id"] | 1 << 62
    c.kill(target)
    gone = [p for p in slice_files(c, target) if f"/obj/{number}/" in p]
    for path in gone:
        os.unlink(path)
    c.start(target)
    c.wait_node(target, "active")
    return len(gone)


def test_slices_of_what_is_hidden_are_lost(c):
    """One target after the other loses its own, more than m in all, before anybody could see the
    outputs."""
    c.restart("t1", "--arg=--faults=sort.create=delay:600000")
    repaired(c)
    job_id = c.sort(spec_of("losses"))
    wait_for(lambda: all(has_some(c, "out", t) for t in c.targets() if t != "t1"), "slices", LONG)
    for t in random.sample([t for t in c.targets() if t != "t1"], PARITY + 1):
        check(lose_slices(c, t), f"slices of {t}")
    c.kill("t1")
    c.start("t1")
    job = c.wait_job(job_id, seconds=LONG)
    equal(job["state"], "finished", f"state; {job['errors']}")
    equal(contents(c, "out", "losses"), c.wanted, "the output")
    repaired(c)  # one that was slow to come back was left out
    wait_for(lambda: not any(shown(c, name)["slices_missing"] for name in sliced(c)), "all slices",
             LONG)
    wait_for(lambda: not job_files(c), "the job's files are removed", LONG)
    empty(c)


def patient_contents(c, name):
    """While targets are away."""
    return [hashlib.sha256(patient(c, "GET", "out", shard).expect(200).body).hexdigest()
            for shard in c.names("out", prefix=name + "-", partial="true")]


def test_targets_die_over_the_commit(c):
    """All outputs are there, whenever that was."""
    repaired(c)
    job_id = c.sort(spec_of("commit"))
    wait_for(lambda: c.names("out", partial="true") or c.job(job_id)["state"] in ENDED,
             "outputs are seen", LONG)
    dead = random.sample(c.targets(), PARITY)
    for t in dead:
        c.kill(t)
    job = c.wait_job(job_id, seconds=LONG)
    equal(job["state"], "finished", f"state; {job['errors']}")
    for t in dead:
        c.wait_node(t, "unreachable")
    wait_for(lambda: patient_contents(c, "commit") == c.wanted, "the output without them", LONG)
    for t in dead:
        c.start(t)
        c.wait_node(t, "active")
    repaired(c)
    wait_for(lambda: not job_files(c), "the job's files are removed", LONG)
    equal(contents(c, "out", "commit"), c.wanted, "the output")
    for name in sliced(c):
        in_slices(c, name)
    empty(c)


def test_a_target_is_lost_over_its_slices_for_good(c):
    repaired(c)
    c.restart("t3", "--arg=--faults=ec.stored=kill@2")
    c.ended_by_test.add("t3")
    repaired(c)
    job = c.wait_job(c.sort(spec_of("without")), seconds=LONG)
    equal(job["state"], "finished", f"state; {job['errors']}")
    equal(job["without"], ["t3"], "whom it went on without")
    check(c.pid("t3") is None, "t3 is dead")
    equal(contents(c, "out", "without"), c.wanted, "the output, t3 being dead")
    c.start("t3")
    c.wait_node("t3", "active")
    repaired(c)
    wait_for(lambda: not job_files(c), "the job's files are removed", LONG)
    equal(contents(c, "out", "without"), c.wanted, "the output, t3 being back")
    for name in sliced(c):
        in_slices(c, name)
    empty(c)


def test_too_few_targets_for_slices(c):
    """Outputs are whole copies where the job goes on without the one that it would take."""
    create(c, "wide", data=TARGETS - 1, parity=1, min_size=MIN_SIZE)
    repaired(c)
    c.kill("t3")
    c.wait_node("t3", "unreachable")
    job = c.wait_job(c.sort(spec_of("whole", to="wide")), seconds=LONG)
    equal(job["state"], "finished", f"state; {job['errors']}")
    equal(job["without"], ["t3"], "whom it went on without")
    equal(contents(c, "wide", "whole"), c.wanted, "the output, t3 being dead")
    equal(slices_of_bucket(c, "wide"), 0, "slices")
    c.start("t3")
    c.wait_node("t3", "active")
    repaired(c)
    wait_for(lambda: not job_files(c), "the job's files are removed", LONG)
    equal(contents(c, "wide", "whole"), c.wanted, "the output, t3 being back")
    wait_for(lambda: len(copies_on_disk(c, "wide")) == 2 * len(c.wanted), "all copies", LONG)
    finished(c, spec_of("all", to="wide"))
    equal(contents(c, "wide", "all"), c.wanted, "the output, with all targets")
    equal(slices_of_bucket(c, "wide"),
          TARGETS * len([n for n in sliced(c, "wide") if n.startswith("all-")]), "slices")
    c.destroy("wide")


def test_a_target_is_lost_for_good(c):
    """The others read the shards that it would have brought, too, without its slices."""
    repaired(c)
    c.restart("t2", "--arg=--faults=sort.extract=kill@1")
    c.ended_by_test.add("t2")
    repaired(c)
    check(slice_files(c, "t2"), "slices of the target that dies")
    job = c.wait_job(c.sort(spec_of("lost")), seconds=LONG)
    equal(job["state"], "finished", f"state; {job['errors']}")
    equal(job["without"], ["t2"], "whom it went on without")
    equal(contents(c, "out", "lost"), c.wanted, "the output")
    c.start("t2")
    c.wait_node("t2", "active")
    wait_for(lambda: not job_files(c), "the job's files are removed", LONG)


if __name__ == "__main__":
    main(targets=TARGETS, args=("--proxy-arg=--jobs-away-wait=2s",))

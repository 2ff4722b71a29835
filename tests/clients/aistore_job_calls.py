"""Jobs by AIStore's SDK, for aistore_sdk.py:  aistore_job_calls.py URL SET"""

import io
import sys
import tarfile
from datetime import datetime, timedelta, timezone

from aistore.sdk import Client
from aistore.sdk.dsort import DsortFramework, DsortShardsGroup, DsortAlgorithm, ExternalKeyMap
from aistore.sdk.errors import AISError, ErrBckNotFound, JobInfoNotFound, Timeout
from aistore.sdk.multiobj import ObjectNames, ObjectRange
from aistore_calls import names_of, reader_of
from aistore_checks import equal, raises

ROUNDS, WAIT = 50, 5  # seconds: the SDK asks more often where it waits for a short time


def fill(c, name, count=10):
    b = c.bucket(name).create()
    for i in range(count):
        b.object(f"o-{i:02}").get_writer().put_content(str(i).encode())
    return b


def waited(wait):
    for _ in range(ROUNDS):
        try:
            return wait(timeout=WAIT, verbose=False)
        except Timeout:
            pass
    raise AssertionError(f"{wait} has not ended")


def done(c, job_id):
    """Of a job that must succeed; the SDK finds its kind by the id."""
    result = waited(c.job(job_id).wait)
    assert result.success and result.job_id == job_id, result
    return job_id


def kept(b):
    return names_of(b.list_all_objects())


def names(*numbers):
    return [f"o-{i:02}" for i in numbers]


# --- many objects --------------------------------------------------------------------------------


def deletes(c):
    b = fill(c, "jobs-delete")
    done(c, b.objects(obj_names=names(0, 1) + ["none"]).delete())
    equal(kept(b), names(*range(2, 10)), "after a list")
    done(c, b.objects(obj_range=ObjectRange("o-", 2, 6, pad_width=2, step=2)).delete())
    equal(kept(b), names(3, 5, 7, 8, 9), "after a range")
    done(c, b.objects(obj_template="o-{07..08}").delete())
    equal(kept(b), names(3, 5, 9), "after a template")
    done(c, b.objects(obj_template="nothing-{0..9}").delete())
    done(c, b.objects(obj_template="o-0").delete())
    equal(kept(b), [], "after a prefix")
    raises(AISError, (400,), b.objects(obj_template="o-{9..0}").delete)
    raises(AISError, (400,), b.objects(obj_names=["a//../b", ""]).delete)
    raises(ErrBckNotFound, (404,), c.bucket("jobs-none").objects(obj_names=["a"]).delete)
    b.delete()


def copies(c):
    b, to = fill(c, "jobs-copy"), c.bucket("jobs-copy-to").create()
    ids = b.objects(obj_names=names(0, 1)).copy(to, prepend="p/", num_workers=2,
                                                continue_on_error=True)
    equal(len(ids), 1, "jobs")
    done(c, ids[0])
    equal(kept(to), ["p/o-00", "p/o-01"], "copies of a list")
    equal(reader_of(to.object("p/o-01")).read_all(), b"1", "a copy")
    done(c, b.objects(obj_template="o-{00..02}").copy(to, force=True)[0])
    equal(kept(to), names(0, 1, 2) + ["p/o-00", "p/o-01"], "copies by a template")
    done(c, b.copy(to, prefix_filter="o-0", prepend="all/"))
    equal(kept(to)[:10], [f"all/{n}" for n in names(*range(10))], "copies of the bucket")
    done(c, b.copy(to, prefix_filter="nothing"))
    raises(AISError, (501,), b.copy, to, dry_run=True)
    raises(AISError, (501,), b.copy, to, sync=True)
    raises(AISError, (501,), b.copy, to, latest=True)
    raises(AISError, (501,), b.copy, to, ext={"jpg": "txt"})
    raises(AISError, (400,), b.copy, b)
    raises(AISError, (404,), b.copy, c.bucket("jobs-none"))
    raises(AISError, (501,), b.objects(obj_names=["o-00"]).transform, to, "etl")
    b.delete()
    to.delete()


def archives(c):
    b, to = fill(c, "jobs-archive"), c.bucket("jobs-archive-to").create()
    ids = b.objects(obj_names=names(0, 1)).archive("two.tar", to_bck=to)
    equal(len(ids), 1, "jobs")
    done(c, ids[0])
    equal(members_of(to, "two.tar"), {"o-00": b"0", "o-01": b"1"}, "of a list")
    equal(names_of(to.list_archive("two.tar")), ["two.tar/o-00", "two.tar/o-01"], "listed")
    every = {n: str(i).encode() for i, n in enumerate(names(*range(10)))}
    for name, mime in (("all.tgz", ""), ("all", ".tar"), ("any", "application/gzip")):
        done(c, b.objects(obj_template="o-").archive(name, mime=mime, to_bck=to)[0])
        equal(members_of(to, name), every, name)
    done(c, b.objects(obj_template="o-{02..03}").archive("own.tar", include_source_name=True)[0])
    equal(members_of(b, "own.tar"), {"jobs-archive/o-02": b"2", "jobs-archive/o-03": b"3"}, "own")
    group = b.objects(obj_names=names(0))
    raises(AISError, (501,), group.archive, "two.tar", to_bck=to, allow_append=True)
    raises(AISError, (400,), group.archive, "no-extension", to_bck=to)
    raises(AISError, (400,), group.archive, "x", mime="text/html", to_bck=to)
    raises(AISError, (404,), group.archive, "x.tar", to_bck=c.bucket("jobs-none"))
    equal(members_of(to, "two.tar"), {"o-00": b"0", "o-01": b"1"}, "what was there")
    b.delete()
    to.delete()


def members_of(bucket, name):
    data = reader_of(bucket.object(name)).read_all()
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return {m.name: tar.extractfile(m).read() for m in tar.getmembers()}


def cold(c):
    equal([m.name for m in c.cluster().list_buckets(provider="aws")], ["cold"], "buckets of S3")
    b = c.bucket("cold", provider="aws")
    b.head()
    done(c, b.objects(obj_names=["o-0", "o-1"]).prefetch(num_workers=-1))
    cached = c.bucket("cold")
    here = [e.name for e in cached.list_all_objects() if e.is_cached()]
    equal(here, ["o-0", "o-1"], "what a list has brought")
    done(c, b.objects(obj_template="o-").prefetch(blob_threshold=1 << 20, continue_on_error=True))
    done(c, b.objects(obj_template="o-{0..2}").evict())
    here = [e.name for e in cached.list_all_objects() if e.is_cached()]
    equal(here, ["o-3", "o-4", "o-5"], "what is left here")
    equal(cached.summary()["ObjCount"], {"obj_count_present": "3", "obj_count_remote": "0"}, "here")
    equal(cached.info()[1]["ObjCount"], {"obj_count_present": "3", "obj_count_remote": "6"}, "all")
    raises(AISError, (501,), b.objects(obj_names=["o-0"]).prefetch, latest=True)
    raises(AISError, (501,), c.bucket("cold", provider="gcp").head)


# --- jobs ----------------------------------------------------------------------------------------


def details(c):
    b, to = fill(c, "jobs-see"), c.bucket("jobs-see-to").create()
    before = datetime.now(timezone.utc) - timedelta(seconds=2)  # times have whole seconds
    job = c.job(done(c, b.copy(to)))
    status = job.status()
    equal((status.uuid, status.err, status.aborted), (job.job_id, "", False), "the status")
    assert before.timestamp() < status.end_time / 1e9 < datetime.now().timestamp() + 2, status
    snapshots = job.get_details().list_snapshots()
    equal({s.kind for s in snapshots}, {"copy-bck"}, "kinds")
    equal(set(job.get_details().root), set(c.cluster().get_info().tmap), "targets")
    equal(sum(s.stats.objects for s in snapshots), 10, "objects")
    equal(sum(s.stats.bytes for s in snapshots), 10, "bytes")
    equal({(s.source_bck.name, s.destination_bck.name) for s in snapshots},
          {("jobs-see", "jobs-see-to")}, "buckets")
    assert all(s.is_idle and not s.aborted for s in snapshots), snapshots
    equal(len(job.get_within_timeframe(before)), len(snapshots), "since then")
    raises_no_info(lambda: job.get_within_timeframe(datetime.now(timezone.utc) + timedelta(hours=1)))
    assert job.get_total_time() >= timedelta(0)
    for wait in (job.wait, job.wait_for_idle, job.wait_single_node):
        assert waited(wait).success
    assert job.job_id in [s.uuid for s in c.cluster().list_jobs_status()]
    assert job.job_id in [s.uuid for s in c.cluster().list_jobs_status(job_kind="copy-bck")]
    equal(c.cluster().list_jobs_status(job_kind="ec-encode"), [], "jobs of no kind")
    assert not [j for j in c.cluster().list_running_jobs() if job.job_id in j]
    raises(AISError, (404,), c.job("cpy-none").status)
    raises(AISError, (404,), c.job("cpy-none").abort)
    raises_no_info(lambda: c.job(job_kind="ec-encode").get_within_timeframe(before))
    job.abort()  # it has ended: nothing happens
    assert waited(job.wait).success
    b.delete()
    to.delete()


def raises_no_info(call):
    try:
        call()
    except JobInfoNotFound:
        return
    raise AssertionError("no JobInfoNotFound")


def starts(c):
    for kind in ("lru", "cleanup-store", "cleanup"):
        done(c, c.job(job_kind=kind).start())
    kinds = {s.kind for s in c.job(job_kind="cleanup-store").get_details().list_snapshots()}
    equal(kinds, {"cleanup-store"}, "kinds")
    for kind in ("ec-encode", "", "resilver", "delete-listrange"):
        raises(AISError, (501,), c.job(job_kind=kind).start)
    raises(AISError, (501,), c.job(job_kind="lru").start, daemon_id="t1")
    raises(AISError, (501,), c.job(job_kind="lru").start, buckets=[c.bucket("b")])


def aborts(c):
    """A scrub at a rate at which it does not end: only the SDK's abort ends it."""
    by_id = c.job(sys.argv[3])
    assert [j for j in c.cluster().list_running_jobs("scrub") if by_id.job_id in j] == [
        f"scrub[{by_id.job_id}]"]
    equal(by_id.status().end_time, 0, "the end of a job that runs")
    assert not any(s.is_idle for s in by_id.get_details().list_snapshots())
    if sys.argv[4] == "id":
        by_id.abort()
    else:
        c.job(job_kind="scrub").abort()
    result = waited(by_id.wait)
    assert not result.success and "abort" in result.error, result
    assert by_id.status().aborted
    equal(c.cluster().list_running_jobs("scrub"), [], "scrubs that run")


# --- dSort ---------------------------------------------------------------------------------------


def shard_of(names):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        for name in names:
            info = tarfile.TarInfo(name)
            info.size = 2
            tar.addfile(info, io.BytesIO(b"xy"))
    return data.getvalue()


def records_of(b):
    """Names of the output's members, in order."""
    names = []
    for entry in b.list_all_objects(prefix="out-"):
        with tarfile.open(fileobj=io.BytesIO(reader_of(entry.object).read_all())) as tar:
            names += tar.getnames()
    return names


def group(b, role, form, extension=".tar"):
    return DsortShardsGroup(bck=b.as_model(), role=role, format=form, extension=extension)


def sorted_by(c, framework):
    d = c.dsort()
    job_id = d.start(framework)
    equal(d.dsort_id, job_id, "the id")
    result = waited(d.wait)
    assert result.success and result.end_time, result
    return c.dsort(job_id)


def sorts(c):
    b, to = c.bucket("jobs-sort").create(), c.bucket("jobs-sort-to").create()
    for i in range(4):
        b.object(f"in-{i}.tar").get_writer().put_content(
            shard_of([f"r-{(i * 37 + k * 11) % 50:02}-{i}-{k}.txt" for k in range(5)]))
    everything = sorted(f"r-{(i * 37 + k * 11) % 50:02}-{i}-{k}.txt"
                        for i in range(4) for k in range(5))
    framework = DsortFramework(
        input_shards=group(b, "input", ObjectNames([f"in-{i}" for i in range(4)])),
        output_shards=group(to, "output", ObjectRange("out-", 1, 9, pad_width=1)),
        algorithm=DsortAlgorithm(kind="alphanumeric"), description="by name",
        output_shard_size="10KB")
    done_sort = sorted_by(c, framework)
    equal(records_of(to), everything, "records")
    infos = done_sort.get_job_info()
    equal(set(infos), set(c.cluster().get_info().tmap), "targets")
    equal({(i.src_bck.name, i.dst_bck.name) for i in infos.values()},
          {("jobs-sort", "jobs-sort-to")}, "buckets")
    equal(sum(int(i.metrics.local_extraction.extracted_record_count) for i in infos.values()), 20,
          "records")
    equal(sum(int(i.objects) for i in infos.values()), len(to.list_all_objects()), "shards")
    equal({i.metrics.description for i in infos.values()}, {"by name"}, "descriptions")
    done_sort.abort()  # it has ended: nothing happens
    equal(c.job(done_sort.dsort_id).get_details().list_snapshots()[0].kind, "dsort", "the kind")
    by_a_key_map(c, b)
    sort_fails(c, b, to)
    raises(AISError, (404,), c.dsort("srt-none").get_job_info)
    raises(AISError, (404,), c.dsort("srt-none").abort)
    b.delete()
    to.delete()


def by_a_key_map(c, b):
    """The SDK stores the map as an object, and names that by a URL."""
    to = c.bucket("jobs-sort-map").create()
    keys = ExternalKeyMap()
    keys["out-a-%d.tar"] = ObjectNames(["^r-[01]"])
    keys["out-b-%d.tar"] = ObjectNames(["^r-[2-4]"])
    sorted_by(c, DsortFramework(
        input_shards=group(b, "input", ObjectNames([f"in-{i}" for i in range(4)])),
        output_shards=group(to, "output", keys), output_shard_size="10KB"))
    for kind, digits in (("a", "01"), ("b", "234")):
        for entry in to.list_all_objects(prefix=f"out-{kind}-"):
            with tarfile.open(fileobj=io.BytesIO(reader_of(entry.object).read_all())) as tar:
                assert {n[2] for n in tar.getnames()} <= set(digits), tar.getnames()
    equal(len(records_of(to)), 20, "records")
    to.delete()


def sort_fails(c, b, to):
    d = c.dsort()
    d.start(DsortFramework(
        input_shards=group(b, "input", ObjectNames(["in-0", "none"])),
        output_shards=group(to, "output", ObjectRange("new-", 1, 9)), output_shard_size="10KB"))
    result = waited(d.wait)
    assert not result.success and "none" in result.error, result
    equal([e.name for e in to.list_all_objects(prefix="new-")], [], "what a failed sort leaves")
    bad = DsortFramework(
        input_shards=group(b, "input", ObjectNames(["in-0"]), extension=".rar"),
        output_shards=group(to, "output", ObjectRange("new-", 1, 9)))
    raises(AISError, (400, 501), c.dsort().start, bad)
    raises(AISError, (404,), c.dsort().start, DsortFramework(
        input_shards=group(c.bucket("jobs-none"), "input", ObjectNames(["in-0"])),
        output_shards=group(to, "output", ObjectRange("new-", 1, 9))))


# --- sums ----------------------------------------------------------------------------------------


def sums(c):
    b = c.bucket("jobs-sums").create()
    empty = b.summary()
    equal((empty["ObjCount"]["obj_count_present"], empty["TotalSize"]["size_all_present_objs"]),
          ("0", "0"), "of an empty bucket")
    b.object("a/1").get_writer().put_content(b"x" * 10)
    b.object("a/2").get_writer().put_content(b"x" * 30)
    b.object("b").get_writer().put_content(b"x" * 101)
    got = b.summary()
    equal((got["name"], got["provider"], got["ObjCount"], got["ObjSize"]),
          ("jobs-sums", "ais", {"obj_count_present": "3", "obj_count_remote": "0"},
           {"obj_min_size": 10, "obj_avg_size": 47, "obj_max_size": 101}), "sums")
    equal(b.summary(prefix="a/")["TotalSize"]["size_all_present_objs"], "40", "of a prefix")
    equal(b.summary(prefix="none")["ObjCount"]["obj_count_present"], "0", "of a prefix of nothing")
    properties, got = b.info()
    equal(got["ObjCount"]["obj_count_present"], "3", "objects")
    assert '"provider":"ais"' in properties, properties
    equal(b.info(bsumm_remote=False)[1]["TotalSize"]["size_all_present_objs"], "141", "bytes")
    raises(AISError, (501,), b.info, prefix="a/")
    raises(AISError, (404,), c.bucket("jobs-none").info)
    raises(ErrBckNotFound, (404,), c.bucket("jobs-none").summary)
    b.delete()


# --- rights --------------------------------------------------------------------------------------


def refused(c, statuses):
    b = c.bucket("jobless")
    for call in (b.objects(obj_names=["o"]).delete, b.objects(obj_template="*").delete,
                 lambda: b.copy(c.bucket("jobless-to")), lambda: b.copy(b, prepend="p"),
                 lambda: b.objects(obj_names=["o"]).copy(b, prepend="p"),
                 lambda: b.objects(obj_names=["o"]).archive("x.tar"),
                 c.job("del-x").abort, c.job(job_kind="lru").start, c.job("del-x").status,
                 c.job("del-x").get_details, c.cluster().list_jobs_status,
                 c.cluster().list_running_jobs):
        raises(AISError, statuses, call)


def anonymous(c):
    refused(c, (401,))


def jobless(c):
    refused(c, (403,))


SETS = {"all": (deletes, copies, archives, details, starts, sorts, sums), "cold": (cold,),
        "aborts": (aborts,), "anonymous": (anonymous,), "jobless": (jobless,)}

if __name__ == "__main__":
    for step in SETS[sys.argv[2]]:
        step(Client(sys.argv[1], retry_config=None))

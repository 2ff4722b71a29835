#!/usr/bin/env python3
"""Jobs in the dialect of AIStore's SDK, by requests as the SDK sends them, at the primary and at
another proxy: what is refused, and nothing of it without the right.  The SDK itself is in
tests/clients/aistore_sdk.py."""

import io
import json
import os
import sys
import tarfile

from access_lib import GuardedCluster, make_user
from ais_dialect import action, refusal, sdk
from lib import ROOT, check, equal, main, wait_for

sys.path.insert(0, os.path.join(ROOT, "tests", "reference"))
from fake_s3 import FakeS3  # noqa: E402

JOB = {"ID": "", "Kind": "", "DaemonID": "", "Bck": None, "Buckets": None}
EMPTY = b'{"kind": "", "node": "", "show_active": false}'


def body(**fields):
    return action("", **fields).replace(b'{"action": "", "name": "", "value": ', b"")[:-1]


def started(reply):
    equal(reply.expect(202).headers["Content-Type"], "text/plain", "the type")
    return reply.body.decode()


def status(c, job, node="p1"):
    return sdk(c, "GET", "cluster?what=status", body(**{**JOB, "ID": job}), node).expect(200).json()


def ended(c, job, node="p1"):
    return wait_for(lambda: (lambda s: s["end_time"] and s)(status(c, job, node)), f"end of {job}")


def fill(c, bucket, count=20):
    c.create(bucket)
    for i in range(count):
        c.put(bucket, f"o-{i:02}", b"bytes")


def test_many_objects(c):
    fill(c, "many")
    c.create("many-to")
    for node, first in (("p1", 0), ("p2", 10)):
        names = [f"o-{i:02}" for i in range(first, first + 3)]
        to = {"name": "many-to", "provider": "ais", "namespace": None}
        job = started(sdk(c, "POST", "buckets/many", action(
            "copy-listrange", objnames=names, tobck=to, coer=False, prepend=f"{node}/"), node))
        end = ended(c, job, node)
        equal((end["kind"], end["err"], end["aborted"]), ("copy-listrange", "", False), "its end")
        equal(c.names("many-to", prefix=f"{node}/"), [f"{node}/{n}" for n in names], "copies")
        job = started(sdk(c, "DELETE", "buckets/many", action("delete-listrange", objnames=names),
                          node))
        equal(ended(c, job, node)["kind"], "delete-listrange", "the kind")
        job = started(sdk(c, "POST", "buckets/many?bck_to=ais/@%23/many-to/", action(
            "copy-bck", prefix=f"o-{first // 10}", prepend=f"{node}/all/"), node))
        ended(c, job, node)
        equal(len(c.names("many-to", prefix=f"{node}/all/")), 7, "copies of the bucket")
        targets = sdk(c, "GET", "cluster?what=qryxstats", body(**{**JOB, "ID": job}),
                      node).expect(200).json()
        equal(set(targets), {"t1", "t2"}, "targets")
        equal(sum(int(s["stats"]["loc-objs"]) for t in targets.values() for s in t), 7, "objects")
        all_jobs = sdk(c, "GET", "cluster?what=status_all", EMPTY, node).expect(200).json()
        check(job in [s["uuid"] for s in all_jobs], f"{all_jobs}")


def test_a_list_of_many_names(c):
    """Longer than the body of another call may be."""
    fill(c, "long", 3)
    names = [f"{i:06}" + "x" * 200 for i in range(6000)] + ["o-01"]
    job = started(sdk(c, "DELETE", "buckets/long", action("delete-listrange", objnames=names)))
    ended(c, job)
    equal(c.names("long"), ["o-00", "o-02"], "what is left")


def test_what_is_asked_is_wrong(c):
    fill(c, "wrong", 1)
    for method, name, value, code, begin in (
            ("DELETE", "delete-listrange", {}, 400, "invalid_spec"),
            ("DELETE", "delete-listrange", {"objnames": []}, 400, "invalid_spec"),
            ("DELETE", "delete-listrange", {"objnames": [1]}, 400, None),
            ("DELETE", "delete-listrange", {"objnames": ["a"], "template": "b"}, 400, "invalid_spec"),
            ("DELETE", "delete-listrange", {"template": "a{0..99999999999}"}, 400, "invalid_spec"),
            ("DELETE", "delete-listrange", {"template": "a%d"}, 400, "invalid_spec"),
            ("DELETE", "delete-listrange", {"objnames": ["a"], "new": 1}, 400, "invalid_json"),
            ("DELETE", "evict-listrange", {"template": "a"}, 400, "invalid_argument"),
            ("POST", "prefetch-listrange", {"template": "a"}, 400, "invalid_argument"),
            ("POST", "prefetch-listrange", {"template": "a", "num-workers": "x"}, 400, "invalid_json"),
            ("POST", "copy-listrange", {"template": "a"}, 400, "invalid_json"),
            ("POST", "copy-listrange", {"template": "a", "tobck": {"name": "none"}}, 404,
             "bucket_not_found"),
            ("POST", "copy-listrange", {"template": "a", "tobck": {"name": ""}}, 400, None),
            ("POST", "copy-bck", {}, 400, "invalid_argument"),
            ("POST", "etl-bck", {}, 501, "not_supported")):
        reply = sdk(c, method, "buckets/wrong", action(name, **value))
        equal(reply.status, code, f"{name} {value}: {reply!r}")
        if begin is not None:
            refusal(reply, code, begin, "ais://wrong: ")
    refusal(sdk(c, "DELETE", "buckets/none", action("delete-listrange", template="")), 404,
            "bucket_not_found", "ais://none: ")
    for method, name in (("POST", "copy-bck"), ("DELETE", "delete-listrange")):
        reply = sdk(c, method, "buckets/wrong", b'{"action": "%s", "value": 7}' % name.encode())
        refusal(reply, 400, "invalid_json", "ais://wrong: field 'value'")
    equal(c.names("wrong"), ["o-00"], "the bucket")


def test_jobs_that_are_not_there(c):
    for node in ("p1", "p2"):
        for what in ("status", "qryxstats"):
            reply = sdk(c, "GET", f"cluster?what={what}", body(**{**JOB, "ID": "none"}), node)
            refusal(reply, 404, "job_not_found", "no job has the id 'none'")
        reply = sdk(c, "PUT", "cluster", action("stop", **{**JOB, "ID": "none"}), node)
        refusal(reply, 404, "job_not_found", "no job has the id 'none'")
        sdk(c, "PUT", "cluster", action("stop", **{**JOB, "Kind": "ec-encode"}), node).expect(200)
        for data in (None, b"", b"[]", b"{", b'{"id": 1}', b'{"ID": []}'):
            equal(sdk(c, "GET", "cluster?what=status", data, node).status, 400, f"{data}")
        equal(sdk(c, "GET", "cluster?what=running_all", b'{"show_active": 1}', node).status, 400,
              "a word that is no truth")
        for data, status_of in ((action("stop", **JOB), 400), (action("start", **JOB), 501),
                                (action("start", Kind=7), 400), (action("none"), 501), (b"{}", 400),
                                (action("start", Kind="lru", Buckets=[{"name": "b"}]), 501),
                                (action("start", Kind="sort"), 501)):
            equal(sdk(c, "PUT", "cluster", data, node).status, status_of, f"{data}")
        for what in ("", "?what=", "?what=smap", "?what=cluster_config"):
            refusal(sdk(c, "GET", f"cluster{what}", b"{}", node), 501, "not_supported", "GET")


def test_one_job_is_stopped_of_two(c):
    c.create("slow")
    for i in range(16):
        c.put("slow", f"o-{i}", b"x" * 100000)
    jobs = [c.call("POST", "/v1/jobs", {"action": "start", "name": name, "value": value}
                   ).expect(202).json()["id"]
            for name, value in (("scrub", {"rate": 1000}),
                                ("validate", {"rate": 1000, "checksums": True}))]
    for job in jobs:
        wait_for(lambda job=job: c.get_json(f"/v1/jobs/{job}")["state"] == "running", "they run")
    running = sdk(c, "GET", "cluster?what=running_all", EMPTY).expect(200).json()
    equal({r for r in running if r.split("[")[0] in ("scrub", "validate")},
          {f"scrub[{jobs[0]}]", f"validate[{jobs[1]}]"}, "what runs")
    here = b'{"node": "t1", "kind": "scrub", "show_active": true}'
    equal([s["uuid"] for s in sdk(c, "GET", "cluster?what=status_all", here).expect(200).json()],
          [jobs[0]], "of one target")
    elsewhere = here.replace(b"t1", b"t9")
    equal(sdk(c, "GET", "cluster?what=status_all", elsewhere).expect(200).json(), [], "of no target")
    sdk(c, "PUT", "cluster", action("stop", **{**JOB, "Kind": "scrub"}), "p2").expect(200)
    end = ended(c, jobs[0])
    equal((end["aborted"], end["err"]), (True, "aborted on request"), "its end")
    equal(status(c, jobs[1])["end_time"], 0, "the end of the other one")
    for _ in range(2):  # the second time it has ended, or is about to
        sdk(c, "PUT", "cluster", action("stop", **{**JOB, "ID": jobs[1]})).expect(200)
    check(ended(c, jobs[1])["aborted"], "it is aborted")


def test_rights(c):
    """Of each call alone: without one of the rights that it needs, nothing happens."""
    fill(c, "mine", 4)
    c.create("yours")
    c.put("yours", "o", b"bytes")
    calls = {
        "delete": lambda by: sdk(c, "DELETE", "buckets/mine", action(
            "delete-listrange", objnames=["o-00"]), by=by),
        "all": lambda by: sdk(c, "DELETE", "buckets/mine", action(
            "delete-listrange", template=""), by=by),
        "copy": lambda by: sdk(c, "POST", "buckets/mine", action(
            "copy-listrange", objnames=["o-00"], tobck={"name": "yours"}, prepend="p"), by=by),
        "bucket": lambda by: sdk(c, "POST", "buckets/mine?bck_to=ais/@%23/yours/", action(
            "copy-bck", prepend="p"), by=by),
        "destroy": lambda by: sdk(c, "DELETE", "buckets/mine", action("destroy-bck"), by=by),
        "unknown": lambda by: sdk(c, "DELETE", "buckets/mine", action("evict-remote-bck"), by=by),
        "start": lambda by: sdk(c, "PUT", "cluster", action("start", Kind="lru"), by=by),
        "stop": lambda by: sdk(c, "PUT", "cluster", action("stop", Kind="lru"), by=by),
    }
    everything = ["read", "list", "write", "delete"]
    for n, rights in enumerate((
            [], [{"rights": everything, "bucket": "mine"}],
            [{"rights": ["jobs"]}, {"rights": ["read", "list"], "bucket": "mine"}],
            [{"rights": ["jobs"]}, {"rights": everything, "bucket": "mine", "prefix": "other/"},
             {"rights": everything, "bucket": "yours"}])):
        by = make_user(c, f"user-{n}", rights)
        for name, call in calls.items():
            if n < 2 or name not in ("start", "stop"):
                equal(call(by).status, 403, f"{name} with {rights}")
    for name, call in calls.items():
        equal(call(False).status, 401, f"{name} by nobody")
    equal((c.names("mine"), c.names("yours")), ([f"o-{i:02}" for i in range(4)], ["o"]), "objects")
    by = make_user(c, "part", [{"rights": ["jobs", "see"]},
                               {"rights": ["delete"], "bucket": "mine", "prefix": "o-01"}])
    job = started(sdk(c, "DELETE", "buckets/mine", action("delete-listrange", objnames=["o-01"]),
                      by=by))
    ended(c, job)
    equal(c.names("mine"), ["o-00", "o-02", "o-03"], "what is left")
    refusal(sdk(c, "DELETE", "buckets/mine", action("delete-listrange", objnames=["o-01", "o-02"]),
                by=by), 403, "access_denied", "ais://mine: ")


# --- dSort ---------------------------------------------------------------------------------------


def shard_of(names):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        for name in names:
            info = tarfile.TarInfo(name)
            info.size = 1
            tar.addfile(info, io.BytesIO(b"x"))
    return data.getvalue()


def sort_spec(source, to, **more):
    return json.dumps({
        "input_bck": {"name": source, "provider": "ais"}, "input_extension": ".tar",
        "output_bck": {"name": to, "provider": "ais"}, "output_extension": ".tar",
        "input_format": {"objnames": ["in-0", "in-1"]}, "output_format": "out-{0..9}",
        "output_shard_size": "10KB", "description": "",
        "algorithm": {"kind": "alphanumeric", "decreasing": False, "seed": ""}, **more}).encode()


def sort_infos(c, job, node="p1", by=None):
    return sdk(c, "GET", f"sort?uuid={job}", node=node, by=by)


def sort_ended(c, job, node="p1"):
    def reached():
        infos = list(sort_infos(c, job, node).expect(200).json().values())
        over = [i["Metrics"]["shard_creation"]["finished"] or i["aborted"] for i in infos]
        return infos if infos and all(over) else None

    return wait_for(reached, f"end of {job}")


def fill_shards(c, source, to):
    c.create(source)
    c.create(to)
    c.put(source, "in-0.tar", shard_of(["b.txt", "d.txt"]))
    c.put(source, "in-1.tar", shard_of(["a.txt", "c.txt"]))


def test_sorts(c):
    fill_shards(c, "sort", "sort-to")
    c.put("sort", "key maps/ü", b'{"x-%d.tar": ["a", "b"], "y-%d.tar": ["^[cd]"]}')
    for node in ("p1", "p2"):
        job = started(sdk(c, "POST", "sort", sort_spec(
            "sort", "sort-to", output_format=f"{node}-{{0..9}}"), node))
        for info in sort_ended(c, job, node):
            equal((info["id"], info["aborted"], info["Metrics"]["errors"]), (job, False, []), "end")
        equal(c.names("sort-to", prefix=f"{node}-"), [f"{node}-0.tar"], "shards")
        sdk(c, "DELETE", f"sort/abort?uuid={job}", node=node).expect(200)
        check(not any(i["aborted"] for i in sort_ended(c, job, node)), "it has ended")
        for owner in ("p1", "p2"):
            url = f"{c.url(owner)}/v1/objects/sort/key%20maps/%C3%BC?provider=ais"
            job = started(sdk(c, "POST", "sort", sort_spec(
                "sort", "sort-to", output_format="", ekm_file=url, ekm_sep=""), node))
            equal({i["aborted"] for i in sort_ended(c, job, node)}, {False}, "its end")
            equal(c.names("sort-to", prefix="x") + c.names("sort-to", prefix="y"),
                  ["x-0.tar", "y-0.tar"], "shards by the key map")
            for name in ("x-0.tar", "y-0.tar"):
                c.object("DELETE", "sort-to", name).expect(204)


def test_a_sort_that_is_wrong(c):
    fill_shards(c, "wrong-sort", "wrong-sort-to")
    good = {"source": "wrong-sort", "to": "wrong-sort-to"}
    for more, status_of in (
            ({"source": "none"}, 404), ({"input_extension": ".rar"}, 400), ({"unknown": 1}, 400),
            ({"dsorter_type": "dsort_mem"}, 501), ({"input_bck": {"name": "b", "provider": "aws"}}, 501),
            ({"ekm_file": f"{c.url()}/v1/objects/b/%zz"}, 400),
            ({"ekm_file": f"{c.url()}/v1/objects/b", "output_format": ""}, 400)):
        reply = sdk(c, "POST", "sort", sort_spec(**{**good, **more}))
        equal(reply.status, status_of, f"{more}: {reply!r}")
    for data in (None, b"", b"[]", b"{", b"{}", b"7"):
        equal(sdk(c, "POST", "sort", data).status, 400, f"a sort by {data}")
    job = started(sdk(c, "POST", "sort", sort_spec(**good, input_format={"objnames": ["in-7"]})))
    for info in sort_ended(c, job):
        equal((info["aborted"], info["archived"], len(info["Metrics"]["errors"])), (True, True, 1),
              "its end")
    other = c.call("POST", "/v1/jobs", {"action": "start", "name": "cleanup"}).expect(202).json()["id"]
    for node in ("p1", "p2"):
        for method, path in (("GET", "sort"), ("DELETE", "sort/abort")):
            for uuid, status_of in (("?uuid=none", 404), (f"?uuid={other}", 404), ("", 400)):
                equal(sdk(c, method, path + uuid, node=node).status, status_of, f"{path}{uuid}")
    wait_for(lambda: c.get_json(f"/v1/jobs/{other}")["state"] == "finished", "end of the cleanup")


def test_a_sort_is_aborted(c):
    """While it waits for a target that is away."""
    fill_shards(c, "stuck", "stuck-to")
    c.kill("t2")
    job = None
    try:
        reply = sdk(c, "POST", "sort", sort_spec("stuck", "stuck-to"), "p2")
        if reply.status == 202:  # else the cluster knows already that the target is gone
            job = started(reply)
            sdk(c, "DELETE", f"sort/abort?uuid={job}", node="p2").expect(200)
    finally:
        c.start("t2")
        c.wait_node("t2", "active")
    if job is not None:
        equal({i["aborted"] for i in sort_ended(c, job)}, {True}, "it is aborted")
        equal(c.names("stuck-to"), [], "what is left")


def test_rights_on_sorts(c):
    fill_shards(c, "own", "own-to")
    c.create("keys")
    c.put("keys", "map", b'{"x-%d.tar": ["a", "b", "c", "d"]}')
    job = started(sdk(c, "POST", "sort", sort_spec("own", "own-to")))
    sort_ended(c, job)
    by_map = {"output_format": "", "ekm_file": f"{c.url()}/v1/objects/keys/map?provider=ais"}
    both = [{"rights": ["read"], "bucket": "own"}, {"rights": ["write"], "bucket": "own-to"}]
    for n, (grants, more) in enumerate((
            ([], {}), (both, {}), ([{"rights": ["jobs"]}, both[0]], {}),
            ([{"rights": ["jobs"]}, both[1]], {}), ([{"rights": ["jobs"]}, *both], by_map))):
        by = make_user(c, f"sorter-{n}", grants)
        reply = sdk(c, "POST", "sort", sort_spec("own", "own-to", **more), by=by)
        equal(reply.status, 403, f"a sort with {grants}: {reply!r}")
        if n < 2:
            equal(sdk(c, "DELETE", f"sort/abort?uuid={job}", by=by).status, 403, "an abort")
        if n == 0:
            equal(sort_infos(c, job, by=by).status, 403, "a look")
    for method, path in (("POST", "sort"), ("GET", f"sort?uuid={job}"),
                         ("DELETE", f"sort/abort?uuid={job}")):
        equal(sdk(c, method, path, sort_spec("own", "own-to") if method == "POST" else None,
                  by=False).status, 401, f"{method} by nobody")
    by = make_user(c, "sorter", [{"rights": ["jobs", "see"]}, *both])
    job = started(sdk(c, "POST", "sort", sort_spec("own", "own-to", output_format="by-{0..9}"), by=by))
    sort_ended(c, job)
    equal(c.names("own-to", prefix="by"), ["by-0.tar"], "shards")
    equal(c.names("own-to", prefix="x"), [], "shards by the key map")


# --- sums ----------------------------------------------------------------------------------------


def begin_sums(c, bucket, node="p1", by=None, **value):
    """The id of a summary, which is to be made."""
    return started(sdk(c, "GET", f"buckets/{bucket}", action("summary-bck", uuid="", **value), node,
                       by=by))


def ask_sums(c, bucket, uuid, node="p1", by=None, **value):
    return sdk(c, "GET", f"buckets/{bucket}", action("summary-bck", uuid=uuid, **value), node, by=by)


def test_sums(c):
    fill(c, "sums", 12)
    for node in ("p1", "p2"):
        uuid = begin_sums(c, "sums", node, prefix="o-0", cached=True, present=True)
        sums = ask_sums(c, "sums", uuid, node, prefix="o-0", cached=True, present=True)
        equal([s["ObjCount"]["obj_count_present"] for s in sums.expect(200).json()], ["10"], "objects")
        reply = sdk(c, "HEAD", "buckets/sums?bsumm_remote=True&presence=0", node=node).expect(202)
        uuid = reply.headers["Ais-Xaction-Id"]
        for remote in ("True", "False", "true"):
            reply = sdk(c, "HEAD", f"buckets/sums?bsumm_remote={remote}&uuid={uuid}", node=node)
            sums = json.loads(reply.expect(200).headers["Ais-Bucket-Summ"])
            equal(sums["TotalSize"]["size_all_present_objs"], "60", "bytes")
            equal(json.loads(reply.headers["Ais-Bucket-Props"])["provider"], "ais", "properties")
    for value in ({"prefix": 7}, {"uuid": 7}, {"uuid": "x" * 65}, {"cached": "yes"},
                  {"prefix": "x" * 2000}):
        reply = sdk(c, "GET", "buckets/sums", action("summary-bck", **value))
        equal(reply.status, 400, f"{value}: {reply!r}")
    equal(sdk(c, "HEAD", "buckets/sums?bsumm_remote=perhaps").status, 400, "a word that is no truth")
    refusal(ask_sums(c, "none", "x"), 404, "bucket_not_found", "ais://none: ")
    equal(sdk(c, "HEAD", "buckets/none?bsumm_remote=True").status, 404, "of no bucket")


def test_sums_of_many_names(c):
    """Longer than one page: this cluster's requests sum up one page each."""
    with FakeS3() as s3:
        for i in range(12000):
            s3.put("many", f"o-{i:05}", b"xyz")
        c.create("far", backend=f"s3://many?endpoint={s3.url}&auth=none")
        for i in (3, 11999):
            c.get("far", f"o-{i:05}").expect(200)
        uuid = begin_sums(c, "far")
        equal(ask_sums(c, "far", uuid).status, 202, "after the first page")
        equal(ask_sums(c, "far", uuid, prefix="o-1").status, 200, "of a part alone")
        equal(ask_sums(c, "far", "another").status, 202, "by another id")
        sums = ask_sums(c, "far", uuid).expect(200).json()[0]
        equal((sums["ObjCount"], sums["TotalSize"]["size_all_remote_objs"]),
              ({"obj_count_present": "2", "obj_count_remote": "12000"}, "36000"), "sums")
        equal(ask_sums(c, "far", uuid).status, 202, "by an id that has ended: it begins anew")
        sums = ask_sums(c, "far", uuid, cached=True).expect(200).json()[0]
        equal(sums["ObjCount"], {"obj_count_present": "2", "obj_count_remote": "0"}, "here")
        c.destroy("far")


def test_rights_on_sums(c):
    fill(c, "hidden", 3)
    by = make_user(c, "counter", [{"rights": ["list"], "bucket": "hidden", "prefix": "o-00"}])
    uuid = begin_sums(c, "hidden", by=by, prefix="o-00")
    sums = ask_sums(c, "hidden", uuid, by=by, prefix="o-00").expect(200).json()[0]
    equal(sums["ObjCount"]["obj_count_present"], "1", "objects that it may see")
    for prefix in ("", "o-0"):
        refusal(ask_sums(c, "hidden", uuid, by=by, prefix=prefix), 403, "access_denied",
                "ais://hidden: ")
    nobody = make_user(c, "blind", [])
    for who, status_of in ((by, 403), (nobody, 403), (False, 401)):
        for query in ("", "&uuid=x"):
            reply = sdk(c, "HEAD", f"buckets/hidden?bsumm_remote=True{query}", by=who)
            equal(reply.status, status_of, f"{query}")
    for who, status_of in ((nobody, 403), (False, 401)):
        equal(ask_sums(c, "hidden", "x", by=who, prefix="o-00").status, status_of, "a summary")


if __name__ == "__main__":
    main(GuardedCluster, proxies=2, targets=2, args=["--proxy-arg=--summary-turn=0"])

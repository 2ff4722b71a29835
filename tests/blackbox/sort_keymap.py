#!/usr/bin/env python3
"""External key maps by HTTP and as objects; AIStore's published example specs run as they are."""

import http.server
import io
import json
import os
import tarfile
import threading

from lib import check, equal, main, wait_for
from sort_errors import job_files

SHARDS = 10
NAMES = [f"{kind}_{i}" for i in range(SHARDS) for kind in ("cat", "dog", "car")]

# As AIStore's documentation (dsort.md, cli/dsort.md) has them, but for the sizes of
# names.
SORT = {"extension": ".tar", "bck": {"name": "dsort-testing"}, "input_format": "shard-{0..9}",
        "output_format": "new-shard-{0000..1000}", "output_shard_size": "10KB",
        "description": "sort shards from 0 to 9", "algorithm": {"kind": "alphanumeric"},
        "extract_concurrency_max_limit": 3, "create_concurrency_max_limit": 5}
SORT_NOW = {"input_extension": ".tar", "input_bck": {"name": "dsort-testing"},
            "input_format": {"template": "shard-{0..9}"},
            "output_format": "sorted-shard-{0000..1000}", "output_shard_size": "10KB",
            "description": "sort shards from 0 to 9", "algorithm": {"kind": "alphanumeric"},
            "extract_concurrency_max_limit": 3, "create_concurrency_max_limit": 5}
SHUFFLE = {**SORT_NOW, "output_format": "shuffled-{0000..1000}", "description": "shuffle",
           "output_extension": ".tar.gz", "algorithm": {"kind": "shuffle"}}
CONTENT = {**SORT_NOW, "output_format": "content-{0000..1000}",
           "algorithm": {"kind": "content", "extension": ".cls", "content_key_type": "int",
                         "decreasing": True},
           "description": "sort by content, decreasing", "output_extension": ".tar.lz4"}
AS_THEY_ARE = {**SORT_NOW, "input_format": {"prefix": "content-"}, "input_extension": ".tar.lz4",
               "output_format": "shown-{0000..1000}", "output_extension": ".tar",
               "algorithm": {"kind": "none"}, "description": "what that came to"}
PACK = {"input_extension": ".tar", "input_bck": {"name": "dsort-testing"},
        "input_format": {"template": "shard-{0..9}"}, "output_shard_size": "200KB",
        "description": "pack records into categories", "ekm_file_sep": " "}


def tar_of(names):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name in names:
            for extension, data in ((".txt", name.encode()), (".cls", name[4:].encode())):
                info = tarfile.TarInfo(name + extension)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def records(c, prefix):
    """The names of records by output shard."""
    found = {}
    for shard in c.names("dsort-testing", prefix=prefix):
        body = c.get("dsort-testing", shard).expect(200).body
        with tarfile.open(fileobj=io.BytesIO(body)) as tar:
            found[shard] = [n[:-4] for n in tar.getnames() if n.endswith(".txt")]
    return found


def finished(c, spec):
    job = c.wait_job(c.sort(spec))
    equal(job["state"], "finished", f"state of {spec['description']}; {job['errors']}")
    wait_for(lambda: not job_files(c), "the job's files are removed")
    return job


def failed(c, code, text, **changes):
    before = c.names("dsort-testing")
    job = c.wait_job(c.sort({**PACK, **changes}))
    equal(job["state"], "failed", f"state with {changes}")
    equal(job["redone"]["attempts"], 0, "how often it began again")
    check(any(e["code"] == code and text in e["message"] for e in job["errors"]),
          f"wanted {code} with '{text}': {job['errors']}")
    equal(c.names("dsort-testing"), before, "names afterwards")


def test_inputs(c):
    c.create("dsort-testing", durability="async")
    c.create("maps")
    for i in range(SHARDS):
        c.put("dsort-testing", f"shard-{i}.tar", tar_of(NAMES[i * 3:i * 3 + 3]))


def test_published_specs(c):
    finished(c, SORT)
    equal(sum(records(c, "new-shard-").values(), []), sorted(NAMES), "records, sorted")
    for spec in (SORT_NOW, SHUFFLE, CONTENT):
        finished(c, spec)
    equal(list(records(c, "sorted-").values()), list(records(c, "new-").values()),
          "what both forms of the spec come to")
    equal(sorted(sum(records(c, "shuffled-").values(), [])), sorted(NAMES), "records, shuffled")
    finished(c, AS_THEY_ARE)  # which are not read here: .tar.lz4
    by_content = sorted(sorted(NAMES), key=lambda name: -int(name[4:]))
    equal(sum(records(c, "shown-").values(), []), by_content, "records by content, decreasing")


def test_a_plan_stores_nothing(c):
    before = c.names("dsort-testing")
    c.put("maps", "plan.txt", b".* planned-%d\n")
    spec = os.path.join(c.dir, "plan.json")
    with open(spec, "w", encoding="utf-8") as f:
        json.dump({**PACK, "ekm_file": "dfc://maps/plan.txt"}, f)
    done = c.dfcctl("sort", "plan", spec)
    check(f"1 shards, {len(NAMES)} records" in done.stdout, f"plan: {done}")
    check("between targets (if owners built all shards:" in done.stdout, f"plan: {done}")
    equal(c.names("dsort-testing"), before, "names afterwards")


def test_a_map_from_an_object(c):
    """Keys are written with their extensions there."""
    lines = "".join(f"{n}.txt shard-{n.partition('_')[0]}s-%d\n" for n in NAMES)
    c.put("maps", "order.txt", lines.encode())
    finished(c, {**PACK, "ekm_file": "ais://maps/order.txt"})
    for kind in ("cat", "dog", "car"):
        equal(records(c, f"shard-{kind}s-"),
              {f"shard-{kind}s-0.tar": [f"{kind}_{i}" for i in range(SHARDS)]}, f"{kind}s")


def test_a_map_by_http(c):
    """JSON, patterns, several shards for a format, several templates."""
    text = json.dumps(
        {"http-cat-{00..20}.tar": ["^cat_"], "http-rest-%03d.tar": ["^dog_\\d$", "car_.*"]})

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):  # pylint: disable=invalid-name
            found = self.path == "/static/order.json"
            self.send_response(200 if found else 404)
            self.send_header("Content-Length", str(len(text) if found else 0))
            self.end_headers()
            self.wfile.write(text.encode() if found else b"")

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/static/"
    try:
        job = finished(c, {**PACK, "ekm_file": url + "order.json", "output_shard_size": "4KiB"})
        failed(c, "backend_error", "external key map", ekm_file=url + "nothing")
    finally:
        server.shutdown()
        server.server_close()
    failed(c, "backend_error", "external key map", ekm_file=url + "order.json")  # nobody listens
    cats, rest = records(c, "http-cat-"), records(c, "http-rest-")
    equal(sum(cats.values(), []), [f"cat_{i}" for i in range(SHARDS)], "cats")
    equal(sum(rest.values(), []), sorted(n for n in NAMES if not n.startswith("cat")), "the rest")
    equal(list(cats), [f"http-cat-{i:02d}.tar" for i in range(len(cats))], "names of cats' shards")
    check(len(cats) > 1 and len(rest) > 1, "a format rolls over")
    equal(job["plan"]["records"], len(NAMES), "records of the plan")


def test_policies(c):
    c.put("maps", "part.txt", b"cat_.* p-%d\nno separator here\n")
    spec = {"ekm_file": "dfc://maps/part.txt"}
    failed(c, "invalid_spec", "line 2", **spec)
    failed(c, "key_missing", "(2 of the shard's 3 records)", **spec,
           config={"ekm_malformed_line": "ignore"})
    job = finished(c, {**PACK, **spec, "ekm_malformed_line": "warn", "ekm_missing_key": "warn"})
    equal(list(records(c, "p-").values()), [[f"cat_{i}" for i in range(SHARDS)]], "records")
    check(any("line 2" in w for w in job["warnings"]), f"warnings: {job['warnings']}")
    check(any("dog_" in w for w in job["warnings"]), f"warnings: {job['warnings']}")


def test_refusals(c):
    failed(c, "object_not_found", "external key map", ekm_file="dfc://maps/nothing")
    c.put("maps", "both.json", json.dumps({"a-%d": ["cat"], "b-%d": ["t_1"]}).encode())
    failed(c, "invalid_spec", "cat_1", ekm_file="dfc://maps/both.json", ekm_keys="regex",
           ekm_missing_key="ignore")
    c.put("maps", "small.json", json.dumps({"small-{0..1}": ["_"]}).encode())
    failed(c, "template_too_small", "small-", ekm_file="dfc://maps/small.json", ekm_keys="regex",
           output_shard_size="1KiB")
    c.put("maps", "same.json",
          json.dumps({"same-%d": ["cat_.*"], "same-{0..9}": ["car.*", "dog.*"]}).encode())
    failed(c, "invalid_spec", "same-0.tar", ekm_file="dfc://maps/same.json")
    c.put("maps", "there.json", json.dumps({"shard-%d": ["_."]}).encode())
    failed(c, "object_exists", "shard-0.tar", ekm_file="dfc://maps/there.json", ekm_keys="regex")


if __name__ == "__main__":
    main(targets=3)

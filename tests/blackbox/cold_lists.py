#!/usr/bin/env python3
"""Lists of buckets with a backend: its names and what is here as one, in order, page by page,
complete or
refused.

DFC_NAMES=10000000 lists so many names at the end (default: 20000), and says how memory grew."""

import hashlib
import json
import os
import random
import sys

from lib import ROOT, check, equal, main

sys.path.insert(0, os.path.join(ROOT, "tests", "reference"))
from fake_s3 import FakeS3  # noqa: E402

S3 = FakeS3(page_max=7)
RANDOM = random.Random(5)
NAMES = sorted(
    {
        "".join(
            RANDOM.choice(("a", "b", "ab", "/", " ", "ä", "+", "%", "&", "0"))
            for _ in range(length))
        for length in range(1, 12) for _ in range(6)
    }, key=str.encode)
MANY = int(os.environ.get("DFC_NAMES", 20000))


def model(names, prefix="", delimiter="", after=""):
    """(names, common prefixes) behind `after`, as the contract has it."""
    entries, prefixes = [], []
    for name in names:
        cut = name.find(delimiter, len(prefix)) if delimiter else -1
        if not name.startswith(prefix):
            continue
        item = name if cut < 0 else name[:cut + len(delimiter)]
        into = entries if cut < 0 else prefixes
        if item.encode() > after.encode() and item not in into[-1:]:
            into.append(item)
    return entries, prefixes


def listed(c, bucket="s3", **query):
    entries, prefixes = [], []
    for page in c.pages(bucket, **query):
        check(page["incomplete"] is False, "a page says that it is incomplete")
        entries += [e["name"] for e in page["entries"]]
        prefixes += page["prefixes"]
    return entries, prefixes


def entry(c, name):
    return next(e for page in c.pages("s3") for e in page["entries"] if e["name"] == name)


def test_names_that_are_not_here(c):
    for name in NAMES:
        S3.put("data", "pre/" + name, name.encode())
    S3.put("data", "pre/", b"no name of ours")
    S3.put("data", "pre/" + "x" * 1025, b"too long a name")
    S3.put("data", "other", b"another prefix")
    c.create("s3", backend=f"s3://data/pre?endpoint={S3.url}&auth=none", write_policy="through")
    equal(listed(c), (NAMES, []), "all names")
    equal(c.names("s3", cached="true"), [], "what is here")
    got = entry(c, NAMES[0])
    equal(
        got, {
            "name": NAMES[0], "size": len(NAMES[0].encode()), "version": "0.0.0", "cached": False,
            "etag": f'"{hashlib.md5(NAMES[0].encode()).hexdigest()}"',
            "modified_ms": 1_700_000_000_000
        }, "what is said of one")


def test_a_show_of_what_is_not_here_leaves_the_backend_open(c):
    for flags in ((), ("-o", "json")):
        done = c.dfcctl("object", "show", "s3/" + NAMES[0], *flags)
        equal(done.returncode, 0, f"the exit code: {done.stderr}")
        check("does not exist" not in done.stderr, done.stderr)
        if not flags:
            check("no target has it; the backend was not asked" in done.stderr, done.stderr)
    equal(c.names("s3", cached="true"), [], "what is here")


def test_merged_with_what_is_here(c):
    here = RANDOM.sample(NAMES, 30)
    for name in here:
        c.get("s3", name).expect(200)
    S3.put("data", "pre/only-here", b"x")
    c.get("s3", "only-here").expect(200)
    S3.remove("data", "pre/only-here")
    names = sorted(NAMES + ["only-here"], key=str.encode)
    equal(listed(c), (names, []), "all names, each once")
    equal(c.names("s3", cached="true"), sorted(here + ["only-here"], key=str.encode),
          "what is here")
    check("cached" not in entry(c, here[0]), "it is here")
    c.object("DELETE", "s3", "only-here").expect(204)
    equal(listed(c), (NAMES, []), "without what was deleted")


def test_pages(c):
    for limit in (1, 2, 8, 50):
        equal(listed(c, limit=limit), (NAMES, []), f"pages of {limit}")
    for prefix in ("", "a", "ä", "none"):
        for delimiter in ("", "/", "ab"):
            for limit in (3, 1000):
                query = {"prefix": prefix, "delimiter": delimiter, "limit": limit}
                equal(listed(c, **query), model(NAMES, prefix, delimiter), f"{query}")
    for after in RANDOM.sample([n for n in NAMES if " " not in n], 3) + ["a/", "b/zz"]:
        for delimiter in ("", "/"):
            query = {"start_after": after, "delimiter": delimiter, "limit": 3}
            equal(listed(c, **query), model(NAMES, "", delimiter, after), f"{query}")


def test_writes_are_listed(c):
    c.object("PUT", "s3", "zz/new", b"new").expect(200)
    check("cached" not in entry(c, "zz/new"), "it is here")
    equal(c.names("s3"), sorted(NAMES + ["zz/new"], key=str.encode), "all names")
    c.object("DELETE", "s3", "zz/new").expect(204)
    equal(listed(c), (NAMES, []), "all names")


def test_failures_that_pass(c):
    for fault in ({"status": 503}, {"status": 500}):
        S3.fail("", **fault)
        equal(listed(c), (NAMES, []), f"after {fault}")


def test_complete_or_refused(c):
    for fault, status, code in (({"status": 403}, 403, "backend_denied"), ({
            "status": 404
    }, 502, "backend_error"), ({"text": b"<html>"}, 502, "backend_error"), ({
            "text": b"<ListBucketResult><Contents><Key>a</Key>"
    }, 502, "backend_error"), ({
            "text": b"<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>"
    }, 502, "backend_error"), ({"status": 503, "times": 5}, 503, "backend_unavailable")):
        S3.fail("", **fault)
        c.call("GET", "/v1/objects/s3").expect(status, code)
        S3.calm()
    S3.fail("", status=403)
    page = c.get_json("/v1/objects/s3?partial=true")
    check(page["incomplete"], "it says so")
    check(all("cached" not in e for e in page["entries"]), "what is here")
    S3.calm()
    S3.fail("", status=403)
    check(len(c.names("s3", cached="true")) == 30, "what is here needs no backend")
    S3.calm()


def test_dfcctl(c):
    done = c.dfcctl("ls", "s3", "-o", "json")
    equal(done.returncode, 0, done.stderr)
    entries = json.loads(done.stdout)["entries"]
    equal([e["name"] for e in entries], NAMES, "all names")
    equal(sum("cached" not in e for e in entries), 30, "those that are here")
    done = c.dfcctl("ls", "s3", "--cached", "-o", "json")
    equal(len(json.loads(done.stdout)["entries"]), 30, "those that are here")


def shown(c, *words, code=0):
    done = c.dfcctl("bucket", "ls", "-o", "json", *words)
    equal(done.returncode, code, done.stderr)
    return {b["name"]: b for b in json.loads(done.stdout)["buckets"]}


def test_how_much_is_here(c):
    c.create("plain")
    c.create("web", backend=f"{S3.url}/data/pre/")
    here = {
        "objects": 30,
        "bytes": sum(e["size"] for p in c.pages("s3", cached="true") for e in p["entries"])
    }
    before = S3.count("")
    check(before > 0, "lists of the backend are counted")
    equal(shown(c)["s3"]["cached"], here, "by the indexes")
    equal(S3.count(""), before, "the backend is not asked for that")
    buckets = shown(c, "--totals")
    total = {"of_objects": len(NAMES), "of_bytes": sum(len(n.encode()) for n in NAMES)}
    equal(buckets["s3"]["cached"], {**here, **total}, "of how much")
    equal(buckets["web"]["cached"], {"objects": 0, "bytes": 0}, "a backend that cannot be listed")
    check("cached" not in buckets["plain"], "a bucket of its own")
    check(f"30 of {len(NAMES)} (" in c.dfcctl("bucket", "ls", "--totals").stdout, "as a table")
    S3.fail("", status=403)
    equal(shown(c, "--totals", code=6)["s3"]["cached"], here, "the backend does not say")
    S3.calm()


def resident_kib(c, node):
    with open(f"/proc/{c.pid(node)}/status", encoding="ascii") as f:
        return int(next(line for line in f if line.startswith("VmRSS")).split()[1])


def test_as_many_as_there_are(c):
    """Over a restart of the target that asks, too: a token is all that goes on."""
    S3.many("many", MANY)
    S3.page_max = 1000
    c.create("many", backend=f"s3://many?endpoint={S3.url}&auth=none")
    count, pages, before = 0, 0, {}
    for page in c.pages("many"):
        for e in page["entries"]:
            equal(e["name"], f"{count:09d}", "the next name")
            count += 1
        pages += 1
        if pages == 2:
            for node in c.targets():
                c.restart(node)
        if pages == 10:
            before = {node: resident_kib(c, node) for node in c.nodes}
    equal(count, MANY, "names")
    grown = {node: resident_kib(c, node) - kib for node, kib in before.items()}
    print(f"{count} names in {pages} pages; KiB grown since the tenth: {grown}")


if __name__ == "__main__":
    with S3:
        main(targets=2, args=[f"--target-arg={a}" for a in (
            "--backend-backoff=5ms", "--backend-backoff-max=2s", "--backend-retries=2")])

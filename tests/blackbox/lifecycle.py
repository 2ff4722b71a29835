#!/usr/bin/env python3
"""Lifecycle rules: the job `expire` deletes what they expire, and nothing else: not what was written
meanwhile, nor once the rules are changed, whatever nodes die."""

import email.utils
import os
import tempfile
import xml.etree.ElementTree as ElementTree

from lib import ENDED, check, equal, in_parallel, main, wait_for
from s3_lib import NAMESPACE, S3, refused

DOCUMENT = "<LifecycleConfiguration>{}</LifecycleConfiguration>"
RULE = "<Rule><ID>{}</ID><Filter>{}</Filter><Status>{}</Status>{}</Rule>"
TAG = "<Tag><Key>{}</Key><Value>{}</Value></Tag>"
PAST = "<Expiration><Date>2020-01-01T00:00:00Z</Date></Expiration>"
NEVER = "<Expiration><Days>36500</Days></Expiration>"
ONE_DAY = "<Expiration><Days>1</Days></Expiration>"
ABORT = ("<AbortIncompleteMultipartUpload><DaysAfterInitiation>1</DaysAfterInitiation>"
         "</AbortIncompleteMultipartUpload>")
LARGE = "<ObjectSizeGreaterThan>20</ObjectSizeGreaterThan>"
MANY = 200
COPIES = [{}, {"copies": 2}, {"ec": {"data": 2, "parity": 1, "min_size": 100_000}}]

# A job waits before it deletes, as long as this folder has a file of the bucket's name.
HELD = tempfile.mkdtemp(prefix="dfc-test-held-")


def prefix(text):
    return f"<Prefix>{text}</Prefix>"


def document(*rules):
    return DOCUMENT.format("".join(RULE.format(f"r{i}", where, status, what)
                                   for i, (where, status, what) in enumerate(rules)))


def set_rules(c, bucket, *rules):
    reply = S3(c).call("PUT", f"/{bucket}", document(*rules).encode(), [("lifecycle", "")])
    return reply.expect(200)


def start(c, bucket=None):
    request = {"action": "start", "name": "expire", "value": {"bucket": bucket} if bucket else {}}
    return c.call("POST", "/v1/jobs", request).expect(202).json()["id"]


def document_of(c, job_id):
    return c.get_json(f"/v1/jobs/{job_id}")


def ended(c, job_id, state="finished"):
    def reached():
        job = document_of(c, job_id)
        return job if job["state"] in ENDED else None

    job = wait_for(reached, f"end of {job_id}")
    equal(job["state"], state, f"state of {job_id}: {job['errors']}")
    return job


def run(c, bucket=None):
    """The progress of a job that must finish."""
    return ended(c, start(c, bucket))["progress"]


def fill(c, bucket, names, data=b"x" * 30, **props):
    c.create(bucket, **props)
    in_parallel(lambda name: c.put(bucket, name, data), names)


class Held:
    """Jobs of this bucket wait before they delete."""

    def __init__(self, c, bucket):
        self.c, self.path = c, os.path.join(HELD, bucket)

    def __enter__(self):
        with open(self.path, "w", encoding="utf-8"):
            return self

    def __exit__(self, *what):
        os.unlink(self.path)

    def start(self, bucket, objects):
        """A job that has found so many objects, and has deleted none."""
        job_id = start(self.c, bucket)
        wait_for(lambda: document_of(self.c, job_id)["progress"]["objects"]["total"] == objects,
                 "the objects to be found")
        return job_id


def metric(c, name):
    texts = [c.call("GET", "/metrics", node=node).body.decode() for node in c.targets()]
    return sum(int(line.split()[-1]) for text in texts for line in text.splitlines()
               if line.startswith(name + " "))


# --- what a rule expires -------------------------------------------------------------------------

def test_prefix_and_size(c):
    for i, props in enumerate(COPIES):
        bucket = f"filters{i}"
        before = metric(c, "dfc_expired_objects_total"), metric(c, "dfc_expired_bytes_total")
        names = [f"{folder}/{n}" for folder in ("old", "new") for n in range(12)]
        fill(c, bucket, names, **props)
        large = 200_000 if "ec" in props else 21
        in_parallel(lambda n, bucket=bucket, size=large: c.put(bucket, f"big/{n}", b"b" * size),
                    range(5))
        c.put(bucket, "big/small", b"s" * 20)
        set_rules(c, bucket, (prefix("old/"), "Enabled", PAST),
                  (f"<And>{prefix('big/')}{LARGE}</And>", "Enabled", PAST),
                  (prefix("new/"), "Disabled", PAST), (prefix("new/"), "Enabled", NEVER))
        progress = run(c, bucket)
        got = progress["objects"]
        equal((got["done"], got["skipped"], got["missing"], got["failed"]), (17, 0, 0, 0),
              f"objects with {props}")
        equal(progress["bytes"]["done"], 12 * 30 + 5 * large, f"bytes with {props}")
        equal(c.names(bucket), ["big/small"] + sorted(names[12:]), f"names with {props}")
        c.get(bucket, "old/3").expect(404)
        equal(run(c, bucket)["objects"]["total"], 0, "objects of a second job")
        after = metric(c, "dfc_expired_objects_total"), metric(c, "dfc_expired_bytes_total")
        equal((after[0] - before[0], after[1] - before[1]), (17, 12 * 30 + 5 * large), "metrics")


def test_tags(c):
    for i, props in enumerate(COPIES):
        bucket = f"tagged{i}"
        c.create(bucket, **props)
        sent = {"none": "", "red": "colour=red", "both": "colour=red&keep=no", "blue": "colour=blue",
                "logs/red": "colour=red", "logs/no": "keep=no"}
        for name, tags in sent.items():
            c.put(bucket, name, b"x" * 30, {"Dfc-Tags": tags}).expect(200)
        set_rules(c, bucket,
                  (f"<And>{prefix('logs/')}{TAG.format('colour', 'red')}</And>", "Enabled", PAST),
                  (f"<And>{TAG.format('colour', 'red')}{TAG.format('keep', 'no')}</And>", "Enabled",
                   PAST))
        got = run(c, bucket)["objects"]
        equal((got["done"], got["skipped"]), (2, 0), f"objects with {props}")
        equal(c.names(bucket), ["blue", "logs/no", "none", "red"], f"names with {props}")
        set_rules(c, bucket, (TAG.format("colour", "red"), "Enabled", PAST))
        with Held(c, bucket) as held:
            job = held.start(bucket, 1)
            c.put(bucket, "red", b"x" * 30, {"Dfc-Tags": "colour=blue"}).expect(200)
        equal(ended(c, job)["progress"]["objects"]["skipped"], 1, f"new tags with {props}")


def test_rules_that_take_nothing(c):
    fill(c, "still", ["a", "b"])
    for rules in ([("", "Disabled", PAST)], [(prefix("c"), "Enabled", PAST)],
                  [("", "Enabled", NEVER)], [("", "Enabled", ABORT)],
                  [(TAG.format("k", "v"), "Enabled", PAST)]):
        set_rules(c, "still", *rules)
        equal(run(c, "still")["objects"]["done"], 0, f"objects by {rules}")
    refused(S3(c).call("PUT", "/still", b"", [("lifecycle", "")]), 400, "MalformedXML")
    S3(c).call("DELETE", "/still", pairs=[("lifecycle", "")]).expect(204)
    equal(run(c, "still")["objects"]["total"], 0, "objects without rules")
    equal(c.names("still"), ["a", "b"], "names")


def test_days_of_one_second(c):
    fill(c, "aged", ["a", "b"])
    set_rules(c, "aged", ("", "Enabled", ONE_DAY))
    equal(run(c, "aged")["objects"]["total"], 0, "objects that are no day old")
    c.setting("lifecycle_day", "1s")
    wait_for(lambda: run(c, "aged") and c.names("aged") == [], "objects to be a day old")
    c.setting("lifecycle_day", "1d")


def ids_of(c, bucket, node="p1"):
    body = S3(c, node=node).call("GET", f"/{bucket}", pairs=[("lifecycle", "")]).expect(200).body
    return [e.text for e in ElementTree.fromstring(body).iter(NAMESPACE + "ID")]


def test_a_rule_without_an_id_gets_one(c):
    c.create("named")
    rule = f"<Rule>{{}}<Filter></Filter><Status>Enabled</Status>{NEVER}</Rule>"
    body = DOCUMENT.format(rule.format("<ID>mine</ID>") + rule.format("") + rule.format("<ID/>"))
    S3(c).call("PUT", "/named", body.encode(), [("lifecycle", "")]).expect(200)
    ids = ids_of(c, "named")
    equal((len(ids), len(set(ids)), ids[0]), (3, 3, "mine"), f"ids {ids}")
    check(all(ids), f"an empty id: {ids}")
    for node in ("p1", "t1", "t2"):
        equal(ids_of(c, "named", node), ids, f"ids at {node}")


def test_replies_say_when_an_object_expires(c):
    day = 86400
    c.create("told")

    def said(method, path, node, body=None, headers=None):
        reply = S3(c, node=node).call(method, path, body, headers=headers)
        check(reply.status in (200, 206), f"{method} {path}: {reply!r}")
        return reply.headers.get("x-amz-expiration")

    for node in ("p1", "t1", "t2", "t3"):
        equal(said("PUT", "/told/logs/a", node, b"x" * 30), None, "without rules")
        equal(said("GET", "/told/logs/a", node), None, "without rules")
    S3(c).call("PUT", "/told/tagged", b"x", headers={"x-amz-tagging": "colour=red"}).expect(200)
    set_rules(c, "told", (prefix("logs/"), "Enabled", NEVER), (prefix("logs/"), "Enabled", ONE_DAY),
              (f"<And>{prefix('big/')}{LARGE}</And>", "Enabled", ONE_DAY),
              (TAG.format("colour", "red"), "Enabled", ONE_DAY), ("", "Disabled", ONE_DAY))
    modified = S3(c).call("HEAD", "/told/logs/a").expect(200).headers["Last-Modified"]
    written = email.utils.parsedate_to_datetime(modified).timestamp()
    end = email.utils.formatdate(-(-(written + day) // day) * day, usegmt=True)
    for node in ("p1", "t1", "t2", "t3"):
        wait_for(lambda n=node: said("HEAD", "/told/logs/a", n), f"the rules at {node}")
        for method, headers in (("HEAD", None), ("GET", None), ("GET", {"Range": "bytes=3-4"})):
            equal(said(method, "/told/logs/a", node, headers=headers),
                  f'expiry-date="{end}", rule-id="r1"', f"{method} at {node}")
        for key, rule, tags in (("logs/b", "r1", {}), ("big/a", "r2", {}),
                                ("red", "r3", {"x-amz-tagging": "a=b&colour=red"})):
            text = said("PUT", f"/told/{key}", node, b"x" * 21, tags)
            check(text and text.endswith(f'rule-id="{rule}"'), f"PUT of {key} at {node}: {text}")
        check(said("HEAD", "/told/tagged", node).endswith('rule-id="r3"'), "tags")
        check(said("GET", "/told/big/a", node, headers={"Range": "bytes=0-0"}), "size of a range")
        for key, size in (("big/small", 20), ("other", 30)):
            equal(said("PUT", f"/told/{key}", node, b"x" * size), None, f"PUT of {key}")
            equal(said("HEAD", f"/told/{key}", node), None, f"HEAD of {key}")


def test_uploads_are_aborted(c):
    c.create("parts")
    s3 = S3(c)
    for key in ("old/a", "new/a"):
        s3.call("POST", f"/parts/{key}", b"", [("uploads", "")]).expect(200)
    set_rules(c, "parts", (prefix("old/"), "Enabled", ABORT), (prefix("new/"), "Disabled", ABORT))

    def keys():
        reply = s3.call("GET", "/parts", pairs=[("uploads", "")]).expect(200)
        return [e.text for e in ElementTree.fromstring(reply.body).iter(NAMESPACE + "Key")]

    equal(keys(), ["new/a", "old/a"], "uploads that are no day old")
    c.setting("lifecycle_day", "1s")
    wait_for(lambda: keys() == ["new/a"], "an upload to be aborted")
    c.setting("lifecycle_day", "1d")


def test_it_begins_by_itself(c):
    fill(c, "auto", ["a", "b"])
    set_rules(c, "auto", ("", "Enabled", PAST))
    c.setting("lifecycle_interval", "1s")
    wait_for(lambda: c.names("auto") == [], "a job that nobody has started")
    c.setting("lifecycle_interval", "0")
    wait_for(lambda: all(j["state"] in ENDED
                         for j in c.get_json("/v1/jobs?kind=expire")["jobs"]), "the last end")


# --- what changes meanwhile ----------------------------------------------------------------------

def test_a_write_meanwhile_stays(c):
    for i, props in enumerate(COPIES):
        bucket = f"written{i}"
        names = [f"n/{n:02d}" for n in range(20)]
        fill(c, bucket, names, **props)
        set_rules(c, bucket, (LARGE, "Enabled", PAST))
        with Held(c, bucket) as held:
            job = held.start(bucket, len(names))
            in_parallel(lambda name, bucket=bucket: c.put(bucket, name, b"new"), names[:5])
            c.object("DELETE", bucket, names[5]).expect(204)
            c.put(bucket, "n/later", b"l" * 30)
        got = ended(c, job)["progress"]["objects"]
        equal((got["done"], got["skipped"], got["missing"]), (14, 5, 1), f"objects with {props}")
        equal(c.names(bucket), names[:5] + ["n/later"], f"names with {props}")
        for name in names[:5]:
            equal(c.get(bucket, name).expect(200).body, b"new", name)


def test_rules_that_are_changed_meanwhile(c):
    names = [f"n/{n:02d}" for n in range(10)]
    fill(c, "ruled", names)
    for change in ([("", "Enabled", NEVER)], None):
        set_rules(c, "ruled", ("", "Enabled", PAST))
        with Held(c, "ruled") as held:
            job = held.start("ruled", len(names))
            if change:
                set_rules(c, "ruled", *change)
            else:
                S3(c).call("DELETE", "/ruled", pairs=[("lifecycle", "")]).expect(204)
            for node in c.targets():  # a target that is asked for it asks for the newest state
                S3(c, node=node).call("GET", "/ruled", pairs=[("lifecycle", "")])
        equal(ended(c, job)["progress"]["objects"]["done"], 0, "objects that were deleted")
        equal(c.names("ruled"), names, "names")


def test_a_bucket_that_is_destroyed_meanwhile(c):
    fill(c, "gone", ["a", "b"])
    set_rules(c, "gone", ("", "Enabled", PAST))
    with Held(c, "gone") as held:
        job = held.start("gone", 2)
        c.destroy("gone")
    ended(c, job, "failed")
    reply = c.call("POST", "/v1/jobs", {"action": "start", "name": "expire",
                                        "value": {"bucket": "gone"}})
    reply.expect(404, "bucket_not_found")


def test_by_hand(c):
    fill(c, "hand", ["a", "b"])
    fill(c, "other", ["a"])
    for bucket in ("hand", "other"):
        set_rules(c, bucket, ("", "Enabled", PAST))
    done = c.dfcctl("job", "start", "expire", "hand", "--wait")
    equal(done.returncode, 0, f"exit code: {done.stderr}")
    equal((c.names("hand"), c.names("other")), ([], ["a"]), "names")
    with Held(c, "other") as held:
        job = held.start("other", 1)
        done = c.dfcctl("job", "start", "expire")
        check(done.returncode != 0 and job in done.stderr, f"a second job: {done.stderr}")
        c.call("DELETE", f"/v1/jobs/{job}").expect(202)
    ended(c, job, "aborted")
    for words in (("cleanup", "hand"), ("expire", "no/bucket"), ("expire", "none")):
        done = c.dfcctl("job", "start", *words)
        check(done.returncode != 0, f"job start {words}: {done.stdout}")


def test_a_bucket_with_a_backend(c):
    c.create("cold", backend="http://127.0.0.1:9/")
    s3 = S3(c)
    reply = s3.call("PUT", "/cold", document(("", "Enabled", PAST)).encode(), [("lifecycle", "")])
    refused(reply, 501, "NotImplemented")
    set_rules(c, "cold", ("", "Enabled", ABORT))
    set_rules(c, "cold", ("", "Disabled", PAST))


# --- nodes that die ------------------------------------------------------------------------------

def die_meanwhile(c, bucket, node, props):
    names = [f"n/{n:04d}" for n in range(MANY)]
    fill(c, bucket, names, durability="async", **props)
    c.put(bucket, "small", b"s")
    set_rules(c, bucket, (LARGE, "Enabled", PAST))
    with Held(c, bucket) as held:
        job = held.start(bucket, len(names))
        c.kill(node, "-9")
    c.start(node)
    c.wait_node(node, "active")
    ended(c, job)
    wait_for(lambda: run(c, bucket) and c.names(bucket) == ["small"], f"{bucket} to expire")
    c.get(bucket, names[0]).expect(404)


def test_a_target_dies_meanwhile(c):
    for i, props in enumerate(COPIES[1:]):
        die_meanwhile(c, f"killed{i}", f"t{i + 1}", props)


def test_the_primary_dies_meanwhile(c):
    die_meanwhile(c, "primary", "p1", {})


def test_a_target_that_is_away(c):
    """What it leads alone stays; the others do their part."""
    names = [f"n/{n:02d}" for n in range(40)]
    fill(c, "away", names, copies=2)
    set_rules(c, "away", ("", "Enabled", PAST))
    c.kill("t3", "-9")
    c.wait_node("t3", "unreachable")
    equal(run(c, "away")["objects"]["done"], len(names), "objects")
    equal(c.names("away"), [], "names without t3")
    c.start("t3")
    c.wait_node("t3", "active")
    equal(c.names("away"), [], "names")


if __name__ == "__main__":
    main(targets=3, args=(f"--target-arg=--faults=expire.delete=hold:{HELD}",
                          "--target-arg=--uploads-sweep=100ms"))

#!/usr/bin/env python3
"""curl in a cluster with access control: it shows its token to the proxy alone.  Across the
redirect, to another port, it drops the header, and the proof in the URL lets it in."""

import os
import random
import subprocess

import frame  # noqa: F401 (first: the next one is found by it)
from access_lib import GuardedCluster, make_user
from lib import check, equal, main

DATA = random.Random(11).randbytes(3_000_001)  # so long that curl waits for 100
GRANTS = [{"rights": ["read", "write"], "bucket": "b"}]
WRITTEN = "%{http_code} %{size_upload}"


class Curl(GuardedCluster):
    """The user's token is in a file, as a script has it, so that no list of processes shows it."""

    def __init__(self, **shape):
        super().__init__(**shape)
        self.create("b")
        self.file = os.path.join(self.dir, "data")
        with open(self.file, "wb") as f:
            f.write(DATA)
        self.header = os.path.join(self.dir, "token")
        token = make_user(self, "curl", GRANTS).headers()["Authorization"]
        with open(self.header, "w", encoding="ascii") as f:
            f.write(f"Authorization: {token}\n")

    def curl(self, *args, proof=True, **options):
        trust = ["--cacert", self.ca_file()] if self.http.context else []
        token = ["-H", "@" + self.header] if proof else []
        return subprocess.run(["curl", "-sSv", "--noproxy", "*", *trust, *token, *args],
                              check=False, capture_output=True, timeout=60, **options)

    def object_url(self, name, bucket="b"):
        return f"{self.endpoint}/v1/objects/{bucket}/{name}"


def sent(done, header):
    """How often curl sent it; what it sent and got is in what it said (-v)."""
    said = done.stderr.decode().lower()
    return sum(line.startswith(f"> {header.lower()}:") for line in said.splitlines())


def statuses(done):
    return [line.split()[2] for line in done.stderr.decode().splitlines()
            if line.startswith("< HTTP/")]


def went_well(done, *wanted):
    equal((done.returncode, statuses(done)), (0, list(wanted)), done.stderr[-2000:].decode())
    equal(sent(done, "Authorization"), 1, "requests with the token")


def test_upload_and_download(c):
    went_well(c.curl("-L", "-T", c.file, c.object_url("o")), "307", "100", "200")
    done = c.curl("-L", c.object_url("o"))
    went_well(done, "307", "200")
    check(done.stdout == DATA, "curl got other bytes than it sent")


def test_range_and_resume(c):
    done = c.curl("-L", "-r", "5-9", c.object_url("o"))
    went_well(done, "307", "206")
    equal(done.stdout, DATA[5:10], "the range")
    part = os.path.join(c.dir, "part")
    with open(part, "wb") as f:
        f.write(DATA[:1_000_000])
    went_well(c.curl("-L", "-C", "-", "-o", part, c.object_url("o")), "307", "206")
    with open(part, "rb") as f:
        check(f.read() == DATA, "the resumed download has other bytes")


def test_upload_of_unknown_length(c):
    went_well(c.curl("-L", "-T", "-", c.object_url("unknown"), input=DATA), "307", "100", "200")
    went_well(c.curl("-L", "-T", "-", "-H", "Expect:", c.object_url("at-once"), input=DATA), "200")
    for name in ("unknown", "at-once"):
        check(c.get("b", name).expect(200).body == DATA, f"{name} was stored as it was sent")


def test_delete_is_refused(c):
    done = c.curl("-L", "-X", "DELETE", c.object_url("o"))
    equal(statuses(done), ["403"], "without the right")


def test_nothing_is_sent_without_a_proof(c):
    for proof, bucket, status in ((False, "b", "401"), (True, "elsewhere", "403")):
        done = c.curl("-L", "-T", c.file, "-o", os.devnull, "-w", WRITTEN,
                      c.object_url("o", bucket), proof=proof)
        equal(done.stdout.decode(), f"{status} 0", "status, and bytes that curl has sent")


def test_the_target_asks_for_a_proof(c):
    at_target = f"{c.url('t1')}/v1/objects/b/o"
    equal(statuses(c.curl(at_target, proof=False)), ["401"], "without a token")
    done = c.curl("-L", at_target)
    equal((done.returncode, statuses(done)[-1]), (0, "200"), "with a token")
    check(done.stdout == DATA, "by way of a target")


def test_oauth2_bearer(c):
    """curl's own option."""
    with open(c.header, encoding="ascii") as f:
        token = f.read().split()[-1]
    done = c.curl("-L", "--oauth2-bearer", token, c.object_url("o"), proof=False)
    went_well(done, "307", "200")
    check(done.stdout == DATA, "the object")


if __name__ == "__main__":
    main(Curl, targets=3)

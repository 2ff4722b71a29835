#!/usr/bin/env python3
"""Clients that speak TLS with the cluster: what is offered, certificates that change, clients of
others.  Objects, ranges, listings, copies and sorts over TLS: rows `…_tls` in meson.build."""

import os
import socket
import ssl
import subprocess
import sys
import threading
import time

import requests

from lib import ROOT, check, equal, main, raw_exchange, wait_for

sys.path.insert(0, os.path.join(ROOT, "deploy", "local"))
from localcluster import certificates  # noqa: E402

BUCKET = "b"
RENEWAL = "--tls-reload-interval=200ms"


def run(*argv, **options):
    return subprocess.run([str(a) for a in argv], capture_output=True, text=True, check=False,
                          timeout=60, **options)


def curl(c, *args, **options):
    return run("curl", "-sS", "--noproxy", "*", "--cacert", c.ca_file(), *args, **options)


def connect(c, node):
    """A connection that a client of its own has opened."""
    plain = socket.create_connection(c.address(node), timeout=60)
    return c.http.context.wrap_socket(plain, server_hostname=c.address(node)[0])


def serial(c, node="t1"):
    """Of the certificate that the node shows."""
    with connect(c, node) as s:
        return s.getpeercert()["serialNumber"]


def head_of(s):
    """The next head on a connection, as text."""
    text = b""
    while b"\r\n\r\n" not in text:
        piece = s.recv(1)
        check(piece, f"the connection ended after {text!r}")
        text += piece
    return text.decode()


def starts(text, wanted):
    check(text.startswith(wanted), f"wanted '{wanted}', got {text}")


# --- what is offered -----------------------------------------------------------------------------

def s_client(c, *args):
    return run("openssl", "s_client", "-brief", "-CAfile", c.ca_file(), "-connect",
               "%s:%d" % c.address("t1"), *args, input="")


def test_versions_and_ciphers(c):
    for version in ("-tls1_2", "-tls1_3"):
        done = s_client(c, version, "-verify_return_error")
        equal(done.returncode, 0, f"{version}: {done.stderr}")
    for refused in (("-tls1_1", "-cipher", "ALL:@SECLEVEL=0"),
                    ("-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-SHA256"),
                    ("-tls1_2", "-cipher", "AES128-GCM-SHA256:@SECLEVEL=0")):
        done = s_client(c, *refused)
        check(done.returncode != 0, f"{refused}: {done.stderr}")
    with connect(c, "p1") as s:
        equal(s.version(), "TLSv1.3", "what both prefer")


def test_plain_http_is_told(c):
    for node in ("p1", "t1"):
        reply = raw_exchange(c.address(node), b"GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n")
        reply.expect(400, "invalid_argument", "use https://")


def test_the_map_has_https(c):
    for node in c.get_json("/v1/cluster")["nodes"]:
        check(node["public_url"].startswith("https://"), str(node))
        check(node["control_url"].startswith("http://"), str(node))
    c.create(BUCKET)
    reply = c.object("GET", BUCKET, "x", follow=False).expect(307)
    check(reply.headers["Location"].startswith("https://"), reply.headers["Location"])


# --- clients -------------------------------------------------------------------------------------

def test_curl(c):
    path = os.path.join(c.dir, "upload")
    data = os.urandom(3 << 20)
    with open(path, "wb") as f:
        f.write(data)
    url = f"{c.endpoint}/v1/objects/{BUCKET}/curl"
    done = curl(c, "-L", "--fail", "-T", path, url)
    equal(done.returncode, 0, done.stderr)
    done = curl(c, "-L", "--fail", "-o", path + ".back", url)
    equal(done.returncode, 0, done.stderr)
    with open(path + ".back", "rb") as f:
        check(f.read() == data, "curl got other bytes than it sent")
    stranger = run("curl", "-sS", "--noproxy", "*", url)
    equal(stranger.returncode, 60, f"without the authority: {stranger.stderr}")


def test_dfcctl(c):
    c.put(BUCKET, "d", b"12345")
    done = c.dfcctl("object", "get", f"{BUCKET}/d", "-")
    equal((done.returncode, done.stdout), (0, "12345"), done.stderr)
    none = {"DFC_CA_FILE": ""}
    done = c.dfcctl("object", "get", f"{BUCKET}/d", "-", "--retries", 0, env=none)
    check(done.returncode != 0 and "certificate" in done.stderr, f"without it: {done.stderr}")
    done = c.dfcctl("object", "get", f"{BUCKET}/d", "-", "--ca-file", c.ca_file(), env=none)
    equal((done.returncode, done.stdout), (0, "12345"), done.stderr)
    done = c.dfcctl("object", "get", f"{BUCKET}/d", "-", "--insecure", env=none)
    equal((done.returncode, done.stdout), (0, "12345"), done.stderr)
    check("warning: --insecure" in done.stderr, done.stderr)
    done = c.dfcctl("config", "set", "jobs_max", 400)  # administration, on the plain control port
    equal(done.returncode, 0, done.stderr)


def test_requests(c):
    url = f"{c.endpoint}/v1/objects/{BUCKET}/requests"
    with requests.Session() as session:
        session.trust_env = False
        session.verify = c.ca_file()
        equal(session.put(url, data=b"12345", timeout=60).status_code, 200, "PUT")
        equal(session.get(url, timeout=60).content, b"12345", "GET")


# --- uploads -------------------------------------------------------------------------------------

def test_a_redirected_put_sends_its_body_once(c):
    data = os.urandom(1 << 20)
    head = (f"PUT /v1/objects/{BUCKET}/e HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            f"Content-Length: {len(data)}\r\nExpect: 100-continue\r\n\r\n").encode()
    owner = c.owner(BUCKET, "e")
    with connect(c, "p1") as s:
        s.sendall(head)
        starts(head_of(s), "HTTP/1.1 307 ")
    with connect(c, owner) as s:
        s.sendall(head)
        starts(head_of(s), "HTTP/1.1 100 ")
        s.sendall(data)
        starts(head_of(s), "HTTP/1.1 200 ")
    check(c.get(BUCKET, "e").expect(200).body == data, "the object has other bytes")


def test_an_upload_that_is_refused_early(c):
    with connect(c, "t1") as s:
        s.sendall(b"PUT /v1/objects/nosuch/x HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                  b"Content-Length: 100000000\r\n\r\n")
        starts(head_of(s), "HTTP/1.1 404 ")


def test_bad_lengths(c):
    for length in ("-1", "5x", "5, 6", "99999999999999999999"):
        with connect(c, "t1") as s:
            s.sendall(f"PUT /v1/objects/{BUCKET}/x HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                      f"Content-Length: {length}\r\n\r\n".encode())
            starts(head_of(s), "HTTP/1.1 400 ")


def test_clients_that_stop_in_the_handshake(c):
    stopped = [socket.create_connection(c.address("p1"), timeout=60) for _ in range(50)]
    for s in stopped:
        s.sendall(b"\x16\x03\x01")
    c.get_json("/v1/buckets")
    for s in stopped:
        s.close()


# --- certificates --------------------------------------------------------------------------------

def node_file(c, end):
    return certificates.path_of(c.dir, f"node.{end}")


class Load:
    """Clients that open a connection for each request, until they are told to stop."""

    def __init__(self, c):
        self.c, self.ends, self.failures, self.done = c, threading.Event(), [], 0
        self.threads = [threading.Thread(target=self.work) for _ in range(4)]

    def work(self):
        while not self.ends.is_set():
            try:
                self.c.http.close()
                self.c.get(BUCKET, "d").expect(200)
                self.done += 1
            except Exception as e:  # each is a finding
                self.failures.append(repr(e))

    def __enter__(self):
        for t in self.threads:
            t.start()
        return self

    def __exit__(self, *_):
        self.ends.set()
        for t in self.threads:
            t.join()


def test_a_certificate_is_replaced_under_load(c):
    c.put(BUCKET, "d", b"12345")
    with Load(c) as load:
        for _ in range(3):
            before = {node: serial(c, node) for node in c.nodes}
            certificates.make_certificate(c.dir, "127.0.0.1")
            for node, old in before.items():
                wait_for(lambda n=node, o=old: serial(c, n) != o, f"the new certificate of {node}")
        done = load.done
        wait_for(lambda: load.done > done, "requests with the new one")
    equal(load.failures, [], "requests that failed")


def refused(c, why):
    """All nodes say so in their logs, and go on with the pair that they had."""
    before = serial(c)
    for node in c.nodes:
        wait_for(lambda n=node: why in c.log(n), f"'{why}' in the log of {node}")
    equal(serial(c), before, "the certificate")
    c.get(BUCKET, "d").expect(200)


def test_a_bad_pair_is_not_taken(c):
    with open(node_file(c, "key"), encoding="ascii") as f:
        good = f.read()
    with open(certificates.path_of(c.dir, "ca.key"), encoding="ascii") as f:
        other = f.read()
    with open(node_file(c, "key"), "w", encoding="ascii") as f:
        f.write(other)
    refused(c, "does not fit the certificate")
    with open(node_file(c, "key"), "w", encoding="ascii") as f:
        f.write(good)
    os.chmod(node_file(c, "key"), 0o644)
    refused(c, "chmod 600")
    os.chmod(node_file(c, "key"), 0o600)
    before = serial(c)
    certificates.make_certificate(c.dir, "127.0.0.1")
    wait_for(lambda: serial(c) != before, "a good one is taken again")


def test_the_metric_says_when_it_expires(c):
    text = c.call("GET", "/metrics", node="t1").expect(200).body.decode()
    line = next(t for t in text.splitlines()
                if t.startswith("dfc_tls_certificate_expires_seconds "))
    with connect(c, "t1") as s:
        expires = ssl.cert_time_to_seconds(s.getpeercert()["notAfter"])
    equal(float(line.split()[1]), float(expires), "dfc_tls_certificate_expires_seconds")
    check(expires > time.time(), "it is valid")


def test_no_start_with_a_key_that_others_can_read(c):
    c.stop("t2")
    os.chmod(node_file(c, "key"), 0o644)
    done = c.run("start", "t2", ok=False)
    check(done.returncode != 0 and "chmod 600" in done.stderr, done.stderr)
    os.chmod(node_file(c, "key"), 0o600)
    c.start("t2")


if __name__ == "__main__":
    main(targets=2, args=("--tls", f"--proxy-arg={RENEWAL}", f"--target-arg={RENEWAL}"))

#!/usr/bin/env python3
"""What clients that name hosts cannot get: the cluster's credentials sent there, and bytes from
where only the cluster may ask (loopback, link-local, its own networks).

A server of the test stands for one that a client names: it writes down each request."""

import contextlib
import http.server
import json
import os
import socket
import tempfile
import threading

from lib import Cluster, check, equal, main

HOME = tempfile.TemporaryDirectory()
SENTENCE = ("the address is private, local or the cluster's own; "
            "start targets with --backend-allow=CIDR")
LOCAL = "127.9.9."  # of loopback, and not in --backend-allow here


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self):
        server = self.server
        server.seen.append((self.command, self.path, dict(self.headers.items())))
        location = server.redirects.get(self.path)
        body = b"" if location else server.body
        self.send_response(302 if location and self.command == "GET" else server.status)
        if location:
            self.send_header("Location", location)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = answer


@contextlib.contextmanager
def listener(address="127.0.0.1", status=200, body=b"bytes"):
    server = http.server.ThreadingHTTPServer((address, 0), Handler)
    server.daemon_threads = True
    server.seen, server.redirects, server.status, server.body = [], {}, status, body
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    server.url = f"http://{address}:{server.server_address[1]}"
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def bucket_call(c, bucket, action, backend):
    return c.call("POST" if action == "create" else "PUT", f"/v1/buckets/{bucket}",
                  {"action": action, "value": {"backend": backend}})


def secrets_of(server):
    """What of the credentials a server was shown."""
    named = [
        line for _, path, headers in server.seen for line in [path, *map(str, headers.items())]
    ]
    return [
        line for line in named if "authorization" in line.lower() or
        "x-amz-security" in line.lower() or KEYS["AWS_ACCESS_KEY_ID"] in line or TOKEN in line
    ]


# --- credentials ---------------------------------------------------------------------------------

TOKEN = "CLUSTER-GCS-TOKEN"
KEYS = {"AWS_ACCESS_KEY_ID": "AKCLUSTERSOWN", "AWS_SECRET_ACCESS_KEY": "clusters-secret",
        "AWS_SESSION_TOKEN": "clusters-session"}


class Metadata(http.server.BaseHTTPRequestHandler):
    """Google's service on a machine, which gives the token away to whoever is on it."""

    def log_message(self, *_):
        pass

    def do_GET(self):
        body = json.dumps({"access_token": TOKEN, "expires_in": 3600,
                           "token_type": "Bearer"}).encode()
        self.send_response(200)
        self.send_header("Metadata-Flavor", "Google")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


MACHINE = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Metadata)
MACHINE.daemon_threads = True
threading.Thread(target=MACHINE.serve_forever, daemon=True).start()
os.environ.update(KEYS, GCE_METADATA_HOST=f"127.0.0.1:{MACHINE.server_address[1]}", HOME=HOME.name)
os.environ.pop("GOOGLE_APPLICATION_CREDENTIALS", None)


def test_an_endpoint_that_is_not_listed_is_refused(c):
    with listener("127.0.0.2") as foreign:
        for url, row in ((f"s3://v?endpoint={foreign.url}", f"s3 {foreign.url}"),
                         (f"gs://v?endpoint={foreign.url}", f"gcs {foreign.url}"),
                         ("s3://v?profile=other", "s3 own other")):
            reply = bucket_call(c, "foreign", "create", url).expect(400, "invalid_argument", row)
            check("--backend-endpoints" in reply.json()["message"], reply.body)
        c.create("moved", backend=f"s3://v?endpoint={foreign.url}&auth=none")
        bucket_call(c, "moved", "setprops", f"s3://v?endpoint={foreign.url}") \
            .expect(400, "invalid_argument", f"s3 {foreign.url}")
        c.get("moved", "obj").expect(200)
        equal(secrets_of(foreign), [], "secrets that a foreign server was shown")
        check(foreign.seen, "the bucket without credentials asks")
        c.create("own", backend="s3://some-bucket")  # Amazon's own: nobody asks it here


def test_listed_ones_are_given_theirs(c):
    """Else the tests that nothing is sent could not fail."""
    with listener() as listed:
        for bucket, url, secret in (("s3listed", f"s3://v?endpoint={listed.url}",
                                     KEYS["AWS_ACCESS_KEY_ID"]),
                                    ("gslisted", f"gs://v?endpoint={listed.url}", TOKEN)):
            c.create(bucket, backend=url)
            c.get(bucket, "obj").expect(200)
            check(any(secret in line for line in secrets_of(listed)), f"{bucket}: {listed.seen}")


def test_a_document_from_before_leaks_nothing(c):
    """The proxies' list is longer than the targets' here, as if the bucket were older than both."""
    with listener("127.0.0.3") as foreign:
        for bucket, url in (("olds3", f"s3://v?endpoint={foreign.url}"),
                            ("oldgs", f"gs://v?endpoint={foreign.url}")):
            c.create(bucket, backend=url, write_policy="through")
            for method, name, body in (("GET", "obj", None), ("HEAD", "obj", None),
                                       ("PUT", "obj", b"new"), ("DELETE", "obj", None)):
                reply = c.object(method, bucket, name, body)
                check(reply.status == 403, f"{method} {bucket}: {reply!r}")
            c.get(bucket, "obj").expect(403, "backend_denied", "--backend-endpoints")
            c.call("POST", f"/v1/buckets/{bucket}",
                   {"action": "listobjects"}).expect(403, "backend_denied")
        equal(foreign.seen, [], "what the foreign server was asked")


def test_health_names_buckets_from_before(c):
    """With the targets' list at the proxy, too."""
    with listener("127.0.0.3") as foreign:
        c.create("named", backend=f"s3://v?endpoint={foreign.url}")
        c.stop("p1")
        c.start("p1", "--arg=--backend-endpoints=s3 http://127.0.0.1:*")
        c.wait_node("t1", "active")
        done = c.dfcctl("cluster", "health")
        check("'named'" in done.stdout and f"s3 {foreign.url}" in done.stdout,
              done.stdout + done.stderr)
        c.stop("p1")
        c.start("p1")
        c.wait_node("t1", "active")
        done = c.dfcctl("cluster", "health")
        check("'named'" not in done.stdout, done.stdout)


# --- addresses -----------------------------------------------------------------------------------

def closed_port(address):
    with socket.socket() as s:
        s.bind((address, 0))
        return s.getsockname()[1]


def refused(c, bucket, backend, name="obj"):
    """The sentence, which is all that a client learns."""
    c.create(bucket, backend=backend)
    reply = c.get(bucket, name).expect(403, "address_refused", SENTENCE)
    c.destroy(bucket)
    return reply.json()["message"]


def test_addresses_that_are_not_allowed_are_not_told_apart(c):
    with listener(LOCAL + "1") as open_one, listener(LOCAL + "2", status=401) as denying:
        urls = [
            open_one.url, denying.url, f"http://{LOCAL}1:{closed_port(LOCAL + '1')}",
            "http://169.254.169.254", "http://[fe80::1]", "http://[fd00:ec2::254]:80",
            "http://10.1.2.3:22", "http://192.168.0.1", "http://172.16.0.1", "http://100.64.0.1",
            "http://0.0.0.0:80", "http://[::]:80", "http://224.0.0.1",
            f"http://[::ffff:{LOCAL}1]:{open_one.server_address[1]}"
        ]
        messages = {
            refused(c, f"not{i}", url).replace(f"not{i}", "B")
            for i, url in enumerate(urls)
        }
        for provider in ("s3", "gs"):
            messages.add(
                refused(c, "not",
                        f"{provider}://v?endpoint={open_one.url}&auth=none").replace("not", "B"))
        equal(len({m[m.index("the address"):] for m in messages}), 1, f"sentences {messages}")
        equal((open_one.seen, denying.seen), ([], []), "requests that came through")


def test_redirects_lead_to_none_of_them(c):
    with listener(body=b"public") as public, listener(LOCAL + "1", body=b"secret") as internal:
        public.redirects = {
            "/loopback": internal.url + "/keys", "/linklocal": "http://169.254.169.254/latest/",
            "/mapped": internal.url.replace(LOCAL + "1", f"[::ffff:{LOCAL}1]") + "/keys"
        }
        c.create("redirected", backend=public.url)
        c.get("redirected", "plain").expect(200)
        for name in ("loopback", "linklocal", "mapped"):
            reply = c.get("redirected", name).expect(403, "address_refused", SENTENCE)
            check(b"secret" not in reply.body, "what the internal server has")
        equal(internal.seen, [], "requests that came through")


def test_downloads_and_key_maps_lead_to_none_of_them(c):
    with listener(LOCAL + "1", body=b"secret") as internal:
        c.create("down")
        body = {
            "action": "download",
            "value": {"list": [{"url": internal.url + "/keys", "name": "creds"}]}
        }
        job = c.wait_job(c.call("POST", "/v1/buckets/down", body).expect(202).json()["id"])
        check(SENTENCE in json.dumps(job), f"the job says {job['errors']}")
        c.get("down", "creds").expect(404)
        spec = {
            "input_extension": ".tar", "input_bck": {"name": "down"},
            "input_format": {"prefix": "in-"}, "output_shard_size": "10KB",
            "ekm_file": internal.url + "/map", "ekm_file_sep": " "
        }
        c.put("down", "in-0.tar", b"\0" * 10240)
        job = c.wait_job(c.call("POST", "/v1/sort", spec).expect(202).json()["id"])
        equal(job["state"], "failed", f"the sort: {job}")
        check(SENTENCE in json.dumps(job), f"the sort says {job}")
        equal(internal.seen, [], "requests that came through")


def test_a_session_leads_to_none_of_them(c):
    """GCS's upload goes to the URL that the endpoint gives."""
    with listener() as public, listener(LOCAL + "1") as internal:
        public.redirects = {
            "/upload/storage/v1/b/v/o?uploadType=resumable": internal.url + "/session"
        }
        c.create("sessions", backend=f"gs://v?endpoint={public.url}", write_policy="through")
        c.object("PUT", "sessions", "obj", b"payload").expect(403, "address_refused", SENTENCE)
        equal(internal.seen, [], "requests that came through")


def test_nodes_own_ports_are_refused_though_their_network_is_allowed(c):
    nodes = c.get_json("/v1/cluster")["nodes"]
    urls = [n[which] for n in nodes for which in ("control_url", "data_url") if n.get(which)]
    check(len(urls) >= 3, f"control and data ports: {nodes}")
    for i, url in enumerate(urls):
        refused(c, f"inner{i}", url, "v1/cluster/state")
        refused(c, f"mapped{i}", url.replace("127.0.0.1", "[::ffff:127.0.0.1]"), "v1/cluster/state")
        refused(c, f"alias{i}", url.replace("127.0.0.1", "127.0.0.2"), "v1/cluster/state")


def test_a_parameter_that_is_none_keeps_a_target_from_starting(c):
    c.stop("t1")
    for arg, words in (("--backend-allow=10.0.0.1/8", "--backend-allow: '10.0.0.1/8'"),
                       ("--backend-endpoints=s3 minio:9000",
                        "--backend-endpoints: 's3 minio:9000'")):
        done = c.run("start", "t1", f"--arg={arg}", ok=False)
        check(done.returncode != 0 and words in done.stderr, done.stderr)
    c.start("t1")
    c.wait_node("t1", "active")


class Guarded(Cluster):
    """A small part of loopback is allowed, and three servers there; the proxy's list is longer than
    the target's, so that a bucket can be made that the target refuses."""

    def args_of_up(self):
        return ("--target-arg=--backend-allow=127.0.0.0/29,::1", "--target-arg=--backend-retries=0",
                "--proxy-arg=--backend-endpoints=s3 http://127.0.0.1:*,gcs http://127.0.0.1:*,"
                "s3 http://127.0.0.3:*,gcs http://127.0.0.3:*",
                "--target-arg=--backend-endpoints=s3 http://127.0.0.1:*,gcs http://127.0.0.1:*")


if __name__ == "__main__":
    main(Guarded, proxies=1, targets=1, mountpaths=1)

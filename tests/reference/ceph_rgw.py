"""Ceph's S3 service (RGW), of Debian's packages, for as long as a test runs: an S3 that no one here
wrote.

    with Ceph(base_port, keys={"AKID": "secret"}).start() as ceph:
        s3 = ceph.client("AKID")
        s3.create("bucket")
        s3.put("bucket", "a/b", b"bytes")
        s3.get("bucket", "a/b")

One monitor, one OSD that keeps its objects in memory (or, with disk_bytes, in a file of that size
at most), and one gateway, on 127.0.0.1 and on ports from base_port on (20 of them), without Ceph's
own authentication between them. Everything they write is in a temporary directory, which goes with
them; none outlives this process. Together they take some 140 MB of memory, and 5 to 20 s to start.

missing() says which programs are not installed, and how they would be. Client is the little of S3's
API that tests ask
of a service; it signs with sigv4's signature()."""

import contextlib
import hashlib
import http.client
import os
import shutil
import subprocess
import tempfile
import time
import urllib.parse
import xml.etree.ElementTree

from sigv4 import signature

PROGRAMS = ("ceph-mon", "ceph-osd", "radosgw", "radosgw-admin", "ceph", "monmaptool", "setpriv")
PACKAGES = "ceph-mon ceph-osd radosgw"
START_SECONDS = 240
PORTS = 20
FSID, OSD_ID = "5b2a3f0e-6c0a-4c7f-9d5e-3a4b5c6d7e8f", "6b2a3f0e-6c0a-4c7f-9d5e-3a4b5c6d7e8f"

CONF = """
[global]
fsid = {fsid}
mon host = [v2:127.0.0.1:{mon_port}/0]
public addr = 127.0.0.1
cluster addr = 127.0.0.1
ms bind msgr1 = false
ms bind port min = {osd_port}
ms bind port max = {last_port}
auth cluster required = none
auth service required = none
auth client required = none
ms mon client mode = crc
run dir = {dir}
admin socket = {dir}/$name.asok
log file = {dir}/$name.log
pid file =
crash dir = {dir}/crash
keyring = {dir}/keyring
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 1
osd pool default pgp num = 1
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
mon allow pool size one = true
mon data avail crit = 1
mon data avail warn = 2
mon cluster log to file = false
[mon]
mon data = {dir}/mon
[osd]
osd data = {dir}/osd
osd objectstore = {store}
memstore device bytes = {bytes}
bluestore block size = {bytes}
osd memory target = 1G
[client]
rgw frontends = beast endpoint=127.0.0.1:{rgw_port}
rgw data = {dir}/rgw
rgw thread pool size = 128
rgw dynamic resharding = false
rgw dns name = localhost
"""


class CephError(Exception):
    """It did not start; what it said."""


def missing():
    """None, or a sentence that says what is not installed."""
    absent = [p for p in PROGRAMS if shutil.which(p) is None]
    if not absent:
        return None
    return (f"there is no {', '.join(absent)}; "
            f"on Debian: apt-get install --no-install-recommends {PACKAGES}")


class Ceph:
    def __init__(self, base_port, keys, disk_bytes=None):
        self.keys, self.port = keys, base_port
        self.url = f"http://127.0.0.1:{base_port + 1}"
        self.daemons = []
        self.dir = tempfile.mkdtemp(prefix="dfc-ceph-")
        self.conf = os.path.join(self.dir, "ceph.conf")
        with open(self.conf, "w", encoding="utf-8") as f:
            f.write(
                CONF.format(fsid=FSID, dir=self.dir, mon_port=base_port, rgw_port=base_port + 1,
                            osd_port=base_port + 2, last_port=base_port + PORTS - 1,
                            store="bluestore" if disk_bytes else "memstore", bytes=disk_bytes or
                            4 << 30))

    def start(self):
        self.deadline = time.monotonic() + START_SECONDS
        try:
            self.start_monitor()
            self.start_osd()
            self.start_gateway()
        except BaseException:
            self.end()
            raise
        return self

    def end(self):
        for daemon in reversed(self.daemons):
            daemon.kill()
            daemon.wait()
        shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def client(self, access):
        return Client(self.url, access, self.keys[access])

    # --- how it starts

    def run(self, *argv):
        try:
            done = subprocess.run(argv, env=self.env(), stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, check=False,
                                  timeout=max(1, self.deadline - time.monotonic()))
        except subprocess.TimeoutExpired as e:
            raise CephError(f"{argv}: not within {START_SECONDS} s; {self.logs()}") from e
        if done.returncode != 0:
            raise CephError(f"{argv}: {done.stdout}{done.stderr}; {self.logs()}")

    def daemon(self, *argv):
        """It ends with this process, however that does."""
        with open(os.path.join(self.dir, f"{argv[0]}.out"), "wb") as out:
            self.daemons.append(
                subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *argv, "-f"], env=self.env(),
                                 stdin=subprocess.DEVNULL, stdout=out, stderr=out))

    def env(self):
        return {**os.environ, "CEPH_CONF": self.conf}

    def logs(self, size=2000):
        """The end of all that its daemons said."""
        texts = []
        for name in sorted(os.listdir(self.dir)):
            if name.endswith((".log", ".out")):
                with open(os.path.join(self.dir, name), encoding="utf-8", errors="replace") as f:
                    texts.append(f"{name}: {f.read()[-size:]}")
        return "\n".join(texts)

    def start_monitor(self):
        monmap = os.path.join(self.dir, "monmap")
        os.mkdir(os.path.join(self.dir, "mon"))
        self.run("monmaptool", "--create", "--fsid", FSID, "--addv", "a",
                 f"[v2:127.0.0.1:{self.port}/0]", monmap)
        self.run("ceph-mon", "--no-mon-config", "--mkfs", "-i", "a", "--monmap", monmap)
        self.daemon("ceph-mon", "-i", "a")

    def start_osd(self):
        os.mkdir(os.path.join(self.dir, "osd"))
        self.run("ceph", "osd", "new", OSD_ID)
        self.run("ceph-osd", "--no-mon-config", "-i", "0", "--mkfs", "--osd-uuid", OSD_ID)
        self.daemon("ceph-osd", "-i", "0")

    def start_gateway(self):
        """Its users first: what radosgw-admin does waits for the OSD."""
        for access, secret in self.keys.items():
            self.run("radosgw-admin", "user", "create", f"--uid={access.lower()}",
                     "--display-name=test", f"--access-key={access}", f"--secret-key={secret}")
        self.daemon("radosgw", "-n", "client.rgw")
        while not self.answers():
            ended = [d.args for d in self.daemons if d.poll() is not None]
            if ended or time.monotonic() > self.deadline:
                raise CephError(f"the gateway does not answer; ended: {ended}; {self.logs()}")
            time.sleep(0.1)

    def answers(self):
        with contextlib.suppress(OSError, http.client.HTTPException):
            return Client(self.url, "", "").request("GET", "/").status == 200
        return False


class Answer:
    def __init__(self, response):
        self.status, self.headers, self.body = response.status, response.headers, response.read()


class Client:
    def __init__(self, url, access, secret, region="us-east-1"):
        self.host, self.access, self.secret, self.region = url.split(
            "//")[1], access, secret, region

    def request(self, method, path, query="", body=b"", headers=None):
        """`path` is escaped already; without an access key it is not signed."""
        date = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        headers = {
            "host": self.host, "x-amz-date": date,
            "x-amz-content-sha256": hashlib.sha256(body).hexdigest(), **(headers or {})
        }
        if self.access:
            signed = sorted(headers)
            sign = signature(self.secret, method, path, query, headers, signed, date, self.region,
                             "s3")
            scope = f"{date[:8]}/{self.region}/s3/aws4_request"
            headers["authorization"] = (f"AWS4-HMAC-SHA256 Credential={self.access}/{scope}, "
                                        f"SignedHeaders={';'.join(signed)}, Signature={sign}")
        connection = http.client.HTTPConnection(self.host, timeout=60)
        with contextlib.closing(connection):
            connection.request(method, path + ("?" + query if query else ""), body=body,
                               headers=headers)
            return Answer(connection.getresponse())

    def ask(self, status, method, path, **how):
        answer = self.request(method, path, **how)
        if answer.status != status:
            raise CephError(f"{method} {path}: {answer.status} {answer.body}")
        return answer

    @staticmethod
    def path(bucket, key):
        return f"/{bucket}/" + urllib.parse.quote(key, safe="/-_.~")

    def create(self, bucket):
        self.ask(200, "PUT", f"/{bucket}")

    def put(self, bucket, key, data, **headers):
        return self.ask(200, "PUT", self.path(bucket, key), body=data,
                        headers={k.replace("_", "-"): v
                                 for k, v in headers.items()}).headers["ETag"]

    def get(self, bucket, key):
        """None where there is no such object."""
        answer = self.request("GET", self.path(bucket, key))
        if answer.status not in (200, 404):
            raise CephError(f"{key}: {answer.status} {answer.body}")
        return answer.body if answer.status == 200 else None

    def head(self, bucket, key):
        return self.ask(200, "HEAD", self.path(bucket, key)).headers

    def remove(self, bucket, key):
        self.ask(204, "DELETE", self.path(bucket, key))

    def uploads(self, bucket):
        """Keys of uploads in parts that are open."""
        tree = xml.etree.ElementTree.fromstring(
            self.ask(200, "GET", f"/{bucket}", query="uploads=").body)
        return [e.text for e in tree.iter() if e.tag.endswith("}Key") or e.tag == "Key"]

"""The two servers that are compared: a private cluster of ours, and nginx."""

import http.client
import json
import os
import shutil
import ssl
import subprocess
import time
import urllib.parse
from pathlib import Path

from benchlib import ROOT, children, free_port, log, wait_for_port

NGINX_CONF = """
daemon off;
worker_processes {workers};
pid {dir}/nginx.pid;
error_log {dir}/error.log error;
{user}
events {{ worker_connections 8192; }}
http {{
    access_log off;
    sendfile on;
    default_type application/octet-stream;
    keepalive_requests 1000000000;
    client_max_body_size 0;
    client_body_temp_path {dir}/tmp;
    proxy_temp_path {dir}/tmp-proxy;
    fastcgi_temp_path {dir}/tmp-fastcgi;
    uwsgi_temp_path {dir}/tmp-uwsgi;
    scgi_temp_path {dir}/tmp-scgi;
    server {{
        listen 127.0.0.1:{port} backlog=4096{tls};
        root {dir}/www;
        open_file_cache {cache};
        dav_methods PUT DELETE;
        create_full_put_path on;
    }}
}}
"""


class Nginx:
    """Static files by sendfile, PUT by its dav module (temporary file and rename, as ours)."""

    name = "nginx"

    def __init__(self, directory, workers=2, open_file_cache=False, pair=None):
        """`pair`: paths of a certificate and its key, with which it speaks TLS."""
        self.dir = directory
        self.port = free_port()
        self.url = f"{'https' if pair else 'http'}://127.0.0.1:{self.port}"
        for d in ("www", "tmp"):
            (directory / d).mkdir(parents=True)
        conf = NGINX_CONF.format(
            dir=directory, port=self.port, workers=workers,
            user="user root;" if os.geteuid() == 0 else "",
            cache="max=10000" if open_file_cache else "off",
            tls=f" ssl; ssl_protocols TLSv1.2 TLSv1.3; ssl_certificate {pair[0]}; "
                f"ssl_certificate_key {pair[1]}" if pair else "")
        (directory / "nginx.conf").write_text(conf)

    @staticmethod
    def program():
        return shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")

    def __enter__(self):
        self.process = subprocess.Popen(
            [self.program(), "-e", str(self.dir / "error.log"), "-p", str(self.dir),
             "-c", str(self.dir / "nginx.conf")])
        wait_for_port(self.port, self.process)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def pids(self):
        return children(self.process.pid)

    def new_place(self, name):
        """→ the prefix of paths under a fresh, empty folder."""
        (self.dir / "www" / name).mkdir()
        return f"/{name}/"

    def put_first(self, prefix):
        put(self.url + prefix + "first")

    def remove_place(self, name):
        shutil.rmtree(self.dir / "www" / name)


class Cluster:
    """One of ours, brought up by deploy/local/cluster."""

    name = "dfc"

    def __init__(self, directory, build, targets=1, mountpaths=1, keyed=True, more=()):
        self.dir = directory
        self.more = [*more, *([] if keyed else ["--without-key"])]
        self.build = build
        self.proof = {}  # headers that prove who asks, with access control
        self.counts = {"proxies": 1, "targets": targets, "mountpaths": mountpaths}

    def tool(self, verb, *more):
        command = [str(ROOT / "deploy/local/cluster"), verb, "--dir", str(self.dir), *more]
        env = {**os.environ, "DFC_BUILD": str(self.build)}
        return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True,
                              env=env).stdout

    def __enter__(self):
        options = [f"--{name}={count}" for name, count in self.counts.items()]
        try:
            self.environment = dict(
                line.split("=", 1) for line in self.tool("up", *options, *self.more).splitlines())
            self.nodes = json.loads(self.tool("status", "--json"))["nodes"]
        except BaseException:
            self.__exit__()
            raise
        self.proxy = next(n for n in self.nodes if n["role"] == "proxy")
        self.targets = [n for n in self.nodes if n["role"] == "target"]
        self.url = self.targets[0]["url"]
        return self

    def __exit__(self, *_):
        try:
            self.tool("down")
        except (OSError, subprocess.SubprocessError) as e:
            log(f"the cluster in {self.dir} did not end: {e}")

    def pids(self):
        return [n["pid"] for n in self.targets]

    def all_pids(self):
        return [n["pid"] for n in self.nodes]

    def call(self, method, path, body=None):
        """A control call to the proxy → the JSON of its answer, None where it has no body."""
        at = urllib.parse.urlsplit(self.proxy["url"])
        connection = connect(at)
        try:
            connection.request(method, path, None if body is None else json.dumps(body),
                               {"Content-Type": "application/json", **self.proof})
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {text}")
        return json.loads(text) if text else None

    def new_place(self, name, durability="async", **props):
        """→ the prefix of the objects of a fresh bucket."""
        self.call("POST", f"/v1/buckets/{name}",
                  {"action": "create", "value": {"durability": durability, **props}})
        return f"/v1/objects/{name}/"

    def put_first(self, prefix):
        """One object by way of the proxy: from its redirect the target learns that the bucket is
        there, if nobody has told it yet, and makes the bucket's folders."""
        put(self.proxy["url"] + prefix + "first", self.proof)

    def remove_place(self, name):
        """Until its files are gone: the sweeper's work is not the next run's."""
        buckets = self.call("GET", "/v1/buckets")["buckets"]
        number = next(b["id"] for b in buckets if b["name"] == name)
        self.call("DELETE", f"/v1/buckets/{name}")
        deadline = time.monotonic() + 600
        while any(next(Path(self.dir).glob(f"*/mp*/.dfc/{place}"), None) is not None
                  for place in (f"obj/{number}", "trash/*")):
            if time.monotonic() > deadline:
                raise RuntimeError(f"the files of bucket {name} are still there")
            time.sleep(0.01)


def connect(at):
    """A connection to the host of a split URL; certificates are those of the benchmark itself."""
    if at.scheme == "http":
        return http.client.HTTPConnection(at.hostname, at.port, timeout=60)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return http.client.HTTPSConnection(at.hostname, at.port, timeout=60, context=context)


def request(method, url, body=None, headers=None):
    """→ status, Location, bytes."""
    at = urllib.parse.urlsplit(url)
    connection = connect(at)
    try:
        connection.request(method, at.path + (f"?{at.query}" if at.query else ""), body,
                           headers or {})
        answer = connection.getresponse()
        return answer.status, answer.getheader("Location"), answer.read()
    finally:
        connection.close()


def put(url, headers=None, body=b"first"):
    """An object, by default a small one; takes a redirect."""
    status, location, data = request("PUT", url, body, headers)
    if status == 307:
        status, _, data = request("PUT", location, body, headers)
    if status not in (200, 201):
        raise RuntimeError(f"PUT {url}: {status} {data.decode(errors='replace')}")


def fetch(url):
    """→ status, bytes."""
    status, _, data = request("GET", url)
    return status, data

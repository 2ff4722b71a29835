"""The frame of the black-box tests: a private cluster, HTTP, and checks.

A test script is a row of functions, each one behaviour, and ends with

    if __name__ == "__main__":
        main(targets=3)

main() starts a cluster of that shape in a temporary directory, calls every function whose name
begins with test_, in the order in which they stand there, with the cluster, and ends with 0 only
if all passed, every daemon that the test did not end itself was alive at the end, all of them
ended cleanly, and no sanitizer said anything in their logs.  skip() ends the script with 77.

DFC_BUILD names the build directory (default: build/ of the source tree).
DFC_TEST_TLS=1: clients speak TLS with the cluster.
DFC_TEST_KEEP=1 keeps the directory of a test that failed.
"""

import atexit
import concurrent.futures
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "reference"))
import authref  # noqa: E402
from cluster_calls import SCRIPT as CLUSTER, ClusterCalls  # noqa: E402,F401
from leaks import leaks  # noqa: E402
from ports import Ports  # noqa: E402,F401

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
BUILD = os.path.abspath(os.environ.get("DFC_BUILD") or os.path.join(ROOT, "build"))
CALLS = ClusterCalls()  # of CLUSTER
SANITIZED = os.environ.get("DFC_SANITIZER", "none") != "none"  # the build
TLS = os.environ.get("DFC_TEST_TLS") == "1"  # clients speak TLS with the cluster
WAIT_SECONDS = 60  # how long anything that must happen may take; sanitizers and valgrind are slow
ENDED = ("finished", "failed", "aborted")

# Who this machine is to AWS is not for tests.
for variable in [v for v in os.environ if v.startswith("AWS_")]:
    del os.environ[variable]
os.environ["AWS_EC2_METADATA_DISABLED"] = "true"


class Failed(Exception):
    """A check that did not hold."""


def check(condition, message):
    if not condition:
        raise Failed(message)


def equal(got, wanted, what):
    if got != wanted:
        raise Failed(f"{what}: got {shorten(got)}, wanted {shorten(wanted)}")


def shorten(value, limit=600):
    text = repr(value)
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def wait_for(condition, what, seconds=WAIT_SECONDS):
    """Asks until condition() is true; returns what it said.

    The pauses grow with what has been waited, so that tests beside this one have the processors."""
    began = time.monotonic()
    while True:
        answer = condition()
        if answer:
            return answer
        waited = time.monotonic() - began
        if waited > seconds:
            raise Failed(f"{what}: not within {seconds} s")
        time.sleep(min(max(waited / 20, 0.02), 0.1))


def in_parallel(function, items, workers=8):
    """function(item) for every item, in threads; its results in order, or its first failure."""
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        return list(pool.map(function, items))


# --- files that a daemon may remove meanwhile ----------------------------------------------------

def size_of(path):
    """0 where it has gone since it was listed."""
    try:
        return os.path.getsize(path)
    except FileNotFoundError:
        return 0


def contents(path):
    """None where it has gone."""
    try:
        with open(path, "rb") as f:
            return f.read()
    except FileNotFoundError:
        return None


# --- the source ----------------------------------------------------------------------------------

def copy_source(to):
    """A copy of the source tree, without builds."""
    def left_out(at, names):
        return [n for n in names if n in (".git", "__pycache__")
                or at == ROOT and n.startswith("build")]

    shutil.copytree(ROOT, to, ignore=left_out)


# --- HTTP ----------------------------------------------------------------------------------------

class Reply:
    """A reply, whole."""

    def __init__(self, response, body, url):
        self.status = response.status
        self.headers = response.headers  # names in any case
        self.body = body
        self.url = url  # of the node that answered

    def json(self):
        try:
            return json.loads(self.body)
        except ValueError:
            raise Failed(f"{self.url}: not JSON: {shorten(self.body)}") from None

    def __repr__(self):
        return f"<{self.status} from {self.url}: {shorten(self.body, 300)}>"

    def expect(self, status, code=None, text=None):
        """Checks the status and, of an error, its document; returns the reply."""
        if self.status != status:
            raise Failed(f"wanted {status} {code or ''}, got {self!r}")
        if code is not None:
            document = self.json()
            equal(document.get("status"), status, f"{self!r} 'status'")
            equal(document.get("code"), code, f"{self!r} 'code'")
            check(document.get("message"), f"{self!r} has no message")
            check(document.get("node"), f"{self!r} names no node")
            check(document.get("request_id"), f"{self!r} has no request id")
        if text is not None:
            message = self.json()["message"] if code is not None else self.body.decode()
            check(text in message, f"wanted '{text}' in the message of {self!r}")
        return self


class Http:
    """Requests with connections kept per thread and server, as a good client does."""

    def __init__(self):
        self.local = threading.local()
        self.context = None  # what https:// URLs are trusted by

    def trust(self, ca_file):
        self.context = ssl.create_default_context(cafile=ca_file)

    def new_connection(self, scheme, netloc):
        host, _, port = netloc.rpartition(":")
        if scheme == "https":
            return http.client.HTTPSConnection(host, int(port), context=self.context)
        return http.client.HTTPConnection(host, int(port))

    def connection(self, scheme, netloc, timeout):
        pool = self.local.__dict__.setdefault("pool", {})
        if netloc not in pool:
            pool[netloc] = self.new_connection(scheme, netloc)
        connection = pool[netloc]
        connection.timeout = timeout
        if connection.sock is not None:
            connection.sock.settimeout(timeout)
        return connection

    def close(self):
        for connection in self.local.__dict__.get("pool", {}).values():
            connection.close()
        self.local.__dict__.pop("pool", None)

    def request(self, method, url, body=None, headers=None, follow=True, timeout=WAIT_SECONDS):
        """One request, redirects followed.  The path goes out as it stands in the URL."""
        for _ in range(5):
            reply = self.request_once(method, url, body, headers or {}, timeout)
            if not follow or reply.status != 307:
                return reply
            url = reply.headers["Location"]
        raise Failed(f"{method} {url}: redirected without end")

    def request_once(self, method, url, body, headers, timeout):
        scheme, netloc, rest = re.match(r"(https?)://([^/]+)(/.*)", url, re.S).groups()
        for attempt in (1, 2):
            connection = self.connection(scheme, netloc, timeout)
            fresh = connection.sock is None
            try:
                connection.request(method, rest, body=body, headers=headers)
                response = connection.getresponse()
                return Reply(response, response.read(), url)
            except (ConnectionError, http.client.RemoteDisconnected, ssl.SSLEOFError):
                connection.close()
                # A kept connection may have been closed by its idle server meanwhile.
                if fresh or attempt == 2:
                    raise
            except BaseException:
                connection.close()
                raise


class Member:
    """Requests to the listeners between nodes, signed with the cluster's key as a node signs them.

    The sessions are opened when they are needed, and again after a restart of the other side."""

    def __init__(self, http, key_file):
        self.http = http
        with open(key_file, encoding="ascii") as f:
            self.key = f.readline().strip()
        self.sessions = {}
        self.lock = threading.Lock()

    def session(self, url):
        origin = re.match(r"http://[^/]+", url).group()
        with self.lock:
            if origin not in self.sessions:
                self.sessions[origin] = authref.Session.open(self.http, origin, self.key)
            return self.sessions[origin]

    def sign(self, method, url, body=b"", headers=None, counter=None):
        session = self.session(url)
        with self.lock:
            return session.sign(method, url, body or b"", headers, counter)

    def request(self, method, url, body=None, headers=None, **options):
        for attempt in (1, 2):
            signed = self.sign(method, url, body, headers)
            reply = self.http.request(method, url, body, signed, follow=False, **options)
            unknown = 'error="session"' in reply.headers.get("WWW-Authenticate", "")
            if not unknown or attempt == 2:
                return reply
            with self.lock:
                self.sessions.pop(re.match(r"http://[^/]+", url).group(), None)


# What is administration, and so on the control listener alone.
ADMINISTRATION = re.compile(r"\w+ /v1/(cluster/documents|daemon/mountpaths|daemon/indexes)\b|"
                            r"PUT /v1/(cluster|daemon)(\?|$)")


def escape(name):
    """An object's name as it goes into a path: unreserved characters and slashes stay."""
    return urllib.parse.quote(name, safe="/")


def raw_connection(address, timeout, context):
    plain = socket.create_connection(address, timeout=timeout)
    return context.wrap_socket(plain, server_hostname=address[0]) if context else plain


def raw_exchange(address, data, timeout=WAIT_SECONDS, shut=False, context=None):
    """Sends bytes as they are and reads to the end of the connection, or of one reply.  context: of
    TLS, if the listener speaks it (c.http.context).

    Returns the Reply; None where the server closed without one."""
    with raw_connection(address, timeout, context) as s:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            s.sendall(data)
            if shut:
                s.shutdown(socket.SHUT_WR)
        response = http.client.HTTPResponse(s, method=data.split(b" ", 1)[0].decode("latin-1"))
        try:
            response.begin()
            return Reply(response, response.read(), "http://%s:%d" % address)
        except (http.client.BadStatusLine, ConnectionResetError):
            return None


# --- the cluster ---------------------------------------------------------------------------------

SANITIZER = re.compile(r"ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|runtime error:|"
                       r"LeakSanitizer|Assertion .* failed|AddressSanitizer:")


def sanitizer_found(node, log, lines=60):
    """What a sanitizer has said in a node's log, from where it begins; None: nothing."""
    found = SANITIZER.search(log)
    if found is None:
        return None
    said = log[log.rfind("\n", 0, found.start()) + 1:].splitlines()[:lines]
    return "\n".join([f"the log of {node} has '{found.group()}'", *said])


# Backends of tests are on this machine, at any port; credentials are for all of them.
ENDPOINTS = [f"--{role}-arg=--backend-endpoints=s3 http://127.0.0.1:* *,s3 http://localhost:* *,"
             "gcs http://127.0.0.1:*"
             for role in ("proxy", "target")]


class Cluster:
    def __init__(self, proxies=1, targets=3, mountpaths=2, metastore="embedded", args=()):
        self.dir = tempfile.mkdtemp(prefix="dfc-test-")
        self.http = Http()
        self.ended_by_test = set()
        self.ports = Ports()
        atexit.register(self.remove)
        self.run("up", "--proxies", proxies, "--targets", targets, "--mountpaths", mountpaths,
                 "--metastore", metastore, "--base-port", self.ports.base, *ENDPOINTS, *args,
                 *(["--tls"] if TLS else []), *self.args_of_up())
        if os.path.exists(self.ca_file()):
            self.http.trust(self.ca_file())
        self.nodes = {n["name"]: n for n in self.status()}
        self.endpoint = self.nodes["p1"]["url"]
        self.key_file = os.path.join(self.dir, "cluster.key")
        self.member = Member(self.http, self.key_file) if os.path.exists(self.key_file) else None

    def ca_file(self):
        return os.path.join(self.dir, "tls", "ca.crt")

    def args_of_up(self):
        """What a kind of cluster of its own (wires.py) adds to them."""
        return ()

    # The script that everybody uses.

    def run(self, command, *args, ok=True):
        env = dict(os.environ, DFC_BUILD=BUILD)
        done = CALLS.run([command, "--dir", self.dir, *map(str, args)], env)
        if ok and done.returncode != 0:
            raise Failed(f"cluster {command} {args}: {done.stderr}")
        return done

    def status(self):
        return json.loads(self.run("status", "--json").stdout)["nodes"]

    def state(self, node):
        return next(n["state"] for n in self.status() if n["name"] == node)

    def pid(self, node):
        return next(n["pid"] for n in self.status() if n["name"] == node)

    def kill(self, node, *args):
        self.run("kill", node, *(args or ("-9",)))
        self.ended_by_test.add(node)

    def stop(self, node):
        self.run("stop", node)
        self.ended_by_test.add(node)

    def start(self, node, *args):
        self.run("start", node, *args)
        self.ended_by_test.discard(node)

    def restart(self, node, *args):
        self.stop(node)
        self.start(node, *args)
        self.wait_node(node, "active")

    def add_target(self, *args):
        """Another target joins; returns its name."""
        name = self.run("add-target", *args).stdout.strip()
        self.nodes = {n["name"]: n for n in self.status()}
        return name

    def node_dir(self, node):
        return os.path.join(self.dir, node)

    def log(self, node):
        with open(os.path.join(self.dir, "logs", node + ".log"), encoding="utf-8",
                  errors="replace") as f:
            return f.read()

    def targets(self):
        return [name for name, n in self.nodes.items() if n["role"] == "target"]

    def object_files(self, node):
        """Paths of the files that hold a target's objects (and tombstones)."""
        for mountpath in sorted(d for d in os.listdir(self.node_dir(node)) if d.startswith("mp")):
            top = os.path.join(self.node_dir(node), mountpath, ".dfc", "obj")
            for at, _, files in os.walk(top):
                yield from (os.path.join(at, name) for name in files)

    # Requests.

    def url(self, node="p1"):
        return self.nodes[node]["url"]

    def address(self, node="p1"):
        parts = urllib.parse.urlsplit(self.url(node))
        return parts.hostname, parts.port

    def control_url(self, node="p1"):
        """By the ports that deploy/local/cluster gives: the control port follows the public one."""
        host, port = self.address(node)
        return f"http://{host}:{port + 1}"

    def call(self, method, path, body=None, node="p1", headers=None, **options):
        """A client's, on the public listener; an operator's, signed, where it is administration."""
        if ADMINISTRATION.match(f"{method} {path}"):
            return self.administer(method, path, body, node, headers, **options)
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
        return self.http.request(method, self.url(node) + path, body, headers, **options)

    def administer(self, method, path, body=None, node="p1", headers=None, **options):
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
        request = self.member.request if self.member else self.http.request
        return request(method, self.control_url(node) + path, body, headers, **options)

    def get_json(self, path, node="p1"):
        return self.call("GET", path, node=node).expect(200).json()

    def create(self, bucket, **props):
        body = {"action": "create", "value": props} if props else {"action": "create"}
        return self.call("POST", f"/v1/buckets/{bucket}", body).expect(201)

    def setting(self, name, value):
        body = {"action": "setconfig", "name": name, "value": value}
        self.call("PUT", "/v1/cluster", body).expect(200)

    def destroy(self, bucket):
        return self.call("DELETE", f"/v1/buckets/{bucket}").expect(204)

    def object(self, method, bucket, name, body=None, headers=None, query="", **options):
        path = f"/v1/objects/{bucket}/{escape(name)}" + ("?" + query if query else "")
        return self.call(method, path, body, headers=headers, **options)

    def put(self, bucket, name, data, headers=None, **options):
        return self.object("PUT", bucket, name, data, headers, **options).expect(200)

    def get(self, bucket, name, headers=None, **options):
        return self.object("GET", bucket, name, headers=headers, **options)

    def owner(self, bucket, name, node="p1"):
        """The node to which the proxy sends writes of this object."""
        reply = self.object("DELETE", bucket, name, node=node, follow=False).expect(307)
        location = reply.headers["Location"]
        for node_name, n in self.nodes.items():
            if location.startswith(n["url"] + "/"):
                return node_name
        raise Failed(f"no node has the address of {location}")

    def pages(self, bucket, node="p1", **query):
        """Every page of a listing."""
        token = ""
        while True:
            fields = {k: v for k, v in query.items() if v is not None}
            if token:
                fields["token"] = token
            asked = urllib.parse.urlencode(fields, quote_via=urllib.parse.quote)  # a plus is a plus
            page = self.get_json(f"/v1/objects/{bucket}?{asked}", node)
            yield page
            token = page["next"]
            if not token:
                return

    def names(self, bucket, **query):
        return [e["name"] for page in self.pages(bucket, **query) for e in page["entries"]]

    def wait_node(self, node, state, seconds=WAIT_SECONDS):
        """Until the cluster map has the node in this state."""
        def reached():
            nodes = self.get_json("/v1/cluster")["nodes"]
            return any(n["id"] == node and n["state"] == state for n in nodes)

        wait_for(reached, f"{node} {state} in the map", seconds)

    # Jobs.

    def sort(self, spec):
        return self.call("POST", "/v1/sort", spec).expect(202).json()["id"]

    def job(self, job_id):
        return self.get_json(f"/v1/sort?id={job_id}")

    def wait_job(self, job_id, *states, seconds=WAIT_SECONDS):
        """Until the job has ended, or is in one of the states; returns its document."""
        def reached():
            job = self.job(job_id)
            return job if job["state"] in ENDED + states else None

        return wait_for(reached, f"end of {job_id}", seconds)

    def dfcctl_environment(self):
        return {**os.environ, "DFC_ENDPOINT": self.endpoint,
                "XDG_CACHE_HOME": os.path.join(self.dir, "cache"),
                "DFC_CLUSTER_KEY_FILE": self.key_file if self.member else "",
                "DFC_CA_FILE": self.ca_file() if self.http.context else ""}

    def dfcctl(self, *args, env=None, **options):
        """Runs dfcctl against this cluster; returns the CompletedProcess."""
        options = {"text": True, "timeout": WAIT_SECONDS, **options}
        return subprocess.run([os.path.join(BUILD, "dfcctl"), *map(str, args)],
                              env={**self.dfcctl_environment(), **(env or {})},
                              capture_output=True, check=False, **options)

    # The end.

    def verdict(self):
        """Ends the cluster; what is wrong with how its daemons lived and ended."""
        wrong = [f"{n['name']} died" for n in self.status()
                 if n["pid"] is None and n["name"] not in self.ended_by_test]
        done = self.run("down", ok=False)
        if done.returncode != 0:
            wrong.append(done.stderr.strip())
        found = (sanitizer_found(node, self.log(node)) for node in self.nodes)
        return wrong + [said for said in found if said is not None] + leaks(self)

    def print_logs(self, lines=40):
        for node in self.nodes if hasattr(self, "nodes") else ():
            print(f"--- end of the log of {node}", *self.log(node).splitlines()[-lines:], sep="\n")

    def remove(self):
        self.http.close()
        if os.path.exists(os.path.join(self.dir, "cluster.json")):
            self.run("down", "--stop-seconds", 10, ok=False)
        shutil.rmtree(self.dir, ignore_errors=True)

    def keep(self):
        """Ends the cluster and leaves its files for whoever looks into a failure."""
        self.run("down", "--stop-seconds", 10, ok=False)
        atexit.unregister(self.remove)
        print(f"its files stay in {self.dir}")


# --- running -------------------------------------------------------------------------------------

def end_on_signals():
    """What ends the test runs its clean-up."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda n, _: sys.exit(128 + n))


def run_one(name, function, *args):
    began = time.monotonic()
    try:
        function(*args)
    except Failed as e:
        print(f"not ok  {name}: {e}\n        {origin(e)}")
    except Exception as e:  # a test that breaks off is a test that failed; the others still run
        print(f"not ok  {name}: {e!r}\n        {origin(e)}\n{traceback.format_exc()}")
    else:
        print(f"ok      {name} ({time.monotonic() - began:.1f} s)", flush=True)
        return True
    sys.stdout.flush()
    return False


def origin(error):
    """The line of the test script itself that a check came from."""
    own = [f for f in traceback.extract_tb(error.__traceback__)
           if os.path.basename(f.filename) != "lib.py"]
    return "; ".join(f"{os.path.basename(f.filename)}:{f.lineno}" for f in own)


def main(make=Cluster, **shape):
    """Runs the test_ functions of the calling script on a cluster of this shape.

    Arguments: --targets=N in place of the script's own number, and names of tests to run alone."""
    end_on_signals()
    script = sys.modules["__main__"]
    only = [a for a in sys.argv[1:] if not a.startswith("--")]
    shape.update((k, int(v)) for k, _, v in (a[2:].partition("=") for a in sys.argv[1:]
                                             if a.startswith("--")))
    tests = [(n, f) for n, f in vars(script).items()
             if n.startswith("test_") and callable(f) and (not only or n in only)]
    cluster = make(**shape)
    failed = [name for name, function in tests if not run_one(name, function, cluster)]
    if failed:
        cluster.print_logs()
    wrong = cluster.verdict()
    for sentence in wrong:
        print(f"not ok  {sentence}")
    if wrong and not failed:
        cluster.print_logs()
    if (wrong or failed) and os.environ.get("DFC_TEST_KEEP"):
        cluster.keep()
    print(f"{len(tests) - len(failed)} passed, {len(failed)} failed")
    sys.exit(1 if failed or wrong else 0)

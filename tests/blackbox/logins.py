#!/usr/bin/env python3
"""dfcctl and libdfc in a cluster with access control: with root's key alone, which `cluster up
--auth` prints, they do what they do elsewhere."""

import http.server
import json
import os
import ssl
import threading

from access_lib import GuardedCluster, Identity, make_user
from lib import TLS, check, equal, main, wait_for

OK, DENIED = 0, 7
NO_KEY = {"DFC_CLUSTER_KEY_FILE": ""}


def keys(user):
    return {"DFC_ACCESS_KEY": user.access, "DFC_SECRET_KEY": user.secret}


def run(c, *args, user=None, status=OK, env=None, **options):
    env = {**NO_KEY, **keys(user or c.root), **(env or {})}
    done = c.dfcctl(*args, env=env, **options)
    equal(done.returncode, status, f"dfcctl {args}: {done.stdout}{done.stderr}")
    return done


def nobody(c, *args, env=None, **options):
    return run(c, *args, env={"DFC_ACCESS_KEY": "", "DFC_SECRET_KEY": "", **(env or {})}, **options)


def test_objects_and_jobs(c):
    run(c, "bucket", "create", "logins")
    run(c, "put", "-", "logins/a", input="data")
    run(c, "put", "-", "logins/large", input="x" * 3000000)
    equal(run(c, "cat", "logins/a").stdout, "data", "cat")
    equal(len(run(c, "cat", "logins/large").stdout), 3000000, "a large object")
    check("large" in run(c, "ls", "logins").stdout, "ls")
    run(c, "mv", "logins/a", "logins/b")
    run(c, "rm", "logins/b")
    run(c, "job", "start", "cleanup", "--wait")
    run(c, "bucket", "rm", "logins", "--yes")


def test_administration(c):
    """By the token: there is no key file."""
    run(c, "cluster", "status")
    run(c, "config", "set", "jobs_max", "500")
    run(c, "config", "set", "--node", "t1", "log_level", "debug")
    run(c, "config", "set", "--node", "t1", "log_level", "info")
    run(c, "storage", "reindex", "t1")
    run(c, "node", "show", "t2", "--what", "mountpaths")
    run(c, "node", "maintenance", "start", "t1")
    run(c, "node", "maintenance", "stop", "t1")


def test_a_backup_takes_the_cluster_key(c):
    path = os.path.join(c.dir, "backup")
    check("DFC_CLUSTER_KEY_FILE" in run(c, "cluster", "backup", path, status=DENIED).stderr,
          "a backup without the key")
    run(c, "cluster", "backup", path, env={"DFC_CLUSTER_KEY_FILE": c.key_file})


def test_the_cluster_key_alone(c):
    """At a control listener it administers, whatever the login; at a public one it opens nothing."""
    env = {"DFC_CLUSTER_KEY_FILE": c.key_file}
    said = nobody(c, "config", "set", "jobs_max", "501", env=env, status=DENIED).stderr
    check("--control" in said, said)
    signed = c.member.sign("GET", c.control_url() + "/v1/cluster")
    c.bare("GET", "/v1/cluster", headers=signed).expect(401, "unauthorized")
    control = {**env, "DFC_ENDPOINT": "", "DFC_CONTROL_ENDPOINT": c.control_url("p1")}
    nobody(c, "config", "set", "jobs_max", "501", env=control)
    check("501" in nobody(c, "config", "show", env=control).stdout, "config show")
    check("t1" in nobody(c, "node", "ls", env=control).stdout, "node ls")
    nobody(c, "node", "show", "t1", "--what", "mountpaths", env=control)
    nobody(c, "config", "set", "--node", "t1", "log_level", "info", env=control)
    nobody(c, "node", "maintenance", "start", "t1", env=control)
    nobody(c, "node", "maintenance", "stop", "t1", env=control)
    nobody(c, "cluster", "backup", os.path.join(c.dir, "backup.key"), env=control)
    key = json.loads(nobody(c, "user", "key", "add", "root", "-o", "json", env=control).stdout)
    nobody(c, "user", "key", "rm", "root", key["access_key"], env=control)
    wrong = {"DFC_ACCESS_KEY": c.root.access, "DFC_SECRET_KEY": "x" * 40}
    nobody(c, "user", "ls", "--control", c.control_url("p1"), env={**env, **wrong})
    nobody(c, "bucket", "ls", env={**env, "DFC_CONTROL_ENDPOINT": c.control_url("p1")},
           status=DENIED)


def test_another_key_administers_nothing(c):
    path = os.path.join(c.dir, "other.key")
    with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as f:
        f.write("x" * 32)
    for file, said in ((path, "not this cluster's"), ("", "cluster key")):
        env = {"DFC_CLUSTER_KEY_FILE": file, "DFC_CONTROL_ENDPOINT": c.control_url("p1")}
        check(said in nobody(c, "user", "ls", env=env, status=DENIED).stderr, f"by {file!r}")


def test_refusals(c):
    check("dfcctl login" in nobody(c, "bucket", "ls", status=DENIED).stderr, "without a key")
    wrong = {"DFC_SECRET_KEY": "x" * 40}
    check("secret" in run(c, "bucket", "ls", status=DENIED, env=wrong).stderr, "a wrong secret")
    c.create("seen")
    user = make_user(c, "viewer", [{"rights": ["list"], "bucket": "seen"}])
    run(c, "ls", "seen", user=user)
    check("write" in run(c, "put", "-", "seen/a", user=user, input="x", status=DENIED).stderr,
          "which right is missing")
    run(c, "config", "set", "jobs_max", "1", user=user, status=DENIED)


def test_a_token_serves_as_well(c):
    token = json.loads(c.root.login().body)["token"]
    check("seen" in nobody(c, "bucket", "ls", env={"DFC_TOKEN": token}).stdout, "by a token")


def test_a_login_is_kept(c):
    """By what the first primary wrote, with its certificate authority."""
    env = {"XDG_CONFIG_HOME": os.path.join(c.dir, "config")}
    with open(os.path.join(c.node_dir("p1"), "root.json"), encoding="utf-8") as f:
        said = nobody(c, "login", "--stdin", input=f.read(), env=env).stdout
    check("logged in as 'root'" in said, said)
    env = {**env, "DFC_ENDPOINT": "", "DFC_CA_FILE": ""}
    check("root" in nobody(c, "whoami", env=env).stdout, "whoami")
    nobody(c, "config", "set", "jobs_max", "600", env=env)


def test_a_rate_by_commands(c):
    """Each part is set for itself, and 0 takes it away."""
    def rate(*flags, command="update"):
        return json.loads(run(c, "user", command, "fast", *flags, "-o", "json").stdout).get("rate", {})
    equal(rate("--bytes-rate", "1MiB", command="create"), {"requests": 0, "bytes": 1 << 20}, "of a new user")
    equal(rate("--requests-rate", "100"), {"requests": 100, "bytes": 1 << 20}, "both")
    equal(rate("--role", "reader"), {"requests": 100, "bytes": 1 << 20}, "as it was")
    check("100 requests/s, 1 MiB/s on each node" in run(c, "user", "show", "fast").stdout, "show")
    equal(rate("--bytes-rate", "0"), {"requests": 100, "bytes": 0}, "one part")
    equal(rate("--requests-rate", "0"), {}, "none")
    check("rate" not in run(c, "user", "show", "fast").stdout, "no limit, no row")
    run(c, "user", "update", "nobody", "--requests-rate", "1", status=3)


def test_a_rate_of_a_role_by_commands(c):
    """Its grants are replaced, and a part of its rate that is not given stays."""
    def rate(grants, *flags):
        said = run(c, "role", "set", "slow", grants, *flags, "-o", "json").stdout
        return json.loads(said).get("rate", {})
    equal(rate("see", "--requests-rate", "7"), {"requests": 7, "bytes": 0}, "of a new role")
    equal(rate("see,jobs", "--bytes-rate", "1MiB"), {"requests": 7, "bytes": 1 << 20}, "both")
    equal(rate("jobs"), {"requests": 7, "bytes": 1 << 20}, "after other grants")
    for command in (("role", "show", "slow"), ("role", "ls")):
        check("7 requests/s, 1 MiB/s on each node" in run(c, *command).stdout, f"{command}")
    equal(rate("jobs", "--requests-rate", "0", "--bytes-rate", "0"), {}, "none")
    run(c, "role", "rm", "slow", "--yes")


def test_users_by_commands(c):
    """A user with a role, a key, grants on a prefix; and everybody."""
    c.create("shared")
    c.put("shared", "in/a", b"a")
    c.put("shared", "out", b"b")
    run(c, "role", "set", "viewers", "see")
    run(c, "user", "create", "ann", "--role", "viewers")
    run(c, "user", "create", "ann", status=1)
    run(c, "user", "update", "ann", "--role", "\udcff", status=2)
    run(c, "user", "create", "bob", "--role", "\udcff", status=2)
    run(c, "user", "grant", "ann", "see,\udcff", status=2)
    equal(json.loads(run(c, "user", "show", "ann", "-o", "json").stdout)["roles"], ["viewers"],
          "roles after a change that was refused")
    key = json.loads(run(c, "user", "key", "add", "ann", "-o", "json").stdout)
    ann = Identity(c, key["access_key"], key["secret_key"])
    run(c, "bucket", "grant", "shared", "ann", "list,read", "--prefix", "in/")
    wait_for(lambda: c.dfcctl("cat", "shared/in/a", env={**NO_KEY, **keys(ann)}).stdout == "a",
             "all nodes to know the grant")
    run(c, "ls", "shared/in/", user=ann)
    run(c, "cat", "shared/out", user=ann, status=DENIED)
    run(c, "user", "ls", user=ann, status=DENIED)
    check("viewers" in run(c, "user", "show", "ann").stdout, "user show")
    check("ann" in run(c, "user", "ls").stdout, "user ls")
    check("viewers" in run(c, "role", "ls").stdout, "role ls")
    for key_of, said in ((("read", "shared/in/a"), "allowed"), (("read", "shared/out"), "denied"),
                         (("see",), "allowed")):
        check(run(c, "auth", "explain", "ann", *key_of).stdout.startswith(said), f"{key_of}")
    for bucket, warned in (("shared", False), ("shraed", True), ("shr*", False)):
        said = run(c, "bucket", "grant", bucket, "ann", "list", "--prefix", "in/").stderr
        equal(f"bucket '{bucket}' does not exist yet" in said, warned, f"{bucket}: {said}")
    run(c, "user", "grant", "ann", "write:shared/in/")
    run(c, "bucket", "revoke", "shared", "ann", "write", "--prefix", "in/")
    run(c, "role", "rm", "viewers", "--yes", status=1)
    run(c, "user", "update", "ann", "--enabled", "off")
    run(c, "bucket", "ls", user=ann, status=DENIED)
    run(c, "user", "key", "rm", "ann", ann.access)
    run(c, "user", "rm", "ann", "--yes")
    run(c, "user", "show", "ann", status=3)
    run(c, "role", "rm", "viewers", "--yes")
    run(c, "bucket", "grant", "shared", "anonymous", "read")
    wait_for(lambda: nobody_reads(c, "shared/out") == "b", "all nodes to know that all may read")


def nobody_reads(c, name):
    return c.dfcctl("cat", name, env={**NO_KEY, "DFC_ACCESS_KEY": "", "DFC_SECRET_KEY": ""}).stdout


def test_no_secret_is_in_a_log(c):
    for node in c.nodes:
        log = c.log(node)
        check(c.root.secret not in log and "Bearer" not in log, f"the log of {node}")


class Redirecting(http.server.BaseHTTPRequestHandler):
    """Takes any secret, and sends every call to its server's `plain`."""
    protocol_version = "HTTP/1.1"

    def log_message(self, format, *args):  # pylint: disable=redefined-builtin
        pass

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        body = json.dumps({"token": "dfc1.x.y", "expires_ms": 1 << 50, "user": "u"}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.send_response(307)
        self.send_header("Location", self.server.plain + self.path)
        self.send_header("Content-Length", "0")
        self.end_headers()


class Listening(http.server.BaseHTTPRequestHandler):
    """Notes what comes."""
    protocol_version = "HTTP/1.1"

    def log_message(self, format, *args):  # pylint: disable=redefined-builtin
        pass

    def do_GET(self):
        self.server.seen.append(dict(self.headers))
        self.send_response(404)
        self.send_header("Content-Length", "0")
        self.end_headers()


def served(handler, tls_of=None, plain=""):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.plain, server.seen = plain, []
    if tls_of is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(os.path.join(tls_of.dir, "tls", "node.crt"),
                                os.path.join(tls_of.dir, "tls", "node.key"))
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    return server


def test_a_redirect_takes_no_token_along(c):
    """Over TLS a redirect to plain HTTP is not followed at all."""
    plain = served(Listening)
    front = served(Redirecting, c if TLS else None, f"http://127.0.0.1:{plain.server_port}")
    scheme = "https" if TLS else "http"
    done = run(c, "cat", "b/o", status=1 if TLS else 3,
               env={"DFC_ENDPOINT": f"{scheme}://127.0.0.1:{front.server_port}"})
    if TLS:
        check("plain HTTP" in done.stderr, f"{done.stderr}")
        equal(plain.seen, [], "requests in plain HTTP")
    else:
        check(plain.seen and all("Authorization" not in seen for seen in plain.seen),
              f"{plain.seen}")
    for server in (front, plain):
        server.shutdown()
        server.server_close()


if __name__ == "__main__":
    main(GuardedCluster, targets=2)

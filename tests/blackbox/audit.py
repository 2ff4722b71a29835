#!/usr/bin/env python3
"""The audit log: who changed, deleted or was denied what.  All nodes of these clusters write the same
file, and each line names its node."""

import json
import os
import signal
import shutil
import subprocess
import tempfile

from access_lib import GuardedCluster, Identity, make_user
from lib import BUILD, check, equal, main, wait_for
from s3_lib import S3

FIELDS = {"time", "node", "request_id", "peer", "user", "via", "op", "path", "status", "bytes_in",
          "bytes_out", "ms"}


class AuditedCluster(GuardedCluster):
    def __init__(self, **shape):
        self.audit_dir = tempfile.mkdtemp(prefix="dfc-audit-")
        self.audit_log = os.path.join(self.audit_dir, "audit.log")
        super().__init__(args=[f"--{role}-arg=--audit-log={self.audit_log}"
                               for role in ("proxy", "target")], **shape)

    def remove(self):
        super().remove()
        shutil.rmtree(self.audit_dir, ignore_errors=True)

    def lines(self, **wanted):
        """The whole lines of the file that have these values."""
        with open(self.audit_log, encoding="utf-8") as f:
            found = [json.loads(line) for line in f if line.endswith("\n")]
        return [line for line in found if all(line.get(k) == v for k, v in wanted.items())]

    def wait_line(self, **wanted):
        wait_for(lambda: len(self.lines(**wanted)) > 0, f"a line with {wanted}")
        return self.lines(**wanted)[0]


def test_the_file_is_nobody_elses(c):
    equal(os.stat(c.audit_log).st_mode & 0o777, 0o600, "mode")


def test_an_s3_request_has_its_operation_bucket_and_object(c):
    c.create("s3-audited")
    user = make_user(c, "s3-user", [{"rights": ["write", "delete"], "bucket": "s3-audited"}])
    client = S3(c, user.access, user.secret, "t1")
    client.call("PUT", "/s3-audited/a b", b"x").expect(200)
    client.call("DELETE", "/s3-audited/a b").expect(204)
    client.call("GET", "/s3-audited/a b").expect(403)
    for op, status in (("DeleteObject", 204), ("GetObject", 403)):
        line = c.wait_line(op=op, node="t1", bucket="s3-audited", object="a b")
        equal((line["user"], line["via"], line["key"], line["status"]),
              ("s3-user", "signature", user.access, status), f"the line of {op}")
    equal(c.lines(op="PutObject"), [], "writes of objects have no line")


def test_a_change_has_a_line(c):
    chief = make_user(c, "chief", [{"rights": ["users", "create"]}])
    key = make_user(c, "ann", []).access
    for node in ("p1", "p2"):
        chief.call("POST", f"/v1/buckets/b-{node}", {"action": "create"}, node).expect(201)
        line = c.wait_line(op="bucket_create", node=node, bucket=f"b-{node}")
        equal(line["user"], "chief", "user")
        equal(line["via"], "token", "via")
        equal(len(line["key"]), 16, "the id of the token")
        equal(line["status"], 201, "status")
        check(FIELDS <= set(line), f"{line}")
        check("code" not in line, f"{line}")
        chief.call("POST", "/v1/users", {"name": f"new-{node}"}, node).expect(201)
        equal(c.wait_line(op="user_add", node=node, user="chief")["rule"], "grant on the cluster", "rule")
    chief.call("DELETE", f"/v1/users/ann/keys/{key}", node="p2").expect(204)
    line = c.wait_line(op="key_remove", node="p1")
    equal((line["user"], line["via"]), ("chief", "node"), "of a call that p2 has passed on")
    equal(line["request_id"], c.wait_line(op="key_remove", node="p2")["request_id"], "its id")
    check(line["path"].endswith(f"/ann/keys/{key}"), f"{line}")


def test_an_operator_has_a_line(c):
    c.administer("PUT", "/v1/roles/lab", {"grants": []}).expect(200)
    line = c.wait_line(op="role_put")
    equal((line["user"], line["via"]), ("(cluster key)", "cluster key"), "an operator's")


def test_what_is_deleted_has_a_line(c):
    writer = make_user(c, "writer", [{"rights": ["read", "write", "delete"], "bucket": "data"}])
    c.create("data")
    name = 'dir/a "b" ü'
    path = "/v1/objects/data/dir/a%20%22b%22%20%C3%BC"
    writer.call("PUT", path, b"123").expect(200)
    writer.call("GET", path).expect(200)
    writer.call("DELETE", path).expect(204)
    line = c.wait_line(op="object_delete", bucket="data")
    equal((line["object"], line["user"], line["status"]), (name, "writer", 204), "who deleted what")
    check(line["node"].startswith("t"), "the proxy that redirects has a line")
    check(not c.lines(op="object_put") and not c.lines(op="object_get"), "lines that are not asked")


def test_what_is_denied_has_a_line(c):
    reader = make_user(c, "reader", [{"rights": ["read"], "bucket": "data"}])
    reader.call("PUT", "/v1/objects/data/x", b"1").expect(403, "access_denied")
    line = c.wait_line(op="object_put")
    equal((line["user"], line["status"], line["code"], line["rule"]),
          ("reader", 403, "access_denied", "no grant"), "denied")
    for node in c.nodes:
        c.bare("GET", "/v1/nowhere?token=hidden", node=node).expect(401, "unauthorized")
        line = c.wait_line(op="GET", node=node)
        equal((line["user"], line["via"], line["path"]), ("anonymous", "anonymous", "/v1/nowhere"),
              "of nobody")


def test_a_failed_login_has_a_line(c):
    """With its access key or person, and without what may be a secret in the wrong field."""
    user = make_user(c, "late", [])
    wrong = Identity(c, user.access, user.secret[::-1])
    unknown = "DFC4J" + "Z" * 15
    for node in ("p1", "p2"):
        wrong.login(node).expect(401, "unauthorized")
        line = c.wait_line(op="auth_token", node=node, key=user.access)
        equal((line["status"], line["code"], line["via"]), (401, "unauthorized", "anonymous"), "login")
        Identity(c, unknown, user.secret).login(node).expect(401)
        c.wait_line(op="auth_token", node=node, key=unknown)
    c.call("POST", "/v1/users", {"name": "pat", "kind": "person"}).expect(201)
    for name in ("pat", "my-secret-password"):
        body = {"user": name, "password": "my-secret-password"}
        c.bare("POST", "/v1/auth/token", body).expect(401, "unauthorized")
    c.wait_line(op="auth_token", key="pat")
    Identity(c, user.secret, user.access).login().expect(401, "unauthorized")
    marker = Identity(c, unknown[:-1] + "Y", user.secret)
    marker.login().expect(401)
    c.wait_line(op="auth_token", key=marker.access)
    for line in c.lines(op="auth_token"):
        check(user.secret not in str(line) and "my-secret" not in str(line), f"{line}")


def test_the_file_is_opened_anew(c):
    aside = c.audit_log + ".1"
    os.rename(c.audit_log, aside)
    for node in c.nodes:
        os.kill(c.pid(node), signal.SIGHUP)
        wait_for(lambda node=node: "reloading" in c.log(node), f"{node} to reload")
    wait_for(lambda: os.path.exists(c.audit_log), "the new file")
    for node in c.nodes:
        def written(node=node):
            c.bare("GET", "/v1/daemon", node=node).expect(401, "unauthorized")
            return c.lines(node=node)
        wait_for(written, f"{node} to write the new file")
    with open(aside, encoding="utf-8") as f:
        for line in f:
            json.loads(line)


def test_secrets_are_in_no_line(c):
    texts = ""
    for path in (c.audit_log, c.audit_log + ".1"):
        with open(path, encoding="utf-8") as f:
            texts += f.read()
    for secret in (c.root.secret, c.root.token, c.key_text, "dfca=", "dfcn=", "hidden", "Bearer"):
        check(secret not in texts, f"'{secret[:6]}…' is in the audit log")


def test_a_bad_level_stops_the_start(c):
    for program in ("dfc-proxyd", "dfc-targetd"):
        for option, text in (("--audit=some", "--audit: 'some' is not none, denied"),
                             (f"--audit-log={c.audit_dir}/none/x", "open the audit log")):
            argv = [os.path.join(BUILD, program), "--id=x", f"--dir={c.audit_dir}/x",
                    f"--mountpaths={c.audit_dir}", "--join=http://127.0.0.1:1", option, "--public-port=0", "--control-port=0"]
            argv = [a for a in argv if program == "dfc-targetd" or "mountpaths" not in a]
            done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
            check(done.returncode != 0 and text in done.stderr, f"{argv}: {done.stderr}")


if __name__ == "__main__":
    main(AuditedCluster, proxies=2, targets=2)

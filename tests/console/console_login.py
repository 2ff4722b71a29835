#!/usr/bin/env python3
"""The web console with access control: logins, what a user may not do, the end of a token, signed
downloads, and the operations of nodes."""

import os

from browser import Browser
from access_lib import GuardedCluster, make_user
from lib import check, equal, main, wait_for


class Shown(GuardedCluster):
    def __init__(self, **shape):
        super().__init__(args=("--proxy-arg=--token-ttl=10m",), **shape)
        self.browser = Browser(self)

    def remove(self):
        if hasattr(self, "browser"):
            self.browser.__exit__()
            del self.browser
        super().remove()


def field(b, number):
    return b.elements(".login input:not([type=radio])")[number]


def enter(b, kind, name, secret):
    b.sees("User and password")
    if kind == "key":
        b.script("document.querySelector('input[value=key]').click()")
    field(b, 0).clear()
    field(b, 0).send_keys(name)
    field(b, 1).clear()
    field(b, 1).send_keys(secret)
    b.script("document.querySelector('.login button').click()")


def test_nothing_without_a_login(c):
    b = c.browser
    b.open("#/buckets")
    b.expect_errors("401")
    b.sees("Log in", "kept in this tab alone")
    b.judge()
    b.expect_errors("401")
    enter(b, "key", c.root.access, "x" * 40)
    b.sees("unauthorized")
    b.accessible("login")
    b.shot("login")
    b.judge()


def test_login_by_key_and_back_to_the_page(c):
    b = c.browser
    enter(b, "key", c.root.access, c.root.secret)
    b.sees("Create a bucket", "root", "Log out", "Healthy")
    check("no access control" not in b.text(), "it has access control")
    check(b.script("return document.cookie") == "", "no cookie")
    b.judge()


def test_signed_download(c):
    b = c.browser
    c.create("b")
    c.call("PUT", "/v1/objects/b/d/one.bin", b"signed bytes").expect(200)
    b.open("#/object/b?name=d%2Fone.bin")
    b.sees("12 B")
    b.click("Download")
    path = os.path.join(b.downloads, "one.bin")
    wait_for(lambda: os.path.exists(path) and os.path.getsize(path) == 12, "the download")
    b.judge()


def test_maintenance_of_a_node(c):
    b = c.browser
    b.open("#/nodes/t2")
    b.click("Start maintenance")
    b.sees("move to other targets")
    b.script("document.querySelector('dialog button[type=submit]').click()")
    wait_for(lambda: c.get_json("/v1/cluster")["nodes"], "nodes")
    b.sees("End maintenance")
    states = {n["id"]: n["state"] for n in c.get_json("/v1/cluster")["nodes"]}
    equal(states["t2"], "maintenance", "t2")
    b.click("End maintenance")
    b.script("document.querySelector('dialog button[type=submit]').click()")
    b.sees("Start maintenance")
    b.judge()


def test_a_user_with_few_rights(c):
    b = c.browser
    reader = make_user(c, "reader", [{"rights": ["list", "read"], "bucket": "b"}])
    b.click("Log out")
    enter(b, "key", reader.access, reader.secret)
    b.expect_errors("403")
    b.sees("This user may not see the cluster")
    b.open("#/objects/b")
    b.sees("d/")
    b.open("#/object/b?name=d%2Fone.bin")
    b.click("Delete")
    b.script("document.querySelector('dialog button[type=submit]').click()")
    b.sees("access_denied")
    b.click("Cancel")
    c.call("GET", "/v1/objects/b/d/one.bin").expect(200)
    b.judge()
    b.click("Log out")


def test_password_and_the_end_of_a_login(c):
    b = c.browser
    c.call("POST", "/v1/users", {"name": "ann", "kind": "person", "grants": [{"rights": ["admin"]}]}).expect(201)
    c.call("PUT", "/v1/users/ann/password", {"password": "a good secret"}).expect(204)
    enter(b, "password", "ann", "a good secret")
    b.sees("ann", "Healthy")
    b.open("#/jobs")
    b.sees("Start a job")
    b.expect_errors("401")
    c.call("PUT", "/v1/users/ann/password", {"password": "another secret"}).expect(204)
    b.sees("The login has ended")
    enter(b, "password", "ann", "another secret")
    b.sees("Start a job", "ann")
    b.judge()


CLEAR = """return import("/ui/session.js").then((session) =>
  ["http://localhost:8080/", "http://127.0.0.9/", "http://[::1]:8080/", "https://dfc.example/",
    "http://dfc.example/", "http://127.0.0.1.example/", "http://10.0.0.1:8080/", "http://localhost.example/"]
    .filter((url) => session.isInClear(new URL(url))))"""


def test_where_a_password_is_not_sent(c):
    equal(c.browser.script(CLEAR), ["http://dfc.example/", "http://127.0.0.1.example/", "http://10.0.0.1:8080/",
                                    "http://localhost.example/"], "in clear")


def test_a_refusal_of_an_earlier_login(c):
    b = c.browser
    b.script("""return import("/ui/api.js").then((api) => api.failure(401, "{}", {Authorization: "Bearer old"}))""")
    check(b.script("return sessionStorage.getItem('dfc-session')") is not None, "the present login goes on")


if __name__ == "__main__":
    main(make=Shown, targets=2)

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


def submit(b):
    b.script("document.querySelector('dialog button[type=submit]').click()")


def test_settings_are_changed(c):
    b = c.browser
    b.open("#/settings")
    b.sees("rebalance_delay", "A change lasts")
    b.click_key("change rebalance_delay")
    b.fill("rebalance_delay", "soon")
    b.expect_errors("400")
    submit(b)
    b.sees("invalid_argument")
    b.fill("rebalance_delay", "12s")
    submit(b)
    b.sees("rebalance_delay: changed")
    values = {s["name"]: s["value"] for s in c.get_json("/v1/cluster?what=settings")["params"]}
    equal(values["rebalance_delay"], 12000, "the setting")
    b.sees("12s")
    b.judge()
    b.click_key("change rebalance_delay")
    b.fill("rebalance_delay", "")
    submit(b)
    wait_for(lambda: {s["name"]: s["value"] for s in c.get_json("/v1/cluster?what=settings")["params"]}[
        "rebalance_delay"] == 10000, "back to the default")
    b.judge()


def test_users_are_administered(c):
    b = c.browser
    b.open("#/users")
    b.sees("root", "Roles", "built in")
    b.accessible("users")
    b.shot("users")
    b.click("Create a user")
    b.fill("Name", "by-hand")
    submit(b)
    b.sees("The user has no key", "enabled")
    b.click("Give a right")
    b.fill("Rights", "list,read")
    b.fill("Bucket", "b")
    submit(b)
    b.sees("list, read on b")
    b.click("Make a key")
    submit(b)
    b.sees("it is not shown again")
    keys = c.call("GET", "/v1/users/by-hand").expect(200).json()["keys"]
    b.sees(keys[0]["access"])
    b.accessible("user")
    b.click("Disable")
    b.sees("disabled")
    equal(c.call("GET", "/v1/users/by-hand").expect(200).json()["enabled"], False, "enabled")
    b.open("#/users")
    b.gone("it is not shown again")
    b.click("by-hand")
    b.click("Remove")
    b.fill("Type", "by-hand")
    submit(b)
    b.sees("removed")
    c.call("GET", "/v1/users/by-hand").expect(404)
    b.judge()


def test_blanks_at_the_ends(c):
    """A password, a prefix and the name of an object keep them; other fields do not."""
    b = c.browser
    c.call("POST", "/v1/users", {"name": "bob", "kind": "person"}).expect(201)
    b.open("#/users/bob")
    b.click("Set a password")
    b.fill("New password", " a good secret ")
    submit(b)
    b.sees("the password is set")
    for password, status in ((" a good secret ", 200), ("a good secret", 401)):
        c.bare("POST", "/v1/auth/token", {"user": "bob", "password": password}).expect(status)
    b.click("Give a right")
    b.fill("Rights", " list , read ")
    b.fill("Bucket", " b ")
    b.fill("Prefix", " p ")
    submit(b)
    b.sees("list, read on b/ p")
    equal(c.call("GET", "/v1/users/bob").expect(200).json()["grants"],
          [{"rights": ["list", "read"], "bucket": "b", "prefix": " p "}], "grants")
    c.call("PUT", "/v1/objects/b/d/blank", b"x").expect(200)
    b.open("#/object/b?name=d%2Fblank")
    b.click("Rename")
    b.fill("New name", " d/blank ")
    submit(b)
    b.sees("is d/blank now")
    c.call("GET", "/v1/objects/b/%20d/blank%20").expect(200)
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
    b.click("Log out")  # and nothing more is asked
    b.judge()


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

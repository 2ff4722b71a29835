#!/usr/bin/env python3
"""Passwords: who logs in with one, how often a name may be tried, and that no log has it."""

import json
import os
import threading
import time

from access_lib import GuardedCluster, make_user
from lib import check, equal, in_parallel, main, wait_for

PASSWORD = "correct horse battery"
NEW = "another horse  with spaces "
WRONG = "wrong horse battery"


class LoggedCluster(GuardedCluster):
    def __init__(self, **shape):
        logs = [f"--proxy-arg={arg}"
                for arg in ("--log-level=debug", "--audit-log=-", "--audit=all")]
        super().__init__(args=logs, **shape)

    def login(self, user, password, node="p1"):
        return self.bare("POST", "/v1/auth/token", {"user": user, "password": password}, node)

    def person(self, name, password=PASSWORD, node="p1"):
        """A person with a password, whom both proxies know."""
        self.call("POST", "/v1/users", {"name": name, "kind": "person", "roles": ["reader"]}, node
                  ).expect(201)
        self.call("PUT", f"/v1/users/{name}/password", {"password": password}, node).expect(204)
        for each in ("p1", "p2"):
            wait_for(lambda each=each: self.login(name, password, each).status == 200,
                     f"{each} to know the password of '{name}'")

    def whoami(self, token, node="p1"):
        return self.bare("GET", "/v1/auth/whoami", node=node,
                         headers={"Authorization": "Bearer " + token})


def test_a_password_gives_a_token(c):
    c.person("ann", node="p2")
    reply = c.login("ann", PASSWORD).expect(200)
    equal(reply.headers["Cache-Control"], "no-store", "Cache-Control")
    token = reply.json()["token"]
    equal(reply.json()["user"], "ann", "user")
    equal(c.whoami(token, "p2").expect(200).json()["name"], "ann", "whoami")
    c.call("PUT", "/v1/users/ann/password", {"password": NEW}).expect(204)
    wait_for(lambda: c.whoami(token).status == 401, "the tokens of the old password to end")
    c.login("ann", PASSWORD).expect(401, "unauthorized")
    equal(c.whoami(c.login("ann", NEW).expect(200).json()["token"]).status, 200, "the new one")


def test_no_token_of_an_old_password_outlives_it(c):
    """Not one of a login that was under way when the password changed, either."""
    c.person("dora")
    tokens = []

    def log_in(_):
        while (reply := c.login("dora", PASSWORD)).status == 200:
            tokens.append(reply.json()["token"])

    def change(_):
        wait_for(lambda: len(tokens) > 2, "logins")
        c.call("PUT", "/v1/users/dora/password", {"password": NEW}).expect(204)

    in_parallel(lambda work: work(0), (log_in, log_in, change), workers=3)
    for token in tokens:
        c.whoami(token).expect(401, "unauthorized")


def test_all_refusals_are_alike(c):
    """A wrong password, nobody, a service, a person without a password or who is disabled."""
    make_user(c, "robot", [])
    c.call("POST", "/v1/users", {"name": "bare", "kind": "person"}).expect(201)
    c.person("gone")
    c.call("PUT", "/v1/users/gone", {"enabled": False}).expect(200)
    told = {c.login(name, password).expect(401, "unauthorized").json()["message"]
            for name, password in (("ann", WRONG), ("nobody", PASSWORD), ("robot", PASSWORD),
                                   ("bare", ""), ("gone", PASSWORD), ("anonymous", ""),
                                   ("ann", "x" * 2000))}
    equal(len(told), 1, f"{told}")
    for body, code in (({"user": "ann", "password": 1}, "invalid_json"),
                       ({"password": PASSWORD}, "invalid_json"),
                       ({"user": "", "password": PASSWORD}, "invalid_name"),
                       ({"user": "a" * 64, "password": PASSWORD}, "invalid_name"),
                       ({"user": "ann", "password": PASSWORD, "more": 1}, "invalid_json")):
        c.bare("POST", "/v1/auth/token", body).expect(400, code)


def test_a_right_password_forgives_the_wrong_ones(c):
    c.person("eve")
    for _ in range(2):
        for _ in range(4):
            c.login("eve", WRONG).expect(401)
        c.login("eve", PASSWORD).expect(200)


def test_the_sixth_try_waits_for_a_minute(c):
    """Whether the name exists or not; also for the right password, and many at once."""
    c.person("max")
    told = []
    for name in ("max", "nix"):
        replies = []
        tries = [threading.Thread(target=lambda: replies.append(c.login(name, WRONG)))
                 for _ in range(12)]
        for one in tries:
            one.start()
        for one in tries:
            one.join()
        equal(sorted(r.status for r in replies), [401] * 5 + [429] * 7, f"replies to '{name}'")
        reply = c.login(name, PASSWORD).expect(429, "rate_limited")
        check(50 <= int(reply.headers["Retry-After"]) <= 60, f"{reply.headers['Retry-After']}")
        told.append(reply.json()["message"].replace(name, "X").split(":")[0])
    equal(told[0], told[1], "what is told")
    c.login("eve", PASSWORD).expect(200)
    c.login("max", PASSWORD, "p2").expect(200)
    began = time.monotonic()
    c.root.login().expect(200)
    check(time.monotonic() - began < 30, "a login by an access key waits for passwords")


def ctl(c, *args, status=0, **options):
    env = {"XDG_CONFIG_HOME": os.path.join(c.dir, "config"), "DFC_CLUSTER_KEY_FILE": "",
           **options.pop("env", {})}
    done = c.dfcctl(*args, env=env, **options)
    equal(done.returncode, status, f"dfcctl {args}: {done.stdout}{done.stderr}")
    return done


def test_dfcctl_sets_a_password_and_logs_in(c):
    root = {"DFC_ACCESS_KEY": c.root.access, "DFC_SECRET_KEY": c.root.secret}
    ctl(c, "user", "create", "kim", "--kind", "person", "--role", "reader", env=root)
    ctl(c, "user", "password", "kim", "--stdin", input="short\n", env=root, status=2)
    ctl(c, "user", "password", "kim", "--stdin", input="\n", env=root, status=2)
    ctl(c, "user", "password", "kim", input=NEW, env=root, status=2)
    ctl(c, "user", "password", "kim", "--stdin", input=NEW + "\n", env=root)
    said = ctl(c, "login", "--user", "kim", "--stdin", input=NEW).stdout
    check("logged in as 'kim'" in said, said)
    check("kim" in ctl(c, "whoami", env={"DFC_ENDPOINT": ""}).stdout, "whoami")
    with open(os.path.join(c.dir, "config", "dfc", "config.json"), encoding="utf-8") as f:
        row = json.load(f)["profiles"]["default"]
    check(row["token"].startswith("dfc1.") and "secret_key" not in row, f"{sorted(row)}")
    ctl(c, "login", "--user", "kim", "--stdin", input=WRONG, status=7)
    away = ("login", "--user", "kim", "--stdin", "--endpoint", "http://127.0.0.1.example.org:1")
    check("https://" in ctl(c, *away, input=NEW, status=2).stderr, "a password in clear")
    for place in ("--endpoint", "--control"):
        away = ("user", "password", "ann", "--stdin", place, "http://127.0.0.1.example.org:1")
        check("https://" in ctl(c, *away, input=NEW, env=root, status=2).stderr,
              f"a new password in clear by {place}")
    ctl(c, "user", "password", "ann", "--stdin", input=NEW, status=7)


def test_no_log_has_a_password(c):
    for node in ("p1", "p2"):
        wait_for(lambda node=node: '"op":"auth_token"' in c.log(node), "lines of the audit log")
        for text in (PASSWORD, NEW.strip(), WRONG):
            check(text not in c.log(node), f"a password is in the log of {node}")


if __name__ == "__main__":
    main(LoggedCluster, proxies=2, targets=1)

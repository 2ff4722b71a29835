#!/usr/bin/env python3
"""dfcctl's logins: the file of profiles, and which key goes to which cluster.

DFC_BUILD names the build directory.  Python's standard library only."""
import json
import os
import pty
import select
import stat
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "api", "testing"))
from dfcctl_case import DFCCTL, SLOW, Case  # noqa: E402

ACCESS, SECRET = "DFC" + "K" * 17, "s" * 40
KEYS = f"{ACCESS}\n{SECRET}\n".encode()


def typed(case, words, answers):
    """Run on a terminal; each line is typed when its prompt is there.  What is shown, and the exit
    code."""
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(case.dir)
        os.execve(DFCCTL, [DFCCTL, *words], case.environment(TERM="xterm"))
    shown = ""
    while select.select([fd], [], [], 60 * SLOW)[0]:
        try:
            shown += os.read(fd, 65536).decode()
        except OSError:
            break
        if answers and shown.endswith(answers[0][0]):
            os.write(fd, answers.pop(0)[1].encode() + b"\n")
    os.close(fd)
    return shown, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


class Logins(Case):
    def setUp(self):
        super().setUp()
        self.mock.create("b", {"k": b"data"})
        self.mock.auth.change({"secrets": {ACCESS: SECRET}})

    def without_endpoint(self, **more):
        env = self.environment(**more)
        del env["DFC_ENDPOINT"]
        return env

    def file(self):
        with open(self.path("config/dfc/config.json"), encoding="utf-8") as f:
            return json.load(f)

    def login(self, *words, **options):
        return self.text("login", "--endpoint", self.mock.endpoint, "--stdin", *words, stdin=KEYS,
                         **options)

    def test_a_login_serves_later_commands(self):
        self.assertIn("logged in as 'somebody'", self.login())
        mode = os.stat(self.path("config/dfc/config.json")).st_mode
        self.assertEqual(stat.S_IMODE(mode), 0o600)
        self.assertEqual(os.listdir(self.path("config/dfc")), ["config.json"])
        self.assertEqual(self.file(), {"current": "default", "profiles": {"default": {
            "endpoints": self.mock.endpoint, "access_key": ACCESS, "secret_key": SECRET}}})
        env = self.without_endpoint()
        self.assertEqual(self.run_ctl("cat", "b/k", env=env), b"data")
        self.assertIn("somebody", self.text("whoami", env=env))
        self.assertEqual(self.json("whoami", env=env)["kind"], "service")

    def logins(self):
        return len(self.mock.requests(method="POST", path="/v1/auth/token"))

    def cache(self):
        directory = self.path("cache/dfc")
        return sorted(os.listdir(directory)) if os.path.isdir(directory) else []

    def test_one_login_serves_many_commands(self):
        self.login()
        for _ in range(3):
            self.run_ctl("cat", "b/k")
        self.assertEqual(self.logins(), 1)
        name = self.cache()[0]
        path = self.path(f"cache/dfc/{name}")
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        with open(path, encoding="utf-8") as f:
            text = f.read()
        self.assertEqual(list(json.loads(text)), [self.mock.endpoint])
        self.assertTrue(SECRET not in text and ACCESS not in text + name)

    def test_a_token_that_is_refused_is_renewed_once(self):
        self.login()
        self.mock.auth.change({"withdraw": True})
        self.run_ctl("cat", "b/k")
        self.run_ctl("cat", "b/k")
        self.assertEqual(self.logins(), 2)

    def test_a_token_is_of_its_secret(self):
        """A wrong secret finds no token of the right one."""
        self.login()
        env = self.environment(DFC_ACCESS_KEY=ACCESS, DFC_SECRET_KEY="w" * 40)
        self.run_ctl("bucket", "ls", env=env, code=7)

    def test_a_logout_removes_the_token(self):
        self.login()
        self.run_ctl("cat", "b/k")
        self.text("logout")
        self.assertEqual(self.cache(), [])

    def test_a_cache_that_cannot_be_kept_is_no_failure(self):
        self.login()
        env = self.environment(XDG_CACHE_HOME="/proc/none")
        self.run_ctl("cat", "b/k", env=env)
        self.run_ctl("cat", "b/k", env=env)
        self.assertEqual(self.logins(), 3)

    def test_the_current_profile_is_of_its_own_cluster(self):
        """Its key is no other endpoint's business."""
        self.login()
        before = len(self.mock.requests(method="POST"))
        other = self.environment(DFC_ENDPOINT=self.mock.endpoint.replace("127.0.0.1", "localhost"))
        self.run_ctl("cat", "b/k", env=other, code=7)
        self.assertEqual(len(self.mock.requests(method="POST")), before)
        self.run_ctl("cat", "b/k", "--profile", "default", env=other)
        self.run_ctl("cat", "b/k")

    def test_the_environment_comes_first(self):
        self.login()
        env = self.without_endpoint(DFC_ACCESS_KEY=ACCESS, DFC_SECRET_KEY="wrong")
        self.run_ctl("bucket", "ls", env=env, code=7)

    def test_profiles_have_names(self):
        self.login("--profile", "lab")
        self.login("--profile", "home")
        self.assertEqual((self.file()["current"], sorted(self.file()["profiles"])),
                         ("home", ["home", "lab"]))
        env = self.without_endpoint()
        self.run_ctl("bucket", "ls", "--profile", "lab", env=env)
        self.run_ctl("bucket", "ls", env=self.without_endpoint(DFC_PROFILE="lab"))
        self.run_ctl("bucket", "ls", "--profile", "none", env=env, code=2)
        self.assertIn("'home' removed", self.text("logout", env=env))
        self.assertNotIn("current", self.file())
        self.text("logout", "--profile", "lab", env=env)
        self.assertEqual(self.file()["profiles"], {})
        self.run_ctl("logout", "--profile", "lab", env=env, code=3)

    def test_a_wrong_key_is_not_kept(self):
        self.run_ctl("login", "--stdin", stdin=b"A\nB\n", code=7)
        self.assertFalse(os.path.exists(self.path("config/dfc")))
        self.run_ctl("login", "--stdin", stdin=b"A\n", code=2)
        self.run_ctl("login", stdin=KEYS, code=2)
        self.assertIn("--stdin", self.err)

    def test_a_document_has_the_keys(self):
        document = json.dumps({"endpoint": "", "access_key": ACCESS, "secret_key": SECRET}).encode()
        self.assertEqual(self.json("login", "--stdin", stdin=document)["user"], "somebody")

    def test_a_terminal_does_not_show_the_secret(self):
        shown, code = typed(self, ["login"], [("Access key: ", ACCESS), ("Secret key: ", SECRET)])
        self.assertEqual(code, 0, shown)
        self.assertEqual(self.file()["profiles"]["default"]["secret_key"], SECRET)
        self.assertIn(ACCESS, shown)
        self.assertNotIn(SECRET, shown)

    def test_a_file_that_others_may_read_is_refused(self):
        self.login()
        path = self.path("config/dfc/config.json")
        env = self.without_endpoint()
        os.chmod(path, 0o640)
        self.run_ctl("bucket", "ls", env=env, code=2)
        self.assertIn("chmod 600", self.err)
        os.chmod(path, 0o600)
        for text in ("", "[]", "{", '"current"'):
            with open(path, "w", encoding="ascii") as f:
                f.write(text)
            self.run_ctl("bucket", "ls", env=env, code=2)
            self.assertIn("config.json", self.err)

    def test_the_certificate_authority_is_kept(self):
        """Its place is found from another directory."""
        self.write("ca.crt", b"")
        self.login("--ca-file", "ca.crt")
        self.assertEqual(self.file()["profiles"]["default"]["ca_file"],
                         os.path.realpath(self.path("ca.crt")))


if __name__ == "__main__":
    unittest.main()

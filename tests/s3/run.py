#!/usr/bin/env python3
"""The tests of ceph/s3-tests against a cluster with access control.

    DFC_S3TESTS=CHECKOUT [DFC_S3TESTS_ONLY=NAMES] tests/s3/run.py

DFC_S3TESTS_ONLY has names of tests (`test_s3.py::test_bucket_list_empty`) with spaces between
them.  The Python that runs this script must have the packages of the checkout's requirements.txt.
Without DFC_S3TESTS the script is skipped.

`allow` has the names of tests that must pass.  `refused` has patterns of names of tests that must
fail, below the reason, or that the suite skips.  The run fails if a test is in neither or in both,
if a line fits no test, or if a test does not end as its list says.
"""

import fnmatch
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "blackbox"))

from access_lib import make_user  # noqa: E402
from lib import check, main, skip  # noqa: E402
from s3_lib import NAMESPACE, S3, S3Cluster  # noqa: E402

FILES = ("test_s3.py", "test_headers.py")
RUN_SECONDS = 3600
CREATE = [{"rights": ["create"]}]
DAY = 4  # seconds that the tests of lifecycle rules take for a day …
FULL_DAYS = "test_s3.py::test_lifecycle_expiration_header_*"  # … but these

CONFIGURATION = """[DEFAULT]
host = {host}
port = {port}
is_secure = False

[fixtures]
bucket prefix = s3tests-{{random}}-

"""
USER = """[s3 {role}]
display_name = {name}
user_id = {id}
email = {role}@example.com
access_key = {access}
secret_key = {secret}
api_name =
tenant = none
lc_debug_interval = {day}
rgw_restore_debug_interval = 1
rgw_restore_processor_period = 1

"""
IAM = """[{section}]
display_name = none
user_id = none
email = none@example.com
access_key = none
secret_key = none

"""


def lines_of(name):
    """The lines of a list without comments."""
    with open(os.path.join(HERE, name), encoding="utf-8") as f:
        lines = [line.split("#")[0].strip() for line in f]
    return [line for line in lines if line]


def fits(name, pattern):
    """A '*' of a pattern is for any characters; a '[' is plain, since names of tests have some."""
    return fnmatch.fnmatchcase(name, pattern.replace("[", "[[]"))


class Lists:
    """What must pass, and what must fail."""

    def __init__(self, allow, refused):
        self.allow, self.refused = set(allow), refused

    def refuses(self, name):
        return any(fits(name, pattern) for pattern in self.refused)

    def mistakes(self, names):
        """What is wrong with the lists; `names`: of all tests of the checkout."""
        for name in names:
            lists = (name in self.allow) + self.refuses(name)
            if lists != 1:
                yield f"{name} is in {lists} lists, and belongs in one"
        yield from (f"{line}: no such test" for line in self.allow if line not in names)
        yield from (f"{line}: fits no test" for line in self.refused
                    if not any(fits(name, line) for name in names))

    def surprises(self, ended):
        """Tests that did not end as their list says; `ended`: name -> whether the test passed."""
        for name, passed in sorted(ended.items()):
            if name in self.allow and not passed:
                yield f"{name} is in 'allow', and fails"
            elif self.refuses(name) and passed:
                yield f"{name} is in 'refused', and passes"


def owner_of(c, user):
    """The id and the name of a user, as S3's documents have them."""
    document = ElementTree.fromstring(S3(c, user.access, user.secret).call("GET", "/").body)
    owner = document.find(NAMESPACE + "Owner")
    return owner.findtext(NAMESPACE + "ID"), owner.findtext(NAMESPACE + "DisplayName")


def configuration(c):
    """The suite's configuration file: its users, and the S3 listener of the first proxy."""
    users = {"main": c.root, "alt": make_user(c, "alt", CREATE),
             "tenant": make_user(c, "tenant", CREATE)}
    host, port = c.s3_url("p1").split("//")[1].split(":")
    text = CONFIGURATION.format(host=host, port=port)
    for role, user in users.items():
        identity, name = owner_of(c, user)
        text += USER.format(role=role, id=identity, name=name, access=user.access,
                            secret=user.secret, day=DAY)
    return text + "".join(IAM.format(section=s) for s in ("iam", "iam root", "iam alt root"))


def pytest(checkout, conf, *arguments, output=None):
    """Runs pytest in the checkout; what it prints, if `output` is PIPE."""
    done = subprocess.run([sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments],
                          cwd=checkout, env={**os.environ, "S3TEST_CONF": conf}, text=True,
                          stdout=output, check=False, timeout=RUN_SECONDS)
    check(done.returncode in (0, 1), f"pytest ends with {done.returncode}: {done.stdout}")
    return done.stdout


def path_of(name):
    return "s3tests/functional/" + name


def names_of(checkout, conf):
    """All tests of the checkout that the lists are about."""
    output = pytest(checkout, conf, "--collect-only", "-q", *map(path_of, FILES),
                    output=subprocess.PIPE)
    return [line.rsplit("/", 1)[1] for line in output.splitlines() if "::" in line]


def results_of(report):
    """Name -> whether the test passed; a test that the suite skips has no result."""
    results = {}
    for case in ElementTree.parse(report).iter("testcase"):
        if case.find("skipped") is None:
            name = f"{case.get('classname').rsplit('.', 1)[1]}.py::{case.get('name')}"
            failed = case.find("failure") is not None or case.find("error") is not None
            results[name] = results.get(name, True) and not failed
    return results


def set_day(c, day):
    for name, value in (("lifecycle_day", day), ("lifecycle_interval", "1s")):
        c.call("PUT", "/v1/cluster",
               {"action": "setconfig", "name": name, "value": value}).expect(200)


def run_all(c, checkout, conf, names, report):
    """What has become of each test."""
    results = {}
    for day, full in ((f"{DAY}s", False), ("1d", True)):
        batch = [path_of(n) for n in names if fits(n, FULL_DAYS) == full]
        if batch:
            set_day(c, day)
            pytest(checkout, conf, "-v", "--tb=line", "--junitxml", report, *batch)
            results.update(results_of(report))
    return results


def test_each_test_ends_as_its_list_says(c):
    checkout = os.environ["DFC_S3TESTS"]
    lists = Lists(lines_of("allow"), lines_of("refused"))
    with tempfile.TemporaryDirectory() as directory:
        conf, report = os.path.join(directory, "conf"), os.path.join(directory, "report.xml")
        with open(conf, "w", encoding="utf-8") as f:
            f.write(configuration(c))
        names = names_of(checkout, conf)
        complaints = list(lists.mistakes(names))
        wanted = os.environ.get("DFC_S3TESTS_ONLY", "").split() or names
        results = run_all(c, checkout, conf, wanted, report)
    complaints += lists.surprises(results)
    passed = sum(results.values())
    print(f"{passed} passed, {len(results) - passed} failed")
    check(not complaints, "\n".join(complaints))


if __name__ == "__main__":
    if "DFC_S3TESTS" not in os.environ:
        skip("DFC_S3TESTS does not name a checkout of ceph/s3-tests")
    main(S3Cluster, targets=2, args=["--target-arg=--uploads-sweep=1s"])

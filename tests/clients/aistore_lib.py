"""AIStore's SDK run in its own environment: a test names a file of calls, and the set of them."""

import os
import subprocess

import frame
from access_lib import make_user
from lib import equal


def run(python, c, calls, *words, token=None):
    """calls URL SET, which ends with an error of its own when something is not as it should be."""
    # requests takes these before the file that the SDK names.
    others = {n: v for n, v in os.environ.items() if n not in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")}
    env = {**others, "AIS_CLIENT_CA": c.ca_file() or "", "no_proxy": "127.0.0.1",
           "PYTHONDONTWRITEBYTECODE": "1", "AIS_AUTHN_TOKEN": token or ""}
    done = subprocess.run([python, "-W", "ignore", os.path.join(frame.HERE, calls), c.url(), *words],
                          env=env, check=False, capture_output=True, text=True)
    equal(done.returncode, 0, f"calls {words}: {done.stderr[-3000:]}\nthe end of them")


def token_of(identity):
    return identity.headers()["Authorization"].removeprefix("Bearer ")


def check_anonymous(c, do):
    """do(c, SET, token=) runs calls; without a token nothing is done."""
    c.create("closed")
    c.put("closed", "o", b"bytes")
    do(c, "anonymous")
    equal(c.get("closed", "o").expect(200).body, b"bytes", "the object")


def check_reader(c, do):
    """A user does what its grants say."""
    c.create("shared")
    c.put("shared", "o", b"bytes")
    reader = make_user(c, "reader", [{"rights": ["read", "list"], "bucket": "shared"}])
    do(c, "reader", token=token_of(reader))
    equal(c.get("shared", "o").expect(200).body, b"bytes", "the object")

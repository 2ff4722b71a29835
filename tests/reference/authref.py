"""How nodes prove to one another that they belong together, with nothing but hashlib and hmac.

An independent reading of common/auth/mac.h: the vectors of common/auth/mac_test.c come from here
(authref_test.py compares them), and the black-box tests sign with it.

    session = Session.open(http, url, key_text)     # a member's, whatever its name
    headers = session.sign("GET", "/v1/cluster/state", "", b"")
"""

import hashlib
import hmac
import json
import secrets
import urllib.parse


def mac(key, text):
    return hmac.new(key, text.encode() if isinstance(text, str) else text, hashlib.sha256).digest()


def secret_of(key_text):
    return mac(b"dfc-key-1", key_text)


def key_id(secret):
    return mac(secret, "dfc-key-id-1").hex()[:16]


def hkdf(key, salt, info):
    """RFC 5869, 32 bytes."""
    info = info.encode() if isinstance(info, str) else info
    return mac(mac(salt, key), info + b"\x01")


def lines(label, g):
    order = ("key_id", "client_node", "client_boot", "client_nonce", "server_node",
             "server_boot", "server_nonce", "session")
    return "".join(f"{text}\n" for text in [label] + [g.get(field, "") for field in order])


def hello_proof(secret, g):
    """The release before challenges has another label, and no lines of the server's."""
    label = "dfc-hello-2" if "server_nonce" in g else "dfc-hello-1"
    return mac(secret, lines(label, g)).hex()


def welcome_proof(secret, g):
    return mac(secret, lines("dfc-welcome-1", g)).hex()


def session_key(secret, g):
    return hkdf(secret, (g["client_nonce"] + g["server_nonce"]).encode(),
                lines("dfc-session-1", g))


def digest_of(body):
    return hashlib.sha256(body).hexdigest() if body else "-"


def request_mac(key, session, counter, method, path, query, length, digest, headers=()):
    text = "dfc-request-1\n" + "".join(
        f"{x}\n" for x in (session, counter, method, path, query, length, digest))
    for name, value in headers:
        if name.lower().startswith("dfc-") and name.lower() != "dfc-auth":
            text += f"{name.lower()}: {value}\n"
    return mac(key, text).hex()


class Session:
    """One that this process has opened with a listener."""

    def __init__(self, session, key):
        self.id, self.key, self.counter = session, key, 0

    @staticmethod
    def question(key_text, node="test", boot="test"):
        """The body that asks for a challenge."""
        key = key_id(secret_of(key_text))
        return json.dumps({"ask": "challenge", "key": key, "node": node, "boot": boot}).encode()

    @staticmethod
    def greeting(key_text, challenge=None, node="test", boot="test"):
        """(The body that opens a session, and what must be remembered of it.)

        `challenge`: the answer to the question; None: a greeting of the release before challenges.
        """
        secret = secret_of(key_text)
        g = {"key_id": key_id(secret), "client_node": node,
             "client_boot": boot, "client_nonce": secrets.token_hex(32)}
        if challenge is not None:
            g.update(server_node=challenge["node"], server_nonce=challenge["challenge"])
        body = {
            "key": g["key_id"], "node": node, "boot": boot, "nonce": g["client_nonce"],
            "proof": hello_proof(secret, g)
        }
        if challenge is not None:
            body["challenge"] = challenge["challenge"]
        return json.dumps(body).encode(), g

    @classmethod
    def opened(cls, key_text, g, answer):
        """Of the answer to a greeting, whose proof is checked."""
        secret = secret_of(key_text)
        g = dict(g, server_node=answer["node"], server_boot=answer["boot"],
                 server_nonce=answer["nonce"], session=answer["session"])
        if not hmac.compare_digest(welcome_proof(secret, g), answer["proof"]):
            raise ValueError(f"{answer['node']} does not have the key")
        return cls(g["session"], session_key(secret, g))

    @classmethod
    def open(cls, http, url, key_text, **who):
        """`http` has request(method, url, body); url: "http://host:port" of the listener."""
        reply = http.request("POST", url + "/v1/intra/session", cls.question(key_text, **who))
        if reply.status != 200:
            raise ValueError(f"no challenge: {reply!r}")
        body, g = cls.greeting(key_text, json.loads(reply.body), **who)
        reply = http.request("POST", url + "/v1/intra/session", body)
        if reply.status != 201:
            raise ValueError(f"no session: {reply!r}")
        return cls.opened(key_text, g, json.loads(reply.body))

    def sign(self, method, url, body=b"", headers=None, counter=None):
        """The headers of a request, signed; each call uses the next counter."""
        headers = dict(headers or {})
        parts = urllib.parse.urlsplit(url)
        if counter is None:
            self.counter += 1
            counter = self.counter
        digest = digest_of(body)
        value = request_mac(self.key, self.id, counter, method, parts.path or "/", parts.query,
                            len(body), digest, headers.items())
        headers["Dfc-Auth"] = f"1 {self.id} {counter} {digest} {value}"
        return headers


def vectors():
    """{name: hex} of fixed inputs; common/auth_mac_test.c has the same."""
    secret = secret_of("0123456789abcdef0123456789abcdef")
    g = {"key_id": key_id(secret), "client_node": "p1",
         "client_boot": "bootofp1", "client_nonce": "11" * 32}
    earlier = hello_proof(secret, g)
    hello = hello_proof(secret, dict(g, server_node="t1", server_nonce="22" * 32))
    g.update(server_node="t1", server_boot="bootoft1", server_nonce="22" * 32, session="33" * 16)
    key = session_key(secret, g)
    body = b'{"action": "run"}'
    signed = request_mac(key, g["session"], 7, "POST", "/v1/xactions/srt-1", "dfcv=4",
                         len(body), digest_of(body),
                         [("Content-Type", "application/json"), ("Dfc-State", "c-0123456789 1.4"),
                          ("Dfc-Auth", "not counted"), ("DFC-Forwarded", "p2")])
    stream = request_mac(key, g["session"], 8, "PUT", "/v1/objects/b/a%20b", "", -1, "-")
    return {"secret": secret.hex(), "key_id": g["key_id"], "earlier_hello": earlier, "hello": hello,
            "welcome": welcome_proof(secret, g), "session": key.hex(), "digest": digest_of(body),
            "request": signed, "stream": stream}


if __name__ == "__main__":
    for name, value in vectors().items():
        print(name, value)

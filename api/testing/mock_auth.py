"""Access control of the mock cluster: logins, tokens, proofs of redirects.

A mock whose `secrets` has rows (access key: secret) asks for proof: of a proxy's calls a token, of
a target's the proof that the proxy's redirect has, or a token, too.
"""
import hashlib
import hmac
import json
import time

PROOF = "proof-of-the-redirect"


class Auth:
    """What the servers of one mock share; its lock is the mock's."""

    def __init__(self, lock):
        self.lock = lock
        self.forget()

    def forget(self):
        self.secrets = {}
        self.tokens = {}     # token: the access key that it is of
        self.token_ms = 3600000
        self.made = 0

    def change(self, value):
        """{"secrets": {access: secret}, "token_ms": life of tokens, "withdraw": true}"""
        with self.lock:
            self.secrets.update(value.get("secrets", {}))
            self.token_ms = value.get("token_ms", self.token_ms)
            if value.get("withdraw"):
                self.tokens.clear()

    def login(self, body):
        """The reply to a login, or None."""
        asked = json.loads(body)
        with self.lock:
            secret = self.secrets.get(asked["access"])
            lines = f"dfc-login-1\n{asked['access']}\n{asked['time_ms']}\n{asked['nonce']}\n"
            wanted = hmac.new((secret or "").encode(), lines.encode(), hashlib.sha256).hexdigest()
            if secret is None or not hmac.compare_digest(wanted, asked["proof"]):
                return None
            self.made += 1
            token = f"dfc1.token-{self.made}"
            self.tokens[token] = asked["access"]
            return {"token": token, "expires_ms": int(time.time() * 1000) + self.token_ms,
                    "user": "somebody"}

    def refusal(self, role, header, query):
        """The word of WWW-Authenticate, or None: the call is let in."""
        with self.lock:
            if not self.secrets or (role == "target" and query.get("dfca") == PROOF):
                return None
            if header is None:
                return "missing"
            return None if header.removeprefix("Bearer ") in self.tokens else "expired"

"""Who the client is: a token, or an access key whose secret logs in for one.

The secret is never sent: a login proves it (common/auth/login_proof.h).  One thread logs in for
all; the others go on with the token that is in force.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import threading
import time
import weakref
from typing import Callable, Dict, Optional, Tuple

AGAIN_SECONDS = 5.0  #: after a login that failed, while the token is still in force

#: What a login sends, and gives: (token, when it ends in seconds of Unix time).
Login = Callable[[Dict[str, object]], Tuple[str, float]]


def login_body(access: str, secret: str, now_ms: int, nonce: str) -> Dict[str, object]:
    text = f"dfc-login-1\n{access}\n{now_ms}\n{nonce}\n"
    proof = hmac.new(secret.encode(), text.encode(), hashlib.sha256).hexdigest()
    return {"access": access, "time_ms": now_ms, "nonce": nonce, "proof": proof}


class Identity:
    def __init__(self, access: Optional[str], secret: Optional[str], token: Optional[str]) -> None:
        self._access = access
        self._secret = secret
        self._token = token
        self._renew_at = float("inf")
        self._lock = threading.Lock()
        _identities.add(self)

    def unlock(self) -> None:
        """In a child: the thread that held it is not there."""
        self._lock = threading.Lock()

    def at_hand(self) -> Tuple[bool, Optional[str]]:
        """Whether token() would ask nobody, and what it would say."""
        if self._access is None or self._secret is None:
            return True, self._token
        return self._token is not None and time.monotonic() < self._renew_at, self._token

    def token(self, login: Login) -> Optional[str]:
        """None: the client has no identity."""
        if self._access is None or self._secret is None:
            return self._token
        token = self._token
        if token is not None and time.monotonic() < self._renew_at:
            return token
        if not self._lock.acquire(blocking=token is None):
            return token  # another thread renews it
        try:
            if self._token is None or time.monotonic() >= self._renew_at:
                self._renew_or_keep(login, self._access, self._secret)
            return self._token
        finally:
            self._lock.release()

    def _renew_or_keep(self, login: Login, access: str, secret: str) -> None:
        """A token is renewed before it ends: where that fails, it serves until then."""
        token = self._token
        try:
            self._renew(login, access, secret)
        except Exception:  # pylint: disable=broad-except
            if token is None:
                raise
            self._renew_at = time.monotonic() + AGAIN_SECONDS

    def _renew(self, login: Login, access: str, secret: str) -> None:
        nonce = os.urandom(16).hex()
        token, ends = login(login_body(access, secret, int(time.time() * 1000), nonce))
        life = ends - time.time()
        # Where the clocks differ by more than a token's life, a 401 tells that it has ended.
        self._renew_at = time.monotonic() + life * 0.8 if life > 0 else float("inf")
        self._token = token

    def refused(self, token: str) -> bool:
        """The cluster does not take it any more.  True: another one may be had."""
        if self._secret is None:
            return False
        if self._token == token:
            self._token = None
        return True


_identities: "weakref.WeakSet[Identity]" = weakref.WeakSet()


def _unlock_all() -> None:
    for identity in list(_identities):
        identity.unlock()


os.register_at_fork(after_in_child=_unlock_all)

"""How clients and proxies prove who asks, with nothing but hashlib and hmac.

An independent reading of access/token.h, access/redirect_proof.h and common/auth/login_proof.h.

    body = login(access_key, secret_key)                       # of POST /v1/auth/token
    text = token(cluster_key_text, user_id, issued, expires)   # as a proxy makes it
    dfca = redirect(cluster_key_text, user_id, expires, …)     # as a proxy adds it to a URL
    dfcu = signed_url(cluster_key_text, user_id, issued, expires, …)  # of POST /v1/auth/url
"""

import base64
import json
import secrets
import struct
import time

import authref


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def derived(key_text, info):
    """The cluster key's id, and a key that is derived from it."""
    secret = authref.secret_of(key_text)
    return bytes.fromhex(authref.key_id(secret)), authref.hkdf(secret, b"", info)


def login(access, secret, time_ms=None, nonce=None):
    time_ms = int(time.time() * 1000) if time_ms is None else time_ms
    nonce = nonce or secrets.token_hex(16)
    proof = authref.mac(secret.encode(), f"dfc-login-1\n{access}\n{time_ms}\n{nonce}\n").hex()
    return json.dumps({"access": access, "time_ms": time_ms, "nonce": nonce, "proof": proof}).encode()


def token_fields(key_id, user_id, issued_ms, expires_ms, access=""):
    return (key_id + bytes.fromhex(user_id) + access.encode().ljust(20, b"\0")
            + struct.pack(">QQ", issued_ms, expires_ms) + secrets.token_bytes(8))


def token(key_text, user_id, issued_ms, expires_ms, access=""):
    key_id, key = derived(key_text, "dfc-token-1")
    text = "dfc1." + base64url(token_fields(key_id, user_id, issued_ms, expires_ms, access))
    return text + "." + base64url(authref.mac(key, text))


def field(text):
    if text is None:
        return b"\0"
    data = text.encode()
    return b"\1" + struct.pack(">Q", len(data)) + data


def call_bytes(method, bucket_id, name, offset=None, length=None, range_header=None, new_name=None):
    return struct.pack(">Q", bucket_id) + b"".join(field(text) for text in (
        "GET" if method == "HEAD" else method, name, offset, length, range_header, new_name))


def redirect(key_text, user_id, expires_ms, method, bucket_id, name, **more):
    key_id, key = derived(key_text, "dfc-redirect-1")
    head = bytes.fromhex(user_id) + struct.pack(">Q", expires_ms)
    return base64url(key_id + head + authref.mac(
        key, head + call_bytes(method, bucket_id, name, **more)))


def signed_url(key_text, user_id, issued_ms, expires_ms, method, bucket_id, name):
    key_id, key = derived(key_text, "dfc-url-1")
    fields = token_fields(key_id, user_id, issued_ms, expires_ms)
    return base64url(fields + authref.mac(key, fields + call_bytes(method, bucket_id, name)))

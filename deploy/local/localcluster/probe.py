"""What daemons say of themselves: their ready file and their HTTP."""

import hashlib
import hmac
import http.client
import json
import os
import secrets
import ssl
import time
import urllib.parse

HTTP_SECONDS = 5


def connect(url, ca_file):
    address = urllib.parse.urlsplit(url)
    if address.scheme == "http":
        return http.client.HTTPConnection(address.hostname, address.port, timeout=HTTP_SECONDS)
    return http.client.HTTPSConnection(address.hostname, address.port, timeout=HTTP_SECONDS,
                                       context=ssl.create_default_context(cafile=ca_file))


def exchange(url, method, path, body=None, headers=None, ca_file=None):
    """The JSON that a 200 carries; None where there is no such answer."""
    connection = connect(url, ca_file)
    try:
        connection.request(method, path, body, headers or {})
        reply = connection.getresponse()
        answer = reply.read()
        return json.loads(answer) if reply.status == 200 else None
    except (OSError, http.client.HTTPException, ValueError):
        return None
    finally:
        connection.close()


def get_json(url, path, ca_file=None, headers=None):
    return exchange(url, "GET", path, headers=headers, ca_file=ca_file)


def login(url, keys, ca_file=None):
    """Headers that prove who asks, by an access key and its secret (common/auth/login_proof.h); none
    where the proxy does not give a token."""
    access, secret = keys
    now, nonce = int(time.time() * 1000), secrets.token_hex(16)
    text = f"dfc-login-1\n{access}\n{now}\n{nonce}\n"
    proof = hmac.new(secret.encode(), text.encode(), hashlib.sha256).hexdigest()
    body = {"access": access, "time_ms": now, "nonce": nonce, "proof": proof}
    reply = exchange(url, "POST", "/v1/auth/token", json.dumps(body), ca_file=ca_file) or {}
    return {"Authorization": "Bearer " + reply["token"]} if "token" in reply else {}


def ready_file(node_dir):
    return os.path.join(node_dir, "ready.json")


def read_ready(node_dir, pid):
    """The ready file of the process `pid`; None where that has not written one (yet)."""
    try:
        with open(ready_file(node_dir), encoding="utf-8") as f:
            ready = json.load(f)
    except (FileNotFoundError, ValueError):
        return None
    return ready if ready.get("pid") == pid else None


def remove_ready(node_dir):
    try:
        os.unlink(ready_file(node_dir))
    except FileNotFoundError:
        pass


def cluster_nodes(proxy_urls, ca_file, keys=None):
    """{id: node} by the first proxy that answers; None where none does."""
    for url in proxy_urls:
        headers = login(url, keys, ca_file) if keys else None
        document = get_json(url, "/v1/cluster", ca_file, headers)
        if document is not None:
            return {node["id"]: node for node in document.get("nodes", [])}
    return None

"""What daemons say of themselves: their ready file and their HTTP."""

import http.client
import json
import os
import ssl
import urllib.parse

HTTP_SECONDS = 5


def connect(url, ca_file):
    address = urllib.parse.urlsplit(url)
    if address.scheme == "http":
        return http.client.HTTPConnection(address.hostname, address.port, timeout=HTTP_SECONDS)
    return http.client.HTTPSConnection(address.hostname, address.port, timeout=HTTP_SECONDS,
                                       context=ssl.create_default_context(cafile=ca_file))


def get_json(url, path, ca_file=None):
    """The JSON that a 200 carries; None where there is no such answer."""
    connection = connect(url, ca_file)
    try:
        connection.request("GET", path)
        reply = connection.getresponse()
        body = reply.read()
        return json.loads(body) if reply.status == 200 else None
    except (OSError, http.client.HTTPException, ValueError):
        return None
    finally:
        connection.close()


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


def cluster_nodes(proxy_urls, ca_file):
    """{id: node} by the first proxy that answers; None where none does."""
    for url in proxy_urls:
        document = get_json(url, "/v1/cluster", ca_file)
        if document is not None:
            return {node["id"]: node for node in document.get("nodes", [])}
    return None

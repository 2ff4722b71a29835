"""An authority of a cluster's own, and a certificate of it for all of its nodes, by openssl.

    DIR/tls/ca.crt, ca.key       the authority: clients trust ca.crt
    DIR/tls/node.crt, node.key   what the public listeners show; mode 0600
"""

import os
import subprocess

from . import ClusterError

DAYS = 365
CURVE = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]


def path_of(directory, name):
    return os.path.join(directory, "tls", name)


def openssl(*args):
    try:
        done = subprocess.run(["openssl", *args], capture_output=True, text=True, check=False,
                              umask=0o077)
    except FileNotFoundError:
        raise ClusterError("there is no program openssl: --tls needs it") from None
    if done.returncode != 0:
        raise ClusterError(f"openssl {args[0]}: {done.stderr.strip()}")


def names_of(address):
    """What a client may call a node, as openssl writes it."""
    addresses = {"127.0.0.1", "::1"} | ({address} - {"0.0.0.0", "::"})
    return ",".join(["DNS:localhost", *(f"IP:{a}" for a in sorted(addresses))])


def exist(directory):
    return os.path.exists(path_of(directory, "node.crt"))


def make_authority(directory):
    """Once in the life of a cluster."""
    os.makedirs(path_of(directory, ""), exist_ok=True)
    if not os.path.exists(path_of(directory, "ca.crt")):
        openssl("req", "-x509", *CURVE, "-subj", "/CN=dfc local cluster", "-days", str(DAYS),
                "-keyout", path_of(directory, "ca.key"), "-out", path_of(directory, "ca.crt"))


def make_certificate(directory, address, name="node"):
    """A new one, signed by the authority, in place of the one before."""
    request, key = path_of(directory, f"{name}.csr"), path_of(directory, f"{name}.key.new")
    extensions, cert = path_of(directory, f"{name}.ext"), path_of(directory, f"{name}.crt.new")
    with open(extensions, "w", encoding="ascii") as f:
        f.write(f"subjectAltName={names_of(address)}\n")
    openssl("req", *CURVE, "-subj", "/CN=dfc", "-keyout", key, "-out", request)
    openssl("x509", "-req", "-in", request, "-CA", path_of(directory, "ca.crt"),
            "-CAkey", path_of(directory, "ca.key"), "-CAcreateserial", "-days", str(DAYS),
            "-extfile", extensions, "-out", cert)
    for path in (key, cert):
        os.replace(path, path.removesuffix(".new"))
    for path in (request, extensions):
        os.unlink(path)

"""A dfc cluster on one machine: what stands behind the script `cluster`.

process.py     a process that is known beyond doubt (pid and start time), started, signalled,
awaited
layout.py      what a cluster consists of, kept in DIR/cluster.json
certificates.py  an authority, and a certificate of it for all nodes
probe.py       what the daemons say of themselves
operations.py  up, start, stop, kill, down, status
"""


class ClusterError(Exception):
    """A sentence for the user."""

"""A daemon that stands still."""

import contextlib
import os
import signal

from lib import wait_for


def stands_still(pid):
    """SIGSTOP ends no call that a thread is in: a thread may go on for a moment."""
    for thread in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(FileNotFoundError):
            with open(f"/proc/{pid}/task/{thread}/stat", encoding="ascii", errors="replace") as f:
                if f.read().rpartition(")")[2].split()[0] not in "TtZX":
                    return False
    return True


@contextlib.contextmanager
def frozen(c, node):
    """No thread of the node runs meanwhile."""
    pid = c.pid(node)
    os.kill(pid, signal.SIGSTOP)
    try:
        wait_for(lambda: stands_still(pid), f"{node} stands still")
        yield
    finally:
        os.kill(pid, signal.SIGCONT)

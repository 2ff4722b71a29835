"""Processes that outlive the program that started them.

A pid alone names nobody: it is used again once its process has ended.  A pid and the process's
start time (field 22 of /proc/PID/stat) do, so nothing here ever signals a stranger.
"""

import os
import signal
import subprocess
import time
from dataclasses import dataclass

POLL_SECONDS = 0.02


def wait_until(condition, seconds):
    """Asks until condition() is true (returns that) or the time is over (returns the last)."""
    deadline = time.monotonic() + seconds
    while True:
        answer = condition()
        if answer or time.monotonic() >= deadline:
            return answer
        time.sleep(POLL_SECONDS)


def start_time_of(pid):
    """Clock ticks since boot at which this pid's process began; None where it has ended: all of
    its threads, since those that are left when the first one has ended still hold its ports."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
            fields = f.read().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, threads, start_time = fields[0], int(fields[17]), int(fields[19])
    return None if state in "ZX" and threads <= 1 else start_time


@dataclass(frozen=True)
class Process:
    pid: int
    start_time: int

    def alive(self):
        return start_time_of(self.pid) == self.start_time

    def signal(self, number):
        """False where the process had ended already."""
        if not self.alive():
            return False
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return False
        return True

    def wait(self, seconds):
        """True once the process has ended."""
        return wait_until(lambda: not self.alive(), seconds)


def spawn(argv, log_path):
    """Starts argv in a session of its own, its output appended to a file."""
    with open(log_path, "ab") as log:
        child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                 start_new_session=True)
    start_time = start_time_of(child.pid)
    # A child that ended at once is a zombie until we reap it: its pid is still its own.
    return child, Process(child.pid, start_time if start_time is not None else 0)


def end_of_log(path, lines=8):
    """The last lines of a log, indented, for a message."""
    try:
        with open(path, "rb") as f:
            f.seek(0, os.SEEK_END)
            f.seek(max(0, f.tell() - 16384))
            text = f.read().decode("utf-8", errors="replace")
    except FileNotFoundError:
        text = ""
    last = text.splitlines()[-lines:]
    return "\n".join("    " + line for line in last) if last else "    (its log is empty)"


def signal_number(name):
    """'9', 'KILL' and 'SIGKILL' are one; None for what is no signal."""
    if name.isdigit():
        return int(name) if int(name) in set(signal.Signals) else None
    full = name.upper() if name.upper().startswith("SIG") else "SIG" + name.upper()
    return signal.Signals[full].value if full in signal.Signals.__members__ else None

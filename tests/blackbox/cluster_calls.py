"""Calls of the script deploy/local/cluster without a new Python each.

    calls = ClusterCalls()
    done = calls.run(["kill", "t1", "-9"], env)  # returncode, stdout, stderr, as of subprocess.run()

A process of its own has the script loaded, and forks for each call: the start of a Python costs a
quarter of a second of a processor, a fork some milliseconds.  Calls may run at the same time.  What
a call has started is nobody's child when it ends, as after a call from a shell."""

import importlib.machinery
import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback

HERE = os.path.dirname(os.path.realpath(__file__))
SCRIPT = os.path.join(os.path.dirname(os.path.dirname(HERE)), "deploy", "local", "cluster")


# --- the test's side -----------------------------------------------------------------------------

class ClusterCalls:
    """The process begins with the first call, and ends with the test."""

    def __init__(self):
        self.lock = threading.Lock()
        self.control = self.process = None

    def begin(self):
        self.control, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, os.path.realpath(__file__), str(theirs.fileno())],
                pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)

    def send(self, connection):
        with self.lock:
            if self.control is None:
                self.begin()
            socket.send_fds(self.control, [b"c"], [connection.fileno()])

    def run(self, argv, env):
        ours, theirs = socket.socketpair()
        with ours, theirs:
            self.send(theirs)
            theirs.close()
            said = ask(ours, {"argv": argv, "env": env, "cwd": os.getcwd()})
        return subprocess.CompletedProcess(argv, said["code"], said["out"], said["err"])


def ask(connection, request):
    with connection.makefile("rw", encoding="utf-8") as f:
        f.write(json.dumps(request) + "\n")
        f.flush()
        line = f.readline()
    if not line:
        raise OSError(f"cluster {request['argv']} ended without a reply")
    return json.loads(line)


# --- the other process ---------------------------------------------------------------------------

def loaded():
    loader = importlib.machinery.SourceFileLoader("cluster", SCRIPT)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("cluster", loader))
    sys.modules["cluster"] = module  # for its dataclasses
    loader.exec_module(module)
    return module


def code_of(script):
    try:
        return script.main()
    except SystemExit as e:
        return e.code if isinstance(e.code, int) else 1
    except BaseException:  # pylint: disable=broad-except
        traceback.print_exc()
        return 1


def answer(script, connection):
    with connection.makefile("rw", encoding="utf-8") as f, tempfile.TemporaryFile() as out, \
            tempfile.TemporaryFile() as err:
        request = json.loads(f.readline())
        os.environ.clear()
        os.environ.update(request["env"])
        os.chdir(request["cwd"])
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        sys.argv = [SCRIPT, *request["argv"]]
        code = code_of(script)
        sys.stdout.flush()
        sys.stderr.flush()
        said = {"code": code}
        for name, file in (("out", out), ("err", err)):
            file.seek(0)
            said[name] = file.read().decode(errors="replace")
        f.write(json.dumps(said) + "\n")


def serve(control):
    script = loaded()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for a call
    while True:
        _, descriptors, _, _ = socket.recv_fds(control, 1, 1)
        if not descriptors:
            return
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            control.close()
            answer(script, socket.socket(fileno=descriptors[0]))
            os._exit(0)
        os.close(descriptors[0])


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))

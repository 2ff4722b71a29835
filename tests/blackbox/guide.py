#!/usr/bin/env python3
"""Every command of README and of docs/guide/ is run, and prints what the page says.

    guide.py [PAGE…]        these pages only (quickstart.md), else all but those of mounts
    guide.py --show PAGE    prints what the commands of a page print

A page's fenced blocks of the language `console` are one session of bash. Its directory looks like a
clone: build/, deploy/, python/ and quickstart.sh are there, and dfcctl and cluster are in the PATH.
In such a block

    $ COMMAND     is run; lines that begin with "> " continue it
    LINES         are what the command prints, on standard output and standard error

    …             stands for any characters of one line; as a line of its own, for any lines
    spaces        one or several are the same
    ports         a page has 127.0.0.1:8080 and the 59 that follow; the test has others, and
                  translates them
    /home/me/dfc  is the directory

A command ends with 0; the last one of a block `console fails` does not. Blocks of other languages
are not run. Those of the language `sh` are commands that need more than a cluster on one machine; a
page that has some says NOT_RUN. Skipped without a program of PROGRAMS, which pages use.
"""

import contextlib
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass, field

from lib import BUILD, ROOT, WAIT_SECONDS, Failed, Ports, check, end_on_signals, run_one, skip
from mount_lib import needs_fuse

NOT_RUN = "not run by the tests"
PAGES = [os.path.join(ROOT, "README.md"), *sorted(glob.glob(os.path.join(ROOT, "docs/guide/*.md")))]
HOME = "/home/me/dfc"
MOUNTS = ("checkpoints.md", "mount.md")  # run alone: they need FUSE and a mount namespace
PROGRAMS = {"etcd": "etcd-server", "aws": "awscli", "rclone": "rclone", "s3cmd": "s3cmd",
            "bsdtar": "libarchive-tools", "redis-server": "redis-server"}
FIRST_PORT = 8080
WITH_PORT = re.compile(r"(127\.0\.0\.1:|-port[= ]|_port\": )(\d+)")
FENCE = re.compile(r"^```(.*)$")


# --- pages ---------------------------------------------------------------------------------------

@dataclass
class Step:
    line: int
    command: str
    expected: list = field(default_factory=list)
    fails: bool = False


def blocks(text):
    """(language, number of the first line, lines) of each fenced block."""
    language, first, lines = None, 0, []
    for number, line in enumerate(text.splitlines(), 1):
        fence = FENCE.match(line)
        if fence and language is None:
            language, first, lines = fence[1].strip(), number + 1, []
        elif fence:
            yield language, first, lines
            language = None
        elif language is not None:
            lines.append(line)


def steps_of(text):
    """The commands of a page, in their order."""
    steps = []
    for language, first, lines in blocks(text):
        if language not in ("console", "console fails"):
            continue
        block = []
        for number, line in enumerate(lines, first):
            if line.startswith("$ "):
                block.append(Step(number, line[2:]))
            elif line.startswith("> ") and block and not block[-1].expected:
                block[-1].command += "\n" + line[2:]
            elif block:
                block[-1].expected.append(line)
            else:
                raise Failed(f"line {number}: a console block begins with '$ '")
        if language == "console fails" and block:
            block[-1].fails = True
        steps += block
    return steps


def pattern_of(expected):
    """A regular expression for what these lines stand for."""
    out = []
    for line in expected:
        if line.strip() == "…":
            out.append(r"(?:[^\n]*\n)*?")
            continue
        pieces = (re.sub(r"(?:\\ )+", r"[ ]+", re.escape(p)) for p in line.rstrip().split("…"))
        out.append(r"[^\n]*".join(pieces) + r"[ ]*\n")
    return re.compile("".join(out))


def prints(expected, output):
    """Whether `output` is what the page says."""
    if output and not output.endswith("\n"):
        output += "\n"
    return pattern_of(expected).fullmatch(output) is not None


def difference(step, output):
    """A sentence, the expected lines and the printed ones."""
    return "\n".join([
        f"line {step.line}: $ {step.command}", "  the page says",
        *("    " + e for e in step.expected), "  it prints",
        *("    " + line for line in output.splitlines())
    ])


# --- sessions ------------------------------------------------------------------------------------

class Translation:
    """Between the ports and the directory that a page names, and those of the test."""

    def __init__(self, directory, base):
        self.directory, self.base = directory, base

    def there(self, match):
        port = int(match[2])
        if FIRST_PORT <= port < FIRST_PORT + Ports.SIZE:
            return f"{match[1]}{port - FIRST_PORT + self.base}"
        return match[0]

    def back(self, match):
        port = int(match[2])
        if self.base <= port < self.base + Ports.SIZE:
            return f"{match[1]}{port - self.base + FIRST_PORT}"
        return match[0]

    def command(self, text):
        return WITH_PORT.sub(self.there, text.replace(HOME, self.directory))

    def output(self, text):
        return WITH_PORT.sub(self.back, text.replace(self.directory, HOME))


class Session:
    """One bash, in a directory that looks like a clone of the source."""

    def __init__(self, ports):
        self.top = tempfile.mkdtemp(prefix="dfc-guide-")
        self.directory = os.path.join(self.top, "dfc")
        os.mkdir(self.directory)
        for name, path in (("build", BUILD), ("deploy", os.path.join(ROOT, "deploy")),
                           ("python", os.path.join(ROOT, "python")),
                           ("quickstart.sh", os.path.join(ROOT, "quickstart.sh"))):
            os.symlink(path, os.path.join(self.directory, name))
        self.translation = Translation(self.directory, ports.base)
        path = [os.path.join(self.directory, "build"), os.path.join(self.directory, "deploy/local")]
        env = {
            **os.environ, "DFC_BUILD": BUILD, "DFC_BASE_PORT": str(ports.base), "LC_ALL": "C.UTF-8",
            "DFC_CLUSTER_DIR": os.path.join(self.directory, ".dfc-cluster"),
            "no_proxy": "127.0.0.1", "DFC_ENDPOINT": f"http://127.0.0.1:{ports.base}",
            "PATH": ":".join([*path, os.environ["PATH"]]),
            "XDG_CONFIG_HOME": os.path.join(self.directory, ".config"),
            "XDG_CACHE_HOME": os.path.join(self.directory, ".cache")
        }
        self.bash = subprocess.Popen(["bash", "--norc", "--noprofile"], cwd=self.directory, env=env,
                                     text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     start_new_session=True)

    def run(self, command):
        """(status, output)"""
        script, output = os.path.join(self.top, "command"), os.path.join(self.top, "output")
        with open(script, "w", encoding="utf-8") as f:
            f.write(self.translation.command(command) + "\n")
        self.bash.stdin.write(f". {script} </dev/null >{output} 2>&1; echo $?\n")
        self.bash.stdin.flush()
        watch = threading.Timer(WAIT_SECONDS, self.bash.kill)
        watch.start()
        status = self.bash.stdout.readline()
        watch.cancel()
        with open(output, encoding="utf-8", errors="replace") as f:
            printed = self.translation.output(f.read())
        check(status, f"'{command}' did not end within {WAIT_SECONDS} s; it printed\n{printed}")
        return int(status), printed

    def close(self):
        """Ends the clusters of the page; a daemon that does not end gently is a failure."""
        self.bash.stdin.close()
        self.bash.wait(WAIT_SECONDS)
        self.bash.stdout.close()
        try:
            layouts = glob.glob(os.path.join(self.directory, "**/cluster.json"), recursive=True)
            hidden = glob.glob(os.path.join(self.directory, ".dfc-cluster*/cluster.json"))
            for layout in layouts + hidden:
                done = subprocess.run([
                    os.path.join(ROOT, "deploy/local/cluster"), "down", "--purge", "--dir",
                    os.path.dirname(layout)
                ], capture_output=True, text=True, check=False)
                check(done.returncode == 0, f"the cluster did not end: {done.stderr}")
        finally:
            with contextlib.suppress(ProcessLookupError):  # what the page has left in the background
                os.killpg(self.bash.pid, signal.SIGKILL)
            shutil.rmtree(self.top, ignore_errors=True)


def run_page(path, ports, show=False):
    with open(path, encoding="utf-8") as f:
        text = f.read()
    if any(language == "sh" for language, _, _ in blocks(text)):
        check(NOT_RUN in " ".join(text.split()),
              f"the page has commands in 'sh' blocks, and does not say '{NOT_RUN}'")
    with contextlib.closing(Session(ports)) as session:
        for step in steps_of(text):
            run_step(session, step, show)


def run_step(session, step, show):
    status, output = session.run(step.command)
    if show:
        print(f"$ {step.command}\n{output}", end="" if status == 0 else f"[exit {status}]\n",
              flush=True)
        return
    check(prints(step.expected, output), difference(step, output))
    check((status != 0) == step.fails, f"line {step.line}: '{step.command}' ends with {status}")


def main(args):
    end_on_signals()
    show = "--show" in args
    names = [a for a in args if not a.startswith("--")]
    pages = [p for p in PAGES
             if os.path.basename(p) in names or not names and os.path.basename(p) not in MOUNTS]
    if any(name in MOUNTS for name in names):
        needs_fuse()
    check(pages, f"no page is called {' or '.join(names)}")
    for program, package in PROGRAMS.items():
        if not shutil.which(program):
            skip(f"there is no {program} (Debian: {package})")
    ports = Ports()
    passed = [run_one(os.path.relpath(page, ROOT), run_page, page, ports, show) for page in pages]
    print(f"{sum(passed)} passed, {len(passed) - sum(passed)} failed")
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

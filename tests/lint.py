#!/usr/bin/env python3
"""Linters over the whole tree: flake8 and pylint for Python, shellcheck for shell, clang-tidy for C.

    lint.py                  flake8 and shellcheck: seconds
    lint.py --tidy [FILE…]   clang-tidy over these C files, or over all, and then pylint, too; needs a
                             build directory

What a linter is not asked for stands here, with the reason.
"""

import os
import subprocess
import sys

from house import files_of

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

PYLINT_OFF = {
    "import-error": "scripts find scripts of other folders by sys.path; tests/names.py checks them",
    "no-name-in-module": "the same",
    "unused-import": "flake8 says it, and knows the marks of names that are handed on",
    "redefined-outer-name": "a test's local name may be a helper's, too",
    "protected-access": "tests look inside",
    "attribute-defined-outside-init": "fixtures make them in setUp()",
    "cell-var-from-loop": "conditions are asked within the round that makes them",
    "broad-exception-caught": "a thread hands on whatever ended it",
    "unused-argument": "rows of a table share one signature",
    "dangerous-default-value": "defaults are constants that nobody changes",
    "super-init-not-called": "clusters of another kind share methods, not their start",
    "unsubscriptable-object": "pylint takes what a wait returns for nothing",
    "unsupported-membership-test": "the same",
    "no-member": "managers make their members at run time",
    "no-value-for-parameter": "it cannot count what * hands over",
    "too-many-function-args": "the same",
    "keyword-arg-before-vararg": "a status and then pairs reads well",
    "global-statement": "a script may keep what its end takes down",
    "confusing-with-statement": "it is a list of managers",
}

# Without clang-analyzer: it does not see that error_set() returns its code, nor that a reference is
# one of several.  None of its 40 reports on this tree was a defect.
TIDY = ("-*", "bugprone-*", "cert-*")
UNTIDY = ("tests/extend/",  # built in a copy alone
          "tests/blackbox/plog_mpi.c", "tests/blackbox/plog_hdf5.c")  # need Open MPI
TIDY_OFF = {
    "bugprone-easily-swappable-parameters": "bytes and counts follow one another everywhere",
    "bugprone-reserved-identifier": "_cleanup_, _GNU_SOURCE",
    "cert-dcl37-c": "the same",
    "cert-dcl51-cpp": "the same",
    "cert-err33-c": "the result of snprintf() into a buffer that fits",
    "cert-err34-c": "sscanf() reads numbers of fixed width, or of the kernel",
    "cert-env33-c": "tests of programs run a shell",
    "bugprone-implicit-widening-of-multiplication-result": "-Wconversion of gcc looks at sizes",
    "bugprone-misplaced-widening-cast": "all integers that it means have 64 bits here",
    "bugprone-narrowing-conversions": "-Wconversion of gcc looks at sizes",
    "bugprone-not-null-terminated-result": "bytes of a record are no text",
    "bugprone-sizeof-expression": "arrays of pointers are allocated and counted",
    "bugprone-branch-clone": "two cases of a switch may do the same for two reasons",
    "bugprone-macro-parentheses": "rows of .def files are no expressions",
    "cert-msc30-c": "tests want random numbers that a seed repeats",
    "cert-msc32-c": "the same",
    "cert-msc50-cpp": "the same",
    "cert-msc51-cpp": "the same",
}


def tree(*endings):
    return [f for f in files_of(ROOT) if f.endswith(endings)]


def is_shell(path):
    with open(os.path.join(ROOT, path), "rb") as f:
        first = f.readline(80)
    return first.startswith(b"#!") and (b"bash" in first or b"/sh" in first)


def objects(command, what):
    """True where the linter found something; it has said what."""
    print(f"== {what}", flush=True)
    return subprocess.run(command, cwd=ROOT, check=False).returncode != 0


def lint():
    python = tree(".py")
    shell = [f for f in tree("") if f.endswith(".sh") or is_shell(f)]
    return [objects(["flake8", *python], f"flake8: {len(python)} scripts"),
            objects(["shellcheck", "-x", *shell], f"shellcheck: {len(shell)} scripts")]


def pylint():
    python = tree(".py")
    return objects(["pylint", f"--disable={','.join(PYLINT_OFF)}", *python],
                   f"pylint: {len(python)} scripts")


def tidy(files):
    slow = [] if files else [pylint()]
    files = [f for f in files or tree(".c") if f.endswith(".c") and not f.startswith(UNTIDY)]
    checks = ",".join([*TIDY, *(f"-{name}" for name in TIDY_OFF)])
    build = os.environ.get("DFC_BUILD", os.path.join(ROOT, "build"))
    if not files:
        return slow
    # As in meson.build: fortified calls are no code of clang's.
    command = ["xargs", "-P", str(os.cpu_count()), "-n", "4", "clang-tidy-14", "-p", build,
               "--extra-arg=-U_FORTIFY_SOURCE", "--quiet", "--warnings-as-errors=*",
               f"--checks={checks}"]
    print(f"== clang-tidy: {len(files)} files", flush=True)
    done = subprocess.run(command, cwd=ROOT, input="\n".join(files), text=True, check=False,
                          stderr=subprocess.DEVNULL)
    return [*slow, done.returncode != 0]


if __name__ == "__main__":
    sys.exit(any(tidy(sys.argv[2:]) if sys.argv[1:2] == ["--tidy"] else lint()))

#!/bin/sh
# run.sh FUZZER SEEDS: a short, repeatable run from the seeds in the directory SEEDS, if there is
# one.  FUZZ_RUNS=10000000 makes it a long one.  An input that fails is left in the current
# directory, as crash-*.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -d "$2" ]; then
    cp "$2"/* "$work"
fi
"$1" -runs="${FUZZ_RUNS:-20000}" -seed=1 -timeout=10 -verbosity=0 "$work"

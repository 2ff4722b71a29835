#!/bin/sh
# run.sh FUZZER SEEDS: a short, repeatable run from the seeds in the directory SEEDS, if there is
# one.  FUZZ_SECONDS=60 makes it a longer one, with another seed each time (libFuzzer prints it).
# An input that fails is left in the current directory, as crash-*.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -d "$2" ]; then
    cp "$2"/* "$work"
fi
if [ -n "${FUZZ_SECONDS:-}" ]; then
    "$1" -max_total_time="$FUZZ_SECONDS" -timeout=10 -verbosity=1 -print_final_stats=1 "$work"
else
    "$1" -runs=20000 -seed=1 -timeout=10 -verbosity=0 "$work"
fi

#!/usr/bin/env bash
# Installs what the tests need, builds, runs everything.
#
#   ./test.sh                  all of it
#   ./test.sh unit blackbox    these suites only, in build/ (also: sim, sort, tree, powercut, extend)
#   ./test.sh --fast           before a commit: linters, and unit tests of the folders that changed
#   ./test.sh --long           what is too long for every day: about 65 minutes on two quiet cores
#
#   build/         gcc, release               every suite (`tree`: linters and the like, here alone)
#   build-asan/    gcc, address + undefined   unit, sim, and the black-box tests fit for it
#   build-tsan/    gcc, thread                unit (programs with threads), and the same black-box tests
#   build-fuzz/    clang, fuzzers             fuzz, for some seconds each
#
# --fast says which tests it chooses in tests/fast.py.
#
# A black-box test that failed for time alone runs twice more, alone (tests/tally.py says which).
#
# --long runs the suite `long` (tests/long/meson.build) in build/, one test after the other, and each
# fuzzer for a minute in build-fuzz/ (FUZZ_SECONDS says how long).
#
# Ends with the line "N passed, N failed, N skipped", and with 0 where nothing failed and nothing was
# skipped without a reason in tests/allowed-skips.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"
. deploy/local/packages.sh

cores=$(nproc)
# Black-box tests wait, for leases, restarts and repairs, four times as long as they compute.
jobs=$((3 * cores))

# Sanitizers put code in that gcc then warns of: null formats, variables that it thinks unset.
sanitized() {
    configure_build "$1" -Dtests=enabled -Dbuildtype=debugoptimized -Doptimization=1 \
        -Db_sanitize="$2" -Db_lundef=false \
        -Dc_args='-Wno-format-truncation -Wno-maybe-uninitialized'
}

configure() {
    case $1 in
    build) configure_build build -Dtests=enabled ;;
    build-asan) sanitized build-asan address,undefined ;;
    build-tsan) sanitized build-tsan thread ;;
    build-fuzz)
        CC=clang-14 configure_build build-fuzz -Dtests=enabled -Dfuzz=true \
            -Dbuildtype=debugoptimized -Doptimization=1 -Db_lundef=false
        ;;
    esac
}

build() {
    say "building $1/"
    configure "$1"
    ninja -C "$1" --quiet || fail "$1/ does not build"
}

# run DIRECTORY MULTIPLIER meson-arguments...: results go to DIRECTORY/meson-logs, and are counted
# at the end; what fails here does not keep the rest from running.  `only`: names of tests; empty: all.
only=()
run() {
    local directory=$1 multiplier=$2
    shift 2
    say "testing $directory/"
    local log=$directory/meson-logs/testlog.json unsteady
    rm -f "$directory"/meson-logs/testlog*.json "$directory/meson-logs/again.json"
    meson test -C "$directory" --no-rebuild --list "$@" "${only[@]}" \
        >"$directory/meson-logs/testlog.planned" || fail "$directory/ has no test of: $* ${only[*]}"
    meson test -C "$directory" --no-rebuild --print-errorlogs --timeout-multiplier "$multiplier" \
        --num-processes "$jobs" "$@" "${only[@]}" || true
    logs+=("$log")
    mapfile -t unsteady < <([ ! -s "$log" ] || python3 tests/tally.py --unsteady "$log")
    if [ "${unsteady[*]}" ]; then
        say "twice again, alone: ${unsteady[*]}"
        meson test -C "$directory" --no-rebuild --print-errorlogs --logbase again \
            --timeout-multiplier "$multiplier" --num-processes 1 --repeat 2 "$@" "${unsteady[@]}" || true
    fi
}

# Each test of the suite `long` alone, with what it takes said before it begins.
run_long() {
    local plan name minutes
    plan=$(meson introspect build --tests | python3 tests/long/plan.py) || fail "no plan of long tests"
    rm -f build/meson-logs/long*.json
    while read -r name minutes; do
        say "$name: about $minutes min"
        meson test -C build --no-rebuild --print-errorlogs --suite long --logbase "$name" "$name" \
            </dev/null || true
        logs+=("build/meson-logs/$name.json")
    done <<<"$plan"
}

# The tests of what has changed since the branch left main, or since the last commit on main.
run_fast() {
    local base
    base=$(git merge-base HEAD origin/main 2>/dev/null) || base=HEAD
    [ "$base" != "$(git rev-parse HEAD)" ] || base=HEAD~1
    mapfile -t only < <(meson introspect build --tests | python3 tests/fast.py "$base")
    [ "${only[*]}" ] || fail "there is nothing to test since $base"
    run build 1
}

run_fuzzers() {
    export FUZZ_SECONDS=${FUZZ_SECONDS:-60}
    local count
    count=$(meson introspect build-fuzz --tests | grep -o '"name": "[a-z0-9_]*_fuzz"' | wc -l)
    say "$count fuzzers: about $((count * FUZZ_SECONDS / cores / 60 + 1)) min"
    jobs=$cores run build-fuzz $((FUZZ_SECONDS / 60 + 1)) --suite fuzz
}

suites=()
logs=()
long=
fast=
for suite in "$@"; do
    case $suite in
    --long) long=yes ;;
    --fast) fast=yes ;;
    -*) fail "there is no option $suite; give names of suites, or nothing" ;;
    *) suites+=(--suite "$suite") ;;
    esac
done

# shellcheck disable=SC2086  # the lists are words
require_packages $build_packages $test_packages
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0 UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS="halt_on_error=0:exitcode=66:suppressions=$PWD/tests/tsan.suppressions"

if [ -n "$fast" ]; then
    [ "${#suites[@]}$long" = 0 ] || fail "--fast chooses by itself: give it alone"
    git rev-parse -q --verify HEAD~1 >/dev/null || fail "--fast needs git and a commit to compare with"
    build build
    run_fast
elif [ -n "$long" ]; then
    [ ${#suites[@]} -eq 0 ] || fail "--long runs its own suite: leave '${suites[1]}' out"
    build build
    build build-fuzz
    run_long
    run_fuzzers
elif [ ${#suites[@]} -gt 0 ]; then
    build build
    run build 1 "${suites[@]}"
else
    for directory in build build-asan build-tsan build-fuzz; do
        build "$directory"
    done
    run build 1
    run build-asan 4 --suite unit --suite sim --suite blackbox-sanitized
    mapfile -t only < <(meson introspect build-tsan --tests | python3 tests/threaded.py)
    run build-tsan 4 --suite unit --suite blackbox-sanitized
    only=()
    jobs=$cores run build-fuzz 2 --suite fuzz
fi
exec python3 tests/tally.py tests/allowed-skips "${logs[@]}"

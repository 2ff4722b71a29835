#!/usr/bin/env bash
# Installs what the tests need, builds, runs everything.
#
#   ./test.sh                  all of it
#   ./test.sh unit blackbox    these suites only, in build/ (also: sim, sort, tree, powercut)
#   ./test.sh --fast           before a commit: linters, and unit tests of the folders that changed
#   ./test.sh --long           what is too long for every day: about two hours; each test says its minutes
#   ./test.sh --sanitized      every black-box test that is fit for it, under both sanitizers: about an hour
#
#   build/         gcc, release               every suite, but for the black-box tests of the next line
#   build-asan/    gcc, address + undefined   unit, sim, and the black-box tests fit for it
#   build-tsan/    gcc, thread                unit (programs with threads), and some of these black-box tests
#   build-fuzz/    clang, fuzzers             fuzz, for some seconds each
#
# Of the last three only what these tests need is built.
#
# --fast says which tests it chooses in tests/fast.py.
#
# A black-box test that failed for time alone runs twice more, alone (tests/tally.py says which).
#
# --long runs the suite `long` (tests/long/meson.build) in build/, as many tests at once as there are
# processors, the longest first, then each fuzzer for a minute in build-fuzz/ (FUZZ_SECONDS says how long).
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

only=() # names of the tests to build and run; empty: all
# build DIRECTORY [suites...]: what the tests of these suites need (of `only`, if there are any), or all.
build() {
    local directory=$1 targets=()
    shift
    say "building $directory/"
    configure "$directory"
    if [ $# -gt 0 ]; then
        ninja -C "$directory" --quiet build.ninja || fail "meson could not configure $directory/"
        mapfile -t targets < <(printf '%s\n' "${only[@]}" | python3 tests/needed.py "$directory" "$@")
        [ ${#targets[@]} -gt 0 ] || fail "no test of $* is known in $directory/"
    fi
    ninja -C "$directory" --quiet "${targets[@]}" || fail "$directory/ does not build"
}

# The tests that the thread sanitizer can say something about become `only`.
only_threaded() {
    mapfile -t only < <(meson introspect build --tests | python3 tests/threaded.py)
}

# run DIRECTORY MULTIPLIER meson-arguments...: results go to DIRECTORY/meson-logs, and are counted
# at the end; what fails here does not keep the rest from running.
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

# One test of the suite `long`, with what it takes said before it begins.
long_test() {
    echo "== $1: about $2 min"
    meson test -C build --no-rebuild --print-errorlogs --suite long --logbase "$1" "$1" </dev/null || true
}

run_long() {
    local plan name
    plan=$(meson introspect build --tests | python3 tests/long/plan.py) || fail "no plan of long tests"
    rm -f build/meson-logs/long*.json
    export -f long_test
    xargs -L 1 -P "$cores" bash -c 'long_test "$@"' long_test <<<"$plan"
    while read -r name _; do
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
alone= # the option that chooses what is run
for suite in "$@"; do
    case $suite in
    --long | --sanitized | --fast) alone=$suite ;;
    -*) fail "there is no option $suite; give names of suites, or nothing" ;;
    *) suites+=(--suite "$suite") ;;
    esac
done

# shellcheck disable=SC2086  # the lists are words
require_packages $build_packages $test_packages
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0 UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS="halt_on_error=0:exitcode=66:suppressions=$PWD/tests/tsan.suppressions"

if [ -n "$alone" ]; then
    [ $# -eq 1 ] || fail "$alone chooses by itself: give it alone"
fi
case $alone in
--fast)
    git rev-parse -q --verify HEAD~1 >/dev/null || fail "--fast needs git and a commit to compare with"
    build build
    run_fast
    ;;
--long)
    build build
    run_long
    build build-fuzz fuzz
    run_fuzzers
    ;;
--sanitized)
    for directory in build-asan build-tsan; do
        build "$directory" blackbox-sanitized
        run "$directory" 4 --suite blackbox-sanitized
    done
    ;;
*)
    build build
    if [ ${#suites[@]} -gt 0 ]; then
        run build 1 "${suites[@]}"
    else
        run build 1 --no-suite blackbox-address
        build build-asan unit sim blackbox-address
        run build-asan 4 --suite unit --suite sim --suite blackbox-address
        only_threaded
        build build-tsan unit blackbox-thread
        run build-tsan 4 --suite unit --suite blackbox-thread
        only=()
        build build-fuzz fuzz
        jobs=$cores run build-fuzz 2 --suite fuzz
    fi
    ;;
esac
exec python3 tests/tally.py tests/allowed-skips "${logs[@]}"

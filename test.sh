#!/usr/bin/env bash
# Installs what the tests need, builds, runs everything.
#
#   ./test.sh                  all of it
#   ./test.sh unit blackbox    these suites only, in build/ (also: sim, fuzz, sort, memory)
#
#   build/         gcc, release               every suite
#   build-asan/    gcc, address + undefined   unit, sim, and the black-box tests fit for it
#   build-tsan/    gcc, thread                unit, and the same black-box tests
#   build-fuzz/    clang, fuzzers             fuzz, for some seconds each
#
# Ends with the line "N passed, N failed, N skipped", and with 0 where nothing failed and nothing was
# skipped without a reason in tests/allowed-skips.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"
. deploy/local/packages.sh

jobs=$(nproc)

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
# at the end; what fails here does not keep the rest from running.
run() {
    local directory=$1 multiplier=$2
    shift 2
    say "testing $directory/"
    rm -f "$directory"/meson-logs/testlog*.json
    meson test -C "$directory" --no-rebuild --print-errorlogs --timeout-multiplier "$multiplier" \
        --num-processes "$jobs" "$@" || true
    logs+=("$directory/meson-logs/testlog.json")
}

suites=()
logs=()
for suite in "$@"; do
    case $suite in
    -*) fail "there is no option $suite; give names of suites, or nothing" ;;
    *) suites+=(--suite "$suite") ;;
    esac
done

# shellcheck disable=SC2086  # the lists are words
require_packages $build_packages $test_packages
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0 UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS="halt_on_error=0:exitcode=66:suppressions=$PWD/tests/tsan.suppressions"

if [ ${#suites[@]} -gt 0 ]; then
    build build
    run build 1 "${suites[@]}"
else
    for directory in build build-asan build-tsan build-fuzz; do
        build "$directory"
    done
    run build 1
    run build-asan 4 --suite unit --suite sim --suite blackbox-sanitized
    run build-tsan 4 --suite unit --suite blackbox-sanitized
    run build-fuzz 2 --suite fuzz
fi
exec python3 tests/tally.py tests/allowed-skips "${logs[@]}"

#!/usr/bin/env bash
# From a fresh clone on Debian 12 to a running cluster with a sorted dataset.
#
#   ./quickstart.sh [--size 4M]    install what is missing, build, start, store, sort, verify
#   ./quickstart.sh stop           end the cluster; its data stays for the next time
#   ./quickstart.sh stop --purge   end it and remove its data
#
# Everything it makes is in build/ and in .dfc-cluster/ (or $DFC_CLUSTER_DIR). It builds nothing if
# $DFC_BUILD names a build directory.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"
. deploy/local/packages.sh

given_dir=${DFC_CLUSTER_DIR:-}
export DFC_CLUSTER_DIR=${DFC_CLUSTER_DIR:-$PWD/.dfc-cluster}
given_build=${DFC_BUILD:-}
export DFC_BUILD=${DFC_BUILD:-$PWD/build}
size=4M

usage() {
    sed -n '4,9s/^# \{0,3\}//p' "$0"
    exit "$1"
}

stop_cluster() {
    [ -f "$DFC_CLUSTER_DIR/cluster.json" ] || fail "there is no cluster in $DFC_CLUSTER_DIR"
    deploy/local/cluster down "$@"
    case "$*" in
    *--purge*)
        rm -rf "$DFC_CLUSTER_DIR/sample" "$DFC_CLUSTER_DIR/sorted" "$DFC_CLUSTER_DIR/sort.json"
        rmdir "$DFC_CLUSTER_DIR" 2>/dev/null || true
        say "the cluster has ended, its data is removed"
        ;;
    *) say "the cluster has ended; its data stays in $DFC_CLUSTER_DIR (./quickstart.sh stop --purge removes it)" ;;
    esac
    exit 0
}

while [ $# -gt 0 ]; do
    case $1 in
    stop)
        shift
        [ $# -eq 0 ] || [ "$*" = --purge ] || {
            echo "quickstart.sh: 'stop' takes --purge alone, not '$*'" >&2
            usage 2 >&2
        }
        stop_cluster "$@"
        ;;
    --size)
        [ $# -ge 2 ] || usage 2 >&2
        size=$2
        shift 2
        ;;
    --size=*)
        size=${1#--size=}
        shift
        ;;
    -h | --help) usage 0 ;;
    *)
        echo "quickstart.sh: what is '$1'?" >&2
        usage 2 >&2
        ;;
    esac
done

if [ -z "$given_build" ]; then
    # shellcheck disable=SC2086  # the list is words
    require_packages $build_packages
    say "building; the first time takes some minutes"
    configure_build build
    ninja -C build --quiet || fail "the build failed"
fi

say "making a sample dataset of $size in $DFC_CLUSTER_DIR/sample"
sample=$DFC_CLUSTER_DIR/sample/$size
deploy/local/sample-dataset "$sample" --size "$size"

say "starting 1 proxy and 3 targets with 2 mountpaths each"
environment=$(deploy/local/cluster up --proxies 1 --targets 3 --mountpaths 2 --s3)
while read -r variable; do
    export "${variable?}"
done <<<"$environment"
dfcctl=$DFC_BUILD/dfcctl

fresh_bucket() {
    if $dfcctl bucket props "$1" >/dev/null 2>&1; then
        $dfcctl bucket rm "$1" --yes >/dev/null
    fi
    $dfcctl bucket create "$1" >/dev/null
}

say "storing it in the bucket 'quickstart'"
fresh_bucket quickstart
$dfcctl put "$sample" quickstart

say "sorting it into the bucket 'quickstart-sorted': by name, in shards of 1/5 of the size of the old ones"
fresh_bucket quickstart-sorted
first=$(stat -c %s "$sample/shard-00000.tar")
cat >"$DFC_CLUSTER_DIR/sort.json" <<JSON
{
  "description": "quickstart",
  "input_bck": {"name": "quickstart"}, "output_bck": {"name": "quickstart-sorted"},
  "input_format": {"prefix": "shard-"},
  "output_format": "sorted-%05d.tar", "output_shard_size": $((first / 5)),
  "algorithm": {"kind": "alphanumeric"}
}
JSON
$dfcctl sort start "$DFC_CLUSTER_DIR/sort.json" --wait

say "fetching the result, and verifying it against a plain sort in Python"
rm -rf "$DFC_CLUSTER_DIR/sorted"
$dfcctl get -r quickstart-sorted "$DFC_CLUSTER_DIR/sorted"
python3 tests/reference/sortref.py --verify "$DFC_CLUSTER_DIR/sort.json" "$sample" "$DFC_CLUSTER_DIR/sorted" ||
    fail "the result is not what it must be"

say "the cluster is running:"
deploy/local/cluster status
cat <<END

Try next:

   export DFC_ENDPOINT=$DFC_ENDPOINT
   export DFC_CLUSTER_KEY_FILE=$(printf %q "$DFC_CLUSTER_KEY_FILE")
   build/dfcctl ls quickstart-sorted
   curl -sL $DFC_ENDPOINT/v1/objects/quickstart-sorted/sorted-00000.tar | tar tv | head
${DFC_S3_ENDPOINT:+   aws --no-sign-request --endpoint-url $DFC_S3_ENDPOINT s3api get-object \\
       --bucket quickstart-sorted --key sorted-00000.tar first.tar
}   build/dfcctl sort start --input-bucket quickstart --prefix shard- --output-bucket quickstart-sorted \\
       --output-format shuffled-%05d.tar --shard-size 1MiB --algorithm shuffle --seed 42 --wait

${given_dir:+DFC_CLUSTER_DIR=$given_dir }./quickstart.sh stop ends it.
END

# Debian packages, for quickstart.sh and test.sh (sourced).
# shellcheck shell=bash disable=SC2034

build_packages="gcc libc6-dev pkgconf meson ninja-build python3 ca-certificates
    libmicrohttpd-dev libcurl4-openssl-dev libjansson-dev libuv1-dev liburing-dev liblmdb-dev
    libxxhash-dev libssl-dev libisal-dev libyaml-dev zlib1g-dev libzstd-dev liblz4-dev
    liblzma-dev libbz2-dev libarchive-dev libexpat1-dev libpcre2-dev libfuse3-dev fuse3
    libsqlite3-dev libhiredis-dev libpq-dev nbdkit nbdkit-plugin-dev"
# Those of the suite `unit` alone; what else it can use, it can do without.
unit_packages="libcmocka-dev libarchive-tools cpio zip xz-utils bzip2 zstd lz4
    xorriso genisoimage p7zip-full libcdio-utils python3-pycdlib capnproto libnbd-bin"
test_packages="$unit_packages
    clang-14 clang-format-14 clang-tidy-14 libclang-rt-14-dev shellcheck flake8 pylint gcovr ccache valgrind
    e2fsprogs xfsprogs btrfs-progs iptables iproute2 etcd-server ceph-mon ceph-osd radosgw docker.io docker-compose debootstrap
    awscli rclone s3cmd s3fs python3-boto3
    qemu-utils redis-server postgresql stress-ng fio dbench libpython3.11-testsuite libopenmpi-dev openmpi-bin libhdf5-openmpi-dev hdf5-tools
    zsh fish groff-base dpkg-dev debhelper dh-python pybuild-plugin-pyproject python3-all python3-hatchling
    qemu-system-x86 busybox-static chromium chromium-driver python3-selenium fonts-dejavu-core
    curl git rsync prometheus python3-requests python3-urllib3 python3-venv python3-yaml python3-xxhash python3-fsspec mypy"

say() {
    printf '== %s\n' "$*"
}

fail() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

package_installed() {
    [ "$(dpkg-query -W -f='${Status}' "$1" 2>/dev/null)" = "install ok installed" ]
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    else
        sudo "$@"
    fi
}

# Installs those of the packages that are missing; needs root for nothing else.
require_packages() {
    command -v dpkg-query >/dev/null 2>&1 ||
        fail "this is not Debian (there is no dpkg); install the like of: $*"
    local missing=() package
    for package in "$@"; do
        package_installed "$package" || missing+=("$package")
    done
    [ ${#missing[@]} -eq 0 ] && return
    say "installing Debian packages: ${missing[*]}"
    if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null 2>&1; then
        fail "that needs root, and there is no sudo. As root, run:
    apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
    fi
    as_root apt-get update -qq || fail "apt-get update failed"
    as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends -o Dpkg::Use-Pty=0 "${missing[@]}" >/dev/null ||
        fail "apt-get could not install: ${missing[*]}"
}

# Makes (or keeps) a meson directory with these options; a configuration that broke off is redone.
configure_build() {
    local directory=$1
    shift
    if [ -f "$directory/build.ninja" ] && [ -f "$directory/meson-private/coredata.dat" ]; then
        [ $# -eq 0 ] || meson configure "$directory" "$@" >/dev/null
        return
    fi
    rm -rf "$directory"
    meson setup "$directory" "$@" >/dev/null || {
        tail -n 30 "$directory/meson-logs/meson-log.txt" 2>/dev/null
        fail "meson could not configure $directory"
    }
}

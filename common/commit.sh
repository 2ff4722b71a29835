#!/bin/sh
# commit.sh ROOT [COMMIT]: "COMMIT DATE", for `--version` and metrics.  DATE is the day of the build in
# UTC, or that of SOURCE_DATE_EPOCH.  COMMIT (-Dcommit=) wins; then git, where ROOT is a checkout
# (with "+changes" behind it where files differ); then what `git archive` has written into
# commit.txt.  A commit that is not known is "-", for meson takes blanks at the ends away.
set -eu
root=$1
commit=${2:-}
# No lock of the index is taken: a commit beside a build must not fail.
export GIT_OPTIONAL_LOCKS=0
top=$(git -C "$root" rev-parse --show-cdup 2>/dev/null || echo none)
if [ -z "$commit" ] && [ -z "$top" ]; then
    commit=$(git -C "$root" describe --always --abbrev=12 --exclude='*' --dirty=+changes)
elif [ -z "$commit" ]; then
    archived=$(cat "$root/common/commit.txt")
    case $archived in
    *Format*) ;;
    *) commit=$(printf '%.12s' "$archived") ;;
    esac
fi
printf '%s %s' "${commit:--}" "$(date -u -d "@${SOURCE_DATE_EPOCH:-$(date +%s)}" +%Y-%m-%d)"

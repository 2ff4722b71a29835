#!/bin/sh
# commit.sh ROOT [COMMIT]: the commit that is being built, for `--version` and metrics; nothing where
# nobody knows it.  COMMIT (-Dcommit=) wins; then git, where ROOT is a checkout (with "+changes" behind it
# where files differ); then what `git archive` has written into commit.txt.
set -eu
root=$1
given=${2:-}
if [ -n "$given" ]; then
    printf '%s' "$given"
    exit
fi
# No lock of the index is taken: a commit beside a build must not fail.
export GIT_OPTIONAL_LOCKS=0
top=$(git -C "$root" rev-parse --show-cdup 2>/dev/null || echo none)
if [ -z "$top" ]; then
    git -C "$root" describe --always --abbrev=12 --exclude='*' --dirty=+changes | tr -d '\n'
    exit
fi
archived=$(cat "$root/common/commit.txt")
case $archived in
*Format*) ;;
*) printf '%.12s' "$archived" ;;
esac

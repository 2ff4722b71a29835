/* What dfc-mount does.  Each function returns an exit code of dfcctl (docs/reference/dfcctl.md),
 * and says on standard error why the code is not 0. */
#pragma once

#include <stdbool.h>

struct options;

/* Returns when the root answers; a process that holds nothing of the caller serves it. */
int program_mount(const struct options *o);
/* Makes a volume: its metadata, and its bucket. */
int program_format(const struct options *o);
/* Returns when that process has ended. */
int program_umount(const struct options *o);
/* Trees of a mounted volume are removed. */
int program_rmr(const struct options *o);
/* A copy of a file or a tree that shares the bytes. */
int program_clone(const struct options *o);
/* What is mounted becomes writable, or read-only. */
int program_remount(const char *directory, bool read_only);
/* What was removed is shown, or comes back. */
int program_trash(const struct options *o);
/* What may be changed of a volume. */
int program_config(const struct options *o);
/* Limits of directories of a volume. */
int program_quota(const struct options *o);
/* Prints what the mount says of a path. */
int program_info(const struct options *o);

/* What is below the paths comes into the disk cache of its mount. */
int program_warmup(const struct options *o);
/* What no file of a volume names any more: shown, or deleted. */
int program_gc(const struct options *o);
/* Whether a volume's metadata and objects agree. */
int program_fsck(const struct options *o);
/* The metadata of a volume as a file, and back. */
int program_dump(const struct options *o);
int program_load(const struct options *o);
/* The members of a cache group are shown, or one of them drains. */
int program_cache(const struct options *o);
int program_stats(const struct options *o); /* the mount's metrics on standard output */

/* "dfc-mount: fmt" on standard error; returns the code. */
int program_fail(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

enum program_exit {
    PROGRAM_OK = 0,
    PROGRAM_FAILED = 1,
    PROGRAM_USAGE = 2,
    PROGRAM_NOT_FOUND = 3,
    PROGRAM_UNREACHABLE = 5,
    PROGRAM_PARTLY = 6,
    PROGRAM_DENIED = 7,
};

/* What dfc-mount does.  Each function returns an exit code of dfcctl (docs/reference/dfcctl.md),
 * and says on standard error why the code is not 0. */
#pragma once

struct options;

/* Returns when the root answers; a process that holds nothing of the caller serves it. */
int program_mount(const struct options *o);
/* Returns when that process has ended. */
int program_umount(const struct options *o);

/* "dfc-mount: fmt" on standard error; returns the code. */
int program_fail(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

enum program_exit {
    PROGRAM_OK = 0,
    PROGRAM_FAILED = 1,
    PROGRAM_USAGE = 2,
    PROGRAM_NOT_FOUND = 3,
    PROGRAM_UNREACHABLE = 5,
    PROGRAM_DENIED = 7,
};

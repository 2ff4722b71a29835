/* What a close(2) of a file that is written means.
 *
 * The kernel tells each close of each descriptor (FLUSH), also those that processes share and those
 * of a process that ends.  The file is stored by the close after which neither the process that
 * opened it nor the one that closes has another descriptor of it.  It is dropped if the process
 * that opened it is killed.  What no close has stored is stored when the last descriptor is gone.
 *
 * The facts are in /proc.  A process that cannot be looked at has no other descriptor, and was not
 * killed. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum closing { CLOSING_NOT_YET, CLOSING_STORE, CLOSING_DROP };

struct closing_file {
    int64_t opener; /* closing_process() of the open */
    uint64_t inode;
    uint64_t device; /* of the file system: closing_device() */
};

/* thread: that closes. */
enum closing closing_of(const struct closing_file *file, pid_t thread);
/* The device of what is mounted at the path, or of the file; 0: it is not known.  The file system
 * is not asked, so that it may ask for itself. */
uint64_t closing_device(const char *path);
/* The process of a thread; the thread itself if /proc does not tell. */
int64_t closing_process(pid_t thread);

/* ---- pure ---- */

/* "Tgid:" of /proc/PID/status; 0: it does not say. */
int64_t closing_parse_process(const char *status);
/* Has a signal ended the process, by /proc/PID/stat? */
bool closing_parse_killed(const char *stat);
/* Is this descriptor, by /proc/PID/fdinfo/N, one of the inode, and may it write? */
bool closing_parse_writes(const char *fdinfo, uint64_t inode);

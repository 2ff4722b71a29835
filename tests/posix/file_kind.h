/* A file by several ways: the calls of POSIX, of libplfs-dfc, of libdfcplog.  Programs that judge
 * or measure files (fsx.c, ../bench/plog_load.c) are written once for all of them.
 *
 *     const struct file_kind *kind = file_kind_of("posix");
 *     kind->open(path, O_RDWR | O_CREAT, &file)
 *
 * A path is what the kind takes: of "posix" a path, of "plfs" dfc://BUCKET/NAME, of "plog"
 * BUCKET/NAME.  The cluster is that of the environment (DFC_ENDPOINT).
 *
 * Calls return 0, or -1 with a sentence in file_error().  Sizes and offsets are bytes.  A file
 * belongs to one thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct file {
    int fd;       /* of "posix" */
    void *handle; /* of the other kinds */
    char *path;
};

struct file_kind {
    const char *name;
    /* Every handle of the process sees at once what another one has done.  Else it does after both
     * have synced. */
    bool is_shared;
    int (*open)(const char *path, int flags, struct file *f); /* flags: of open(2); mode 0644 */
    int (*write)(struct file *f, const void *data, size_t size, uint64_t offset); /* all of it */
    /* *got < size: the end of the file */
    int (*read)(struct file *f, void *to, size_t size, uint64_t offset, size_t *got);
    int (*truncate)(struct file *f, uint64_t length);
    int (*size)(struct file *f, uint64_t *bytes);
    int (*sync)(struct file *f);
    int (*close)(struct file *f);
    /* Of a path. */
    int (*stat)(const char *path, uint64_t *bytes);
    int (*cut)(const char *path, uint64_t length);
    int (*rename)(const char *path, const char *new_path);
    int (*remove)(const char *path);
    int (*merge)(const char *path); /* of a file that is closed: its index; NULL: it has none */
};

extern const struct file_kind file_posix, file_plfs, file_plog;

const struct file_kind *file_kind_of(const char *name); /* NULL: there is none of this name */

/* The sentence of the last call that failed. */
const char *file_error(void);
/* Keeps "WHAT 'PATH': WHY" for file_error(); returns -1. */
int file_fail(const char *what, const char *path, const char *why);

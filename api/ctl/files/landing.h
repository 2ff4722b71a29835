/* A file that appears whole or not at all: written beside its place under a temporary name, and
 * renamed in the end.
 *
 * Below a root directory no component of the path may be a symbolic link, so that nothing is
 * written outside of it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

struct landing {
    int fd;        /* to write to */
    int directory; /* of the file; -1 where it is written in place (a device, a pipe) */
    char *leaf;
    char *temporary;
    int64_t modified_ms; /* the file's time, unless 0 */
    bool keep;           /* the temporary stays where it is not committed (part.h) */
};

#define LANDING_INIT ((struct landing){.fd = -1, .directory = -1})

/* key: checked by name_check_local(); missing directories are made. */
int landing_open_below(struct landing *l, int root, const char *key, struct error *err);
/* Any path: links are followed, and what exists and is no file is written to directly. */
int landing_open_path(struct landing *l, const char *path, struct error *err);
/* A directory, or a symbolic link, that may be there already; a link gets this target. */
int landing_directory_below(int root, const char *key, struct error *err);
int landing_link_below(int root, const char *key, const char *target, struct error *err);
int landing_remove_below(int root, const char *key, struct error *err); /* one file */
/* Removes a directory below the root, and those above it, as far as they are empty.  No file may
 * be about to land in them. */
void landing_prune_below(int root, const char *directory);
int landing_commit(struct landing *l, struct error *err);
void landing_done(struct landing *l); /* removes what was not committed */
/* The whole of it: a file with this text, durable, that its owner alone may read and write.  What
 * exists and is no file is written to as it is. */
int landing_write_private(const char *path, const char *text, struct error *err);

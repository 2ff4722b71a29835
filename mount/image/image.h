/* A mounted dataset image: what each call of a file system does, without FUSE.
 *
 * A node's number is the place of its directory record in the image (the root has 1).  So a process
 * that takes over after a crash knows all nodes, and nothing is counted or forgotten.  An image
 * never changes: attributes and names, also those that are missing, may be kept for ever.
 *
 *     metadata  → a buffer of its own  ─┐
 *     contents  → the data buffer      ─┴→ disk cache, group → the store, by entity tag
 *
 * Disk cache and group may be absent.
 *
 * Functions return 0 or -errno.  EIO: the image is damaged, or an object is not what it was when
 * the image was burned; the log says which.  Any thread may call. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "api/dfc.h"
#include "mount/group/reader.h"
#include "vdisc/iso_read.h"

#define IMAGE_ROOT 1

struct image_options {
    const char *bucket, *key; /* of the table */
    uint64_t buffer_bytes;
    uint64_t readahead_bytes;
    unsigned fetchers;
    const char *cache_directories; /* "DIR:DIR…"; NULL: no disk cache */
    uint64_t cache_bytes, cache_free_percent, cache_idle_ms;
    struct group_reader_options group; /* its group, NULL: none; key file and times: they stay */
    pid_t supervisor;                  /* the parent */
};

struct image;

/* The client is borrowed. */
int image_open(const struct image_options *options, struct dfc_client *client, struct image **image,
               struct dfc_error *err);
void image_close(struct image *im); /* no call may be running; NULL is fine */

/* ENOENT. */
int image_lookup(struct image *im, uint64_t parent, const char *name, uint64_t *node,
                 struct stat *st);
int image_getattr(struct image *im, uint64_t node, struct stat *st);
int image_readlink(struct image *im, uint64_t node, char **target); /* malloc'ed; EINVAL */
void image_statfs(const struct image *im, struct statvfs *out);

/* "user.dfc.object" of a file, "user.dfc.pid", ".supervisor" and ".stats" of the root; malloc'ed.
 * ENODATA: no such. */
int image_getxattr(struct image *im, uint64_t node, const char *name, char **value);
int image_listxattr(struct image *im, uint64_t node, char **names, size_t *size);

struct image_entry {
    const char *name;
    uint64_t node, next; /* next: where to go on behind it */
    struct stat st;
};
/* Calls fill for each entry from `offset` on (0, or a `next`), until it says that there is no more
 * room (false): the entry comes again. */
int image_readdir(struct image *im, uint64_t node, uint64_t offset,
                  bool (*fill)(void *context, const struct image_entry *e), void *context);

struct image_read {
    uint64_t offset;
    size_t size;
    bool (*interrupted)(void *context);
    void *context;
};
/* Bytes, fewer at the end of the file. */
ssize_t image_read(struct image *im, uint64_t node, const struct image_read *r, void *to);

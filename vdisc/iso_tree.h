/* The tree of an image: entries in any order become checked, ordered nodes.
 *
 * A node is known by its number.  Number 0 is the root.  Numbers ascend by depth, below that by
 * parent, below that by the bytes of the name, so that the entries of a directory are neighbours:
 * first … first + count - 1.  The same entries give the same numbers, whatever their order was. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cleanup.h"
#include "common/error.h"
#include "vdisc/iso.h"
#include "vdisc/iso_path.h"

#define ISO_NO_TIME INT64_MIN
#define ISO_NO_MODE UINT32_MAX

/* An entry as it is given. */
struct iso_entry {
    const char *path; /* "/a/b": leading, double and trailing slashes and "." parts are dropped */
    enum iso_kind kind;
    uint64_t size;      /* of a file, bytes */
    uint32_t content;   /* of a file: files with one number share their blocks */
    const char *target; /* of a link */
    int64_t mtime_s;    /* Unix time, or ISO_NO_TIME */
    uint32_t mode;      /* permissions, or ISO_NO_MODE: 0444, 0555 of a directory */
    uint32_t uid, gid;
    uint64_t line; /* of a list, for messages; 0: of none */
};

struct iso_tree_options {
    enum iso_names names;
    int64_t date_s;       /* of entries without a time; ISO_NO_TIME: the newest time of all, or 0 */
    uint64_t entries_max; /* 0: 50 million */
};

struct iso_node {
    const char *name; /* NUL-terminated; "" of the root */
    const char *target;
    uint64_t size;
    int64_t mtime_s;
    uint32_t parent; /* the root is its own */
    uint32_t first, count;
    uint32_t directories; /* among its entries */
    uint32_t content;
    uint32_t mode, uid, gid; /* permissions alone */
    enum iso_kind kind;
};

struct iso_tree {
    struct iso_node *nodes;
    uint32_t count;
    uint32_t *files; /* the numbers of all files, in path order */
    uint32_t file_count;
    int64_t date_s; /* of the image */
    struct arena *texts;
};

/* E_IMAGE_NAME, E_INVALID (a time), E_IMAGE_TOO_LARGE; the message has the path.  Nothing of the
 * entries is used afterwards. */
int iso_tree_new(const struct iso_entry *entries, size_t count,
                 const struct iso_tree_options *options, struct iso_tree **tree, struct error *err);
void iso_tree_free(struct iso_tree *t);
DEFINE_CLEANUP(struct iso_tree, iso_tree_free);

/* "/a/b" of a node, malloc'ed. */
char *iso_tree_path(const struct iso_tree *t, uint32_t node);

/* <mountpath>/.dfc/format.json: whose mountpath this is, and what it knows of the others.
 *
 *   {"format": 2, "cluster": "c-…", "target": "t1", "mountpath": "mp-…", "path": "/d1",
 *    "generation": 7, "set": [{"id": "mp-…", "path": "/d1", "weight": 1024}, …], "settled": true,
 *    "anywhere": false, "earlier": [], "detached": []}
 *
 * `cluster` is "" until the target has joined one.  All from "generation" on is the roster
 * (roster.h): with it a disk that is not there is missed and not taken for empty.  Format 1, which
 * is read, too, has a set without weights and states, and no generation (0).
 *
 * Pure: documents in, documents and verdicts out. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/cleanup.h"
#include "common/error.h"
#include "target/format/roster.h"

enum { FORMAT_VERSION = 2 };

struct format {
    char *cluster;
    char *target;
    char *mountpath;
    char *path;
    struct roster *roster;
};

struct format *format_new(const char *target, const char *mountpath, const char *path);
void format_free(struct format *f);
DEFINE_CLEANUP(struct format, format_free);
json_t *format_to_json(const struct format *f);
int format_from_json(json_t *doc, struct format **out, struct error *err);

/* E_MOUNTPATH where a mountpath found at `path` is not one of `target`, or was made elsewhere. */
int format_check(const struct format *f, const char *target, const char *path, bool moved_ok,
                 struct error *err);
/* `n` mountpaths, opened together, must be of one cluster or none yet (*cluster is set to it, or
 * to "") and have no id twice. */
int format_check_together(const struct format *const *all, size_t n, const char **cluster,
                          struct error *err);
/* The roster that counts, of those that these remember: a new one.  Those of format 1, which have
 * no generation, are put together. */
struct roster *format_newest_roster(const struct format *const *all, size_t n);
void format_set_cluster(struct format *f, const char *cluster);
void format_set_roster(struct format *f, const struct roster *r);

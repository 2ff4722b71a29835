/* <mountpath>/.dfc/format.json: whose mountpath this is.
 *
 *   {"format": 1, "cluster": "c-…", "target": "t1", "mountpath": "mp-…", "path": "/d1",
 *    "set": [{"id": "mp-…", "path": "/d1"}, …], "settled": true}
 *
 * `cluster` is "" until the target has joined one.  `set` is every mountpath that the target had
 * when it last started, so that a disk that is not there is missed and not taken for empty.  The
 * set is settled when every object lies where HRW over the set looks for it; after a mountpath was
 * added it is not, and lookups ask all of them.
 *
 * Pure: documents in, documents and verdicts out. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/cleanup.h"
#include "common/error.h"

enum { FORMAT_VERSION = 1 };

struct format_member {
    char *id;
    char *path;
};

struct format {
    char *cluster;
    char *target;
    char *mountpath;
    char *path;
    size_t set_count;
    struct format_member *set;
    bool settled;
};

struct format *format_new(const char *target, const char *mountpath, const char *path);
void format_free(struct format *f);
DEFINE_CLEANUP(struct format, format_free);
json_t *format_to_json(const struct format *f);
int format_from_json(json_t *doc, struct format **out, struct error *err);

/* E_MOUNTPATH where a mountpath found at `path` is not one of `target`, or was made elsewhere. */
int format_check(const struct format *f, const char *target, const char *path, bool moved_ok,
                 struct error *err);
/* What `n` mountpaths, opened together, make: the same cluster or none yet (*cluster is set to
 * it, or to ""), no id twice, and none of those missing that any of them remembers. */
int format_check_together(const struct format *const *all, size_t n, bool lost_ok,
                          const char **cluster, struct error *err);
/* Do objects lie where HRW over these looks for them, given that those with `has_objects` hold
 * some?  A mountpath that was lost moves nothing; one that is new to the others does. */
bool format_settled(const struct format *const *all, const bool *has_objects, size_t n);
/* Every format learns that these are the set. */
void format_set_all(struct format *const *all, size_t n, bool settled);
void format_set_cluster(struct format *f, const char *cluster);

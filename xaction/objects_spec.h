/* What the jobs `delete`, `copy`, `prefetch`, `evict`, `archive`, `unarchive` and
 * `flatten` are asked for, and what the primary adds to it.  Pure.
 *
 *     {"list": ["a", "b"]}  or  {"template": "shard-{0000..0099}.tar"}  or  {"prefix": "raw/"}
 *     copy also: "to": bucket, "prepend": text before the new names
 *     prefetch also: "parallel": objects at once, "rate": bytes a second; both on each target
 *     archive also: "archive": the object that is made, "to": its bucket, "format": its extension,
 *         "strip" and "prepend": what names lose and get at their beginning to become members,
 *         "names": "full", or "base": members have no directories, "order": "name" (of the list or
 *         template, or of the names), or "shuffle" by "seed"; in place of "archive" and "to":
 *         "to": {"bucket", "template": names of shards}, "shard_size": bytes of each
 *     unarchive also: "to": the bucket of the objects, "prepend": text before their names,
 *         "names": "archive": those of archive and member, or "member": that of the member alone
 *     promote names no objects, but: "path", a directory or file of the targets' machines,
 *         "node": on this one alone, "prepend", "overwrite": objects that exist, "move": files are
 *         removed
 *     all: "description", "allow_empty": a prefix, template or list may match nothing
 *     all with a prefix: "internal": names that begin with ".dfc-" are meant, too
 *
 * Exactly one of list, template (common/template.h, with ranges that end) and prefix; a copy and a
 * prefetch without any take the whole bucket, the others do not ("prefix": "" says that it is
 * meant).
 * Names are checked as names of objects.
 *
 * The plan holds the ids of the buckets, which a rename does not change, and the cluster's state
 * (term, version) when the job was made: what was written under a later one came after the job.  So
 * a delete leaves what is put once the request is answered, and a copy within one bucket does not
 * find its own copies. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/error.h"
#include "common/template.h"

enum { OBJECTS_NAMES_MAX = 10000000 }; /* that a template makes */
enum { OBJECTS_PARALLEL_MAX = 256 };

enum objects_which { OBJECTS_LIST, OBJECTS_TEMPLATE, OBJECTS_PREFIX, OBJECTS_NONE };

struct objects_spec {
    enum objects_which which;
    size_t name_count;
    char **names;
    struct name_template *name_template;
    char *prefix;
    char *to;          /* NULL: there is no other bucket … */
    bool makes;        /* … and it writes to the same, or it writes nothing */
    bool bare_members; /* names of members alone become names of objects; or members lack the
                        * directories of their objects */
    char *prepend;     /* "" for none */
    char *archive;     /* of an archive, as what follows: the object's name, … */
    char *format;      /* … its extension, or NULL: as its name says, … */
    char *strip;       /* … and what all names begin with that is left out; "" for none */
    struct name_template *shards; /* in place of the object's name: these are made, … */
    uint64_t shard_size;          /* … each ends once it has so many bytes */
    bool shuffles;
    bool seed_given;
    uint64_t seed;
    char *path; /* of a promotion, as what follows; NULL: it is none */
    char *node; /* NULL: on all targets */
    bool overwrites, moves;
    uint64_t parallel;     /* 0: as the target's parameter says */
    uint64_t rate_bytes_s; /* 0: no limit */
    char *description;
    bool internal;    /* a prefix means internal names, too (common/internal_name.h) */
    bool allow_empty; /* the primary's business: proxy/jobs/objects_view.h */
};

/* kind: one of these.  E_SPEC, E_JSON, E_NAME; the messages name the field. */
int objects_spec_parse(const char *kind, json_t *value, struct objects_spec **out,
                       struct error *err);
/* {"parallel", "rate"}, as prefetch and download take them. */
int objects_parse_speed(json_t *value, uint64_t *parallel, uint64_t *rate_bytes_s,
                        struct error *err);
void objects_spec_free(struct objects_spec *s);
DEFINE_CLEANUP(struct objects_spec, objects_spec_free);
/* The bucket that the job writes to, asked for objects of `bucket`; NULL: it writes nothing. */
const char *objects_spec_to(const struct objects_spec *s, const char *bucket);
/* How the names of what the job writes begin. */
const char *objects_spec_begins(const struct objects_spec *s);
/* The names of a list or template: their number, and the i-th (in `buf` where it has to be made).
 */
uint64_t objects_spec_count(const struct objects_spec *s);
const char *objects_spec_name(const struct objects_spec *s, uint64_t i, struct buf *buf);

/* Of a prefix: are internal names left out?  A copy or prefetch of a whole bucket has them. */
bool objects_spec_skips_internal(const struct objects_spec *s);

struct objects_plan {
    uint64_t input_bucket_id;
    uint64_t output_bucket_id; /* of a copy, else 0 */
    uint64_t term, version;
};

json_t *objects_plan_json(const struct objects_plan *p);
int objects_plan_parse(json_t *doc, struct objects_plan *out, struct error *err);

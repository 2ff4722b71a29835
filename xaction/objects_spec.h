/* What the jobs `delete`, `copy`, `prefetch` and `evict` are asked for, and what the primary adds
 * to it.  Pure.
 *
 *     {"list": ["a", "b"]}  or  {"template": "shard-{0000..0099}.tar"}  or  {"prefix": "raw/"}
 *     copy also: "to": bucket, "prepend": text before the new names
 *     prefetch also: "parallel": objects at once, "rate": bytes a second; both on each target
 *     all: "description", "allow_empty": a prefix, template or list may match nothing
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

enum objects_which { OBJECTS_LIST, OBJECTS_TEMPLATE, OBJECTS_PREFIX };

struct objects_spec {
    enum objects_which which;
    size_t name_count;
    char **names;
    struct name_template *name_template;
    char *prefix;
    char *to;              /* NULL for a delete */
    char *prepend;         /* "" for none */
    uint64_t parallel;     /* 0: as the target's parameter says */
    uint64_t rate_bytes_s; /* 0: no limit */
    char *description;
    bool allow_empty; /* the primary's business: proxy/jobs/objects_view.h */
};

/* kind: one of the four.  E_SPEC, E_JSON, E_NAME; the messages name the field. */
int objects_spec_parse(const char *kind, json_t *value, struct objects_spec **out,
                       struct error *err);
/* {"parallel", "rate"}, as prefetch and download take them. */
int objects_parse_speed(json_t *value, uint64_t *parallel, uint64_t *rate_bytes_s,
                        struct error *err);
void objects_spec_free(struct objects_spec *s);
DEFINE_CLEANUP(struct objects_spec, objects_spec_free);
/* The names of a list or template: their number, and the i-th (in `buf` where it has to be made).
 */
uint64_t objects_spec_count(const struct objects_spec *s);
const char *objects_spec_name(const struct objects_spec *s, uint64_t i, struct buf *buf);

struct objects_plan {
    uint64_t input_bucket_id;
    uint64_t output_bucket_id; /* of a copy, else 0 */
    uint64_t term, version;
};

json_t *objects_plan_json(const struct objects_plan *p);
int objects_plan_parse(json_t *doc, struct objects_plan *out, struct error *err);

/* What the files of the job `burn` share: burn_job.c, burn_rows.c, burn_store.c, burn_image.c. */
#pragma once

#include <stdatomic.h>

#include "target/jobs/job_base.h"
#include "vdisc/older.h"
#include "vdisc/plan.h"
#include "vdisc/reference.h"

struct burn_image;
struct burn_spec;
struct object_put;

struct burn_job {
    struct job_base base;
    struct burn_spec *spec;
    bool resumed;
};

/* While it runs. */
struct burning {
    struct burn_job *job;
    char *from, *to; /* names of the buckets */
    struct plan *plan;
    struct plan_options options;
    struct iso_volume volume;
    struct plan_object *learnt; /* of the plan; their entity tags are ours */
    uint32_t learnt_count;
    const uint32_t *order;                             /* in which objects are asked for */
    struct burn_image *older, *base;                   /* images; NULL: none */
    atomic_uint_fast64_t stored_objects, stored_bytes; /* contents that were not there */
    uint8_t header_sha256[TABLE_ID];
    struct plan_object header;
    char *header_key;
};

/* Where the name is free; ends the put.  E_NOT_MODIFIED: its object has these bytes;
 * E_PRECONDITION: it has others. */
int burn_put(struct burning *b, struct object_put *put, const char *name, struct error *err);

/* --- burn_rows.c ------------------------------------------------------------------------------ */

/* Older image, list or prefix become rows of the plan. */
int burn_take_rows(struct burning *b, struct error *err);
/* May the image refer to it?  A struct burn_list's check(). */
int burn_check_reference(void *ctx, const char *text, const struct reference *to, const char *host,
                         struct error *err);

/* --- burn_image.c ----------------------------------------------------------------------------- */

/* An older image of the bucket `to`, as another burn needs it.  E_IMAGE_DAMAGED, E_IMAGE_STALE,
 * E_IMAGE_TOO_LARGE, E_OBJECT_NOT_FOUND, E_UNSUPPORTED. */
int burn_image_open(struct burning *b, const char *key, struct burn_image **out, struct error *err);
const struct older *burn_image_entries(const struct burn_image *i);
void burn_image_free(struct burn_image *i);
DEFINE_CLEANUP(struct burn_image, burn_image_free);

/* --- burn_store.c ----------------------------------------------------------------------------- */

/* The contents of new files are copied to objects of the image's bucket, each once. */
int burn_store(struct burning *b, struct error *err);

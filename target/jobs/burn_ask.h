/* What the job `burn` asks other nodes, or this one by a call: heads and checksums of objects, as a
 * client gets them, and pages of a bucket's list.
 *
 * Each call waits, and is made again until it can be answered or the job ends; what it waits for is
 * shown.  Any thread. */
#pragma once

#include <jansson.h>

#include "common/checksum.h"
#include "target/jobs/job_base.h"
#include "vdisc/burn_rules.h"

enum { BURN_ETAG_MAX = 320, BURN_TYPE_MAX = 16 };

struct burn_ask {
    const char *bucket, *object;
    const char *digest; /* a type of checksum, which the owner computes; NULL: the head alone */
    const char *etag;   /* that the object must have; NULL: any */
};

struct burn_answer {
    struct burn_found found; /* its texts are these: */
    char etag[BURN_ETAG_MAX];
    char type[BURN_TYPE_MAX], checksum[2 * CHECKSUM_MAX + 1];
};

/* E_OBJECT_NOT_FOUND; E_PRECONDITION: it has another tag; E_ABORTED. */
int burn_ask(struct job_base *j, const struct burn_ask *ask, struct burn_answer *out,
             struct error *err);

/* fn() for each object below the prefix, page by page, as a list of the bucket shows them. */
int burn_ask_list(struct job_base *j, const char *bucket, const char *prefix,
                  int (*fn)(void *ctx, const char *name, const struct burn_found *found,
                            struct error *err),
                  void *ctx, struct error *err);

/* The plog_store (plog/store.h) of a bucket for a job: its calls go to the owners of the objects,
 * as a client's would, and its lists to the primary proxy.
 *
 * Each call waits, and is made again until it can be answered or the job ends; what it waits for is
 * shown.  E_ABORTED where the job ends.  Any thread.
 *
 * What is stored is on the disks before the reply, whatever the bucket's durability: objects that
 * it replaces are deleted after that.  A leader of an earlier build refuses such a PUT.  Another
 * owner of an earlier build does not know OBJECT_STAGE_DURABLE_HEADER, and stores its copy as the
 * bucket's durability says. */
#pragma once

#include <stdatomic.h>

#include "plog/store.h"
#include "target/jobs/job_base.h"

struct plog_calls {
    struct job_base *job; /* of a kind that sends */
    uint64_t bucket_id;
    const char *bucket; /* its name */
    bool untyped_heads; /* heads are stored without their content type (plog/flatten.h) */
    uint64_t index_max; /* bytes of memory of a plog's indexes (plog_footer_memory()) */
    atomic_uint_fast64_t index_bytes; /* promised of it */
};

/* Both structs stay the caller's, and the first lives longer. */
struct plog_store plog_calls_store(struct plog_calls *p);
uint64_t plog_calls_clock(void *ctx); /* milliseconds; also while the machine sleeps */
/* As job_base_again(), and after E_IN_DOUBT: a plog's calls may be repeated. */
bool plog_calls_again(const struct plog_calls *p, int code, const struct error *why,
                      unsigned failures);
int plog_calls_check(void *ctx, struct error *err); /* E_ABORTED where the job ends */

/* One try of a PUT of feed()'s bytes, `size` of them, over the version if_match.
 * object_copy_may_pass(): it may have been done.  E_PRECONDITION, what feed() says. */
int plog_calls_stream(const struct plog_calls *p, const char *name, uint64_t size,
                      const char *if_match, copier_feed_fn *feed, void *ctx, struct error *err);

/* What nobody completes goes.  Every `uploads_sweep` uploads are looked at, and these are removed:
 * those that are too old, those that a lifecycle rule of their bucket aborts (node/expiry.h), those
 * of buckets that were destroyed, replies that were kept long enough, and the rest of begins that
 * were cut. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct target;
struct upload_sweep;

/* Ages of an upload, in milliseconds, and what the parameters say.  Pure. */
struct upload_age {
    bool is_whole;     /* about.json is there */
    bool is_destroyed; /* its bucket was */
    bool is_done;
    bool is_aborted; /* by a lifecycle rule */
    uint64_t since_begun_ms, since_done_ms;
    uint64_t expire_ms, keep_ms;
};

enum { UPLOAD_CUT_MS = 3600000 }; /* a begin that takes longer was cut */

bool upload_is_swept(const struct upload_age *age);

/* Of t->uploads. */
struct upload_sweep *upload_sweep_new(struct target *t);
/* No look begins any more; one that is under way goes on until uploads_free(). */
void upload_sweep_stop(struct upload_sweep *s);
void upload_sweep_free(struct upload_sweep *s); /* after that; NULL is fine */

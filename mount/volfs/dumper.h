/* Dumps of a mounted volume, made by the mount itself, as objects of the volume's bucket:
 *
 *     VOLUME/meta/20261130T235412Z.jsonl.gz       the moment is in UTC, by the engine's clock
 *
 * A thread looks for the newest one.  If that is older than `every`, the mount that gets the lease
 * makes the next one, and deletes the oldest above `keep`.  The dump is written to a file of the
 * machine without a name first, so that the engine's snapshot does not wait for the bucket, and the
 * object appears whole.  What fails is logged, counted (mount_dump_errors_total), and tried again
 * after `retry`; programs do not notice.  The lease ends after half of that, so that another mount
 * may make the dump meanwhile. */
#pragma once

#include "mount/meta/meta.h"
#include "mount/volume/volume.h"

/* The volume's bucket.  0, or a code with its sentence. */
struct dumper_store {
    void *context;
    /* Calls each() for each object whose name begins so. */
    int (*list)(void *context, const char *prefix, void (*each)(void *to, const char *key),
                void *to, struct error *err);
    /* From the beginning of the file; the object appears whole, or not at all. */
    int (*put)(void *context, const char *key, int fd, struct error *err);
    int (*remove)(void *context, const char *key, struct error *err);
};

struct dumper_options {
    uint64_t every_ms; /* not 0 */
    uint64_t keep;     /* not 0 */
    uint64_t tick_ms;  /* between two looks: 0: a tenth of every, from 1 s to 60 s */
    uint64_t retry_ms; /* 0: every, 10 min at most */
};

struct dumper;

/* All is borrowed, except for the options. */
int dumper_start(const struct dumper_options *options, struct volume *volume, struct meta *meta,
                 const struct dumper_store *store, struct dumper **out, struct error *err);
/* Waits for a call of the store that is running; a dump that is being made is given up. */
void dumper_end(struct dumper *d); /* NULL is fine */

/* "VOLUME/meta/", and an object's name; malloc'ed. */
char *dumper_prefix(const char *volume);
char *dumper_key(const char *volume, int64_t unix_s);
/* False: it is no dump of the volume. */
bool dumper_time(const char *volume, const char *key, int64_t *unix_s);

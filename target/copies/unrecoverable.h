/* Objects that are lost: no target has their bytes whole, and none is away that might.
 *
 *   noted      by who finds that out: the comparison of all owners (copies/compare.h), the repair
 *              of slices (slices/repair.h), and where there is one copy the scrub, or a read that
 *              finds the file gone or cut (repair_wanted.h)
 *   forgotten  when it is looked at again, now and then, and has been written, deleted, mended, or
 *              is another target's to tell of
 *
 * By the owner that acts for the name, so that targets' numbers add up.  In memory, as many as
 * UNRECOVERABLE_MOST: a new run finds again at once what lies in quarantine, the rest with the next
 * read, repair or scrub.  What was on a disk that was given up, and nowhere else, nobody can name.
 *
 * Any thread. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cleanup.h"

struct unrecoverable;
struct target;

enum { UNRECOVERABLE_MOST = 1000, UNRECOVERABLE_SHOWN = 20 };

/* Wants a good copy of an object: repair_wanted(). */
typedef void unrecoverable_wanted_fn(struct target *t, uint64_t bucket_id, const char *name);
struct unrecoverable *unrecoverable_new(struct target *t, unrecoverable_wanted_fn *wanted);
void unrecoverable_free(struct unrecoverable *l); /* NULL is fine */

/* `slices`: the tag of its manifest, whose slices are too few; or 0.  Does not wait, and may be
 * under the name's lock; saying it again is fine. */
void unrecoverable_note(struct unrecoverable *l, uint64_t bucket_id, const char *name,
                        uint64_t slices);
/* What was noted so. */
void unrecoverable_forget(struct unrecoverable *l, uint64_t bucket_id, const char *name,
                          uint64_t slices);
/* Are they still?  Waits; to be called often, by one thread (read_repair.h). */
void unrecoverable_look_again(struct unrecoverable *l);

bool unrecoverable_has(struct unrecoverable *l, uint64_t bucket_id, const char *name);
size_t unrecoverable_count(struct unrecoverable *l);
/* Of a bucket; the first UNRECOVERABLE_SHOWN names are appended. */
size_t unrecoverable_of_bucket(struct unrecoverable *l, uint64_t bucket_id, json_t *names);

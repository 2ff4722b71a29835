/* Copies of objects with several copies (copies.h) that are damaged or gone here: good ones are
 * brought from the other owners.
 *
 *   doubted   by whoever has found something wrong: a read that checks (verify_on_read), a read
 *             that finds no file, a scrub, another owner that was sent bytes with another checksum
 *      │
 *      ├─▶ checked: it is well, or none of this target's      forgotten; so it is after a minute in
 *      │                                                      which its disk does not say
 *      ▼
 *   lacking   what is damaged was moved aside (quarantine.h); the owner that acts for the name is
 *      │      told, and brings what the name stands for to all (settle.h), now and every 3 s
 *      ├─▶ it is here                                         mended
 *      └─▶ nobody gives it for a minute                       left to the next scrub or repair
 *
 * The names are in memory, as many as MEND_MOST; who is one too many is found by the next scrub.
 *
 * A thread of its own, which also looks after what is lost (losses.h). */
#pragma once

#include <stdint.h>

#include "common/error.h"

enum { MEND_MOST = 100000 };

struct mender;
struct target;

int mender_new(struct target *t, struct mender **out, struct error *err);
void mender_free(struct mender *m); /* NULL is fine; after copies_stop() */

/* Any thread; does not wait. */
void mender_doubt(struct mender *m, uint64_t bucket_id, const char *name);

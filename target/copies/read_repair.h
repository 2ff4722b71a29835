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
 *      │      told, and brings what the name stands for to all (dirty_worker.h), now and every 3 s
 *      ├─▶ it is here                                         mended
 *      └─▶ nobody gives it for a minute                       left to the next scrub or repair
 *
 * The names are in memory, as many as READ_REPAIR_MOST; who is one too many is found by the next
 * scrub.
 *
 * A thread of its own, which also looks after what is lost (unrecoverable.h). */
#pragma once

#include <stdint.h>

#include "common/error.h"

enum { READ_REPAIR_MOST = 100000 };

struct read_repair;
struct target;

int read_repair_new(struct target *t, struct read_repair **out, struct error *err);
void read_repair_free(struct read_repair *m); /* NULL is fine; after copies_stop() */

/* Any thread; does not wait. */
void read_repair_doubt(struct read_repair *m, uint64_t bucket_id, const char *name);

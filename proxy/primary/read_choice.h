/* Which of those who may answer a read is sent it (cluster/placement/owners.h: owners_readers()).
 *
 * The owner that acts comes first: a data set that is read as a whole is then in the memory of one
 * target for each object, and not of all that have it.  Only where this proxy has sent it notably
 * more reads of late than the least busy of the others does that one get the read: so what many
 * want at once is sent by all who have it.
 *
 *   the acting one, unless   its reads > the least busy one's + `spread` percent + `spread`
 *
 * With 0 all get as many.  Reads are counted by target, of all buckets; half of them are forgotten
 * each second.  Any thread; a count that is lost to another thread at the same moment does no harm.
 * Decides without a clock of its own. */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { READ_CHOICE_SLOTS = 1024 }; /* targets share one by chance, and are then as busy as both */

struct node;

struct read_choice {
    atomic_ullong second; /* to which the counts belong */
    atomic_uint reads[READ_CHOICE_SLOTS];
};

/* readers[0] is the one that acts; counts the read.  count > 0. */
const struct node *read_choice_pick(struct read_choice *c, const struct node *const *readers,
                                    size_t count, uint64_t spread, uint64_t now_ms);

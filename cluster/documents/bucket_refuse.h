/* What a bucket is not there for: each function is 0 where the bucket takes the call. */
#pragma once

#include <stdbool.h>

#include "cluster/documents/bmd.h"
#include "common/error.h"

/* E_UNSUPPORTED where the bucket has a backend: `what` cannot be done with such a bucket; the
 * operator does what `instead` says. */
int bucket_refuse_cold(const struct bucket *b, const char *what, const char *instead,
                       struct error *err);
/* Is what is written to it kept here first, and sent to its backend later? */
bool bucket_is_written_back(const struct bucket *b);
/* Does writing to it make room, as a ring's head does, without which no sample is dropped?  Then
 * half of the reserve is for its objects. */
bool bucket_makes_room(const struct bucket *b);
/* Of what is stored in it.  A ring's head is always synced: an older one would come back with a
 * loss of power, and numbers of generations be given twice.  What the ring says is of its samples.
 */
enum durability bucket_durability(const struct bucket *b);
/* E_IS_RING where the bucket is a ring, whose one object its keeper writes. */
int bucket_refuse_ring(const struct bucket *b, const char *what, struct error *err);
/* E_UNSUPPORTED for what jobs make: of buckets with a backend those take it that are written back.
 * E_IS_RING. */
int bucket_refuse_made(const struct bucket *b, const char *what, struct error *err);
/* E_UNSUPPORTED where a majority of the owners is enough for a write: `what` takes one target's
 * word for what there is. */
int bucket_refuse_majority(const struct bucket *b, const char *what, struct error *err);
/* E_WRITE_ONCE where objects of the bucket stay as they are: `what` would remove or replace one. */
int bucket_refuse_removal(const struct bucket *b, const char *what, struct error *err);
/* E_UNSUPPORTED where the bucket has a backend that is only read from. */
int bucket_refuse_write(const struct bucket *b, const char *what, struct error *err);

/* Which of the buckets' directories of a mountpath are known to be on its disk; any thread may ask
 * and change it.  Some 40 bytes for each bucket. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct bucket_dirs;

struct bucket_dirs *bucket_dirs_new(void);
void bucket_dirs_free(struct bucket_dirs *s);
/* Directory `dir`, below OBJECT_FANS, of the bucket. */
bool bucket_dirs_has(struct bucket_dirs *s, uint64_t bucket_id, unsigned dir);
/* The bucket itself, from the first of its directories that is added until it is removed. */
bool bucket_dirs_has_bucket(struct bucket_dirs *s, uint64_t bucket_id);
/* Adding what is there, and taking away what is not, changes nothing. */
void bucket_dirs_add(struct bucket_dirs *s, uint64_t bucket_id, unsigned dir);
void bucket_dirs_forget(struct bucket_dirs *s, uint64_t bucket_id, unsigned dir);
void bucket_dirs_remove(struct bucket_dirs *s, uint64_t bucket_id);

/* When objects of buckets with a backend were used last: the order in which they go (evict.h).
 *
 * A read leaves a note in memory; last_use_write() takes all notes to the files, as their time of
 * access.  That time is set by us alone and so is there whatever the file system is mounted with. A
 * note that finds its place taken by another object is dropped, and so are those that were not
 * written before a crash: then an object seems a little older than it is.
 *
 * Any thread may call anything. */
#pragma once

#include <stdint.h>

struct last_use;
struct object_store;

struct last_use *last_use_new(struct object_store *store);
void last_use_free(struct last_use *a);
void last_use_note(struct last_use *a, uint64_t bucket_id, const char *name);
void last_use_write(struct last_use *a);

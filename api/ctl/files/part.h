/* What an earlier run has fetched of an object, so that the next run goes on behind it.
 *
 *   .dfc-part-HASH        the bytes that came; HASH is of the file's name, the bucket and the key
 *   .dfc-part-HASH.note   which version they are of: entity tag, size, checksum
 *
 * Both are beside the file that is fetched.  A part without a readable note is not used.
 *
 * The holder of the lock (flock(2)) on the part, and nobody else, writes, renames or removes the
 * part and its note.  A part is locked before it gets its name, until its program ends.  A second
 * program that fetches the same file finds the lock, and fetches without a part. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/ctl/files/landing.h"
#include "api/dfc.h"

#define PART_LEAST_BYTES (1u << 20) /* smaller objects are fetched anew */

struct part {
    const char *bucket, *key; /* the caller's */
    char *name, *note;        /* of the two files */
    int lock;                 /* -1: there is no part */
    char *etag;
    char *checksum_type, *checksum; /* of the whole object */
    uint64_t size;                  /* the same */
};

void part_init(struct part *p, const char *bucket, const char *key, const struct landing *l);
/* The landing goes on in the part of an earlier run.  *have: its bytes.  False: there is none. */
bool part_find(struct part *p, struct landing *l, uint64_t *have);
/* The version is known and no byte is written: the landing is a part from now on, or, where
 * another program has the part or it cannot be made, stays what it is. */
void part_begin(struct part *p, struct landing *l, const struct dfc_object_info *info);
void part_end(struct part *p, struct landing *l);  /* before the commit */
void part_drop(struct part *p, struct landing *l); /* the landing removes its file */
void part_done(struct part *p);

/* What a reader asks of a member, and how both prove the bytes: pure.
 *
 *     GET /v1/piece?bucket=…&object=…&etag=…&checksum=…&size=…&scope=…&offset=…&length=…&how=…
 *     200, ETag: "SUM", the bytes; of a check and a warm-up 204
 *
 * SUM is XXH3-64 of the sums (XXH3-64 each) of the parts of 32 KiB, which begin at multiples of
 * that.  A range lies within one piece. */
#pragma once

#include <stdint.h>

#include "cache/piece.h"
#include "common/error.h"
#include "mount/data/entity.h"

#define GROUP_PIECE_PATH "/v1/piece"
#define GROUP_SUM_CHARS 19 /* with quotes and end */

enum group_how {
    GROUP_FETCH,  /* what the member lacks it fetches and keeps */
    GROUP_CACHED, /* only what it has */
    GROUP_CHECK,  /* whether it has all of the range on its disk: no bytes come */
    GROUP_WARM,   /* the same after it has fetched what it lacks */
};

struct group_request {
    const char *scope;                             /* of names in caches */
    const char *bucket, *object, *etag, *checksum; /* entity_version() */
    uint64_t size;                                 /* of the object */
    uint64_t offset, length;
    enum group_how how;
    const struct entity *entity; /* of a reader: its sums are compared; NULL: none.  Not sent */
};

/* What is asked of whom depends on this name: for readers and members the same. */
struct piece_id group_request_piece(const struct group_request *r);

char *group_request_url(const char *member_url, const struct group_request *r); /* malloc'ed */
/* query(context, name) gives a decoded parameter, or NULL.  Texts stay the query's.  E_INVALID. */
int group_request_parse(const char *(*query)(void *context, const char *name), void *context,
                        struct group_request *out, struct error *err);

/* The entity tag of a reply with these bytes of an object. */
void group_sum(uint64_t offset, const void *data, uint64_t length,
               char out[static GROUP_SUM_CHARS]);

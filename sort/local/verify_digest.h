/* What is compared of members: path, kind, link and contents; neither owners, modes nor times,
 * which not every format can hold.  128 bits of XXH3: against accidents, not against who wants to
 * deceive. */
#pragma once

#include <stdint.h>
#include <xxhash.h>

#include "common/error.h"
#include "sort/shard/untar.h"

/* Of several members: of all in their order, and whatever their order. */
struct digest {
    uint64_t members;
    XXH128_hash_t ordered;
    XXH128_hash_t sum;
};

void digest_add(struct digest *d, const XXH128_hash_t *member);

/* Members out of a tar that comes in pieces. */
struct digester {
    struct untar untar;
    XXH3_state_t *state;
    /* Each, when it is whole; its path lives until then. */
    int (*member)(void *ctx, const char *path, size_t len, const XXH128_hash_t *digest,
                  struct error *err);
    void *ctx;
    struct buf path;
};

void digester_init(struct digester *d,
                   int (*member)(void *ctx, const char *path, size_t len,
                                 const XXH128_hash_t *digest, struct error *err),
                   void *ctx);
void digester_done(struct digester *d);
int digester_write(struct digester *d, const void *tar, size_t len, struct error *err);

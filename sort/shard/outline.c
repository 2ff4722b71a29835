#include "sort/shard/outline.h"

#include <string.h>

static int on_begin(void *ctx, const struct untar_member *m, struct error *err)
{
    (void)ctx;
    (void)m;
    (void)err;
    return 0;
}

static int on_data(void *ctx, const void *data, size_t len, struct error *err)
{
    (void)ctx;
    (void)data;
    (void)len;
    (void)err;
    return 0;
}

static int on_end(void *ctx, struct error *err)
{
    (void)ctx;
    (void)err;
    return 0;
}

static const struct untar_events events = {.begin = on_begin, .data = on_data, .end = on_end};

void outline_init(struct outline *o, struct gather *g)
{
    *o = (struct outline){.gather = g, .used = TAR_BLOCK};
    untar_init(&o->untar, &events, NULL);
}

void outline_done(struct outline *o)
{
    untar_done(&o->untar);
}

int outline_begin(struct outline *o, uint32_t shard, uint32_t position, struct error *err)
{
    int rc = feed_begin(&o->feed, o->gather, shard, position, err);
    o->left = o->feed.place.size;
    return rc;
}

static int read_block(struct outline *o, struct error *err)
{
    for (size_t have = 0; have < TAR_BLOCK;) {
        ssize_t n = feed_fill(&o->feed, o->gather, o->block + have, TAR_BLOCK - have, err);
        if (n < 0)
            return (int)n;
        if (n == 0)
            return error_set(err, E_CORRUPT, "a record ends within a block");
        have += (size_t)n;
    }
    return gather_flush(o->gather, err);
}

/* 1: the next block is there; 0: there is none. */
static int next_block(struct outline *o, struct error *err)
{
    if (o->left == 0)
        return 0;
    int rc = read_block(o, err);
    if (rc == 0)
        rc = untar_write(&o->untar, o->block, TAR_BLOCK, err);
    if (rc != 0)
        return rc;
    o->left -= TAR_BLOCK;
    o->used = 0;
    uint64_t skipped = untar_skip(&o->untar, o->left);
    o->left -= skipped;
    rc = feed_skip(&o->feed, skipped, err);
    return rc != 0 ? rc : 1;
}

ssize_t outline_read(struct outline *o, void *out, size_t max, struct error *err)
{
    if (o->used == TAR_BLOCK) {
        int rc = next_block(o, err);
        if (rc <= 0)
            return rc;
    }
    size_t n = TAR_BLOCK - o->used < max ? TAR_BLOCK - o->used : max;
    memcpy(out, o->block + o->used, n);
    o->used += n;
    return (ssize_t)n;
}

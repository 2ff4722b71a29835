#include "ec/encode.h"

#include <string.h>
#include <xxhash.h>

#include "common/mem.h"
#include "ec/block.h"
#include "ec/code.h"
#include "ec/stripe.h"

struct ec_encoder {
    struct ec_layout layout;
    uint64_t tag;
    struct ec_sink sink;
    struct ec_code *code;
    struct ec_stripe *blocks;
    uint64_t stripe; /* that is being filled */
    uint64_t done;   /* bytes of the object */
    size_t filled;   /* bytes of the stripe's data */
    XXH3_state_t *sums[EC_SLICES_MAX];
};

int ec_encoder_new(const struct ec_layout *layout, uint64_t tag, const struct ec_sink *sink,
                   struct ec_encoder **out, struct error *err)
{
    int code = ec_layout_check(layout, err);
    if (code != 0)
        return code;
    struct ec_encoder *e = xcalloc(1, sizeof *e);
    *e = (struct ec_encoder){.layout = *layout,
                             .tag = tag,
                             .sink = *sink,
                             .code = ec_code_new(layout->k, layout->m),
                             .blocks = ec_stripe_new(layout)};
    for (unsigned i = 0; i < layout->k + layout->m; i++) {
        e->sums[i] = XXH3_createState();
        XXH3_64bits_reset(e->sums[i]);
    }
    *out = e;
    return 0;
}

void ec_encoder_free(struct ec_encoder *e)
{
    if (e == NULL)
        return;
    for (unsigned i = 0; i < EC_SLICES_MAX; i++)
        XXH3_freeState(e->sums[i]);
    ec_stripe_free(e->blocks);
    ec_code_free(e->code);
    free(e);
}

/* The stripe is full, or the object is at its end: zeros to the end, parity, checks, out with it.
 */
static int flush(struct ec_encoder *e, struct error *err)
{
    unsigned char *const *blocks = ec_stripe_blocks(e->blocks);
    const uint32_t block = ec_layout_block(&e->layout, e->stripe);
    for (size_t at = e->filled; at < (size_t)block * e->layout.k;) {
        size_t len = block - at % block;
        memset(blocks[at / block] + at % block, 0, len);
        at += len;
    }
    ec_code_parity(e->code, blocks, block);
    for (unsigned i = 0; i < e->layout.k + e->layout.m; i++) {
        ec_block_seal(blocks[i], block, e->tag, i, e->stripe);
        XXH3_64bits_update(e->sums[i], blocks[i] + block, EC_CHECK_BYTES);
    }
    e->stripe++;
    e->filled = 0;
    return e->sink.stripe(e->sink.ctx, blocks, block + EC_CHECK_BYTES, err);
}

int ec_encoder_write(struct ec_encoder *e, const void *data, size_t len, struct error *err)
{
    const unsigned char *from = data;
    int code = 0;
    if (len > e->layout.length - e->done)
        return error_set(err, E_LENGTH, "more than %llu bytes",
                         (unsigned long long)e->layout.length);
    while (len > 0 && code == 0) {
        const struct ec_piece p = ec_layout_piece(&e->layout, e->done, e->done + len);
        memcpy(ec_stripe_blocks(e->blocks)[p.slice] + p.at, from, p.len);
        from += p.len;
        len -= p.len;
        e->done += p.len;
        e->filled += p.len;
        if (e->done == e->layout.length || e->filled == (size_t)e->layout.unit * e->layout.k)
            code = flush(e, err);
    }
    return code;
}

int ec_encoder_finish(struct ec_encoder *e, struct ec_header *headers, struct error *err)
{
    if (e->done < e->layout.length)
        return error_set(err, E_LENGTH, "%llu bytes, not %llu", (unsigned long long)e->done,
                         (unsigned long long)e->layout.length);
    for (unsigned i = 0; i < e->layout.k + e->layout.m; i++) {
        headers[i].layout = e->layout;
        headers[i].tag = e->tag;
        headers[i].index = i;
        headers[i].slice_sum = XXH3_64bits_digest(e->sums[i]);
    }
    return 0;
}

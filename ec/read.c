#include "ec/read.h"

#include <xxhash.h>

#include "common/mem.h"
#include "ec/block.h"
#include "ec/choice.h"
#include "ec/mask.h"
#include "ec/stripe.h"

struct ec_reader {
    struct ec_layout layout;
    uint64_t tag;
    struct ec_source source;
    struct ec_code *code;
    struct ec_stripe *blocks;
    ec_mask have, doubted; /* what cannot be read is not there any more */
    ec_mask failed, damaged;
    int why; /* the first that was not read, or else E_CORRUPT */
    uint64_t bytes;
};

int ec_reader_new(const struct ec_layout *layout, uint64_t tag, ec_mask have, ec_mask doubted,
                  const struct ec_source *source, struct ec_reader **out, struct error *err)
{
    int code = ec_layout_check(layout, err);
    if (code != 0)
        return code;
    struct ec_reader *r = xcalloc(1, sizeof *r);
    *r = (struct ec_reader){.layout = *layout,
                            .tag = tag,
                            .source = *source,
                            .code = ec_code_new(layout->k, layout->m),
                            .blocks = ec_stripe_new(layout),
                            .have = have & ((UINT64_C(1) << (layout->k + layout->m)) - 1),
                            .doubted = doubted};
    *out = r;
    return 0;
}

void ec_reader_free(struct ec_reader *r)
{
    if (r == NULL)
        return;
    ec_stripe_free(r->blocks);
    ec_code_free(r->code);
    free(r);
}

ec_mask ec_reader_failed(const struct ec_reader *r)
{
    return r->failed;
}

ec_mask ec_reader_damaged(const struct ec_reader *r)
{
    return r->damaged;
}

uint64_t ec_reader_bytes(const struct ec_reader *r)
{
    return r->bytes;
}

static void fail(struct ec_reader *r, unsigned slice, int code)
{
    const ec_mask bit = UINT64_C(1) << slice;
    r->failed |= bit;
    r->damaged |= code == E_CORRUPT ? bit : 0;
    if (r->why == 0 || r->why == E_CORRUPT)
        r->why = code;
}

static void fail_slice(struct ec_reader *r, unsigned slice, int code)
{
    r->have &= ~(UINT64_C(1) << slice);
    fail(r, slice, code);
}

/* Others of its blocks may be good. */
static void fail_block(struct ec_reader *r, unsigned slice)
{
    r->doubted |= UINT64_C(1) << slice;
    fail(r, slice, E_CORRUPT);
}

/* Reads and checks these blocks of a stripe; those that are good. */
static ec_mask read_blocks(struct ec_reader *r, uint64_t stripe, ec_mask slices)
{
    struct ec_want wants[EC_SLICES_MAX];
    const uint32_t block = ec_layout_block(&r->layout, stripe);
    size_t n = 0;
    ec_mask good = 0;
    for (ec_mask left = slices; left != 0; left &= left - 1) {
        unsigned slice = (unsigned)__builtin_ctzll(left);
        wants[n++] = (struct ec_want){.slice = slice,
                                      .offset = ec_layout_block_at(&r->layout, stripe),
                                      .len = block + EC_CHECK_BYTES,
                                      .out = ec_stripe_blocks(r->blocks)[slice]};
        r->bytes += block + EC_CHECK_BYTES;
    }
    r->source.read(r->source.ctx, wants, n);
    for (size_t i = 0; i < n; i++) {
        const struct ec_want *w = &wants[i];
        if (w->code != 0)
            fail_slice(r, w->slice, w->code);
        else if (ec_block_is_sound(w->out, block, r->tag, w->slice, stripe))
            good |= UINT64_C(1) << w->slice;
        else
            fail_block(r, w->slice);
    }
    return good;
}

static int too_few(const struct ec_reader *r, uint64_t stripe, ec_mask left, struct error *err)
{
    return error_set(err, r->why != 0 ? r->why : E_CORRUPT,
                     "of stripe %llu %u of %u blocks are left, %u are needed",
                     (unsigned long long)stripe, ec_mask_count(left), r->layout.k + r->layout.m,
                     r->layout.k);
}

/* Has the blocks of `want` in memory. */
static int get_blocks(struct ec_reader *r, uint64_t stripe, ec_mask want, struct error *err)
{
    ec_mask good = 0, tried = 0;
    for (;;) {
        const struct ec_choice c = {
            .k = r->layout.k, .have = r->have, .doubted = r->doubted, .want = want};
        const ec_mask next = ec_choice_next(&c, tried, good);
        if (next == 0)
            break;
        tried |= next;
        good |= read_blocks(r, stripe, next);
    }
    if ((want & ~good) == 0)
        return 0;
    if (ec_mask_count(good) < r->layout.k)
        return too_few(r, stripe, good | (r->have & ~tried), err);
    ec_code_restore(r->code, ec_mask_first(good, r->layout.k), want & ~good,
                    ec_stripe_blocks(r->blocks), ec_layout_block(&r->layout, stripe));
    return 0;
}

/* The slices that the range touches in this stripe. */
static ec_mask touched(const struct ec_reader *r, uint64_t stripe, uint64_t offset, uint64_t end)
{
    ec_mask mask = 0;
    while (offset < end) {
        const struct ec_piece p = ec_layout_piece(&r->layout, offset, end);
        if (p.stripe != stripe)
            break;
        mask |= UINT64_C(1) << p.slice;
        offset += p.len;
    }
    return mask;
}

static int take_stripe(struct ec_reader *r, uint64_t *offset, uint64_t end, ec_take_fn *take,
                       void *ctx, struct error *err)
{
    const uint64_t stripe = ec_layout_piece(&r->layout, *offset, end).stripe;
    int code = get_blocks(r, stripe, touched(r, stripe, *offset, end), err);
    while (code == 0 && *offset < end) {
        const struct ec_piece p = ec_layout_piece(&r->layout, *offset, end);
        if (p.stripe != stripe)
            break;
        code = take(ctx, ec_stripe_blocks(r->blocks)[p.slice] + p.at, p.len, err);
        *offset += p.len;
    }
    return code;
}

int ec_reader_range(struct ec_reader *r, uint64_t offset, uint64_t len, ec_take_fn *take, void *ctx,
                    struct error *err)
{
    if (offset > r->layout.length || len > r->layout.length - offset)
        return error_set(err, E_RANGE, "%llu bytes at %llu of %llu", (unsigned long long)len,
                         (unsigned long long)offset, (unsigned long long)r->layout.length);
    int code = 0;
    for (const uint64_t end = offset + len; offset < end && code == 0;)
        code = take_stripe(r, &offset, end, take, ctx, err);
    return code;
}

int ec_reader_rebuild(struct ec_reader *r, unsigned slice, ec_take_fn *take, void *ctx,
                      uint64_t *slice_sum, struct error *err)
{
    if (slice >= r->layout.k + r->layout.m)
        return error_set(err, E_INVALID, "there is no slice %u", slice);
    const ec_mask wanted = UINT64_C(1) << slice;
    unsigned char *out = ec_stripe_blocks(r->blocks)[slice];
    XXH3_state_t *sum = XXH3_createState();
    XXH3_64bits_reset(sum);
    int code = 0;
    for (uint64_t i = 0; i < ec_layout_stripes(&r->layout) && code == 0; i++) {
        const uint32_t block = ec_layout_block(&r->layout, i);
        if ((code = get_blocks(r, i, wanted, err)) != 0)
            break;
        ec_block_seal(out, block, r->tag, slice, i);
        XXH3_64bits_update(sum, out + block, EC_CHECK_BYTES);
        code = take(ctx, out, block + EC_CHECK_BYTES, err);
    }
    *slice_sum = XXH3_64bits_digest(sum);
    XXH3_freeState(sum);
    return code;
}

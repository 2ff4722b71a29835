#include "ec/layout.h"

#include <assert.h>

int ec_layout_check(const struct ec_layout *l, struct error *err)
{
    if (l->k < 1 || l->k > EC_DATA_MAX)
        return error_set(err, E_INVALID, "%u data slices: 1 to %d", l->k, EC_DATA_MAX);
    if (l->m < 1 || l->m > EC_PARITY_MAX)
        return error_set(err, E_INVALID, "%u parity slices: 1 to %d", l->m, EC_PARITY_MAX);
    if (l->unit < EC_GRAIN || l->unit > EC_UNIT_MAX || l->unit % EC_GRAIN != 0)
        return error_set(err, E_INVALID, "a unit of %u bytes: a multiple of %d, at most %d",
                         l->unit, EC_GRAIN, EC_UNIT_MAX);
    if (l->length > EC_LENGTH_MAX)
        return error_set(err, E_INVALID, "an object of %llu bytes", (unsigned long long)l->length);
    return 0;
}

static uint64_t stripe_bytes(const struct ec_layout *l)
{
    return (uint64_t)l->k * l->unit;
}

uint64_t ec_layout_stripes(const struct ec_layout *l)
{
    return (l->length + stripe_bytes(l) - 1) / stripe_bytes(l);
}

uint32_t ec_layout_block(const struct ec_layout *l, uint64_t stripe)
{
    uint64_t rest = l->length - stripe * stripe_bytes(l);
    if (rest >= stripe_bytes(l))
        return l->unit;
    uint64_t each = (rest + l->k - 1) / l->k;
    return (uint32_t)((each + EC_GRAIN - 1) / EC_GRAIN * EC_GRAIN);
}

uint64_t ec_layout_block_at(const struct ec_layout *l, uint64_t stripe)
{
    return stripe * ((uint64_t)l->unit + EC_CHECK_BYTES);
}

uint64_t ec_layout_slice_bytes(const struct ec_layout *l)
{
    uint64_t stripes = ec_layout_stripes(l);
    if (stripes == 0)
        return 0;
    return ec_layout_block_at(l, stripes - 1) + ec_layout_block(l, stripes - 1) + EC_CHECK_BYTES;
}

struct ec_piece ec_layout_piece(const struct ec_layout *l, uint64_t offset, uint64_t end)
{
    assert(offset < end && end <= l->length);
    uint64_t stripe = offset / stripe_bytes(l), within = offset % stripe_bytes(l);
    uint32_t block = ec_layout_block(l, stripe);
    uint32_t at = (uint32_t)(within % block);
    uint64_t len = block - at < end - offset ? block - at : end - offset;
    return (struct ec_piece){
        .stripe = stripe, .slice = (unsigned)(within / block), .at = at, .len = (uint32_t)len};
}

#include "ec/stripe.h"

#include "common/mem.h"

struct ec_stripe {
    unsigned char *memory;
    unsigned char *blocks[EC_SLICES_MAX];
};

struct ec_stripe *ec_stripe_new(const struct ec_layout *l)
{
    struct ec_stripe *s = xcalloc(1, sizeof *s);
    const size_t each =
        (size_t)l->unit + EC_GRAIN; /* the check's, and so that the next is aligned */
    s->memory = xmalloc((l->k + l->m) * each + EC_GRAIN);
    unsigned char *at = s->memory + (EC_GRAIN - (uintptr_t)s->memory % EC_GRAIN) % EC_GRAIN;
    for (unsigned i = 0; i < l->k + l->m; i++)
        s->blocks[i] = at + i * each;
    return s;
}

void ec_stripe_free(struct ec_stripe *s)
{
    if (s == NULL)
        return;
    free(s->memory);
    free(s);
}

unsigned char *const *ec_stripe_blocks(const struct ec_stripe *s)
{
    return s->blocks;
}

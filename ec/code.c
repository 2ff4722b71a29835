#include "ec/code.h"

#include <assert.h>
#include <isa-l/erasure_code.h>
#include <string.h>

#include "common/mem.h"

enum { TABLE = 32 /* bytes that ISA-L makes of a coefficient */ };

struct ec_code {
    unsigned k, m;
    unsigned char matrix[EC_SLICES_MAX * EC_DATA_MAX];
    unsigned char encode[TABLE * EC_DATA_MAX * EC_PARITY_MAX];
    /* The last restoration: mostly the next one is the same. */
    ec_mask have, want;
    unsigned char restore[TABLE * EC_DATA_MAX * EC_SLICES_MAX];
};

struct ec_code *ec_code_new(unsigned k, unsigned m)
{
    struct ec_code *c = xcalloc(1, sizeof *c);
    c->k = k;
    c->m = m;
    gf_gen_cauchy1_matrix(c->matrix, (int)(k + m), (int)k);
    ec_init_tables((int)k, (int)m, c->matrix + (size_t)k * k, c->encode);
    return c;
}

void ec_code_free(struct ec_code *c)
{
    free(c);
}

void ec_code_parity(const struct ec_code *c, unsigned char *const *blocks, size_t len)
{
    unsigned char *all[EC_SLICES_MAX];
    memcpy(all, blocks, (c->k + c->m) * sizeof *all);
    ec_encode_data((int)len, (int)c->k, (int)c->m, (unsigned char *)c->encode, all, all + c->k);
}

/* The rows that make the data out of what is there. */
static void invert(const struct ec_code *c, ec_mask have, unsigned char *out)
{
    unsigned char rows[EC_DATA_MAX * EC_DATA_MAX];
    size_t n = 0;
    for (unsigned i = 0; i < c->k + c->m; i++) {
        if ((have >> i & 1) != 0)
            memcpy(rows + c->k * n++, c->matrix + (size_t)c->k * i, c->k);
    }
    assert(n == c->k);
    int singular = gf_invert_matrix(rows, out, (int)c->k);
    assert(singular == 0); /* every square part of a Cauchy matrix has an inverse */
    (void)singular;
}

/* Row `slice` of the matrix, over what is there instead of over the data. */
static void combine(const struct ec_code *c, unsigned slice, const unsigned char *inverse,
                    unsigned char *out)
{
    for (unsigned column = 0; column < c->k; column++) {
        out[column] = 0;
        for (unsigned j = 0; j < c->k; j++)
            out[column] ^= gf_mul(c->matrix[(size_t)c->k * slice + j], inverse[c->k * j + column]);
    }
}

static unsigned prepare(struct ec_code *c, ec_mask have, ec_mask want)
{
    unsigned char inverse[EC_DATA_MAX * EC_DATA_MAX], rows[EC_DATA_MAX * EC_SLICES_MAX];
    unsigned n = (unsigned)__builtin_popcountll(want);
    if (c->have == have && c->want == want)
        return n;
    invert(c, have, inverse);
    for (unsigned i = 0, row = 0; i < c->k + c->m; i++) {
        if ((want >> i & 1) != 0)
            combine(c, i, inverse, rows + c->k * row++);
    }
    ec_init_tables((int)c->k, (int)n, rows, c->restore);
    c->have = have;
    c->want = want;
    return n;
}

void ec_code_restore(struct ec_code *c, ec_mask have, ec_mask want, unsigned char *const *blocks,
                     size_t len)
{
    unsigned char *from[EC_SLICES_MAX], *to[EC_SLICES_MAX];
    size_t n = 0, made = 0;
    unsigned rows = prepare(c, have, want);
    for (unsigned i = 0; i < c->k + c->m; i++) {
        if ((have >> i & 1) != 0)
            from[n++] = blocks[i];
        if ((want >> i & 1) != 0)
            to[made++] = blocks[i];
    }
    assert(n == c->k && made == rows);
    if (rows > 0)
        ec_encode_data((int)len, (int)c->k, (int)rows, c->restore, from, to);
}

/* dfc-ec-bench [--quick]: what ec/ does in a second of one processor, beside ISA-L alone on the
 * same memory: encoding, reading with all slices and with m data slices lost, rebuilding one.
 * Bytes are of the object.  In memory: no disk, no network.  Medians of the rounds, in MB (10^6
 * bytes). */
#include <isa-l/erasure_code.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/mem.h"
#include "common/rng.h"
#include "ec/encode.h"
#include "ec/read.h"

enum { ROUNDS = 7 };

struct bench {
    struct ec_layout layout;
    unsigned char *object;
    unsigned char *slices[EC_SLICES_MAX];
    size_t at;      /* in each slice */
    uint64_t taken; /* bytes */
};

static int put_stripe(void *ctx, unsigned char *const *blocks, size_t len, struct error *err)
{
    struct bench *b = ctx;
    (void)err;
    for (unsigned i = 0; i < b->layout.k + b->layout.m; i++)
        memcpy(b->slices[i] + b->at, blocks[i], len);
    b->at += len;
    return 0;
}

static void read_some(void *ctx, struct ec_want *wants, size_t count)
{
    const struct bench *b = ctx;
    for (size_t i = 0; i < count; i++)
        memcpy(wants[i].out, b->slices[wants[i].slice] + wants[i].offset, wants[i].len);
}

static int take(void *ctx, const void *data, size_t len, struct error *err)
{
    struct bench *b = ctx;
    (void)data;
    (void)err;
    b->taken += len;
    return 0;
}

static void give_up(const struct error *err)
{
    fprintf(stderr, "%s\n", err->message);
    exit(1);
}

static void encode(struct bench *b)
{
    struct error err = ERROR_INIT;
    struct ec_header headers[EC_SLICES_MAX];
    const struct ec_sink sink = {.ctx = b, .stripe = put_stripe};
    struct ec_encoder *e;
    b->at = 0;
    if (ec_encoder_new(&b->layout, 1, &sink, &e, &err) != 0 ||
        ec_encoder_write(e, b->object, b->layout.length, &err) != 0 ||
        ec_encoder_finish(e, headers, &err) != 0)
        give_up(&err);
    ec_encoder_free(e);
}

static struct ec_reader *reader(struct bench *b, ec_mask have)
{
    struct error err = ERROR_INIT;
    struct ec_reader *r;
    const struct ec_source source = {.ctx = b, .read = read_some};
    if (ec_reader_new(&b->layout, 1, have, 0, &source, &r, &err) != 0)
        give_up(&err);
    return r;
}

static void read_with(struct bench *b, ec_mask have)
{
    struct error err = ERROR_INIT;
    struct ec_reader *r = reader(b, have);
    if (ec_reader_range(r, 0, b->layout.length, take, b, &err) != 0)
        give_up(&err);
    ec_reader_free(r);
}

static const ec_mask all = ~UINT64_C(0);

static void read_whole(struct bench *b)
{
    read_with(b, all);
}

static void read_degraded(struct bench *b)
{
    read_with(b, all << b->layout.m);
}

static void rebuild(struct bench *b)
{
    struct error err = ERROR_INIT;
    uint64_t sum;
    struct ec_reader *r = reader(b, all << 1);
    if (ec_reader_rebuild(r, 0, take, b, &sum, &err) != 0)
        give_up(&err);
    ec_reader_free(r);
}

/* Parity of the same blocks, and nothing else: no copies, no checks. */
static void isal_alone(struct bench *b)
{
    const unsigned k = b->layout.k, m = b->layout.m;
    unsigned char matrix[EC_SLICES_MAX * EC_DATA_MAX], tables[32 * EC_DATA_MAX * EC_PARITY_MAX];
    unsigned char *blocks[EC_SLICES_MAX];
    gf_gen_cauchy1_matrix(matrix, (int)(k + m), (int)k);
    ec_init_tables((int)k, (int)m, matrix + (size_t)k * k, tables);
    for (uint64_t s = 0; s < ec_layout_stripes(&b->layout); s++) {
        for (unsigned i = 0; i < k; i++)
            blocks[i] = b->object + (s * k + i) * b->layout.unit;
        for (unsigned i = k; i < k + m; i++)
            blocks[i] = b->slices[i] + s * b->layout.unit;
        ec_encode_data((int)b->layout.unit, (int)k, (int)m, tables, blocks, blocks + k);
    }
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Of this thread: others on the machine do not count. */
static uint64_t cpu_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static double measure(struct bench *b, void (*fn)(struct bench *b), int rounds)
{
    double rates[ROUNDS];
    for (int i = 0; i < rounds; i++) {
        uint64_t began_us = cpu_us();
        fn(b);
        uint64_t us = cpu_us() - began_us;
        rates[i] = (double)b->layout.length / (double)(us > 0 ? us : 1);
    }
    qsort(rates, (size_t)rounds, sizeof *rates, compare);
    return rates[rounds / 2];
}

static void bench_code(unsigned k, unsigned m, uint64_t stripes, int rounds)
{
    static const struct {
        const char *name;
        void (*fn)(struct bench *b);
    } rows[] = {{"isal", isal_alone},
                {"encode", encode},
                {"read", read_whole},
                {"degraded", read_degraded},
                {"rebuild", rebuild}};
    struct bench b = {.layout = {.k = k, .m = m, .unit = EC_UNIT_DEFAULT}};
    struct rng rng;
    rng_seed(&rng, 1);
    b.layout.length = stripes * k * b.layout.unit;
    b.object = xmalloc(b.layout.length);
    for (uint64_t i = 0; i < b.layout.length; i += sizeof(uint64_t)) {
        uint64_t word = rng_next(&rng);
        memcpy(b.object + i, &word, sizeof word);
    }
    for (unsigned i = 0; i < k + m; i++)
        b.slices[i] = xcalloc(1, ec_layout_slice_bytes(&b.layout));
    encode(&b);
    printf("%u+%u", k, m);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        printf("  %s %.0f", rows[i].name, measure(&b, rows[i].fn, rounds));
    printf(" MB/s; memory of an encoder or reader %zu KiB\n",
           (size_t)(k + m) * (b.layout.unit + EC_GRAIN) / 1024);
    for (unsigned i = 0; i < k + m; i++)
        free(b.slices[i]);
    free(b.object);
}

int main(int argc, char **argv)
{
    const bool quick = argc > 1 && strcmp(argv[1], "--quick") == 0;
    static const unsigned codes[][2] = {{2, 1}, {4, 2}, {6, 3}};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        bench_code(codes[i][0], codes[i][1], (quick ? 2 : 64) * 12 / codes[i][0],
                   quick ? 1 : ROUNDS);
    return 0;
}

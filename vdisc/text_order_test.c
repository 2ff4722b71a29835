/* Orders of random texts, against comparisons of the whole texts. */
#include "vdisc/text_order.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/rng.h"
#include "vdisc/iso_path.h"

#define TEXTS 300
#define ROUNDS 200

struct texts {
    char bytes[TEXTS][40];
    int (*compare)(const char *a, const char *b);
};

static const char *text_of(const void *context, uint32_t i)
{
    const struct texts *t = context;
    return t->bytes[i];
}

static int compare(const void *context, uint32_t a, uint32_t b)
{
    const struct texts *t = context;
    return t->compare(t->bytes[a], t->bytes[b]);
}

/* A common begin, and few letters behind it: many are equal for long, some are equal. */
static void make(struct texts *t, struct rng *r)
{
    static const char letters[] = "ab/\x01\xfe.";
    const size_t common = rng_below(r, 12);
    for (uint32_t i = 0; i < TEXTS; i++) {
        const size_t len = common + rng_below(r, 20);
        memset(t->bytes[i], 'c', common);
        for (size_t k = common; k < len; k++)
            t->bytes[i][k] = letters[rng_below(r, sizeof letters - 1)];
        t->bytes[i][len] = '\0';
    }
}

static void check(const struct text_order *o, const struct texts *t, uint32_t count)
{
    uint32_t *order = text_order_make(o, count);
    bool seen[TEXTS] = {false};
    for (uint32_t i = 0; i < count; i++) {
        assert_false(seen[order[i]]);
        seen[order[i]] = true;
        if (i == 0)
            continue;
        const int c = t->compare(t->bytes[order[i - 1]], t->bytes[order[i]]);
        assert_true(c < 0 || (c == 0 && order[i - 1] < order[i]));
    }
    free(order);
}

static void random_texts(uint8_t (*rank)(char c), int (*by)(const char *a, const char *b))
{
    struct rng r;
    rng_seed(&r, 5);
    struct texts t = {.compare = by};
    const struct text_order with = {
        .text = text_of, .rank = rank, .compare = compare, .context = &t};
    const struct text_order without = {.compare = compare, .context = &t};
    for (unsigned i = 0; i < ROUNDS; i++) {
        make(&t, &r);
        check(&with, &t, TEXTS);
        check(&without, &t, TEXTS);
        check(&with, &t, (uint32_t)rng_below(&r, 3));
    }
}

static void test_bytes(void **state)
{
    (void)state;
    random_texts(NULL, strcmp);
}

static void test_paths(void **state)
{
    (void)state;
    random_texts(iso_path_rank, iso_path_compare);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

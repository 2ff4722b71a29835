/* dfc-cache-bench [--quick]: which part of reads a cache directory's policy answers.
 *
 * zipf    reads of 100,000 pieces, popular ones more often; the cache has a fiftieth of them.
 *         `ideal` keeps the most popular ones and nothing else.
 * epochs  each piece once an epoch, shuffled; the first epoch counts, too.
 * late    the same without the first five epochs, in which the policy learns.
 * order   as late, but each epoch has one order.
 * change  epochs over a set that fits, after a set that did not; of the fourth epoch.
 *         `ideal` of these is the cache's share of the pieces. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache/policy.h"
#include "common/mem.h"
#include "common/rng.h"

enum { EPOCHS = 20, LEARNT = 5 };

struct bench {
    struct rng rng;
    struct policy *policy;
    uint64_t hits, reads;
};

static void begin(struct bench *b, uint64_t limit)
{
    const struct policy_options options = {.limit_bytes = limit, .idle_ms = 1, .seed = 1};
    rng_seed(&b->rng, 1);
    b->policy = policy_new(&options);
    b->hits = b->reads = 0;
}

static void end(struct bench *b, const char *what, double of, double ideal)
{
    double rate = (double)b->hits / (double)b->reads;
    printf("%-7s %5.2f  %6.1f %%  ideal %6.1f %%  %.3f\n", what, of, 100 * rate, 100 * ideal,
           rate / ideal);
    policy_free(b->policy);
}

static void read_piece(struct bench *b, uint64_t n)
{
    struct policy_piece victim;
    const struct piece_id id = {.entity = {n, n}};
    b->reads++;
    if (policy_hit(b->policy, &id, 0)) {
        b->hits++;
        return;
    }
    if (!policy_admits(b->policy, &id, 1))
        return;
    while (policy_bytes(b->policy) >= policy_limit(b->policy) &&
           policy_evict(b->policy, 0, &victim))
        ;
    policy_add(b->policy, &id, 0, 1, 0);
}

/* ---- popularity ---- */

static uint64_t draw(struct bench *b, const double *sums, uint64_t count)
{
    double u = (double)(rng_next(&b->rng) >> 11) / 9007199254740992.0 * sums[count - 1];
    uint64_t low = 0, high = count - 1;
    while (low < high) {
        uint64_t middle = (low + high) / 2;
        if (sums[middle] < u)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void zipf(struct bench *b, double exponent, uint64_t count, uint64_t reads)
{
    double *sums = xcalloc(count, sizeof *sums), sum = 0;
    for (uint64_t i = 0; i < count; i++)
        sums[i] = sum += pow((double)i + 1, -exponent);
    begin(b, count / 50);
    for (uint64_t i = 0; i < reads; i++)
        read_piece(b, draw(b, sums, count));
    b->hits = b->reads = 0; /* it is warm */
    for (uint64_t i = 0; i < reads; i++)
        read_piece(b, draw(b, sums, count));
    end(b, "zipf", exponent, sums[count / 50 - 1] / sum);
    free(sums);
}

/* ---- epochs ---- */

static void shuffle(struct bench *b, uint64_t *order, uint64_t count)
{
    for (uint64_t i = count - 1; i > 0; i--) {
        uint64_t j = rng_below(&b->rng, i + 1), swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
}

static void epoch(struct bench *b, uint64_t *order, uint64_t count, bool shuffled)
{
    if (shuffled)
        shuffle(b, order, count);
    for (uint64_t i = 0; i < count; i++)
        read_piece(b, order[i]);
}

static uint64_t *numbers(uint64_t first, uint64_t count)
{
    uint64_t *order = xcalloc(count, sizeof *order);
    for (uint64_t i = 0; i < count; i++)
        order[i] = first + i;
    return order;
}

static void epochs(struct bench *b, const char *what, double of, uint64_t limit, unsigned learnt)
{
    uint64_t count = (uint64_t)(of * (double)limit);
    uint64_t *order = numbers(1, count);
    begin(b, limit);
    for (unsigned e = 0; e < EPOCHS; e++) {
        if (e == learnt)
            b->hits = b->reads = 0;
        epoch(b, order, count, strcmp(what, "order") != 0);
    }
    end(b, what, of, of > 1 ? 1 / of : 1);
    free(order);
}

static void change(struct bench *b, uint64_t limit)
{
    uint64_t *first = numbers(1, 2 * limit), *second = numbers(10 * limit, limit * 3 / 4);
    begin(b, limit);
    for (unsigned e = 0; e < EPOCHS; e++)
        epoch(b, first, 2 * limit, true);
    for (unsigned e = 0; e < 4; e++) {
        b->hits = b->reads = 0;
        epoch(b, second, limit * 3 / 4, true);
    }
    end(b, "change", 0.75, 1);
    free(first);
    free(second);
}

int main(int argc, char **argv)
{
    static const double exponents[] = {1.0, 1.1, 1.2, 1.3};
    static const double sizes[] = {1.05, 1.25, 1.5, 2, 3, 5, 10};
    const bool quick = argc > 1 && strcmp(argv[1], "--quick") == 0;
    const uint64_t pieces = quick ? 10000 : 100000, limit = quick ? 1000 : 10000;
    struct bench b;
    for (size_t i = 0; i < sizeof exponents / sizeof *exponents; i++)
        zipf(&b, exponents[i], pieces, quick ? 200000 : 4000000);
    epochs(&b, "epochs", 1, limit, 0);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        epochs(&b, "late", sizes[i], limit, LEARNT);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        epochs(&b, "order", sizes[i], limit, LEARNT);
    change(&b, limit);
    return 0;
}

#include "sort/rows/cut.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/mem.h"
#include "common/rng.h"
#include "sort/rows/place.h"
#include "sort/rows/repeats.h"

static struct name_template *names(const char *text)
{
    struct name_template *t = NULL;
    assert_int_equal(template_parse(text, &t, NULL), 0);
    return t;
}

static void begin(struct cut *c, const char *wanted)
{
    struct buf name = BUF_INIT;
    assert_int_equal(cut_begin(c, &name, NULL), 0);
    assert_string_equal(buf_str(&name), wanted);
    buf_done(&name);
}

static void test_a_shard_that_reaches_its_limit_exactly(void **state)
{
    (void)state;
    struct name_template *t = names("o-%d.tar");
    struct cut c;
    cut_init(&c, t, 1024, 0);
    begin(&c, "o-0.tar");
    assert_false(cut_add(&c, 512));
    assert_true(cut_add(&c, 512));
    template_free(t);
}

static void test_a_shard_ends_where_the_limit_is_reached(void **state)
{
    (void)state;
    struct name_template *t = names("o-{00..01}.tar");
    struct cut c;
    cut_init(&c, t, 1000, 0);
    begin(&c, "o-00.tar");
    assert_false(cut_add(&c, 512));
    assert_true(cut_add(&c, 512));
    begin(&c, "o-01.tar");
    assert_true(cut_add(&c, 5000)); /* larger than the limit: a shard of its own */
    struct error err = ERROR_INIT;
    struct buf name = BUF_INIT;
    assert_int_equal(cut_begin(&c, &name, &err), E_TEMPLATE_TOO_SMALL);
    assert_non_null(strstr(err.message, "'o-{00..01}.tar' has 2 names"));
    assert_int_equal(name.len, 0);
    template_free(t);
}

/* The size that follows from the count never needs more names than there are. */
static void test_size_by_count(void **state)
{
    (void)state;
    struct name_template *t = names("o-{0..6}.tar");
    struct rng rng;
    rng_seed(&rng, 11);
    for (int round = 0; round < 500; round++) {
        uint64_t sizes[200];
        size_t n = 1 + (size_t)rng_below(&rng, 200);
        uint64_t total = 0;
        for (size_t i = 0; i < n; i++)
            total += sizes[i] = 512 * (1 + rng_below(&rng, round % 2 ? 4 : 4000));
        struct cut c;
        struct buf name = BUF_INIT;
        cut_init(&c, t, 0, total);
        for (size_t i = 0; i < n; i++) {
            if (!c.open)
                assert_int_equal(cut_begin(&c, &name, NULL), 0);
            cut_add(&c, sizes[i]);
        }
        assert_in_range(c.shards, 1, 7);
        buf_done(&name);
    }
    template_free(t);
}

static void test_unbounded_names(void **state)
{
    (void)state;
    struct name_template *t = names("o-%03d.tar");
    struct cut c;
    cut_init(&c, t, 1, 0);
    for (int i = 0; i < 1001; i++) {
        char wanted[32];
        snprintf(wanted, sizeof wanted, "o-%03d.tar", i);
        begin(&c, wanted);
        assert_true(cut_add(&c, 512));
    }
    template_free(t);
}

static void test_the_owner_builds_without_compression(void **state)
{
    (void)state;
    uint64_t held[3] = {100, 0, 900};
    struct placement p = place_shard(held, 3, 1, 1000);
    assert_int_equal(p.builder, 1);
    assert_int_equal(p.moved, 1000);
    assert_int_equal(p.moved_hrw, 1000);
    assert_int_equal(p.moved_locality, 100 + 1000);
}

static void test_a_cheap_hop_moves_the_work_to_the_data(void **state)
{
    (void)state;
    uint64_t held[3] = {100, 0, 900};
    struct placement p = place_shard(held, 3, 1, 300);
    assert_int_equal(p.builder, 2);
    assert_int_equal(p.moved, 400);
    assert_int_equal(p.moved_hrw, 1000);
    assert_int_equal(p.moved_locality, 400);
}

static void test_ties_go_to_the_owner_then_to_the_lower_number(void **state)
{
    (void)state;
    uint64_t held[4] = {500, 500, 0, 0};
    assert_int_equal(place_shard(held, 4, 3, 500).builder, 3);
    assert_int_equal(place_shard(held, 4, 3, 499).builder, 0);
    uint64_t alone[1] = {7};
    assert_int_equal(place_shard(alone, 1, 0, 7).moved, 0);
}

/* Never more than HRW alone, nor than locality alone, whatever the hop costs. */
static void test_the_choice_is_never_worse(void **state)
{
    (void)state;
    struct rng rng;
    rng_seed(&rng, 5);
    for (int round = 0; round < 2000; round++) {
        uint64_t held[9];
        unsigned n = 1 + (unsigned)rng_below(&rng, 9);
        uint64_t total = 0;
        for (unsigned i = 0; i < n; i++)
            total += held[i] = rng_below(&rng, 1000);
        unsigned owner = (unsigned)rng_below(&rng, n);
        struct placement p = place_shard(held, n, owner, rng_below(&rng, 2000));
        assert_true(p.moved <= p.moved_hrw && p.moved <= p.moved_locality);
        assert_int_equal(p.moved_hrw, total - held[owner]);
    }
}

static void test_repeats(void **state)
{
    (void)state;
    struct repeats *r = repeats_new(5000);
    for (int round = 0; round < 3; round++) {
        char name[16];
        for (int i = 0; i < 5000; i++) {
            int len = snprintf(name, sizeof name, "%d", i);
            assert_int_equal(repeats_add(r, name, (size_t)len), REPEATS_NEW);
        }
        assert_int_equal(repeats_add(r, "17", 2), REPEATS_SEEN);
        assert_int_equal(repeats_add(r, "more", 4), REPEATS_FULL);
        repeats_clear(r);
        assert_int_equal(repeats_add(r, "17", 2), REPEATS_NEW);
        assert_int_equal(repeats_add(r, "", 0), REPEATS_NEW);
        assert_int_equal(repeats_add(r, "", 0), REPEATS_SEEN);
        repeats_clear(r);
    }
    repeats_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_shard_ends_where_the_limit_is_reached),
        cmocka_unit_test(test_a_shard_that_reaches_its_limit_exactly),
        cmocka_unit_test(test_size_by_count),
        cmocka_unit_test(test_unbounded_names),
        cmocka_unit_test(test_the_owner_builds_without_compression),
        cmocka_unit_test(test_a_cheap_hop_moves_the_work_to_the_data),
        cmocka_unit_test(test_ties_go_to_the_owner_then_to_the_lower_number),
        cmocka_unit_test(test_the_choice_is_never_worse),
        cmocka_unit_test(test_repeats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

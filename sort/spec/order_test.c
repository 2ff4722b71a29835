#include "sort/spec/order.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/mem.h"
#include "common/rng.h"
#include "common/tsan.h"
#include "sort/rows/slot.h"

static struct sort_row row(const char *name, uint32_t shard, uint32_t position, uint64_t key)
{
    return (struct sort_row){.name = name,
                             .name_len = (uint32_t)strlen(name),
                             .shard = shard,
                             .position = position,
                             .key = key};
}

static int sign(int c)
{
    return (c > 0) - (c < 0);
}

static void expect(enum sort_algorithm algorithm, bool decreasing, struct sort_row a,
                   struct sort_row b, int wanted)
{
    struct sort_order o = {.algorithm = algorithm, .decreasing = decreasing};
    assert_int_equal(sign(order_compare(&o, &a, &b)), wanted);
    assert_int_equal(sign(order_compare(&o, &b, &a)), -wanted);
}

static void test_alphanumeric(void **state)
{
    (void)state;
    enum sort_algorithm a = SORT_ALPHANUMERIC;
    expect(a, false, row("a", 9, 9, 9), row("b", 0, 0, 0), -1);
    expect(a, false, row("a", 0, 0, 0), row("a0", 0, 0, 0), -1);
    expect(a, false, row("", 0, 0, 0), row("\x01", 0, 0, 0), -1);
    expect(a, false, row("\x7f", 0, 0, 0), row("\x80", 0, 0, 0), -1);
    expect(a, false, row("a", 1, 0, 0), row("a", 2, 0, 0), -1);
    expect(a, false, row("a", 1, 3, 0), row("a", 1, 4, 0), -1);
    expect(a, false, row("a", 1, 3, 0), row("a", 1, 3, 0), 0);
    expect(a, true, row("a", 0, 0, 0), row("b", 0, 0, 0), 1);
    expect(a, true, row("a", 1, 0, 0), row("a", 2, 0, 0), -1); /* ties are not reversed */
}

static void test_shuffle(void **state)
{
    (void)state;
    enum sort_algorithm a = SORT_SHUFFLE;
    expect(a, false, row("z", 9, 9, 1), row("a", 0, 0, 2), -1);
    expect(a, true, row("z", 9, 9, 1), row("a", 0, 0, 2), 1);
    expect(a, true, row("a", 9, 9, 1), row("b", 0, 0, 1), -1);
    expect(a, false, row("a", 1, 9, 1), row("a", 2, 0, 1), -1);
    expect(a, false, row("a", 1, 1, 1), row("a", 1, 2, 1), -1);
}

static void test_none(void **state)
{
    (void)state;
    expect(SORT_NONE, false, row("z", 1, 9, 9), row("a", 2, 0, 0), -1);
    expect(SORT_NONE, false, row("z", 1, 1, 9), row("a", 1, 2, 0), -1);
}

static void test_natural(void **state)
{
    (void)state;
    enum sort_algorithm a = SORT_NATURAL;
    expect(a, false, row("a2", 9, 9, 0), row("a10", 0, 0, 0), -1);
    expect(a, false, row("a2b", 9, 9, 0), row("a02c", 0, 0, 0), -1);
    expect(a, false, row("a02", 9, 9, 0), row("a2", 0, 0, 0), -1); /* equal: bytes decide */
    expect(a, true, row("a02", 9, 9, 0), row("a2", 0, 0, 0), -1);
    expect(a, true, row("a2", 0, 0, 0), row("a10", 0, 0, 0), 1);
    expect(a, false, row("a", 0, 0, 0), row("a0", 0, 0, 0), -1);
    expect(a, false, row("a0", 0, 0, 0), row("a00000", 1, 0, 0), -1);
    expect(a, false, row("a/1", 0, 0, 0), row("a1", 0, 0, 0), -1);
    expect(a, false, row("99999999999999999999999998", 0, 0, 0),
           row("99999999999999999999999999", 0, 0, 0), -1);
}

static void test_md5(void **state)
{
    (void)state;
    /* hashlib.md5(b"a").hexdigest() and of the empty name */
    assert_true(order_md5_key("a", 1) == 0x0cc175b9c0f1b6a8U);
    assert_true(order_md5_key("", 0) == 0xd41d8cd98f00b204U);
    expect(SORT_MD5, false, row("z", 9, 9, 1), row("a", 0, 0, 2), -1);
    expect(SORT_MD5, true, row("a", 9, 9, 1), row("b", 0, 0, 1), -1);
}

static void test_content_texts(void **state)
{
    (void)state;
    static const char *const names[] = {"\0z", "a\0b", "a\0c", "a!\0a", "b\0a"};
    static const uint32_t lengths[] = {2, 3, 3, 4, 3};
    for (int down = 0; down < 2; down++) {
        struct sort_order o = {
            .algorithm = SORT_CONTENT, .text_keys = true, .decreasing = down != 0};
        for (int i = 0; i < 5; i++) {
            for (int j = i + 1; j < 5; j++) {
                struct sort_row x = {.name = names[i], .name_len = lengths[i]};
                struct sort_row y = {.name = names[j], .name_len = lengths[j]};
                bool same_text = i == 1 && j == 2; /* then names decide, never reversed */
                assert_int_equal(sign(order_compare(&o, &x, &y)), down && !same_text ? 1 : -1);
                assert_int_equal(sign(order_compare(&o, &y, &x)), down && !same_text ? -1 : 1);
            }
        }
        size_t len = 0;
        struct sort_row x = {.name = names[3], .name_len = lengths[3]};
        assert_string_equal(order_name(&o, &x, &len), "a");
        assert_int_equal(len, 1);
    }
}

/* Computed with Python: int.from_bytes(hashlib.sha256(seed.to_bytes(8, "little") + name + b"\0" +
 * position.to_bytes(8, "little")).digest()[:8], "big") */
static void test_shuffle_key_is_as_documented(void **state)
{
    (void)state;
    assert_true(order_shuffle_key(0, "a.tar", 0) == 0x4cd0a95e52661bbbU);
    assert_true(order_shuffle_key(42, "shard-00001.tar", 7) == 0x3c150856b23b73feU);
    assert_true(order_shuffle_key(UINT64_MAX, "x/\xc3\xa9.tar", UINT32_MAX - 1) ==
                0xe6b4c0779b1f8e46U);
    uint64_t keys[3];
    order_shuffle_keys(42, "shard-00001.tar", 5, keys, 3);
    for (uint64_t i = 0; i < 3; i++)
        assert_true(keys[i] == order_shuffle_key(42, "shard-00001.tar", 5 + i));
}

struct texts {
    char *names;
    struct slot *slots;
    size_t count;
};

/* Names that share long beginnings and are often equal or prefixes of each other. */
static struct texts make_slots(size_t count, uint64_t seed)
{
    struct texts t = {.names = xcalloc(count + 1, 32),
                      .slots = xcalloc(count + 1, sizeof *t.slots)};
    struct rng rng;
    rng_seed(&rng, seed);
    for (size_t i = 0; i < count; i++) {
        char *name = t.names + 32 * i;
        int len = snprintf(name, 32, "common/%0*llu", (int)(1 + rng_below(&rng, 12)),
                           (unsigned long long)rng_below(&rng, count / 2 + 1));
        t.slots[t.count++] = (struct slot){
            .name = 32 * i,
            .name_len = (uint32_t)len,
            .shard = (uint32_t)rng_below(&rng, 5),
            .position = (uint32_t)i,
            .key = rng_below(&rng, count / 2 + 1),
        };
    }
    return t;
}

static struct sort_row slot_row(const struct texts *t, size_t i)
{
    const struct slot *s = &t->slots[i];
    return (struct sort_row){.name = t->names + s->name,
                             .name_len = s->name_len,
                             .shard = s->shard,
                             .position = s->position,
                             .key = s->key};
}

static void expect_sorted(const struct texts *t, const struct sort_order *o)
{
    _cleanup_free_ bool *seen = xcalloc(t->count + 1, sizeof *seen);
    for (size_t i = 0; i < t->count; i++) {
        assert_false(seen[t->slots[i].position]);
        seen[t->slots[i].position] = true;
        if (i == 0)
            continue;
        struct sort_row before = slot_row(t, i - 1);
        struct sort_row after = slot_row(t, i);
        assert_true(order_compare(o, &before, &after) < 0);
    }
}

static void test_slots_sort(void **state)
{
    (void)state;
    static const size_t counts[] = {0, 1, 2, 3, 15, 16, 17, 33, 100, 1000, 20000};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        for (int algorithm = SORT_ALPHANUMERIC; algorithm <= SORT_NONE; algorithm++) {
            for (int decreasing = 0; decreasing < (algorithm == SORT_NONE ? 1 : 2); decreasing++) {
                struct sort_order o = {(enum sort_algorithm)algorithm, decreasing != 0};
                struct texts t = make_slots(counts[i], counts[i] + (size_t)algorithm);
                slots_sort(t.slots, t.count, t.names, &o, 1);
                expect_sorted(&t, &o);
                slots_sort(t.slots, t.count, t.names, &o, 1); /* sorted input */
                expect_sorted(&t, &o);
                struct sort_order back = {o.algorithm, !o.decreasing};
                if (algorithm != SORT_NONE) {
                    slots_sort(t.slots, t.count, t.names, &back, 2); /* nearly reversed input */
                    expect_sorted(&t, &back);
                }
                free(t.names);
                free(t.slots);
            }
        }
    }
}

static const unsigned thread_counts[] = {1, 2, 3, 8, 1000};
#define THREAD_COUNTS (sizeof thread_counts / sizeof *thread_counts)

static void test_slots_sort_on_threads(void **state)
{
    (void)state;
    static const size_t counts[] = {65535, 65536, 150000};
    enum { COUNTS = sizeof counts / sizeof *counts };
    for (size_t n = 0; n < COUNTS * THREAD_COUNTS; n += TSAN_STRIDE) {
        size_t k = n % THREAD_COUNTS;
        struct sort_order o = {SORT_ALPHANUMERIC, k % 2 == 1};
        struct texts t = make_slots(counts[n / THREAD_COUNTS], k);
        slots_sort(t.slots, t.count, t.names, &o, thread_counts[k]);
        expect_sorted(&t, &o);
        slots_sort(t.slots, t.count, t.names, &o, thread_counts[k]);
        expect_sorted(&t, &o);
        free(t.names);
        free(t.slots);
    }
}

/* The median of three falls for this pattern: it must still end, in n log n. */
static void test_slots_sort_organ_pipe(void **state)
{
    (void)state;
    size_t count = 200000;
    struct sort_order o = {SORT_SHUFFLE, false};
    for (size_t k = 0; k < THREAD_COUNTS; k += TSAN_STRIDE) {
        struct texts t = make_slots(count, 3);
        for (size_t i = 0; i < count; i++)
            t.slots[i].key = i < count / 2 ? i : count - i;
        slots_sort(t.slots, count, t.names, &o, thread_counts[k]);
        expect_sorted(&t, &o);
        free(t.names);
        free(t.slots);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alphanumeric),
        cmocka_unit_test(test_shuffle),
        cmocka_unit_test(test_none),
        cmocka_unit_test(test_natural),
        cmocka_unit_test(test_md5),
        cmocka_unit_test(test_content_texts),
        cmocka_unit_test(test_shuffle_key_is_as_documented),
        cmocka_unit_test(test_slots_sort),
        cmocka_unit_test(test_slots_sort_on_threads),
        cmocka_unit_test(test_slots_sort_organ_pipe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

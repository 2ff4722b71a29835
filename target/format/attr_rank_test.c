#include "target/format/attr_rank.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const char two[] = "a\0x\0b\0\0", other_way[] = "b\0\0a\0x\0", one[] = "a\0x\0",
                  zed[] = "a\0z\0", none[] = "";

static struct attr with(const char *meta, size_t len, const char *type)
{
    return (struct attr){.name = "n",
                         .size = 5,
                         .checksum = {.type = CHECKSUM_XXH3, .bytes = {1, 2, 3}},
                         .content_type = type,
                         .meta = meta,
                         .meta_len = len};
}
#define WITH(meta, type) with(meta, sizeof(meta) - 1, type)

static uint64_t rank(struct attr a)
{
    return attr_rank(&a);
}

static void test_more_pairs_win(void **state)
{
    (void)state;
    assert_true(rank(WITH(two, NULL)) > rank(WITH(one, NULL)));
    assert_true(rank(WITH(two, NULL)) > rank(WITH(zed, NULL)));
    assert_true(rank(WITH(one, NULL)) > rank(WITH(none, NULL)));
    assert_true(rank(WITH(one, "")) > rank(WITH(one, NULL)));
    assert_true(rank(WITH(one, "")) > rank(WITH(one, "application/octet-stream")));
    assert_true(rank(WITH(none, NULL)) > 0);
}

static void test_what_users_see_alike_is_alike(void **state)
{
    (void)state;
    assert_true(rank(WITH(two, NULL)) == rank(WITH(other_way, NULL)));
    assert_true(rank(WITH(two, NULL)) == rank(WITH(two, "application/octet-stream")));
    struct attr a = WITH(two, NULL), b = a;
    b.version.counter = 7;
    b.modified_ms = 9;
    b.flags = ATTR_DURABLE;
    assert_true(attr_rank(&a) == attr_rank(&b));
}

static void test_every_part_counts(void **state)
{
    (void)state;
    struct attr a = WITH(two, "t/t");
    struct attr size = a, sum = a, kind = a, type = WITH(two, "t/u"), value = WITH(zed, "t/t");
    size.size++;
    sum.checksum.bytes[0]++;
    kind.checksum.type = CHECKSUM_CRC32C;
    const struct attr *all[] = {&a, &size, &sum, &kind, &type, &value};
    for (size_t i = 0; i < 6; i++) {
        for (size_t k = 0; k < i; k++)
            if (attr_rank(all[i]) == attr_rank(all[k]))
                fail_msg("%zu ranks as %zu", i, k);
    }
}

static void test_a_manifest_ranks_as_what_it_stands_for(void **state)
{
    (void)state;
    struct attr a = WITH(two, NULL), b = WITH(two, NULL);
    a.size = b.size = 0;
    a.slices = "1:2:1:65536:1000:00000000000000ff:none:";
    b.slices = "1:2:1:65536:1000:00000000000000aa:none:";
    assert_true(attr_rank(&a) == attr_rank(&b));
    b.slices = "1:2:1:65536:1001:00000000000000aa:none:";
    assert_true(attr_rank(&a) != attr_rank(&b));
    struct attr tombstone = {.flags = ATTR_TOMBSTONE, .name = "n"};
    assert_true(attr_rank(&tombstone) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_more_pairs_win),
        cmocka_unit_test(test_what_users_see_alike_is_alike),
        cmocka_unit_test(test_every_part_counts),
        cmocka_unit_test(test_a_manifest_ranks_as_what_it_stands_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

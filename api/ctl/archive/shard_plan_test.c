/* Records, their order, and where shards end. */
#include "api/ctl/archive/shard_plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/mem.h"

static void add(struct shard_plan *p, const char *below, bool by_dir, uint64_t size)
{
    struct shard_file *f = NULL;
    struct error err = ERROR_INIT;
    if (shard_plan_add(p, below, below, by_dir, &f, &err) != 0)
        fail_msg("%s: %s", below, err.message);
    f->size = size;
}

static void refuse(const char *below, bool by_dir, const char *why)
{
    struct shard_plan p = {0};
    struct shard_file *f = NULL;
    struct error err = ERROR_INIT;
    assert_int_equal(shard_plan_add(&p, below, below, by_dir, &f, &err), E_NAME);
    if (strstr(err.message, why) == NULL)
        fail_msg("%s: %s", below, err.message);
    assert_int_equal(p.count, 0);
    shard_plan_done(&p);
}

static void test_names(void **state)
{
    (void)state;
    struct shard_plan p = {0};
    add(&p, "a/b.c/0001.seg.png", false, 1);
    assert_string_equal(p.files[0].member, "a/b.c/0001.seg.png");
    assert_int_equal(p.files[0].key_len, strlen("a/b.c/0001"));
    add(&p, "a/0001/seg.png", true, 1);
    assert_string_equal(p.files[1].member, "a/0001.seg.png");
    assert_int_equal(p.files[1].key_len, strlen("a/0001"));
    add(&p, "0001/README", true, 1);
    assert_string_equal(p.files[2].member, "0001.README");
    shard_plan_done(&p);
    refuse("a/.hidden", false, "begins with a dot");
    refuse(".x.jpg", false, "begins with a dot");
    refuse("README", false, "no extension");
    refuse("a/x.", false, "no extension");
    refuse("a/\xff.jpg", false, "not UTF-8");
    refuse("x.jpg", true, "no directory of its own");
    refuse("a/v1.2/x.jpg", true, "has a dot");
    refuse("a/.x", true, "begins with a dot");
}

/* A record's files stand together, whatever else the folder holds between their names. */
static void test_order(void **state)
{
    (void)state;
    static const char *const wanted[] = {"a.cls", "a.jpg", "a-b.jpg", "a/b.jpg", "b.jpg"};
    struct shard_plan p = {0};
    add(&p, "b.jpg", false, 1);
    add(&p, "a.jpg", false, 1);
    add(&p, "a/b.jpg", false, 1);
    add(&p, "a-b.jpg", false, 1);
    add(&p, "a.cls", false, 1);
    shard_plan_cut(&p, 1 << 20);
    assert_int_equal(p.shards, 1);
    assert_int_equal(p.ends[0], 5);
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(p.files[i].member, wanted[i]);
    shard_plan_done(&p);
}

/* A shard ends with the record that fills it. */
static void test_shards(void **state)
{
    (void)state;
    struct shard_plan p = {0};
    shard_plan_cut(&p, 1);
    assert_int_equal(p.shards, 0);
    for (int i = 0; i < 6; i++) {
        _cleanup_free_ char *jpg = xprintf("%d.jpg", i);
        _cleanup_free_ char *cls = xprintf("%d.cls", i);
        add(&p, jpg, false, 513); /* 1536 bytes in a tar */
        add(&p, cls, false, 0);   /* 512 */
    }
    shard_plan_cut(&p, 4096);
    assert_int_equal(p.shards, 3);
    assert_int_equal(p.ends[0], 4);
    assert_int_equal(p.ends[2], 12);
    p.shards = 0;
    shard_plan_cut(&p, 4097);
    assert_int_equal(p.shards, 2);
    assert_int_equal(p.ends[0], 6);
    p.shards = 0;
    shard_plan_cut(&p, 1);
    assert_int_equal(p.shards, 6);
    shard_plan_done(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_shards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

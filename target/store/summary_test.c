/* What is counted of each bucket. */
#include "target/testing/store_fixture.h"

#include "target/format/ec_manifest.h"
#include "target/store/summary.h"

/* Of those names that end so. */
static bool acts(void *ctx, uint64_t bucket_id, const char *name)
{
    (void)ctx;
    assert_int_equal(bucket_id, BUCKET);
    return name[strlen(name) - 1] == 'x';
}

static const struct summary_env env = {.acts = acts};

static struct summary made(void)
{
    struct summary s;
    struct error err = ERROR_INIT;
    if (summary_make(fx.mountpaths, &env, &s, &err) != 0)
        fail_msg("%s", err.message);
    return s;
}

static void test_objects_are_counted_and_tombstones_are_not(void **state)
{
    (void)state;
    struct summary s = made();
    assert_int_equal(s.count, 0);
    put_text("a", "1");
    put_text("b", "22");
    put_text("b", "4444");
    put_text("c", "gone");
    put_text(".dfc-gone", "gone");
    put_text(".dfc-unique/1", "333");
    assert_int_equal(delete_name("c"), 0);
    assert_int_equal(delete_name(".dfc-gone"), 0);
    s = made();
    assert_int_equal(s.count, 1);
    assert_int_equal(s.rows[0].bucket_id, BUCKET);
    assert_int_equal(s.rows[0].objects, 3);
    assert_int_equal(s.rows[0].bytes, 5 + 3);
    assert_int_equal(s.rows[0].internal, 1);
    assert_int_equal(s.rows[0].internal_bytes, 3);
    summary_done(&s);
}

static void fill(uint64_t bucket_id, const char *name, struct index_record record)
{
    record.version.counter = 1;
    struct index_item item = {.bucket_id = bucket_id, .name = name, .record = record};
    assert_int_equal(index_fill(fixture_mp(0)->index, &item, 1, NULL), 0);
}

/* A manifest has no bytes here: what is in its slices is counted where these are. */
static void test_slices_are_counted_where_they_are(void **state)
{
    (void)state;
    fill(BUCKET, "a", (struct index_record){.size = 1000, .sliced = true});
    fill(BUCKET, "bx", (struct index_record){.size = 1000, .sliced = true});
    fill(BUCKET, "small", (struct index_record){.size = 7});
    fill(BUCKET, "gone", (struct index_record){.tombstone = true});
    fill(BUCKET, "going", (struct index_record){.tombstone = true, .pending = true});
    fill(ec_slices_bucket(BUCKET), "00000000000000ff.0", (struct index_record){.size = 508});
    fill(ec_slices_bucket(BUCKET), "00000000000000fe.2", (struct index_record){.size = 508});
    fill(ec_slices_bucket(BUCKET), "00000000000000fd.1", (struct index_record){.tombstone = true});
    struct summary s = made();
    assert_int_equal(s.count, 1);
    assert_int_equal(s.rows[0].bucket_id, BUCKET);
    assert_int_equal(s.rows[0].objects, 3);
    assert_int_equal(s.rows[0].sliced, 1);
    assert_int_equal(s.rows[0].slices, 2);
    assert_int_equal(s.rows[0].pending, 1);
    assert_int_equal(s.rows[0].bytes, 7 + 2 * 508);
    summary_done(&s);
}

/* More than one cursor walks over. */
static void test_many_names_in_several_buckets(void **state)
{
    (void)state;
    enum { COUNT = 45000 };
    struct index *x = fixture_mp(0)->index;
    char name[16];
    struct index_item item = {.name = name, .record = {.size = 3, .version = {.counter = 1}}};
    for (unsigned i = 0; i < COUNT; i++) {
        snprintf(name, sizeof name, "n%06u", i);
        item.bucket_id = i % 9 == 0 ? 3 : 5;
        assert_int_equal(index_fill(x, &item, 1, NULL), 0);
    }
    put_text("a", "1");
    struct summary s = made();
    assert_int_equal(s.count, 3);
    assert_int_equal(s.rows[0].objects, COUNT / 9);
    assert_int_equal(s.rows[1].bucket_id, 5);
    assert_int_equal(s.rows[1].objects, COUNT - COUNT / 9);
    assert_int_equal(s.rows[1].bytes, 3 * (COUNT - COUNT / 9));
    assert_int_equal(s.rows[2].objects, 1);
    summary_done(&s);
}

static bool is_bucket_5(void *ctx, uint64_t bucket_id)
{
    (void)ctx;
    return bucket_id == 5;
}

static void test_some_buckets_alone(void **state)
{
    (void)state;
    static const struct summary_env of_5 = {.acts = acts, .counts = is_bucket_5};
    struct summary s;
    fill(5, "a", (struct index_record){.size = 7});
    fill(ec_slices_bucket(5), "00000000000000ff.0", (struct index_record){.size = 10});
    fill(6, "a", (struct index_record){.size = 9});
    put_text("a", "1");
    assert_int_equal(summary_make(fx.mountpaths, &of_5, &s, NULL), 0);
    assert_int_equal(s.count, 1);
    assert_int_equal(s.rows[0].bucket_id, 5);
    assert_int_equal(s.rows[0].bytes, 17);
    summary_done(&s);
}

/* Who finds nothing pending at two targets, one after the other, and then both marks as they were,
 * knows that nothing has moved between them. */
static void test_the_mark_tells_what_has_come(void **state)
{
    (void)state;
    struct index *x = fixture_mp(0)->index;
    struct index_record pending = {.size = 3, .pending = true, .version = {.counter = 1}};
    struct index_record other = {.size = 3, .version = {.counter = 2}};
    struct summary s = made();
    uint64_t before = s.pending_mark;
    summary_done(&s);
    assert_int_equal(index_put(x, BUCKET, "other", &other, NULL), 0);
    s = made();
    assert_true(s.pending_mark == before);
    summary_done(&s);
    assert_int_equal(index_put(x, BUCKET, "came", &pending, NULL), 0);
    assert_int_equal(index_delete(x, BUCKET, "came", NULL), 0); /* and has gone */
    s = made();
    assert_true(s.pending_mark != before);
    assert_int_equal(s.rows[0].pending, 0);
    summary_done(&s);
    index_settled(x, BUCKET, "came");
    index_settled(x, BUCKET, "other");
}

static void test_a_disabled_one_is_not_left_out_silently(void **state)
{
    (void)state;
    struct summary s;
    assert_int_equal(mountpaths_disable(fx.mountpaths, fixture_mp(0)->path, "a test", false, NULL),
                     0);
    assert_int_equal(summary_make(fx.mountpaths, &env, &s, NULL), E_MOUNTPATH_DISABLED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(test_objects_are_counted_and_tombstones_are_not),
        store_test(test_slices_are_counted_where_they_are),
        store_test(test_many_names_in_several_buckets),
        store_test(test_some_buckets_alone),
        store_test(test_the_mark_tells_what_has_come),
        store_test(test_a_disabled_one_is_not_left_out_silently),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

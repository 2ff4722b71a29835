/* Outputs that an earlier life of the target has finished: those that stand as they were. */
#include "target/sort/built.h"

#include <string.h>

#include "target/format/ec_manifest.h"
#include "target/disk/job_files.h"
#include "target/testing/store_fixture.h"
#include "target/node/target.h"

static struct target target;
static struct job *job;
static struct sort_plan plan = {.output_bucket_id = BUCKET};
static struct sort_part part;

static int setup(void **state)
{
    int rc = fixture_setup(state);
    target = (struct target){.store = fx.store, .mountpaths = fx.mountpaths};
    job = job_new("srt-1", "sort");
    job->spec = json_object();
    job->plan = json_object();
    part = (struct sort_part){.target = &target, .job = job, .plan = &plan};
    return rc != 0 ? rc : job_files_begin(fx.mountpaths, job, NULL);
}

static int teardown(void **state)
{
    job_unref(job);
    return fixture_teardown(state);
}

static void build_of(const char *name, uint64_t order, const char *text)
{
    const struct sort_digest digest = {.low = order, .high = ~order};
    put_text_hidden(name, text, "srt-1");
    assert_int_equal(sort_built_add(&part, name, &digest, NULL), 0);
}

static void build(const char *name, uint64_t order)
{
    build_of(name, order, "text");
}

/* The orders in decimal digits. */
struct orders {
    char text[100];
};

static void note(void *arg, const struct sort_digest *order)
{
    struct orders *o = arg;
    size_t used = strlen(o->text);
    assert_true(order->high == ~order->low);
    snprintf(o->text + used, sizeof o->text - used, "%llu ", (unsigned long long)order->low);
}

static void assert_stand(const char *want)
{
    struct orders o = {0};
    assert_int_equal(sort_built_each(&part, note, &o, NULL), 0);
    assert_string_equal(o.text, want);
}

static void those_that_were_finished_stand(void **state)
{
    (void)state;
    assert_stand("");
    build("a", 1);
    build("b", 2);
    assert_stand("1 2 ");
    build("c", 3);
    assert_stand("1 2 3 ");
}

/* The object that has its name may have its version, too, and its size. */
static void another_one_of_the_name_does_not(void **state)
{
    (void)state;
    build("a", 1);
    build("b", 2);
    assert_int_equal(object_discard(fx.store, BUCKET, "a", "srt-1", NULL), 0);
    put_text_hidden("a", "tex!", "srt-1");
    assert_stand("2 ");
    assert_int_equal(object_discard(fx.store, BUCKET, "b", "srt-1", NULL), 0);
    build_of("a", 4, "other text");
    assert_stand("4 ");
    put_text("b", "not of the job");
    assert_stand("4 ");
}

/* What is hidden is a manifest: an empty file, whatever it stands for. */
static void build_in_slices(const char *name, uint64_t order, uint64_t length, unsigned char sum)
{
    char text[EC_MANIFEST_TEXT_MAX];
    const struct sort_digest digest = {.low = order, .high = ~order};
    const struct ec_manifest m = {.layout = {.k = 2, .m = 1, .unit = 65536, .length = length},
                                  .tag = length,
                                  .checksum = {.type = CHECKSUM_XXH3, .bytes = {sum}}};
    const struct object_put_spec spec = {.bucket_id = BUCKET,
                                         .name = name,
                                         .size = OBJECT_SIZE_UNKNOWN,
                                         .checksum = CHECKSUM_XXH3,
                                         .job_id = "srt-1",
                                         .slices = ec_manifest_text(&m, text)};
    struct object_put *put;
    assert_int_equal(object_put_begin(fx.store, &spec, &put, NULL), 0);
    assert_int_equal(object_put_commit_wait(put, NULL), 0);
    if (order != 0)
        assert_int_equal(sort_built_add(&part, name, &digest, NULL), 0);
}

static void those_in_slices_are_told_apart_by_what_they_stand_for(void **state)
{
    struct object_held held;
    (void)state;
    build_in_slices("a", 1, 1000, 1);
    build_in_slices("b", 2, 2000, 2);
    assert_stand("1 2 ");
    assert_int_equal(object_look(fx.store, BUCKET, "a", &held, NULL), 0);
    assert_false(held.found);
    assert_int_equal(held.hidden_slices, 1000); /* so that nobody takes them for garbage */
    build_in_slices("a", 0, 1001, 1);
    assert_stand("2 ");
    build_in_slices("b", 0, 2000, 3);
    assert_stand("");
}

static void half_an_entry_is_none(void **state)
{
    (void)state;
    struct buf text = BUF_INIT;
    build("a", 1);
    build("b", 2);
    assert_int_equal(job_files_read(fx.mountpaths, "srt-1", "built", &text, NULL), 0);
    for (size_t len = 0; len < text.len; len++) {
        assert_int_equal(job_files_write(fx.mountpaths, "srt-1", "built", text.data, len, NULL), 0);
        assert_stand(len < text.len / 2 ? "" : "1 ");
        build("c", 3); /* behind what is left of it */
        assert_stand(len < text.len / 2 ? "3 " : "1 3 ");
        assert_int_equal(object_discard(fx.store, BUCKET, "c", "srt-1", NULL), 0);
    }
    for (size_t i = 0; i < text.len; i++) {
        text.data[i] = (char)(text.data[i] ^ 1);
        assert_int_equal(
            job_files_write(fx.mountpaths, "srt-1", "built", text.data, text.len, NULL), 0);
        assert_stand(i < text.len / 2 ? "" : "1 ");
        text.data[i] = (char)(text.data[i] ^ 1);
    }
    buf_done(&text);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(those_that_were_finished_stand),
        TEST(another_one_of_the_name_does_not),
        TEST(those_in_slices_are_told_apart_by_what_they_stand_for),
        TEST(half_an_entry_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

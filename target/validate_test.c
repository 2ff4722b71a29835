/* What a validation finds on disks that somebody has been at, and that it finds nothing else. */
#include "target/store_fixture.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>

#include "common/rng.h"
#include "target/object_path.h"
#include "target/validate.h"

static bool all_live(void *ctx, uint64_t bucket_id)
{
    (void)ctx;
    return bucket_id == BUCKET;
}

static bool none_lives(void *ctx, uint64_t bucket_id)
{
    (void)ctx;
    (void)bucket_id;
    return false;
}

/* "file_missing a, checksum_differs b, ": what was found, in order. */
static char *validate_with(struct validate_config config)
{
    struct job_stop stop;
    struct error err = ERROR_INIT;
    struct validate_report *report = validate_report_new();
    config.store = fx.store;
    if (config.bucket_lives == NULL)
        config.bucket_lives = all_live;
    job_stop_init(&stop);
    if (validate_run(&config, &stop, report, &err) != 0)
        fail_msg("%s", err.message);
    job_stop_done(&stop);
    json_t *status = validate_report_status(report), *one;
    struct buf out = BUF_INIT;
    size_t i;
    json_array_foreach(json_object_get(status, "differences"), i, one)
    {
        buf_printf(&out, "%s %s, ", json_string_value(json_object_get(one, "what")),
                   json_string_value(json_object_get(one, "name")));
    }
    buf_puts(&out, "");
    json_decref(status);
    validate_report_free(report);
    return buf_steal(&out);
}

static void assert_found(const char *want)
{
    _cleanup_free_ char *got = validate_with((struct validate_config){.checksums = true});
    assert_string_equal(got, want);
}

static void path_in(const struct mountpath *mp, const char *name, char out[static 200])
{
    struct object_path place;
    object_path_set(&place, BUCKET, name);
    snprintf(out, 200, "%s/.dfc/obj/%s", mp->path, place.text);
}

static void path_to(const char *name, char out[static 200])
{
    path_in(fixture_pick(name), name, out);
}

static void put_some(void)
{
    put_text("a", "aaaa");
    put_text("b", "bbbbbbbb");
    put_text("c", "cc");
    put_text("empty", "");
    put_text_hidden("hidden", "hhh", "job-1");
    assert_int_equal(delete_name("c"), 0);
}

static void test_nothing_on_a_sound_disk(void **state)
{
    (void)state;
    put_some();
    assert_found("");
}

static void test_a_file_that_is_gone(void **state)
{
    (void)state;
    char path[200];
    put_some();
    path_to("a", path);
    assert_int_equal(unlink(path), 0);
    assert_found("file_missing a, ");
    path_to("c", path); /* a tombstone */
    assert_int_equal(unlink(path), 0);
    put_text("a", "again");
    assert_found("file_missing c, ");
}

static void test_bytes_that_are_others(void **state)
{
    (void)state;
    char path[200];
    put_some();
    path_to("b", path);
    int fd = open(path, O_WRONLY);
    assert_int_equal(pwrite(fd, "x", 1, 3), 1);
    _cleanup_free_ char *without = validate_with((struct validate_config){0});
    assert_string_equal(without, "");
    assert_found("checksum_differs b, ");
    assert_int_equal(ftruncate(fd, 2), 0);
    close(fd);
    assert_found("size_differs b, ");
}

static void test_an_attribute_that_is_damaged(void **state)
{
    (void)state;
    char path[200];
    put_some();
    path_to("a", path);
    assert_int_equal(setxattr(path, ATTR_XATTR, "nonsense", 8, 0), 0);
    assert_found("attribute_damaged a, "); /* the index knows its name */
    assert_int_equal(removexattr(path, ATTR_XATTR), 0);
    assert_found("attribute_damaged a, ");
}

static void test_rows_of_the_index(void **state)
{
    (void)state;
    struct index_record rec;
    char job[ATTR_JOB_MAX + 1];
    put_some();
    struct index *x = fixture_pick("b")->index;
    assert_int_equal(index_find(x, BUCKET, "b", &rec, job, NULL), 1);
    rec.size++;
    assert_int_equal(index_put(x, BUCKET, "b", &rec, NULL), 0);
    assert_found("index_differs b, ");
    assert_int_equal(index_delete(x, BUCKET, "b", NULL), 0);
    assert_found("not_indexed b, ");
    rec.size--;
    assert_int_equal(index_put(x, BUCKET, "b", &rec, NULL), 0);
    assert_found("");
    assert_int_equal(index_put(x, BUCKET, "never", &rec, NULL), 0);
    assert_found("file_missing never, ");
}

static void test_files_in_wrong_places(void **state)
{
    (void)state;
    char path[200], there[200];
    put_some();
    const struct mountpath *mine = fixture_pick("a");
    path_to("a", path);
    path_in(mine == fixture_mp(0) ? fixture_mp(1) : fixture_mp(0), "a", there);
    assert_int_equal(mountpath_make_bucket(fixture_mp(0), BUCKET, NULL), 0);
    assert_int_equal(mountpath_make_bucket(fixture_mp(1), BUCKET, NULL), 0);
    assert_int_equal(rename(path, there), 0);
    char *got = validate_with((struct validate_config){.checksums = true});
    assert_non_null(strstr(got, "misplaced a, "));
    assert_non_null(strstr(got, "file_missing a, "));
    free(got);
    path_in(mine, "somebody else", path); /* of another hash */
    assert_int_equal(rename(there, path), 0);
    got = validate_with((struct validate_config){.checksums = true});
    assert_non_null(strstr(got, "misplaced a, "));
    free(got);
}

static void test_a_bucket_on_its_way_out(void **state)
{
    (void)state;
    char path[200];
    put_some();
    path_to("a", path);
    assert_int_equal(unlink(path), 0);
    _cleanup_free_ char *got = validate_with((struct validate_config){.bucket_lives = none_lives});
    assert_string_equal(got, "");
}

static void test_what_cannot_be_looked_at(void **state)
{
    (void)state;
    put_some();
    assert_int_equal(
        mountpaths_disable(fx.mountpaths, mountpath_id(fixture_mp(0)), "by request", false, NULL),
        0);
    assert_found("not_looked_at , ");
}

static void test_an_index_that_is_not_to_be_relied_on(void **state)
{
    (void)state;
    struct error why;
    error_set(&why, E_IO, "the test says so");
    put_some();
    struct mountpath *mp = fixture_pick("a");
    index_set_stale(mp->index, &why);
    assert_found("not_looked_at , ");
}

static void test_more_than_are_shown(void **state)
{
    (void)state;
    struct validate_report *r = validate_report_new();
    char *longest = xcalloc(1, ATTR_NAME_MAX + 1);
    memset(longest, 'n', ATTR_NAME_MAX);
    for (int i = 0; i < 3 * VALIDATE_SHOWN; i++)
        validate_report_add(r, VALIDATE_file_missing, "/d1", 7, longest, longest);
    validate_report_end(r);
    json_t *status = validate_report_status(r);
    assert_int_equal(json_array_size(json_object_get(status, "differences")), VALIDATE_SHOWN);
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(status, "found"), "file_missing")),
        3 * VALIDATE_SHOWN);
    char *text = json_dumps(status, JSON_COMPACT);
    assert_true(strlen(text) < 64 * 1024); /* it goes to every node */
    free(text);
    free(longest);
    json_decref(status);
    validate_report_free(r);
}

/* --- beside writers --------------------------------------------------------------------------- */

enum { WRITERS = 2, NAMES = 12, RUNS = 10 };

struct writer {
    pthread_t thread;
    unsigned number;
    atomic_bool stop;
};

static void *write_on(void *arg)
{
    struct writer *w = arg;
    struct rng r;
    rng_seed(&r, w->number);
    while (!w->stop) {
        char name[16], text[4000];
        snprintf(name, sizeof name, "n%u", (unsigned)rng_below(&r, NAMES));
        size_t len = rng_below(&r, sizeof text - 1);
        memset(text, 'x', len);
        text[len] = '\0';
        if (rng_below(&r, 4) == 0)
            (void)delete_as(name, rng_below(&r, 2) ? DURABILITY_SYNC : DURABILITY_ASYNC, NULL);
        else
            (void)put_text_as(name, text, rng_below(&r, 2) ? DURABILITY_SYNC : DURABILITY_ASYNC,
                              NULL);
    }
    return NULL;
}

static void test_nothing_is_found_under_writers(void **state)
{
    (void)state;
    struct writer writers[WRITERS];
    for (unsigned i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){.number = i};
        assert_int_equal(pthread_create(&writers[i].thread, NULL, write_on, &writers[i]), 0);
    }
    for (int i = 0; i < RUNS; i++)
        assert_found("");
    for (unsigned i = 0; i < WRITERS; i++) {
        writers[i].stop = true;
        pthread_join(writers[i].thread, NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(test_nothing_on_a_sound_disk),
        store_test(test_a_file_that_is_gone),
        store_test(test_bytes_that_are_others),
        store_test(test_an_attribute_that_is_damaged),
        store_test(test_rows_of_the_index),
        store_test(test_files_in_wrong_places),
        store_test(test_a_bucket_on_its_way_out),
        store_test(test_what_cannot_be_looked_at),
        store_test(test_an_index_that_is_not_to_be_relied_on),
        store_test(test_more_than_are_shown),
        store_test(test_nothing_is_found_under_writers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What a validation finds on disks that somebody has been at, and that it finds nothing else. */
#include "target/disk/reindexer.h"
#include "target/testing/store_fixture.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>

#include "common/fault.h"
#include "common/rng.h"
#include "io/file.h"
#include "target/format/object_path.h"
#include "target/store/quarantine.h"
#include "target/scrub/scrub_cursor.h"
#include "target/scrub/validate.h"

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
    assert_found("unknown_format a, ");
    assert_int_equal(setxattr(path, ATTR_XATTR, "\1onsense", 8, 0), 0);
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

/* On both mountpaths, wherever its file belongs. */
static void make_dir_of(const char *name)
{
    struct object_path place;
    object_path_set(&place, BUCKET, name);
    assert_int_equal(mountpath_make_dir(fixture_mp(0), BUCKET, &place, NULL), 0);
    assert_int_equal(mountpath_make_dir(fixture_mp(1), BUCKET, &place, NULL), 0);
}

static void test_files_in_wrong_places(void **state)
{
    (void)state;
    char path[200], there[200];
    put_some();
    const struct mountpath *mine = fixture_pick("a");
    path_to("a", path);
    path_in(mine == fixture_mp(0) ? fixture_mp(1) : fixture_mp(0), "a", there);
    make_dir_of("a");
    make_dir_of("somebody else");
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
    reindexer_free(mp->reindexer); /* it would soon rebuild it */
    mp->reindexer = NULL;
    index_set_stale(mp->index, &why);
    assert_found("not_looked_at , ");
}

static void test_more_than_are_shown(void **state)
{
    (void)state;
    struct validate_report *r = validate_report_new();
    struct validate_part *part = validate_report_part(r, "/d1");
    char *longest = xcalloc(1, ATTR_NAME_MAX + 1);
    memset(longest, 'n', ATTR_NAME_MAX);
    for (int i = 0; i < 3 * VALIDATE_SHOWN; i++)
        validate_part_add(part, VALIDATE_file_missing, 7, longest, longest);
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

/* --- a scrub ---------------------------------------------------------------------------------- */

static char wanted[200]; /* "a b ": of what good copies were asked for */
static pthread_mutex_t wanted_lock = PTHREAD_MUTEX_INITIALIZER;

static void want(void *ctx, uint64_t bucket_id, const char *name)
{
    (void)ctx;
    assert_int_equal(bucket_id, BUCKET);
    pthread_mutex_lock(&wanted_lock);
    size_t len = strlen(wanted);
    snprintf(wanted + len, sizeof wanted - len, "%s ", name);
    pthread_mutex_unlock(&wanted_lock);
}

static char *scrub_as(const char *job_id)
{
    const struct validate_scrub scrub = {.job_id = job_id, .save_ms = 0, .repair_wanted = want};
    wanted[0] = '\0';
    return validate_with((struct validate_config){.checksums = true, .scrub = &scrub});
}

static void assert_scrubbed(const char *job_id, const char *found, const char *asked)
{
    _cleanup_free_ char *got = scrub_as(job_id);
    assert_string_equal(got, found);
    assert_string_equal(wanted, asked);
}

static uint64_t in_quarantine(void)
{
    uint64_t sum = 0, files;
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(quarantine_count(fixture_mp(i), &files, NULL), 0);
        sum += files;
    }
    return sum;
}

/* Reading it is an error, and no 404. */
static void assert_corrupt(const char *name)
{
    struct object o;
    struct error err = ERROR_INIT;
    assert_int_equal(object_open(fx.store, BUCKET, name, &o, &err), E_CORRUPT);
}

static void flip(const char *name)
{
    char path[200];
    path_to(name, path);
    int fd = open(path, O_WRONLY);
    assert_int_equal(pwrite(fd, "\xff", 1, 1), 1);
    close(fd);
}

static void test_a_scrub_of_a_sound_disk(void **state)
{
    (void)state;
    put_some();
    assert_scrubbed("scr-1", "", "");
    assert_int_equal(in_quarantine(), 0);
}

static void test_damaged_bytes_go_into_quarantine(void **state)
{
    (void)state;
    char path[200];
    put_some();
    flip("b");
    path_to("a", path);
    assert_int_equal(truncate(path, 1), 0);
    _cleanup_free_ char *got = scrub_as("scr-1");
    assert_non_null(strstr(got, "checksum_differs b, "));
    assert_non_null(strstr(got, "size_differs a, "));
    assert_true(strstr(wanted, "a ") != NULL && strstr(wanted, "b ") != NULL);
    assert_int_equal(in_quarantine(), 2);
    assert_corrupt("a");
    assert_corrupt("b");
    /* What comes in its place is served, and nobody but the operator empties the quarantine. */
    put_text("a", "again");
    assert_scrubbed("scr-2", "quarantined b, ", "b ");
    assert_int_equal(in_quarantine(), 2);
    assert_int_equal(delete_name("b"), 0);
    assert_scrubbed("scr-3", "", "");
    assert_found("");
}

static void test_a_stub_outlives_the_index(void **state)
{
    (void)state;
    put_some();
    flip("b");
    assert_scrubbed("scr-1", "checksum_differs b, ", "b ");
    fixture_close();
    fixture_forget_markers();
    fixture_open();
    assert_corrupt("b");
    assert_scrubbed("scr-2", "quarantined b, ", "b ");
}

static void test_a_damaged_attribute_goes_into_quarantine(void **state)
{
    (void)state;
    char path[200];
    put_some();
    path_to("a", path);
    assert_int_equal(setxattr(path, ATTR_XATTR, "nonsense", 8, 0), 0);
    assert_scrubbed("scr-0", "unknown_format a, ", "");
    assert_int_equal(in_quarantine(), 0);
    assert_int_equal(setxattr(path, ATTR_XATTR, "\1onsense", 8, 0), 0);
    assert_scrubbed("scr-1", "attribute_damaged a, ", "a ");
    assert_int_equal(in_quarantine(), 1);
    assert_corrupt("a");
    assert_scrubbed("scr-2", "quarantined a, ", "a ");
    put_text("a", "again");
    assert_scrubbed("scr-3", "", "");
}

static void test_a_swapped_pair_goes_into_quarantine(void **state)
{
    (void)state;
    char a[200], b[200];
    put_some();
    path_to("a", a);
    path_to("b", b);
    assert_int_equal(renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE), 0);
    _cleanup_free_ char *got = scrub_as("scr-1");
    assert_non_null(strstr(got, "misplaced a, "));
    assert_non_null(strstr(got, "misplaced b, "));
    assert_int_equal(strlen(wanted), strlen("a b "));
    assert_int_equal(in_quarantine(), 2);
    assert_corrupt("a");
    assert_corrupt("b");
    put_text("a", "again");
    assert_scrubbed("scr-2", "quarantined b, ", "b ");
}

static void test_a_file_that_is_gone_is_asked_for(void **state)
{
    (void)state;
    char path[200];
    put_some();
    path_to("a", path);
    assert_int_equal(unlink(path), 0);
    path_to("c", path); /* a tombstone: nobody misses it */
    assert_int_equal(unlink(path), 0);
    _cleanup_free_ char *got = scrub_as("scr-1");
    assert_non_null(strstr(got, "file_missing a, "));
    assert_non_null(strstr(got, "file_missing c, "));
    assert_string_equal(wanted, "a ");
    assert_int_equal(in_quarantine(), 0);
}

static void test_rows_of_the_index_are_mended(void **state)
{
    (void)state;
    struct index_record rec;
    char job[ATTR_JOB_MAX + 1];
    put_some();
    struct index *x = fixture_pick("b")->index;
    assert_int_equal(index_find(x, BUCKET, "b", &rec, job, NULL), 1);
    rec.size++;
    assert_int_equal(index_put(x, BUCKET, "b", &rec, NULL), 0);
    assert_scrubbed("scr-1", "index_differs b, ", "");
    assert_found("");
    assert_int_equal(index_delete(x, BUCKET, "b", NULL), 0);
    assert_scrubbed("scr-2", "not_indexed b, ", "");
    assert_found("");
}

static void test_what_cannot_be_moved_aside_stays(void **state)
{
    (void)state;
    put_some();
    flip("b");
    assert_int_equal(fault_configure("scrub.quarantine=EIO@1", NULL), 0);
    assert_scrubbed("scr-1", "checksum_differs b, ", "b ");
    fault_configure(NULL, NULL);
    assert_scrubbed("scr-2", "checksum_differs b, ", "b "); /* it is linked already */
    assert_int_equal(in_quarantine(), 1);
    assert_corrupt("b");
}

/* It is what a restart finds: of another job it is nothing. */
static void test_a_scrub_goes_on_where_it_was(void **state)
{
    (void)state;
    char first[200], again[200];
    put_some();
    struct validate_report *report = validate_report_new();
    struct mountpath *mp = fixture_pick("b");
    struct validate_part *part = validate_report_part(report, mp->path);
    validate_part_add(part, VALIDATE_unreadable, BUCKET, "seen before", "");
    struct scrub_cursor at = {.phase = SCRUB_NAMES, .bucket_id = BUCKET, .name = "b"};
    at.nameless[at.nameless_count++] = (struct scrub_nameless){.path = strdup("/nowhere/of/it"),
                                                               .why = strdup("damaged"),
                                                               .bucket_id = BUCKET,
                                                               .what = VALIDATE_attribute_damaged};
    flip("b"); /* it is behind */
    assert_int_equal(scrub_cursor_save(&at, mp, "scr-1", part, NULL), 0);
    scrub_cursor_done(&at);
    validate_report_free(report);
    _cleanup_free_ char *got = scrub_as("scr-1");
    assert_non_null(strstr(got, "unreadable seen before, "));
    assert_non_null(strstr(got, "attribute_damaged , "));
    assert_null(strstr(got, "checksum_differs"));
    path_to("b", first);
    assert_scrubbed("scr-2", "checksum_differs b, ", "b ");
    path_to("b", again);
    assert_string_equal(first, again);
    _cleanup_free_ char *done = scrub_as("scr-2"); /* through already: the same report */
    assert_string_equal(done, "checksum_differs b, ");
    assert_string_equal(wanted, "");
}

static void test_a_cursor_that_cannot_be_read(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "", "{}", "nonsense", "{\"format\": 1, \"job\": \"scr-1\"}",
        ("{\"format\": 1, \"job\": \"scr-1\", \"phase\": \"names\", \"bucket_id\": 1, "
         "\"fan\": 999}")};
    put_some();
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct mountpath *mp = fixture_pick("b");
        _cleanup_free_ char *path = xprintf("%s/.dfc/scrub.json", mp->path);
        assert_int_equal(file_replace(path, texts[i], strlen(texts[i]), 0600, NULL), 0);
        put_text("b", "bbbbbbbb");
        flip("b");
        assert_scrubbed("scr-1", "checksum_differs b, ", "b ");
        for (size_t m = 0; m < 2; m++) {
            _cleanup_free_ char *left = xprintf("%s/.dfc/scrub.json", fixture_mp(m)->path);
            assert_int_equal(unlink(left), 0);
        }
    }
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
    for (int i = 0; i < RUNS; i++) {
        char id[16];
        snprintf(id, sizeof id, "scr-%d", i);
        assert_found("");
        assert_scrubbed(id, "", "");
    }
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
        store_test(test_a_scrub_of_a_sound_disk),
        store_test(test_damaged_bytes_go_into_quarantine),
        store_test(test_a_stub_outlives_the_index),
        store_test(test_a_damaged_attribute_goes_into_quarantine),
        store_test(test_a_swapped_pair_goes_into_quarantine),
        store_test(test_a_file_that_is_gone_is_asked_for),
        store_test(test_rows_of_the_index_are_mended),
        store_test(test_what_cannot_be_moved_aside_stays),
        store_test(test_a_scrub_goes_on_where_it_was),
        store_test(test_a_cursor_that_cannot_be_read),
        store_test(test_nothing_is_found_under_writers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Removing destroyed buckets and old tombstones. */
#include "target/store/sweep.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cluster/documents/state_holder.h"
#include "common/clock.h"
#include "target/format/object_path.h"
#include "target/testing/store_fixture.h"

static const atomic_bool never = false;
static struct sweep_count swept; /* of all tests */
static const struct sweep_keeps no_keeps = {.all = NULL};

/* A state that has had buckets up to 9 and still has bucket 7. */
static struct cluster_state *state_with_bucket(bool has_it)
{
    struct cluster_state *s = state_new("c-1");
    static struct bucket bucket;
    s->version = 5;
    s->next_bucket_id = 10;
    if (!has_it)
        return s;
    bucket = (struct bucket){.id = BUCKET, .name = (char[]){"b"}};
    s->bmd.buckets = &bucket;
    s->bmd.count = 1;
    return s;
}

/* The bucket in it was never the state's own. */
static void state_forget(struct cluster_state *s)
{
    s->bmd.buckets = NULL;
    s->bmd.count = 0;
    state_unref(s);
}

/* So many that some are on every mountpath: where is drawn by ids that are drawn. */
enum { NAMES = 26 };

static void put_in(uint64_t bucket_id, const char *name)
{
    struct object_put_spec spec = spec_of(name, DURABILITY_ASYNC);
    spec.bucket_id = bucket_id;
    assert_int_equal(put_bytes(&spec, "x", 1, NULL), 0);
}

/* Beside a sweeper, which may take away the bucket's directory just when a put needs it: that one
 * fails. */
static void put_in_the_end(uint64_t bucket_id, const char *name)
{
    struct object_put_spec spec = spec_of(name, DURABILITY_ASYNC);
    spec.bucket_id = bucket_id;
    int code = put_bytes(&spec, "x", 1, NULL);
    for (unsigned i = 0; i < 1000 && code != 0; i++)
        code = put_bytes(&spec, "x", 1, NULL);
    assert_int_equal(code, 0);
}

static bool has(uint64_t bucket_id, const char *name)
{
    struct object o;
    return object_head(fx.store, bucket_id, name, &o, NULL) == 0;
}

static unsigned names_in_index(uint64_t bucket_id)
{
    unsigned count = 0;
    for (size_t i = 0; i < fixture_set()->count; i++) {
        struct index_cursor *c;
        assert_int_equal(index_cursor_open(fixture_mp(i)->index, &c, NULL), 0);
        int found = index_cursor_seek(c, bucket_id, "", false, NULL);
        for (; found == 1; found = index_cursor_next(c, NULL))
            count++;
        index_cursor_close(c);
    }
    return count;
}

static void test_dead_buckets_go_others_stay(void **state)
{
    (void)state;
    char name[16];
    for (unsigned i = 0; i < 50; i++) {
        snprintf(name, sizeof name, "o%u", i);
        put_in(5, name);
        put_in(BUCKET, name);
        put_in(12, name); /* of a state that is newer than ours */
    }
    struct cluster_state *s = state_with_bucket(true);
    for (int again = 0; again < 2; again++)
        assert_int_equal(sweep_dead_buckets(fx.store, s, &never, &swept, NULL), 0);
    assert_false(has(5, "o1"));
    assert_int_equal(names_in_index(5), 0);
    assert_int_equal(names_in_index(BUCKET), 50);
    assert_int_equal(names_in_index(12), 50);
    assert_true(has(BUCKET, "o1"));
    assert_true(has(12, "o1"));
    assert_int_equal(count_in("mp1", "trash") + count_in("mp2", "trash"), 0);
    assert_int_equal(count_in("mp1", "obj"), 2);
    state_forget(s);
}

/* What an interrupted removal has left in the index goes, too. */
static void test_entries_without_files_go(void **state)
{
    (void)state;
    struct index_record rec = {.size = 1};
    char longest[ATTR_NAME_MAX + 1];
    memset(longest, 'n', sizeof longest - 1);
    longest[ATTR_NAME_MAX] = '\0';
    struct index *x = fixture_mp(0)->index;
    assert_int_equal(index_put(x, 3, "left", &rec, NULL), 0);
    assert_int_equal(index_put(x, 4, longest, &rec, NULL), 0);
    struct cluster_state *s = state_with_bucket(false);
    assert_int_equal(sweep_dead_buckets(fx.store, s, &never, &swept, NULL), 0);
    assert_int_equal(names_in_index(3) + names_in_index(4), 0);
    uint64_t id;
    assert_int_equal(index_next_bucket(x, 0, &id, NULL), 0);
    state_forget(s);
}

static void test_stopping_leaves_the_rest_for_later(void **state)
{
    (void)state;
    put_in(5, "a");
    struct cluster_state *s = state_with_bucket(false);
    const atomic_bool stop = true;
    assert_int_equal(sweep_dead_buckets(fx.store, s, &stop, &swept, NULL), 0);
    assert_true(has(5, "a"));
    assert_int_equal(sweep_dead_buckets(fx.store, s, &never, &swept, NULL), 0);
    assert_false(has(5, "a"));
    state_forget(s);
}

static void test_only_old_tombstones_go(void **state)
{
    (void)state;
    char name[16];
    for (unsigned i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "o%02u", i);
        put_text(name, "x");
        if (i % 2 == 0)
            assert_int_equal(delete_name(name), 0);
    }
    swept = (struct sweep_count){0};
    assert_int_equal(sweep_tombstones(fx.store, 1700000000000, &no_keeps, &never, &swept, NULL), 0);
    assert_int_equal(swept.tombstones, 0); /* none is old */
    assert_int_equal(names_in_index(BUCKET), 20);
    assert_int_equal(sweep_tombstones(fx.store, INT64_MAX, &no_keeps, &never, &swept, NULL), 0);
    assert_int_equal(names_in_index(BUCKET), 10);
    assert_int_equal(swept.tombstones, 10);
    for (unsigned i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "o%02u", i);
        assert_text(name, i % 2 == 0 ? NULL : "x");
    }
    fixture_close();
    fixture_forget_markers();
    fixture_open();
    assert_int_equal(names_in_index(BUCKET), 10); /* the files are gone as well */
}

static bool keeps_b(void *arg, uint64_t bucket_id, const char *name)
{
    assert_ptr_equal(arg, &swept);
    return bucket_id == BUCKET && strcmp(name, "b") == 0;
}

/* An owner may lack it: it goes when it is known to be everywhere. */
static void test_what_an_owner_may_lack_stays(void **state)
{
    (void)state;
    const struct sweep_keeps keeps = {.name = keeps_b, .arg = &swept};
    for (const char *name = "abc"; *name != '\0'; name++) {
        put_text((char[]){*name, '\0'}, "x");
        assert_int_equal(delete_name((char[]){*name, '\0'}), 0);
    }
    swept = (struct sweep_count){0};
    assert_int_equal(sweep_tombstones(fx.store, INT64_MAX, &keeps, &never, &swept, NULL), 0);
    assert_int_equal(swept.tombstones, 2);
    assert_int_equal(names_in_index(BUCKET), 1);
    assert_int_equal(sweep_tombstones(fx.store, INT64_MAX, &no_keeps, &never, &swept, NULL), 0);
    assert_int_equal(swept.tombstones, 3);
    assert_int_equal(names_in_index(BUCKET), 0);
}

/* Nothing is known of the name any more, but an entity tag stands for the same bytes for ever: also
 * after a restart, and when one of the disks is new. */
static void test_a_forgotten_version_does_not_come_again(void **state)
{
    (void)state;
    put_text("a", "1");
    put_text("a", "2");
    struct version old = version_of("a");
    assert_int_equal(delete_name("a"), 0);
    assert_int_equal(sweep_tombstones(fx.store, INT64_MAX, &no_keeps, &never, &swept, NULL), 0);
    assert_int_equal(names_in_index(BUCKET), 0);
    put_text("a", "3");
    struct version later = version_of("a");
    assert_true(version_compare(&later, &old) > 0);
    assert_int_equal(delete_name("a"), 0);
    assert_int_equal(sweep_tombstones(fx.store, INT64_MAX, &no_keeps, &never, &swept, NULL), 0);
    fixture_close();
    _cleanup_free_ char *mp2 = xprintf("%s/mp2", fx.dir);
    assert_int_equal(file_remove_tree(mp2, NULL), 0);
    fixture_open_with("1,3", (struct mountpaths_config){.lost_ok = true});
    put_text("a", "4");
    struct version last = version_of("a");
    assert_true(version_compare(&last, &later) > 0);
}

/* Where the floor cannot be raised the tombstone stays. */
static void test_no_tombstone_goes_before_its_version_is_safe(void **state)
{
    (void)state;
    put_text("a", "1");
    assert_int_equal(delete_name("a"), 0);
    assert_int_equal(fault_configure("disk.write=ENOSPC", NULL), 0);
    assert_int_equal(sweep_tombstones(fx.store, INT64_MAX, &no_keeps, &never, &swept, NULL),
                     E_NO_SPACE);
    assert_int_equal(fault_configure(NULL, NULL), 0);
    assert_int_equal(names_in_index(BUCKET), 1);
    assert_int_equal(sweep_tombstones(fx.store, INT64_MAX, &no_keeps, &never, &swept, NULL), 0);
    assert_int_equal(names_in_index(BUCKET), 0);
}

/* A disk, or a name, that cannot be swept does not keep the others. */
static void test_what_fails_does_not_keep_the_rest(void **state)
{
    (void)state;
    struct cluster_state *s = state_with_bucket(true);
    for (unsigned i = 0; i < NAMES; i++) {
        put_in(5, (char[]){(char)('a' + i), '\0'});
        put_text((char[]){(char)('a' + i), '\0'}, "x");
        assert_int_equal(delete_name((char[]){(char)('a' + i), '\0'}), 0);
    }
    struct object_path place;
    object_path_set(&place, BUCKET, "a");
    _cleanup_free_ char *file = xprintf("%s/.dfc/obj/%s", fixture_pick("a")->path, place.text);
    assert_int_equal(setxattr(file, ATTR_XATTR, "\2newer", 7, 0), 0); /* a newer release's */
    assert_int_equal(sweep_tombstones(fx.store, INT64_MAX, &no_keeps, &never, &swept, NULL),
                     E_UNSUPPORTED);
    assert_int_equal(names_in_index(BUCKET), 1);

    _cleanup_free_ char *obj = xprintf("%s/mp1/.dfc/obj", fx.dir);
    _cleanup_free_ char *away = xprintf("%s/mp1/.dfc/away", fx.dir);
    assert_int_equal(rename(obj, away), 0);
    assert_int_not_equal(sweep_dead_buckets(fx.store, s, &never, &swept, NULL), 0);
    assert_int_equal(count_in("mp2", "obj"), 1); /* bucket 7 */
    assert_int_equal(rename(away, obj), 0);
    assert_int_equal(sweep_dead_buckets(fx.store, s, &never, &swept, NULL), 0);
    assert_int_equal(count_in("mp1", "obj"), 1);
    state_forget(s);
}

/* An object that was made between the look and the removal stays. */
static void test_what_is_no_tombstone_any_more_stays(void **state)
{
    (void)state;
    put_text("a", "x");
    assert_int_equal(object_forget_tombstone(fx.store, BUCKET, "a", INT64_MAX, NULL), 0);
    assert_text("a", "x");
    put_text_hidden("h", "x", "srt-1");
    assert_int_equal(object_forget_tombstone(fx.store, BUCKET, "h", INT64_MAX, NULL), 0);
    fx.committed_job = "srt-1";
    assert_text("h", "x");
    assert_int_equal(object_forget_tombstone(fx.store, BUCKET, "none", INT64_MAX, NULL), 0);
}

static void test_the_thread_does_it_when_woken(void **state)
{
    (void)state;
    put_in(5, "a");
    struct cluster_state *alive = state_new("c-1");
    struct state_holder *holder = state_holder_new(alive);
    const struct sweeper_config config = {.store = fx.store,
                                          .state = holder,
                                          .interval_ms = 3600000,
                                          .tombstone_ttl_ms = 3600000,
                                          .flush_ms = 3600000};
    struct sweeper *sweeper;
    assert_int_equal(sweeper_new(&config, &sweeper, NULL), 0);
    struct cluster_state *s = state_with_bucket(false);
    assert_true(state_advance(holder, s));
    sweeper_wake(sweeper);
    for (unsigned i = 0; i < 10000 && (has(5, "a") || names_in_index(5) > 0); i++)
        usleep(1000);
    assert_false(has(5, "a"));
    sweeper_free(sweeper);
    state_holder_free(holder);
    state_unref(s);
}

/* It had looked for the bucket before it was destroyed, and makes its directory anew. */
static void test_what_a_late_put_leaves_goes_with_time(void **state)
{
    (void)state;
    struct cluster_state *s = state_with_bucket(true);
    struct state_holder *holder = state_holder_new(s);
    const struct sweeper_config config = {.store = fx.store,
                                          .state = holder,
                                          .interval_ms = 10,
                                          .tombstone_ttl_ms = 3600000,
                                          .flush_ms = 3600000};
    struct sweeper *sweeper;
    for (unsigned i = 0; i < NAMES; i++)
        put_in(4, (char[]){(char)('a' + i), '\0'}); /* on every mountpath */
    assert_int_equal(sweeper_new(&config, &sweeper, NULL), 0);
    for (unsigned i = 0; i < 10000 && names_in_index(4) > 0; i++)
        usleep(1000);
    put_in_the_end(5, "late"); /* behind its first look, and nobody wakes it */
    for (unsigned i = 0; i < 10000 && (has(5, "late") || names_in_index(5) > 0); i++)
        usleep(1000);
    assert_false(has(5, "late"));
    sweeper_free(sweeper);
    s->bmd.buckets = NULL;
    s->bmd.count = 0;
    state_holder_free(holder);
}

static void make_tmp(const char *name, int64_t age_s)
{
    const struct mountpath *mp = fixture_mp(0);
    int fd = openat(mp->tmp_fd, name, O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    const struct timespec at = {.tv_sec = time(NULL) - age_s};
    assert_int_equal(futimens(fd, (const struct timespec[]){at, at}), 0);
    close(fd);
}

static bool has_tmp(const char *name)
{
    return faccessat(fixture_mp(0)->tmp_fd, name, F_OK, 0) == 0;
}

static void test_abandoned_files_go_others_stay(void **state)
{
    (void)state;
    const int64_t older_than_ms = clock_wall_ms() - 3600 * 1000;
    make_tmp("old", 3700);
    make_tmp("young", 3500);
    assert_int_equal(mkdirat(fixture_mp(0)->tmp_fd, "dir", 0700), 0);
    swept = (struct sweep_count){0};
    assert_int_equal(sweep_abandoned(fx.store, older_than_ms, &never, &swept, NULL), 0);
    assert_int_equal(swept.files, 1);
    assert_false(has_tmp("old"));
    assert_true(has_tmp("young"));
    assert_true(has_tmp("dir"));
    assert_int_equal(sweep_abandoned(fx.store, clock_wall_ms() + 2000, &never, &swept, NULL), 0);
    assert_int_equal(swept.files, 3);
    assert_false(has_tmp("dir"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(test_dead_buckets_go_others_stay),
        store_test(test_entries_without_files_go),
        store_test(test_stopping_leaves_the_rest_for_later),
        store_test(test_only_old_tombstones_go),
        store_test(test_what_an_owner_may_lack_stays),
        store_test(test_a_forgotten_version_does_not_come_again),
        store_test(test_no_tombstone_goes_before_its_version_is_safe),
        store_test(test_what_fails_does_not_keep_the_rest),
        store_test(test_what_is_no_tombstone_any_more_stays),
        store_test(test_the_thread_does_it_when_woken),
        store_test(test_what_a_late_put_leaves_goes_with_time),
        store_test(test_abandoned_files_go_others_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Dumps that mounts make by themselves, over a bucket in memory. */
#include "mount/volfs/dumper.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/condition.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/metrics.h"
#include "mount/meta/memory.h"
#include "mount/volfs/dump_file.h"
#include "mount/volume/check/check.h"
#include "mount/volume/dump.h"
#include "mount/volume/testing/clients.h"

enum { OBJECTS = 32, EVERY_MS = 3600000, RETRY_MS = 600000, KEEP = 3, PATIENCE_MS = 30000 };

struct object {
    char *key, *data;
    size_t size;
};

static struct bucket {
    pthread_mutex_t lock;
    pthread_cond_t news;
    struct object objects[OBJECTS];
    unsigned count, puts;
    bool is_full;
} bucket = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* A mount: how often it has listed the bucket since the last put. */
struct mount {
    struct dumper *dumper;
    unsigned lists;
    bool is_broken; /* its puts fail */
};
static struct mount mounts[2];
static uint64_t errors_before; /* the test */

/* ---- the store ---- */

static int list(void *context, const char *prefix, void (*each)(void *to, const char *key),
                void *to, struct error *err)
{
    struct mount *m = context;
    (void)err;
    pthread_mutex_lock(&bucket.lock);
    m->lists++;
    for (unsigned i = 0; i < bucket.count; i++) {
        if (strncmp(bucket.objects[i].key, prefix, strlen(prefix)) == 0)
            each(to, bucket.objects[i].key);
    }
    pthread_cond_broadcast(&bucket.news);
    pthread_mutex_unlock(&bucket.lock);
    return 0;
}

static int put(void *context, const char *key, int fd, struct error *err)
{
    struct stat st;
    const struct mount *m = context;
    assert_int_equal(fstat(fd, &st), 0);
    char *data = xmalloc((size_t)st.st_size);
    if (pread(fd, data, (size_t)st.st_size, 0) != st.st_size)
        abort();
    pthread_mutex_lock(&bucket.lock);
    bucket.puts++;
    const bool is_full = m->is_broken || bucket.is_full || bucket.count == OBJECTS;
    if (!is_full)
        bucket.objects[bucket.count++] = (struct object){xstrdup(key), data, (size_t)st.st_size};
    mounts[0].lists = mounts[1].lists = 0;
    pthread_cond_broadcast(&bucket.news);
    pthread_mutex_unlock(&bucket.lock);
    if (!is_full)
        return 0;
    free(data);
    return error_set(err, E_NO_SPACE, "the bucket's quota is used up");
}

static void drop(unsigned at)
{
    free(bucket.objects[at].key);
    free(bucket.objects[at].data);
    bucket.objects[at] = bucket.objects[--bucket.count];
}

static int removed(void *context, const char *key, struct error *err)
{
    (void)context;
    (void)err;
    pthread_mutex_lock(&bucket.lock);
    for (unsigned i = 0; i < bucket.count; i++) {
        if (strcmp(bucket.objects[i].key, key) == 0)
            drop(i--);
    }
    pthread_cond_broadcast(&bucket.news);
    pthread_mutex_unlock(&bucket.lock);
    return 0;
}

static void add_object(const char *key)
{
    bucket.objects[bucket.count++] = (struct object){xstrdup(key), xstrdup(""), 0};
}

static bool has_object(const char *key)
{
    bool found = false;
    pthread_mutex_lock(&bucket.lock);
    for (unsigned i = 0; i < bucket.count; i++)
        found |= strcmp(bucket.objects[i].key, key) == 0;
    pthread_mutex_unlock(&bucket.lock);
    return found;
}

/* ---- mounts ---- */

static void start(struct mount *m, struct volume *v)
{
    struct error err = ERROR_INIT;
    const struct dumper_options options = {
        .every_ms = EVERY_MS, .keep = KEEP, .tick_ms = 1, .retry_ms = RETRY_MS};
    const struct dumper_store store = {.context = m, .list = list, .put = put, .remove = removed};
    assert_int_equal(dumper_start(&options, v, f.m, &store, &m->dumper, &err), 0);
}

static void stop(struct mount *m)
{
    dumper_end(m->dumper);
    m->dumper = NULL;
}

/* Until so many puts were made, and each mount of `seen` has looked after the last one. */
static void wait_for_puts(unsigned puts, unsigned seen)
{
    const struct timespec until = clock_after(PATIENCE_MS);
    pthread_mutex_lock(&bucket.lock);
    while (bucket.puts < puts || (seen > 0 && mounts[0].lists == 0) ||
           (seen > 1 && mounts[1].lists == 0))
        if (pthread_cond_timedwait(&bucket.news, &bucket.lock, &until) != 0)
            break;
    const unsigned made = bucket.puts;
    pthread_mutex_unlock(&bucket.lock);
    assert_int_equal(made, puts);
}

static unsigned puts_so_far(void)
{
    pthread_mutex_lock(&bucket.lock);
    const unsigned made = bucket.puts;
    pthread_mutex_unlock(&bucket.lock);
    return made;
}

/* Or until there are more puts. */
static void wait_for_looks(const struct mount *m, unsigned looks, unsigned puts)
{
    const struct timespec until = clock_after(PATIENCE_MS);
    pthread_mutex_lock(&bucket.lock);
    while (m->lists < looks && bucket.puts <= puts)
        if (pthread_cond_timedwait(&bucket.news, &bucket.lock, &until) != 0)
            break;
    pthread_mutex_unlock(&bucket.lock);
}

/* Until so many dumps have failed, and their mounts have done with them. */
static void wait_for_errors(unsigned count)
{
    const uint64_t until_ms = clock_ms() + PATIENCE_MS;
    while (metric_sum(M_mount_dump_errors_total, "") < errors_before + count &&
           clock_ms() < until_ms)
        sched_yield();
}

static int setup(void **state)
{
    condition_init(&bucket.news);
    errors_before = metric_sum(M_mount_dump_errors_total, "");
    return clients_setup(state);
}

static int teardown(void **state)
{
    stop(&mounts[0]);
    stop(&mounts[1]);
    while (bucket.count > 0)
        drop(0);
    bucket.puts = 0;
    bucket.is_full = false;
    mounts[0].lists = mounts[1].lists = 0;
    mounts[0].is_broken = false;
    pthread_cond_destroy(&bucket.news);
    return clients_teardown(state);
}

/* ---- tests ---- */

static void names_tell_the_moment(void **state)
{
    static const char *const others[] = {
        "home/meta/20261130T235412Z.jsonl",     "home/meta/20261130T235412Z.jsonl.gz2",
        "home/meta/20261330T235412Z.jsonl.gz",  "home/b/20261130T235412Z.jsonl.gz",
        "other/meta/20261130T235412Z.jsonl.gz", "home/meta/",
        "home/meta/2026113T0235412Z.jsonl.gz",  "home/meta/ 20261130T235412Z.jsonl.gz",
    };
    int64_t unix_s;
    (void)state;
    _cleanup_free_ char *key = dumper_key("home", 1796082852);
    assert_string_equal(key, "home/meta/20261130T235412Z.jsonl.gz");
    assert_true(dumper_time("home", key, &unix_s));
    assert_int_equal(unix_s, 1796082852);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(dumper_time("home", others[i], &unix_s));
}

static void two_mounts_make_one_dump(void **state)
{
    (void)state;
    start(&mounts[0], f.a);
    start(&mounts[1], f.b);
    wait_for_puts(1, 2);
    for (unsigned hour = 2; hour <= 6; hour++) {
        advance(EVERY_MS);
        wait_for_puts(hour, 2);
    }
    stop(&mounts[0]);
    stop(&mounts[1]);
    assert_int_equal(bucket.puts, 6);
}

static void the_newest_are_kept(void **state)
{
    const int64_t first_ms = f.now_ms;
    _cleanup_free_ char *foreign = xprintf("%s/meta/notes.txt", small_format().name);
    _cleanup_free_ char *block = xprintf("%s/b/00/block", small_format().name);
    (void)state;
    add_object(foreign);
    add_object(block);
    start(&mounts[0], f.a);
    wait_for_puts(1, 1);
    for (unsigned hour = 2; hour <= 6; hour++) {
        advance(EVERY_MS);
        wait_for_puts(hour, 1);
    }
    stop(&mounts[0]);
    assert_int_equal(bucket.count, KEEP + 2);
    for (unsigned hour = 0; hour < 6; hour++) {
        _cleanup_free_ char *key =
            dumper_key(small_format().name, (first_ms + hour * (int64_t)EVERY_MS) / 1000);
        assert_int_equal(has_object(key), hour >= 3);
    }
    assert_true(has_object(foreign));
    assert_true(has_object(block));
}

static void another_mount_goes_on(void **state)
{
    (void)state;
    start(&mounts[0], f.a);
    wait_for_puts(1, 1);
    start(&mounts[1], f.b);
    stop(&mounts[0]);
    volume_close(f.a);
    f.a = NULL;
    advance(EVERY_MS);
    wait_for_puts(2, 0);
}

static void what_fails_is_tried_again(void **state)
{
    (void)state;
    bucket.is_full = true;
    start(&mounts[0], f.a);
    wait_for_puts(1, 0);
    advance(RETRY_MS);
    wait_for_puts(2, 0);
    pthread_mutex_lock(&bucket.lock);
    assert_int_equal(bucket.count, 0);
    bucket.is_full = false;
    pthread_mutex_unlock(&bucket.lock);
    advance(RETRY_MS);
    wait_for_puts(3, 1);
    stop(&mounts[0]);
    assert_int_equal(bucket.count, 1);
    assert_int_equal(bucket.puts, 3);
}

static void a_mount_that_cannot_dump_stops_no_other(void **state)
{
    (void)state;
    mounts[0].is_broken = true;
    start(&mounts[0], f.a);
    wait_for_errors(1);
    start(&mounts[1], f.b);
    advance(RETRY_MS / 2);
    wait_for_puts(2, 0);
    stop(&mounts[0]);
    stop(&mounts[1]);
    assert_int_equal(bucket.count, 1);
}

/* A bucket that refuses all does not get the dump of each mount at once. */
static void mounts_that_cannot_dump_take_turns(void **state)
{
    (void)state;
    bucket.is_full = true;
    start(&mounts[0], f.a);
    wait_for_errors(1);
    start(&mounts[1], f.b);
    wait_for_looks(&mounts[1], 3, 1);
    assert_int_equal(puts_so_far(), 1);
    advance(RETRY_MS / 2);
    wait_for_errors(2);
    advance(RETRY_MS / 2);
    wait_for_errors(3);
    stop(&mounts[0]);
    stop(&mounts[1]);
    assert_int_equal(bucket.puts, 3);
}

/* ---- what is stored ---- */

static int load_bytes(const struct object *o, size_t size, struct meta **m, struct error *err)
{
    struct dump_tally tally;
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_int_equal(fwrite(o->data, 1, size, file), size);
    rewind(file);
    FILE *in = dump_file_read(fileno(file));
    assert_non_null(in);
    struct volume_format format;
    int rc = dump_format(in, &format, err);
    if (rc == 0)
        rewind(in);
    assert_int_equal(meta_memory_ops.open("", true, m, err), 0);
    if (rc == 0)
        rc = dump_load(*m, in, 1, &tally, err);
    fclose(in);
    fclose(file);
    return rc;
}

static void a_dump_is_loaded(void **state)
{
    struct error err = ERROR_INIT;
    struct meta *m;
    struct check c;
    const struct volume_format format = small_format();
    (void)state;
    for (unsigned i = 0; i < 200; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%u", i);
        make(VOLUME_ROOT, name, S_IFREG | 0644);
    }
    start(&mounts[0], f.a);
    wait_for_puts(1, 1);
    stop(&mounts[0]);
    const struct object *o = &bucket.objects[0];
    if (load_bytes(o, o->size, &m, &err) != 0)
        fail_msg("%s", err.message);
    assert_int_equal(check_run(&c, m, &format, &err), 0);
    assert_int_equal(c.count, 0);
    assert_int_equal(c.inodes, 201);
    check_done(&c);
    meta_close(m);
    for (size_t size = 0; size < o->size; size += 97) { /* a part is none */
        assert_int_not_equal(load_bytes(o, size, &m, &err), 0);
        meta_close(m);
    }
}

static bool always(void *context)
{
    (void)context;
    return true;
}

static void a_dump_can_be_given_up(void **state)
{
    struct error err = ERROR_INIT;
    struct dump_tally tally;
    (void)state;
    for (unsigned i = 0; i < 200; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%u", i);
        make(VOLUME_ROOT, name, S_IFREG | 0644);
    }
    FILE *file = tmpfile();
    assert_non_null(file);
    FILE *to = dump_file_write(fileno(file), always, NULL);
    assert_non_null(to);
    assert_int_not_equal(dump_save(f.m, to, &tally, &err), 0);
    assert_true(tally.keys < 200);
    fclose(to);
    fclose(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_tell_the_moment),
        cmocka_unit_test_setup_teardown(two_mounts_make_one_dump, setup, teardown),
        cmocka_unit_test_setup_teardown(the_newest_are_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(another_mount_goes_on, setup, teardown),
        cmocka_unit_test_setup_teardown(what_fails_is_tried_again, setup, teardown),
        cmocka_unit_test_setup_teardown(a_mount_that_cannot_dump_stops_no_other, setup, teardown),
        cmocka_unit_test_setup_teardown(mounts_that_cannot_dump_take_turns, setup, teardown),
        cmocka_unit_test_setup_teardown(a_dump_is_loaded, setup, teardown),
        cmocka_unit_test_setup_teardown(a_dump_can_be_given_up, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Threads of two clients on one volume, over each engine: each name is made once, each number is
 * appended once, counters add up, a quota is used up and not exceeded, and dumps that are made
 * meanwhile are of one moment. */
#include "mount/volume/trees/trees.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "mount/meta/memory.h"
#include "mount/meta/testing/engines.h"
#include "mount/volume/check/check.h"
#include "mount/volume/dump.h"

enum { THREADS = 6, NAMES = 30, APPENDS = 15, COUNTED = 8, QUOTA = 20, DUMPS = 8 };

struct worker {
    struct volume *v;
    uint64_t log;     /* a file that all append to */
    uint64_t limited; /* a directory with a quota */
    unsigned number, made, counted, errors;
};

static void make_names(struct worker *w)
{
    for (unsigned i = 0; i < NAMES; i++) {
        char name[16];
        struct volume_inode out;
        const struct volume_new what = {.mode = S_IFDIR | 0755};
        snprintf(name, sizeof name, "n%u", i);
        int rc = volume_create(w->v, VOLUME_ROOT, name, &what, &out);
        w->made += rc == 0;
        w->errors += rc != 0 && rc != -EEXIST;
    }
}

/* Into each other, and back: a loop would be found by no one. */
static void move_names(struct worker *w)
{
    for (unsigned i = 0; i < NAMES; i++) {
        struct volume_inode to;
        char from_name[16], to_name[16];
        snprintf(from_name, sizeof from_name, "n%u", (i * 7 + w->number) % NAMES);
        snprintf(to_name, sizeof to_name, "n%u", (i * 11 + 2 * w->number) % NAMES);
        int rc = volume_lookup(w->v, VOLUME_ROOT, to_name, &to);
        if (rc == 0)
            rc = volume_rename(w->v, VOLUME_ROOT, from_name, to.ino, from_name, RENAME_NOREPLACE);
        w->errors += rc != 0 && rc != -ENOENT && rc != -EINVAL && rc != -EEXIST;
    }
}

static void append_numbers(struct worker *w)
{
    for (unsigned i = 0; i < APPENDS; i++) {
        struct volume_piece p = {.length = 3, .size = 3};
        int rc = volume_new_slice(w->v, &p.slice);
        if (rc == 0)
            rc = volume_write(w->v, w->log, &p, 1, VOLUME_APPEND, NULL);
        w->errors += rc != 0;
    }
}

/* Of all threads together they are more than there may be. */
static void fill_quota(struct worker *w)
{
    for (unsigned i = 0; i < COUNTED; i++) {
        char name[16];
        struct volume_inode out;
        const struct volume_new what = {.mode = S_IFIFO | 0644};
        snprintf(name, sizeof name, "q%u-%u", w->number, i);
        int rc = volume_create(w->v, w->limited, name, &what, &out);
        w->counted += rc == 0;
        w->errors += rc != 0 && rc != -EDQUOT;
    }
}

static uint64_t make_limited(struct volume *v)
{
    struct volume_quota q;
    struct volume_inode directory;
    const struct volume_new what = {.mode = S_IFDIR | 0755};
    const struct volume_quota_limits limits = {QUOTA, VOLUME_QUOTA_AS_IT_IS};
    assert_int_equal(volume_create(v, VOLUME_ROOT, "limited", &what, &directory), 0);
    assert_int_equal(volume_quota_set(v, directory.ino, &limits, NULL, &q), 0);
    return directory.ino;
}

static void check_quota(struct volume *v, uint64_t limited, unsigned counted)
{
    struct volume_quota *all;
    size_t count;
    struct arena *arena = arena_new(4096);
    assert_int_equal(counted, QUOTA);
    assert_int_equal(volume_quota_list(v, arena, &all, &count), 0);
    assert_int_equal(count, 1);
    assert_int_equal(all[0].directory, limited);
    assert_int_equal(all[0].inodes, QUOTA);
    assert_int_equal(all[0].inodes_left, 0);
    arena_free(arena);
}

static void *work(void *arg)
{
    make_names(arg);
    fill_quota(arg);
    append_numbers(arg);
    move_names(arg);
    return NULL;
}

/* Directories below, each counted once; aborts where they are more than can be. */
static unsigned count_below(struct volume *v, uint64_t directory, unsigned depth)
{
    struct arena *arena = arena_new(4096);
    struct volume_name *names;
    struct attr a;
    size_t count;
    bool more;
    unsigned sum = 0, folders = 0;
    assert_true(depth <= THREADS * NAMES);
    assert_int_equal(volume_getattr(v, directory, &a), 0);
    assert_int_equal(volume_readdir(v, directory, "", 100, arena, &names, &count, &more), 0);
    for (size_t i = 0; i < count; i++) {
        folders += names[i].type == S_IFDIR;
        if (names[i].type == S_IFDIR)
            sum += 1 + count_below(v, names[i].ino, depth + 1);
    }
    assert_int_equal(a.entries, count);
    assert_int_equal(a.nlink, 2 + folders);
    arena_free(arena);
    return sum;
}

static void check_dump(struct meta *m, const struct volume_format *format)
{
    struct error err = ERROR_INIT;
    struct dump_tally tally;
    struct meta *loaded;
    struct check c;
    FILE *file = tmpfile();
    assert_non_null(file);
    if (dump_save(m, file, &tally, &err) != 0)
        fail_msg("%s", err.message);
    rewind(file);
    assert_int_equal(meta_memory_ops.open("", true, &loaded, &err), 0);
    if (dump_load(loaded, file, 1, &tally, &err) != 0)
        fail_msg("%s", err.message);
    assert_int_equal(check_run(&c, loaded, format, &err), 0);
    if (c.count > 0)
        fail_msg("found in a dump: %s", check_text(&c.findings[0]));
    check_done(&c);
    meta_close(loaded);
    fclose(file);
}

static void work_of_many_threads_adds_up(void **state)
{
    const struct test_engine *engine = *state;
    struct meta *m;
    struct volume *clients[2];
    struct worker workers[THREADS] = {0};
    pthread_t threads[THREADS];
    struct volume_env env;
    struct volume_format format;
    struct volume_inode log;
    struct volume_use use;
    struct error err = ERROR_INIT;
    const struct volume_new file = {.mode = S_IFREG | 0644};
    unsigned made = 0, counted = 0;
    volume_env_init(&env);
    env.lanes = 2;     /* fewer than threads: they wait for each other */
    env.tries = 10000; /* the log is everybody's */
    format_init(&format, "threads", "dfc://b");
    assert_int_equal(engine->open(&m, &err), 0);
    assert_int_equal(format_write(m, &format, 0, 0, &err), 0);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(volume_open(m, &env, &clients[i], &err), 0);
    assert_int_equal(volume_create(clients[0], VOLUME_ROOT, "log", &file, &log), 0);
    const uint64_t limited = make_limited(clients[1]);
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] =
            (struct worker){.v = clients[i % 2], .log = log.ino, .limited = limited, .number = i};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (unsigned i = 0; i < DUMPS; i++)
        check_dump(m, &format);
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        made += workers[i].made;
        counted += workers[i].counted;
        assert_int_equal(workers[i].errors, 0);
    }
    assert_true(made >= NAMES); /* one that was moved away may be made again */
    assert_int_equal(count_below(clients[0], VOLUME_ROOT, 0), made + 1);
    check_quota(clients[0], limited, counted);
    assert_int_equal(volume_getattr(clients[1], log.ino, &log.attr), 0);
    assert_int_equal(log.attr.length, 3 * THREADS * APPENDS);
    assert_int_equal(volume_use(clients[1], &use), 0);
    assert_int_equal(use.inodes, 3 + made + QUOTA);
    assert_int_equal(use.bytes, 3 * THREADS * APPENDS);
    for (unsigned i = 0; i < 2; i++)
        volume_close(clients[i]);
    meta_close(m);
    engine->remove();
}

#define CASE(engine)                                                                          \
    {                                                                                         \
        "work_of_many_threads_adds_up on " #engine, work_of_many_threads_adds_up, NULL, NULL, \
            (void *)&test_engines[engine]                                                     \
    }

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {CASE(TEST_MEMORY), CASE(TEST_SQLITE)};
    const struct CMUnitTest redis[] = {CASE(TEST_REDIS)};
    const struct CMUnitTest postgres[] = {CASE(TEST_POSTGRES)};
    const int asked = test_engines_asked(argc, argv);
    if (asked < 0)
        return 77;
    return asked == TEST_REDIS      ? cmocka_run_group_tests(redis, NULL, NULL)
           : asked == TEST_POSTGRES ? cmocka_run_group_tests(postgres, NULL, NULL)
                                    : cmocka_run_group_tests(tests, NULL, NULL);
}

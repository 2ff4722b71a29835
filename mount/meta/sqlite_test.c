/* What the suite of all engines cannot ask: several processes, crashes, full disks, other files. */
#include "mount/meta/sqlite.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/rng.h"
#include "mount/meta/engines.h"
#include "mount/meta/testing/engines.h"

static const struct test_engine *const engine = &test_engines[TEST_SQLITE];

static struct meta *open_engine(void)
{
    struct meta *m;
    struct error err = ERROR_INIT;
    if (engine->open(&m, &err) != 0)
        fail_msg("%s", err.message);
    return m;
}

static int64_t read_field(struct meta *m, struct meta_key key, bool *found)
{
    struct arena *arena = arena_new(256);
    struct meta_item item = {.ask = META_GET, .key = key};
    struct meta_read r = {.arena = arena, .items = &item, .count = 1};
    struct error err = ERROR_INIT;
    int rc = m->ops->read(m, &r, &err);
    int64_t number = meta_field(&item.value, 0);
    *found = item.value.found;
    arena_free(arena);
    assert_int_equal(rc, 0);
    return number;
}

static int put_field(struct meta *m, struct meta_key key, int64_t number)
{
    uint8_t bytes[8];
    meta_field_put(bytes, 0, number);
    const struct meta_step put = {
        .kind = META_PUT, .key = key, .data = bytes, .size = sizeof bytes};
    struct meta_commit c = {.steps = &put, .count = 1};
    return m->ops->commit(m, &c, NULL);
}

/* ---- files ---- */

static void a_file_is_made_only_on_demand(void **state)
{
    struct meta *m;
    struct error err = ERROR_INIT;
    struct stat st;
    (void)state;
    assert_int_equal(engines_open("sqlite3:///no/such/place.db", true, &m, &err), E_NOT_FOUND);
    assert_int_equal(engines_open("sqlite3:///tmp/dfc-no-such.db", false, &m, &err), E_NOT_FOUND);
    assert_int_equal(access("/tmp/dfc-no-such.db", F_OK), -1);
    assert_int_equal(engines_open("sqlite3://meta.db", true, &m, &err), E_INVALID);
    assert_int_equal(engines_open("sqlite3:///proc/meta.db", true, &m, &err), E_IO);
    m = open_engine();
    assert_int_equal(stat(test_sqlite_path(), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    meta_close(m);
    engine->remove();
}

static void another_programs_database_is_refused(void **state)
{
    struct meta *m = open_engine();
    struct error err = ERROR_INIT;
    sqlite3 *db;
    (void)state;
    meta_close(m);
    assert_int_equal(sqlite3_open(test_sqlite_path(), &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "PRAGMA application_id = 7", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(engine->open(&m, &err), E_INVALID);
    assert_non_null(strstr(err.message, "another program"));
    sqlite3_exec(db, "PRAGMA application_id = 0x64666376; PRAGMA user_version = 99", NULL, NULL,
                 NULL);
    assert_int_equal(engine->open(&m, &err), E_UNSUPPORTED);
    sqlite3_close(db);
    FILE *file = fopen(test_sqlite_path(), "w");
    for (int i = 0; i < 1000; i++)
        fputs("This is no database. ", file);
    fclose(file);
    assert_int_equal(engine->open(&m, &err), E_CORRUPT);
    engine->remove();
}

/* ---- several at once ---- */

enum { THREADS = 6, ADDS = 40 };

struct counting {
    struct meta *m;
    unsigned conflicts, errors;
};

static const struct meta_key counter = {.kind = META_ATTR, .id = 1};
static const struct meta_key other = {.kind = META_ATTR, .id = 2};

/* As a transaction does it: read, expect what was read, and again. */
static void *count_up(void *arg)
{
    struct counting *c = arg;
    for (unsigned i = 0; i < ADDS;) {
        bool found;
        int64_t number = read_field(c->m, counter, &found);
        const struct meta_step steps[] = {
            {.kind = META_EXPECT_EQUAL, .key = counter, .number = number},
            {.kind = META_ADD, .key = counter, .number = 1},
            {.kind = META_ADD, .key = other, .number = -1},
        };
        struct meta_commit commit = {.steps = steps, .count = 3};
        int rc = c->m->ops->commit(c->m, &commit, NULL);
        i += rc == 0;
        c->conflicts += rc == E_PRECONDITION;
        c->errors += rc != 0 && rc != E_PRECONDITION;
    }
    return NULL;
}

/* Both keys in one batch: their sum never changes. */
static void *watch(void *arg)
{
    struct counting *c = arg;
    struct arena *arena = arena_new(1024);
    for (int64_t seen = 0; seen < THREADS * ADDS;) {
        struct meta_item items[] = {{.ask = META_GET, .key = counter},
                                    {.ask = META_GET, .key = other}};
        struct meta_read r = {.arena = arena, .items = items, .count = 2};
        if (c->m->ops->read(c->m, &r, NULL) != 0)
            c->errors++;
        seen = meta_field(&items[0].value, 0);
        c->errors += seen + meta_field(&items[1].value, 0) != 0;
        arena_reset(arena);
    }
    arena_free(arena);
    return NULL;
}

static void commits_of_two_handles_follow_one_another(void **state)
{
    struct meta *handles[] = {open_engine(), open_engine()};
    struct counting counts[THREADS + 2] = {0};
    pthread_t threads[THREADS + 2];
    bool found;
    (void)state;
    assert_int_equal(put_field(handles[0], counter, 0), 0);
    assert_int_equal(put_field(handles[1], other, 0), 0);
    for (unsigned i = 0; i < THREADS + 2; i++) {
        counts[i].m = handles[i % 2];
        pthread_create(&threads[i], NULL, i < THREADS ? count_up : watch, &counts[i]);
    }
    for (unsigned i = 0; i < THREADS + 2; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(counts[i].errors, 0);
    }
    assert_int_equal(read_field(handles[0], counter, &found), THREADS * ADDS);
    assert_int_equal(read_field(handles[1], other, &found), -THREADS * ADDS);
    meta_close(handles[0]);
    meta_close(handles[1]);
    engine->remove();
}

/* ---- kill -9 ---- */

enum { LANES = 4, ROUNDS = 12 };

struct lane_thread {
    struct meta *m;
    unsigned lane;
    int64_t next;
    int acknowledged; /* a pipe */
};

struct acknowledged {
    uint32_t lane;
    uint32_t number;
};

/* Commits numbers in a row, each with a key of its own, and tells each that is acknowledged. */
static void *commit_in_a_row(void *arg)
{
    struct lane_thread *t = arg;
    for (;; t->next++) {
        uint8_t bytes[8];
        const struct meta_key key = meta_key_number(META_CHUNK, t->lane, (uint64_t)t->next);
        meta_field_put(bytes, 0, t->next);
        const struct meta_step steps[] = {
            {.kind = META_EXPECT_ABSENT, .key = key},
            {.kind = META_PUT, .key = key, .data = bytes, .size = 8},
            {.kind = META_PUT,
             .key = meta_key_number(META_LANE, 1, t->lane),
             .data = bytes,
             .size = 8},
        };
        struct meta_commit c = {.steps = steps, .count = 3};
        if (t->m->ops->commit(t->m, &c, NULL) != 0)
            _exit(3);
        const struct acknowledged a = {t->lane, (uint32_t)t->next};
        if (write(t->acknowledged, &a, sizeof a) != sizeof a)
            _exit(4);
    }
    return NULL;
}

static void run_child(int64_t *next, int out)
{
    struct lane_thread lanes[LANES];
    pthread_t threads[LANES];
    struct meta *m;
    if (engine->open(&m, NULL) != 0)
        _exit(2);
    for (unsigned i = 0; i < LANES; i++) {
        lanes[i] = (struct lane_thread){m, i, next[i], out};
        if (pthread_create(&threads[i], NULL, commit_in_a_row, &lanes[i]) != 0)
            _exit(2);
    }
    pthread_join(threads[0], NULL);
}

/* Each lane has all that was acknowledged, at most one more, and no gap. */
static void check_lane(struct meta *m, unsigned lane, int64_t acknowledged, int64_t *next)
{
    bool found;
    int64_t last = read_field(m, meta_key_number(META_LANE, 1, lane), &found);
    assert_true(last == acknowledged || last == acknowledged + 1);
    for (int64_t i = 1; i <= last + 1; i++) {
        int64_t number = read_field(m, meta_key_number(META_CHUNK, lane, (uint64_t)i), &found);
        assert_int_equal(found, i <= last);
        assert_int_equal(number, found ? i : 0);
    }
    *next = last + 1;
}

static void what_was_acknowledged_survives_kill_9(void **state)
{
    struct rng r;
    int64_t next[LANES], acknowledged[LANES] = {0};
    (void)state;
    rng_seed(&r, 99);
    for (unsigned i = 0; i < LANES; i++)
        next[i] = 1;
    meta_close(open_engine());
    for (unsigned round = 0; round < ROUNDS; round++) {
        int ends[2], status;
        struct acknowledged a;
        uint64_t until = 1 + rng_below(&r, 60);
        assert_int_equal(pipe(ends), 0);
        pid_t child = fork();
        if (child == 0)
            run_child(next, ends[1]);
        close(ends[1]);
        for (uint64_t seen = 0; read(ends[0], &a, sizeof a) == sizeof a;) {
            acknowledged[a.lane] = a.number;
            if (++seen == until)
                kill(child, SIGKILL);
        }
        close(ends[0]);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        struct meta *m = open_engine();
        for (unsigned i = 0; i < LANES; i++) {
            check_lane(m, i, acknowledged[i], &next[i]);
            acknowledged[i] = next[i] - 1;
        }
        meta_close(m);
    }
    engine->remove();
}

/* ---- a full disk ---- */

/* In a child with a file system of 1 MiB.  0; 77: no right to mount one; the step that failed. */
static int fill_disk(const char *directory)
{
    char url[128];
    struct meta *m;
    struct error err = ERROR_INIT;
    static const uint8_t bytes[8192];
    uint64_t made = 0;
    int rc = 0;
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", directory, "tmpfs", 0, "size=1m") != 0)
        return 77;
    snprintf(url, sizeof url, "sqlite3://%s/full.db", directory);
    if (engines_open(url, true, &m, &err) != 0)
        return 1;
    while (rc == 0 && made < 1000) {
        const struct meta_step put = {.kind = META_PUT,
                                      .key = meta_key_point(META_ATTR, made + 1),
                                      .data = bytes,
                                      .size = sizeof bytes};
        struct meta_commit c = {.steps = &put, .count = 1};
        rc = m->ops->commit(m, &c, &err);
        made += rc == 0;
    }
    if (rc != E_NO_SPACE || made == 0 || err.message[0] == '\0')
        return 2;
    for (uint64_t i = 1; i <= made + 1; i++) {
        bool found;
        read_field(m, meta_key_point(META_ATTR, i), &found);
        if (found != (i <= made))
            return 3;
    }
    meta_close(m);
    return engines_open(url, false, &m, &err) == 0 ? (meta_close(m), 0) : 4;
}

static void a_full_disk_is_an_error_of_one_commit(void **state)
{
    char directory[] = "/tmp/dfc-meta-full.XXXXXX";
    int status;
    (void)state;
    assert_non_null(mkdtemp(directory));
    pid_t child = fork();
    if (child == 0)
        _exit(fill_disk(directory));
    assert_int_equal(waitpid(child, &status, 0), child);
    rmdir(directory);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        skip(); /* no right to mount a small file system */
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_made_only_on_demand),
        cmocka_unit_test(another_programs_database_is_refused),
        cmocka_unit_test(commits_of_two_handles_follow_one_another),
        cmocka_unit_test(what_was_acknowledged_survives_kill_9),
        cmocka_unit_test(a_full_disk_is_an_error_of_one_commit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Commits of many threads that are written as one transaction, and fail together or alone. */
#include "mount/meta/group.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

enum { COMMITS = 8 };

/* The first write waits until the others are in the queue. */
struct writer {
    atomic_bool begun, go;
    atomic_uint calls, writes, alone;
    int code;                        /* of a group */
    const struct meta_commit *fails; /* alone, too */
    struct group *group;
};

static int write_some(void *context, struct group_request *const *requests, size_t count,
                      struct error *err)
{
    struct writer *w = context;
    atomic_store(&w->begun, true);
    while (!atomic_load(&w->go))
        usleep(100);
    if (atomic_fetch_add(&w->writes, 1) == 0)
        return 0;
    if (count > 1)
        return error_set(err, w->code, "a group");
    atomic_fetch_add(&w->alone, 1);
    return requests[0]->commit == w->fails ? error_set(err, E_IO, "alone") : 0;
}

static const struct group_ops ops = {.most = COMMITS, .write = write_some};

struct call {
    pthread_t thread;
    struct writer *writer;
    struct meta_commit commit;
    int rc;
};

static void *commit_one(void *arg)
{
    struct call *c = arg;
    struct error err = ERROR_INIT;
    atomic_fetch_add(&c->writer->calls, 1);
    c->rc = group_commit(c->writer->group, &c->commit, &err);
    return NULL;
}

/* One commit, and COMMITS more that are written together. */
static void run(struct writer *w, struct call calls[static COMMITS + 1])
{
    struct error err = ERROR_INIT;
    assert_int_equal(group_start(&ops, w, &w->group, &err), 0);
    for (unsigned i = 0; i <= COMMITS; i++) {
        calls[i] = (struct call){.writer = w};
        assert_int_equal(pthread_create(&calls[i].thread, NULL, commit_one, &calls[i]), 0);
        while (i == 0 && !atomic_load(&w->begun))
            usleep(100);
    }
    while (atomic_load(&w->calls) <= COMMITS)
        usleep(100);
    usleep(200000);
    atomic_store(&w->go, true);
    for (unsigned i = 0; i <= COMMITS; i++)
        pthread_join(calls[i].thread, NULL);
    group_end(w->group);
    assert_int_equal(calls[0].rc, 0);
}

static void an_error_belongs_to_its_commit(void **state)
{
    struct call calls[COMMITS + 1];
    struct writer w = {.code = E_IO, .fails = &calls[3].commit};
    (void)state;
    run(&w, calls);
    assert_int_equal(w.alone, COMMITS);
    for (unsigned i = 1; i <= COMMITS; i++)
        assert_int_equal(calls[i].rc, i == 3 ? E_IO : 0);
}

/* Each try alone would wait for the server anew. */
static void a_server_that_is_away_fails_all_at_once(void **state)
{
    static const int codes[] = {E_NET, E_IN_DOUBT};
    (void)state;
    for (unsigned k = 0; k < 2; k++) {
        struct call calls[COMMITS + 1];
        struct writer w = {.code = codes[k]};
        run(&w, calls);
        assert_int_equal(w.alone, 0);
        for (unsigned i = 1; i <= COMMITS; i++)
            assert_int_equal(calls[i].rc, codes[k]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_error_belongs_to_its_commit),
        cmocka_unit_test(a_server_that_is_away_fails_all_at_once),
    };
    return cmocka_run_group_tests_name("mount_meta_group", tests, NULL, NULL);
}

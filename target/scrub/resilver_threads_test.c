/* Clients, a lister, and mountpaths that come and go, all at once: clients see nothing wrong.  And
 * a resilver that waits. */
#include "target/testing/store_fixture.h"

#include <pthread.h>

#include "common/rng.h"
#include "target/scrub/resilver.h"

static char *path_of(unsigned n)
{
    return xprintf("%s/mp%u", fx.dir, n);
}

static int try_resilver(struct error *err)
{
    struct job_stop stop;
    struct job_tally *tally = job_tally_new("moved");
    job_stop_init(&stop);
    int code = resilver_run(fx.store, &stop, tally, err);
    job_stop_done(&stop);
    job_tally_free(tally);
    return code;
}

enum { CLIENTS = 3, NAMES = 40, CHANGES = 60 };

struct client {
    pthread_t thread;
    unsigned number;
    atomic_bool *stop;
    unsigned failed;
    uint64_t calls, refused;
};

/* The names of one client are its own: it knows what each must be.  A write that was refused was
 * not made. */
static void client_step(struct client *c, struct rng *rng, unsigned *have)
{
    char name[24], text[24];
    struct error err = ERROR_INIT;
    unsigned i = (unsigned)rng_below(rng, NAMES);
    snprintf(name, sizeof name, "c%u-%02u", c->number, i);
    snprintf(text, sizeof text, "%u", (have[i] & ~1u) + 1);
    enum durability durability = rng_below(rng, 4) == 0 ? DURABILITY_SYNC : DURABILITY_ASYNC;
    int code = 0;
    c->calls++;
    switch (rng_below(rng, 4)) {
    case 0:
        code = put_text_as(name, text, durability, &err);
        if (code == 0)
            have[i] = (have[i] & ~1u) + 2;
        break;
    case 1:
        code = delete_as(name, durability, &err);
        if (code == 0)
            have[i] |= 1;
        if (code == E_OBJECT_NOT_FOUND && (have[i] == 0 || (have[i] & 1)))
            code = 0;
        break;
    default: {
        struct object o;
        code = object_open(fx.store, BUCKET, name, &o, &err);
        bool gone = have[i] == 0 || (have[i] & 1) != 0;
        if (code == E_OBJECT_NOT_FOUND && gone)
            code = 0;
        else if (code == 0) {
            char got[24] = "";
            snprintf(text, sizeof text, "%u", (have[i] & ~1u) - 1);
            assert_int_equal(file_pread_full(o.fd, got, o.attr.size, 0, NULL), 0);
            if (gone || strcmp(got, text) != 0) {
                print_error("%s: '%s', not '%s'\n", name, got, gone ? "" : text);
                c->failed++;
            }
            close(o.fd);
        }
    }
    }
    c->refused += code == E_MOUNTPATH_DISABLED;
    if (code != 0 && code != E_MOUNTPATH_DISABLED) {
        print_error("%s: %s\n", name, err.message);
        c->failed++;
    }
}

static void *client_main(void *arg)
{
    struct client *c = arg;
    struct rng rng;
    unsigned have[NAMES] = {0};
    rng_seed(&rng, c->number + 1);
    while (!atomic_load(c->stop) && c->failed == 0)
        client_step(c, &rng, have);
    return NULL;
}

static void *lister_main(void *arg)
{
    struct client *c = arg;
    const struct list_request req = {
        .bucket_id = BUCKET, .prefix = "fixed-", .delimiter = "", .start_after = "", .limit = 1000};
    while (!atomic_load(c->stop) && c->failed == 0) {
        struct list_page page;
        int code = list_page(fx.store, &req, &page, NULL);
        c->calls++;
        if (code == 0) {
            if (page.entry_count != NAMES) {
                print_error("%zu names are listed\n", page.entry_count);
                c->failed++;
            }
            list_page_done(&page);
        } else {
            c->refused++;
            c->failed += code != E_MOUNTPATH_DISABLED;
        }
    }
    return NULL;
}

static void random_change(struct rng *rng)
{
    _cleanup_free_ char *path = path_of(1 + (unsigned)rng_below(rng, 4));
    struct error err = ERROR_INIT;
    switch (rng_below(rng, 5)) {
    case 0:
        (void)mountpaths_attach(fx.mountpaths, path, &err);
        break;
    case 1:
        (void)mountpaths_detach(fx.mountpaths, path, false, &err);
        break;
    case 2:
        (void)mountpaths_disable(fx.mountpaths, path, "a test", false, &err);
        break;
    case 3:
        (void)mountpaths_enable(fx.mountpaths, path, &err);
        break;
    default:
        (void)try_resilver(&err);
    }
    if (err.code == E_IO || err.code == E_INTERNAL)
        fail_msg("%s", err.message);
}

static void test_clients_see_nothing_wrong(void **state)
{
    (void)state;
    atomic_bool stop = false;
    struct client clients[CLIENTS + 1] = {0};
    struct rng rng;
    char name[24];
    for (unsigned i = 0; i < NAMES; i++) {
        snprintf(name, sizeof name, "fixed-%02u", i);
        put_text(name, "x");
    }
    for (unsigned i = 0; i <= CLIENTS; i++) {
        clients[i] = (struct client){.number = i, .stop = &stop};
        assert_int_equal(pthread_create(&clients[i].thread, NULL,
                                        i < CLIENTS ? client_main : lister_main, &clients[i]),
                         0);
    }
    rng_seed(&rng, 7);
    for (unsigned i = 0; i < CHANGES; i++)
        random_change(&rng);
    atomic_store(&stop, true);
    uint64_t answered = 0;
    for (unsigned i = 0; i <= CLIENTS; i++) {
        pthread_join(clients[i].thread, NULL);
        assert_int_equal(clients[i].failed, 0);
        answered += clients[i].calls - clients[i].refused;
    }
    assert_true(answered > 0);
}

static void *stop_main(void *arg)
{
    usleep(300000);
    job_stop_now(arg);
    return NULL;
}

/* The code of a resilver that is stopped if it waits. */
static int resilver_for_a_moment(void)
{
    struct job_stop stop;
    struct job_tally *tally = job_tally_new("moved");
    struct error err = ERROR_INIT;
    pthread_t thread;
    job_stop_init(&stop);
    assert_int_equal(pthread_create(&thread, NULL, stop_main, &stop), 0);
    int code = resilver_run(fx.store, &stop, tally, &err);
    pthread_join(thread, NULL);
    job_stop_done(&stop);
    job_tally_free(tally);
    return code;
}

/* They are on no other disk: the mountpath leaves when no generation needs them. */
static void test_samples_of_rings_keep_a_mountpath(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    _cleanup_free_ char *first = path_of(1);
    _cleanup_free_ char *dir = xprintf("%s/.dfc/ring/7/5ade1a06679601e5", first);
    _cleanup_free_ char *file = xprintf("%s/0000000000000000.seg", dir);
    assert_int_equal(file_mkdirs(dir, 0700, &err), 0);
    assert_int_equal(file_replace(file, "x", 1, 0600, NULL), 0);
    assert_int_equal(mountpaths_detach(fx.mountpaths, first, false, &err), 0);
    assert_int_equal(resilver_for_a_moment(), E_ABORTED);
    assert_false(fixture_set()->settled);
    assert_int_equal(access(file, F_OK), 0);
    assert_int_equal(truncate(file, 0), 0); /* no sample */
    assert_int_equal(try_resilver(&err), 0);
    assert_true(fixture_set()->settled);
    assert_int_equal(fixture_set()->count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(test_clients_see_nothing_wrong),
        store_test(test_samples_of_rings_keep_a_mountpath),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

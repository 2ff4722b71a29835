/* kill -9 at every step of every change, and at random moments of many changes at once: the next
 * process finds indexes that agree with the files, and has looked at no other files than those
 * whose change was under way.  Where nothing can be known it looks at all of them. */
#include "target/testing/store_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "common/clock.h"
#include "common/rng.h"
#include "common/tsan.h"
#include "io/thread.h"
#include "target/index/session.h"
#include "target/disk/reindexer.h"

enum { OTHERS = 40, PASSES_MAX = 20 };

/* --- the indexes against the files ------------------------------------------------------------ */

static uint64_t files_looked_at(void)
{
    uint64_t sum = 0;
    for (unsigned i = 1; i <= 2; i++) {
        char labels[128];
        snprintf(labels, sizeof labels, "mountpath=\"%s/mp%u\"", fx.dir, i);
        sum += metric_value(metric_get(M_index_files_looked_at_total, labels));
    }
    return sum;
}

static void assert_record_is(struct index_cursor *c, const char *path, struct mountpath *mp)
{
    unsigned char raw[ATTR_ENCODED_MAX];
    struct attr a;
    ssize_t len = getxattr(path, ATTR_XATTR, raw, sizeof raw);
    assert_true(len > 0);
    assert_int_equal(attr_decode(raw, (size_t)len, &a, NULL), 0);
    if (index_cursor_seek(c, BUCKET, a.name, false, NULL) != 1 ||
        strcmp(index_cursor_name(c), a.name) != 0)
        fail_msg("'%s' is not in the index of %s", a.name, mp->path);
    const struct index_record *rec = index_cursor_record(c);
    if (version_compare(&rec->version, &a.version) != 0 ||
        rec->tombstone != attr_is_tombstone(&a) || (rec->job != NULL) != (a.job != NULL) ||
        rec->size != a.size)
        fail_msg("'%s': the index of %s says something else", a.name, mp->path);
}

static unsigned assert_files_are_in(struct mountpath *mp, struct index_cursor *c)
{
    unsigned files = 0;
    for (unsigned fan = 0; fan < 256; fan++) {
        char path[300];
        snprintf(path, sizeof path, "%s/.dfc/obj/%d/%02x", mp->path, BUCKET, fan);
        DIR *dir = opendir(path);
        if (dir == NULL) /* no bucket here yet */
            continue;
        for (struct dirent *e; (e = readdir(dir)) != NULL;) {
            if (e->d_name[0] == '.')
                continue;
            _cleanup_free_ char *file = xprintf("%s/%s", path, e->d_name);
            assert_record_is(c, file, mp);
            files++;
        }
        closedir(dir);
    }
    return files;
}

static void assert_indexes_are_files(void)
{
    for (size_t i = 0; i < 2; i++) {
        struct mountpath *mp = fixture_mp(i);
        _cleanup_(index_cursor_closep)
        struct index_cursor *c = NULL;
        struct error err = ERROR_INIT;
        if (index_check(mp->index, &err) != 0)
            fail_msg("%s", err.message);
        assert_int_equal(index_cursor_open(mp->index, &c, NULL), 0);
        unsigned files = assert_files_are_in(mp, c), names = 0;
        for (int at = index_cursor_seek(c, BUCKET, "", false, NULL); at != 0; names++) {
            assert_int_equal(at, 1);
            at = index_cursor_next(c, NULL);
        }
        if (names != files)
            fail_msg("%u names, %u files on %s", names, files, mp->path);
    }
}

static void put_others(void)
{
    for (unsigned i = 0; i < OTHERS; i++) {
        char name[32];
        snprintf(name, sizeof name, "other-%u", i);
        put_text(name, "x");
    }
}

/* Opens what a process has left behind; the files that were looked at. */
static uint64_t open_left_behind(void)
{
    uint64_t before = files_looked_at();
    fixture_open();
    return files_looked_at() - before;
}

/* --- every step ------------------------------------------------------------------------------- */

static int act_put(void)
{
    return put_text_as("a", "brand new", DURABILITY_ASYNC, NULL);
}

static int act_put_sync(void)
{
    return put_text_as("a", "brand new", DURABILITY_SYNC, NULL);
}

static int act_delete(void)
{
    return delete_as("a", DURABILITY_ASYNC, NULL);
}

static int act_delete_sync(void)
{
    return delete_as("a", DURABILITY_SYNC, NULL);
}

static int act_forget(void)
{
    int code = act_delete();
    return code != 0 ? code
                     : object_forget_tombstone(fx.store, BUCKET, "a", clock_wall_ms() + 1000, NULL);
}

static int act_unmark(void)
{
    put_text_hidden("h", "hidden", "srt-1");
    return object_unmark(fx.store, BUCKET, "h", "srt-1", NULL);
}

static int act_discard(void)
{
    put_text_hidden("h", "hidden", "srt-1");
    return object_discard(fx.store, BUCKET, "h", "srt-1", NULL);
}

static int (*const acts[])(void) = {act_put,    act_put_sync, act_delete, act_delete_sync,
                                    act_forget, act_unmark,   act_discard};
enum { ACTS = sizeof acts / sizeof *acts };

static const char *const points[] = {"disk.open",   "disk.xattr",  "disk.sync",
                                     "index.write", "disk.rename", "index.settle"};
enum { POINTS = sizeof points / sizeof *points };

/* A process of its own; true: the signal ended it. */
static bool child_dies(void (*run)(void *arg), void *arg, int signal)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        fixture_open();
        run(arg);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status)) {
        assert_int_equal(WTERMSIG(status), signal);
        return true;
    }
    assert_int_equal(WEXITSTATUS(status), 0);
    return false;
}

struct step {
    int (*act)(void);
    char spec[64];
};

static void run_step(void *arg)
{
    const struct step *step = arg;
    if (fault_configure(step->spec, NULL) != 0 || step->act() != 0)
        _exit(1);
}

static bool act_is_killed(int (*act)(void), const char *point, unsigned pass)
{
    struct step step = {.act = act};
    snprintf(step.spec, sizeof step.spec, "%s=kill@%u", point, pass);
    assert_int_equal(fixture_setup_closed(NULL), 0);
    fixture_open();
    put_text("a", "old");
    put_others();
    fixture_close();
    bool killed = child_dies(run_step, &step, SIGKILL);
    uint64_t looked_at = open_left_behind();
    if (looked_at > 1)
        fail_msg("%s: %llu files were looked at", step.spec, (unsigned long long)looked_at);
    assert_indexes_are_files();
    put_text("a", "brand new"); /* and it can be written on */
    assert_indexes_are_files();
    fixture_close();
    assert_int_equal(file_remove_tree(fx.dir, NULL), 0);
    return killed;
}

static void test_a_kill_at_any_step_costs_no_walk(void **state)
{
    (void)state;
    unsigned met = 0;
    for (size_t i = 0; i < ACTS * POINTS; i += TSAN_CASES) {
        unsigned pass = 1;
        while (act_is_killed(acts[i % ACTS], points[i / ACTS], pass))
            assert_true((pass += TSAN_STRIDE) < PASSES_MAX);
        met += pass - 1;
    }
    assert_true(met >= 50 / TSAN_CASES); /* the points are where they should be */
}

/* --- random moments --------------------------------------------------------------------------- */

enum { THREADS = 6, NAMES = 60, KILLS = 25 / TSAN_STRIDE };

static void random_change(struct rng *r, unsigned thread)
{
    char name[32];
    snprintf(name, sizeof name, "n-%u-%u", thread, (unsigned)rng_below(r, NAMES));
    switch (rng_below(r, 6)) {
    case 0:
        (void)delete_as(name, DURABILITY_ASYNC, NULL);
        break;
    case 1:
        (void)object_forget_tombstone(fx.store, BUCKET, name, clock_wall_ms() + 1000, NULL);
        break;
    case 2:
        (void)put_text_as(name, "durable", DURABILITY_SYNC, NULL);
        break;
    default:
        (void)put_text_as(name, "text", DURABILITY_ASYNC, NULL);
    }
}

struct changer {
    pthread_t thread;
    unsigned number;
    atomic_bool stop;
};

static void *change_on(void *arg)
{
    struct changer *c = arg;
    struct rng r;
    rng_seed(&r, clock_us() + c->number);
    while (!c->stop)
        random_change(&r, c->number);
    return NULL;
}

static void change_for_ever(void *arg)
{
    struct changer changers[THREADS];
    const int *ready = arg;
    for (unsigned i = 0; i < THREADS; i++) {
        changers[i] = (struct changer){.number = i};
        if (thread_start("change", change_on, &changers[i], &changers[i].thread, NULL) != 0)
            _exit(1);
    }
    if (write(*ready, "r", 1) != 1)
        _exit(1);
    for (;;)
        pause();
}

static void kill_somewhere(struct rng *r)
{
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        fixture_open();
        change_for_ever(&ready[1]);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    usleep((useconds_t)rng_below(r, 30000)); /* the moment of the kill: any will do */
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

/* One after another over the same files, so that what one leaves wrong the later ones see. */
static void test_kills_at_random_moments_cost_no_walk(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, clock_us());
    fixture_open();
    put_others();
    fixture_close();
    for (unsigned i = 0; i < KILLS; i++) {
        kill_somewhere(&r);
        uint64_t looked_at = open_left_behind();
        if (looked_at > THREADS)
            fail_msg("%llu files were looked at", (unsigned long long)looked_at);
        assert_indexes_are_files();
        fixture_close();
    }
}

/* --- when nothing can be known ---------------------------------------------------------------- */

static void *fault_in_a_thread(void *arg)
{
    (void)arg;
    raise(SIGBUS);
    return NULL;
}

/* main() of a process without a test framework, which has handlers of its own: below `dir`. */
static int put_and_fault(const char *dir)
{
    pthread_t thread;
    fx = (struct fixture){.term = 1, .map = 1};
    snprintf(fx.dir, sizeof fx.dir, "%s", dir);
    fixture_open();
    put_text("a", "brand new");
    if (thread_start("fault", fault_in_a_thread, NULL, &thread, NULL) == 0)
        pthread_join(thread, NULL);
    return 0;
}

/* Ended by the signal, or by a sanitizer that reports it. */
static bool put_and_fault_dies(void)
{
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
        dup2(nothing, STDERR_FILENO); /* a sanitizer's report */
        execl("/proc/self/exe", "index_crash_test", fx.dir, NULL);
        _exit(1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) == SIGBUS : WEXITSTATUS(status) != 0;
}

static void put_and_be_killed(void *arg)
{
    (void)arg;
    put_text("a", "brand new");
    raise(SIGKILL);
}

static void change_session(off_t offset, const char *bytes, size_t len)
{
    for (unsigned i = 1; i <= 2; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/mp%u/.dfc/index/session", fx.dir, i);
        _cleanup_close_ int fd = open(path, O_RDWR | O_CLOEXEC);
        assert_true(fd >= 0);
        assert_int_equal(pwrite(fd, bytes, len, offset), (ssize_t)len);
    }
}

static void assert_all_were_looked_at(void)
{
    assert_true(open_left_behind() >= OTHERS + 1);
    assert_indexes_are_files();
    fixture_close();
}

static void begin_with_others(void)
{
    fixture_open();
    put_text("a", "old");
    put_others();
    fixture_close();
}

static void test_after_a_kill_on_this_boot_nothing_is_looked_at(void **state)
{
    (void)state;
    begin_with_others();
    assert_true(child_dies(put_and_be_killed, NULL, SIGKILL));
    assert_int_equal(open_left_behind(), 0);
    assert_indexes_are_files();
}

static void test_after_a_restart_of_the_machine_all_is_looked_at(void **state)
{
    (void)state;
    begin_with_others();
    assert_true(child_dies(put_and_be_killed, NULL, SIGKILL));
    change_session(16, "another boot", 12);
    /* Only the mountpath of "a" has changed since its marker was written. */
    uint64_t looked_at = open_left_behind();
    assert_true(looked_at > OTHERS / 4 && looked_at < OTHERS);
    assert_indexes_are_files();
    fixture_close();
    assert_int_equal(open_left_behind(), 0);
}

static void test_a_fault_of_our_own_is_not_trusted(void **state)
{
    (void)state;
    begin_with_others();
    assert_true(put_and_fault_dies());
    assert_all_were_looked_at();
    assert_int_equal(open_left_behind(), 0);
}

static void test_too_many_intents_are_not_trusted(void **state)
{
    (void)state;
    struct index_session *s;
    const char *broken;
    bool distrusted, idle;
    struct error err = ERROR_INIT;
    assert_int_equal(session_open(fx.dir, &s, &broken, &distrusted, &err), 0);
    assert_non_null(broken);
    session_set_complete(s, true);
    for (unsigned i = 0; i < 2000; i++) {
        char name[32];
        snprintf(name, sizeof name, "%u", i);
        session_intend(s, BUCKET, name);
    }
    session_trust(s);
    (void)session_changes(s, &idle);
    assert_false(idle);
    session_close(s);
    assert_int_equal(session_open(fx.dir, &s, &broken, &distrusted, &err), 0);
    assert_true(distrusted);
    assert_non_null(strstr(broken, "distrusted"));
    session_close(s);
}

/* --- made anew while it is used --------------------------------------------------------------- */

static void start_changers(struct changer *changers)
{
    for (unsigned i = 0; i < THREADS; i++) {
        changers[i].number = i;
        changers[i].stop = false;
        assert_int_equal(thread_start("change", change_on, &changers[i], &changers[i].thread, NULL),
                         0);
    }
}

static void stop_changers(struct changer *changers)
{
    for (unsigned i = 0; i < THREADS; i++)
        changers[i].stop = true;
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(changers[i].thread, NULL);
}

static void assert_others_are_listed(void)
{
    struct list_request req = {
        .bucket_id = BUCKET, .prefix = "other-", .delimiter = "", .start_after = "", .limit = 1000};
    struct list_page page;
    assert_int_equal(list_page(fx.store, &req, &page, NULL), 0);
    assert_int_equal(page.entry_count, OTHERS);
    list_page_done(&page);
}

static void test_changes_go_on_while_it_is_made_anew(void **state)
{
    (void)state;
    struct changer changers[THREADS];
    static const atomic_bool never = false;
    put_others();
    start_changers(changers);
    for (unsigned round = 0; round < 20; round++) {
        for (size_t i = 0; i < 2; i++) {
            struct reindex_report report = {0};
            struct error err = ERROR_INIT;
            struct mountpath *mp = fixture_mp(i);
            if (reindex_online(mp, &never, &report, &err) != 0)
                fail_msg("%s", err.message);
            assert_true(report.looked_at > 0);
            assert_others_are_listed();
        }
    }
    stop_changers(changers);
    assert_indexes_are_files();
    fixture_close();
    assert_int_equal(open_left_behind(), 0);
    assert_indexes_are_files();
}

/* A new index that has missed a change, or was given up, does not take the old one's place. */
static void test_what_is_not_whole_is_dropped(void **state)
{
    (void)state;
    struct mountpath *mp = fixture_mp(0);
    struct error why = ERROR_INIT;
    put_others();
    assert_int_equal(index_rebuild_begin(mp->index, NULL), 0);
    assert_int_equal(index_rebuild_begin(mp->index, NULL), E_EXISTS);
    assert_int_equal(index_rebuild_end(mp->index, false, NULL), 0);
    assert_indexes_are_files();
    assert_int_equal(index_rebuild_begin(mp->index, NULL), 0);
    error_set(&why, E_IO, "missed");
    index_set_stale(mp->index, &why);
    assert_int_equal(index_rebuild_end(mp->index, true, NULL), E_IO);
    assert_int_equal(index_check(mp->index, NULL), E_IO);
}

static void wait_for_runs(struct reindexer *r, uint64_t runs)
{
    struct reindexer_status status;
    do
        reindexer_status(r, &status);
    while (status.runs < runs && usleep(1000) == 0);
    assert_int_equal(status.failed.code, 0);
}

static void test_it_is_made_anew_when_asked_and_when_it_is_stale(void **state)
{
    (void)state;
    struct mountpath *mp = fixture_mp(0);
    struct error why = ERROR_INIT;
    put_others();
    assert_int_equal(reindexer_ask(mp->reindexer, NULL), 0);
    wait_for_runs(mp->reindexer, 1);
    error_set(&why, E_IO, "missed");
    index_set_stale(mp->index, &why);
    wait_for_runs(mp->reindexer, 2); /* by itself, soon */
    assert_int_equal(index_check(mp->index, NULL), 0);
    assert_indexes_are_files();
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return put_and_fault(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_kill_at_any_step_costs_no_walk),
        closed_test(test_kills_at_random_moments_cost_no_walk),
        closed_test(test_after_a_kill_on_this_boot_nothing_is_looked_at),
        closed_test(test_after_a_restart_of_the_machine_all_is_looked_at),
        closed_test(test_a_fault_of_our_own_is_not_trusted),
        closed_test(test_too_many_intents_are_not_trusted),
        store_test(test_changes_go_on_while_it_is_made_anew),
        store_test(test_what_is_not_whole_is_dropped),
        store_test(test_it_is_made_anew_when_asked_and_when_it_is_stale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "proxy/metastore/metastore.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "cluster/command/command.h"
#include "cluster/testing/random_command.h"
#include "common/fault.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "common/mem.h"
#include "io/file.h"

/* A directory for one test, and the store in it. */
struct fixture {
    char root[64];
    char dir[80];
    char log[96];
    char snapshot[96];
    uint64_t fold_bytes;
};

static int setup(void **state)
{
    struct fixture *f = xcalloc(1, sizeof *f);
    snprintf(f->root, sizeof f->root, "/tmp/dfc-metastore-XXXXXX");
    assert_non_null(mkdtemp(f->root));
    snprintf(f->dir, sizeof f->dir, "%s/store", f->root);
    snprintf(f->log, sizeof f->log, "%s/log", f->dir);
    snprintf(f->snapshot, sizeof f->snapshot, "%s/snapshot", f->dir);
    f->fold_bytes = 1 << 20;
    log_set_level(LOG_OFF);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    fault_configure(NULL, NULL);
    file_remove_tree(f->root, NULL);
    free(f);
    return 0;
}

static int try_open(const struct fixture *f, struct metastore **m, struct error *err)
{
    const struct metastore_config config = {.dir = f->dir, .fold_bytes = f->fold_bytes};
    return metastore_embedded.open(&config, m, err);
}

static struct metastore *must_open(const struct fixture *f)
{
    struct metastore *m = NULL;
    struct error err = ERROR_INIT;
    if (try_open(f, &m, &err) != 0)
        fail_msg("%s", err.message);
    return m;
}

static const struct cluster_state *load(struct metastore *m)
{
    struct cluster_state *s = NULL;
    assert_int_equal(m->ops->load(m, &s, NULL), 0);
    return s;
}

/* What a start after a crash would find. */
static const struct cluster_state *found(const struct fixture *f)
{
    struct metastore *m = must_open(f);
    const struct cluster_state *s = load(m);
    m->ops->close(m);
    return s;
}

static char *text_of(const struct cluster_state *s)
{
    _cleanup_json_ json_t *doc = state_to_json(s);
    return json_text(doc);
}

static void assert_same(const struct cluster_state *a, const struct cluster_state *b)
{
    assert_non_null(a);
    assert_non_null(b);
    _cleanup_free_ char *ta = text_of(a);
    _cleanup_free_ char *tb = text_of(b);
    assert_string_equal(ta, tb);
}

static const struct cluster_state *with_bucket(const struct cluster_state *s, unsigned number)
{
    char name[24];
    snprintf(name, sizeof name, "bucket-%u", number);
    const struct bucket_props props = BUCKET_PROPS_DEFAULT;
    const struct command cmd = {.kind = CMD_BUCKET_CREATE, .name = name, .props = &props};
    const struct cluster_state *next;
    assert_int_equal(command_apply(s, &cmd, &next, NULL), 0);
    return next;
}

/* Commits `count` more buckets; *s becomes the last state. */
static void commit_buckets(struct metastore *m, const struct cluster_state **s, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        const struct cluster_state *next = with_bucket(*s, (unsigned)(*s)->version);
        struct error err = ERROR_INIT;
        if (m->ops->commit(m, *s, next, &err) != 0)
            fail_msg("%s", err.message);
        state_unref(*s);
        *s = next;
    }
}

static uint64_t size_of(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return (uint64_t)st.st_size;
}

static void copy_of(const char *path, struct buf *out)
{
    assert_int_equal(file_read_all(path, 1 << 24, out, NULL), 0);
}

static void overwrite(const char *path, const void *data, size_t len)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(file_write_all(fd, data, len, NULL), 0);
    close(fd);
}

static void a_new_store_is_empty(void **state)
{
    const struct fixture *f = *state;
    assert_null(found(f));
    assert_null(found(f)); /* also the second time */
}

static void what_is_committed_is_found(void **state)
{
    struct fixture *f = *state;
    f->fold_bytes = 3000; /* so that it folds on the way, again and again */
    struct rng rng;
    rng_seed(&rng, 11);
    struct metastore *m = must_open(f);
    _cleanup_state_ const struct cluster_state *s = state_new("c-random");
    for (unsigned step = 0; step < 600; step++) {
        struct arena *a = arena_new(512);
        struct command cmd = random_command(&rng, s, a);
        const struct cluster_state *next = NULL;
        if (command_apply(s, &cmd, &next, NULL) == 0 && next != s) {
            assert_int_equal(m->ops->commit(m, s, next, NULL), 0);
            state_unref(s);
            s = state_ref(next);
        }
        state_unref(next);
        job_unref(cmd.job);
        json_decref(cmd.patch);
        arena_free(a);
        if (step % 50 == 0 && s->version > 0) {
            m->ops->close(m);
            m = must_open(f);
            _cleanup_state_ const struct cluster_state *now = load(m);
            assert_same(now, s);
        }
    }
    m->ops->close(m);
    assert_true(size_of(f->log) < 3000 + 2000);
    _cleanup_state_ const struct cluster_state *last = found(f);
    assert_same(last, s);
}

/* A crash leaves the log cut at any byte: what was whole is found, nothing else changes. */
static void a_log_cut_anywhere_gives_the_last_whole_change(void **state)
{
    const struct fixture *f = *state;
    enum { CHANGES = 6 };
    const struct cluster_state *states[CHANGES];
    uint64_t ends[CHANGES];
    struct metastore *m = must_open(f);
    const struct cluster_state *s = state_new("c");
    for (unsigned i = 0; i < CHANGES; i++) {
        commit_buckets(m, &s, 1);
        states[i] = state_ref(s);
        ends[i] = size_of(f->log);
    }
    m->ops->close(m);
    _cleanup_(buf_done)
    struct buf log = BUF_INIT;
    copy_of(f->log, &log);
    unsigned last = CHANGES - 1;
    for (size_t cut = log.len; cut >= ends[0]; cut--) {
        overwrite(f->log, log.data, cut);
        while (ends[last] > cut)
            last--;
        _cleanup_state_ const struct cluster_state *now = found(f);
        assert_same(now, states[last]);
        assert_int_equal(size_of(f->log), ends[last]); /* the torn tail is gone */
    }
    for (unsigned i = 0; i < CHANGES; i++)
        state_unref(states[i]);
    state_unref(s);
}

/* And it goes on from there: the next commit stands where the torn one stood. */
static void a_cut_log_goes_on(void **state)
{
    const struct fixture *f = *state;
    struct metastore *m = must_open(f);
    _cleanup_state_ const struct cluster_state *s = state_new("c");
    commit_buckets(m, &s, 3);
    uint64_t end = size_of(f->log);
    _cleanup_state_ const struct cluster_state *kept = state_ref(s);
    commit_buckets(m, &s, 1);
    m->ops->close(m);
    assert_int_equal(truncate(f->log, (off_t)end + 30), 0);
    m = must_open(f);
    _cleanup_state_ const struct cluster_state *now = load(m);
    assert_same(now, kept);
    commit_buckets(m, &now, 5);
    m->ops->close(m);
    _cleanup_state_ const struct cluster_state *after = found(f);
    assert_same(after, now);
}

static void zeros_at_the_end_are_a_torn_tail(void **state)
{
    const struct fixture *f = *state;
    struct metastore *m = must_open(f);
    _cleanup_state_ const struct cluster_state *s = state_new("c");
    commit_buckets(m, &s, 3);
    m->ops->close(m);
    uint64_t end = size_of(f->log);
    assert_int_equal(truncate(f->log, (off_t)end + 5000), 0);
    _cleanup_state_ const struct cluster_state *now = found(f);
    assert_same(now, s);
    assert_int_equal(size_of(f->log), end);
}

static void assert_refused(const struct fixture *f, const char *words)
{
    struct metastore *m = NULL;
    struct error err = ERROR_INIT;
    assert_int_equal(try_open(f, &m, &err), E_CORRUPT);
    if (strstr(err.message, words) == NULL || strstr(err.message, "backup") == NULL)
        fail_msg("'%s' does not say '%s'", err.message, words);
}

/* Acknowledged changes never vanish silently: any changed byte is refused, with the way out. */
static void a_changed_byte_is_refused(void **state)
{
    const struct fixture *f = *state;
    struct metastore *m = must_open(f);
    _cleanup_state_ const struct cluster_state *s = state_new("c");
    commit_buckets(m, &s, 4);
    m->ops->close(m);
    const struct {
        const char *path;
        const char *words;
    } files[] = {{f->log, "truncate -s"}, {f->snapshot, "--import"}};
    for (size_t n = 0; n < 2; n++) {
        _cleanup_(buf_done)
        struct buf file = BUF_INIT;
        copy_of(files[n].path, &file);
        for (size_t i = 0; i < file.len; i++) {
            file.data[i] ^= 0x20;
            overwrite(files[n].path, file.data, file.len);
            assert_refused(f, files[n].words);
            file.data[i] ^= 0x20;
        }
        overwrite(files[n].path, file.data, file.len);
    }
    _cleanup_state_ const struct cluster_state *now = found(f);
    assert_same(now, s);
}

static void the_way_out_of_damage_works(void **state)
{
    const struct fixture *f = *state;
    struct metastore *m = must_open(f);
    _cleanup_state_ const struct cluster_state *s = state_new("c");
    commit_buckets(m, &s, 2);
    _cleanup_state_ const struct cluster_state *kept = state_ref(s);
    uint64_t end = size_of(f->log);
    commit_buckets(m, &s, 2);
    m->ops->close(m);
    _cleanup_(buf_done)
    struct buf log = BUF_INIT;
    copy_of(f->log, &log);
    log.data[end + 40] ^= 1;
    overwrite(f->log, log.data, log.len);
    struct error err = ERROR_INIT;
    assert_int_equal(try_open(f, &m, &err), E_CORRUPT);
    char *command = strstr(err.message, "truncate -s ");
    assert_non_null(command);
    assert_int_equal(system(command), 0);
    _cleanup_state_ const struct cluster_state *now = found(f);
    assert_same(now, kept);
}

static void a_missing_file_is_refused(void **state)
{
    const struct fixture *f = *state;
    struct metastore *m = must_open(f);
    _cleanup_state_ const struct cluster_state *s = state_new("c");
    commit_buckets(m, &s, 3);
    m->ops->close(m);
    _cleanup_(buf_done)
    struct buf snapshot = BUF_INIT;
    copy_of(f->snapshot, &snapshot);
    unlink(f->snapshot);
    assert_refused(f, "missing");
    overwrite(f->snapshot, snapshot.data, snapshot.len);
    unlink(f->log);
    assert_refused(f, "missing");
}

static void a_log_from_another_time_is_refused(void **state)
{
    struct fixture *f = *state;
    struct metastore *m = must_open(f);
    _cleanup_state_ const struct cluster_state *s = state_new("c");
    commit_buckets(m, &s, 2);
    _cleanup_(buf_done)
    struct buf old_snapshot = BUF_INIT;
    copy_of(f->snapshot, &old_snapshot);
    m->ops->close(m);
    f->fold_bytes = 1;
    m = must_open(f);
    commit_buckets(m, &s, 2); /* folds */
    m->ops->close(m);
    overwrite(f->snapshot, old_snapshot.data, old_snapshot.len);
    assert_refused(f, "later snapshot");
}

/* The crash between the two files of a fold, in both of its forms. */
static void a_fold_cut_in_the_middle_is_whole(void **state)
{
    struct fixture *f = *state;
    struct metastore *m = must_open(f);
    _cleanup_state_ const struct cluster_state *s = state_new("c");
    commit_buckets(m, &s, 4);
    m->ops->close(m);
    _cleanup_(buf_done)
    struct buf old_log = BUF_INIT;
    copy_of(f->log, &old_log);
    f->fold_bytes = 1;
    m = must_open(f);
    commit_buckets(m, &s, 1);
    m->ops->close(m);
    /* The new snapshot beside the log of before, which even lacks the last change. */
    overwrite(f->log, old_log.data, old_log.len);
    m = must_open(f);
    _cleanup_state_ const struct cluster_state *now = load(m);
    assert_same(now, s);
    commit_buckets(m, &now, 1);
    m->ops->close(m);
    _cleanup_state_ const struct cluster_state *after = found(f);
    assert_same(after, now);
}

static void a_first_commit_cut_short_is_a_new_store(void **state)
{
    const struct fixture *f = *state;
    struct metastore *m = must_open(f);
    _cleanup_state_ const struct cluster_state *s = state_new("c");
    _cleanup_state_ const struct cluster_state *one = with_bucket(s, 1);
    assert_int_equal(fault_configure("disk.rename=EIO@2", NULL), 0);
    assert_int_equal(m->ops->commit(m, NULL, one, NULL), E_IO);
    fault_configure(NULL, NULL);
    m->ops->close(m);
    assert_int_equal(access(f->log, F_OK), 0);
    assert_null(found(f));
    m = must_open(f);
    assert_int_equal(m->ops->commit(m, NULL, one, NULL), 0);
    m->ops->close(m);
    _cleanup_state_ const struct cluster_state *now = found(f);
    assert_same(now, one);
}

static void a_failed_commit_does_not_spoil_later_ones(void **state)
{
    static const struct {
        const char *faults;
        int code;
    } rows[] = {
        {"metastore.write=ENOSPC@1", E_NO_SPACE},
        {"disk.write=EIO@1", E_IO},
        {"disk.sync=EIO@1", E_IO},
    };
    const struct fixture *f = *state;
    struct metastore *m = must_open(f);
    _cleanup_state_ const struct cluster_state *s = state_new("c");
    commit_buckets(m, &s, 2);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        _cleanup_state_ const struct cluster_state *lost = with_bucket(s, 1000);
        assert_int_equal(fault_configure(rows[i].faults, NULL), 0);
        assert_int_equal(m->ops->commit(m, s, lost, NULL), rows[i].code);
        fault_configure(NULL, NULL);
        commit_buckets(m, &s, 2);
        m->ops->close(m);
        m = must_open(f);
        _cleanup_state_ const struct cluster_state *now = load(m);
        assert_same(now, s);
    }
    m->ops->close(m);
}

/* After a sync that failed nobody knows what the disk has: either state may be found. */
static void a_commit_in_doubt_is_one_or_the_other(void **state)
{
    const struct fixture *f = *state;
    struct metastore *m = must_open(f);
    _cleanup_state_ const struct cluster_state *s = state_new("c");
    commit_buckets(m, &s, 2);
    _cleanup_state_ const struct cluster_state *doubtful = with_bucket(s, 1000);
    assert_int_equal(fault_configure("disk.sync=EIO@1", NULL), 0);
    assert_int_equal(m->ops->commit(m, s, doubtful, NULL), E_IO);
    fault_configure(NULL, NULL);
    m->ops->close(m);
    _cleanup_state_ const struct cluster_state *now = found(f);
    assert_true(now->version == s->version || now->version == doubtful->version);
}

static void a_fold_that_fails_costs_no_change(void **state)
{
    struct fixture *f = *state;
    f->fold_bytes = 1;
    struct metastore *m = must_open(f);
    _cleanup_state_ const struct cluster_state *s = state_new("c");
    commit_buckets(m, &s, 2);
    for (unsigned rename = 1; rename <= 2; rename++) {
        char faults[32];
        snprintf(faults, sizeof faults, "disk.rename=EIO@%u", rename);
        assert_int_equal(fault_configure(faults, NULL), 0);
        commit_buckets(m, &s, 1);
        fault_configure(NULL, NULL);
        commit_buckets(m, &s, 3);
    }
    m->ops->close(m);
    _cleanup_state_ const struct cluster_state *now = found(f);
    assert_same(now, s);
}

/* The fifth sync of a commit that folds is that of the directory, with the new log in its place:
 * the one that was written until then has no name any more. */
static void what_follows_a_fold_that_fails_late_is_found(void **state)
{
    struct fixture *f = *state;
    f->fold_bytes = 2000;
    struct metastore *m = must_open(f);
    _cleanup_state_ const struct cluster_state *s = state_new("c");
    commit_buckets(m, &s, 1);
    for (uint64_t before = 0; size_of(f->log) > before;) {
        before = size_of(f->log);
        assert_int_equal(fault_configure("disk.sync=EIO@5", NULL), 0);
        commit_buckets(m, &s, 1);
        fault_configure(NULL, NULL);
    }
    commit_buckets(m, &s, 1);
    m->ops->close(m);
    _cleanup_state_ const struct cluster_state *now = found(f);
    assert_same(now, s);
}

static void a_directory_has_one_user(void **state)
{
    const struct fixture *f = *state;
    struct metastore *m = must_open(f);
    struct metastore *second = NULL;
    struct error err = ERROR_INIT;
    assert_int_equal(try_open(f, &second, &err), E_EXISTS);
    char pid[24];
    snprintf(pid, sizeof pid, "process %d ", (int)getpid());
    assert_non_null(strstr(err.message, pid));
    m->ops->close(m);
    m = must_open(f);
    m->ops->close(m);
}

static void temporaries_of_a_crash_are_removed(void **state)
{
    const struct fixture *f = *state;
    char path[128];
    assert_null(found(f));
    snprintf(path, sizeof path, "%s/snapshot.tmp-0123456789", f->dir);
    overwrite(path, "x", 1);
    assert_null(found(f));
    assert_int_equal(access(path, F_OK), -1);
}

/* A child commits until it is killed, telling what was acknowledged; nothing of that is lost. */
static void commit_for_ever(const struct fixture *f, int tell)
{
    struct metastore *m = must_open(f);
    const struct cluster_state *s = load(m);
    if (s == NULL)
        s = state_new("c");
    for (;;) {
        commit_buckets(m, &s, 1);
        if (write(tell, &s->version, sizeof s->version) != sizeof s->version)
            _exit(1);
    }
}

static uint64_t kill_after(const struct fixture *f, unsigned commits)
{
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(pipes[0]);
        commit_for_ever(f, pipes[1]);
    }
    close(pipes[1]);
    uint64_t version = 0;
    for (unsigned i = 0; i < commits; i++)
        assert_int_equal(read(pipes[0], &version, sizeof version), sizeof version);
    kill(child, SIGKILL);
    uint64_t later;
    while (read(pipes[0], &later, sizeof later) == sizeof later)
        version = later;
    close(pipes[0]);
    assert_int_equal(waitpid(child, NULL, 0), child);
    return version;
}

static void what_was_acknowledged_survives_kills(void **state)
{
    struct fixture *f = *state;
    f->fold_bytes = 1500; /* kills fall into folds, too */
    for (unsigned round = 0; round < 25; round++) {
        uint64_t acknowledged = kill_after(f, 1 + round % 7);
        _cleanup_state_ const struct cluster_state *s = found(f);
        assert_non_null(s);
        assert_in_range(s->version, acknowledged, acknowledged + 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_new_store_is_empty, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_committed_is_found, setup, teardown),
        cmocka_unit_test_setup_teardown(a_log_cut_anywhere_gives_the_last_whole_change, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_cut_log_goes_on, setup, teardown),
        cmocka_unit_test_setup_teardown(zeros_at_the_end_are_a_torn_tail, setup, teardown),
        cmocka_unit_test_setup_teardown(a_changed_byte_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(the_way_out_of_damage_works, setup, teardown),
        cmocka_unit_test_setup_teardown(a_missing_file_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_log_from_another_time_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_fold_cut_in_the_middle_is_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(a_first_commit_cut_short_is_a_new_store, setup, teardown),
        cmocka_unit_test_setup_teardown(a_failed_commit_does_not_spoil_later_ones, setup, teardown),
        cmocka_unit_test_setup_teardown(a_commit_in_doubt_is_one_or_the_other, setup, teardown),
        cmocka_unit_test_setup_teardown(a_fold_that_fails_costs_no_change, setup, teardown),
        cmocka_unit_test_setup_teardown(what_follows_a_fold_that_fails_late_is_found, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_directory_has_one_user, setup, teardown),
        cmocka_unit_test_setup_teardown(temporaries_of_a_crash_are_removed, setup, teardown),
        cmocka_unit_test_setup_teardown(what_was_acknowledged_survives_kills, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

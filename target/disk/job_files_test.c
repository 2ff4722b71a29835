/* The directories of jobs: made, found, and settled after what crashes leave. */
#include "target/disk/job_files.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>

#include "common/buf.h"
#include "common/jsonx.h"
#include "target/disk/job_file.h"
#include "target/testing/store_fixture.h"
#include "xaction/xaction.h"

/* --- a kind that only notes what it was told -------------------------------------------------- */

static const struct space_limits no_limits = {.out = 0};

static struct {
    pthread_mutex_t lock;
    char notes[200]; /* "undo srt-1;commit srt-2;" */
} fake = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int fake_open(const struct xaction_ops *kind, void *host, const struct job *job, void **self,
                     struct error *err)
{
    (void)kind;
    (void)host, (void)err;
    *self = xstrdup(job->id);
    return 0;
}

static int fake_note(void *self, const char *what, struct error *err)
{
    pthread_mutex_lock(&fake.lock);
    size_t used = strlen(fake.notes);
    snprintf(fake.notes + used, sizeof fake.notes - used, "%s %s;", what, (char *)self);
    pthread_mutex_unlock(&fake.lock);
    return object_remove_job_files(fx.store, self, err);
}

static int fake_nothing(void *self, struct error *err)
{
    (void)self, (void)err;
    return 0;
}

static int fake_commit(void *self, struct error *err)
{
    return fake_note(self, "commit", err);
}

static int fake_undo(void *self, struct error *err)
{
    return fake_note(self, "undo", err);
}

static json_t *fake_status(void *self)
{
    (void)self;
    return NULL;
}

static void fake_stop(void *self)
{
    (void)self;
}

static const struct xaction_ops fake_ops = {.kind = "sort",
                                            .open = fake_open,
                                            .prepare = fake_nothing,
                                            .run = fake_nothing,
                                            .stop = fake_stop,
                                            .commit = fake_commit,
                                            .undo = fake_undo,
                                            .status = fake_status,
                                            .free = free};
static const struct xaction_ops *const fake_kinds[] = {&fake_ops, NULL};

static struct xactions *registry;

static int setup(void **state)
{
    fake.notes[0] = '\0';
    registry = xactions_new(fake_kinds, NULL, NULL);
    return fixture_setup(state);
}

static int teardown(void **state)
{
    xactions_free(registry);
    return fixture_teardown(state);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

/* --- jobs and documents, shortly -------------------------------------------------------------- */

static struct job *make_job(const char *id, enum job_state state)
{
    struct job *job = job_new(id, "sort");
    job->state = state;
    job->spec = json_pack("{s:s}", "output_format", "out-%d");
    job->plan = json_object();
    return job;
}

static void begin(const char *id)
{
    struct job *job = make_job(id, JOB_QUEUED);
    assert_int_equal(job_files_begin(fx.mountpaths, job, NULL), 0);
    job_unref(job);
}

/* Settles by documents that have these jobs: "srt-1:running srt-2:failed". */
static void settle(const char *text)
{
    struct job *list[4];
    struct jobs jobs = {.jobs = list};
    char id[40], word[40];
    int used;
    for (; sscanf(text, " %39[^:]:%39s%n", id, word, &used) == 2; text += used) {
        enum job_state state;
        assert_int_equal(job_state_from_name(word, &state, NULL), 0);
        list[jobs.count++] = make_job(id, state);
    }
    job_files_settle(fx.mountpaths, registry, &jobs, "t1");
    for (size_t i = 0; i < jobs.count; i++)
        job_unref(list[i]);
}

static void wait_ended(const char *id)
{
    for (;;) {
        _cleanup_json_ json_t *report = xactions_report(registry, id);
        const char *state = json_string_value(json_object_get(report, "state"));
        if (strcmp(state, "stopped") == 0 || strcmp(state, "committed") == 0)
            return;
        assert_string_not_equal(state, "none");
        sched_yield();
    }
}

/* What has ended is dropped by the first settling that finds its thread at rest. */
static void forget(const char *id)
{
    for (;;) {
        settle("");
        _cleanup_json_ json_t *report = xactions_report(registry, id);
        if (strcmp(json_string_value(json_object_get(report, "state")), "none") == 0)
            return;
        sched_yield();
    }
}

static void assert_notes(const char *want)
{
    pthread_mutex_lock(&fake.lock);
    assert_string_equal(fake.notes, want);
    pthread_mutex_unlock(&fake.lock);
}

static bool exists(const char *mountpath, const char *below)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s/.dfc/jobs/%s", fx.dir, mountpath, below);
    return access(path, F_OK) == 0;
}

static void write_file(const char *mountpath, const char *below, const char *text)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s/.dfc/jobs/%s", fx.dir, mountpath, below);
    assert_int_equal(file_replace(path, text, strlen(text), 0600, NULL), 0);
}

static void make_dir(const char *mountpath, const char *id)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s/.dfc/jobs/%s", fx.dir, mountpath, id);
    assert_int_equal(file_mkdirs(path, 0700, NULL), 0);
}

/* --- files ------------------------------------------------------------------------------------ */

static void test_begin(void **state)
{
    (void)state;
    begin("srt-1");
    begin("srt-1"); /* the order may come twice */
    assert_int_equal(count_in("mp1", "jobs"), 1);
    assert_int_equal(count_in("mp1", "jobs/srt-1"), 1);
    assert_int_equal(count_in("mp2", "jobs/srt-1"), 1);
    int fd = -1;
    assert_int_equal(job_files_open(fx.mountpaths, "srt-1", "job.json", &fd, NULL), 0);
    char text[1000] = "";
    assert_true(read(fd, text, sizeof text - 1) > 0);
    close(fd);
    _cleanup_json_ json_t *doc = NULL;
    struct job *job = NULL;
    assert_int_equal(json_parse(text, strlen(text), &doc, NULL), 0);
    assert_int_equal(job_from_json(doc, &job, NULL), 0);
    assert_string_equal(job->id, "srt-1");
    assert_string_equal(json_string_value(json_object_get(job->spec, "output_format")), "out-%d");
    job_unref(job);
}

/* What it has made of the rest goes with the undo. */
static void test_begin_on_a_full_disk(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct job *job = make_job("srt-1", JOB_QUEUED);
    assert_int_equal(fault_configure("disk.write=ENOSPC@2", NULL), 0);
    assert_int_equal(job_files_begin(fx.mountpaths, job, &err), E_NO_SPACE);
    assert_non_null(strstr(err.message, "job 'srt-1'"));
    assert_true(exists("mp1", "srt-1/job.json"));
    assert_false(exists("mp2", "srt-1/job.json"));
    settle("srt-1:failed");
    wait_ended("srt-1");
    assert_int_equal(count_in("mp1", "jobs"), 0);
    assert_int_equal(count_in("mp2", "jobs"), 0);
    job_unref(job);
}

static void test_open_on_any_mountpath(void **state)
{
    (void)state;
    begin("srt-1");
    write_file("mp2", "srt-1/in-7", "x");
    int fd = -1;
    struct error err = ERROR_INIT;
    assert_int_equal(job_files_open(fx.mountpaths, "srt-1", "in-7", &fd, &err), 0);
    close(fd);
    assert_int_equal(job_files_open(fx.mountpaths, "srt-1", "in-8", &fd, &err), E_NOT_FOUND);
    assert_int_equal(job_files_open(fx.mountpaths, "srt-2", "in-7", &fd, &err), E_NOT_FOUND);
}

/* A mountpath that was attached after the job had begun has no directory of it. */
static void test_written_where_the_job_is(void **state)
{
    (void)state;
    _cleanup_buf_ struct buf text = BUF_INIT;
    _cleanup_free_ char *first = xprintf("%s/mp1/.dfc/jobs/srt-1", fx.dir);
    _cleanup_free_ char *second = xprintf("%s/mp2/.dfc/jobs/srt-1", fx.dir);
    begin("srt-1");
    assert_int_equal(file_remove_tree(first, NULL), 0);
    assert_int_equal(job_files_append(fx.mountpaths, "srt-1", "built", "one ", 4, NULL), 0);
    assert_int_equal(job_files_append(fx.mountpaths, "srt-1", "built", "two", 3, NULL), 0);
    assert_int_equal(job_files_read(fx.mountpaths, "srt-1", "built", &text, NULL), 0);
    assert_string_equal(buf_str(&text), "one two");
    assert_int_equal(job_files_write(fx.mountpaths, "srt-1", "built", "new", 3, NULL), 0);
    buf_clear(&text);
    assert_int_equal(job_files_read(fx.mountpaths, "srt-1", "built", &text, NULL), 0);
    assert_string_equal(buf_str(&text), "new");
    assert_int_equal(file_remove_tree(second, NULL), 0);
    assert_int_equal(job_files_write(fx.mountpaths, "srt-1", "built", "x", 1, NULL),
                     E_MOUNTPATH_DISABLED);
    assert_int_equal(access(first, F_OK), -1); /* nor is one made, perhaps after the job's end */
}

static void test_pins_are_cleared(void **state)
{
    (void)state;
    begin("srt-1");
    begin("srt-2");
    write_file("mp1", "srt-1/in-7", "x");
    write_file("mp2", "srt-1/in-8", "y");
    write_file("mp2", "srt-1/pinned", "z");
    write_file("mp2", "srt-2/in-7", "x");
    assert_int_equal(job_files_clear(fx.mountpaths, "srt-1", "in-", NULL), 0);
    assert_int_equal(job_files_clear(fx.mountpaths, "srt-3", "in-", NULL), 0);
    assert_int_equal(count_in("mp1", "jobs/srt-1"), 1);
    assert_int_equal(count_in("mp2", "jobs/srt-1"), 2);
    assert_true(exists("mp2", "srt-1/pinned") && exists("mp2", "srt-2/in-7"));
}

/* --- a large one ------------------------------------------------------------------------------ */

static const struct space_limits any_space = {0};

static void test_a_file_has_its_name_when_it_is_whole(void **state)
{
    (void)state;
    struct job_file f;
    struct buf text = BUF_INIT;
    begin("srt-1");
    assert_int_equal(job_file_create(fx.mountpaths, &any_space, "srt-1", "in-1", 5, &f, NULL), 0);
    assert_int_equal(file_write_all(f.fd, "hello", 5, NULL), 0);
    assert_int_equal(job_files_read(fx.mountpaths, "srt-1", "in-1", &text, NULL), E_NOT_FOUND);
    assert_int_equal(job_file_keep(&f, NULL), 0);
    job_file_done(&f);
    assert_int_equal(job_files_read(fx.mountpaths, "srt-1", "in-1", &text, NULL), 0);
    assert_string_equal(buf_str(&text), "hello");
    buf_done(&text);
    assert_int_equal(count_in("mp1", "jobs/srt-1") + count_in("mp2", "jobs/srt-1"), 3);
}

static void test_what_is_not_kept_goes(void **state)
{
    (void)state;
    static const char *const faults[] = {NULL, "disk.sync=EIO@1"};
    begin("srt-1");
    for (size_t i = 0; i < 2; i++) {
        struct job_file f;
        assert_int_equal(job_file_create(fx.mountpaths, &any_space, "srt-1", "in-1", 5, &f, NULL),
                         0);
        if (faults[i] != NULL) {
            assert_int_equal(fault_configure(faults[i], NULL), 0);
            assert_int_equal(job_file_keep(&f, NULL), E_IO);
        }
        job_file_done(&f);
        assert_int_equal(count_in("mp1", "jobs/srt-1") + count_in("mp2", "jobs/srt-1"), 2);
    }
}

static void test_a_file_that_is_too_large(void **state)
{
    (void)state;
    struct job_file f;
    struct error err = ERROR_INIT;
    begin("srt-1");
    assert_int_equal(
        job_file_create(fx.mountpaths, &any_space, "srt-1", "in-1", UINT64_C(1) << 60, &f, &err),
        E_NO_SPACE);
    job_file_done(&f);
    assert_int_equal(count_in("mp1", "jobs/srt-1") + count_in("mp2", "jobs/srt-1"), 2);
}

static void test_work_files_have_no_names(void **state)
{
    (void)state;
    begin("srt-1");
    for (unsigned n = 0; n < 4; n++) {
        int fd = -1;
        struct stat st;
        char text[6] = "";
        assert_int_equal(job_files_open_work(fx.mountpaths, &no_limits, "srt-1", n, &fd, NULL), 0);
        assert_int_equal(file_pwrite_all(fd, "hello", 5, 0, NULL), 0);
        assert_int_equal(file_pread_full(fd, text, 5, 0, NULL), 0);
        assert_string_equal(text, "hello");
        assert_int_equal(fstat(fd, &st), 0);
        assert_int_equal(st.st_nlink, 0);
        close(fd);
    }
    assert_int_equal(count_in("mp1", "jobs/srt-1"), 1);
    assert_int_equal(count_in("mp2", "jobs/srt-1"), 1);
    int fd = -1;
    assert_int_equal(job_files_open_work(fx.mountpaths, &no_limits, "srt-2", 0, &fd, NULL), E_IO);
}

static void test_work_goes_where_there_is_room(void **state)
{
    (void)state;
    static const uint64_t even[] = {100, 90, 60}, odd[] = {100, 49, 50}, none[] = {0, 0, 0};
    for (unsigned n = 0; n < 6; n++) {
        assert_int_equal(job_files_roomy(even, 3, n), n % 3);
        assert_int_equal(job_files_roomy(odd, 3, n), n % 3 == 1 ? 2 : n % 3);
        assert_int_equal(job_files_roomy(none, 3, n), n % 3); /* whoever tries will say it */
    }
    static const uint64_t last[] = {0, 0, 7};
    assert_int_equal(job_files_roomy(last, 3, 0), 2);
}

/* --- settling --------------------------------------------------------------------------------- */

static void test_what_has_not_ended_stays(void **state)
{
    (void)state;
    begin("srt-1");
    settle("srt-1:queued");
    settle("srt-1:running");
    settle("srt-1:committing");
    settle("srt-1:stopping");
    assert_notes("");
    assert_true(exists("mp1", "srt-1/job.json"));
}

static void test_what_has_ended_goes(void **state)
{
    (void)state;
    begin("srt-1");
    begin("srt-2");
    settle("srt-1:failed srt-2:running");
    wait_ended("srt-1");
    assert_notes("undo srt-1;"); /* once, though it lies on two mountpaths */
    settle("srt-1:failed srt-2:finished");
    wait_ended("srt-2");
    assert_notes("undo srt-1;commit srt-2;");
    begin("srt-3");
    settle("");
    wait_ended("srt-3");
    assert_notes("undo srt-1;commit srt-2;undo srt-3;");
    assert_int_equal(count_in("mp1", "jobs"), 0);
    assert_int_equal(count_in("mp2", "jobs"), 0);
    settle("");
    assert_notes("undo srt-1;commit srt-2;undo srt-3;");
}

/* One of the two is enough to know what the job was. */
static void test_half_a_beginning(void **state)
{
    (void)state;
    begin("srt-1");
    char path[300];
    snprintf(path, sizeof path, "%s/mp1/.dfc/jobs/srt-1/job.json", fx.dir);
    assert_int_equal(unlink(path), 0);
    settle("");
    wait_ended("srt-1");
    assert_notes("undo srt-1;");
    make_dir("mp1", "srt-2");
    settle("srt-2:aborted");
    assert_notes("undo srt-1;");
    assert_int_equal(count_in("mp1", "jobs"), 0);
    assert_int_equal(count_in("mp2", "jobs"), 0);
}

/* What cannot be understood is left for people to look at, and keeps nothing else. */
static void test_damaged_documents(void **state)
{
    (void)state;
    static const char other_id[] = "{\"id\": \"srt-9\", \"kind\": \"sort\","
                                   " \"state\": \"queued\", \"participants\": []}";
    static const char *const texts[] = {"", "{", "[]", "{\"id\": \"srt-1\"}", other_id};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        make_dir("mp1", "srt-1");
        write_file("mp1", "srt-1/job.json", texts[i]);
        begin("srt-2");
        settle("");
        wait_ended("srt-2");
        assert_true(exists("mp1", "srt-1/job.json"));
        assert_false(exists("mp1", "srt-2"));
        forget("srt-2");
    }
    assert_notes("undo srt-2;undo srt-2;undo srt-2;undo srt-2;undo srt-2;");
}

/* A job of this run whose directory is not there yet, or not any more. */
static void test_jobs_in_memory_are_settled(void **state)
{
    (void)state;
    struct job *job = make_job("srt-1", JOB_QUEUED);
    assert_int_equal(xactions_order(registry, XACTION_PREPARE, job, NULL), 0);
    settle("srt-1:queued");
    assert_notes("");
    settle("srt-1:aborted");
    wait_ended("srt-1");
    assert_notes("undo srt-1;");
    job_unref(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_begin),
        TEST(test_begin_on_a_full_disk),
        TEST(test_open_on_any_mountpath),
        TEST(test_written_where_the_job_is),
        TEST(test_pins_are_cleared),
        TEST(test_a_file_has_its_name_when_it_is_whole),
        TEST(test_what_is_not_kept_goes),
        TEST(test_a_file_that_is_too_large),
        TEST(test_work_files_have_no_names),
        cmocka_unit_test(test_work_goes_where_there_is_room),
        TEST(test_what_has_not_ended_stays),
        TEST(test_what_has_ended_goes),
        TEST(test_half_a_beginning),
        TEST(test_damaged_documents),
        TEST(test_jobs_in_memory_are_settled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

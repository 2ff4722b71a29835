/* Every way in which the disk can fail under PUT and DELETE, and a crash at each of the same
 * places: the old object stays whole, nothing is left behind, and the list says the same as the
 * files.  Each fault is made to happen at its 1st, 2nd, … pass until the operation no longer meets
 * it, so that no pass is forgotten. */
#include "target/testing/store_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "common/tsan.h"
#include "target/format/object_path.h"
#include "target/store/sweep.h"

static const char *const points[] = {"disk.open",   "disk.write", "disk.xattr", "disk.sync",
                                     "index.write", "disk.mkdir", "disk.rename"};
enum { POINTS = sizeof points / sizeof *points, PASSES_MAX = 20 };

/* What is done to "a", which is "old" or does not exist before. */
struct scenario {
    bool fresh; /* nor does its directory, or the bucket's */
    bool exists;
    bool deletes;
    enum durability durability;
};

static const struct scenario scenarios[] = {
    {.exists = false, .deletes = false, .durability = DURABILITY_SYNC},
    {.exists = true, .deletes = false, .durability = DURABILITY_SYNC},
    {.exists = true, .deletes = true, .durability = DURABILITY_SYNC},
    {.exists = false, .deletes = false, .durability = DURABILITY_ASYNC},
    {.exists = true, .deletes = false, .durability = DURABILITY_ASYNC},
    {.exists = true, .deletes = true, .durability = DURABILITY_ASYNC},
    {.fresh = true, .durability = DURABILITY_SYNC},
    {.fresh = true, .durability = DURABILITY_ASYNC},
};
enum { SCENARIOS = sizeof scenarios / sizeof *scenarios };

static const char *text_before(const struct scenario *sc)
{
    return sc->exists ? "old" : NULL;
}

static const char *text_after(const struct scenario *sc)
{
    return sc->deletes ? NULL : "brand new";
}

static int act(const struct scenario *sc, struct error *err)
{
    return sc->deletes ? delete_as("a", sc->durability, err)
                       : put_text_as("a", text_after(sc), sc->durability, err);
}

static void assert_holds(const char *text)
{
    assert_text("a", text);
    assert_list(text == NULL ? "" : strcmp(text, "old") == 0 ? "a:3 " : "a:9 ");
    assert_no_leftovers();
}

static void begin(const struct scenario *sc)
{
    fixture_open();
    if (sc->fresh)
        return;
    assert_int_equal(put_text_as("a", "old", DURABILITY_SYNC, NULL), 0);
    if (!sc->exists)
        assert_int_equal(delete_name("a"), 0);
}

/* True: the operation still meets this pass of the point, and failed as it should. */
static bool fails_at(const struct scenario *sc, const char *point, const char *errname, int code,
                     unsigned pass)
{
    char spec[64];
    struct error err = ERROR_INIT;
    snprintf(spec, sizeof spec, "%s=%s@%u", point, errname, pass);
    assert_int_equal(fault_configure(spec, NULL), 0);
    int got = act(sc, &err);
    assert_int_equal(fault_configure(NULL, NULL), 0);
    if (got == 0)
        return false;
    if (got != code)
        fail_msg("%s: %s, not %s", spec, error_name(got), error_name(code));
    if (strstr(err.message, "mp") == NULL) /* of which disk */
        fail_msg("%s: '%s' names no mountpath", spec, err.message);
    return true;
}

static void test_errors_change_nothing_and_name_the_disk(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int code;
    } errors[] = {{"EIO", E_IO}, {"ENOSPC", E_NO_SPACE}};
    unsigned met = 0;
    for (size_t i = 0; i < SCENARIOS * POINTS * 2; i += TSAN_CASES) {
        const struct scenario *sc = &scenarios[i % SCENARIOS];
        const char *point = points[i / SCENARIOS % POINTS];
        unsigned e = (unsigned)(i / SCENARIOS / POINTS);
        unsigned pass = 1;
        begin(sc);
        while (fails_at(sc, point, errors[e].name, errors[e].code, pass)) {
            assert_holds(text_before(sc));
            assert_true((pass += TSAN_STRIDE) < PASSES_MAX);
            met++;
        }
        assert_holds(text_after(sc));
        fixture_close();
        assert_int_equal(file_remove_tree(fx.dir, NULL), 0);
    }
    assert_true(met >= 2 * 30 / TSAN_STRIDE / TSAN_CASES); /* the points are where they should be */
}

/* Between the rename and the sync that failed somebody may have read it, with its version. */
static void test_the_version_of_what_was_taken_back_does_not_come_again(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) { /* a new name, an overwrite, a DELETE */
        begin(&scenarios[i]);
        struct version before = scenarios[i].exists ? version_of("a") : (struct version){0};
        uint64_t taken_back = scenarios[i].exists ? before.counter + 1 : 3; /* 2: the tombstone */
        assert_int_equal(fault_configure("disk.sync=EIO@2", NULL), 0);
        assert_int_equal(act(&scenarios[i], NULL), E_IO);
        assert_int_equal(fault_configure(NULL, NULL), 0);
        assert_holds(text_before(&scenarios[i]));
        put_text("a", "brand new");
        assert_true(version_of("a").counter > taken_back);
        fixture_close();
        assert_int_equal(file_remove_tree(fx.dir, NULL), 0);
    }
}

/* As copies.h does it: what the others have already. */
static int act_as(const struct scenario *sc, const struct object_moved *as, struct error *err)
{
    struct object_put *p;
    const struct object_condition any = {.check = NULL};
    struct object_put_spec spec = spec_of("a", DURABILITY_SYNC);
    const char *text = sc->deletes ? "" : text_after(sc);
    spec.size = strlen(text);
    if (as->tombstone)
        spec.checksum = CHECKSUM_NONE;
    assert_int_equal(object_put_begin(fx.store, &spec, &p, NULL), 0);
    assert_int_equal(object_put_write(p, text, strlen(text), NULL), 0);
    return object_put_commit_as_wait(p, as, &any, err);
}

/* It may have been read by then, and the others have it. */
static void test_what_stays_is_not_taken_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3 * 2; i++) { /* a new name, an overwrite, a DELETE */
        const struct scenario *sc = &scenarios[i / 2];
        const struct object_moved as = {
            .version = {1, 7, 9}, .modified_ms = 1, .tombstone = sc->deletes, .stays = i % 2 == 0};
        struct error err = ERROR_INIT;
        begin(sc);
        assert_int_equal(fault_configure("disk.sync=EIO@2", NULL), 0);
        assert_int_equal(act_as(sc, &as, &err), as.stays ? E_IN_DOUBT : E_IO);
        assert_int_equal(fault_configure(NULL, NULL), 0);
        assert_non_null(strstr(err.message, "mp")); /* of which disk */
        assert_holds(as.stays ? text_after(sc) : text_before(sc));
        fixture_close();
        fixture_open();
        assert_holds(as.stays ? text_after(sc) : text_before(sc));
        fixture_close();
        assert_int_equal(file_remove_tree(fx.dir, NULL), 0);
    }
}

/* Undoing can fail as well: then the index says that it is not to be relied on. */
static void test_an_index_that_cannot_be_undone_says_so(void **state)
{
    (void)state;
    begin(&scenarios[1]);
    assert_int_equal(fault_configure("disk.rename=EIO@1,index.write=EIO@2", NULL), 0);
    assert_int_equal(put_text_as("a", "brand new", DURABILITY_SYNC, NULL), E_IO);
    assert_int_equal(fault_configure(NULL, NULL), 0);
    assert_text("a", "old");
    struct list_request req = {
        .bucket_id = BUCKET, .prefix = "", .delimiter = "", .start_after = "", .limit = 10};
    struct list_page page;
    struct error err = ERROR_INIT;
    assert_int_equal(list_page(fx.store, &req, &page, &err), E_IO);
    assert_non_null(strstr(err.message, "has to be rebuilt"));
    fixture_close();
    fixture_open();
    assert_holds("old");
}

/* --- crashes ---------------------------------------------------------------------------------- */

/* In a process of its own: the operation with a fault that kills.  True: it was killed. */
static bool killed_at(const struct scenario *sc, const char *point, unsigned pass)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char spec[64];
        snprintf(spec, sizeof spec, "%s=kill@%u", point, pass);
        fixture_open();
        if (fault_configure(spec, NULL) != 0)
            _exit(2);
        _exit(act(sc, NULL) == 0 ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status)) {
        assert_int_equal(WTERMSIG(status), SIGKILL);
        return true;
    }
    assert_int_equal(WEXITSTATUS(status), 0);
    return false;
}

static bool equal_or_both_null(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* After a crash the object is the old one or the new one, and everything agrees. */
static void assert_recovered(const struct scenario *sc)
{
    fixture_open();
    _cleanup_free_ char *got = get_text("a");
    bool old = equal_or_both_null(got, text_before(sc));
    bool new = equal_or_both_null(got, text_after(sc));
    assert_true(old || new);
    assert_holds(old ? text_before(sc) : text_after(sc));
    put_text("a", "brand new");
    assert_holds("brand new");
    fixture_close();
}

static void test_a_crash_anywhere_leaves_old_or_new(void **state)
{
    (void)state;
    unsigned met = 0;
    for (size_t i = 0; i < SCENARIOS * POINTS; i += TSAN_CASES) {
        const struct scenario *sc = &scenarios[i % SCENARIOS];
        bool killed = true;
        for (unsigned pass = 1; killed; pass += TSAN_STRIDE) {
            assert_true(pass < PASSES_MAX);
            begin(sc);
            fixture_close();
            killed = killed_at(sc, points[i / SCENARIOS], pass);
            met += killed;
            assert_recovered(sc);
            assert_int_equal(file_remove_tree(fx.dir, NULL), 0);
        }
    }
    assert_true(met >= 30 / TSAN_STRIDE / TSAN_CASES);
}

/* A hidden output does not outlive a crash as a visible one, and a job can still take it back. */
static void test_hidden_objects_survive_a_crash_hidden(void **state)
{
    (void)state;
    begin(&scenarios[0]);
    fixture_close();
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        fixture_open();
        put_text_hidden("out", "hidden", "srt-1");
        put_text_hidden("a", "hidden", "srt-1"); /* over a tombstone */
        raise(SIGKILL);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    fixture_open();
    assert_holds(NULL);
    assert_int_equal(put_text_as("out", "x", DURABILITY_SYNC, NULL), E_OBJECT_RESERVED);
    assert_int_equal(object_discard(fx.store, BUCKET, "out", "srt-1", NULL), 0);
    assert_int_equal(object_discard(fx.store, BUCKET, "a", "srt-1", NULL), 0);
    assert_int_equal(put_text_as("out", "x", DURABILITY_SYNC, NULL), 0);
    put_text("a", "x");
    assert_true(version_of("a").counter > 3);
}

/* --- loss of power ---------------------------------------------------------------------------- */

static void put_without_checksum(const char *name)
{
    struct object_put_spec spec = spec_of(name, DURABILITY_ASYNC);
    spec.checksum = CHECKSUM_NONE;
    assert_int_equal(put_bytes(&spec, "hello", 5, NULL), 0);
}

/* What a file system may leave of bytes that it had not written: their length, and zeros. */
static void zero_bytes_of(const char *name)
{
    struct object_path place;
    object_path_set(&place, BUCKET, name);
    for (unsigned i = 1; i <= 2; i++) {
        char path[300];
        snprintf(path, sizeof path, "%s/mp%u/.dfc/obj/%s", fx.dir, i, place.text);
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        if (fd < 0)
            continue;
        assert_int_equal(pwrite(fd, "\0\0\0\0\0", 5, 0), 5);
        close(fd);
        return;
    }
    fail_msg("'%s' has no file", name);
}

/* A store that was killed with these objects in it, some of which are torn since. */
static void leave_torn_objects(void)
{
    static const atomic_bool never = false;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        fixture_open();
        put_text("flushed", "hello");
        if (sweep_flush(fx.store, &never, NULL) != 0)
            _exit(1);
        put_text("whole", "hello");
        put_text("torn", "hello");
        put_without_checksum("unknown");
        put_text_as("promised", "hello", DURABILITY_SYNC, NULL);
        raise(SIGKILL);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    zero_bytes_of("torn");
}

static void count_bytes(void *all, unsigned files, size_t bytes)
{
    (void)files;
    atomic_fetch_add((atomic_size_t *)all, bytes);
}

static void test_power_leaves_no_torn_object(void **state)
{
    (void)state;
    leave_torn_objects();
    fixture_open(); /* the same boot: a killed process tears nothing, and nothing is looked at */
    assert_list("flushed:5 promised:5 torn:5 unknown:5 whole:5 ");
    fixture_close();
    assert_int_equal(file_remove_tree(fx.dir, NULL), 0);

    leave_torn_objects();
    zero_bytes_of("flushed"); /* only to see that it is not read */
    zero_bytes_of("promised");
    assert_int_equal(fault_configure("life.boot=skip", NULL), 0);
    atomic_size_t bytes = 0;
    fixture_open_with(
        "1,2", (struct mountpaths_config){.on_progress = count_bytes, .progress_ctx = &bytes});
    assert_int_equal(bytes,
                     10); /* of the two with a checksum: a large one shows that it advances */
    assert_list("flushed:5 promised:5 whole:5 ");
    assert_text("whole", "hello");
    assert_text("torn", NULL);
    put_text("torn", "again");
    assert_true(version_of("torn").counter >
                VERSION_FLOOR_STEP); /* its first one may have been seen */
    fixture_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        closed_test(test_errors_change_nothing_and_name_the_disk),
        closed_test(test_the_version_of_what_was_taken_back_does_not_come_again),
        closed_test(test_what_stays_is_not_taken_back),
        closed_test(test_an_index_that_cannot_be_undone_says_so),
        closed_test(test_a_crash_anywhere_leaves_old_or_new),
        closed_test(test_hidden_objects_survive_a_crash_hidden),
        closed_test(test_power_leaves_no_torn_object),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

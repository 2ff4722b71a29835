/* Mountpaths that come and go while objects are there: none is lost, none is read old, and a crash
 * at any point leaves a state to go on from. */
#include "target/testing/store_fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "common/tsan.h"
#include "target/format/object_path.h"
#include "target/scrub/resilver.h"

enum { COUNT = 120 };

static char *path_of(unsigned n)
{
    return xprintf("%s/mp%u", fx.dir, n);
}

static void must(int code, const struct error *err)
{
    if (code != 0)
        fail_msg("%s", err->message);
}

static void attach(unsigned n)
{
    _cleanup_free_ char *path = path_of(n);
    struct error err = ERROR_INIT;
    must(mountpaths_attach(fx.mountpaths, path, &err), &err);
}

static void detach(unsigned n, bool lost)
{
    _cleanup_free_ char *path = path_of(n);
    struct error err = ERROR_INIT;
    must(mountpaths_detach(fx.mountpaths, path, lost, &err), &err);
}

static void disable(unsigned n)
{
    _cleanup_free_ char *path = path_of(n);
    struct error err = ERROR_INIT;
    must(mountpaths_disable(fx.mountpaths, path, "a test", false, &err), &err);
}

static void enable(unsigned n)
{
    _cleanup_free_ char *path = path_of(n);
    struct error err = ERROR_INIT;
    must(mountpaths_enable(fx.mountpaths, path, &err), &err);
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

static void resilver(void)
{
    struct error err = ERROR_INIT;
    must(try_resilver(&err), &err);
}

static const char *name_of(unsigned i, char out[static 16])
{
    snprintf(out, 16, "o%03u", i);
    return out;
}

/* Every third is deleted, every third written twice. */
static void fill(void)
{
    char name[16];
    for (unsigned i = 0; i < COUNT; i++) {
        put_text(name_of(i, name), "old");
        if (i % 3 == 1)
            put_text(name, "newer");
        if (i % 3 == 2)
            assert_int_equal(delete_name(name), 0);
    }
}

static void assert_filled(void)
{
    static const char *const want[] = {"old", "newer", NULL};
    char name[16];
    for (unsigned i = 0; i < COUNT; i++)
        assert_text(name_of(i, name), want[i % 3]);
    _cleanup_free_ char *list = list_text();
    assert_int_equal(strlen(list), COUNT / 3 * (strlen("o000:3 ") + strlen("o000:5 ")));
}

/* Each file is where HRW looks for it, and in that index alone. */
static void assert_placed(void)
{
    const struct mountpath_set *set = fixture_set();
    char name[16];
    for (unsigned i = 0; i < COUNT; i++) {
        const struct mountpath *to = fixture_pick(name_of(i, name));
        for (size_t k = 0; k < set->count; k++) {
            struct index_cursor *c;
            assert_int_equal(index_cursor_open(set->all[k]->index, &c, NULL), 0);
            int found = index_cursor_seek(c, BUCKET, name, false, NULL);
            bool has = found == 1 && strcmp(index_cursor_name(c), name) == 0;
            index_cursor_close(c);
            if (has != (set->all[k] == to))
                fail_msg("'%s' %s the index of '%s'", name, has ? "is in" : "is not in",
                         set->all[k]->path);
        }
    }
}

static void assert_settled(size_t members)
{
    const struct mountpath_set *set = fixture_set();
    assert_true(set->settled);
    assert_int_equal(set->roster->count, members);
    assert_placed();
    assert_filled();
}

static void test_attach_and_detach(void **state)
{
    (void)state;
    fill();
    attach(3);
    assert_false(fixture_set()->settled);
    assert_filled();
    resilver();
    assert_settled(3);
    detach(1, false);
    assert_filled();
    resilver();
    assert_settled(2);
    mountpaths_reap(fx.mountpaths);
    char path[100];
    snprintf(path, sizeof path, "%s/mp1/.dfc", fx.dir);
    assert_int_equal(access(path, F_OK), -1); /* released */
    fixture_close();
    fixture_open(); /* "1,2": what was detached stays away, what was attached is remembered */
    assert_settled(2);
    assert_string_equal(strrchr(fixture_mp(1)->path, '/'), "/mp3");
    attach(1);
    resilver();
    assert_settled(3);
}

/* Nobody but the operator removes what a scrub has moved aside. */
static void test_quarantine_keeps_a_mountpath(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    char path[120];
    fill();
    snprintf(path, sizeof path, "%s/mp1/.dfc/quarantine", fx.dir);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/mp1/.dfc/quarantine/1-a-2", fx.dir);
    assert_int_equal(file_replace(path, "x", 1, 0600, NULL), 0);
    detach(1, false);
    assert_int_equal(try_resilver(&err), E_CORRUPT);
    assert_non_null(strstr(err.message, "quarantine"));
    assert_int_equal(unlink(path), 0);
    resilver();
    assert_settled(1);
}

static void test_an_attach_is_refused(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    _cleanup_free_ char *first = path_of(1), *third = path_of(3);
    assert_int_equal(mountpaths_attach(fx.mountpaths, first, &err), E_EXISTS);
    assert_int_equal(mountpaths_attach(fx.mountpaths, "mp3", &err), E_INVALID);
    fill();
    char command[300];
    snprintf(command, sizeof command, "cp -a %s %s && sed -i s/mp1/mp3/ %s/.dfc/format.json", first,
             third, third);
    assert_int_equal(system(command), 0);
    assert_int_equal(mountpaths_attach(fx.mountpaths, third, &err), E_EXISTS); /* a copy */
    snprintf(command, sizeof command,
             "sed -i -E 's/\"target\":\"t1\"/\"target\":\"t9\"/; "
             "s/\"mountpath\":\"mp-/\"mountpath\":\"mp-x/' %s/.dfc/format.json",
             third);
    assert_int_equal(system(command), 0);
    assert_int_equal(mountpaths_attach(fx.mountpaths, third, &err), E_MOUNTPATH_STATE);
    assert_non_null(strstr(err.message, "belongs to target 't9'"));
    snprintf(command, sizeof command,
             "sed -i 's/\"target\":\"t9\"/\"target\":\"t1\"/' %s/.dfc/format.json", third);
    assert_int_equal(system(command), 0);
    assert_int_equal(mountpaths_attach(fx.mountpaths, third, &err), E_MOUNTPATH_STATE);
    assert_non_null(strstr(err.message, "earlier time"));
    assert_int_equal(fixture_set()->roster->count, 2);
}

/* Its names are refused until it is back, the others are served, new ones among them. */
static void test_disable_and_enable(void **state)
{
    (void)state;
    fill();
    put_text("for-1", "x");
    unsigned refused = 0;
    disable(1);
    char name[16];
    for (unsigned i = 0; i < COUNT; i++) {
        struct object o;
        struct error err = ERROR_INIT;
        int code = object_head(fx.store, BUCKET, name_of(i, name), &o, &err);
        if (code == E_MOUNTPATH_DISABLED) {
            refused++;
            assert_non_null(strstr(err.message, "mp1' of target 't1'"));
            assert_true(object_seems_lost(fx.store, BUCKET, name)); /* who looked before asks */
            assert_int_equal(object_explain_miss(fx.store, BUCKET, name, NULL), code);
            assert_int_equal(put_text_as(name, "x", DURABILITY_SYNC, NULL), code);
            assert_int_equal(delete_name(name), code);
        } else {
            assert_int_equal(code, i % 3 == 2 ? E_OBJECT_NOT_FOUND : 0);
        }
    }
    assert_in_range(refused, COUNT / 4, COUNT * 3 / 4);
    const struct list_request req = {
        .bucket_id = BUCKET, .prefix = "", .delimiter = "", .start_after = "", .limit = 10};
    struct list_page page;
    assert_int_equal(list_page(fx.store, &req, &page, NULL), E_MOUNTPATH_DISABLED);
    const struct roster_member *m = &fixture_set()->roster->members[0];
    assert_true(m->counted);
    assert_in_range(m->objects, 1, COUNT);
    assert_string_equal(m->why, "a test");
    fixture_close();
    fixture_open();
    assert_true(fixture_set()->roster->members[0].disabled);
    enable(1);
    fixture_close();
    fixture_open();
    assert_text("for-1", "x");
    assert_int_equal(delete_name("for-1"), 0);
    assert_settled(2);
}

/* With a disk out, another one is put in: what may lie on the first is refused, all else is served.
 */
static void test_attach_while_one_is_disabled(void **state)
{
    (void)state;
    fill();
    disable(1);
    attach(3);
    char name[16];
    unsigned refused = 0, served = 0;
    for (unsigned i = 0; i < COUNT; i++) {
        struct object o;
        int code = object_head(fx.store, BUCKET, name_of(i, name), &o, NULL);
        refused += code == E_MOUNTPATH_DISABLED;
        served += code == (i % 3 == 2 ? E_OBJECT_NOT_FOUND : 0);
    }
    assert_int_equal(refused + served, COUNT);
    assert_in_range(served, COUNT / 4, COUNT * 3 / 4);
    struct error err = ERROR_INIT;
    assert_int_equal(try_resilver(&err), E_MOUNTPATH_DISABLED);
    assert_false(fixture_set()->settled);
    enable(1);
    assert_filled();
    resilver();
    assert_settled(3);
}

static void test_one_that_is_lost_is_given_up(void **state)
{
    (void)state;
    fill();
    struct error err = ERROR_INIT;
    _cleanup_free_ char *first = path_of(1);
    disable(1);
    assert_int_equal(mountpaths_detach(fx.mountpaths, first, false, &err), E_MOUNTPATH_STATE);
    detach(1, true);
    assert_true(fixture_set()->settled);
    char name[16];
    for (unsigned i = 0; i < COUNT; i++) {
        put_text(name_of(i, name), "again");
        assert_true(version_of(name).counter >
                    VERSION_FLOOR_STEP); /* none of those that it has had */
    }
    mountpaths_reap(fx.mountpaths);
    assert_int_equal(mountpaths_attach(fx.mountpaths, first, &err), E_MOUNTPATH_STATE);
    assert_non_null(strstr(err.message, "earlier time"));
    fixture_close();
    fixture_open();
    assert_int_equal(fixture_set()->count, 1);
    for (unsigned i = 0; i < COUNT; i++)
        assert_text(name_of(i, name), "again");
}

static void test_a_detach_can_be_taken_back(void **state)
{
    (void)state;
    fill();
    detach(2, false);
    enable(2);
    assert_filled();
    resilver();
    assert_settled(2);
    detach(2, false);
    struct error err = ERROR_INIT;
    _cleanup_free_ char *first = path_of(1);
    assert_int_equal(mountpaths_detach(fx.mountpaths, first, false, &err), E_MOUNTPATH_STATE);
    assert_non_null(strstr(err.message, "last mountpath"));
}

static unsigned copies_of(const char *name)
{
    const struct mountpath_set *set = fixture_set();
    struct object_path path;
    unsigned count = 0;
    object_path_set(&path, BUCKET, name);
    for (size_t i = 0; i < set->count; i++)
        count += faccessat(set->all[i]->obj_fd, path.text, F_OK, 0) == 0;
    return count;
}

/* A write while the set is not settled leaves one copy: the old one would come back with the loss
 * of the new one's disk. */
static void test_a_write_removes_older_copies(void **state)
{
    (void)state;
    fill();
    attach(3);
    char name[16];
    for (unsigned i = 0; i < COUNT; i++)
        assert_int_equal(put_text_as(name_of(i, name), "again",
                                     i % 2 == 0 ? DURABILITY_SYNC : DURABILITY_ASYNC, NULL),
                         0);
    assert_placed();
}

/* What is not synced may be lost with power, and must not take the older copy with it, which lies
 * on another disk: where the new one cannot be brought to its own, the older one stays. */
static void test_a_write_without_sync_keeps_older_copies_until_it_is_on_its_disk(void **state)
{
    (void)state;
    fill();
    attach(3);
    unsigned moved = 0;
    char name[16];
    for (unsigned i = 0; i < COUNT; i++) {
        if (i % 3 == 2 || fixture_pick(name_of(i, name)) != fixture_mp(2))
            continue;
        moved++;
        fault_configure("resilver.newest=EIO", NULL);
        put_text(name, "again");
        fault_configure(NULL, NULL);
        assert_text(name, "again");
        assert_int_equal(copies_of(name), 2);
        if (moved % 2 == 0)
            continue; /* the resilver comes by */
        put_text(name, "and again");
        assert_text(name, "and again");
        assert_int_equal(copies_of(name), 1);
    }
    assert_true(moved > 1);
    fault_configure("resilver.newest=EIO@1", NULL);
    struct error err = ERROR_INIT;
    assert_int_not_equal(try_resilver(&err), 0);
    assert_false(fixture_set()->settled);
    fault_configure(NULL, NULL);
    resilver();
    assert_placed();
}

/* Of two copies of one version, which an interrupted resilver leaves, the whole one stays. */
static void test_a_copy_that_has_lost_its_bytes_wins_over_none(void **state)
{
    (void)state;
    fill();
    attach(3);
    struct error err = ERROR_INIT;
    fault_configure("resilver.rename=EXDEV,resilver.remove=EIO", NULL);
    assert_int_not_equal(try_resilver(&err), 0);
    fault_configure(NULL, NULL);
    unsigned cut = 0;
    char name[16];
    for (unsigned i = 0; i < COUNT; i++) {
        struct object_path path;
        object_path_set(&path, BUCKET, name_of(i, name));
        if (i % 3 == 2 || copies_of(name) != 2)
            continue;
        int fd = openat(fixture_pick(name)->obj_fd, path.text, O_WRONLY | O_CLOEXEC);
        assert_int_equal(ftruncate(fd, 1), 0);
        close(fd);
        cut++;
    }
    assert_true(cut > 0);
    fault_configure("resilver.rename=EXDEV", NULL);
    resilver();
    assert_settled(3);
}

/* What has found no room says so on another file system, too (hollow.h). */
static void test_what_has_found_no_room_says_so_elsewhere(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    char name[16];
    for (unsigned i = 0; i < COUNT; i++) {
        const struct object_moved as = {.version = {1, 1, i + 1}, .modified_ms = 9, .hollow = 5};
        struct object_put_spec spec = spec_of(name_of(i, name), DURABILITY_SYNC);
        spec.moved = &as;
        must(put_bytes(&spec, "", 0, &err), &err);
    }
    attach(3);
    fault_configure("resilver.rename=EXDEV", NULL);
    resilver();
    fault_configure(NULL, NULL);
    for (unsigned i = 0; i < COUNT; i++) {
        struct object_held held;
        must(object_look(fx.store, BUCKET, name_of(i, name), &held, &err), &err);
        assert_true(held.damaged && held.no_room);
        assert_int_equal(held.size, 5);
    }
}

static void test_a_jobs_objects_wait(void **state)
{
    (void)state;
    char name[16];
    fx.committed_job = NULL;
    for (unsigned i = 0; i < 20; i++)
        put_text_hidden(name_of(i, name), "out", "srt-1");
    attach(3);
    struct job_stop stop;
    struct job_tally *tally = job_tally_new("moved");
    job_stop_init(&stop);
    job_stop_now(&stop);
    assert_int_equal(resilver_run(fx.store, &stop, tally, NULL), E_ABORTED);
    job_stop_done(&stop);
    job_tally_free(tally);
    assert_false(fixture_set()->settled);
    fx.committed_job = "srt-1";
    for (unsigned i = 0; i < 20; i++)
        assert_int_equal(object_unmark(fx.store, BUCKET, name_of(i, name), "srt-1", NULL), 0);
    resilver();
    assert_true(fixture_set()->settled);
    for (unsigned i = 0; i < 20; i++)
        assert_text(name_of(i, name), "out");
}

/* What is said of a manifest of slices is said wherever its file lies (slices/sweep.c goes by it),
 * and a job's end leaves it as it is. */
static void test_manifests_are_read_anywhere(void **state)
{
    static const char manifest[] = "1:4:2:65536:1000:00000000000000ff:none:";
    (void)state;
    char name[16];
    for (unsigned i = 0; i < 40; i++) {
        struct object_put_spec spec = spec_of(name_of(i, name), DURABILITY_SYNC);
        spec.slices = manifest;
        spec.job_id = i % 2 == 0 ? "srt-1" : NULL;
        assert_int_equal(put_bytes(&spec, "", 0, NULL), 0);
    }
    attach(3);
    fx.committed_job = "srt-1";
    unsigned elsewhere = 0;
    for (unsigned i = 0; i < 40; i++) {
        struct object_held held;
        struct object o;
        elsewhere += fixture_pick(name_of(i, name)) == fixture_mp(2);
        if (i % 2 == 0)
            assert_int_equal(object_unmark(fx.store, BUCKET, name, "srt-1", NULL), 0);
        assert_int_equal(object_look(fx.store, BUCKET, name, &held, NULL), 0);
        assert_int_equal(held.slices, 0xff);
        assert_int_equal(object_head(fx.store, BUCKET, name, &o, NULL), 0);
        assert_string_equal(o.attr.slices, manifest);
    }
    assert_true(elsewhere > 0);
}

/* --- crashes ---------------------------------------------------------------------------------- */

static void child_changes(const char *fault)
{
    fixture_open();
    fault_configure(fault, NULL);
    attach(3);
    resilver();
    detach(1, false);
    resilver();
    _exit(0);
}

/* Killed at the n-th pass of a fault point; the next start goes on to the same end. */
static bool crash_at(const char *point, unsigned n)
{
    char fault[80];
    bool renames = strcmp(point, "resilver.rename") == 0;
    snprintf(fault, sizeof fault, "%s%s=kill@%u", renames ? "" : "resilver.rename=EXDEV,", point,
             n);
    fixture_open();
    fill();
    fixture_close();
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        child_changes(fault);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    print_message("%s\n", fault);
    fixture_open();
    assert_filled();
    if (!fixture_set()->settled)
        resilver();
    assert_true(fixture_set()->settled);
    assert_placed();
    assert_filled();
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

static void clear(void)
{
    fixture_close();
    char command[200];
    snprintf(command, sizeof command, "rm -rf %s/mp*", fx.dir);
    assert_int_equal(system(command), 0);
}

static void test_a_crash_anywhere(void **state)
{
    (void)state;
    static const struct {
        const char *point;
        unsigned step;
    } points[] = {{"roster.write", 1},     {"resilver.copy", 17},  {"resilver.publish", 17},
                  {"resilver.remove", 17}, {"resilver.settle", 1}, {"resilver.rename", 17},
                  {"index.write", 61}};
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        bool crashed = true;
        for (unsigned n = 1; crashed; n += points[i].step * TSAN_STRIDE) {
            crashed = crash_at(points[i].point, n);
            clear();
            if (!crashed && n == 1)
                fail_msg("%s is never passed", points[i].point);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(test_attach_and_detach),
        store_test(test_quarantine_keeps_a_mountpath),
        store_test(test_an_attach_is_refused),
        store_test(test_disable_and_enable),
        store_test(test_attach_while_one_is_disabled),
        store_test(test_one_that_is_lost_is_given_up),
        store_test(test_a_detach_can_be_taken_back),
        store_test(test_a_write_removes_older_copies),
        store_test(test_a_write_without_sync_keeps_older_copies_until_it_is_on_its_disk),
        store_test(test_a_copy_that_has_lost_its_bytes_wins_over_none),
        store_test(test_what_has_found_no_room_says_so_elsewhere),
        store_test(test_a_jobs_objects_wait),
        store_test(test_manifests_are_read_anywhere),
        closed_test(test_a_crash_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

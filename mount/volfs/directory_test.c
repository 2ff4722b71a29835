/* Lists of directories, as kernels ask for them. */
#include "mount/volfs/volfs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "mount/volume/testing/clients.h"

enum { NAMES = 1234 };

static struct volfs *v;

static int setup(void **state)
{
    struct error err = ERROR_INIT;
    const struct volfs_store store = {.context = NULL};
    const struct volfs_options options = {.buffer_bytes = 1 << 20,
                                          .fetchers = 1,
                                          .write_bytes = 1 << 20,
                                          .uploads = 1,
                                          .flush_ms = 3600000,
                                          .clean_ms = 3600000,
                                          .ledger = -1};
    assert_int_equal(clients_setup(state), 0);
    if (volfs_open(&options, f.a, &store, &v, &err) != 0)
        fail_msg("%s", err.message);
    return 0;
}

static int teardown(void **state)
{
    volfs_close(v);
    return clients_teardown(state);
}

static void make_names(void)
{
    char name[16];
    for (int i = 0; i < NAMES; i++) {
        snprintf(name, sizeof name, "%04d", i);
        make(VOLUME_ROOT, name, S_IFREG | 0644);
    }
}

/* One reply, of which the kernel drops all but the first entries. */
struct reply {
    unsigned room, taken; /* entries: of the reply, and of the caller */
    uint64_t next;
    unsigned count, names;
    char seen[8][16];
    struct volfs_entry last;
};

static bool fill(void *context, const struct volfs_entry *e)
{
    struct reply *r = context;
    if (r->count == r->room)
        return false;
    if (r->count++ >= r->taken)
        return true;
    r->next = e->next;
    r->last = *e;
    if (e->name[0] != '.')
        snprintf(r->seen[r->names++], sizeof r->seen[0], "%s", e->name);
    return true;
}

/* The caller has little room, and removes what it has read: offsets in the dropped part stay those
 * of the same names. */
static void what_the_kernel_drops_is_given_again(void **state)
{
    struct volfs_directory *d;
    struct reply r = {.room = 300, .taken = 7};
    unsigned listed = 0;
    char name[16];
    (void)state;
    make_names();
    assert_int_equal(volfs_opendir(v, VOLUME_ROOT, &d), 0);
    do {
        r.count = r.names = 0;
        assert_int_equal(volfs_readdir(d, r.next, fill, &r), 0);
        for (unsigned i = 0; i < r.names; i++) {
            snprintf(name, sizeof name, "%04u", listed++);
            assert_string_equal(r.seen[i], name);
            assert_int_equal(volume_unlink(f.b, VOLUME_ROOT, name), 0);
        }
    } while (r.count > 0);
    assert_int_equal(listed, NAMES);
    volfs_closedir(d);
}

static void behind_the_end_is_nothing(void **state)
{
    struct volfs_directory *d;
    struct reply r = {.room = 5, .taken = 5};
    (void)state;
    make(VOLUME_ROOT, "x", S_IFREG | 0644);
    assert_int_equal(volfs_opendir(v, VOLUME_ROOT, &d), 0);
    assert_int_equal(volfs_readdir(d, INT64_MAX, fill, &r), 0);
    assert_int_equal(r.count, 0);
    assert_int_equal(volfs_readdir(d, 2, fill, &r), 0);
    assert_int_equal(r.names, 1);
    volfs_closedir(d);
}

/* The entry at the offset. */
static struct volfs_entry entry_at(struct volfs_directory *d, uint64_t offset)
{
    struct reply r = {.room = 1, .taken = 1};
    assert_int_equal(volfs_readdir(d, offset, fill, &r), 0);
    assert_int_equal(r.count, 1);
    return r.last;
}

/* A reader goes back in its page: the kernel must not get the owner of before. */
static void what_has_changed_is_not_known(void **state)
{
    struct volfs_directory *d;
    struct stat st;
    const struct volume_set set = {.fields = VOLUME_SET_UID, .uid = 77};
    (void)state;
    make(VOLUME_ROOT, "a", S_IFREG | 0644);
    const uint64_t b = make(VOLUME_ROOT, "b", S_IFREG | 0644);
    make(VOLUME_ROOT, "c", S_IFREG | 0644);
    assert_int_equal(volfs_opendir(v, VOLUME_ROOT, &d), 0);
    assert_true(entry_at(d, 2).known);
    assert_true(entry_at(d, 3).known);
    assert_int_equal(volfs_setattr(v, b, &set, &st), 0);
    const struct volfs_entry changed = entry_at(d, 3);
    assert_false(changed.known);
    assert_int_equal(changed.st.st_ino, b);
    assert_true(S_ISREG(changed.st.st_mode));
    assert_true(entry_at(d, 4).known);
    const struct timespec pause = {.tv_nsec = 30000000};
    nanosleep(&pause, NULL);
    assert_true(entry_at(d, 4).age_ms >= 29);
    assert_true(entry_at(d, 2).known); /* reads the page again */
    assert_true(entry_at(d, 3).known);
    assert_int_equal(entry_at(d, 3).st.st_uid, 77);
    volfs_closedir(d);
}

/* Another mount has written, and the kernel is told that what it keeps is old. */
static void what_is_old_is_not_known(void **state)
{
    struct volfs_directory *d;
    uint64_t slice;
    (void)state;
    make(VOLUME_ROOT, "a", S_IFREG | 0644);
    const uint64_t b = make(VOLUME_ROOT, "b", S_IFREG | 0644);
    assert_int_equal(volfs_opendir(v, VOLUME_ROOT, &d), 0);
    assert_int_equal(entry_at(d, 2).st.st_size, 0);
    assert_int_equal(volume_new_slice(f.b, &slice), 0);
    const struct volume_piece p = {.length = 5, .slice = slice, .size = 5};
    assert_int_equal(volume_write(f.b, b, &p, 1, 0, NULL), 0);
    volume_note_changed(f.a, b);
    assert_false(entry_at(d, 3).known);
    assert_true(entry_at(d, 2).known); /* reads the page again */
    assert_true(entry_at(d, 3).known);
    assert_int_equal(entry_at(d, 3).st.st_size, 5);
    volfs_closedir(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_the_kernel_drops_is_given_again, setup, teardown),
        cmocka_unit_test_setup_teardown(behind_the_end_is_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(what_has_changed_is_not_known, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_old_is_not_known, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

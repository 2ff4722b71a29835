/* A process goes on with the session of one that has died: what was on its way
 * is refused, what was committed is known, and locks and open files stay. */
#include "mount/volume/takeover.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "common/log.h"
#include "common/mem.h"
#include "mount/volume/calls.h"
#include "mount/volume/testing/clients.h"

static struct volume_memory *memory;

static const struct volume_lock whole = {
    .type = VOLUME_LOCK_EXCLUSIVE, .flock = true, .owner = 5, .end = INT64_MAX};

static int setup(void **state)
{
    memory = volume_memory_new();
    log_set_level(LOG_OFF);
    return memory == NULL ? 1 : clients_setup(state);
}

static int teardown(void **state)
{
    volume_memory_free(memory);
    return clients_teardown(state);
}

/* A process that has the memory. */
static struct volume *begin(void)
{
    return clients_open(memory);
}

static int create(struct volume *v, const char *name, uint64_t *ino)
{
    struct volume_inode out;
    const struct volume_new what = {.mode = S_IFREG | 0644};
    int rc = volume_create(v, VOLUME_ROOT, name, &what, &out);
    *ino = out.ino;
    return rc;
}

static void the_session_goes_on(void **state)
{
    uint64_t ino;
    (void)state;
    struct volume *dead = begin();
    const uint64_t session = volume_session(dead);
    assert_int_equal(create(dead, "f", &ino), 0);
    assert_int_equal(volume_setlock(dead, ino, &whole), 0);
    struct volume *v = begin();
    assert_int_equal(volume_session(v), session);
    assert_false(volume_is_fenced(v));
    assert_true(volume_haslocks(v, ino));
    assert_int_equal(volume_setlock(f.b, ino, &whole), -EAGAIN);
    assert_int_equal(create(v, "g", &ino), 0);
    assert_int_equal(create(dead, "late", &ino), -EIO); /* what was on its way comes too late */
    assert_int_equal(create(v, "late", &ino), 0);
    volume_leave(dead);
    volume_close(v);
    v = begin(); /* after an end there is nothing to go on with */
    assert_true(volume_session(v) != session && !volume_is_fenced(v));
    volume_close(v);
}

static void an_open_file_without_a_name_stays(void **state)
{
    uint64_t ino;
    struct attr a;
    bool more;
    (void)state;
    struct volume *dead = begin();
    assert_int_equal(create(dead, "f", &ino), 0);
    assert_int_equal(volume_openfile(dead, ino, &a), 0);
    assert_int_equal(volume_unlink(dead, VOLUME_ROOT, "f"), 0);
    volume_leave(dead);
    struct volume *v = begin();
    assert_int_equal(volume_openfile(v, ino, &a), 0);
    for (unsigned i = 0; i < 100; i++) { /* longer than the grace */
        advance(SESSION_MS / 4);
        assert_int_equal(volume_beat(v), 0);
        assert_int_equal(volume_beat(f.b), 0);
        assert_int_equal(volume_clean(f.b, &more), 0);
    }
    assert_int_equal(volume_getattr(f.b, ino, &a), 0);
    volume_closefile(v, ino);
    advance(GRACE_MS + 1);
    assert_int_equal(volume_beat(v), 0);
    assert_int_equal(volume_beat(f.b), 0);
    assert_int_equal(volume_beat(f.b), 0);
    advance(SESSION_MS);
    assert_int_equal(volume_beat(f.b), 0);
    assert_int_equal(volume_clean(f.b, &more), 0);
    assert_int_equal(volume_getattr(f.b, ino, &a), -ENOENT);
    volume_close(v);
}

static void a_session_that_was_given_up_is_not_taken(void **state)
{
    uint64_t ino;
    bool more;
    (void)state;
    struct volume *dead = begin();
    const uint64_t session = volume_session(dead);
    assert_int_equal(create(dead, "f", &ino), 0);
    assert_int_equal(volume_setlock(dead, ino, &whole), 0);
    for (unsigned i = 0; i < 10; i++) {
        advance(SESSION_MS / 4);
        assert_int_equal(volume_beat(f.b), 0);
    }
    assert_int_equal(volume_clean(f.b, &more), 0);
    struct volume *v = begin();
    assert_true(volume_session(v) != session);
    assert_true(volume_is_fenced(v));
    assert_false(volume_haslocks(v, ino));
    assert_int_equal(volume_setlock(f.b, ino, &whole), 0);
    assert_int_equal(create(v, "g", &ino), 0);
    volume_leave(dead);
    volume_close(v);
}

/* The second process gets the calls again. */
static void calls_are_known_by_their_commits(void **state)
{
    uint64_t ino;
    (void)state;
    struct volume *dead = begin();
    assert_false(volume_call_begin(dead, 2));
    assert_int_equal(create(dead, "made", &ino), 0);
    calls_set_current(NULL); /* killed before the answer */
    assert_false(volume_call_begin(dead, 4));
    assert_int_equal(create(dead, "made", &ino), -EEXIST);
    calls_set_current(NULL);
    assert_false(volume_call_begin(dead, 6)); /* takes a number, and changes no name */
    assert_int_equal(volume_new_slice(dead, &ino), 0);
    calls_set_current(NULL);
    assert_false(volume_call_begin(dead, 8));
    assert_int_equal(volume_unlink(dead, VOLUME_ROOT, "made"), 0);
    volume_call_end(); /* answered */
    volume_leave(dead);
    struct volume *v = begin();
    static const bool made[] = {true, false, false, false};
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(volume_call_begin(v, 2 + 2 * i), made[i]);
        volume_call_end();
    }
    assert_false(volume_call_begin(v, 2)); /* it was answered now */
    volume_call_end();
    volume_close(v);
}

/* The kill came between the commit and its reply: the lane knows. */
static void a_commit_without_a_reply_is_known_by_its_lane(void **state)
{
    uint64_t ino;
    (void)state;
    struct volume *dead = begin();
    assert_false(volume_call_begin(dead, 2));
    assert_int_equal(create(dead, "f", &ino), 0);
    struct call *c = calls_current();
    atomic_store(&c->state, CALL_SENT); /* as it was then */
    calls_set_current(NULL);
    assert_false(volume_call_begin(dead, 4));
    c = calls_current();
    calls_sent(c, 0, dead->lanes[0].number + 1); /* the commit never came */
    calls_set_current(NULL);
    volume_leave(dead);
    struct volume *v = begin();
    assert_true(volume_call_begin(v, 2));
    volume_call_end();
    assert_false(volume_call_begin(v, 4));
    volume_call_end();
    volume_close(v);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_session_goes_on),
        TEST(an_open_file_without_a_name_stays),
        TEST(a_session_that_was_given_up_is_not_taken),
        TEST(calls_are_known_by_their_commits),
        TEST(a_commit_without_a_reply_is_known_by_its_lane),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "mount/vfs/handles.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static void nothing(struct handle *h)
{
    (void)h;
}

static const struct ledger_record directory = {.kind = LEDGER_DIRECTORY, .node = 1};
static const struct ledger_record file = {.kind = LEDGER_FILE, .texts = {"key", "\"1\"", ""}};

static void restore(void *context, uint64_t number, const struct ledger_record *r)
{
    static struct handle restored;
    handles_restore(context, &restored, number, r->inode, nothing);
}

/* The process dies when it has closed a directory and opened a file under its number.  The release
 * of the directory, which comes again, does not find the file. */
static void a_release_that_comes_again_finds_nothing(void **state)
{
    (void)state;
    int fd = ledger_memory();
    struct ledger *ledger = ledger_open(fd);
    struct handles handles;
    struct handle a, b;
    handles_init(&handles, ledger);
    assert_int_equal(handles_add(&handles, &a, &directory, nothing), 0);
    uint64_t closed = a.id;
    handles_remove(&handles, &a);
    assert_int_equal(handles_add(&handles, &b, &file, nothing), 0);
    assert_int_equal(handles_number(&b), closed & UINT32_MAX);
    assert_null(handles_of(&handles, closed));
    handles_done(&handles);
    ledger_close(ledger);

    ledger = ledger_open(fd);
    handles_init(&handles, ledger);
    ledger_each(ledger, restore, &handles);
    assert_null(handles_of(&handles, closed));
    assert_non_null(handles_of(&handles, b.id));
    handles_done(&handles);
    ledger_close(ledger);
    close(fd);
}

static bool has_id(const struct handle *one, const void *wanted)
{
    return one->id == *(const uint64_t *)wanted;
}

static void a_handle_is_found_by_what_it_is(void **state)
{
    (void)state;
    struct ledger *ledger = ledger_open(-1);
    struct handles handles;
    struct handle a, b;
    handles_init(&handles, ledger);
    assert_int_equal(handles_add(&handles, &a, &directory, nothing), 0);
    assert_int_equal(handles_add(&handles, &b, &file, nothing), 0);
    const uint64_t id = b.id;
    assert_ptr_equal(handles_find(&handles, has_id, &id), &b);
    handles_remove(&handles, &b);
    assert_null(handles_find(&handles, has_id, &id));
    handles_done(&handles);
    ledger_close(ledger);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_release_that_comes_again_finds_nothing),
        cmocka_unit_test(a_handle_is_found_by_what_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "api/ctl/names/name_batch.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "api/ctl/interrupt.h"
#include "common/cleanup.h"
#include "common/jsonx.h"

struct names {
    unsigned given, count;
    unsigned interrupt_at; /* the name after which SIGINT comes; or 0 */
    int end;               /* what comes behind the last name */
    char text[2048];       /* ends with the number */
    size_t filler;
};

static int next_name(void *context, const char **name, struct dfc_error *err)
{
    struct names *n = context;
    (void)err;
    if (n->given == n->count)
        return n->end;
    snprintf(n->text + n->filler, sizeof n->text - n->filler, "%06u", n->given++);
    *name = n->text;
    if (n->given == n->interrupt_at)
        raise(SIGINT);
    return 1;
}

static struct names names_of(unsigned count, const char *unit, unsigned units)
{
    struct names n = {.count = count};
    for (unsigned i = 0; i < units; i++, n.filler += strlen(unit))
        memcpy(n.text + n.filler, unit, strlen(unit));
    return n;
}

/* Each batch is within the bounds, and together they are all names, once and in order. */
static unsigned batches_of(struct names n)
{
    _cleanup_(name_batch_done)
    struct name_batch b = NAME_BATCH_INIT;
    unsigned batches = 0, seen = 0;
    int more = 1;
    for (struct dfc_error err; more > 0; batches++) {
        more = name_batch_read(&b, next_name, &n, &err);
        assert_true(more >= 0);
        _cleanup_free_ char *text = json_text(b.names);
        assert_true(strlen(text) <= NAME_BATCH_BYTES + 2);
        assert_true(json_array_size(b.names) <= NAME_BATCH_NAMES);
        for (size_t i = 0; i < json_array_size(b.names); i++) {
            const char *name = json_string_value(json_array_get(b.names, i));
            char want[16];
            snprintf(want, sizeof want, "%06u", seen++);
            assert_string_equal(name + n.filler, want);
        }
    }
    assert_int_equal(seen, n.count);
    return batches;
}

static void a_batch_ends_at_a_number_of_names(void **state)
{
    (void)state;
    assert_int_equal(batches_of(names_of(0, "", 0)), 1);
    assert_int_equal(batches_of(names_of(NAME_BATCH_NAMES, "", 0)), 1);
    assert_int_equal(batches_of(names_of(NAME_BATCH_NAMES + 1, "", 0)), 2);
}

static void a_batch_of_long_names_ends_at_a_number_of_bytes(void **state)
{
    (void)state;
    enum { LONG = 1015 + 6 + 3 }; /* with quotes and comma: 256 of them are 256 KiB */
    assert_int_equal(batches_of(names_of(NAME_BATCH_BYTES / LONG, "x", 1015)), 1);
    assert_int_equal(batches_of(names_of(NAME_BATCH_BYTES / LONG + 1, "x", 1015)), 2);
    assert_int_equal(batches_of(names_of(10000, "x", 1015)), 40);
    /* As JSON: a control character has six bytes there. */
    assert_int_equal(batches_of(names_of(100, "\x01", 1015)), 3);
}

static void an_error_is_handed_on(void **state)
{
    (void)state;
    struct dfc_error err;
    _cleanup_(name_batch_done)
    struct name_batch b = NAME_BATCH_INIT;
    struct names n = names_of(3, "", 0);
    n.end = DFC_UNREACHABLE;
    assert_int_equal(name_batch_read(&b, next_name, &n, &err), DFC_UNREACHABLE);
}

/* The last one: there is no way back from a signal. */
static void an_interruption_between_two_names_is_no_batch(void **state)
{
    (void)state;
    struct dfc_error err;
    _cleanup_(name_batch_done)
    struct name_batch b = NAME_BATCH_INIT;
    struct names n = names_of(5, "", 0);
    n.interrupt_at = 3;
    interrupt_install(NULL);
    assert_int_equal(name_batch_read(&b, next_name, &n, &err), DFC_CANCELLED);
    assert_int_equal(err.result, DFC_CANCELLED);
    assert_int_equal(n.given, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_ends_at_a_number_of_names),
        cmocka_unit_test(a_batch_of_long_names_ends_at_a_number_of_bytes),
        cmocka_unit_test(an_error_is_handed_on),
        cmocka_unit_test(an_interruption_between_two_names_is_no_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "mount/fuse/tickets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void a_ticket_is_known_for_its_time(void **state)
{
    struct tickets t;
    (void)state;
    tickets_init(&t);
    const struct ticket one = tickets_make(&t, 7, 1000);
    assert_int_equal(one.directory, 7);
    assert_true(tickets_know(&t, &one, 1000));
    assert_true(tickets_know(&t, &one, 1000 + TICKET_MS - 1));
    assert_false(tickets_know(&t, &one, 1000 + TICKET_MS));
}

static void what_was_changed_is_no_ticket(void **state)
{
    struct tickets t, other;
    (void)state;
    tickets_init(&t);
    tickets_init(&other);
    const struct ticket one = tickets_make(&t, 7, 1000);
    struct ticket changed = one;
    changed.directory = 8;
    assert_false(tickets_know(&t, &changed, 1000));
    changed = one;
    changed.until_ms++;
    assert_false(tickets_know(&t, &changed, 1000));
    changed = one;
    changed.mac[TICKET_MAC_BYTES - 1] ^= 1;
    assert_false(tickets_know(&t, &changed, 1000));
    assert_false(tickets_know(&other, &one, 1000));
    assert_false(tickets_know(&t, &(struct ticket){.directory = 7, .until_ms = UINT64_MAX}, 1000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ticket_is_known_for_its_time),
        cmocka_unit_test(what_was_changed_is_no_ticket),
    };
    return cmocka_run_group_tests_name("mount_tickets", tests, NULL, NULL);
}

#include "proxy/primary/refused_nodes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/cleanup.h"

static void they_are_kept_by_id_and_age(void **unused)
{
    (void)unused;
    struct refused_nodes *s = refused_nodes_new();
    _cleanup_free_ struct stranger *all = NULL;
    refused_nodes_note(s, "t2", "http://h:2", "c-1", 1, 5, 1000);
    refused_nodes_note(s, "t1", "http://h:1", "c-1", 1, 4, 2000);
    refused_nodes_note(s, "t2", "http://h:3", "c-2", 2, 6, 3000);
    assert_int_equal(refused_nodes_list(s, 3000, 10000, &all), 2);
    assert_string_equal(all[0].id, "t1");
    assert_string_equal(all[1].control_url, "http://h:3");
    assert_string_equal(all[1].cluster, "c-2");
    assert_int_equal(all[1].version, 6);
    free(all);
    assert_int_equal(refused_nodes_list(s, 12500, 10000, &all), 1);
    assert_string_equal(all[0].id, "t2");
    refused_nodes_forget(s);
    free(all);
    assert_int_equal(refused_nodes_list(s, 3000, 10000, &all), 0);
    refused_nodes_free(s);
}

static void the_oldest_makes_room(void **unused)
{
    (void)unused;
    struct refused_nodes *s = refused_nodes_new();
    _cleanup_free_ struct stranger *all = NULL;
    for (unsigned i = 0; i < STRANGERS_MAX + 3; i++) {
        char id[16];
        snprintf(id, sizeof id, "t%04u", i);
        refused_nodes_note(s, id, "http://h:1", "c-1", 1, i, 1000 + i);
    }
    assert_int_equal(refused_nodes_list(s, 2000, 10000, &all), STRANGERS_MAX);
    assert_string_equal(all[0].id, "t0003");
    refused_nodes_free(s);
}

static void what_does_not_fit_is_no_stranger(void **unused)
{
    (void)unused;
    struct refused_nodes *s = refused_nodes_new();
    _cleanup_free_ struct stranger *all = NULL;
    char longest[300];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    refused_nodes_note(s, longest, "http://h:1", "c-1", 1, 1, 1);
    refused_nodes_note(s, "t1", longest, "c-1", 1, 1, 1);
    refused_nodes_note(s, "t1", "http://h:1", longest, 1, 1, 1);
    assert_int_equal(refused_nodes_list(s, 1, 10000, &all), 0);
    refused_nodes_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_are_kept_by_id_and_age),
        cmocka_unit_test(the_oldest_makes_room),
        cmocka_unit_test(what_does_not_fit_is_no_stranger),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

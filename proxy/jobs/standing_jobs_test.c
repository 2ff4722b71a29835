#include "proxy/jobs/standing_jobs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "xaction/kinds.h"

/* The standing jobs in the order in which they are asked. */
static void each_file_fills_its_row(void **state)
{
    (void)state;
    static const char *const standing[] = {"resilver", "rebalance", "repair",
                                           "mirror",   "scrub",     "expire"};
    const struct job_kind *k;
    size_t n = 0, asked = 0;
    for (; (k = job_kind_at(n)) != NULL; n++) {
        const struct xaction_kind *kind = xaction_kind_at(n);
        assert_non_null(kind);
        assert_string_equal(k->name, kind->name);
        assert_ptr_equal(job_kind_find(k->name), k);
        if (k->next != NULL) {
            assert_string_equal(k->name, standing[asked++]);
            assert_int_equal(kind->bare, k->make != NULL); /* by hand: by its name alone */
        }
        assert_false(kind->bare && k->objects != NULL);
        assert_true(k->spec == NULL || kind->bare);
    }
    assert_int_equal(asked, sizeof standing / sizeof *standing);
    assert_null(xaction_kind_at(n));
    assert_null(job_kind_find("none"));
}

static uint64_t asks_for_t1(void *ctx, const char *target)
{
    return strcmp(target, ctx) == 0 ? 7 : 0;
}

/* A map with an earlier set of owners is rebalanced when the owners have stood for the delay. */
static void the_delay_counts_from_the_last_change(void **state)
{
    (void)state;
    _cleanup_state_ const struct cluster_state *s = state_new("c");
    struct cluster_state *moved = state_next(s);
    struct layout before = {.number = 0};
    struct node t1 = {.id = "t1", .role = NODE_TARGET, .state = NODE_ACTIVE};
    struct standing_clocks clocks = {0};
    struct standing_now now = {.wall_ms = 1000000};
    struct command cmd;
    moved->smap.nodes = &t1;
    moved->smap.count = 1;
    moved->smap.earlier = &before;
    moved->smap.earlier_count = 1;
    moved->smap.placed = 5;
    standing_look(&clocks, s, 1);
    standing_look(&clocks, moved, 20000);
    assert_null(standing_next(&clocks, moved, 29999, &now, &cmd));
    standing_look(&clocks, moved, 25000);
    const struct job_kind *row = standing_next(&clocks, moved, 30000, &now, &cmd);
    assert_non_null(row);
    assert_string_equal(row->name, "rebalance");
    assert_int_equal(cmd.kind, CMD_JOB_CREATE);
    job_unref((struct job *)cmd.job);

    /* A target that asks for a resilver comes first: rows are asked in order. */
    now.unsettled = asks_for_t1;
    char asking[] = "t1";
    now.ctx = asking;
    row = standing_next(&clocks, moved, 30000, &now, &cmd);
    assert_non_null(row);
    assert_string_equal(row->name, "resilver");
    job_unref((struct job *)cmd.job);

    moved->smap.placed = 6; /* owners change again: the delay begins anew */
    now.unsettled = NULL;
    standing_look(&clocks, moved, 30001);
    assert_null(standing_next(&clocks, moved, 40000, &now, &cmd));
    moved->smap.count = 0;
    moved->smap.earlier_count = 0;
    state_unref(moved);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_file_fills_its_row),
        cmocka_unit_test(the_delay_counts_from_the_last_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

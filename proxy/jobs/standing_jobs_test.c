#include "proxy/jobs/standing_jobs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "xaction/kinds.h"

static void every_row_is_a_kind(void **state)
{
    (void)state;
    const struct standing_job *row;
    size_t n = 0;
    for (; (row = standing_job_at(n)) != NULL; n++) {
        const struct xaction_kind *kind = xaction_kind_find(row->kind);
        assert_non_null(kind);
        assert_ptr_equal(standing_job_find(row->kind), row);
        assert_non_null(row->next);
        assert_int_equal(kind->bare, row->make != NULL); /* started by hand by its name alone */
    }
    assert_int_equal(n, 5);
    assert_null(standing_job_find("sort"));
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
    const struct standing_job *row = standing_next(&clocks, moved, 30000, &now, &cmd);
    assert_non_null(row);
    assert_string_equal(row->kind, "rebalance");
    assert_int_equal(cmd.kind, CMD_JOB_CREATE);
    job_unref((struct job *)cmd.job);

    /* A target that asks for a resilver comes first: rows are asked in order. */
    now.unsettled = asks_for_t1;
    char asking[] = "t1";
    now.ctx = asking;
    row = standing_next(&clocks, moved, 30000, &now, &cmd);
    assert_non_null(row);
    assert_string_equal(row->kind, "resilver");
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
        cmocka_unit_test(every_row_is_a_kind),
        cmocka_unit_test(the_delay_counts_from_the_last_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

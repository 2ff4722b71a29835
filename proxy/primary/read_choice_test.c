#include "proxy/primary/read_choice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "cluster/documents/state.h"
#include "common/mem.h"

enum { TARGETS = 3, READS = 9000 };

static struct node nodes[TARGETS] = {{.id = "t1"}, {.id = "t2"}, {.id = "t3"}};

struct world {
    struct read_choice *choice;
    unsigned got[TARGETS];
};

static int setup(void **state)
{
    struct world *w = xcalloc(1, sizeof *w);
    w->choice = xcalloc(1, sizeof *w->choice);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    free(w->choice);
    free(w);
    return 0;
}

/* One that acts, and those behind it, around. */
static void read_one(struct world *w, size_t acting, size_t count, uint64_t spread, uint64_t now_ms)
{
    const struct node *readers[TARGETS];
    for (size_t i = 0; i < count; i++)
        readers[i] = &nodes[(acting + i) % TARGETS];
    w->got[read_choice_pick(w->choice, readers, count, spread, now_ms) - nodes]++;
}

static void with_no_spread_all_get_as_many(void **state)
{
    struct world *w = *state;
    for (unsigned i = 0; i < READS; i++)
        read_one(w, 0, TARGETS, 0, 5000);
    for (size_t t = 0; t < TARGETS; t++)
        assert_in_range(w->got[t], READS / TARGETS - 1, READS / TARGETS + 1);
}

static void what_many_want_is_sent_by_all(void **state)
{
    struct world *w = *state;
    for (unsigned i = 0; i < READS; i++)
        read_one(w, 1, TARGETS, 25, 5000);
    assert_in_range(w->got[1], w->got[0], w->got[0] * 5 / 4 + 26);
    assert_in_range(w->got[2], w->got[0] - 1, w->got[0] + 1);
}

/* Of many objects each is sent by who acts for it. */
static void even_reads_stay_where_they_are(void **state)
{
    struct world *w = *state;
    const struct node *readers[2];
    for (unsigned i = 0; i < READS; i++) {
        size_t acting = i * 7 % TARGETS;
        readers[0] = &nodes[acting];
        readers[1] = &nodes[(acting + 1) % TARGETS];
        assert_ptr_equal(read_choice_pick(w->choice, readers, 2, 25, 5000), &nodes[acting]);
    }
}

static void one_alone_gets_all_and_is_busy(void **state)
{
    struct world *w = *state;
    for (unsigned i = 0; i < 100; i++)
        read_one(w, 0, 1, 25, 5000);
    assert_int_equal(w->got[0], 100);
    read_one(w, 0, 2, 25, 5000); /* of another bucket */
    assert_int_equal(w->got[1], 1);
}

static void what_was_long_ago_is_forgotten(void **state)
{
    struct world *w = *state;
    for (unsigned i = 0; i < 100; i++)
        read_one(w, 0, 1, 25, 5000);
    read_one(w, 0, 2, 25, 5999);
    assert_int_equal(w->got[1], 1);
    read_one(w, 0, 2, 25, 8000); /* 100 are 12 */
    assert_int_equal(w->got[1], 1);
    for (unsigned i = 0; i < 100; i++)
        read_one(w, 0, 1, 25, 8000);
    read_one(w, 0, 2, 25, UINT64_MAX); /* none is left */
    assert_int_equal(w->got[1], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(with_no_spread_all_get_as_many, setup, teardown),
        cmocka_unit_test_setup_teardown(what_many_want_is_sent_by_all, setup, teardown),
        cmocka_unit_test_setup_teardown(even_reads_stay_where_they_are, setup, teardown),
        cmocka_unit_test_setup_teardown(one_alone_gets_all_and_is_busy, setup, teardown),
        cmocka_unit_test_setup_teardown(what_was_long_ago_is_forgotten, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

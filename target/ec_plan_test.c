#include "target/ec_plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { NODES = 8 };

static struct node nodes[NODES];
static const struct node *ranked[NODES];

/* 'a' active, 'u' unreachable, 'm' in maintenance; in rank. */
static size_t rank(const char *states)
{
    static const char *const ids[NODES] = {"t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7"};
    size_t count = strlen(states);
    assert_true(count <= NODES);
    for (size_t i = 0; i < count; i++) {
        enum node_state s = states[i] == 'a'   ? NODE_ACTIVE
                            : states[i] == 'u' ? NODE_UNREACHABLE
                                               : NODE_MAINTENANCE;
        nodes[i] = (struct node){.id = ids[i], .state = s};
        ranked[i] = &nodes[i];
    }
    return count;
}

/* "2.5": slice 0 on node 2, slice 1 nowhere, slice 2 on node 5. */
static void assert_homes(const struct ec_homes *h, const char *want)
{
    assert_int_equal(h->count, strlen(want));
    for (unsigned i = 0; i < h->count; i++) {
        if (want[i] == '.')
            assert_null(h->all[i]);
        else
            assert_ptr_equal(h->all[i], &nodes[want[i] - '0']);
    }
}

static void a_write_goes_to_the_first_that_are_there(void **unused)
{
    (void)unused;
    static const struct {
        const char *states;
        unsigned k, m;
        const char *homes; /* NULL: refused */
    } rows[] = {
        {"aaaa", 2, 1, "012"},        {"aaa", 2, 1, "012"},   {"uaaa", 2, 1, "123"},
        {"auaa", 2, 1, "023"},        {"aau", 2, 1, NULL},    {"aa", 2, 1, NULL},
        {"uauaa", 2, 1, "134"},       {"", 1, 1, NULL},       {"aaaaaaaa", 4, 2, "012345"},
        {"aaaaau", 4, 2, "01234."},   {"aaaauu", 4, 2, NULL}, {"uaaaaaaa", 4, 2, "123456"},
        {"uuaaaaaa", 4, 2, "234567"}, {"aa", 1, 2, "01."},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ec_homes h;
        size_t count = rank(rows[i].states);
        int code = ec_plan_write(ranked, count, rows[i].k, rows[i].m, &h, NULL);
        assert_int_equal(code, rows[i].homes != NULL ? 0 : E_NO_TARGETS);
        if (code == 0)
            assert_homes(&h, rows[i].homes);
    }
}

static void a_reader_first_asks_those_of_a_quiet_time(void **unused)
{
    (void)unused;
    struct ec_homes h;
    ec_plan_guess(ranked, rank("aaaa"), 3, &h);
    assert_homes(&h, "012");
    ec_plan_guess(ranked, rank("auaa"), 3, &h);
    assert_homes(&h, "0.2");
    assert_true(ec_homes_mask(&h) == 5);
    ec_plan_guess(ranked, rank("aa"), 3, &h);
    assert_homes(&h, "01.");
}

static size_t find(struct ec_found *found, const char *states, const ec_mask *has)
{
    size_t count = rank(states);
    for (size_t i = 0; i < count; i++)
        found[i] = (struct ec_found){
            .node = &nodes[i], .answered = nodes[i].state != NODE_UNREACHABLE, .has = has[i]};
    return count;
}

static void what_was_found_is_read(void **unused)
{
    (void)unused;
    struct ec_found found[NODES];
    struct ec_homes h;
    size_t count = find(found, "aama", (ec_mask[]){4, 0, 1, 6});
    ec_plan_read(found, count, 3, &h);
    assert_homes(&h, "230");
    found[2].answered = false;
    ec_plan_read(found, count, 3, &h);
    assert_homes(&h, ".30");
}

static void fewer_than_k_wait_for_those_who_may_have_them(void **unused)
{
    (void)unused;
    struct ec_found found[NODES];
    size_t count = find(found, "aauu", (ec_mask[]){1, 0, 2, 4});
    assert_int_equal(ec_plan_check(found, count, 1, 3, NULL), 0);
    assert_int_equal(ec_plan_check(found, count, 2, 3, NULL), E_NODE_UNREACHABLE);
    assert_int_equal(ec_plan_check(found, count, 3, 4, NULL), E_NODE_UNREACHABLE);
    assert_int_equal(ec_plan_check(found, count, 4, 6, NULL), E_CORRUPT);
    count = find(found, "aaaa", (ec_mask[]){1, 1, 8, 0}); /* twice is once; a slice that is none */
    assert_int_equal(ec_plan_check(found, count, 2, 3, NULL), E_CORRUPT);
}

static void a_repair_gives_to_those_who_have_none(void **unused)
{
    (void)unused;
    struct ec_found found[NODES];
    struct ec_homes h;
    unsigned homeless;
    size_t count = find(found, "aaaa", (ec_mask[]){1, 0, 4, 0}); /* slice 1 is gone */
    ec_plan_repair(found, count, 3, &h, &homeless);
    assert_homes(&h, ".1.");
    assert_int_equal(homeless, 0);
    count = find(found, "aaa", (ec_mask[]){1, 0, 4});
    ec_plan_repair(found, count, 3, &h, &homeless);
    assert_homes(&h, ".1.");
    count = find(found, "uaaa", (ec_mask[]){1, 2, 4, 0}); /* who is away counts as nobody */
    ec_plan_repair(found, count, 3, &h, &homeless);
    assert_homes(&h, "3..");
    count = find(found, "maa", (ec_mask[]){1, 2, 4}); /* who leaves, too */
    ec_plan_repair(found, count, 3, &h, &homeless);
    assert_homes(&h, "...");
    assert_int_equal(homeless, 1);
    count = find(found, "aaaaaaaa", (ec_mask[]){0, 0, 32, 0, 1, 2, 4, 0});
    ec_plan_repair(found, count, 6, &h, &homeless);
    assert_homes(&h, "...01.");
    assert_int_equal(homeless, 0);
}

/* Of every pattern of what is where: each slice ends with a home or is counted, no target gets two,
 * and none that has one gets another. */
static void every_pattern_is_repaired(void **unused)
{
    (void)unused;
    enum { TARGETS = 4, SLICES = 3, CASES = 1 << (TARGETS * 2) };
    for (unsigned c = 0; c < CASES; c++) {
        struct ec_found found[NODES];
        struct ec_homes h;
        unsigned homeless, used = 0, there = 0, made = 0;
        ec_mask has[TARGETS];
        for (unsigned n = 0; n < TARGETS; n++) /* none, 0, 1 or 2 */
            has[n] = (ec_mask)((1u << (c >> 2 * n & 3)) >> 1);
        size_t count = find(found, "aaaa", has);
        ec_plan_repair(found, count, SLICES, &h, &homeless);
        for (unsigned i = 0; i < SLICES; i++) {
            bool is_there = false;
            for (unsigned n = 0; n < TARGETS; n++)
                is_there = is_there || (has[n] & (ec_mask)1 << i) != 0;
            there += is_there;
            if (h.all[i] == NULL)
                continue;
            unsigned n = (unsigned)(h.all[i] - nodes);
            assert_false(is_there);
            assert_true(has[n] == 0 && (used & 1u << n) == 0);
            used |= 1u << n;
            made++;
        }
        assert_int_equal(there + made + homeless, SLICES);
    }
}

static void only_what_nobody_knows_is_garbage(void **unused)
{
    (void)unused;
    const struct ec_owner others[] = {{true, 7}, {true, 0}, {true, 9}};
    const struct ec_owner silent[] = {{true, 7}, {false, 0}};
    assert_true(ec_plan_is_garbage(5, others, 3, true));
    assert_false(ec_plan_is_garbage(9, others, 3, true));
    assert_false(ec_plan_is_garbage(5, others, 3, false));
    assert_false(ec_plan_is_garbage(5, silent, 2, true));
    assert_false(ec_plan_is_garbage(5, others, 0, true));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_write_goes_to_the_first_that_are_there),
        cmocka_unit_test(a_reader_first_asks_those_of_a_quiet_time),
        cmocka_unit_test(what_was_found_is_read),
        cmocka_unit_test(fewer_than_k_wait_for_those_who_may_have_them),
        cmocka_unit_test(a_repair_gives_to_those_who_have_none),
        cmocka_unit_test(every_pattern_is_repaired),
        cmocka_unit_test(only_what_nobody_knows_is_garbage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

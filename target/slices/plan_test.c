#include "target/slices/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "common/rng.h"

enum { NODES = 8 };

static struct node nodes[NODES];
static const struct node *ranked[NODES];

/* 'a' active, 'd' active but some of its mountpaths are not to be had, 'u' unreachable, 'm' in
 * maintenance, 'o' in maintenance and off; in rank. */
static size_t rank(const char *states)
{
    static const char *const ids[NODES] = {"t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7"};
    size_t count = strlen(states);
    assert_true(count <= NODES);
    for (size_t i = 0; i < count; i++) {
        bool active = states[i] == 'a' || states[i] == 'd';
        enum node_state s = active             ? NODE_ACTIVE
                            : states[i] == 'u' ? NODE_UNREACHABLE
                                               : NODE_MAINTENANCE;
        bool absent = states[i] == 'd' || states[i] == 'o';
        nodes[i] = (struct node){.id = ids[i], .state = s, .absent_since = absent ? 7 : 0};
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
        {"uuaaaaaa", 4, 2, "234567"}, {"aa", 1, 2, "01."},    {"daaa", 2, 1, "123"},
        {"adaa", 2, 1, "023"},        {"aad", 2, 1, NULL},    {"aaadda", 4, 2, NULL},
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

/* Of slice 0 the first is damaged, of slice 1 the second, who is asked at the second attempt. */
static void of_two_holders_the_other_is_read_where_one_has_failed(void **unused)
{
    (void)unused;
    const ec_mask has[] = {3, 3, 0, 4};
    struct ec_found found[NODES];
    struct ec_homes first, second, third;
    size_t count = find(found, "aaaa", has);
    ec_plan_read(found, count, 3, &first);
    assert_homes(&first, "003");
    ec_plan_pass_over(found, count, &first, 1);
    ec_plan_read(found, count, 3, &second);
    assert_homes(&second, "103");
    find(found, "aaaa", has); /* asked anew */
    ec_plan_pass_over(found, count, &first, 1);
    ec_plan_pass_over(found, count, &second, 4); /* nobody else has it: once more */
    ec_plan_read(found, count, 3, &third);
    assert_homes(&third, "103");
    find(found, "auaa", has); /* nor here, now */
    ec_plan_pass_over(found, count, &first, 1);
    ec_plan_read(found, count, 3, &third);
    assert_homes(&third, "003");
}

static void what_is_left_of_a_slice_is_read_where_nobody_has_one(void **unused)
{
    (void)unused;
    struct ec_found found[NODES];
    struct ec_homes h;
    size_t count = find(found, "aaaa", (ec_mask[]){0, 0, 4, 1});
    assert_int_equal(ec_plan_check(found, count, 2, 3, NULL), 0);
    found[3].has = 0;
    assert_int_equal(ec_plan_check(found, count, 2, 3, NULL), E_CORRUPT);
    found[0].left = 1;
    found[1].left = 2 | 4;
    assert_int_equal(ec_plan_check(found, count, 2, 3, NULL), 0);
    ec_plan_read(found, count, 3, &h);
    assert_homes(&h, "012");
    assert_int_equal(h.left, 1 | 2);
    assert_int_equal(h.doubted, 1 | 2);
    found[3].has = 1;
    ec_plan_read(found, count, 3, &h);
    assert_homes(&h, "312");
    assert_int_equal(h.left, 2);
    found[3].has = 0;
    ec_plan_read(found, count, 3, &h);
    ec_plan_strike(found, count, &h, 1);
    assert_int_equal(ec_plan_check(found, count, 2, 3, NULL), 0);
    ec_plan_strike(found, count, &h, 2);
    assert_int_equal(ec_plan_check(found, count, 2, 3, NULL), E_CORRUPT);
}

static void it_is_lost_where_no_holder_of_a_slice_is_left(void **unused)
{
    (void)unused;
    struct ec_found found[NODES];
    struct ec_homes from;
    size_t count = find(found, "aaa", (ec_mask[]){1, 2, 1}); /* slice 2 is gone, 0 there twice */
    ec_plan_read(found, count, 3, &from);
    ec_plan_strike(found, count, &from, 1);
    assert_int_equal(ec_plan_check(found, count, 2, 3, NULL), 0);
    ec_plan_read(found, count, 3, &from);
    assert_ptr_equal(from.all[0], found[2].node);
    ec_plan_strike(found, count, &from, 1);
    assert_int_equal(ec_plan_check(found, count, 2, 3, NULL), E_CORRUPT);
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

static struct ec_mending repair(const char *states, const ec_mask *has, unsigned slices,
                                ec_mask doubted, struct ec_found *found)
{
    struct ec_mending m;
    size_t count = find(found, states, has);
    ec_plan_repair(found, count, slices, doubted, &m);
    return m;
}

static void a_repair_gives_to_those_who_have_none(void **unused)
{
    (void)unused;
    static const struct {
        const char *states;
        ec_mask has[NODES];
        unsigned slices;
        ec_mask doubted;
        const char *to;
        ec_mask homeless, leaving;
    } rows[] = {
        {"aaaa", {1, 0, 4, 0}, 3, 0, ".1.", 0, 0}, /* slice 1 is gone */
        {"aaa", {1, 0, 4}, 3, 0, ".1.", 0, 0},
        {"uaaa", {1, 2, 4, 0}, 3, 0, "3..", 0, 0}, /* who is away counts as nobody */
        {"uaa", {1, 2, 4}, 3, 0, "...", 1, 0},
        {"maaa", {1, 2, 4, 0}, 3, 0, "3..", 0, 1}, /* who leaves, too */
        {"maa", {1, 2, 4}, 3, 0, "...", 1, 1},
        {"maaa", {1, 2, 4, 1}, 3, 0, "...", 0, 0}, /* what it had has been made anew */
        {"aaaaaaaa", {0, 0, 32, 0, 1, 2, 4, 0}, 6, 0, "...01.", 0, 0},
        {"aaaa", {1, 2, 4, 0}, 3, 2, ".1.", 0, 0}, /* damaged: where it is */
        {"aaaa", {0, 2, 4, 0}, 3, 2, "01.", 0, 0},
        {"amaa", {1, 2, 4, 0}, 3, 2, ".3.", 0, 2},
        {"aaa", {1, 2, 4}, 3, 6, ".12", 0, 0},
        {"aaa", {1, 2, 1}, 3, 0, "..2", 0, 0}, /* it has but what another has, too */
        {"aaa", {1, 2, 3}, 3, 0, "..2", 0, 0},
        {"aaa", {1, 1, 2}, 3, 0, "..1", 0, 0},
        {"uaa", {1, 2, 2}, 3, 0, "2..", 4, 0},
        {"aaaa", {1, 2, 1, 0}, 3, 0, "..3", 0, 0}, /* sooner who has none */
        {"adaa", {1, 0, 4, 0}, 3, 0, ".3.", 0, 0}, /* who lacks mountpaths is given none */
        {"ada", {1, 0, 4}, 3, 0, "...", 2, 0},
        {"adaa", {1, 2, 4, 0}, 3, 0, "...", 0, 0}, /* but may keep what it has */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ec_found found[NODES] = {0};
        const struct ec_mending m =
            repair(rows[i].states, rows[i].has, rows[i].slices, rows[i].doubted, found);
        assert_homes(&m.to, rows[i].to);
        assert_true(m.homeless == rows[i].homeless && m.leaving == rows[i].leaving);
    }
}

/* Only where all is well otherwise, and of those that stay. */
static void of_two_the_one_of_lower_rank_goes(void **unused)
{
    (void)unused;
    static const struct {
        const char *states;
        ec_mask has[NODES];
        ec_mask doubted;
        ec_mask surplus[NODES];
    } rows[] = {
        {"aaaa", {1, 2, 4, 1}, 0, {0, 0, 0, 1}}, {"aaaaa", {1, 2, 4, 2, 2}, 0, {0, 0, 0, 2, 2}},
        {"aaaa", {1, 2, 4, 0}, 0, {0}},          {"maaa", {1, 2, 4, 1}, 0, {0}},
        {"aaaau", {1, 2, 4, 1, 0}, 0, {0}},      {"aaaa", {1, 2, 4, 1}, 1, {0}},
        {"aaaa", {1, 0, 4, 1}, 0, {0}},          {"aaaa", {1, 2, 5, 2}, 0, {0, 0, 1, 2}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ec_found found[NODES] = {0};
        (void)repair(rows[i].states, rows[i].has, 3, rows[i].doubted, found);
        for (size_t n = 0; n < strlen(rows[i].states); n++)
            assert_true(found[n].surplus == rows[i].surplus[n]);
    }
}

/* Of every pattern of what is where: each slice ends with a home, no target gets two, none that has
 * one for which there is no other gets another, and of each slice one is left. */
static void every_pattern_is_repaired(void **unused)
{
    (void)unused;
    enum { TARGETS = 4, SLICES = 3, CASES = 1 << (TARGETS * 2) };
    for (unsigned c = 0; c < CASES; c++) {
        struct ec_found found[NODES] = {0};
        ec_mask has[TARGETS], there = 0, made = 0, left = 0;
        unsigned used = 0;
        for (unsigned n = 0; n < TARGETS; n++) { /* none, 0, 1 or 2 */
            has[n] = (ec_mask)((1u << (c >> 2 * n & 3)) >> 1);
            there |= has[n];
        }
        const struct ec_mending m = repair("aaaa", has, SLICES, 0, found);
        for (unsigned i = 0; i < SLICES; i++) {
            if (m.to.all[i] == NULL)
                continue;
            unsigned n = (unsigned)(m.to.all[i] - nodes);
            ec_mask before = 0;
            for (unsigned k = 0; k < n; k++)
                before |= has[k];
            assert_true((has[n] & ~before) == 0 && (used & 1u << n) == 0);
            used |= 1u << n;
            made |= (ec_mask)1 << i;
        }
        assert_true((there & made) == 0 && (there | made) == (1 << SLICES) - 1 && m.homeless == 0);
        for (unsigned n = 0; n < TARGETS; n++) {
            ec_mask stays = has[n] & ~found[n].surplus;
            assert_true((left & stays) == 0 || (made | m.homeless) != 0);
            left |= stays;
        }
        assert_true(left == there);
    }
}

static void a_slice_moves_to_a_place_that_has_none(void **unused)
{
    (void)unused;
    static const struct {
        const char *states;
        ec_mask has[NODES];
        const char *to;
    } rows[] = {
        {"aaaa", {1, 2, 4, 0}, "..."}, /* it joined behind the places */
        {"aaaa", {0, 1, 2, 4}, "..0"}, /* before them: the last one's slice goes there alone */
        {"aaaa", {1, 0, 2, 4}, "..1"},
        {"aaaaa", {0, 1, 0, 2, 4}, ".02"}, /* two have joined */
        {"aaaa", {4, 1, 2, 4}, "..."},     /* it is there already */
        {"aaaa", {1, 1, 2, 4}, "..1"},     /* what it has is of lower rank */
        {"aaaa", {0, 3, 4, 0}, "..."},     /* two of one stay */
        {"aaaa", {0, 1, 0, 6}, ".02"},
        {"maaaa", {4, 1, 2, 4, 0}, "..."}, /* who leaves has no place */
        {"amaaa", {0, 4, 1, 2, 4}, "..0"}, /* and is not waited for */
        {"uaaaa", {0, 0, 1, 2, 4}, "..."}, /* may be back */
        {"daaaa", {0, 0, 1, 2, 4}, "..."}, /* and so may its disks */
        {"aaaad", {0, 1, 2, 4, 0}, "..."},
        {"aa", {1, 2}, "..."},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ec_found found[NODES] = {0};
        struct ec_homes to;
        size_t count = find(found, rows[i].states, rows[i].has);
        ec_plan_move(found, count, 3, &to);
        assert_homes(&to, rows[i].to);
    }
    struct ec_found found[NODES] = {0};
    struct ec_homes to;
    size_t count = find(found, "aaaa", (ec_mask[]){0, 1, 2, 4});
    found[3].answered = false;
    ec_plan_move(found, count, 3, &to);
    assert_homes(&to, "...");
}

/* Every pattern of what is where on five targets, of which some may be about to leave, and each has
 * one slice at the most: it ends with one at each place and none elsewhere that stays; what moves
 * was at no place.  Meanwhile no slice is without a copy. */
static void every_pattern_is_levelled(void **unused)
{
    (void)unused;
    enum { TARGETS = 5, SLICES = 3, ALL = (1 << SLICES) - 1, CASES = 1 << (2 * TARGETS) };
    static const char *const states[] = {"aaaaa", "amaaa", "aaama"};
    for (unsigned c = 0; c < 3 * CASES; c++) {
        const char *state = states[c % 3];
        ec_mask has[NODES] = {0}, there = 0;
        unsigned moved = 0, places = 0, displaced = 0;
        for (unsigned n = 0; n < TARGETS; n++) {
            has[n] = (ec_mask)((1u << (c / 3 >> 2 * n & 3)) >> 1);
            if (state[n] != 'a')
                continue;
            displaced += places++ < SLICES ? 0 : (has[n] & ~there) != 0;
            there |= has[n];
        }
        if (there != ALL)
            continue; /* every_pattern_is_repaired() */
        for (unsigned round = 0;; round++) {
            struct ec_found found[NODES] = {0};
            struct ec_mending m = repair(state, has, SLICES, 0, found);
            assert_true(ec_homes_mask(&m.to) == 0 && m.homeless == 0);
            ec_plan_move(found, TARGETS, SLICES, &m.to);
            ec_mask left = 0, dropped = 0;
            for (unsigned n = 0; n < TARGETS; n++) {
                has[n] &= ~found[n].surplus;
                dropped |= found[n].surplus;
                left |= state[n] == 'a' ? has[n] : 0;
            }
            assert_true(left == ALL);
            if (ec_homes_mask(&m.to) == 0 && dropped == 0)
                break;
            for (unsigned i = 0; i < SLICES; i++) {
                if (m.to.all[i] != NULL) {
                    has[m.to.all[i] - nodes] |= (ec_mask)1 << i;
                    moved++;
                }
            }
            assert_true(round < 2);
        }
        assert_int_equal(moved, displaced);
        for (unsigned n = 0, i = 0; n < TARGETS; n++) {
            if (state[n] == 'a')
                assert_int_equal(__builtin_popcountll(has[n]), i++ < SLICES);
        }
    }
}

/* Several decide by what they were told at some time, and what they decided is done at any later
 * one, while copies are made, too: of each slice one is left. */
static void however_late_it_is_done_one_of_each_is_left(void **unused)
{
    (void)unused;
    enum { TARGETS = 4, SLICES = 2, DECIDERS = 3, STEPS = 60, ROUNDS = 2000 };
    unsigned removed = 0;
    for (unsigned seed = 1; seed <= ROUNDS; seed++) {
        struct ec_found found[DECIDERS][NODES] = {0};
        ec_mask has[TARGETS] = {0};
        struct rng rng;
        rng_seed(&rng, seed);
        for (unsigned i = 0; i < SLICES; i++)
            has[rng_below(&rng, TARGETS)] |= (ec_mask)1 << i;
        for (unsigned d = 0; d < DECIDERS; d++)
            find(found[d], "aaaa", has);
        for (unsigned s = 0; s < STEPS; s++) {
            struct ec_found *f = found[rng_below(&rng, DECIDERS)];
            unsigned n = (unsigned)rng_below(&rng, TARGETS);
            struct ec_mending m;
            switch (rng_below(&rng, 4)) {
            case 0:
                has[n] |= (ec_mask)1 << rng_below(&rng, SLICES);
                break;
            case 1: /* each answers at another time */
                f[n].has = has[n];
                break;
            case 2:
                ec_plan_repair(f, TARGETS, SLICES, 0, &m);
                break;
            default:
                removed += (has[n] & f[n].surplus) != 0;
                has[n] &= ~f[n].surplus;
            }
            assert_true((has[0] | has[1] | has[2] | has[3]) == (1 << SLICES) - 1);
        }
    }
    assert_true(removed > ROUNDS);
}

/* Those who are known to be away are not waited for; each is the one that says nothing once. */
static void who_is_there_has_to_say_what_it_has(void **unused)
{
    (void)unused;
    static const char states[] = "aduom";
    struct ec_found found[NODES];
    size_t count = find(found, states, (ec_mask[NODES]){1, 2, 4});
    for (size_t i = 0; i < count; i++)
        found[i].answered = true;
    assert_null(ec_plan_silent(found, count));
    assert_true(ec_all_answered(found, count));
    for (size_t i = 0; i < count; i++) {
        found[i].answered = false;
        bool waits = states[i] == 'a' || states[i] == 'm';
        assert_ptr_equal(ec_plan_silent(found, count), waits ? &nodes[i] : NULL);
        assert_false(ec_all_answered(found, count));
        found[i].answered = true;
    }
}

static void what_one_more_loss_takes_away_does_not_wait(void **unused)
{
    (void)unused;
    const struct ec_homes none = {.count = 6};
    const struct ec_homes one = {.count = 6, .all = {[5] = &nodes[5]}};
    struct ec_homes from = {.count = 6};
    for (unsigned i = 0; i < 5; i++)
        from.all[i] = &nodes[i];
    assert_true(ec_plan_may_wait(&from, &one, 4));
    from.doubted = 1;
    assert_false(ec_plan_may_wait(&from, &one, 4)); /* k are good */
    from.doubted = 0;
    assert_false(ec_plan_may_wait(&from, &none, 4)); /* there is nothing to wait for */
    from.all[2] = NULL;
    assert_false(ec_plan_may_wait(&from, &one, 4));
}

/* Of nodes by rank: what each has ('-': it has not answered; its answer does not count). */
static void what_is_hidden_stands_with_as_many_slices_as_a_write_gives(void **unused)
{
    (void)unused;
    static const struct {
        const char *states, *has[NODES];
        unsigned k, slices, spared;
        bool stands;
    } rows[] = {
        {"aaaa", {"0", "1", "2", ""}, 2, 3, 0, true},
        {"aaaa", {"2", "0", "", "1"}, 2, 3, 0, true},
        {"aaaa", {"0", "1", "", ""}, 2, 3, 0, false},
        {"aaaa", {"0", "1", "1", "0"}, 2, 3, 0, false}, /* the same ones */
        {"aaaa", {"0", "1", "-", ""}, 2, 3, 0, false},  /* nobody knows what it has */
        {"aaaa", {"0", "1", "-", ""}, 2, 3, 1, true},   /* it is left out */
        {"aaaa", {"0", "", "-", ""}, 2, 3, 1, false},
        {"aaaa", {"0", "", "-", "-"}, 2, 3, 2, false}, /* never fewer than k */
        {"aada", {"0", "1", "", ""}, 2, 3, 0, false},  /* three could take one */
        {"aad", {"0", "1", ""}, 2, 3, 0, true},        /* a write would be whole copies … */
        {"add", {"0", "", ""}, 2, 3, 0, false},        /* … and this is not even readable */
        {"aaaaad", {"0", "1", "2", "3", "4", ""}, 4, 6, 0, true},
        {"aaaaaa", {"0", "1", "2", "3", "4", ""}, 4, 6, 0, false},
        {"aaaaaa", {"0", "1", "2", "3", "-", "-"}, 4, 6, 2, true},
        {"aaaaaa", {"0", "1", "2", "", "-", "-"}, 4, 6, 2, false},
        {"", {NULL}, 2, 3, 0, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct ec_found found[NODES] = {{0}};
        size_t count = rank(rows[i].states);
        for (size_t n = 0; n < count; n++) {
            const char *has = rows[i].has[n];
            found[n] = (struct ec_found){.node = &nodes[n], .answered = *has != '-'};
            found[n].has = *has >= '0' ? (ec_mask)1 << (*has - '0') : *has == '-' ? ~(ec_mask)0 : 0;
        }
        bool stands = ec_plan_stands(found, count, rows[i].k, rows[i].slices, rows[i].spared);
        if (stands != rows[i].stands)
            fail_msg("row %zu", i);
    }
}

static void only_what_nobody_knows_is_garbage(void **unused)
{
    (void)unused;
    const struct ec_owner others[] = {{true, 7, 0}, {true, 0, 3}, {true, 9, 0}};
    const struct ec_owner silent[] = {{true, 7, 0}, {false, 0, 0}};
    assert_true(ec_plan_is_garbage(5, others, 3, true));
    assert_false(ec_plan_is_garbage(9, others, 3, true));
    assert_false(ec_plan_is_garbage(3, others, 3, true)); /* a job hides its manifest */
    assert_false(ec_plan_is_garbage(5, others, 3, false));
    assert_false(ec_plan_is_garbage(5, silent, 2, true));
    assert_false(ec_plan_is_garbage(5, others, 0, true));
}

static void only_what_may_pass_is_sent_on(void **unused)
{
    (void)unused;
    static const struct {
        int slice, put;
        bool send_on;
    } rows[] = {
        {E_NET, E_NODE_UNREACHABLE, true},
        {E_TIMEOUT, E_NODE_UNREACHABLE, true},
        {E_NODE_UNREACHABLE, E_NODE_UNREACHABLE, true},
        {E_STALE_MAP, E_STALE_MAP, true},
        {E_NOT_READY, E_NOT_READY, true},
        {E_IO, E_NODE_UNREACHABLE, false},
        {E_CORRUPT, E_NODE_UNREACHABLE, false},
        {E_NO_SPACE, E_NO_SPACE, false},
        {E_OVERLOAD, E_OVERLOAD, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool send_on = !rows[i].send_on;
        assert_int_equal(ec_plan_failure(rows[i].slice, &send_on), rows[i].put);
        assert_int_equal(send_on, rows[i].send_on);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_write_goes_to_the_first_that_are_there),
        cmocka_unit_test(a_reader_first_asks_those_of_a_quiet_time),
        cmocka_unit_test(what_was_found_is_read),
        cmocka_unit_test(of_two_holders_the_other_is_read_where_one_has_failed),
        cmocka_unit_test(what_is_left_of_a_slice_is_read_where_nobody_has_one),
        cmocka_unit_test(it_is_lost_where_no_holder_of_a_slice_is_left),
        cmocka_unit_test(fewer_than_k_wait_for_those_who_may_have_them),
        cmocka_unit_test(a_repair_gives_to_those_who_have_none),
        cmocka_unit_test(of_two_the_one_of_lower_rank_goes),
        cmocka_unit_test(every_pattern_is_repaired),
        cmocka_unit_test(a_slice_moves_to_a_place_that_has_none),
        cmocka_unit_test(every_pattern_is_levelled),
        cmocka_unit_test(however_late_it_is_done_one_of_each_is_left),
        cmocka_unit_test(who_is_there_has_to_say_what_it_has),
        cmocka_unit_test(what_one_more_loss_takes_away_does_not_wait),
        cmocka_unit_test(what_is_hidden_stands_with_as_many_slices_as_a_write_gives),
        cmocka_unit_test(only_what_nobody_knows_is_garbage),
        cmocka_unit_test(only_what_may_pass_is_sent_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

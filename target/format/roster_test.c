/* Changes of the roster: what it says of where objects may lie, and that it survives its JSON. */
#include "target/format/roster.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/buf.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "common/rng.h"
#include "hrw/hrw.h"

static struct roster *roster_of(unsigned n)
{
    struct roster *r = roster_new();
    for (unsigned i = 0; i < n; i++) {
        char id[8], path[8];
        snprintf(id, sizeof id, "mp-%u", i);
        snprintf(path, sizeof path, "/d%u", i);
        assert_int_equal(roster_attach(r, id, path, 100 + i, true, 5, NULL), 0);
    }
    return r;
}

static char *text_of(const struct roster *r)
{
    _cleanup_json_ json_t *doc = json_object();
    roster_to_json(r, doc);
    return json_text(doc);
}

static void assert_same_through_json(const struct roster *r)
{
    _cleanup_json_ json_t *doc = json_object();
    _cleanup_(roster_freep)
    struct roster *back = NULL;
    struct error err = ERROR_INIT;
    roster_to_json(r, doc);
    if (roster_from_json(doc, &back, &err) != 0)
        fail_msg("%s", err.message);
    _cleanup_free_ char *a = text_of(r), *b = text_of(back);
    assert_string_equal(a, b);
    _cleanup_(roster_freep)
    struct roster *copy = roster_copy(r);
    _cleanup_free_ char *c = text_of(copy);
    assert_string_equal(a, c);
}

static void test_the_first_ones_are_settled(void **state)
{
    (void)state;
    _cleanup_(roster_freep)
    struct roster *r = roster_of(3);
    assert_true(r->settled);
    assert_int_equal(r->earlier_count, 0);
    assert_int_equal(r->generation, 3);
    assert_int_equal(roster_find_path(r, "/d2"), 2);
    assert_int_equal(roster_find_id(r, "mp-9"), SIZE_MAX);
    assert_same_through_json(r);
}

static void test_attach_detach_settle(void **state)
{
    (void)state;
    _cleanup_(roster_freep)
    struct roster *r = roster_of(2);
    assert_int_equal(roster_attach(r, "mp-2", "/d2", 100, false, 5, NULL), 0);
    assert_false(r->settled);
    assert_int_equal(r->earlier_count, 1);
    assert_int_equal(r->earlier[0].count, 2);
    assert_int_equal(roster_leave(r, 0, 6, NULL), 0);
    assert_int_equal(r->earlier[1].count, 3);
    assert_same_through_json(r);
    roster_settle(r);
    assert_true(r->settled);
    assert_int_equal(r->count, 2);
    assert_int_equal(r->earlier_count, 0);
    assert_true(roster_is_detached(r, "/d0"));
    assert_same_through_json(r);
    assert_int_equal(roster_attach(r, "mp-7", "/d0", 100, false, 5, NULL), 0);
    assert_false(roster_is_detached(r, "/d0"));
}

static void test_a_disabled_one_keeps_its_place(void **state)
{
    (void)state;
    _cleanup_(roster_freep)
    struct roster *r = roster_of(2);
    roster_disable(r, 1, "I/O \"errors\" \xff", 7);
    assert_true(r->settled);
    assert_string_equal(roster_state_name(&r->members[1]), "disabled");
    r->members[1].counted = true;
    r->members[1].objects = 9;
    assert_same_through_json(r);
    /* With what it has out of sight, nothing can be said to lie where it belongs. */
    assert_int_equal(roster_attach(r, "mp-2", "/d2", 100, false, 5, NULL), 0);
    roster_settle(r);
    assert_false(r->settled);
    assert_int_equal(r->earlier_count, 1);
    roster_enable(r, 1, 8);
    assert_null(r->members[1].why);
    roster_settle(r);
    assert_true(r->settled);
}

static void test_the_last_one_cannot_leave(void **state)
{
    (void)state;
    _cleanup_(roster_freep)
    struct roster *r = roster_of(3);
    roster_disable(r, 2, "bad", 1);
    assert_int_equal(roster_leave(r, 0, 1, NULL), 0);
    assert_int_equal(roster_leave(r, 1, 1, NULL), E_MOUNTPATH);
    assert_int_equal(roster_stay(r, 0, 1, NULL), 0);
    assert_int_equal(roster_leave(r, 1, 1, NULL), 0);
}

static void test_one_that_is_given_up_moves_nothing(void **state)
{
    (void)state;
    _cleanup_(roster_freep)
    struct roster *r = roster_of(3);
    roster_disable(r, 1, "bad", 1);
    roster_give_up(r, 1);
    assert_true(r->settled);
    assert_int_equal(r->count, 2);
    assert_string_equal(r->members[1].id, "mp-2");
    assert_true(roster_is_detached(r, "/d1"));
}

/* The one that the objects were to go to is given up. */
static void test_somebody_stays(void **state)
{
    (void)state;
    _cleanup_(roster_freep)
    struct roster *r = roster_of(2);
    assert_int_equal(roster_leave(r, 0, 1, NULL), 0);
    roster_disable(r, 1, "bad", 1);
    roster_give_up(r, 1);
    roster_settle(r);
    assert_int_equal(r->count, 1);
    assert_false(r->settled);
    assert_int_equal(roster_stay(r, 0, 1, NULL), 0);
    roster_settle(r);
    assert_true(r->settled);
}

static void test_too_many_changes_are_refused(void **state)
{
    (void)state;
    _cleanup_(roster_freep)
    struct roster *r = roster_of(2);
    struct error err = ERROR_INIT;
    for (int i = 0; i < ROSTER_EARLIER_MAX; i += 2) {
        assert_int_equal(roster_leave(r, 0, 1, NULL), 0);
        assert_int_equal(roster_stay(r, 0, 1, NULL), 0);
    }
    assert_int_equal(roster_leave(r, 0, 1, &err), E_MOUNTPATH);
    assert_non_null(strstr(err.message, "resilver"));
    roster_give_up(r, 0); /* cannot wait */
    assert_true(r->anywhere);
    assert_int_equal(r->earlier_count, 0);
    assert_same_through_json(r);
}

static void test_weights(void **state)
{
    (void)state;
    const uint64_t tib = (uint64_t)1 << 40;
    assert_int_equal(roster_weight(4 * tib, 0, 0), 65536);
    assert_int_equal(roster_weight(1000, 0, 0), 1);
    assert_int_equal(roster_weight(8 * tib, 2 * 1024, 8 * tib), 2048);
    assert_int_equal(roster_weight(4 * tib, 2 * 1024, 8 * tib), 1024);
    assert_int_equal(roster_weight(UINT64_MAX, 1024, 1), INT32_MAX);
}

static void assert_refused(const char *text)
{
    _cleanup_json_ json_t *doc = NULL;
    struct roster *r = NULL;
    assert_int_equal(json_parse(text, strlen(text), &doc, NULL), 0);
    assert_int_equal(roster_from_json(doc, &r, NULL), E_JSON);
    assert_null(r);
}

static void test_nonsense_is_refused(void **state)
{
    (void)state;
    assert_refused("{\"set\": [{\"id\": \"a\"}]}");
    assert_refused("{\"set\": [{\"id\": \"a\", \"path\": \"/a\", \"weight\": 0}]}");
    assert_refused("{\"set\": [{\"id\": \"a\", \"path\": \"/a\", \"weight\": 4294967296}]}");
    assert_refused(
        "{\"set\": [{\"id\": \"a\", \"path\": \"/a\"}, {\"id\": \"a\", \"path\": \"/b\"}]}");
    assert_refused(
        "{\"set\": [{\"id\": \"a\", \"path\": \"/a\"}, {\"id\": \"b\", \"path\": \"/a\"}]}");
    assert_refused("{\"earlier\": [{}]}");
    assert_refused("{\"detached\": [1]}");
    assert_refused("{\"generation\": -1}");
}

static char *of_many(const char *field, size_t count, const char *each)
{
    struct buf text = BUF_INIT;
    buf_printf(&text, "{\"%s\": [", field);
    for (size_t i = 0; i < count; i++)
        buf_printf(&text, "%s%s", i > 0 ? ", " : "", each);
    buf_puts(&text, "]}");
    return buf_steal(&text);
}

/* Others hold them in arrays. */
static void test_too_many_are_refused(void **state)
{
    (void)state;
    _cleanup_free_ char *members =
        of_many("set", ROSTER_MEMBERS_MAX + 1, "{\"id\": \"a\", \"path\": \"/a\", \"weight\": 1}");
    _cleanup_free_ char *earlier = of_many("earlier", ROSTER_EARLIER_MAX + 1, "[]");
    assert_refused(members);
    assert_refused(earlier);
}

/* --- a model: where may the newest copy of a name be? ----------------------------------------- */

static const char *pick(const struct roster_share *shares, size_t count, uint64_t key)
{
    struct hrw_node nodes[64];
    for (size_t i = 0; i < count; i++)
        nodes[i] = (struct hrw_node){.seed = hrw_seed(shares[i].id), .weight = shares[i].weight};
    size_t best = hrw_best(key, nodes, count);
    return best == SIZE_MAX ? NULL : shares[best].id;
}

static const char *pick_now(const struct roster *r, uint64_t key)
{
    struct roster_share shares[64];
    size_t n = 0;
    for (size_t i = 0; i < r->count; i++) {
        if (!r->members[i].leaving)
            shares[n++] =
                (struct roster_share){.id = r->members[i].id, .weight = r->members[i].weight};
    }
    return pick(shares, n, key);
}

static bool may_lie_on(const struct roster *r, uint64_t key, const char *id)
{
    const char *now = pick_now(r, key);
    if (r->anywhere || (now != NULL && strcmp(now, id) == 0))
        return true;
    for (size_t i = 0; i < r->earlier_count; i++) {
        const char *was = pick(r->earlier[i].shares, r->earlier[i].count, key);
        if (was != NULL && strcmp(was, id) == 0)
            return true;
    }
    return false;
}

enum { KEYS = 40, STEPS = 60, MODEL_MEMBERS = 12 };

static void random_change(struct roster *r, struct rng *rng, unsigned *next)
{
    char id[12], path[12];
    size_t i = rng_below(rng, r->count);
    switch (rng_below(rng, 6)) {
    case 0:
        snprintf(id, sizeof id, "mp-%u", *next);
        snprintf(path, sizeof path, "/d%u", (*next)++);
        if (r->count < MODEL_MEMBERS)
            (void)roster_attach(r, id, path, 1 + (uint32_t)rng_below(rng, 9), false, 1, NULL);
        break;
    case 1:
        if (!r->members[i].leaving && !r->members[i].disabled)
            (void)roster_leave(r, i, 1, NULL);
        break;
    case 2:
        if (r->members[i].leaving)
            (void)roster_stay(r, i, 1, NULL);
        break;
    case 3:
        if (!r->members[i].disabled)
            roster_disable(r, i, "bad", 1);
        break;
    case 4:
        if (r->members[i].disabled)
            roster_enable(r, i, 1);
        break;
    default:
        if (r->members[i].disabled && r->count > 1)
            roster_give_up(r, i);
    }
}

/* Names are written where the roster says while it changes; whatever happened, each lies where the
 * roster says it may, or on a member that is gone.  A resilver moves what it can reach, and
 * settles. */
static void run_model(uint64_t seed)
{
    struct rng rng;
    char *at[KEYS] = {0};
    unsigned next = 2;
    _cleanup_(roster_freep)
    struct roster *r = roster_of(2);
    rng_seed(&rng, seed);
    for (unsigned step = 0; step < STEPS; step++) {
        random_change(r, &rng, &next);
        bool resilver = rng_below(&rng, 8) == 0;
        for (uint64_t k = 0; k < KEYS; k++) {
            const char *to = pick_now(r, hrw_key(1, &k, sizeof k));
            size_t from = at[k] != NULL ? roster_find_id(r, at[k]) : SIZE_MAX;
            bool out = from != SIZE_MAX && r->members[from].disabled;
            bool writes = resilver ? from != SIZE_MAX && !out : rng_below(&rng, 4) == 0;
            if (!writes || to == NULL || out || r->members[roster_find_id(r, to)].disabled)
                continue;
            free(at[k]);
            at[k] = xstrdup(to);
        }
        bool reachable = true; /* nothing had to stay behind, for where it belongs is disabled */
        for (uint64_t k = 0; k < KEYS; k++) {
            const char *to = pick_now(r, hrw_key(1, &k, sizeof k));
            size_t from = at[k] != NULL ? roster_find_id(r, at[k]) : SIZE_MAX;
            reachable = reachable && (from == SIZE_MAX || (to != NULL && strcmp(at[k], to) == 0) ||
                                      r->members[from].disabled);
        }
        if (resilver && reachable)
            roster_settle(r);
        for (uint64_t k = 0; k < KEYS; k++) {
            bool member = at[k] != NULL && roster_find_id(r, at[k]) != SIZE_MAX;
            if (member && !may_lie_on(r, hrw_key(1, &k, sizeof k), at[k]))
                fail_msg("seed %llu, step %u: key %llu lies on %s", (unsigned long long)seed, step,
                         (unsigned long long)k, at[k]);
        }
    }
    for (uint64_t k = 0; k < KEYS; k++)
        free(at[k]);
}

static void test_names_lie_where_the_roster_says(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++)
        run_model(seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_first_ones_are_settled),
        cmocka_unit_test(test_attach_detach_settle),
        cmocka_unit_test(test_a_disabled_one_keeps_its_place),
        cmocka_unit_test(test_the_last_one_cannot_leave),
        cmocka_unit_test(test_one_that_is_given_up_moves_nothing),
        cmocka_unit_test(test_somebody_stays),
        cmocka_unit_test(test_too_many_changes_are_refused),
        cmocka_unit_test(test_weights),
        cmocka_unit_test(test_nonsense_is_refused),
        cmocka_unit_test(test_too_many_are_refused),
        cmocka_unit_test(test_names_lie_where_the_roster_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

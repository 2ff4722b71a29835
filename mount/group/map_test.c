#include "mount/group/map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/buf.h"
#include "common/cleanup.h"

#define PIECES 6000
#define SETTLE 300000

struct given {
    const char *id;
    unsigned weight, earlier;
    unsigned present_ms; /* 0: away */
};

static struct group_map *map_of(const struct given *members, size_t count, unsigned age_ms,
                                const struct group_map *before)
{
    struct group_map *m;
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    buf_printf(&text, "{\"age_ms\":%u,\"away_ms\":10000,\"settle_ms\":%u,\"members\":[", age_ms,
               SETTLE);
    for (size_t i = 0; i < count; i++)
        buf_printf(&text,
                   "%s{\"id\":\"%s\",\"url\":\"http://%s:1\",\"state\":\"%s\",\"weight\":%u,"
                   "\"earlier_weight\":%u,\"present_ms\":%u}",
                   i > 0 ? "," : "", members[i].id, members[i].id,
                   members[i].present_ms > 0 ? "present" : "away", members[i].weight,
                   members[i].earlier, members[i].present_ms);
    buf_puts(&text, "]}");
    assert_int_equal(group_map_parse(buf_str(&text), before, &m, NULL), 0);
    return m;
}

static struct piece_id piece(uint64_t n)
{
    return (struct piece_id){.entity = {n * 7919, n}, .index = n % 5};
}

static bool is(const struct group_member *m, const char *id)
{
    return m != NULL && strcmp(m->id, id) == 0;
}

static const struct given four[] = {
    {"a", 10, 10, 999999}, {"b", 10, 10, 999999}, {"c", 10, 10, 999999}, {"d", 20, 20, 999999}};

/* Pieces with another owner in the second map; each change must concern the member `id`. */
static unsigned moved(const struct group_map *x, const struct group_map *y, const char *id)
{
    unsigned count = 0;
    for (uint64_t n = 0; n < PIECES; n++) {
        const struct piece_id p = piece(n);
        const struct group_member *from = group_map_owner(x, &p), *to = group_map_owner(y, &p);
        if (strcmp(from->id, to->id) == 0)
            continue;
        assert_true(is(from, id) || is(to, id));
        count++;
    }
    return count;
}

static void pieces_are_shared_by_weight(void **unused)
{
    (void)unused;
    struct group_map *m = map_of(four, 4, SETTLE, NULL);
    unsigned counts[4] = {0};
    for (uint64_t n = 0; n < PIECES; n++) {
        const struct piece_id p = piece(n);
        counts[group_map_owner(m, &p)->id[0] - 'a']++;
        assert_null(group_map_earlier(m, &p, group_map_owner(m, &p)->id));
    }
    for (unsigned i = 0; i < 3; i++)
        assert_in_range(counts[i], PIECES / 5 * 9 / 10, PIECES / 5 * 11 / 10);
    assert_in_range(counts[3], PIECES / 5 * 18 / 10, PIECES / 5 * 22 / 10);
    group_map_unref(m);
}

static void a_join_takes_its_share_from_the_earlier_owners(void **unused)
{
    (void)unused;
    struct given joined[4];
    struct group_map *before = map_of(four, 3, SETTLE, NULL);
    memcpy(joined, four, sizeof joined);
    joined[3].present_ms = 1;
    struct group_map *after = map_of(joined, 4, SETTLE, before);
    assert_in_range(moved(before, after, "d"), PIECES / 5 * 18 / 10, PIECES / 5 * 22 / 10);
    for (uint64_t n = 0; n < PIECES; n++) {
        const struct piece_id p = piece(n);
        const struct group_member *owner = group_map_owner(after, &p);
        const struct group_member *earlier = group_map_earlier(after, &p, owner->id);
        if (is(owner, "d"))
            assert_true(is(earlier, group_map_owner(before, &p)->id));
        else
            assert_null(earlier);
    }
    /* When it has settled, nobody is asked before the store. */
    joined[3].present_ms = SETTLE + 1;
    struct group_map *settled = map_of(joined, 4, SETTLE, after);
    assert_int_equal(moved(after, settled, ""), 0);
    for (uint64_t n = 0; n < PIECES; n++) {
        const struct piece_id p = piece(n);
        assert_null(group_map_earlier(settled, &p, group_map_owner(settled, &p)->id));
    }
    group_map_unref(before);
    group_map_unref(after);
    group_map_unref(settled);
}

static void a_flap_moves_nothing(void **unused)
{
    (void)unused;
    struct given now[4];
    struct group_map *before = map_of(four, 4, SETTLE, NULL);
    memcpy(now, four, sizeof now);
    now[1].present_ms = 0;
    struct group_map *away = map_of(now, 4, SETTLE, before);
    struct group_map *out = map_of((struct given[]){four[0], four[2], four[3]}, 3, SETTLE, away);
    now[1].present_ms = 1;
    struct group_map *back = map_of(now, 4, SETTLE, away);
    assert_in_range(moved(before, away, "b"), PIECES / 5 * 9 / 10, PIECES / 5 * 11 / 10);
    assert_int_equal(moved(away, out, ""), 0); /* ranks are stable */
    assert_int_equal(moved(before, back, ""), 0);
    for (uint64_t n = 0; n < PIECES; n++) {
        const struct piece_id p = piece(n);
        /* What was read while it was away, the next in rank has. */
        if (is(group_map_owner(back, &p), "b"))
            assert_true(is(group_map_earlier(back, &p, "b"), group_map_owner(away, &p)->id));
    }
    group_map_unref(before);
    group_map_unref(away);
    group_map_unref(out);
    group_map_unref(back);
}

static void a_member_that_drains_owns_nothing_and_is_asked(void **unused)
{
    (void)unused;
    struct given now[4];
    struct group_map *before = map_of(four, 4, SETTLE, NULL);
    memcpy(now, four, sizeof now);
    now[2].weight = 0;
    struct group_map *drains = map_of(now, 4, SETTLE, before);
    moved(before, drains, "c");
    for (uint64_t n = 0; n < PIECES; n++) {
        const struct piece_id p = piece(n);
        const struct group_member *owner = group_map_owner(drains, &p);
        const struct group_member *earlier = group_map_earlier(drains, &p, owner->id);
        assert_false(is(owner, "c"));
        assert_true(is(group_map_owner(before, &p), "c") ? is(earlier, "c") : earlier == NULL);
    }
    now[2].present_ms = 1; /* it has just begun */
    struct group_map *young = map_of(now, 4, SETTLE, before);
    for (uint64_t n = 0; n < PIECES; n++) {
        const struct piece_id p = piece(n);
        if (is(group_map_owner(before, &p), "c"))
            assert_true(is(group_map_earlier(young, &p, "a"), "c"));
    }
    group_map_unref(before);
    group_map_unref(drains);
    group_map_unref(young);
}

static void a_young_primary_forgets_nobody(void **unused)
{
    (void)unused;
    const struct given heard[] = {{"b", 10, 10, 1}};
    struct group_map *before = map_of(four, 4, SETTLE, NULL);
    struct group_map *young = map_of(heard, 1, 10000, before);
    assert_int_equal(young->count, 4);
    assert_int_equal(moved(before, young, ""), 0);
    struct group_map *old = map_of(heard, 1, 10001, young);
    assert_int_equal(old->count, 1);
    group_map_unref(before);
    group_map_unref(young);
    group_map_unref(old);
}

static void nobody_is_no_owner(void **unused)
{
    (void)unused;
    const struct piece_id p = piece(1);
    const struct given away[] = {{"a", 10, 10, 0}, {"b", 0, 0, 5}};
    struct group_map *none = map_of(four, 0, SETTLE, NULL), *gone = map_of(away, 2, SETTLE, NULL);
    assert_null(group_map_owner(NULL, &p));
    assert_null(group_map_owner(none, &p));
    assert_null(group_map_earlier(none, &p, "a"));
    assert_null(group_map_owner(gone, &p));
    group_map_unref(none);
    group_map_unref(gone);
}

static void what_is_no_map_is_told(void **unused)
{
    (void)unused;
    struct group_map *m = NULL;
    static const char *const texts[] = {
        "", "[]", "{}", "{\"age_ms\":1,\"away_ms\":1,\"settle_ms\":1,\"members\":[{}]}",
        ("{\"age_ms\":1,\"away_ms\":1,\"settle_ms\":1,\"members\":[{\"id\":\"a\",\"url\":\"u\","
         "\"state\":\"present\",\"weight\":4294967296,\"earlier_weight\":1,\"present_ms\":1}]}")};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct error err = ERROR_INIT;
        assert_int_not_equal(group_map_parse(texts[i], NULL, &m, &err), 0);
        assert_true(err.message[0] != '\0');
    }
    assert_null(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_shared_by_weight),
        cmocka_unit_test(a_join_takes_its_share_from_the_earlier_owners),
        cmocka_unit_test(a_flap_moves_nothing),
        cmocka_unit_test(a_member_that_drains_owns_nothing_and_is_asked),
        cmocka_unit_test(a_young_primary_forgets_nobody),
        cmocka_unit_test(nobody_is_no_owner),
        cmocka_unit_test(what_is_no_map_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "cluster/documents/layout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "cluster/base/document.h"
#include "cluster/command/command.h"
#include "cluster/documents/delta.h"
#include "cluster/documents/smap_change.h"
#include "common/buf.h"
#include "common/jsonx.h"
#include "common/mem.h"

enum { BUCKET = 1, NAMES = 300 };

static const struct cluster_state *s;

static void apply(struct command cmd)
{
    const struct cluster_state *next;
    struct error err = ERROR_INIT;
    if (command_apply(s, &cmd, &next, &err) != 0)
        fail_msg("%s", err.message);
    /* What a metastore keeps of it leads to the same. */
    _cleanup_json_ json_t *delta = state_delta(s, next);
    struct cluster_state *patched;
    if (next != s) {
        assert_int_equal(state_patch(s, delta, &patched, &err), 0);
        _cleanup_json_ json_t *a = state_to_json(next);
        _cleanup_json_ json_t *b = state_to_json(patched);
        assert_true(json_equal(a, b));
        state_unref(patched);
    }
    state_unref(s);
    s = next;
}

static void join(const char *id, uint32_t weight)
{
    const struct node n = {.id = id,
                           .role = NODE_TARGET,
                           .public_url = "http://h:1",
                           .control_url = "http://h:2",
                           .data_url = "http://h:3",
                           .weight = weight,
                           .boot = "b"};
    apply((struct command){.kind = CMD_NODE_JOIN, .node = &n, .fresh = true});
}

static void set(const char *id, enum node_state state)
{
    apply((struct command){.kind = CMD_NODE_STATE, .name = id, .node_state = state, .force = true});
}

static void done(void)
{
    apply((struct command){.kind = CMD_MOVES_DONE, .placed = s->smap.placed});
}

static int setup(void **unused)
{
    (void)unused;
    const struct bucket_props props = BUCKET_PROPS_DEFAULT;
    s = state_new("c");
    join("t1", 1024);
    join("t2", 1024);
    join("t3", 1024);
    apply((struct command){.kind = CMD_BUCKET_CREATE, .name = "b", .props = &props});
    return 0;
}

static int teardown(void **unused)
{
    (void)unused;
    state_unref(s);
    return 0;
}

static const char *owner(const char *name)
{
    const struct node *n;
    assert_int_equal(smap_owners(&s->smap, BUCKET, name, 1, &n), 1);
    return n->id;
}

static void name_of(unsigned i, char name[static 16])
{
    snprintf(name, 16, "o%u", i);
}

/* "t1 t3 " */
static char *asked(const char *name, const char *self, bool hit)
{
    const struct node *nodes[LAYOUTS_MAX];
    struct buf out = BUF_INIT;
    size_t count = layout_ask(&s->smap, BUCKET, name, 1, self, hit, nodes);
    for (size_t i = 0; i < count; i++)
        buf_printf(&out, "%s ", nodes[i]->id);
    buf_puts(&out, "");
    return buf_steal(&out);
}

static void assert_asks(const char *name, const char *self, bool hit, const char *want)
{
    _cleanup_free_ char *got = asked(name, self, hit);
    assert_string_equal(got != NULL ? got : "", want);
}

static void nobody_is_asked_where_nothing_moves(void **unused)
{
    (void)unused;
    assert_true(layout_is_settled(&s->smap));
    assert_asks("o1", owner("o1"), false, "");
}

static void a_new_owner_asks_the_old_one(void **unused)
{
    (void)unused;
    char before[NAMES][16];
    unsigned moved = 0;
    for (unsigned i = 0; i < NAMES; i++) {
        char name[16];
        name_of(i, name);
        snprintf(before[i], sizeof before[i], "%s", owner(name));
    }
    join("t4", 1024);
    for (unsigned i = 0; i < NAMES; i++) {
        char name[16], want[20];
        name_of(i, name);
        snprintf(want, sizeof want, "%s ", before[i]);
        bool is_moved = strcmp(owner(name), before[i]) != 0;
        moved += is_moved;
        assert_asks(name, owner(name), false, is_moved ? want : "");
        assert_asks(name, owner(name), true, ""); /* it was never an owner before */
        if (is_moved)
            assert_string_equal(owner(name), "t4");
    }
    assert_in_range(moved, NAMES / 6, NAMES / 3);
    done();
    assert_asks("o1", owner("o1"), false, "");
}

/* A name that t4 owns when it is there. */
static void name_of_t4(char name[static 16])
{
    const struct node *n = NULL;
    for (unsigned i = 0; n == NULL || strcmp(n->id, "t4") != 0; i++) {
        name_of(i, name);
        assert_int_equal(smap_owners(&s->smap, BUCKET, name, 1, &n), 1);
    }
}

static void who_gets_a_name_back_does_not_trust_what_it_has(void **unused)
{
    (void)unused;
    char name[16], first[16];
    join("t4", 1024);
    name_of_t4(name);
    set("t4", NODE_MAINTENANCE);
    snprintf(first, sizeof first, "%s", owner(name));
    char want[20];
    snprintf(want, sizeof want, "%s ", first);
    /* Before t4 came the name was `first`'s, and so it is again: t4 may have a later version. */
    assert_asks(name, first, true, "t4 ");
    assert_asks(name, first, false, "t4 ");
    set("t4", NODE_ACTIVE);
    assert_asks(name, "t4", true, want);
    assert_asks(name, "t4", false, want);
    assert_int_equal(s->smap.earlier_count, 2); /* the sets with and without it, each once */
}

/* What t4 has of it may be from before it went, though it owned it again since: nothing need have
 * been moved to it then. */
static void nor_after_the_next_change(void **unused)
{
    (void)unused;
    char name[16], want[20];
    const struct node *between;
    join("t4", 1024);
    done();
    set("t4", NODE_MAINTENANCE);
    set("t4", NODE_ACTIVE);
    join("t5", 1024);
    name_of_t4(name);
    assert_int_equal(s->smap.earlier_count, 2); /* without t4, and with it */
    assert_int_equal(layout_owners(&s->smap, 0, BUCKET, name, 1, &between), 1);
    snprintf(want, sizeof want, "%s ", between->id);
    assert_string_not_equal(between->id, "t4");
    assert_asks(name, "t4", true, want);
}

static void who_is_gone_is_not_asked(void **unused)
{
    (void)unused;
    char name[16];
    join("t4", 1024);
    name_of_t4(name);
    done();
    set("t4", NODE_UNREACHABLE);
    assert_true(layout_is_settled(&s->smap));
    set("t4", NODE_MAINTENANCE);
    assert_asks(name, owner(name), false, "t4 ");
    apply((struct command){.kind = CMD_NODE_REMOVE, .name = "t4"});
    assert_asks(name, owner(name), false, "");
    assert_false(layout_is_settled(&s->smap)); /* until the rebalance has been through */
}

static void another_weight_moves_objects(void **unused)
{
    (void)unused;
    uint64_t placed = s->smap.placed;
    join("t3", 1024);
    assert_int_equal(s->smap.placed, placed);
    join("t3", 2048);
    assert_int_equal(s->smap.placed, s->smap.version);
    assert_int_equal(s->smap.earlier[0].members[2].weight, 1024);
}

static void what_is_remembered_is_bounded(void **unused)
{
    (void)unused;
    for (unsigned i = 0; i < LAYOUTS_MAX; i++)
        join("t3", 2000 + i);
    const struct node n = {.id = "t9",
                           .role = NODE_TARGET,
                           .public_url = "http://h:1",
                           .control_url = "http://h:2",
                           .data_url = "http://h:3",
                           .weight = 1024,
                           .boot = "b"};
    const struct command cmd = {.kind = CMD_NODE_JOIN, .node = &n, .fresh = true};
    const struct cluster_state *next;
    struct error err = ERROR_INIT;
    assert_int_equal(command_apply(s, &cmd, &next, &err), E_OVERLOAD);
    assert_non_null(strstr(err.message, "rebalance"));
    done();
    join("t9", 1024);
}

static void documents_that_are_none_are_refused(void **unused)
{
    (void)unused;
    static const char *const bad[] = {
        "{\"placed\": -1}",
        "{\"placed\": 1, \"earlier\": {}}",
        "{\"placed\": 1, \"earlier\": [{\"number\": 1}]}",
        "{\"placed\": 1, \"earlier\": [{\"number\": 1, \"targets\": [{\"id\": \"a/b\", "
        "\"weight\": 1}]}]}",
        "{\"placed\": 1, \"earlier\": [{\"number\": 1, \"targets\": [{\"id\": \"t1\", "
        "\"weight\": 4294967296}]}]}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        _cleanup_json_ json_t *doc = json_loads(bad[i], 0, NULL);
        _cleanup_json_ json_t *whole = state_to_json(s);
        json_object_update(json_object_get(whole, "smap"), doc);
        struct cluster_state *out;
        struct error err = ERROR_INIT;
        assert_int_not_equal(state_from_json(whole, &out, &err), 0);
        assert_int_not_equal(err.code, 0);
    }
}

#define layout_test(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

/* A thousand names do not travel with each change of a node while objects move. */
static void the_same_sets_are_not_sent_again(void **unused)
{
    (void)unused;
    join("t4", 1024);
    _cleanup_state_ const struct cluster_state *before = state_ref(s);
    set("t4", NODE_UNREACHABLE);
    assert_int_equal(s->smap.earlier_count, 1);
    _cleanup_json_ json_t *delta = layout_delta(&before->smap, &s->smap);
    assert_string_equal(json_string_value(json_object_get(delta, "earlier")), "same");
    struct smap got;
    smap_settled(&s->smap, &got);
    layout_copy(&before->smap, &got);
    assert_int_equal(layout_patch(delta, &got, NULL), 0);
    _cleanup_json_ json_t *want = layout_to_json(&s->smap);
    _cleanup_json_ json_t *have = layout_to_json(&got);
    assert_true(json_equal(want, have));
    document_unref(got.memory);
    join("t5", 1024);
    _cleanup_json_ json_t *other = layout_delta(&before->smap, &s->smap);
    assert_true(json_is_array(json_object_get(other, "earlier")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        layout_test(nobody_is_asked_where_nothing_moves),
        layout_test(a_new_owner_asks_the_old_one),
        layout_test(who_gets_a_name_back_does_not_trust_what_it_has),
        layout_test(nor_after_the_next_change),
        layout_test(who_is_gone_is_not_asked),
        layout_test(another_weight_moves_objects),
        layout_test(what_is_remembered_is_bounded),
        layout_test(the_same_sets_are_not_sent_again),
        layout_test(documents_that_are_none_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "proxy/metastore/writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "common/mem.h"

/* A world in which a write ends when the test says so. */
struct world {
    struct writer *writer;
    const struct cluster_state *state;
    const struct cluster_state *written; /* the last `to` */
    bool had_from;
    unsigned writes, published;
    bool is_primary, refuses_write, waits_to_settle;
    enum settle_scope scope;
    void (*settled)(void *arg);
    void *settled_arg;
};

static const struct cluster_state *world_state(void *ctx)
{
    const struct world *w = ctx;
    return state_ref(w->state);
}

static int world_check(void *ctx, const struct command *cmd, bool begins, struct error *err)
{
    (void)cmd;
    const struct world *w = ctx;
    return w->is_primary || begins ? 0 : error_set(err, E_NOT_PRIMARY, "no");
}

static int world_write(void *ctx, const struct cluster_state *from, const struct cluster_state *to,
                       struct error *err)
{
    struct world *w = ctx;
    if (w->refuses_write)
        return error_set(err, E_OVERLOAD, "no");
    w->writes++;
    w->had_from = from != NULL;
    w->written = to;
    return 0;
}

static void world_publish(void *ctx, const struct cluster_state *s)
{
    struct world *w = ctx;
    state_unref(w->state);
    w->state = state_ref(s);
    w->published++;
}

static void world_settle(void *ctx, enum settle_scope scope, void (*fn)(void *arg), void *arg)
{
    struct world *w = ctx;
    w->scope = scope;
    if (!w->waits_to_settle) {
        fn(arg);
        return;
    }
    w->settled = fn;
    w->settled_arg = arg;
}

static void world_init(struct world *w)
{
    const struct writer_env env = {.ctx = w,
                                   .state = world_state,
                                   .check = world_check,
                                   .write = world_write,
                                   .publish = world_publish,
                                   .settle = world_settle};
    *w = (struct world){.state = state_new("c"), .is_primary = true, .writer = writer_new(&env)};
}

static void world_done(struct world *w)
{
    assert_true(writer_is_idle(w->writer));
    writer_free(w->writer);
    state_unref(w->state);
}

/* How a change ended: 1 while it has not. */
static void note_end(void *arg, const struct error *err)
{
    *(int *)arg = err != NULL ? err->code : 0;
}

static struct change *new_bucket(const char *name, int *end)
{
    const struct bucket_props props = BUCKET_PROPS_DEFAULT;
    const struct command cmd = {.kind = CMD_BUCKET_CREATE, .name = name, .props = &props};
    *end = 1;
    return change_new(&cmd, note_end, end);
}

static void changes_are_made_one_at_a_time_and_told_when_durable(void **unused)
{
    (void)unused;
    struct world w;
    world_init(&w);
    int a, b;
    writer_put(w.writer, new_bucket("a", &a));
    writer_put(w.writer, new_bucket("b", &b));
    assert_int_equal(w.writes, 1);
    assert_int_equal(w.state->version, 0);
    assert_int_equal(a, 1);
    writer_written(w.writer, NULL);
    assert_int_equal(a, 0);
    assert_int_equal(b, 1);
    assert_int_equal(w.state->version, 1);
    assert_int_equal(w.writes, 2);
    assert_true(w.had_from);
    writer_written(w.writer, NULL);
    assert_int_equal(b, 0);
    assert_non_null(bmd_bucket(&w.state->bmd, "a"));
    assert_non_null(bmd_bucket(&w.state->bmd, "b"));
    world_done(&w);
}

static void what_is_not_durable_is_not_in_force(void **unused)
{
    (void)unused;
    struct world w;
    world_init(&w);
    int a, b;
    struct error err;
    writer_put(w.writer, new_bucket("a", &a));
    writer_put(w.writer, new_bucket("b", &b));
    error_set(&err, E_IN_DOUBT, "who knows");
    writer_written(w.writer, &err);
    assert_int_equal(a, E_IN_DOUBT);
    writer_written(w.writer, NULL);
    assert_int_equal(b, 0);
    assert_null(bmd_bucket(&w.state->bmd, "a"));
    assert_int_equal(w.published, 1);
    w.refuses_write = true;
    writer_put(w.writer, new_bucket("c", &a));
    assert_int_equal(a, E_OVERLOAD);
    world_done(&w);
}

static void what_changes_nothing_is_done_at_once(void **unused)
{
    (void)unused;
    struct world w;
    world_init(&w);
    const struct command same = {.kind = CMD_CONFIG_SET, .name = "nodes_max"};
    int end = 1;
    writer_put(w.writer, change_new(&same, note_end, &end));
    assert_int_equal(end, 0);
    assert_int_equal(w.writes, 0);
    writer_put(w.writer, new_bucket("-no", &end));
    assert_int_equal(end, E_NAME);
    world_done(&w);
}

static void only_the_change_that_begins_a_term_is_made_by_another(void **unused)
{
    (void)unused;
    struct world w;
    world_init(&w);
    w.is_primary = false;
    int end;
    writer_put(w.writer, new_bucket("a", &end));
    assert_int_equal(end, E_NOT_PRIMARY);
    const struct node self = {.id = "p1",
                              .role = NODE_PROXY,
                              .public_url = "http://h:1",
                              .control_url = "http://h:2",
                              .data_url = "",
                              .boot = "b"};
    const struct command cmd = {.kind = CMD_TERM_BEGIN, .node = &self, .term = 7};
    struct cluster_state *base = state_new("other");
    struct change *begins = change_new(&cmd, note_end, &end);
    change_begins(begins, base, true);
    state_unref(base);
    end = 1;
    writer_put(w.writer, begins);
    assert_false(w.had_from); /* the metastore has nothing */
    assert_string_equal(w.written->cluster_id, "other");
    writer_written(w.writer, NULL);
    assert_int_equal(end, 0);
    assert_int_equal(w.state->term, 7);
    world_done(&w);
}

/* The queue goes on meanwhile. */
static void a_change_that_settles_is_told_when_it_is(void **unused)
{
    (void)unused;
    struct world w;
    world_init(&w);
    w.waits_to_settle = true;
    int a, b;
    struct change *c = new_bucket("a", &a);
    change_settles(c);
    writer_put(w.writer, c);
    writer_put(w.writer, new_bucket("b", &b));
    writer_written(w.writer, NULL);
    assert_int_equal(a, 1);
    writer_written(w.writer, NULL);
    assert_int_equal(b, 0);
    assert_int_equal(a, 1);
    assert_int_equal(w.scope, SETTLE_NODES); /* of a bucket */
    w.settled(w.settled_arg);
    assert_int_equal(a, 0);
    world_done(&w);
}

static void a_barrier_waits_for_what_was_put_before_it(void **unused)
{
    (void)unused;
    struct world w;
    world_init(&w);
    int a, end = 1;
    writer_put(w.writer, new_bucket("a", &a));
    writer_put(w.writer, change_new(NULL, note_end, &end));
    assert_int_equal(end, 1);
    w.is_primary = false;
    writer_written(w.writer, NULL);
    assert_int_equal(a, 0);
    assert_int_equal(end, 0);
    world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_are_made_one_at_a_time_and_told_when_durable),
        cmocka_unit_test(what_is_not_durable_is_not_in_force),
        cmocka_unit_test(what_changes_nothing_is_done_at_once),
        cmocka_unit_test(only_the_change_that_begins_a_term_is_made_by_another),
        cmocka_unit_test(a_change_that_settles_is_told_when_it_is),
        cmocka_unit_test(a_barrier_waits_for_what_was_put_before_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

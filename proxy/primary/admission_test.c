#include "proxy/primary/admission.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

enum { TIMEOUT = 5000, NOW = 100000 };

struct world {
    const struct cluster_state *s;
    struct membership *m;
};

static struct node target(const char *id, const char *boot)
{
    return (struct node){.id = id,
                         .role = NODE_TARGET,
                         .public_url = "http://h:1",
                         .control_url = "http://h:2",
                         .data_url = "http://h:3",
                         .weight = 1024,
                         .boot = boot};
}

/* State 9.3 of a term that began with version 2, and t1 in it. */
static struct world world_new(void)
{
    static const struct membership_rules rules = {.self = "p1", .timeout_ms = TIMEOUT};
    const struct node n = target("t1", "a");
    const struct command join = {.kind = CMD_NODE_JOIN, .node = &n, .fresh = true};
    struct cluster_state *base = state_new("c");
    base->term = 9;
    base->version = 2;
    base->term_version = 2;
    struct world w = {.m = membership_new(&rules, NOW)};
    assert_int_equal(command_apply(base, &join, &w.s, NULL), 0);
    state_unref(base);
    return w;
}

static void world_free(struct world *w)
{
    membership_free(w->m);
    state_unref(w->s);
}

static int asks(struct world *w, const struct node *n, const struct node_past *past,
                struct command *join)
{
    return admission_register(w->s, w->m, n, past, NOW + 10, 1, join, NULL);
}

static void a_registration_is_judged_by_what_the_node_has_seen(void **unused)
{
    (void)unused;
    static const struct {
        struct node_past past;
        int code;
        bool fresh;
    } rows[] = {
        {{.cluster = ""}, 0, true},
        {{.cluster = "", .lost = true}, 0, false},
        {{.cluster = "c", .term = 9, .version = 3}, 0, false},
        {{.cluster = "c", .term = 8, .version = 1}, 0, false},
        {{.cluster = "c", .term = 8, .version = 2}, E_STALE_MAP, false},
        {{.cluster = "c", .term = 9, .version = 4}, E_STALE_MAP, false},
        {{.cluster = "d", .term = 1, .version = 1}, E_WRONG_CLUSTER, false},
    };
    struct world w = world_new();
    struct node n = target("t2", "a");
    n.public_url = "http://other:1";
    n.control_url = "http://other:2";
    n.data_url = "http://other:3";
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct command join;
        assert_int_equal(asks(&w, &n, &rows[i].past, &join), rows[i].code);
        assert_int_equal(join.fresh, rows[i].fresh);
    }
    world_free(&w);
}

/* Else a node that is refused for good would be kept active by its asking. */
static void who_is_refused_does_not_count_as_heard(void **unused)
{
    (void)unused;
    struct world w = world_new();
    const struct node proxy = {.id = "t1",
                               .role = NODE_PROXY,
                               .control_url = "http://h:2",
                               .public_url = "http://h:1",
                               .data_url = "",
                               .boot = "a"};
    const struct node_past none = {.cluster = ""};
    struct command join;
    struct verdict v[1];
    assert_int_equal(admission_register(w.s, w.m, &proxy, &none, NOW + TIMEOUT, 1, &join, NULL),
                     E_EXISTS);
    assert_int_equal(membership_tick(w.m, &w.s->smap, NOW + 10, v), 0);
    for (uint64_t t = NOW + 10; t < NOW + TIMEOUT; t += 250)
        assert_int_equal(membership_tick(w.m, &w.s->smap, t, v), 0);
    assert_int_equal(membership_tick(w.m, &w.s->smap, NOW + TIMEOUT + 200, v), 1);
    world_free(&w);
}

static void a_keepalive_from_the_future_is_refused_once_the_node_is_known(void **unused)
{
    (void)unused;
    struct world w = world_new();
    struct keepalive k = {.id = "t1", .boot = "a", .term = 9, .version = 3};
    assert_int_equal(admission_keepalive(w.s, w.m, &k, NOW, NULL), 0);
    k.version = 4;
    assert_int_equal(admission_keepalive(w.s, w.m, &k, NOW, NULL), E_STALE_MAP);
    k.boot = "b";
    assert_int_equal(admission_keepalive(w.s, w.m, &k, NOW, NULL), E_NODE_NOT_FOUND);
    world_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_registration_is_judged_by_what_the_node_has_seen),
        cmocka_unit_test(who_is_refused_does_not_count_as_heard),
        cmocka_unit_test(a_keepalive_from_the_future_is_refused_once_the_node_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "cluster/documents/state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "cluster/command/command.h"
#include "common/jsonx.h"

static const struct cluster_state *with_targets(unsigned count)
{
    const struct cluster_state *s = state_new("c");
    for (unsigned i = 0; i < count; i++) {
        char id[16];
        snprintf(id, sizeof id, "t%u", i);
        const struct node n = {
            .id = id,
            .role = NODE_TARGET,
            .public_url = "http://h:1",
            .control_url = "http://h:2",
            .data_url = "http://h:3",
            .weight = 1024,
            .boot = "b",
        };
        const struct command join = {.kind = CMD_NODE_JOIN, .node = &n};
        const struct cluster_state *next;
        assert_int_equal(command_apply(s, &join, &next, NULL), 0);
        state_unref(s);
        s = next;
    }
    return s;
}

static void set_state(const struct cluster_state **s, const char *id, enum node_state state)
{
    const struct command cmd = {.kind = CMD_NODE_STATE, .name = id, .node_state = state};
    const struct cluster_state *next;
    assert_int_equal(command_apply(*s, &cmd, &next, NULL), 0);
    state_unref(*s);
    *s = next;
}

static void nodes_are_found_and_counted(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = with_targets(12);
    for (size_t i = 1; i < s->smap.count; i++)
        assert_true(strcmp(s->smap.nodes[i - 1].id, s->smap.nodes[i].id) < 0);
    assert_string_equal(smap_node(&s->smap, "t11")->id, "t11");
    assert_null(smap_node(&s->smap, "t12"));
    assert_null(smap_node(&s->smap, ""));
    set_state(&s, "t3", NODE_UNREACHABLE);
    assert_int_equal(smap_count(&s->smap, NODE_TARGET, NODE_ACTIVE), 11);
    assert_int_equal(smap_count(&s->smap, NODE_TARGET, NODE_UNREACHABLE), 1);
    assert_int_equal(smap_count(&s->smap, NODE_PROXY, NODE_ACTIVE), 0);
}

static void an_unreachable_owner_stays_the_owner(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = with_targets(5);
    const struct node *owner[5];
    assert_int_equal(smap_owners(&s->smap, 1, "some/object", 5, owner), 5);
    char first[16], second[16];
    snprintf(first, sizeof first, "%s", owner[0]->id);
    snprintf(second, sizeof second, "%s", owner[1]->id);
    assert_string_not_equal(first, second);
    set_state(&s, first, NODE_UNREACHABLE);
    assert_int_equal(smap_owners(&s->smap, 1, "some/object", 1, owner), 1);
    assert_string_equal(owner[0]->id, first);
    set_state(&s, first, NODE_MAINTENANCE);
    assert_int_equal(smap_owners(&s->smap, 1, "some/object", 5, owner), 4);
    assert_string_equal(owner[0]->id, second);
}

static void nobody_owns_without_targets(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *none = state_new("c");
    const struct node *owner;
    assert_int_equal(smap_owners(&none->smap, 1, "x", 1, &owner), 0);
}

static void a_large_map_owns_as_a_small_one(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = with_targets(100);
    unsigned owned[100] = {0};
    for (unsigned i = 0; i < 20000; i++) {
        char name[16];
        const struct node *owner;
        snprintf(name, sizeof name, "o%u", i);
        assert_int_equal(smap_owners(&s->smap, 7, name, 1, &owner), 1);
        owned[owner - s->smap.nodes]++;
    }
    for (size_t i = 0; i < 100; i++)
        assert_in_range(owned[i], 100, 320); /* 200 expected, seven deviations wide */
}

static void a_node_is_read_strictly(void **unused)
{
    (void)unused;
#define REST                                                                            \
    ", \"public_url\": \"http://h:1\", \"control_url\": \"http://h:2\", \"data_url\": " \
    "\"http://h:3\"}"
    static const struct {
        const char *text;
        int code;
        const char *words;
    } rows[] = {
        {"{\"role\": \"target\", \"boot\": \"b\"" REST, E_JSON, "'id'"},
        {"{\"id\": \"t1\", \"boot\": \"b\"" REST, E_JSON, "'role'"},
        {"{\"id\": \"t1\", \"role\": \"target\"" REST, E_JSON, "'boot'"},
        {"{\"id\": \"t 1\", \"role\": \"target\", \"boot\": \"b\"" REST, E_INVALID, "'t 1'"},
        {"{\"id\": \"t1\", \"role\": \"king\", \"boot\": \"b\"" REST, E_INVALID, "'king'"},
        {"{\"id\": \"t1\", \"role\": \"target\", \"boot\": \"\"" REST, E_INVALID, "'boot'"},
        {"{\"id\": \"t1\", \"role\": \"target\", \"boot\": \"b\", \"state\": \"odd\"" REST,
         E_INVALID, "'odd'"},
        {"{\"id\": \"t1\", \"role\": \"target\", \"boot\": \"b\", \"weight\": 5000000000" REST,
         E_INVALID, "'weight'"},
        {"{\"id\": \"t1\", \"role\": \"target\", \"boot\": \"b\", \"weight\": -1" REST, E_JSON,
         "'weight'"},
        {"{\"id\": \"t1\", \"role\": \"target\", \"boot\": \"b\"}", E_JSON, "'public_url'"},
        {"{\"id\": \"t1\", \"role\": \"target\", \"boot\": \"b\", \"public_url\": \"h:1\"}",
         E_INVALID, "'public_url'"},
        {"{\"id\": \"t1\", \"role\": \"target\", \"boot\": \"b\", \"public_url\": \"http://h/\"}",
         E_INVALID, "'public_url'"},
        {"{\"id\": \"t1\", \"role\": \"target\", \"boot\": \"b\", \"public_url\": \"http://h\", "
         "\"control_url\": \"http://a b\"}",
         E_INVALID, "'control_url'"},
        {"{\"id\": \"t1\", \"role\": \"target\", \"boot\": \"b\", \"public_url\": \"http://h\", "
         "\"control_url\": \"http://h\"}",
         E_JSON, "'data_url'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        _cleanup_json_ json_t *doc = NULL;
        struct error err = ERROR_INIT;
        struct node n;
        struct arena *a = arena_new(256);
        assert_int_equal(json_parse(rows[i].text, strlen(rows[i].text), &doc, NULL), 0);
        if (node_from_json(doc, "", a, &n, &err) != rows[i].code ||
            strstr(err.message, rows[i].words) == NULL)
            fail_msg("row %zu: %s '%s'", i, error_name(err.code), err.message);
        arena_free(a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_are_found_and_counted),
        cmocka_unit_test(an_unreachable_owner_stays_the_owner),
        cmocka_unit_test(nobody_owns_without_targets),
        cmocka_unit_test(a_large_map_owns_as_a_small_one),
        cmocka_unit_test(a_node_is_read_strictly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "cluster/testing/test_state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

void test_state_apply(const struct cluster_state **s, const struct command *cmd)
{
    const struct cluster_state *next;
    struct error err = ERROR_INIT;
    if (command_apply(*s, cmd, &next, &err) != 0)
        fail_msg("%s", err.message);
    state_unref(*s);
    *s = next;
}

void test_state_join(const struct cluster_state **s, const char *id, const char *boot, bool lost)
{
    const struct node n = {.id = id,
                           .role = NODE_TARGET,
                           .public_url = "http://h:1",
                           .control_url = "http://h:2",
                           .data_url = "http://h:3",
                           .weight = 1024,
                           .boot = boot};
    bool known = smap_node(&(*s)->smap, id) != NULL;
    test_state_apply(
        s, &(struct command){.kind = CMD_NODE_JOIN, .node = &n, .fresh = !known, .lost = lost});
}

/* A small cluster, and commands that must succeed, or must be refused: for tests of commands. */
#pragma once

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "cluster/command/command.h"
#include "common/jsonx.h"
#include "common/mem.h"

/* Applies a command that must succeed; `*s` becomes its result. */
static inline void apply(const struct cluster_state **s, struct command cmd)
{
    const struct cluster_state *next;
    struct error err = ERROR_INIT;
    if (command_apply(*s, &cmd, &next, &err) != 0)
        fail_msg("%s", err.message);
    state_unref(*s);
    *s = next;
}

static inline void assert_refused(const struct cluster_state *s, struct command cmd, int code)
{
    const struct cluster_state *next = NULL;
    struct error err = ERROR_INIT;
    assert_int_equal(command_apply(s, &cmd, &next, &err), code);
    assert_int_equal(err.code, code);
    assert_true(err.message[0] != '\0');
    assert_null(next);
}

static inline void assert_unchanged(const struct cluster_state *s, struct command cmd)
{
    const struct cluster_state *next = NULL;
    assert_int_equal(command_apply(s, &cmd, &next, NULL), 0);
    assert_ptr_equal(next, s);
    state_unref(next);
}

static const struct node t1 = {
    .id = "t1",
    .role = NODE_TARGET,
    .public_url = "http://h:1",
    .control_url = "http://h:2",
    .data_url = "http://h:3",
    .weight = 1024,
    .boot = "b1",
};
static const struct node p1 = {
    .id = "p1",
    .role = NODE_PROXY,
    .public_url = "http://h:4",
    .control_url = "http://h:5",
    .data_url = "",
    .boot = "b1",
};

static inline const struct cluster_state *cluster(void)
{
    const struct cluster_state *s = state_new("c-test");
    apply(&s, (struct command){.kind = CMD_TERM_BEGIN, .node = &p1, .term = 1, .wall_ms = 100});
    apply(&s, (struct command){.kind = CMD_NODE_JOIN, .node = &t1, .wall_ms = 200});
    return s;
}

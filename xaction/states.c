#include "xaction/states.h"

#include <assert.h>
#include <string.h>

static const char *const state_names[] = {
    [XACTION_NONE] = "none",           [XACTION_PREPARING] = "preparing",
    [XACTION_READY] = "ready",         [XACTION_RUNNING] = "running",
    [XACTION_PREPARED] = "prepared",   [XACTION_COMMITTING] = "committing",
    [XACTION_COMMITTED] = "committed", [XACTION_FAILED] = "failed",
    [XACTION_STOPPING] = "stopping",   [XACTION_STOPPED] = "stopped",
};
#define STATE_COUNT (sizeof state_names / sizeof *state_names)

static const char *const order_names[] = {
    [XACTION_PREPARE] = "prepare",
    [XACTION_RUN] = "run",
    [XACTION_COMMIT] = "commit",
    [XACTION_STOP] = "stop",
};
#define ORDER_COUNT (sizeof order_names / sizeof *order_names)

const char *xaction_state_name(enum xaction_state state)
{
    assert((size_t)state < STATE_COUNT);
    return state_names[state];
}

int xaction_state_from_name(const char *name, enum xaction_state *state)
{
    for (size_t i = 0; i < STATE_COUNT; i++) {
        if (strcmp(state_names[i], name) == 0) {
            *state = (enum xaction_state)i;
            return 0;
        }
    }
    return E_INVALID;
}

const char *xaction_order_name(enum xaction_order order)
{
    assert((size_t)order < ORDER_COUNT);
    return order_names[order];
}

int xaction_order_from_name(const char *name, enum xaction_order *order, struct error *err)
{
    for (size_t i = 0; i < ORDER_COUNT; i++) {
        if (strcmp(order_names[i], name) == 0) {
            *order = (enum xaction_order)i;
            return 0;
        }
    }
    return error_set(err, E_INVALID, "action '%s' is none of prepare, run, commit, stop", name);
}

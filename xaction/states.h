/* The states of a job on a target, and the orders that move it.
 *
 *          prepare             run                     commit
 *   (none) ───────▶ preparing ▶ ready ▶ running ▶ prepared ───────▶ committing ▶ committed
 *                       │         │        │          │
 *                       ▼         │        ▼          │
 *                     failed      │      failed       │
 *                       └─────────┴────┬───┴──────────┘
 *                                      ▼ stop
 *                                  stopping ▶ stopped */
#pragma once

#include "common/error.h"

enum xaction_state {
    XACTION_NONE, /* this node knows nothing of the job */
    XACTION_PREPARING,
    XACTION_READY,
    XACTION_RUNNING,
    XACTION_PREPARED,
    XACTION_COMMITTING,
    XACTION_COMMITTED,
    XACTION_FAILED,
    XACTION_STOPPING,
    XACTION_STOPPED,
};

enum xaction_order { XACTION_PREPARE, XACTION_RUN, XACTION_COMMIT, XACTION_STOP };

/* A name that is none: E_INVALID. */
int xaction_order_from_name(const char *name, enum xaction_order *order, struct error *err);
const char *xaction_order_name(enum xaction_order order);
const char *xaction_state_name(enum xaction_state state);
int xaction_state_from_name(const char *name, enum xaction_state *state);

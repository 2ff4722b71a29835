/* May a process that has died be started again?  A bound on how often within a minute: pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define RESTARTS_WINDOW_MS 60000
#define RESTARTS_MAX 1000

struct restarts {
    uint64_t limit; /* within the window; up to RESTARTS_MAX */
    uint64_t count; /* of all */
    uint64_t at_ms[RESTARTS_MAX];
};

void restarts_init(struct restarts *r, uint64_t limit);
/* It has died now.  False: it has died more than `limit` times within the window. */
bool restarts_allow(struct restarts *r, uint64_t now_ms);

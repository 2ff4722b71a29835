/* Does a disk of the cache work?  Pure.
 *
 *     good --3 errors in a minute--> sick --a minute without error--> good
 *                                     |
 *                                     +--30 minutes--> out, until the next start
 *
 * A sick disk gets an operation each half second, which tries it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define HEALTH_ERRORS 3
#define HEALTH_CLEAN_MS 60000
#define HEALTH_TRY_MS 500
#define HEALTH_OUT_MS 1800000

enum health_state { HEALTH_GOOD, HEALTH_SICK, HEALTH_OUT };

struct health {
    enum health_state state;
    unsigned errors; /* good: in this minute */
    uint64_t error_ms;
    uint64_t sick_ms;
    uint64_t tried_ms;
};

/* May an operation run now?  True of a sick disk: it is the one that tries it. */
bool health_may(struct health *h, uint64_t now_ms);
/* An operation has ended.  True: the state is another one now. */
bool health_note(struct health *h, bool failed, uint64_t now_ms);
/* Is this -errno of a read one of the disk, about what was read?  Others are of the process or the
 * machine, and the next read may be well. */
bool health_is_of_disk(int rc);
const char *health_name(enum health_state state);

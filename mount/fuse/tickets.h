/* Tickets: who has one has had its directory open.
 *
 * A call on two places has one open file, and names the other place.  A number would name every
 * directory of the volume, also those that the caller has no path to, as in a container that sees a
 * part of the mount.  So the caller asks for a ticket by the open directory, and gives it.
 *
 * Pure, but for the randomness of the key.  Only the process that made a ticket knows it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { TICKET_KEY_BYTES = 32, TICKET_MAC_BYTES = 32, TICKET_MS = 60000 };

struct tickets {
    unsigned char key[TICKET_KEY_BYTES];
};

struct ticket {
    uint64_t directory;
    uint64_t until_ms;
    unsigned char mac[TICKET_MAC_BYTES];
};

void tickets_init(struct tickets *t);
struct ticket tickets_make(const struct tickets *t, uint64_t directory, uint64_t now_ms);
/* False: it is over, was changed, or is of another process. */
bool tickets_know(const struct tickets *t, const struct ticket *ticket, uint64_t now_ms);

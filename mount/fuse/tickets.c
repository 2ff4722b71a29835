#include "mount/fuse/tickets.h"

#include <endian.h>
#include <string.h>

#include "common/auth/mac.h"
#include "common/rng.h"

void tickets_init(struct tickets *t)
{
    random_bytes(t->key, sizeof t->key);
}

static void sign(const struct tickets *t, struct ticket *ticket)
{
    const uint64_t text[2] = {htole64(ticket->directory), htole64(ticket->until_ms)};
    _Static_assert((int)TICKET_MAC_BYTES == (int)AUTH_MAC_BYTES, "a MAC is the whole of it");
    auth_hmac(t->key, sizeof t->key, text, sizeof text, ticket->mac);
}

struct ticket tickets_make(const struct tickets *t, uint64_t directory, uint64_t now_ms)
{
    struct ticket ticket = {.directory = directory, .until_ms = now_ms + TICKET_MS};
    sign(t, &ticket);
    return ticket;
}

bool tickets_know(const struct tickets *t, const struct ticket *ticket, uint64_t now_ms)
{
    struct ticket right = {.directory = ticket->directory, .until_ms = ticket->until_ms};
    unsigned char differs = 0;
    sign(t, &right);
    for (unsigned i = 0; i < sizeof right.mac; i++) /* in the same time, wherever they differ */
        differs |= (unsigned char)(right.mac[i] ^ ticket->mac[i]);
    return differs == 0 && now_ms < ticket->until_ms;
}

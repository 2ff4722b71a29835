#include "access/nonces.h"

#include <stdlib.h>
#include <string.h>

#include "common/auth_mac.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/rng.h"

enum { SLOTS = 2 * NONCES_MAX, NAME = 16 };

/* Open addressing; all zero is free. */
struct table {
    size_t count;
    unsigned char (*names)[NAME];
};

struct nonces {
    uint64_t span_ms; /* of a table */
    uint64_t since_ms;
    unsigned char secret[AUTH_MAC_BYTES]; /* so that nobody can choose names of one slot */
    struct table now, before;
};

static void table_new(struct table *t)
{
    *t = (struct table){.names = xcalloc(SLOTS, NAME)};
}

struct nonces *nonces_new(uint64_t window_ms)
{
    struct nonces *n = xcalloc(1, sizeof *n);
    n->span_ms = 2 * window_ms;
    random_bytes(n->secret, sizeof n->secret);
    table_new(&n->now);
    table_new(&n->before);
    return n;
}

void nonces_free(struct nonces *n)
{
    if (n == NULL)
        return;
    free(n->now.names);
    free(n->before.names);
    free(n);
}

static size_t slot_of(const struct table *t, const unsigned char name[NAME])
{
    static const unsigned char none[NAME];
    uint32_t at;
    memcpy(&at, name, sizeof at);
    for (at %= SLOTS; memcmp(t->names[at], none, NAME) != 0; at = (at + 1) % SLOTS) {
        if (memcmp(t->names[at], name, NAME) == 0)
            break;
    }
    return at;
}

static bool table_has(const struct table *t, const unsigned char name[NAME])
{
    return memcmp(t->names[slot_of(t, name)], name, NAME) == 0;
}

static void turn(struct nonces *n, uint64_t now_ms)
{
    if (now_ms < n->since_ms + n->span_ms)
        return;
    struct table old = n->before;
    n->before = n->now;
    n->now = old;
    memset(n->now.names, 0, SLOTS * NAME);
    n->now.count = 0;
    if (now_ms >= n->since_ms + 2 * n->span_ms) { /* nobody came for longer than a table lasts */
        memset(n->before.names, 0, SLOTS * NAME);
        n->before.count = 0;
    }
    n->since_ms = now_ms;
}

enum nonce_verdict nonces_take(struct nonces *n, const char *access, const char *nonce,
                               uint64_t now_ms)
{
    unsigned char name[AUTH_MAC_BYTES];
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    buf_printf(&text, "%s\n%s", access, nonce);
    auth_hmac(n->secret, sizeof n->secret, text.data, text.len, name);
    turn(n, now_ms);
    if (table_has(&n->now, name) || table_has(&n->before, name))
        return NONCE_USED;
    if (n->now.count == NONCES_MAX)
        return NONCE_FULL;
    memcpy(n->now.names[slot_of(&n->now, name)], name, NAME);
    n->now.count++;
    return NONCE_TAKEN;
}

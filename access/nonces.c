#include "access/nonces.h"

#include <stdlib.h>
#include <string.h>

#include "common/auth/mac.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/rng.h"

enum { NAME = 16, ROOM_MIN = 256 };

/* A nonce, or an access key and how many nonces of it are in the table. */
struct entry {
    unsigned char name[NAME]; /* all zero: the place is free */
    uint32_t count;
};

/* Open addressing, at most half full. */
struct table {
    uint32_t count, room;
    struct entry *entries;
};

struct nonces {
    uint64_t span_ms; /* of a table */
    uint64_t since_ms;
    unsigned char secret[AUTH_MAC_BYTES]; /* so that nobody can choose names of one place */
    struct table now, before;
};

static void table_open(struct table *t, uint32_t room)
{
    *t = (struct table){.room = room, .entries = xcalloc(room, sizeof(struct entry))};
}

static void table_empty(struct table *t)
{
    free(t->entries);
    table_open(t, ROOM_MIN);
}

struct nonces *nonces_new(uint64_t window_ms)
{
    struct nonces *n = xcalloc(1, sizeof *n);
    n->span_ms = 2 * window_ms;
    random_bytes(n->secret, sizeof n->secret);
    table_open(&n->now, ROOM_MIN);
    table_open(&n->before, ROOM_MIN);
    return n;
}

void nonces_free(struct nonces *n)
{
    if (n == NULL)
        return;
    free(n->now.entries);
    free(n->before.entries);
    free(n);
}

static bool is_free(const struct entry *e)
{
    static const unsigned char none[NAME];
    return memcmp(e->name, none, NAME) == 0;
}

/* Its entry, or the free one where it would be. */
static struct entry *table_at(const struct table *t, const unsigned char name[NAME])
{
    uint32_t at;
    memcpy(&at, name, sizeof at);
    for (at %= t->room; !is_free(&t->entries[at]); at = (at + 1) % t->room) {
        if (memcmp(t->entries[at].name, name, NAME) == 0)
            break;
    }
    return &t->entries[at];
}

static bool table_has(const struct table *t, const unsigned char name[NAME])
{
    return !is_free(table_at(t, name));
}

static void table_grow(struct table *t)
{
    struct table larger;
    table_open(&larger, 2 * t->room);
    for (uint32_t i = 0; i < t->room; i++) {
        if (!is_free(&t->entries[i]))
            *table_at(&larger, t->entries[i].name) = t->entries[i];
    }
    larger.count = t->count;
    free(t->entries);
    *t = larger;
}

static struct entry *table_add(struct table *t, const unsigned char name[NAME])
{
    if (table_has(t, name))
        return table_at(t, name);
    if (2 * (t->count + 1) > t->room)
        table_grow(t);
    struct entry *e = table_at(t, name);
    memcpy(e->name, name, NAME);
    t->count++;
    return e;
}

static void turn(struct nonces *n, uint64_t now_ms)
{
    if (now_ms < n->since_ms + n->span_ms)
        return;
    struct table old = n->before;
    n->before = n->now;
    n->now = old;
    table_empty(&n->now);
    if (now_ms >= n->since_ms + 2 * n->span_ms) /* nobody came for longer than a table lasts */
        table_empty(&n->before);
    n->since_ms = now_ms;
}

/* An access key's own name is that of the empty nonce, which no login has. */
static void name_of(const struct nonces *n, const char *access, const char *nonce,
                    unsigned char name[AUTH_MAC_BYTES])
{
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    buf_printf(&text, "%s\n%s", access, nonce);
    auth_hmac(n->secret, sizeof n->secret, text.data, text.len, name);
}

enum nonce_verdict nonces_take(struct nonces *n, const char *access, const char *nonce,
                               uint64_t now_ms)
{
    unsigned char name[AUTH_MAC_BYTES], key[AUTH_MAC_BYTES];
    name_of(n, access, nonce, name);
    name_of(n, access, "", key);
    turn(n, now_ms);
    if (table_has(&n->now, name) || table_has(&n->before, name))
        return NONCE_USED;
    struct entry *taken = table_add(&n->now, key);
    if (taken->count == NONCES_PER_KEY)
        return NONCE_FULL;
    taken->count++;
    table_add(&n->now, name);
    return NONCE_TAKEN;
}

#include "net/auth/sessions.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"

enum { CHAINS = 1024 };

/* From the oldest to the newest. */
struct row {
    struct auth_session *oldest, *newest;
    size_t count, max;
};

struct auth_sessions {
    struct row rows[AUTH_SESSION_ROOMS];
    struct auth_session *chains[CHAINS];
};

/* Ids are random. */
static struct auth_session **chain_of(struct auth_sessions *s, const char *id)
{
    unsigned hash = 0;
    for (; *id != '\0'; id++)
        hash = hash * 31 + (unsigned char)*id;
    return &s->chains[hash % CHAINS];
}

static void row_remove(struct row *row, struct auth_session *x)
{
    *(x->older != NULL ? &x->older->newer : &row->oldest) = x->newer;
    *(x->newer != NULL ? &x->newer->older : &row->newest) = x->older;
    row->count--;
}

static void row_append(struct row *row, struct auth_session *x)
{
    x->older = row->newest;
    x->newer = NULL;
    *(x->older != NULL ? &x->older->newer : &row->oldest) = x;
    row->newest = x;
    row->count++;
}

static void session_free(struct auth_session *x)
{
    OPENSSL_cleanse(x->key, sizeof x->key);
    free(x);
}

static void forget(struct auth_sessions *s, struct auth_session *x)
{
    struct auth_session **at = chain_of(s, x->id);
    while (*at != x)
        at = &(*at)->chain;
    *at = x->chain;
    row_remove(&s->rows[x->room], x);
    session_free(x);
}

static void make_room(struct auth_sessions *s, struct row *row)
{
    while (row->count >= row->max)
        forget(s, row->oldest);
}

struct auth_sessions *auth_sessions_new(size_t fresh_max, size_t proven_max)
{
    struct auth_sessions *s = xcalloc(1, sizeof *s);
    s->rows[ROOM_EARLIER].max = fresh_max;
    s->rows[ROOM_FRESH].max = fresh_max;
    s->rows[ROOM_PROVEN].max = proven_max;
    return s;
}

void auth_sessions_free(struct auth_sessions *s)
{
    if (s == NULL)
        return;
    for (size_t i = 0; i < AUTH_SESSION_ROOMS; i++) {
        while (s->rows[i].oldest != NULL)
            forget(s, s->rows[i].oldest);
    }
    free(s);
}

struct auth_session *auth_sessions_add(struct auth_sessions *s, enum auth_session_room room,
                                       const char *id)
{
    struct row *row = &s->rows[room];
    make_room(s, row);
    struct auth_session *x = xcalloc(1, sizeof *x);
    struct auth_session **chain = chain_of(s, id);
    snprintf(x->id, sizeof x->id, "%s", id);
    x->room = room;
    x->chain = *chain;
    *chain = x;
    row_append(row, x);
    return x;
}

struct auth_session *auth_sessions_find(struct auth_sessions *s, const char *id)
{
    struct auth_session *x = *chain_of(s, id);
    while (x != NULL && strcmp(x->id, id) != 0)
        x = x->chain;
    return x;
}

void auth_sessions_used(struct auth_sessions *s, struct auth_session *x)
{
    struct row *row = &s->rows[ROOM_PROVEN];
    row_remove(&s->rows[x->room], x);
    make_room(s, row);
    x->room = ROOM_PROVEN;
    row_append(row, x);
}

size_t auth_sessions_count(const struct auth_sessions *s)
{
    size_t count = 0;
    for (size_t i = 0; i < AUTH_SESSION_ROOMS; i++)
        count += s->rows[i].count;
    return count;
}

#include "net/http/room.h"

#include <netinet/in.h>

#include "common/clock.h"
#include "common/mem.h"
#include "net/http/conn.h"
#include "net/http/peers.h"
#include "net/http/server_internal.h"

struct newcomer {
    struct reactor_job job; /* the first: where it is now */
    struct http_server *server;
    int fd;
    struct sockaddr_storage peer;
    socklen_t peer_len;
    struct network most; /* who gives a place */
    size_t asked;        /* reactors */
    size_t best;         /* the reactor that has the most silent one … */
    uint64_t best_ms;    /* … which moved last at this time; UINT64_MAX: none yet */
};

/* --- at one reactor --------------------------------------------------------------------------- */

static struct conn *first_silent(struct conn *c, const struct network *of, uint64_t now_ms)
{
    for (; c != NULL && now_ms - c->moved_ms >= ROOM_SILENT_MS; c = c->live.next) {
        struct network its = network_of((const struct sockaddr *)&c->peer);
        if (network_same(&its, of) && conn_is_silent(c))
            return c;
    }
    return NULL;
}

/* Both lists begin with the one that has not moved for longest. */
static struct conn *most_silent(const struct reactor *r, const struct network *of)
{
    struct conn *fresh = first_silent(r->fresh.first, of, r->now_ms);
    struct conn *live = first_silent(r->live.first, of, r->now_ms);
    if (fresh == NULL || live == NULL)
        return fresh != NULL ? fresh : live;
    return fresh->moved_ms < live->moved_ms ? fresh : live;
}

/* --- from one to the next --------------------------------------------------------------------- */

static void newcomer_settled(struct newcomer *n)
{
    atomic_fetch_sub(&n->server->newcomers, 1);
    free(n);
}

static void newcomer_refuse(struct newcomer *n)
{
    struct http_server *s = n->server;
    atomic_store(&s->no_room_ms, clock_ms());
    server_connection_closed(s, (const struct sockaddr *)&n->peer);
    server_refuse_full(s, n->fd);
    newcomer_settled(n);
}

static void newcomer_replace(struct reactor *r, struct reactor_job *job)
{
    struct newcomer *n = (struct newcomer *)job;
    struct conn *silent = most_silent(r, &n->most);
    if (silent == NULL) {
        newcomer_refuse(n);
        return;
    }
    conn_free(silent);
    reactor_adopt(r, n->fd, (const struct sockaddr *)&n->peer, n->peer_len);
    newcomer_settled(n);
}

static void newcomer_look(struct reactor *r, struct reactor_job *job)
{
    struct newcomer *n = (struct newcomer *)job;
    const struct conn *silent = most_silent(r, &n->most);
    if (silent != NULL && silent->moved_ms < n->best_ms) {
        n->best = n->asked;
        n->best_ms = silent->moved_ms;
    }
    n->asked++;
    bool all = n->asked == n->server->reactor_count;
    if (all && n->best_ms == UINT64_MAX) {
        newcomer_refuse(n);
        return;
    }
    n->job.run = all ? newcomer_replace : newcomer_look;
    reactor_run(n->server->reactors[all ? n->best : n->asked], &n->job);
}

/* --- called ----------------------------------------------------------------------------------- */

bool room_may_be_made(struct http_server *s)
{
    unsigned long long none_ms = atomic_load(&s->no_room_ms);
    return s->net == NET_PUBLIC && s->reactor_count > 0 &&
           atomic_load(&s->newcomers) < ROOM_NEWCOMERS_MAX &&
           (none_ms == 0 || clock_ms() - none_ms >= ROOM_RETRY_MS);
}

void room_make(struct http_server *s, int fd, const struct sockaddr *peer, socklen_t peer_len)
{
    struct newcomer *n = xcalloc(1, sizeof *n);
    n->job.run = newcomer_look;
    n->server = s;
    n->fd = fd;
    memcpy(&n->peer, peer, peer_len < sizeof n->peer ? peer_len : sizeof n->peer);
    n->peer_len = peer_len;
    n->best_ms = UINT64_MAX;
    atomic_fetch_add(&s->newcomers, 1);
    (void)peers_most(s->peers, &n->most); /* there are connections: this one */
    reactor_run(s->reactors[0], &n->job);
}

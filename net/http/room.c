#include "net/http/room.h"

#include <netinet/in.h>

#include "common/clock.h"
#include "common/mem.h"
#include "net/http/conn.h"
#include "net/http/peers.h"
#include "net/http/reactor.h"
#include "net/http/reactor_lists.h"
#include "net/http/refuse.h"
#include "net/http/server_state.h"

/* A silent connection, as one that gives its place. */
struct place {
    unsigned connections; /* of its address; 0: no place */
    uint64_t moved_ms;
};

struct newcomer {
    struct reactor_job job; /* the first: where it is now */
    struct http_server *server;
    int fd;
    struct sockaddr_storage peer;
    socklen_t peer_len;
    size_t asked;            /* reactors */
    size_t best;             /* the reactor that has the best place … */
    struct place best_place; /* … and that place */
};

static bool place_before(struct place a, struct place b)
{
    return a.connections != b.connections ? a.connections > b.connections : a.moved_ms < b.moved_ms;
}

/* --- at one reactor --------------------------------------------------------------------------- */

/* Looks through a list that begins with the connection that has not moved for longest.  Whether a
 * connection is silent costs a system call: only those are asked that would be better. */
static struct conn *look_through(const struct reactor *r, struct conn *c, struct conn *best,
                                 struct place *place)
{
    for (; c != NULL && r->now_ms - c->moved_ms >= ROOM_SILENT_MS; c = c->live.next) {
        const struct place its = {
            .connections = peers_count(r->server->peers, (const struct sockaddr *)&c->peer),
            .moved_ms = c->moved_ms};
        if (!place_before(its, *place) || !conn_is_silent(c))
            continue;
        *place = its;
        best = c;
    }
    return best;
}

/* NULL, and no place: none is silent. */
static struct conn *best_silent(const struct reactor *r, struct place *place)
{
    *place = (struct place){0};
    struct conn *best = look_through(r, r->fresh.first, NULL, place);
    best = look_through(r, r->shaking.first, best, place);
    return look_through(r, r->live.first, best, place);
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
    refuse_full(s, n->fd);
    newcomer_settled(n);
}

static void newcomer_replace(struct reactor *r, struct reactor_job *job)
{
    struct newcomer *n = (struct newcomer *)job;
    struct place place;
    struct conn *silent = best_silent(r, &place);
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
    struct place place;
    if (best_silent(r, &place) != NULL && place_before(place, n->best_place)) {
        n->best = n->asked;
        n->best_place = place;
    }
    n->asked++;
    bool all = n->asked == n->server->reactor_count;
    if (all && n->best_place.connections == 0) {
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
    return (s->net & NET_CLIENTS) != 0 && s->reactor_count > 0 &&
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
    atomic_fetch_add(&s->newcomers, 1);
    reactor_run(s->reactors[0], &n->job);
}

#include "net/http/conn_pace.h"

#include "net/http/reactor_lists.h"
#include "net/http/request.h"
#include "net/http/server_state.h"

enum { PACED_TURN_BYTES = 16 * 1024 };

static enum http_pace pace_of(const struct conn *c)
{
    const struct http_guard *guard = c->reactor->server->guard;
    bool moves = c->req != NULL && (c->state == CONN_REQUEST || c->state == CONN_REPLY);
    if (!moves || guard == NULL || guard->pace == NULL)
        return HTTP_PACE_FREE;
    if (c->state == CONN_REPLY && c->req->reply.kind != REPLY_STREAM)
        c->req->sent_bytes = c->reply_at;
    return guard->pace(guard->ctx, c->req);
}

bool conn_rests(struct conn *c)
{
    enum http_pace pace = pace_of(c);
    reactor_rested(c->reactor, c);
    if (pace != HTTP_PACE_FREE && c->budget > PACED_TURN_BYTES)
        c->budget = PACED_TURN_BYTES;
    if (pace != HTTP_PACE_WAIT || request_aborted(c->req))
        return false;
    body_pace_pause(&c->pace);
    reactor_rest(c->reactor, c);
    return true;
}

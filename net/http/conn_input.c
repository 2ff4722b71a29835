#include "net/http/conn_input.h"

#include <assert.h>
#include <errno.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "net/http/conn_wire.h"

void conn_input_borrow(struct conn *c)
{
    c->in = c->reactor->input;
    if (c->saved == NULL)
        return;
    memcpy(c->in, c->saved, c->in_len);
    free(steal(c->saved));
}

void conn_input_return(struct conn *c)
{
    if (c->in_len > 0) {
        c->saved = xmalloc(c->in_len);
        memcpy(c->saved, c->in, c->in_len);
    }
    c->in = NULL;
}

void conn_input_consume(struct conn *c, size_t len)
{
    assert(len <= c->in_len);
    c->in += len;
    c->in_len -= len;
}

/* What is left goes to the beginning, so that there is room behind it. */
static size_t conn_make_room(struct conn *c)
{
    if (c->in != c->reactor->input) {
        memmove(c->reactor->input, c->in, c->in_len);
        c->in = c->reactor->input;
    }
    return REACTOR_INPUT_BYTES - c->in_len;
}

enum conn_verdict conn_input_read(struct conn *c)
{
    if (c->out.len > 0 && wire_flush(c) == CONN_CLOSE)
        return CONN_CLOSE;
    if (!c->readable || c->out.len > 0)
        return CONN_WAIT;
    size_t room = conn_make_room(c);
    if (c->budget > 0 && room > c->budget)
        room = c->budget;
    assert(room > 0);
    ssize_t n = wire_recv(c, c->in + c->in_len, room);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        return CONN_CLOSE;
    if (wire_is_drained(c, n, room))
        c->readable = false; /* empty; what comes from now on is a new event */
    if (n > 0) {
        c->in_len += (size_t)n;
        c->budget -= (size_t)n < c->budget ? (size_t)n : c->budget;
        return CONN_AGAIN;
    }
    if (c->out.len > 0 && wire_flush(c) == CONN_CLOSE)
        return CONN_CLOSE;
    return c->readable ? CONN_AGAIN : CONN_WAIT;
}

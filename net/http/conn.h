/* One connection, driven by its reactor. */
#pragma once

#include <sys/socket.h>

#include "net/http/conn_types.h"
#include "net/http/request_types.h"

extern const struct request_link conn_request_link;

struct conn *conn_new(struct reactor *r, int fd, const struct sockaddr *peer, socklen_t peer_len);
/* Whether something from outside may run it: not while it sleeps, or a wake-up is under way. */
bool conn_rouse(struct conn *c);
/* One turn: as much as it can do, or its budget allows.  May free it. */
void conn_run(struct conn *c);
/* Nothing has moved for too long. */
void conn_timeout(struct conn *c);
/* Does it wait for a request of which no more has come than is read? */
bool conn_is_silent(const struct conn *c);
/* Ends its request, closes. */
void conn_free(struct conn *c);

/* conn_reply.c */
enum conn_verdict conn_reply_begin(struct conn *c);
enum conn_verdict conn_reply_step(struct conn *c);

/* A connection too many is told so, and closed: with 503, or where TLS is spoken with an alert, as
 * a handshake would cost more than the refusal.  Both take the descriptor.  Any thread. */
#pragma once

struct http_server;

void refuse_full(struct http_server *s, int fd); /* the listener is full */
void refuse_peer(struct http_server *s, int fd); /* its address has as many as one may have */

/* A request from the inside: what handler.h shows opaquely, as the files of this folder see it.
 *
 * Every request has one HTTP thread: the one that drives its connection.  That thread owns all
 * fields, with three exceptions: the reply belongs to whoever replies until it is published; the
 * arena to whoever handles the request; and what stands under `lock` is shared.
 *
 *   NEW ──begin()──▶ OWED ──http_take_body()──▶ BODY ──whole body──▶ OWED ──reply──▶ REPLIED
 *                     │     http_collect_body()   │
 *                     └────────── reply ──────────┴──── reply (early) ─────────────▶ REPLIED
 *
 *   OWED     the handler owes the reply and nothing else can happen before.  Its connection sleeps
 *            (it is *parked*): even when the client goes away, nobody looks before the reply is
 *            there.  So `req` is good until then, in any thread.
 *   BODY     bytes of the body may come.  When the client goes away, the body is cut and the
 *            request ends.
 *   REPLIED  the reply is published; the HTTP thread sends it and ends the request.  While a piece
 *            of its file is fetched from the disk the connection sleeps once more.
 *
 * Sleeping and waking.  The HTTP thread sleeps when it has looked at everything and found nothing
 * to do: parked, a body that nobody takes, a stream without bytes.  Whoever changes something
 * wakes it.  Both under the lock:
 *
 *   request_sleep()  woken? then forget it and look again; else asleep = true, the connection is
 *                    taken off its thread's poll
 *   request_wake()   asleep? then asleep = false, the connection goes back; else woken = true
 *
 * so that a change that comes between the look and the sleep is not lost, and a wake-up for nothing
 * costs one look.  After request_wake() has unlocked, the request may be gone.
 *
 * A connection that waits for its client to send more of the body does not sleep but may doze: it
 * is woken by the socket or by request_wake(), whatever comes first, so that an early reply does
 * not wait for the client.
 *
 * Locks: the server's lock is taken before a request's (when the server aborts its requests), and
 * nothing but the connection layer's own locks is taken under a request's.  Handlers' functions
 * (hooks, body and stream operations) run without any. */
#pragma once

#include "net/http/request_types.h"

struct buf;

/* --- the life, called by a connection layer in the HTTP thread -------------------------------- */
struct http_request *request_new(struct http_server *server, const struct request_link *link,
                                 void *connection);
/* uri: the request's target, query included; copied. */
void request_set_target(struct http_request *req, enum http_method method, const char *uri);
/* The texts must live as long as the request. */
void request_add_header(struct http_request *req, const char *name, const char *value);
/* After the last header: the body's length and what must be refused; 0 or a code. */
int request_check_headers(struct http_request *req, struct error *err);
/* Finds the route and calls its handler. */
void request_begin(struct http_request *req);
/* As request_begin, but the request is refused with an error. */
void request_refuse(struct http_request *req, const struct error *err);
/* Gives a piece of the body to the handler; returns how much it took. */
size_t request_take(struct http_request *req, const char *data, size_t len);
/* The whole body has come. */
void request_body_ended(struct http_request *req);
/* No more of it will: the handler's cut() is called, and the client is told why.  Nothing where a
 * reply has been made meanwhile. */
void request_fail_body(struct http_request *req, const struct error *why);
enum request_state request_state(struct http_request *req);
/* Nothing has moved for the idle timeout: shall it be waited for? */
bool request_is_patient(const struct http_request *req);
bool request_aborted(struct http_request *req);
/* False: something has happened, look again.  True: the connection sleeps now. */
bool request_sleep(struct http_request *req);
void request_wake(struct http_request *req);
void request_wake_locked(struct http_request *req);
/* As request_sleep(), while the socket is waited for as well. */
bool request_doze(struct http_request *req);
/* The socket has something: true when that comes first, false when a wake-up is under way. */
bool request_rouse(struct http_request *req);
/* The reply is complete: from here on it, and the request, belong to the HTTP thread. */
void request_publish(struct http_request *req);
/* In a stream reply: bytes, 0 when the connection went to sleep, or HTTP_STREAM_… */
ssize_t request_stream_read(struct http_request *req, char *out, size_t max);
/* The same by the stream's splice(), which it has. */
ssize_t request_stream_splice(struct http_request *req, int to, size_t max);
/* In a file reply, whose body is out up to `at`: how much more can be sent without waiting for the
 * disk, 0 when the connection went to sleep, or HTTP_STREAM_CUT. */
ssize_t request_file_ready(struct http_request *req, uint64_t at);
/* The connection has done with the request: cuts the body if that still flowed, runs the hooks,
 * frees. */
void request_end(struct http_request *req);
/* Called by the server when it ends: what waits for the client is not waited for. */
void request_abort(struct http_request *req);
/* Owed by a handler, or a reader's thread is at it: the server cannot end before. */
bool request_is_owed(struct http_request *req);

/* --- the reply on the wire -------------------------------------------------------------------- */
void reply_init(struct reply *r);
void reply_done(struct reply *r);
bool reply_has_body(const struct http_request *req); /* not with HEAD, 204, 304 */
/* An error in place of the reply that the headers so far were for. */
/* Who has the request carried out by another handler is told of its reply, or of its failure. */
void recast_replied(struct http_request *req, const struct error *failure);
void reply_error_instead(struct http_request *req, const struct error *err);
/* Status line and headers of a reply that is not left to libmicrohttpd. */
void reply_head(const struct http_request *req, bool keep_alive, bool http_1_0, struct buf *out);
/* {"status", "code", …}; req may be NULL where there was none. */
void reply_error_json(const char *node, const char *request_id, const char *subject,
                      const struct error *err, struct buf *out);

/* One call of the client, as client.c (its life), session.c (its signature) and call.c (its bytes)
 * see it; nobody else includes this.
 *
 * A call is referenced by its life (from http_call_start() to its end) and by each message that a
 * pipe's wake-up has posted.  When the transfer ends the pipes' wake-ups are silenced, so that no
 * further message can be posted; those under way find `easy` gone and do nothing. */
#pragma once

#include <curl/curl.h>
#include <stdatomic.h>

#include "common/auth/mac.h"
#include "io/loop.h"
#include "net/client/result.h"
#include "net/client/spec.h"

enum { IDLE_CONNECTION_S = 20 }; /* less than servers wait before they close one */

struct call;

/* What becomes of a call: the client's part (client.c).  In the loop's thread. */
struct call_life {
    /* Signs and transfers it, or ends it. */
    void (*begin)(struct call *c);
    /* The transfer has left curl, or there was none: tells the caller. */
    void (*end)(struct call *c);
    /* Takes it out of curl and ends it. */
    void (*cut)(struct call *c);
    /* The reply's head: does it not count? */
    bool (*wants_again)(struct call *c, const struct http_head *head);
};

struct call {
    unsigned magic;
    atomic_uint refs;
    struct http_client *client;
    const struct call_life *life;
    struct loop *loop;
    uint64_t number;
    struct call *next, **prev; /* in the client's list, while the transfer runs */
    CURL *easy;                /* NULL before the start and after the end */
    const struct http_client_config *config;
    bool refused;         /* an address that may not be connected to */
    curl_socket_t socket; /* that the transfer uses */

    enum http_method method;
    char *url;
    struct curl_slist *headers;
    struct curl_slist *signature; /* what is sent before them, and then them; or NULL */
    const char *body;
    char *body_copy; /* NULL: the caller's body stays */
    size_t body_len;
    struct bpipe *upload;
    int64_t upload_length;
    struct bpipe *download;
    size_t reply_max;
    uint64_t total_timeout_ms;
    uint64_t stall_timeout_ms;
    bool any_status_streams;
    bool to_public;     /* not signed */
    char *node;         /* that must answer, HTTP_ANY_NODE, or NULL */
    bool opens_session; /* the desk's own: no fault is injected into it */
    void (*on_head)(void *arg, const struct http_head *head);
    void (*done)(void *arg, struct http_result *r);
    void *arg;

    char session[2 * AUTH_SESSION_BYTES + 1]; /* that signed it, or "" */
    unsigned signings;
    bool begun;
    uint64_t began_ms;

    struct http_result result;
    bool fresh;     /* on a connection of its own: a kept one has died under it, or could */
    long kept_s;    /* 0, or: a kept connection that is older is not taken */
    bool again;     /* another signature, or another connection: the reply does not count */
    bool in_flight; /* sent, perhaps, and no reply has come … */
    bool repeated;  /* … and sent once more after that */
    bool head_seen;
    bool framed;             /* the reply's end can be told from a cut */
    bool streams;            /* the reply's body goes to `download` */
    bool upload_waits;       /* paused: the pipe has no bytes */
    bool upload_over;        /* the server wants no more of it */
    bool download_waits;     /* paused: the pipe has no room */
    size_t redelivered;      /* bytes of the next delivery that the pipe already took */
    uint64_t sent, received; /* of the streams */
    uint64_t moved_bytes;    /* on the wire, both ways, when it was looked at last … */
    uint64_t moved_ms;       /* … and when they last grew */
};

struct call *call_new(const struct http_call *spec);
void call_unref(struct call *c);
/* The first failure counts. */
void call_fail(struct call *c, int code, const char *why);
/* Prepares c->easy, and lets the pipes wake the call. */
void call_set_options(struct call *c, const struct http_client_config *config);
/* The head of the final reply is complete: what it says goes into the call, and to on_head(). */
void call_take_head(struct call *c);
/* A transfer that curl has ended without an error: was that the whole reply? */
void call_check_whole(struct call *c);
/* Silences the pipes and tells them the outcome. */
void call_end_pipes(struct call *c);
/* What curl does not see while the upload waits for its pipe: nobody will take its bytes. */
bool call_server_left(const struct call *c);
/* What curl does not see while it waits for one of the pipes, or for the server: the other end of a
 * pipe, or the server, has left.  True when the call is to be cut; then it has failed. */
bool call_is_abandoned(struct call *c);

/* After the last transfer: what its result says of all of them. */
void call_sum_up(struct call *c);
/* A transfer is over and another one for the same call is to come: forgets the reply. */
void call_reset(struct call *c);

/* Out of the list that it is in. */
void call_unlink(struct call *c);
/* Sends this line before those headers that are not signed. */
void call_add_signature(struct call *c, const char *line);
void call_unsign(struct call *c);

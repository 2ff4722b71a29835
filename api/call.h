/* A call to the cluster: exchanges, through redirects and repetitions, until there is an answer.
 *
 *     endpoint --307--> owner --2xx--> done
 *        ^                |
 *        +--- pause <-----+  no connection, 429/503, stale map; cut or silent where the call
 *                            may be made twice (retry.h decides)
 *
 * Every try begins at an endpoint, because the map may have changed meanwhile. */
#pragma once

#include <curl/curl.h>
#include <stdbool.h>

#include "api/exchange.h"

struct call {
    const char *method;
    struct buf path; /* "/v1/..." with the query */
    struct curl_slist *headers;
    struct body *body; /* owned */
    bool twice_is_harmless;
    bool patient;     /* the reply may take as long as it does (exchange.h) */
    bool counted;     /* no try is repeated behind our back: `doubtful` knows of each */
    bool once;        /* no try is repeated */
    bool meets_owner; /* may be redirected to another node before the body is wanted */
    /* "http://host:port" each, instead of the endpoints, NULL at the end; borrowed.  A try begins
     * at the first. */
    const char *const *origins;
    bool administers; /* they are control listeners: signed.h */
    const char *node; /* whose listener it is; NULL: any node may answer */
    const struct receiver *receiver;
    void *receiver_context;
    /* Before every try; may change the headers.  NULL: nothing to do. */
    int (*prepare)(void *context, struct call *call, struct dfc_error *err);
    uint32_t idle_timeout_ms; /* 0: the client's */
    const uint64_t *moved;    /* grows while bytes arrive: a try that brought some is no failure */
    dfc_progress *progress;
    void *progress_context;

    struct reply reply; /* of the last exchange */
    unsigned tries;
    bool doubtful; /* an earlier try broke off: it may have been done */
};

#define CALL_INIT ((struct call){0})

void call_done(struct call *call);

/* "Name: value"; refuses values that would begin another header. */
int call_header(struct call *call, struct dfc_error *err, const char *name, const char *value);
void call_headers_clear(struct call *call);

/* DFC_OK: call->reply has a 2xx status. */
int call_run(struct dfc_client *c, struct call *call, struct dfc_error *err);

/* The usual kind: a small JSON request (or none) and a JSON reply.  path is taken over; text may
 * be NULL where the reply is of no interest. */
struct call_small {
    const char *method;
    const char *body; /* JSON or NULL */
    bool twice_is_harmless;
    const char *const *origins;
    bool administers;
    const char *node;
    bool has_password; /* DFC_INVALID where a place is neither https:// nor of this machine */
};
int call_small(struct dfc_client *c, const struct call_small *what, struct buf *path, char **text,
               struct dfc_error *err);

/* One request to one URL, and its reply: no redirects, no repeating. */
#pragma once

#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>

#include "api/body.h"
#include "api/client.h"
#include "api/headers.h"

#define REPLY_ERROR_BYTES (64u << 10) /* of an error's body that are looked at */
#define REPLY_TEXT_BYTES (256u << 20) /* of a document; more is a failure */

struct reply {
    int status; /* 0: none came */
    struct headers headers;
    struct buf text; /* the body, where it did not go to a receiver */
};

void exchange_reply_done(struct reply *r);

/* Where the bytes of a 2xx reply go.  Both return DFC_OK or a result, which ends the exchange. */
struct receiver {
    int (*begin)(void *context, const struct reply *reply, struct dfc_error *err); /* before all */
    int (*write)(void *context, const void *data, size_t size, struct dfc_error *err);
};

struct exchange {
    const char *method;
    const char *url;
    struct curl_slist *headers;
    struct body *body; /* begun; NULL: none */
    const char *node;  /* that must answer, where the exchange is signed; NULL: any */
    bool patient;      /* silence behind the body is work of the other side: no time-out */
    bool fresh;        /* on a new connection: curl must not repeat it by itself on a stale one */
    const struct receiver *receiver;
    void *receiver_context;
    uint32_t idle_timeout_ms; /* 0: the client's */
    dfc_progress *progress;   /* of the body */
    void *progress_context;
};

enum exchange_end {
    EXCHANGE_REPLIED, /* the reply is whole */
    EXCHANGE_UNSENT,  /* no connection; err says why */
    EXCHANGE_BROKEN,  /* cut or silent, the other side may have acted; err says why */
    EXCHANGE_STOPPED, /* by a callback or by cancelling; err says why, its result is final */
};

enum exchange_end exchange_run(struct dfc_client *c, struct handle *h, const struct exchange *x,
                               struct reply *reply, struct dfc_error *err);

/* POST of a JSON text, its body borrowed; the reply is text. */
enum exchange_end exchange_post(struct dfc_client *c, struct handle *h, const char *url,
                                const char *json, struct reply *reply, struct dfc_error *err);

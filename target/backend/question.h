/* A question to a service that hands out what lets us in to backends: a token service, the metadata
 * server of a machine, a container's agent.  Small, bounded in time and in length, not repeated
 * here (kept.h does that).
 *
 *     question_ask() ─▶ answer: a transport error, or a status with a body
 *
 * Threads: it blocks (never in an HTTP thread or a loop). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"
#include "net/client/client.h"

enum { QUESTION_WORDS_MAX = 200 }; /* of what a service says of a failure */

/* Texts are an arena's. */
struct question {
    const char *who; /* is asked; for messages */
    const char *url;
    enum http_method method;
    const char *const *headers;
    char *body;        /* "" for none */
    char *secret_line; /* one of the headers; or NULL */
    uint64_t timeout_ms;
    bool is_metadata; /* nothing but the machine says who asks; asked where nothing else is set */
};

struct answer {
    int code;       /* 0, or a transport error … */
    char why[160];  /* … and its words, without the URL, which may be a secret */
    int status;     /* where the code is 0 */
    bool is_google; /* it says "Metadata-Flavor: Google" */
    struct buf body;
};

/* The answer is the caller's to end. */
void question_ask(struct http_client *client, const struct question *q, struct answer *out);
bool answer_is_good(const struct answer *n);
/* May the next one be better? */
bool answer_is_passing(const struct answer *n);
/* The error of a backend that a transport error or a status is; 400, 401 and 403 are
 * E_BACKEND_DENIED, others E_BACKEND, _BUSY or _TIMEOUT.  `words`: what the service says, "" for
 * nothing. */
int answer_refusal(const struct question *q, const struct answer *n, const char *words,
                   struct error *err);

/* What is secret in them is overwritten. */
void question_wipe(struct question *q);
void answer_done(struct answer *n);

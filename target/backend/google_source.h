/* Where a token for Google's services is asked for, and with what: the first of these, in the order
 * in which Google's own tools look.
 *
 *   file GOOGLE_APPLICATION_CREDENTIALS                       by its type:
 *   file $CLOUDSDK_CONFIG/application_default_credentials.json   "service_account": a statement that
 *        (else that of ~/.config/gcloud), where there is one       its key signs (google_key.h)
 *                                                              "authorized_user": a refresh token
 *   the metadata server of the machine or the pod             nothing: who asks is known there
 *
 * All of them answer with the JSON of a token.  Files are read for each question, so that what is
 * new in them counts with the next token.  No secret stands in a message. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/error.h"
#include "net/http.h"

struct google_question {
    const char *who; /* is asked; for messages */
    const char *url;
    enum http_method method;
    const char *const *headers;
    char *body; /* "" for none; has secrets: google_question_wipe() */
    uint64_t timeout_ms;
    bool is_metadata; /* its answer says "Metadata-Flavor: Google", or somebody else has answered */
};

/* Of this process's environment, all of it the arena's.  E_BACKEND_DENIED. */
int google_question_make(struct arena *a, int64_t now_s, struct google_question *out,
                         struct error *err);
/* Of a file's text.  Pure.  E_BACKEND_DENIED. */
int google_question_of_file(const char *text, size_t len, int64_t now_s, struct arena *a,
                            struct google_question *out, struct error *err);
void google_question_wipe(struct google_question *q);

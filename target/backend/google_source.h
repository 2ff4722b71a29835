/* Where a token for Google's services is asked for, and with what: the first of these, in the order
 * in which Google's own tools look.
 *
 *   file GOOGLE_APPLICATION_CREDENTIALS                       by its type:
 *   file $CLOUDSDK_CONFIG/application_default_credentials.json   "service_account": its key signs a
 *        (else that of ~/.config/gcloud), where there is one       statement (google_key.h)
 *                                                              "authorized_user": a refresh token
 *   the metadata server of the machine or the pod             nothing: who asks is known there
 *
 * All of them answer with the JSON of a token.  Files are read for each question, so that what is
 * new in them counts with the next token.  No secret stands in a message. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/error.h"
#include "target/backend/question.h"

/* Of this process's environment, all of it the arena's.  E_BACKEND_DENIED. */
int google_question_make(struct arena *a, int64_t now_s, struct question *out, struct error *err);
/* Of a file's text.  Pure.  E_BACKEND_DENIED. */
int google_question_of_file(const char *text, size_t len, int64_t now_s, struct arena *a,
                            struct question *out, struct error *err);

/* The token of a session: what another process needs to write the same plog under the session's
 * record.  A text that can be an argument, a variable or a part of JSON.  Pure.
 *
 *     dfcplog1.<base64url of: XXH3 of the rest, id, session, epoch, bucket, NUL, object>
 *
 * Numbers are big-endian.  A token is no secret, and gives no right. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "plog/name.h"

enum {
    PLOG_TOKEN_BUCKET = 63,   /* bytes of a name of a bucket, at most */
    PLOG_TOKEN_OBJECT = 1024, /* ... of an object */
    PLOG_TOKEN_MAX = 2048,    /* bytes of a text, with its NUL */
};

struct plog_token {
    char id[PLOG_ID_CHARS + 1];
    uint64_t session; /* of the record */
    uint32_t epoch;   /* none of the session's segments has a greater one */
    char bucket[PLOG_TOKEN_BUCKET + 1];
    char object[PLOG_TOKEN_OBJECT + 1]; /* the head's name */
};

/* The names fit. */
void plog_token_print(const struct plog_token *t, char text[static PLOG_TOKEN_MAX]);
/* E_INVALID: it is not what plog_token_print() wrote.  E_UNSUPPORTED: of a later release. */
int plog_token_parse(const char *text, struct plog_token *t, struct error *err);

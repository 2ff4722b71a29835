/* Who the client is: an access key and its secret, and the token that they were exchanged for; or a
 * token alone, which is used as it is.  login.h makes the exchange; one thread makes it for all.
 *
 *     identity_token --> READY: a token
 *                    --> LOGIN: this thread logs in --> identity_granted() or identity_failed()
 *                    --> FAILED: as the thread did that this one has waited for
 *
 * Where a token is in force, threads go on with it while one renews it.  Secrets are wiped from
 * memory when they end here.
 *
 * Threads: any. */
#pragma once

#include <stdint.h>

#include "api/dfc.h"
#include "api/identity/secret.h"

struct identity;
struct profile;

enum identity_step { IDENTITY_READY, IDENTITY_LOGIN, IDENTITY_FAILED };

struct identity_failure {
    int end; /* a word of login.c */
    struct dfc_error err;
};

/* Options first; without any of them the environment's DFC_ACCESS_KEY and DFC_SECRET_KEY, or
 * DFC_TOKEN, and without them the profile.  *out is NULL where there is none.  DFC_INVALID: a key
 * without its secret, or a token beside them. */
int identity_new(const struct dfc_client_options *o, const struct profile *p, struct identity **out,
                 struct dfc_error *err);
void identity_free(struct identity *id); /* NULL is fine */

/* NULL where there is a token alone.  They live as long as the identity. */
const char *identity_access(const struct identity *id);
const char *identity_secret(const struct identity *id);

/* A token of an earlier client, without "Bearer ", for the first call; renewed as below. */
void identity_recall(struct identity *id, const char *token, uint64_t renew_ms);

/* READY: *token is "Bearer …", to be freed with secret_free().  FAILED: *failure. */
enum identity_step identity_token(struct identity *id, char **token,
                                  struct identity_failure *failure);
/* The end of LOGIN.  A copy of `token` is kept, and renewed from renew_ms (clock_ms()) on. */
void identity_granted(struct identity *id, const char *token, uint64_t renew_ms);
/* True: an earlier token is still there, *token. */
bool identity_failed(struct identity *id, const struct identity_failure *failure, char **token);
/* The cluster does not take this token any more. */
void identity_drop(struct identity *id, const char *token);

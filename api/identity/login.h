/* Logs in: exchanges the identity of a client for a token at an endpoint.
 *
 *     login_token --> a token in force? --no--> POST /v1/auth/token: a proof of the secret, which
 *        |                                       itself never leaves the process
 *        +--> the call with it --> 401 expired, invalid: login_refused(), and once more
 *
 * A token is renewed when four fifths of its life are over. */
#pragma once

#include "api/exchange.h"
#include "api/identity/identity.h"

/* Of a client that has an identity.  EXCHANGE_REPLIED: *token is "Bearer …", to be freed with
 * secret_free().  EXCHANGE_UNSENT: nobody answered at `endpoint`, or asked to come later. */
enum exchange_end login_token(struct dfc_client *c, struct handle *h, const char *endpoint,
                              char **token, struct dfc_error *err);
/* Is this reply to a call with the token a 401 that another token may avert?  The token is
 * forgotten then. */
bool login_refused(struct dfc_client *c, const char *token, const struct reply *reply);

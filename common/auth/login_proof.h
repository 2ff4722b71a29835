/* How a client proves at login that it has the secret of an access key, without sending it.  Pure:
 * clients and proxies compute alike.
 *
 *     proof    HMAC-SHA256(secret, "dfc-login-1\n" lines), in hex
 *
 * The lines are access key, time in ms, and nonce, each with a line feed.  None has one inside. */
#pragma once

#include <stdint.h>

#include "common/auth/mac.h"

void login_proof(const char *secret, const char *access, int64_t time_ms, const char *nonce,
                 char hex[AUTH_HEX_MAX]);

/* The signing keys of callers that have signed of late, so that a request costs one signature and
 * neither an opened secret nor the four sums of a new key.
 *
 * A key belongs to an access key, its sealed secret and a day; the region is the daemon's.  The
 * table has SIGNING_KEYS_MAX places, and a new key takes the place of another one.  Any thread. */
#pragma once

#include <stdbool.h>

#include "common/auth/mac.h"

enum { SIGNING_KEYS_MAX = 1024 };

struct signing_keys;

struct signing_keys *signing_keys_new(void);
void signing_keys_free(struct signing_keys *k); /* NULL is fine */

/* `day`: "20130524".  False: it is not there. */
bool signing_keys_find(struct signing_keys *k, const char *access_key, const char *sealed,
                       const char *day, unsigned char key[static AUTH_MAC_BYTES]);
void signing_keys_put(struct signing_keys *k, const char *access_key, const char *sealed,
                      const char *day, const unsigned char key[static AUTH_MAC_BYTES]);

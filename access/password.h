/* Passwords: scrypt (RFC 7914) with N = 2^15, r = 8, p = 1.  A hash takes 32 MiB and about 100 ms:
 * callers bound how many run at a time, and never compute one in an HTTP thread.
 *
 *   scrypt:15:8:1:SALT:HASH     32 and 64 hex digits */
#pragma once

#include <stdbool.h>

#include "cluster/access/identity.h"
#include "common/error.h"

enum { PASSWORD_MIN = 8, PASSWORD_MAX = 1024, PASSWORD_TAG_CHARS = ACCESS_KEY_CHARS };

/* E_INVALID: too short or long. */
int password_hash(const char *password, char hash[static PASSWORD_HASH_MAX], struct error *err);
/* In constant time.  `hash` "" is no password: a hash is computed all the same, so that the time
 * does not tell whether a user has one, or exists. */
bool password_matches(const char *password, const char *hash);
/* Names the password of a hash in the tokens that it gives: 'p' and digits of the salt, so that it
 * is never an access key.  "" of what is no hash. */
void password_tag(const char *hash, char tag[static PASSWORD_TAG_CHARS + 1]);
/* May it come in clear from this peer, since it does not leave the machine?  "127.0.0.1:4711",
 * "[::1]:4711". */
bool password_peer_is_local(const char *peer);
/* May a user log in with this password?  Not one who is disabled or has none, nor NULL, who takes
 * as long. */
bool password_opens(const struct user *u, const char *password);

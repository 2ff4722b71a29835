/* The challenges that a node gives to callers which want to open a session (auth.h).  Pure, but for
 * the randomness; its owner has the lock.
 *
 * A challenge is a random text that only this process can make.  It holds for
 * AUTH_CHALLENGE_MS and is taken once.  A node remembers only the challenges that it took: asking
 * for one costs it no memory.
 *
 * CHALLENGES_USED_MAX bounds that memory.  It is no parameter: only a proven greeting takes a
 * place, so that a thousand nodes that open four sessions each within 30 s fill it.  Beyond that
 * the oldest is forgotten before its time, and can be sent again. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/auth/mac.h"

enum {
    AUTH_CHALLENGE_MS = 30000, /* three times what a caller waits for an answer */
    AUTH_CHALLENGES_USED_MAX = 4096,
};

struct auth_challenges {
    unsigned char secret[AUTH_MAC_BYTES]; /* of this process */
    unsigned char used[AUTH_CHALLENGES_USED_MAX][AUTH_NONCE_BYTES];
    size_t next; /* the place of the next; the oldest is there */
};

void auth_challenges_init(struct auth_challenges *c);
void auth_challenges_new(const struct auth_challenges *c, uint64_t now_ms, char hex[AUTH_HEX_MAX]);

enum auth_challenge_verdict {
    AUTH_CHALLENGE_TAKEN,
    AUTH_CHALLENGE_FOREIGN, /* another process made it, or nobody */
    AUTH_CHALLENGE_LATE,
    AUTH_CHALLENGE_USED,
};

/* Takes a challenge that came back in a greeting whose proof is right. */
enum auth_challenge_verdict auth_challenges_take(struct auth_challenges *c, uint64_t now_ms,
                                                 const char *hex);
/* What is wrong, for an error. */
const char *auth_challenge_words(enum auth_challenge_verdict v);

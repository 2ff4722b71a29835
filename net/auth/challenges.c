#include "net/auth/challenges.h"

#include <openssl/crypto.h>
#include <string.h>

#include "common/parse.h"
#include "common/rng.h"

/* A challenge: when it was made (big endian), chance, and the MAC of both. */
enum { TIME_BYTES = 8, CHANCE_BYTES = 8, PLAIN_BYTES = TIME_BYTES + CHANCE_BYTES };

static void put_time(uint64_t ms, unsigned char out[TIME_BYTES])
{
    for (size_t i = 0; i < TIME_BYTES; i++)
        out[i] = (unsigned char)(ms >> (8 * (TIME_BYTES - 1 - i)));
}

static uint64_t get_time(const unsigned char in[TIME_BYTES])
{
    uint64_t ms = 0;
    for (size_t i = 0; i < TIME_BYTES; i++)
        ms = ms << 8 | in[i];
    return ms;
}

static void seal(const struct auth_challenges *c, unsigned char bytes[AUTH_NONCE_BYTES])
{
    unsigned char mac[AUTH_MAC_BYTES];
    auth_hmac(c->secret, sizeof c->secret, bytes, PLAIN_BYTES, mac);
    memcpy(bytes + PLAIN_BYTES, mac, AUTH_NONCE_BYTES - PLAIN_BYTES);
}

void auth_challenges_init(struct auth_challenges *c)
{
    memset(c, 0, sizeof *c);
    random_bytes(c->secret, sizeof c->secret);
}

void auth_challenges_new(const struct auth_challenges *c, uint64_t now_ms, char hex[AUTH_HEX_MAX])
{
    unsigned char bytes[AUTH_NONCE_BYTES];
    put_time(now_ms, bytes);
    random_bytes(bytes + TIME_BYTES, CHANCE_BYTES);
    seal(c, bytes);
    format_hex(bytes, sizeof bytes, hex);
}

static bool is_ours(const struct auth_challenges *c, const char *hex,
                    unsigned char bytes[AUTH_NONCE_BYTES])
{
    unsigned char sealed[AUTH_NONCE_BYTES];
    if (parse_hex(hex, bytes, AUTH_NONCE_BYTES, NULL) != 0)
        return false;
    memcpy(sealed, bytes, PLAIN_BYTES);
    seal(c, sealed);
    return CRYPTO_memcmp(sealed, bytes, sizeof sealed) == 0;
}

static bool is_used(const struct auth_challenges *c, const unsigned char bytes[AUTH_NONCE_BYTES])
{
    for (size_t i = 0; i < AUTH_CHALLENGES_USED_MAX; i++) {
        if (memcmp(c->used[i], bytes, AUTH_NONCE_BYTES) == 0)
            return true;
    }
    return false;
}

enum auth_challenge_verdict auth_challenges_take(struct auth_challenges *c, uint64_t now_ms,
                                                 const char *hex)
{
    unsigned char bytes[AUTH_NONCE_BYTES];
    if (!is_ours(c, hex, bytes))
        return AUTH_CHALLENGE_FOREIGN;
    if (now_ms - get_time(bytes) > AUTH_CHALLENGE_MS)
        return AUTH_CHALLENGE_LATE;
    if (is_used(c, bytes))
        return AUTH_CHALLENGE_USED;
    memcpy(c->used[c->next], bytes, sizeof bytes);
    c->next = (c->next + 1) % AUTH_CHALLENGES_USED_MAX;
    return AUTH_CHALLENGE_TAKEN;
}

const char *auth_challenge_words(enum auth_challenge_verdict v)
{
    static const char *const words[] = {
        [AUTH_CHALLENGE_TAKEN] = "the challenge is good",
        [AUTH_CHALLENGE_FOREIGN] = "the greeting's challenge is not of this process: ask for one",
        [AUTH_CHALLENGE_LATE] = "the greeting's challenge is older than 30 s: ask for another",
        [AUTH_CHALLENGE_USED] = "the greeting was sent before: ask for another challenge",
    };
    return words[v];
}

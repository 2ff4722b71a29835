#include "common/rng.h"

#include <errno.h>
#include <sys/random.h>

/* splitmix64, Steele, Lea and Flood 2014: spreads the seed over the state. */
static uint64_t splitmix64(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

void rng_seed(struct rng *r, uint64_t seed)
{
    for (int i = 0; i < 4; i++)
        r->s[i] = splitmix64(&seed);
}

static uint64_t rotate_left(uint64_t x, int bits)
{
    return x << bits | x >> (64 - bits);
}

/* xoshiro256**, Blackman and Vigna 2018. */
uint64_t rng_next(struct rng *r)
{
    uint64_t *s = r->s;
    uint64_t result = rotate_left(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate_left(s[3], 45);
    return result;
}

/* Lemire 2019: the high half of a product, with the few draws rejected that would make the first
 * values likelier. */
uint64_t rng_below(struct rng *r, uint64_t bound)
{
    uint64_t unfair = (0 - bound) % bound;
    unsigned __int128 product;
    do {
        product = (unsigned __int128)rng_next(r) * bound;
    } while ((uint64_t)product < unfair);
    return (uint64_t)(product >> 64);
}

void random_bytes(void *out, size_t len)
{
    unsigned char *at = out;
    while (len > 0) {
        ssize_t n = getrandom(at, len, 0);
        if (n < 0 && errno != EINTR)
            abort(); /* the call exists on every kernel that can run this program */
        if (n > 0) {
            at += n;
            len -= (size_t)n;
        }
    }
}

/* One of 36 characters; bytes from 252 on would favour the first four and are drawn again. */
static char random_character(void)
{
    static const char alphabet[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    unsigned char byte;
    do {
        random_bytes(&byte, 1);
    } while (byte >= 252);
    return alphabet[byte % 36];
}

void random_id(const char *prefix, char *out)
{
    size_t used = strlen(prefix);
    memcpy(out, prefix, used);
    for (int i = 0; i < 10; i++)
        out[used++] = random_character();
    out[used] = '\0';
}

/* MD5 of several streams at once (RFC 1321).
 *
 * MD5 is one chain of dependent steps, so a processor waits most of the time.  Up to MD5_LANES
 * streams go side by side in the lanes of vector registers: the eight together take about as long
 * as three of them would alone with AVX2.  Each stream may have any length, also 0.  Few streams
 * are computed one after the other.
 *
 *     begin each ─▶ update(all pieces there are) … ─▶ end each */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { MD5_LANES = 8, MD5_BLOCK = 64, MD5_BYTES = 16 };

struct md5 {
    uint32_t state[MD5_BYTES / sizeof(uint32_t)];
    uint64_t len;                  /* bytes until now */
    unsigned char rest[MD5_BLOCK]; /* the last len % MD5_BLOCK of them */
};

/* The next bytes of a stream. */
struct md5_piece {
    struct md5 *md5;
    const unsigned char *data;
    size_t len;
};

void md5_begin(struct md5 *m);
/* `count` is at most MD5_LANES.  No stream may stand there twice. */
void md5_update(const struct md5_piece *pieces, size_t count);
void md5_end(struct md5 *m, unsigned char digest[static MD5_BYTES]);

#include "common/md5.h"

#include <assert.h>
#include <endian.h>
#include <stdbool.h>
#include <string.h>

enum { WORDS = MD5_BLOCK / sizeof(uint32_t), STATE = MD5_BYTES / sizeof(uint32_t) };
/* Fewer streams are faster one after the other. */
enum { LANES_LEAST = 3 };

/* A lane of each value is a stream's.  Operators work on numbers and on lanes alike. */
typedef uint32_t lanes __attribute__((vector_size(MD5_LANES * sizeof(uint32_t))));

#define F(x, y, z) ((z) ^ ((x) & ((y) ^ (z))))
#define G(x, y, z) (((x) & (z)) | ((y) & ~(z)))
#define H(x, y, z) ((x) ^ (y) ^ (z))
#define I(x, y, z) ((y) ^ ((x) | ~(z)))
#define STEP(f, a, b, c, d, word, turn, constant)   \
    a += f(b, c, d) + w[word] + (uint32_t)constant; \
    a = ((a << turn) | (a >> (32 - turn))) + b;

static void digest_blocks(uint32_t s[STATE], const unsigned char *data, size_t blocks)
{
    for (; blocks > 0; blocks--, data += MD5_BLOCK) {
        uint32_t w[WORDS], a = s[0], b = s[1], c = s[2], d = s[3];
        memcpy(w, data, sizeof w);
        for (size_t i = 0; i < WORDS; i++)
            w[i] = le32toh(w[i]);
#include "common/md5_steps.def"
        s[0] += a;
        s[1] += b;
        s[2] += c;
        s[3] += d;
    }
}

#define INLINE static inline __attribute__((always_inline))

/* Of two rows: the odd words of one for the even words of the other; the same with pairs of words,
 * and with halves. */
INLINE void swap_words(lanes *x, lanes *y)
{
    lanes was = *x;
    *x = __builtin_shufflevector(was, *y, 0, 8, 2, 10, 4, 12, 6, 14);
    *y = __builtin_shufflevector(was, *y, 1, 9, 3, 11, 5, 13, 7, 15);
}

INLINE void swap_pairs(lanes *x, lanes *y)
{
    lanes was = *x;
    *x = __builtin_shufflevector(was, *y, 0, 1, 8, 9, 4, 5, 12, 13);
    *y = __builtin_shufflevector(was, *y, 2, 3, 10, 11, 6, 7, 14, 15);
}

INLINE void swap_halves(lanes *x, lanes *y)
{
    lanes was = *x;
    *x = __builtin_shufflevector(was, *y, 0, 1, 2, 3, 8, 9, 10, 11);
    *y = __builtin_shufflevector(was, *y, 4, 5, 6, 7, 12, 13, 14, 15);
}

/* Rows and columns of eight times eight words change places.  Loops would stay loops. */
INLINE void transpose(lanes r[MD5_LANES])
{
    swap_words(&r[0], &r[1]), swap_words(&r[2], &r[3]);
    swap_words(&r[4], &r[5]), swap_words(&r[6], &r[7]);
    swap_pairs(&r[0], &r[2]), swap_pairs(&r[1], &r[3]);
    swap_pairs(&r[4], &r[6]), swap_pairs(&r[5], &r[7]);
    swap_halves(&r[0], &r[4]), swap_halves(&r[1], &r[5]);
    swap_halves(&r[2], &r[6]), swap_halves(&r[3], &r[7]);
}

INLINE void digest_lanes(lanes s[STATE], const unsigned char *const data[MD5_LANES], size_t blocks)
{
    for (size_t at = 0; blocks > 0; blocks--, at += MD5_BLOCK) {
        lanes w[WORDS], a = s[0], b = s[1], c = s[2], d = s[3];
        for (int i = 0; i < MD5_LANES; i++) {
            memcpy(&w[i], data[i] + at, sizeof *w);
            memcpy(&w[i + MD5_LANES], data[i] + at + sizeof *w, sizeof *w);
        }
        transpose(w);
        transpose(w + MD5_LANES);
#include "common/md5_steps.def"
        s[0] += a;
        s[1] += b;
        s[2] += c;
        s[3] += d;
    }
}

typedef void digest_fn(lanes s[STATE], const unsigned char *const data[MD5_LANES], size_t blocks);

static void digest_lanes_plain(lanes s[STATE], const unsigned char *const data[MD5_LANES],
                               size_t blocks)
{
    digest_lanes(s, data, blocks);
}

#if defined(__x86_64__)

__attribute__((target("avx2"))) static void
digest_lanes_avx2(lanes s[STATE], const unsigned char *const data[MD5_LANES], size_t blocks)
{
    digest_lanes(s, data, blocks);
}

/* One instruction turns a word here, and one computes each of the four functions. */
__attribute__((target("avx512vl"))) static void
digest_lanes_avx512(lanes s[STATE], const unsigned char *const data[MD5_LANES], size_t blocks)
{
    digest_lanes(s, data, blocks);
}

static digest_fn *digest_fn_of_processor(void)
{
    return __builtin_cpu_supports("avx512vl") ? digest_lanes_avx512
           : __builtin_cpu_supports("avx2")   ? digest_lanes_avx2
                                              : digest_lanes_plain;
}

#else

static digest_fn *digest_fn_of_processor(void)
{
    return digest_lanes_plain;
}

#endif

/* What is left of a piece: whole blocks, and less than one. */
struct stream {
    struct md5 *md5;
    const unsigned char *data;
    size_t blocks;
};

/* So many blocks of each.  A lane that is free computes the first stream for nothing. */
static void digest_together(struct stream *streams, size_t count, size_t blocks)
{
    const unsigned char *data[MD5_LANES];
    lanes s[STATE];
    for (size_t i = 0; i < MD5_LANES; i++) {
        const struct stream *from = &streams[i < count ? i : 0];
        data[i] = from->data;
        for (size_t k = 0; k < STATE; k++)
            s[k][i] = from->md5->state[k];
    }
    digest_fn_of_processor()(s, data, blocks);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < STATE; k++)
            streams[i].md5->state[k] = s[k][i];
}

/* Whether `count` streams go side by side.  Lanes take words as they lie in memory. */
static bool goes_together(size_t count)
{
    return count >= LANES_LEAST && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
}

/* The blocks that all have; → streams that have more, which come first then. */
static size_t digest_common(struct stream *streams, size_t count)
{
    size_t blocks = SIZE_MAX, left = 0;
    for (size_t i = 0; i < count; i++)
        blocks = streams[i].blocks < blocks ? streams[i].blocks : blocks;
    if (goes_together(count))
        digest_together(streams, count, blocks);
    else
        for (size_t i = 0; i < count; i++)
            digest_blocks(streams[i].md5->state, streams[i].data, blocks);
    for (size_t i = 0; i < count; i++) {
        streams[i].data += blocks * MD5_BLOCK;
        streams[i].blocks -= blocks;
        if (streams[i].blocks > 0)
            streams[left++] = streams[i];
    }
    return left;
}

/* Completes the block that was begun; → bytes of the piece that this took. */
static size_t fill_rest(struct md5 *m, const unsigned char *data, size_t len)
{
    size_t has = m->len % MD5_BLOCK, takes = MD5_BLOCK - has;
    if (has == 0)
        return 0;
    if (takes > len)
        takes = len;
    memcpy(m->rest + has, data, takes);
    if (has + takes == MD5_BLOCK)
        digest_blocks(m->state, m->rest, 1);
    return takes;
}

void md5_begin(struct md5 *m)
{
    *m = (struct md5){.state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476}};
}

void md5_update(const struct md5_piece *pieces, size_t count)
{
    struct stream streams[MD5_LANES];
    size_t left = 0;
    assert(count <= MD5_LANES);
    for (size_t i = 0; i < count; i++) {
        const struct md5_piece *p = &pieces[i];
        size_t taken = fill_rest(p->md5, p->data, p->len), len = p->len - taken;
        p->md5->len += p->len;
        if (len % MD5_BLOCK > 0)
            memcpy(p->md5->rest, p->data + p->len - len % MD5_BLOCK, len % MD5_BLOCK);
        if (len >= MD5_BLOCK)
            streams[left++] = (struct stream){p->md5, p->data + taken, len / MD5_BLOCK};
    }
    while (left > 0)
        left = digest_common(streams, left);
}

void md5_end(struct md5 *m, unsigned char digest[static MD5_BYTES])
{
    static const unsigned char padding[MD5_BLOCK] = {0x80};
    uint64_t bits = htole64(m->len * 8);
    size_t has = m->len % MD5_BLOCK, room = MD5_BLOCK - sizeof bits;
    struct md5_piece zeros = {m, padding, (has < room ? room : room + MD5_BLOCK) - has};
    md5_update(&zeros, 1);
    md5_update(&(struct md5_piece){m, (const unsigned char *)&bits, sizeof bits}, 1);
    for (size_t k = 0; k < STATE; k++)
        m->state[k] = htole32(m->state[k]);
    memcpy(digest, m->state, MD5_BYTES);
}

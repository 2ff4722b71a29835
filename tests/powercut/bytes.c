#include "tests/powercut/bytes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "common/rng.h"

enum { SIZE_MAX_BYTES = 1536 * 1024 };

void die(const char *what, const struct error *err)
{
    fprintf(stderr, "powercut-store: %s: %s\n", what, err != NULL ? err->message : strerror(errno));
    exit(1);
}

size_t size_of(uint64_t number)
{
    struct rng r;
    rng_seed(&r, number);
    static const uint64_t below[] = {1, 100, 5000, 5000, 20000, 20000, 200000, SIZE_MAX_BYTES};
    return rng_below(&r, below[rng_below(&r, sizeof below / sizeof *below)]);
}

char *bytes_of(uint64_t number, size_t len)
{
    struct rng r;
    rng_seed(&r, ~number);
    uint64_t *words = xcalloc(len / 8 + 1, 8);
    for (size_t i = 0; i < len / 8 + 1; i++)
        words[i] = rng_next(&r);
    return (char *)words;
}

void say_bytes(uint64_t bucket, const char *name, uint64_t number, const char *got, size_t len,
               size_t want_len)
{
    _cleanup_free_ char *want = bytes_of(number, want_len);
    if (bucket == BUCKET_DOCUMENTS)
        memcpy(want, &number, sizeof number);
    if (len == want_len && memcmp(got, want, len) == 0) {
        printf("= %" PRIu64 " %s %" PRIu64 "\n", bucket, name, number);
        return;
    }
    size_t same = 0;
    while (same < len && same < want_len && got[same] == want[same])
        same++;
    printf("! %" PRIu64 " %s torn: %zu bytes of %zu, right up to %zu (operation %" PRIu64 ")\n",
           bucket, name, len, want_len, same, number);
}

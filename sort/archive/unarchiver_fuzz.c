/* Any bytes are an archive or are refused, read forward or with seeks, within the limits.  The
 * first byte chooses. */
#include "sort/archive/unarchiver.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

#define MADE_MAX (4 << 20)
#define MEMBERS_MAX 200

struct bytes {
    const uint8_t *data;
    size_t len, at;
};

static ssize_t bytes_read(void *ctx, void *to, size_t max, struct error *err)
{
    (void)err;
    struct bytes *b = ctx;
    size_t n = b->len - b->at < max ? b->len - b->at : max;
    memcpy(to, b->data + b->at, n);
    b->at += n;
    return (ssize_t)n;
}

static int bytes_seek(void *ctx, uint64_t offset, struct error *err)
{
    (void)err;
    struct bytes *b = ctx;
    assert(offset <= b->len);
    b->at = (size_t)offset;
    return 0;
}

static int read_all(struct unarchiver *u, bool contents, uint64_t *made)
{
    struct unarchiver_member m;
    unsigned members = 0;
    unsigned char piece[4096];
    int rc;
    while ((rc = unarchiver_next(u, &m, NULL)) > 0) {
        assert(m.path[0] != '\0' && strlen(m.link) < 1 << 20 && strchr("0125?", m.type) != NULL);
        assert(++members <= MEMBERS_MAX);
        ssize_t n = 0;
        while (contents && (n = unarchiver_read(u, piece, sizeof piece, NULL)) > 0)
            *made += (uint64_t)n;
        if (n < 0)
            return (int)n;
    }
    return rc;
}

/* libarchive asks for as much memory as a cpio states that a name has, 4 GiB at most, and touches
 * what it fills: the bytes that it gets are bounded. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    static char limit[] = "-malloc_limit_mb=8192";
    static char *longer[64];
    if (*argc >= 63)
        return 0;
    memcpy(longer, *argv, (size_t)*argc * sizeof *longer);
    longer[(*argc)++] = limit;
    *argv = longer;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct unarchiver_limits limits = UNARCHIVER_LIMITS;
    if (size == 0)
        return 0;
    struct bytes b = {.data = data + 1, .len = size - 1};
    const struct unarchiver_source source = {.read = bytes_read,
                                             .seek = (data[0] & 1) != 0 ? bytes_seek : NULL,
                                             .ctx = &b,
                                             .size = b.len,
                                             .what = "fuzz"};
    limits.compressed = (data[0] & 2) != 0;
    limits.formats |= (data[0] & 8) != 0 ? UNARCHIVER_AR | UNARCHIVER_ISO9660 | UNARCHIVER_RAR : 0;
    limits.formats |= (data[0] & 16) != 0 ? UNARCHIVER_7ZIP : 0;
    limits.members = MEMBERS_MAX;
    limits.expand_ratio = 1;
    limits.expand_free = MADE_MAX;
    _cleanup_(unarchiver_freep)
    struct unarchiver *u = NULL;
    uint64_t made = 0;
    int rc = unarchiver_open(&source, &limits, &u, NULL);
    if (rc == 0)
        rc = read_all(u, (data[0] & 4) == 0, &made);
    assert(rc == 0 || rc == E_SHARD_CORRUPT || rc == E_SHARD_UNSUPPORTED);
    assert(made <= MADE_MAX + 4096 || made <= size);
    return 0;
}

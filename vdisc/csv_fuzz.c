/* Any bytes as a list of files, in two ways of cutting them: the same rows, or the same error. */
#include "vdisc/csv.h"

#include <assert.h>
#include <string.h>

#include "common/buf.h"
#include "vdisc/rows.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int take(void *context, uint64_t line, const char *const *fields, size_t count,
                struct error *err)
{
    struct burn_row row;
    buf_printf(context, "%llu:%zu;", (unsigned long long)line, count);
    for (size_t i = 0; i < count; i++)
        buf_puts(context, fields[i]);
    int rc = burn_row_parse(line, fields, count, &row, err);
    return rc > 0 ? 0 : rc;
}

static int parse(const uint8_t *data, size_t size, size_t piece, struct buf *out, struct error *err)
{
    _cleanup_(csv_freep)
    struct csv *c = csv_new(take, out);
    int rc = 0;
    for (size_t at = 0; rc == 0 && at < size; at += piece)
        rc = csv_feed(c, data + at, size - at < piece ? size - at : piece, err);
    return rc == 0 ? csv_end(c, err) : rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_buf_ struct buf a = BUF_INIT, b = BUF_INIT;
    struct error ea = ERROR_INIT, eb = ERROR_INIT;
    int ra = parse(data, size, 1, &a, &ea);
    int rb = parse(data, size, 4096, &b, &eb);
    assert(ra == rb && a.len == b.len && strcmp(ea.message, eb.message) == 0);
    assert(ra == 0 || ea.message[0] != '\0');
    assert(a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
    return 0;
}

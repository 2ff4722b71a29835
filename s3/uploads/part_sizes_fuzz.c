/* Sizes of parts in a text, as any bytes.  The spans of what is read are written as it was. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "s3/uploads/complete_body.h"
#include "s3/uploads/part_sizes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_spans(const char *text, const struct part_sizes *parsed)
{
    _cleanup_free_ uint64_t *sizes = xcalloc(parsed->count, sizeof *sizes);
    char again[PART_SIZES_MAX];
    struct part_span span;
    uint64_t end = 0;
    assert(parsed->count >= 1 && parsed->count <= S3_PARTS_MAX);
    for (unsigned i = 0; i < parsed->count; i++) {
        assert(part_sizes_find(text, i + 1, &span) && span.offset == end);
        sizes[i] = span.size;
        end += span.size;
    }
    assert(end == parsed->total && !part_sizes_find(text, parsed->count + 1, &span));
    assert(part_sizes_print(sizes, parsed->count, again) && strcmp(again, text) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_free_ char *text = xmalloc(size + 1);
    struct part_sizes parsed;
    memcpy(text, data, size);
    text[size] = '\0';
    if (part_sizes_parse(text, &parsed))
        check_spans(text, &parsed);
    return 0;
}

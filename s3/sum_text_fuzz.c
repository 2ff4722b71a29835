/* Checksums in a text, as any bytes.  What is read is written as it was. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "s3/sum_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_free_ char *text = xmalloc(size + 1);
    struct s3_sum_text t;
    char again[S3_SUM_TEXT_MAX];
    memcpy(text, data, size);
    text[size] = '\0';
    if (s3_sum_text_parse(text, &t))
        assert(strcmp(s3_sum_text_print(&t, again), text) == 0);
    return 0;
}

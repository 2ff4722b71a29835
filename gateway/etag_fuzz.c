/* Entity tags of clients and of backends, as any bytes.  A tag that was translated comes back. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "gateway/etag.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_free_ char *text = xmalloc(size + 1);
    memcpy(text, data, size);
    text[size] = '\0';
    _cleanup_buf_ struct buf s3 = BUF_INIT;
    _cleanup_buf_ struct buf native = BUF_INIT;
    etag_put_native(text, &native);
    etag_put_native_one(text, &native);
    etag_put_s3(text, &s3);
    if (strcmp(buf_str(&s3), text) == 0)
        return 0;
    _cleanup_buf_ struct buf back = BUF_INIT;
    _cleanup_buf_ struct buf again = BUF_INIT;
    etag_put_native_one(buf_str(&s3), &back); /* "01.2.3" becomes "1.2.3" */
    etag_put_s3(buf_str(&back), &again);
    assert(strcmp(buf_str(&again), buf_str(&s3)) == 0);
    return 0;
}

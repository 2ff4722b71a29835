/* No text that comes from elsewhere is a signed URL; one that was made is for its object alone. */
#include "access/signed_url.h"

#include <assert.h>

#include "access/testing/fuzz_keys.h"
#include "common/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct token t = {.user = "9f0c0000000000000000000000000001", .expires_ms = 1};

static enum proof_verdict check(const char *text, const struct redirect_call *call)
{
    struct token out;
    return signed_url_check(keys_once(), text, 0, call, &out);
}

/* The input is a text, and the name of an object. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    _cleanup_(buf_done)
    struct buf url = BUF_INIT;
    buf_append(&text, data, size);
    struct redirect_call call = {.reads = true, .method = "GET", .object = buf_str(&text)};
    assert(check(buf_str(&text), &call) == PROOF_INVALID);
    signed_url_put(keys_once(), &t, &call, &url);
    assert(check(buf_str(&url), &call) == PROOF_VALID);
    call.object = size > 0 && data[0] != '\0' ? buf_str(&text) + 1 : "x";
    assert(check(buf_str(&url), &call) == PROOF_INVALID);
    return 0;
}

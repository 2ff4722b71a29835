/* No text that comes from elsewhere is a token or a redirect proof. */
#include "access/redirect_proof.h"

#include <assert.h>

#include "access/testing/fuzz_keys.h"
#include "common/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct proof_keys *keys = keys_once();
    const struct redirect_call call = {.reads = true, .method = "GET", .object = "o"};
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    struct token t;
    char user[TOKEN_USER_CHARS + 1];
    buf_append(&text, data, size);
    assert(token_check(keys, buf_str(&text), 0, &t) == PROOF_INVALID);
    assert(redirect_proof_check(keys, buf_str(&text), 0, &call, user) == PROOF_INVALID);
    return 0;
}

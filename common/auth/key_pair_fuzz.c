/* Whatever the text is: two keys, or none and an error. */
#include "common/auth/key_pair.h"

#include <assert.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct key_pair k;
    struct error err = ERROR_INIT;
    int code = key_pair_parse((const char *)data, size, &k, &err);
    assert((code == 0) == (k.access_key != NULL) && (code == 0) == (k.secret_key != NULL));
    assert(code == err.code);
    key_pair_done(&k);
    return 0;
}

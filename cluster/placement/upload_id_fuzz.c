/* Any text either is refused with a sentence, or is an id that is written as it was read. */
#include "cluster/placement/upload_id.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_free_ char *text = xstrndup((const char *)data, size);
    char again[UPLOAD_ID_CHARS + 1];
    struct upload_id id;
    struct error err = ERROR_INIT;
    if (upload_id_parse(text, &id, &err) != 0)
        assert(err.code == E_INVALID && err.message[0] != '\0');
    else
        assert(strcmp(upload_id_text(&id, again), text) == 0);
    return 0;
}

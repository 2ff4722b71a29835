/* A text that is a token is the one text that is printed of it. */
#include "plog/token.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct plog_token t;
    char again[PLOG_TOKEN_MAX];
    char *text = xmalloc(size + 1);
    memcpy(text, data, size);
    text[size] = '\0';
    if (plog_token_parse(text, &t, NULL) == 0) {
        plog_token_print(&t, again);
        assert(strcmp(again, text) == 0);
    }
    free(text);
    return 0;
}

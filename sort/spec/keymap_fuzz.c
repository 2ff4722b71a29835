/* Any bytes as an external key map, in pieces: refused, or a map that finds every name the same way
 * however it came.  The first byte chooses the policies and the size of the pieces. */
#include "sort/spec/keymap.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct sort_spec spec = {.ekm_separator = (char[]){"\t"},
                                .output_extension = (char[]){".tar"}};

static struct keymap *fill(const uint8_t *data, size_t size, size_t piece)
{
    const struct keymap_config config = {.spec = &spec, .memory_bytes = 16 * 1024 * 1024};
    _cleanup_(keymap_freep)
    struct keymap *m = keymap_new(&config);
    struct error err = ERROR_INIT;
    int rc = 0;
    for (size_t at = 0; rc == 0 && at < size; at += piece)
        rc = keymap_feed(m, data + at, size - at < piece ? size - at : piece, &err);
    if (rc == 0)
        rc = keymap_finish(m, &err);
    assert(rc == 0 || (err.code == rc && err.message[0] != '\0'));
    return rc == 0 ? steal(m) : NULL;
}

/* Each line as a name, too. */
static void look(const struct keymap *a, const struct keymap *b, const uint8_t *data, size_t size)
{
    struct keymap_search *sa = keymap_search_new(a);
    struct keymap_search *sb = keymap_search_new(b);
    for (size_t at = 0, end; at < size; at = end + 1) {
        for (end = at; end < size && data[end] != '\n' && data[end] != '\t'; end++)
            ;
        size_t len = end - at < 1000 ? end - at : 1000;
        uint32_t fa = 0;
        uint32_t fb = 0;
        int ra = keymap_find(sa, (const char *)data + at, len, &fa, NULL);
        int rb = keymap_find(sb, (const char *)data + at, len, &fb, NULL);
        assert(ra == rb && fa == fb && (ra <= 0 || fa < keymap_formats(a)));
    }
    keymap_search_free(sa);
    keymap_search_free(sb);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    spec.ekm_malformed_line = data[0] & 1 ? SORT_IGNORE : SORT_ABORT;
    spec.ekm_keys = (enum sort_ekm_keys)((data[0] >> 1 & 3) % 3);
    spec.key_rule = data[0] & 8 ? SORT_KEY_LAST_DOT : SORT_KEY_FIRST_DOT;
    _cleanup_(keymap_freep)
    struct keymap *whole = fill(data + 1, size - 1, size);
    _cleanup_(keymap_freep)
    struct keymap *pieces = fill(data + 1, size - 1, 1 + (data[0] >> 4));
    assert((whole == NULL) == (pieces == NULL));
    if (whole != NULL) {
        assert(keymap_checksum(whole) == keymap_checksum(pieces));
        look(whole, pieces, data + 1, size - 1);
    }
    return 0;
}

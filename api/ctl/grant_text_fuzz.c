/* A grant as users write it: it is refused with a sentence, or its document says what it says. */
#include "api/ctl/grant_text.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *string_of(json_t *grant, const char *field)
{
    return json_string_value(json_object_get(grant, field));
}

/* The text that the document says: rights without empty ones. */
static void print(json_t *grant, struct buf *out)
{
    json_t *rights = json_object_get(grant, "rights");
    assert(json_array_size(rights) > 0);
    for (size_t i = 0; i < json_array_size(rights); i++) {
        const char *right = json_string_value(json_array_get(rights, i));
        assert(right[0] != '\0' && strpbrk(right, ",:") == NULL);
        buf_printf(out, "%s%s", i > 0 ? "," : "", right);
    }
    const char *bucket = string_of(grant, "bucket"), *prefix = string_of(grant, "prefix");
    assert(bucket != NULL || prefix == NULL);
    if (bucket != NULL)
        buf_printf(out, ":%s", bucket);
    if (prefix != NULL)
        buf_printf(out, "/%s", prefix);
}

/* The text that a user wrote, without the empty rights in it. */
static void print_tidy(const char *text, struct buf *out)
{
    size_t rights = strcspn(text, ":");
    for (size_t i = 0; i < rights; i++) {
        bool ends = i + 1 == rights || text[i + 1] == ',';
        if (text[i] != ',')
            buf_append(out, text + i, 1);
        else if (out->len > 0 && !ends)
            buf_puts(out, ",");
    }
    buf_puts(out, text + rights);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_free_ char *text = xstrndup((const char *)data, size);
    _cleanup_json_ json_t *grant = NULL;
    struct error err = ERROR_INIT;
    if (grant_parse(text, &grant, &err) != 0) {
        assert(err.code == E_INVALID && err.message[0] != '\0');
        return 0;
    }
    _cleanup_(buf_done)
    struct buf said = BUF_INIT, wanted = BUF_INIT;
    print(grant, &said);
    print_tidy(text, &wanted);
    assert(strcmp(buf_str(&said), buf_str(&wanted)) == 0);
    return 0;
}

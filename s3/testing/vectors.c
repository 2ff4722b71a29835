#include "s3/testing/vectors.h"

#include <openssl/evp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

const char *vectors_path;

int vectors_load(void **state)
{
    json_error_t why;
    *state = json_load_file(vectors_path, 0, &why);
    if (*state == NULL)
        fail_msg("%s: %s", vectors_path, why.text);
    return 0;
}

int vectors_drop(void **state)
{
    json_decref(*state);
    return 0;
}

json_t *vectors_section(void **state, const char *name)
{
    json_t *rows = json_object_get(*state, name);
    assert_true(json_array_size(rows) > 0);
    return rows;
}

const char *vectors_text(json_t *row, const char *field)
{
    const char *text = json_string_value(json_object_get(row, field));
    assert_non_null(text);
    return text;
}

const char *vectors_bytes(json_t *row, const char *field, struct arena *arena, size_t *len)
{
    const char *text = vectors_text(row, field);
    size_t chars = strlen(text), padding = 0;
    char *out = arena_bytes(arena, chars + 1);
    while (padding < chars && text[chars - 1 - padding] == '=')
        padding++;
    *len = chars / 4 * 3 - padding;
    assert_true(EVP_DecodeBlock((unsigned char *)out, (const unsigned char *)text, (int)chars) >=
                0);
    return out;
}

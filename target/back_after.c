#include "target/back_after.h"

#include <openssl/evp.h>
#include <string.h>

enum { BASE64_MAX = (ATTR_NAME_MAX + 2) / 3 * 4 };

void back_after_put(struct buf *meta, const char *new_name)
{
    unsigned char text[BASE64_MAX + 1];
    int len = EVP_EncodeBlock(text, (const unsigned char *)new_name, (int)strlen(new_name));
    buf_append(meta, BACK_AFTER, sizeof BACK_AFTER);
    buf_append(meta, (const char *)text, (size_t)len + 1);
}

/* It is padded with NULs, which no name has. */
static bool decode(const char *value, char new_name[static ATTR_NAME_MAX + 1])
{
    unsigned char text[BASE64_MAX];
    size_t len = strlen(value);
    if (len > BASE64_MAX)
        return false;
    int size = EVP_DecodeBlock(text, (const unsigned char *)value, (int)len);
    size_t name_len = size > 0 ? strnlen((const char *)text, (size_t)size) : 0;
    if (name_len == 0 || name_len > ATTR_NAME_MAX)
        return false;
    memcpy(new_name, text, name_len);
    new_name[name_len] = '\0';
    return true;
}

bool back_after_get(const struct attr *tombstone, char new_name[static ATTR_NAME_MAX + 1])
{
    size_t pos = 0;
    const char *name, *value;
    while (attr_meta_next(tombstone, &pos, &name, &value)) {
        if (strcmp(name, BACK_AFTER) == 0)
            return decode(value, new_name);
    }
    return false;
}

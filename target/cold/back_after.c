#include "target/cold/back_after.h"

#include <openssl/evp.h>
#include <string.h>

#include "common/parse.h"

enum { BASE64_MAX = (ATTR_NAME_MAX + 2) / 3 * 4 };

void back_after_put(struct buf *meta, const struct back_after *a)
{
    unsigned char text[BASE64_MAX + 1];
    char version[VERSION_TEXT_MAX], hex[2 * CHECKSUM_MAX + 1] = "";
    (void)EVP_EncodeBlock(text, (const unsigned char *)a->name, (int)strlen(a->name));
    attr_meta_add(meta, BACK_AFTER, (const char *)text);
    if (a->sum.type != CHECKSUM_NONE)
        checksum_hex(&a->sum, hex);
    _cleanup_buf_ struct buf is = BUF_INIT;
    buf_printf(&is, "%s/%llu/%s/%s", version_format(&a->version, version),
               (unsigned long long)a->size, checksum_name(a->sum.type), hex);
    attr_meta_add(meta, BACK_AFTER_IS, buf_str(&is));
}

/* It is padded with NULs, which no name has. */
static bool decode_name(const char *value, char new_name[static ATTR_NAME_MAX + 1])
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

/* "1.7.3/1234/xxh3/0123456789abcdef" */
static bool decode_is(const char *value, struct back_after *out)
{
    char text[4][VERSION_TEXT_MAX + 2 * CHECKSUM_MAX];
    size_t part = 0;
    for (const char *end; part < 4; part++, value = end + 1) {
        end = part < 3 ? strchr(value, '/') : value + strlen(value);
        if (end == NULL || (size_t)(end - value) >= sizeof text[0])
            return false;
        memcpy(text[part], value, (size_t)(end - value));
        text[part][end - value] = '\0';
        if (*end == '\0')
            break;
    }
    enum checksum_type type;
    if (version_parse(text[0], &out->version, NULL) != 0 ||
        parse_u64(text[1], &out->size, NULL) != 0 || checksum_from_name(text[2], &type, NULL) != 0)
        return false;
    return type == CHECKSUM_NONE || checksum_parse(type, text[3], &out->sum, NULL) == 0;
}

bool back_after_get(const struct attr *tombstone, struct back_after *out)
{
    size_t pos = 0;
    const char *name, *value;
    bool named = false;
    struct back_after is = {.size = 0};
    *out = is;
    while (attr_meta_next(tombstone, &pos, &name, &value)) {
        if (strcmp(name, BACK_AFTER) == 0)
            named = decode_name(value, out->name);
        else if (strcmp(name, BACK_AFTER_IS) == 0 && !decode_is(value, &is))
            is = (struct back_after){.size = 0};
    }
    out->version = is.version;
    out->size = is.size;
    out->sum = is.sum;
    return named;
}

enum back_after_step back_after_step(const struct back_after *a, const struct object_held *held,
                                     bool settled)
{
    if (held->pending || held->uploading || held->unreadable)
        return BACK_AFTER_WAIT;
    bool as_new = held->found && version_compare(&held->version, &a->version) >= 0;
    if (as_new && (!held->visible || held->sent))
        return BACK_AFTER_GO;
    return settled ? BACK_AFTER_COMPARE : BACK_AFTER_WAIT;
}

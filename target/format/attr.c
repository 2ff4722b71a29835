#include "target/format/attr.h"

#include <assert.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "common/buf.h"
#include "target/format/codec.h"

enum {
    FORMAT = 1,
    CHECK_SIZE = 4,
    FLAGS_OF_CALLERS = ATTR_TOMBSTONE | ATTR_DURABLE | ATTR_OVER_TOMBSTONE | ATTR_PENDING,
    FLAGS_KNOWN =
        FLAGS_OF_CALLERS | ATTR_HAS_CONTENT_TYPE | ATTR_HAS_JOB | ATTR_HAS_META | ATTR_HAS_SLICES,
};

static uint32_t attr_check(const void *data, size_t len)
{
    return (uint32_t)XXH3_64bits(data, len);
}

static int meta_check(const struct attr *a, struct error *err)
{
    if (a->meta_len > ATTR_META_MAX)
        return error_set(err, E_INVALID, "user metadata has %zu bytes, at most %d are kept",
                         a->meta_len, ATTR_META_MAX);
    size_t pos = 0;
    const char *name, *value;
    while (attr_meta_next(a, &pos, &name, &value)) {
        if (*name == '\0')
            return error_set(err, E_INVALID, "a user metadata name is empty");
    }
    if (pos != a->meta_len)
        return error_set(err, E_INVALID, "user metadata ends within a pair");
    return 0;
}

static int attr_check_limits(const struct attr *a, struct error *err)
{
    size_t name_len = strlen(a->name);
    if (name_len == 0 || name_len > ATTR_NAME_MAX)
        return error_set(err, E_NAME, "an object name has 1 to %d bytes, not %zu", ATTR_NAME_MAX,
                         name_len);
    if (a->content_type != NULL && strlen(a->content_type) > ATTR_CONTENT_TYPE_MAX)
        return error_set(err, E_INVALID, "the content type has more than %d bytes",
                         ATTR_CONTENT_TYPE_MAX);
    if (a->job != NULL && (*a->job == '\0' || strlen(a->job) > ATTR_JOB_MAX))
        return error_set(err, E_INVALID, "a job id has 1 to %d bytes", ATTR_JOB_MAX);
    if (a->slices != NULL && (*a->slices == '\0' || strlen(a->slices) > ATTR_SLICES_MAX))
        return error_set(err, E_INVALID, "a manifest of slices has 1 to %d bytes", ATTR_SLICES_MAX);
    if (a->modified_ms < 0)
        return error_set(err, E_INVALID, "the time of modification is before 1970");
    return meta_check(a, err);
}

static unsigned attr_all_flags(const struct attr *a)
{
    return (a->flags & FLAGS_OF_CALLERS) | (a->content_type != NULL ? ATTR_HAS_CONTENT_TYPE : 0) |
           (a->job != NULL ? ATTR_HAS_JOB : 0) | (a->meta_len > 0 ? ATTR_HAS_META : 0) |
           (a->slices != NULL ? ATTR_HAS_SLICES : 0);
}

int attr_encode(const struct attr *a, unsigned char out[static ATTR_ENCODED_MAX], size_t *len,
                struct error *err)
{
    int code = attr_check_limits(a, err);
    if (code != 0)
        return code;
    unsigned char *at = out;
    *at++ = FORMAT;
    *at++ = (unsigned char)attr_all_flags(a);
    *at++ = (unsigned char)a->checksum.type;
    at = codec_put_varint(at, a->size);
    at = codec_put_version(at, &a->version);
    at = codec_put_varint(at, (uint64_t)a->modified_ms);
    at = codec_put_bytes(at, a->checksum.bytes, checksum_size(a->checksum.type));
    at = codec_put_text(at, a->name);
    if (a->content_type != NULL)
        at = codec_put_text(at, a->content_type);
    if (a->job != NULL)
        at = codec_put_text(at, a->job);
    if (a->meta_len > 0) {
        at = codec_put_bytes(at, a->meta, a->meta_len);
        *at++ = '\0';
    }
    if (a->slices != NULL)
        at = codec_put_text(at, a->slices);
    at = codec_put_u32(at, attr_check(out, (size_t)(at - out)));
    *len = (size_t)(at - out);
    assert(*len <= ATTR_ENCODED_MAX);
    return 0;
}

static void get_meta(struct codec_reader *r, struct attr *a)
{
    a->meta = (const char *)r->at;
    while (!r->failed && *codec_get_text(r, ATTR_META_MAX) != '\0')
        codec_get_text(r, ATTR_META_MAX);
    if (r->failed)
        return;
    a->meta_len = (size_t)((const char *)r->at - a->meta - 1);
    r->failed = a->meta_len == 0 || a->meta_len > ATTR_META_MAX;
}

static bool attr_checked(const unsigned char *data, size_t len)
{
    unsigned char want[CHECK_SIZE];
    codec_put_u32(want, attr_check(data, len - CHECK_SIZE));
    return memcmp(want, data + len - CHECK_SIZE, CHECK_SIZE) == 0;
}

static void attr_read(struct codec_reader *r, struct attr *a)
{
    unsigned flags = codec_get_u8(r);
    unsigned type = codec_get_u8(r);
    *a = (struct attr){.flags = flags & FLAGS_OF_CALLERS};
    a->size = codec_get_varint(r);
    a->version = codec_get_version(r);
    a->modified_ms = codec_get_time_ms(r);
    codec_get_digest(r, type, &a->checksum);
    a->name = codec_get_text(r, ATTR_NAME_MAX);
    r->failed |= *a->name == '\0';
    if (flags & ATTR_HAS_CONTENT_TYPE)
        a->content_type = codec_get_text(r, ATTR_CONTENT_TYPE_MAX);
    if (flags & ATTR_HAS_JOB) {
        a->job = codec_get_text(r, ATTR_JOB_MAX);
        r->failed |= *a->job == '\0';
    }
    if (flags & ATTR_HAS_META)
        get_meta(r, a);
    if (flags & ATTR_HAS_SLICES) {
        a->slices = codec_get_text(r, ATTR_SLICES_MAX);
        r->failed |= *a->slices == '\0';
    }
}

int attr_decode(const unsigned char *data, size_t len, struct attr *a, struct error *err)
{
    if (len < 2 + CHECK_SIZE)
        return error_set(err, E_CORRUPT, "the object's attribute has only %zu bytes", len);
    if (data[0] != FORMAT)
        return error_set(err, E_UNSUPPORTED, "the object's attribute has format %u, not %d",
                         data[0], FORMAT);
    if (!attr_checked(data, len))
        return error_set(err, E_CORRUPT, "the object's attribute does not match its checksum");
    if ((data[1] & ~(unsigned)FLAGS_KNOWN) != 0)
        return error_set(err, E_UNSUPPORTED, "the object's attribute has unknown flags 0x%x",
                         data[1]);
    struct codec_reader r = {.at = data + 1, .end = data + len - CHECK_SIZE};
    attr_read(&r, a);
    if (r.failed || r.at != r.end)
        return error_set(err, E_CORRUPT, "the object's attribute is malformed");
    return 0;
}

void attr_rebase(struct attr *a, const unsigned char *from, const unsigned char *to)
{
    const char **texts[] = {&a->name, &a->content_type, &a->job, &a->meta, &a->slices};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (*texts[i] != NULL)
            *texts[i] = (const char *)to + (*texts[i] - (const char *)from);
    }
}

bool attr_meta_next(const struct attr *a, size_t *pos, const char **name, const char **value)
{
    if (*pos >= a->meta_len)
        return false;
    const char *at = a->meta + *pos, *end = a->meta + a->meta_len;
    const char *name_end = memchr(at, '\0', (size_t)(end - at));
    if (name_end == NULL)
        return false;
    const char *value_end = memchr(name_end + 1, '\0', (size_t)(end - name_end - 1));
    if (value_end == NULL)
        return false;
    *name = at;
    *value = name_end + 1;
    *pos = (size_t)(value_end + 1 - a->meta);
    return true;
}

const char *attr_meta_find(const struct attr *a, const char *name)
{
    size_t pos = 0;
    const char *other, *value;
    while (attr_meta_next(a, &pos, &other, &value)) {
        if (strcmp(name, other) == 0)
            return value;
    }
    return NULL;
}

bool attr_meta_extend(struct attr *a, const char *name, const char *value,
                      char out[static ATTR_META_MAX])
{
    size_t name_len = strlen(name) + 1, value_len = strlen(value) + 1;
    if (a->meta_len + name_len + value_len > ATTR_META_MAX)
        return false;
    if (a->meta_len > 0 && a->meta != out)
        memcpy(out, a->meta, a->meta_len);
    memcpy(out + a->meta_len, name, name_len);
    memcpy(out + a->meta_len + name_len, value, value_len);
    a->meta = out;
    a->meta_len += name_len + value_len;
    return true;
}

void attr_meta_add(struct buf *meta, const char *name, const char *value)
{
    buf_append(meta, name, strlen(name) + 1);
    buf_append(meta, value, strlen(value) + 1);
}

#include "target/format/ec_manifest.h"

#include <inttypes.h>
#include <string.h>

#include "common/parse.h"
#include "target/format/attr.h"

enum { FORMAT = 1, FIELDS = 8, FIELD_MAX = 2 * CHECKSUM_MAX + 1, TAG_DIGITS = 16 };

_Static_assert((int)EC_MANIFEST_TEXT_MAX == (int)ATTR_SLICES_MAX + 1, "one limit");

const char *ec_manifest_text(const struct ec_manifest *m, char out[static EC_MANIFEST_TEXT_MAX])
{
    char hex[2 * CHECKSUM_MAX + 1];
    const struct ec_layout *l = &m->layout;
    checksum_hex(&m->checksum, hex);
    snprintf(out, EC_MANIFEST_TEXT_MAX, "%d:%u:%u:%" PRIu32 ":%" PRIu64 ":%016" PRIx64 ":%s:%s",
             FORMAT, l->k, l->m, l->unit, l->length, m->tag, checksum_name(m->checksum.type), hex);
    return out;
}

/* The fields, each ended; false: not so many, or one that is too long. */
static bool split(const char *text, char fields[FIELDS][FIELD_MAX])
{
    for (int i = 0; i < FIELDS; i++) {
        const char *end = strchr(text, ':');
        size_t len = end != NULL ? (size_t)(end - text) : strlen(text);
        if (len >= FIELD_MAX || (end == NULL) != (i == FIELDS - 1))
            return false;
        memcpy(fields[i], text, len);
        fields[i][len] = '\0';
        text += len + 1;
    }
    return true;
}

static bool number(const char *text, uint64_t most, uint64_t *out)
{
    return parse_u64(text, out, NULL) == 0 && *out <= most;
}

static bool take(char fields[FIELDS][FIELD_MAX], struct ec_manifest *m)
{
    uint64_t k, parity, unit;
    enum checksum_type type;
    *m = (struct ec_manifest){.tag = 0};
    if (!number(fields[1], EC_DATA_MAX, &k) || !number(fields[2], EC_PARITY_MAX, &parity) ||
        !number(fields[3], EC_UNIT_MAX, &unit) ||
        !number(fields[4], EC_LENGTH_MAX, &m->layout.length) ||
        ec_tag_parse(fields[5], strlen(fields[5]), &m->tag, NULL) != 0 ||
        checksum_from_name(fields[6], &type, NULL) != 0)
        return false;
    m->layout.k = (unsigned)k;
    m->layout.m = (unsigned)parity;
    m->layout.unit = (uint32_t)unit;
    m->checksum.type = type;
    if (type == CHECKSUM_NONE ? *fields[7] != '\0'
                              : checksum_parse(type, fields[7], &m->checksum, NULL) != 0)
        return false;
    return ec_layout_check(&m->layout, NULL) == 0;
}

int ec_manifest_parse(const char *text, struct ec_manifest *m, struct error *err)
{
    char fields[FIELDS][FIELD_MAX];
    uint64_t format;
    size_t len = strcspn(text, ":");
    char first[FIELD_MAX];
    snprintf(first, sizeof first, "%.*s", (int)(len < FIELD_MAX ? len : 0), text);
    if (parse_u64(first, &format, NULL) == 0 && format > FORMAT)
        return error_set(err, E_UNSUPPORTED, "the manifest has format %s, not %d", first, FORMAT);
    if (!split(text, fields) || strcmp(fields[0], "1") != 0 || !take(fields, m))
        return error_set(err, E_CORRUPT, "'%.80s' is no manifest of slices", text);
    return 0;
}

const char *ec_slice_name(uint64_t tag, unsigned index, char out[static EC_SLICE_NAME_MAX])
{
    snprintf(out, EC_SLICE_NAME_MAX, "%016" PRIx64 ".%u", tag, index % EC_SLICES_MAX);
    return out;
}

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int ec_tag_parse(const char *text, size_t len, uint64_t *tag, struct error *err)
{
    uint64_t value = 0;
    bool good = len == TAG_DIGITS;
    for (size_t i = 0; i < len && good; i++) {
        good = digit(text[i]) >= 0;
        value = value << 4 | (uint64_t)(digit(text[i]) & 15);
    }
    *tag = value;
    return good ? 0 : error_set(err, E_INVALID, "'%.40s' is no tag of slices", text);
}

int ec_slice_name_parse(const char *text, uint64_t *tag, unsigned *index, struct error *err)
{
    uint64_t value;
    const char *dot = strchr(text, '.');
    char again[EC_SLICE_NAME_MAX];
    if (dot == NULL || ec_tag_parse(text, (size_t)(dot - text), tag, NULL) != 0 ||
        !number(dot + 1, EC_SLICES_MAX - 1, &value) ||
        strcmp(text, ec_slice_name(*tag, (unsigned)value, again)) != 0)
        return error_set(err, E_INVALID, "'%.40s' is no name of a slice", text);
    *index = (unsigned)value;
    return 0;
}

uint64_t ec_manifest_tag(const struct attr *a)
{
    struct ec_manifest m;
    return a->slices != NULL && ec_manifest_parse(a->slices, &m, NULL) == 0 ? m.tag : 0;
}

int ec_manifest_show(struct attr *a, struct error *err)
{
    struct ec_manifest m;
    if (a->slices == NULL)
        return 0;
    int code = ec_manifest_parse(a->slices, &m, err);
    if (code != 0)
        return code;
    a->size = m.layout.length;
    a->checksum = m.checksum;
    return 0;
}

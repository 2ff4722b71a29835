/* Keys stand one behind the other in one block, each with its length and its format's number; a
 * table of their places, open-addressed by the hash of the key, finds them.  Places are counted in
 * units of four bytes, so that four bytes a place do for 16 GiB of keys. */
#include "sort/spec/keymap.h"

#include <string.h>
#include <xxhash.h>

#include "common/buf.h"
#include "common/checksum.h"
#include "common/mem.h"
#include "common/rng.h"
#include "io/varint.h"
#include "sort/spec/keymap_read.h"
#include "sort/spec/pattern.h"
#include "sort/spec/spec_parts.h"

#define UNIT 4
#define PLACES_FIRST 1024
#define BLOCK_FIRST 65536
#define BLOCK_MAX ((uint64_t)UINT32_MAX * UNIT - UNIT)
#define FORMAT_BYTES 1024 /* a parsed template, about */

struct keymap {
    struct keymap_config config;
    uint64_t seed;
    unsigned char *block;
    size_t used, room;
    uint32_t *places; /* in units, plus 1; 0: free */
    size_t mask;
    uint64_t keys;
    struct patterns *patterns;
    struct name_template **formats;
    uint32_t *format_places; /* the same table for formats: numbers plus 1 */
    uint32_t format_count, format_mask;
    struct buf last_text; /* of the format before, as it was written … */
    uint32_t last_format; /* … and its number */
    struct checksum *checksum;
    uint64_t sum;
    enum { UNDECIDED, LINES, JSON } form;
    struct keymap_lines lines;
    struct keymap_json json;
    struct keymap_sink sink;
};

static int add_entry(void *ctx, const struct keymap_entry *e, struct error *err);
static int malformed(void *ctx, uint64_t line, const char *why, struct error *err);

struct keymap *keymap_new(const struct keymap_config *config)
{
    struct keymap *m = xcalloc(1, sizeof *m);
    m->config = *config;
    random_bytes(&m->seed, sizeof m->seed);
    m->places = xcalloc(PLACES_FIRST, sizeof *m->places);
    m->mask = PLACES_FIRST - 1;
    m->format_places = xcalloc(PLACES_FIRST, sizeof *m->format_places);
    m->format_mask = PLACES_FIRST - 1;
    m->patterns = patterns_new();
    m->checksum = checksum_new(CHECKSUM_XXH3);
    m->lines.separator = config->spec->ekm_separator;
    m->sink = (struct keymap_sink){.add = add_entry, .malformed = malformed, .ctx = m};
    return m;
}

void keymap_free(struct keymap *m)
{
    if (m == NULL)
        return;
    for (uint32_t i = 0; i < m->format_count; i++)
        template_free(m->formats[i]);
    free(m->formats);
    free(m->format_places);
    free(m->places);
    free(m->block);
    patterns_free(m->patterns);
    buf_done(&m->last_text);
    if (m->checksum != NULL)
        checksum_free(m->checksum);
    keymap_lines_done(&m->lines);
    keymap_json_done(&m->json);
    free(m);
}

uint64_t keymap_checksum(const struct keymap *m)
{
    return m->sum;
}

uint64_t keymap_keys(const struct keymap *m)
{
    return m->keys + patterns_count(m->patterns);
}

uint32_t keymap_formats(const struct keymap *m)
{
    return m->format_count;
}

const struct name_template *keymap_template(const struct keymap *m, uint32_t format)
{
    return m->formats[format];
}

uint64_t keymap_bytes(const struct keymap *m)
{
    return m->room + (m->mask + 1) * sizeof *m->places +
           (m->format_mask + 1) * sizeof *m->format_places +
           (uint64_t)m->format_count * FORMAT_BYTES + patterns_bytes(m->patterns);
}

static int check_memory(const struct keymap *m, uint64_t more, struct error *err)
{
    if (keymap_bytes(m) + more <= m->config.memory_bytes)
        return 0;
    return error_set(
        err, E_NOMEM,
        "the external key map needs more than %llu bytes (sort_key_map_memory); it has "
        "%llu keys so far",
        (unsigned long long)m->config.memory_bytes, (unsigned long long)keymap_keys(m));
}

/* --- what is malformed ------------------------------------------------------------------------ */

static int malformed(void *ctx, uint64_t line, const char *why, struct error *err)
{
    struct keymap *m = ctx;
    char text[600];
    if (line > 0)
        snprintf(text, sizeof text, "line %llu of the external key map: %s",
                 (unsigned long long)line, why);
    else
        snprintf(text, sizeof text, "byte %llu of the external key map: %s",
                 (unsigned long long)m->json.offset, why);
    if (m->config.spec->ekm_malformed_line == SORT_ABORT)
        return error_set(err, E_SPEC, "%s", text);
    if (m->config.spec->ekm_malformed_line == SORT_WARN && m->config.warn != NULL)
        m->config.warn(m->config.ctx, text);
    return 0;
}

/* --- formats ---------------------------------------------------------------------------------- */

/* Of its number plus 1, or of a 0 to be filled. */
static uint32_t *format_place(const struct keymap *m, const char *text)
{
    size_t i = XXH3_64bits_withSeed(text, strlen(text), m->seed) & m->format_mask;
    while (m->format_places[i] != 0 &&
           strcmp(template_text(m->formats[m->format_places[i] - 1]), text) != 0)
        i = (i + 1) & m->format_mask;
    return &m->format_places[i];
}

static void formats_grow(struct keymap *m)
{
    if (2 * m->format_count < m->format_mask)
        return;
    m->format_mask = 2 * m->format_mask + 1;
    free(m->format_places);
    m->format_places = xcalloc((size_t)m->format_mask + 1, sizeof *m->format_places);
    for (uint32_t i = 0; i < m->format_count; i++)
        *format_place(m, template_text(m->formats[i])) = i + 1;
}

static int format_add(struct keymap *m, struct name_template *t, uint32_t *number,
                      struct error *err)
{
    uint32_t *place = format_place(m, template_text(t));
    int rc = 0;
    if (*place != 0)
        *number = *place - 1;
    else if (m->format_count == KEYMAP_FORMATS_MAX)
        rc = error_set(err, E_TOO_LARGE, "the external key map has more than %d formats",
                       KEYMAP_FORMATS_MAX);
    else
        rc = check_memory(m, FORMAT_BYTES, err);
    if (rc != 0 || *place != 0) {
        template_free(t);
        return rc;
    }
    *number = m->format_count;
    *place = m->format_count + 1;
    m->formats = xrealloc(m->formats, (m->format_count + 1) * sizeof *m->formats);
    m->formats[m->format_count++] = t;
    formats_grow(m);
    return 0;
}

/* *skip: it is none, and the request puts up with that. */
static int format_of(struct keymap *m, const struct keymap_entry *e, uint32_t *number, bool *skip,
                     struct error *err)
{
    struct error why = ERROR_INIT;
    struct name_template *t = NULL;
    if (m->format_count > 0 && e->format_len == m->last_text.len &&
        memcmp(e->format, buf_str(&m->last_text), e->format_len) == 0) {
        *number = m->last_format;
        return 0;
    }
    *skip = true;
    if (e->format_len == 0 || memchr(e->format, '\0', e->format_len) != NULL)
        return malformed(m, e->line, "the format is empty, or has a NUL", err);
    _cleanup_free_ char *text = xstrndup(e->format, e->format_len);
    if (spec_output_template("format", text, m->config.spec->output_extension, &t, &why) != 0)
        return malformed(m, e->line, why.message, err);
    *skip = false;
    int rc = format_add(m, t, number, err);
    buf_clear(&m->last_text);
    buf_append(&m->last_text, e->format, e->format_len);
    m->last_format = *number;
    return rc;
}

/* --- keys ------------------------------------------------------------------------------------- */

struct entry {
    const char *key;
    uint64_t len;
    uint64_t format;
};

static struct entry entry_at(const struct keymap *m, uint32_t place)
{
    struct entry e = {0};
    size_t at = (size_t)(place - 1) * UNIT;
    at += varint_get(m->block + at, m->used - at, &e.len);
    e.key = (const char *)m->block + at;
    at += (size_t)e.len;
    varint_get(m->block + at, m->used - at, &e.format);
    return e;
}

static uint32_t *key_place(const struct keymap *m, const char *key, size_t len)
{
    size_t i = XXH3_64bits_withSeed(key, len, m->seed) & m->mask;
    while (m->places[i] != 0) {
        struct entry e = entry_at(m, m->places[i]);
        if (e.len == len && memcmp(e.key, key, len) == 0)
            break;
        i = (i + 1) & m->mask;
    }
    return &m->places[i];
}

static int places_grow(struct keymap *m, struct error *err)
{
    size_t count = m->mask + 1;
    if (4 * (m->keys + 1) <= 3 * count)
        return 0;
    int rc = check_memory(m, count * sizeof *m->places, err);
    if (rc != 0)
        return rc;
    uint32_t *old = m->places;
    m->places = xcalloc(2 * count, sizeof *m->places);
    m->mask = 2 * count - 1;
    for (size_t i = 0; i < count; i++) {
        if (old[i] != 0) {
            struct entry e = entry_at(m, old[i]);
            *key_place(m, e.key, (size_t)e.len) = old[i];
        }
    }
    free(old);
    return 0;
}

/* Room for one more entry of a key this long. */
static int block_grow(struct keymap *m, size_t len, struct error *err)
{
    size_t needed = m->used + len + 2 * VARINT_MAX + UNIT;
    if (needed <= m->room)
        return 0;
    size_t room = m->room < BLOCK_FIRST ? BLOCK_FIRST : m->room + m->room / 4;
    room = room > needed ? room : needed;
    if (room > BLOCK_MAX)
        return error_set(err, E_NOMEM, "the external key map has too many keys");
    int rc = check_memory(m, room - m->room, err);
    if (rc != 0)
        return rc;
    m->block = xrealloc(m->block, room);
    m->room = room;
    return 0;
}

static int add_exact(struct keymap *m, const char *key, size_t len, uint32_t format, uint64_t line,
                     struct error *err)
{
    int rc = places_grow(m, err);
    if (rc == 0)
        rc = block_grow(m, len, err);
    if (rc != 0)
        return rc;
    uint32_t *place = key_place(m, key, len);
    if (*place != 0)
        return entry_at(m, *place).format == format
                   ? 0
                   : malformed(m, line, "the key has another format in an earlier line", err);
    m->used = (m->used + UNIT - 1) / UNIT * UNIT;
    *place = (uint32_t)(m->used / UNIT) + 1;
    m->used += varint_put(m->block + m->used, len);
    memcpy(m->block + m->used, key, len);
    m->used += len;
    m->used += varint_put(m->block + m->used, format);
    m->keys++;
    return 0;
}

static int add_pattern(struct keymap *m, const struct keymap_entry *e, uint32_t format,
                       struct error *err)
{
    struct error why = ERROR_INIT;
    int rc = patterns_add(m->patterns, e->key, e->key_len, format, &why);
    if (rc == E_SPEC)
        return malformed(m, e->line, why.message, err);
    return rc != 0 ? error_set(err, rc, "the external key map: %s", why.message)
                   : check_memory(m, 0, err);
}

/* The name of the record that a member of this name would belong to: names have no dot there. */
static size_t without_extension(const char *key, size_t len)
{
    const char *slash = memrchr(key, '/', len);
    size_t begin = slash != NULL ? (size_t)(slash + 1 - key) : 0;
    const char *dot = memchr(key + begin, '.', len - begin);
    return dot != NULL ? (size_t)(dot - key) : len;
}

static bool is_pattern(const struct keymap *m, const char *key, size_t len)
{
    switch (m->config.spec->ekm_keys) {
    case SORT_EKM_EXACT:
        return false;
    case SORT_EKM_REGEX:
        return true;
    case SORT_EKM_AUTO:
        break;
    }
    return pattern_is(key, len);
}

static int add_entry(void *ctx, const struct keymap_entry *e, struct error *err)
{
    struct keymap *m = ctx;
    uint32_t format = 0;
    bool skip = false;
    if (e->key_len == 0 || e->key_len > KEYMAP_KEY_MAX || memchr(e->key, '\0', e->key_len) != NULL)
        return malformed(m, e->line, "the key is empty, too long, or has a NUL", err);
    int rc = format_of(m, e, &format, &skip, err);
    if (rc != 0 || skip)
        return rc;
    if (is_pattern(m, e->key, e->key_len))
        return add_pattern(m, e, format, err);
    size_t len = m->config.spec->key_rule == SORT_KEY_FIRST_DOT
                     ? without_extension(e->key, e->key_len)
                     : e->key_len;
    return add_exact(m, e->key, len, format, e->line, err);
}

/* --- bytes ------------------------------------------------------------------------------------ */

/* White space is a line's, or nobody's. */
static int decide(struct keymap *m, const char **data, size_t *len, struct error *err)
{
    size_t white = 0;
    while (white < *len && (*data)[white] != '\0' && strchr(" \t\r\n", (*data)[white]) != NULL)
        white++;
    int rc = keymap_lines_feed(&m->lines, *data, white, &m->sink, err);
    m->json.offset += white;
    *data += white;
    *len -= white;
    if (*len > 0)
        m->form = **data == '{' ? JSON : LINES;
    return rc;
}

int keymap_feed(struct keymap *m, const void *bytes, size_t len, struct error *err)
{
    const char *data = bytes;
    int rc = 0;
    checksum_update(m->checksum, data, len);
    if (m->form == UNDECIDED)
        rc = decide(m, &data, &len, err);
    if (rc != 0 || len == 0)
        return rc;
    if (m->form == JSON)
        return keymap_json_feed(&m->json, data, len, &m->sink, err);
    return keymap_lines_feed(&m->lines, data, len, &m->sink, err);
}

int keymap_finish(struct keymap *m, struct error *err)
{
    struct checksum_value v;
    checksum_final(m->checksum, &v);
    memcpy(&m->sum, v.bytes, sizeof m->sum);
    int rc = m->form == JSON ? keymap_json_finish(&m->json, err)
                             : keymap_lines_finish(&m->lines, &m->sink, err);
    return rc != 0 ? error_wrap(err, "the external key map") : 0;
}

/* --- searching -------------------------------------------------------------------------------- */

struct keymap_search {
    const struct keymap *map;
    struct pattern_search *patterns;
};

struct keymap_search *keymap_search_new(const struct keymap *m)
{
    struct keymap_search *s = xcalloc(1, sizeof *s);
    s->map = m;
    s->patterns = pattern_search_new(m->patterns);
    return s;
}

void keymap_search_free(struct keymap_search *s)
{
    if (s == NULL)
        return;
    pattern_search_free(s->patterns);
    free(s);
}

int keymap_find(struct keymap_search *s, const char *name, size_t len, uint32_t *format,
                struct error *err)
{
    const struct keymap *m = s->map;
    uint32_t place = *key_place(m, name, len);
    if (place != 0) {
        *format = (uint32_t)entry_at(m, place).format;
        return 1;
    }
    if (s->patterns == NULL)
        return 0;
    uint32_t found[2];
    pattern_find(s->patterns, name, len, found);
    if (found[0] == PATTERN_NONE)
        return 0;
    *format = found[0];
    if (found[1] == PATTERN_NONE)
        return 1;
    return error_set(err, E_SPEC,
                     "patterns of the external key map send record '%.*s' to '%s' and to '%s'",
                     (int)(len < 256 ? len : 256), name, template_text(m->formats[found[0]]),
                     template_text(m->formats[found[1]]));
}

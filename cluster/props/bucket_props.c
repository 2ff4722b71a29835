#include "cluster/props/bucket_props.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "cluster/props/backend.h"
#include "cluster/props/ec_shape.h"
#include "cluster/props/ring_shape.h"
#include "common/jsonx.h"

#define DURATION_MAX_MS (3650ULL * 24 * 3600 * 1000)

/* --- the table -------------------------------------------------------------------------------- */

enum prop_kind {
    KIND_number,
    KIND_word,
    KIND_boolean,
    KIND_boolean_off,
    KIND_duration,
    KIND_size,
    KIND_amount,
    KIND_ec,
    KIND_ring,
    KIND_url,
};
enum prop_changes { CHANGES_always, CHANGES_in_part, CHANGES_creation };
enum prop_needs { NEEDS_none, NEEDS_copies, NEEDS_backend };

struct prop_row {
    const char *name;
    enum prop_kind kind;
    size_t offset;
    uint64_t least, most; /* of KIND_number */
    enum prop_changes changes;
    enum prop_needs needs;
    const char *choices; /* "a|b|c" */
    const char *meaning;
};

static const struct prop_row rows[] = {
#define BUCKET_PROP(name_, flag, kind_, ctype, field, standard, least_, most_, changes_, needs_, \
                    arg, choices_, meaning_)                                                     \
    {.name = #name_,                                                                             \
     .kind = KIND_##kind_,                                                                       \
     .offset = offsetof(struct bucket_props, field),                                             \
     .least = (least_),                                                                          \
     .most = (most_),                                                                            \
     .changes = CHANGES_##changes_,                                                              \
     .needs = NEEDS_##needs_,                                                                    \
     .choices = (choices_),                                                                      \
     .meaning = (meaning_)},
#include "cluster/props/bucket_props.def"
#undef BUCKET_PROP
};
enum { ROWS = sizeof rows / sizeof *rows };

const struct bucket_props bucket_props_default = {
#define BUCKET_PROP(name, flag, kind, ctype, field, standard, ...) .field = (standard),
#include "cluster/props/bucket_props.def"
#undef BUCKET_PROP
};

const char *const bucket_props_names[] = {
#define BUCKET_PROP(name, ...) #name,
#include "cluster/props/bucket_props.def"
#undef BUCKET_PROP
    NULL,
};

/* --- one field -------------------------------------------------------------------------------- */

static_assert(sizeof(enum durability) == sizeof(uint32_t), "a word is kept like a number");

static const void *field_of(const struct prop_row *row, const struct bucket_props *p)
{
    return (const char *)p + row->offset;
}

/* Of KIND_url there is none. */
static uint64_t get(const struct prop_row *row, const struct bucket_props *p)
{
    uint32_t number;
    switch (row->kind) {
    case KIND_boolean:
    case KIND_boolean_off:
        return *(const bool *)field_of(row, p);
    case KIND_duration:
    case KIND_size:
    case KIND_amount:
        return *(const uint64_t *)field_of(row, p);
    case KIND_number:
    case KIND_word:
    case KIND_ec:
    case KIND_ring:
        memcpy(&number, field_of(row, p), sizeof number);
        return number;
    case KIND_url:
        break;
    }
    return 0;
}

static void put_u32(const struct prop_row *row, struct bucket_props *p, uint32_t value)
{
    memcpy((char *)p + row->offset, &value, sizeof value);
}

static const char *get_text(const struct prop_row *row, const struct bucket_props *p)
{
    return row->kind == KIND_url ? *(const char *const *)field_of(row, p) : NULL;
}

static bool same_text(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static bool same(const struct prop_row *row, const struct bucket_props *a,
                 const struct bucket_props *b)
{
    return get(row, a) == get(row, b) && same_text(get_text(row, a), get_text(row, b));
}

bool bucket_props_equal(const struct bucket_props *a, const struct bucket_props *b)
{
    bool equal = a->ec_parity == b->ec_parity && a->ec_min_size == b->ec_min_size &&
                 a->ring_keep == b->ring_keep && a->ring_bytes_max == b->ring_bytes_max &&
                 a->ring_consumed == b->ring_consumed && a->ring_drops == b->ring_drops;
    for (size_t i = 0; i < ROWS && equal; i++)
        equal = same(&rows[i], a, b);
    return equal;
}

/* Has it another value than in a new bucket? */
static bool is_given(const struct prop_row *row, const struct bucket_props *p)
{
    return !same(row, p, &bucket_props_default);
}

/* --- words ------------------------------------------------------------------------------------ */

static const char *next_choice(const char *choice)
{
    choice += strcspn(choice, "|");
    return *choice == '|' ? choice + 1 : NULL;
}

static void put_choice(const struct prop_row *row, uint64_t at, struct buf *out)
{
    const char *choice = row->choices;
    for (; at > 0; at--)
        choice = next_choice(choice);
    buf_append(out, choice, strcspn(choice, "|"));
}

static bool find_choice(const struct prop_row *row, const char *word, uint32_t *at)
{
    *at = 0;
    for (const char *c = row->choices; c != NULL; c = next_choice(c), ++*at) {
        size_t len = strcspn(c, "|");
        if (strlen(word) == len && memcmp(c, word, len) == 0)
            return true;
    }
    return false;
}

/* --- which go together ------------------------------------------------------------------------ */

/* Can what is written here get to the backend? */
static int check_write_policy(const struct bucket_props *p, struct error *err)
{
    if (p->write_policy == WRITE_POLICY_NONE)
        return 0;
    if (!backend_is_written(p->backend))
        return error_set(err, E_UNSUPPORTED,
                         "field 'write_policy': this release writes to s3 and gs alone");
    return 0;
}

/* The copies are of what says where the slices are, and of smaller objects: both survive the same.
 */
static int check_ec(const struct bucket_props *p, struct error *err)
{
    if (p->ec_data == 0 && p->ec_parity == 0)
        return 0;
    if (p->ec_data < 1 || p->ec_data > EC_DATA_SLICES_MAX || p->ec_parity < 1 ||
        p->ec_parity >= COPIES_MAX)
        return error_set(err, E_INVALID, "field 'ec': data is 1 to %d, parity 1 to %d",
                         EC_DATA_SLICES_MAX, COPIES_MAX - 1);
    if (p->copies != p->ec_parity + 1)
        return error_set(err, E_INVALID,
                         "field 'copies': with ec %u+%u it is %u (small objects are whole copies, "
                         "one more than parity): leave it out, or leave 'ec' out for copies alone",
                         p->ec_data, p->ec_parity, p->ec_parity + 1);
    if (p->backend != NULL)
        return error_set(err, E_UNSUPPORTED,
                         "field 'ec': this release has no objects in slices in a bucket with a "
                         "backend");
    if (p->write_quorum == WRITE_MAJORITY)
        return error_set(err, E_UNSUPPORTED,
                         "field 'ec': where objects are in slices all owners are written to: "
                         "write_quorum all");
    return 0;
}

static int check_ring(const struct bucket_props *p, struct error *err)
{
    if (p->ring_cap > 0 && (p->ec_data > 0 || p->backend != NULL || p->write_once))
        return error_set(err, E_UNSUPPORTED,
                         "field 'ring': a ring has neither a backend nor objects in slices, and "
                         "replaces its head: no write_once");
    return 0;
}

static int check_bounds(const struct prop_row *row, const struct bucket_props *p, struct error *err)
{
    uint64_t value = get(row, p);
    if (row->kind == KIND_number && value < row->least)
        return error_set(err, E_INVALID, "field '%s' must be at least %llu", row->name,
                         (unsigned long long)row->least);
    if (row->kind == KIND_number && value > row->most)
        return error_set(err, E_INVALID, "field '%s' must be at most %llu", row->name,
                         (unsigned long long)row->most);
    if (row->kind == KIND_duration && value > DURATION_MAX_MS)
        return error_set(err, E_INVALID, "field '%s' is more than ten years", row->name);
    if ((row->kind == KIND_size || row->kind == KIND_amount) && value > INT64_MAX)
        return error_set(err, E_INVALID, "field '%s' is out of range", row->name);
    if (row->needs == NEEDS_backend && p->backend == NULL && is_given(row, p))
        return error_set(err, E_INVALID,
                         "field '%s' is for buckets with a backend, and this one has none",
                         row->name);
    return 0;
}

static int check_copies(const struct bucket_props *p, struct error *err)
{
    if (p->write_quorum == WRITE_MAJORITY && (p->copies == 1 || p->ec_data > 0))
        return error_set(err, E_INVALID,
                         "field 'write_quorum': majority is for buckets with several whole copies");
    if (p->copies > 1 && p->backend != NULL)
        return error_set(err, E_UNSUPPORTED,
                         "field 'copies': what a bucket with a backend has can be read again, and "
                         "this release keeps 1 copy of it");
    return 0;
}

/* A quota counts what users have stored.  What a backend has is here only for a time. */
static int check_quota(const struct bucket_props *p, struct error *err)
{
    if (p->backend != NULL && bucket_props_have_quota(p))
        return error_set(err, E_UNSUPPORTED,
                         "field 'quota_%s': a bucket with a backend has no quota, since its "
                         "objects are evicted and fetched again; limit the backend's own bucket",
                         p->quota_bytes > 0 ? "bytes" : "objects");
    return 0;
}

/* What a backend has can change there. */
static int check_write_once(const struct bucket_props *p, struct error *err)
{
    if (p->write_once && p->backend != NULL)
        return error_set(err, E_UNSUPPORTED,
                         "field 'write_once': the backend of a bucket can replace its objects; "
                         "copy them to a bucket without one");
    return 0;
}

static int check_backend(const struct bucket_props *p, struct error *err)
{
    if (p->validate == VALIDATE_INTERVAL && p->validate_interval_ms == 0)
        return error_set(err, E_INVALID,
                         "field 'validate_interval' says how long what the "
                         "backend was asked about counts as fresh; give it with "
                         "'validate': \"interval\"");
    int r = p->backend != NULL ? backend_check(p->backend, err) : 0;
    return r != 0 ? r : check_write_policy(p, err);
}

int bucket_props_check(const struct bucket_props *p, struct error *err)
{
    int r = 0;
    for (size_t i = 0; i < ROWS && r == 0; i++)
        r = check_bounds(&rows[i], p, err);
    if (r != 0 || (r = check_ec(p, err)) != 0 || (r = check_copies(p, err)) != 0 ||
        (r = check_quota(p, err)) != 0 || (r = check_write_once(p, err)) != 0 ||
        (r = check_ring(p, err)) != 0)
        return r;
    return check_backend(p, err);
}

int bucket_props_check_change(const struct bucket_props *old, const struct bucket_props *now,
                              struct error *err)
{
    for (size_t i = 0; i < ROWS; i++) {
        if (rows[i].changes == CHANGES_creation && !same(&rows[i], old, now))
            return error_set(err, E_INVALID,
                             "field '%s' is set when a bucket is created; copy the objects to "
                             "another one",
                             rows[i].name);
    }
    if ((old->ring_cap == 0) != (now->ring_cap == 0))
        return error_set(err, E_INVALID,
                         "field 'ring' is set when a bucket is created; later only its numbers "
                         "change");
    return 0;
}

/* --- to JSON ---------------------------------------------------------------------------------- */

static bool some_is_given(enum prop_needs needs, const struct bucket_props *p)
{
    for (size_t i = 0; i < ROWS; i++) {
        if (rows[i].needs == needs && is_given(&rows[i], p))
            return true;
    }
    return false;
}

static bool shows(const struct prop_row *row, const struct bucket_props *p)
{
    if (row->needs == NEEDS_backend)
        return p->backend != NULL;
    if (row->needs == NEEDS_copies)
        return p->copies > 1 || some_is_given(NEEDS_copies, p);
    switch (row->kind) {
    case KIND_size:
    case KIND_amount:
    case KIND_ec:
    case KIND_ring:
    case KIND_url:
        return is_given(row, p);
    default:
        return true;
    }
}

static json_t *word_to_json(const struct prop_row *row, uint64_t at)
{
    _cleanup_buf_ struct buf word = BUF_INIT;
    put_choice(row, at, &word);
    return json_string(buf_str(&word));
}

static struct ring_shape ring_of(const struct bucket_props *p)
{
    return (struct ring_shape){p->ring_cap, p->ring_keep, p->ring_bytes_max, p->ring_consumed,
                               p->ring_drops};
}

static json_t *value_to_json(const struct prop_row *row, const struct bucket_props *p)
{
    const struct ring_shape ring = ring_of(p);
    uint64_t value = get(row, p);
    switch (row->kind) {
    case KIND_number:
    case KIND_duration:
    case KIND_size:
    case KIND_amount:
        return json_integer((json_int_t)value);
    case KIND_word:
        return word_to_json(row, value);
    case KIND_boolean:
        return json_boolean(value != 0);
    case KIND_boolean_off:
        return json_boolean(value == 0);
    case KIND_ec:
        return json_pack("{s:I, s:I, s:I}", "data", (json_int_t)p->ec_data, "parity",
                         (json_int_t)p->ec_parity, "min_size", (json_int_t)p->ec_min_size);
    case KIND_ring:
        return ring_shape_to_json(&ring);
    case KIND_url:
        break;
    }
    return json_string(get_text(row, p));
}

json_t *bucket_props_to_json(const struct bucket_props *p)
{
    json_t *doc = json_object();
    for (size_t i = 0; i < ROWS; i++) {
        if (shows(&rows[i], p))
            json_object_set_new(doc, rows[i].name, value_to_json(&rows[i], p));
    }
    return doc;
}

/* --- from JSON -------------------------------------------------------------------------------- */

static int number_from_json(const struct prop_row *row, json_t *doc, struct bucket_props *p,
                            struct error *err)
{
    uint64_t value = get(row, p);
    int r = json_get_u64(doc, "props", row->name, &value, err);
    if (r != 0)
        return r;
    if (value > UINT32_MAX)
        return error_set(err, E_INVALID, "field 'props.%s' is out of range", row->name);
    put_u32(row, p, (uint32_t)value);
    return 0;
}

static int unknown_word(const struct prop_row *row, const char *word, struct error *err)
{
    _cleanup_(buf_done)
    struct buf known = BUF_INIT;
    uint64_t at = 0;
    for (const char *c = row->choices; c != NULL; c = next_choice(c)) {
        buf_puts(&known, at > 0 ? " or " : "");
        put_choice(row, at++, &known);
    }
    return error_set(err, E_INVALID, "field 'props.%s': '%.32s' is not %s", row->name, word,
                     buf_str(&known));
}

static int word_from_json(const struct prop_row *row, json_t *doc, struct bucket_props *p,
                          struct error *err)
{
    const char *word = NULL;
    uint32_t at;
    int r = json_get_str(doc, "props", row->name, &word, err);
    if (r != 0 || word == NULL)
        return r;
    if (!find_choice(row, word, &at))
        return unknown_word(row, word, err);
    put_u32(row, p, at);
    return 0;
}

static int boolean_from_json(const struct prop_row *row, json_t *doc, struct bucket_props *p,
                             struct error *err)
{
    bool *field = (bool *)(void *)((char *)p + row->offset);
    bool off = row->kind == KIND_boolean_off;
    bool value = *field != off;
    int r = json_get_bool(doc, "props", row->name, &value, err);
    *field = value != off;
    return r;
}

static int duration_from_json(const struct prop_row *row, json_t *doc, struct bucket_props *p,
                              struct error *err)
{
    uint64_t *field = (uint64_t *)(void *)((char *)p + row->offset);
    return json_get_duration_ms(doc, "props", row->name, field, err);
}

static int size_from_json(const struct prop_row *row, json_t *doc, struct bucket_props *p,
                          struct error *err)
{
    uint64_t *field = (uint64_t *)(void *)((char *)p + row->offset);
    return json_get_size(doc, "props", row->name, field, err);
}

static int amount_from_json(const struct prop_row *row, json_t *doc, struct bucket_props *p,
                            struct error *err)
{
    uint64_t *field = (uint64_t *)(void *)((char *)p + row->offset);
    return json_get_u64(doc, "props", row->name, field, err);
}

/* With it come copies, unless they are given, too: bucket_props_check() looks at these. */
static int ec_from_json(const struct prop_row *row, json_t *doc, struct bucket_props *p,
                        struct error *err)
{
    json_t *ec = json_object_get(doc, row->name);
    struct ec_shape shape = {.min_size = p->ec_data > 0 ? p->ec_min_size : EC_MIN_SIZE_DEFAULT};
    if (ec == NULL || json_is_null(ec))
        return 0;
    int r = ec_shape_from_json(ec, &shape, err);
    if (r != 0)
        return r;
    p->ec_data = shape.data < UINT32_MAX ? (uint32_t)shape.data : UINT32_MAX;
    p->ec_parity = shape.parity < UINT32_MAX ? (uint32_t)shape.parity : UINT32_MAX;
    p->ec_min_size = shape.min_size;
    if (json_object_get(doc, "copies") == NULL)
        p->copies = p->ec_parity < COPIES_MAX ? p->ec_parity + 1 : COPIES_MAX;
    return 0;
}

static int ring_from_json(const struct prop_row *row, json_t *doc, struct bucket_props *p,
                          struct error *err)
{
    json_t *ring = json_object_get(doc, row->name);
    struct ring_shape shape = {.keep = RING_KEEP_DEFAULT, .bytes_max = RING_BYTES_MAX_DEFAULT};
    if (ring == NULL || json_is_null(ring))
        return 0;
    if (p->ring_cap > 0)
        shape = ring_of(p);
    int r = ring_shape_from_json(ring, &shape, err);
    if (r != 0)
        return r;
    p->ring_cap = (uint32_t)shape.cap;
    p->ring_keep = (uint32_t)shape.keep;
    p->ring_bytes_max = shape.bytes_max;
    p->ring_consumed = shape.consumed;
    p->ring_drops = shape.drops;
    return 0;
}

/* The object form becomes the URL, in the document. */
static int url_from_json(const struct prop_row *row, json_t *doc, struct bucket_props *p,
                         struct error *err)
{
    json_t *value = json_object_get(doc, row->name);
    if (json_is_object(value)) {
        _cleanup_(buf_done)
        struct buf url = BUF_INIT;
        int r = backend_url_from_json(value, &url, err);
        if (r != 0)
            return r;
        json_object_set_new(doc, row->name, json_string(buf_str(&url)));
    }
    return json_get_str(doc, "props", row->name, &p->backend, err);
}

int bucket_props_from_json(json_t *doc, struct bucket_props *p, struct error *err)
{
    static int (*const readers[])(const struct prop_row *row, json_t *doc, struct bucket_props *p,
                                  struct error *err) = {
        [KIND_number] = number_from_json,     [KIND_word] = word_from_json,
        [KIND_boolean] = boolean_from_json,   [KIND_boolean_off] = boolean_from_json,
        [KIND_duration] = duration_from_json, [KIND_size] = size_from_json,
        [KIND_amount] = amount_from_json,     [KIND_ec] = ec_from_json,
        [KIND_ring] = ring_from_json,         [KIND_url] = url_from_json,
    };
    int r = 0;
    for (size_t i = 0; i < ROWS && r == 0; i++)
        r = readers[rows[i].kind](&rows[i], doc, p, err);
    return r;
}

/* --- for the documents ------------------------------------------------------------------------ */

/* A bar ends a cell of the table. */
static void put_cell(const char *text, struct buf *out)
{
    for (; *text != '\0'; text++)
        buf_printf(out, "%s%c", *text == '|' ? "\\" : "", *text);
}

static void put_values(const struct prop_row *row, struct buf *out)
{
    static const char *const words[] = {
        [KIND_boolean] = "`true`, `false`",
        [KIND_boolean_off] = "`true`, `false`",
        [KIND_duration] = "duration",
        [KIND_size] = "size",
        [KIND_amount] = "number",
        [KIND_ec] = "shape",
        [KIND_ring] = "shape",
        [KIND_url] = "URL",
    };
    if (row->kind == KIND_number)
        buf_printf(out, "%llu to %llu", (unsigned long long)row->least,
                   (unsigned long long)row->most);
    else if (row->kind != KIND_word)
        buf_puts(out, words[row->kind]);
    uint64_t at = 0;
    for (const char *c = row->choices; c != NULL && row->kind == KIND_word; c = next_choice(c)) {
        buf_puts(out, at > 0 ? ", `" : "`");
        put_choice(row, at++, out);
        buf_puts(out, "`");
    }
}

static void put_default(const struct prop_row *row, struct buf *out)
{
    _cleanup_json_ json_t *value = value_to_json(row, &bucket_props_default);
    if (row->kind == KIND_ec || row->kind == KIND_ring || row->kind == KIND_url)
        buf_puts(out, "none");
    else if (json_is_string(value))
        buf_printf(out, "`%s`", json_string_value(value));
    else if (json_is_boolean(value))
        buf_puts(out, json_is_true(value) ? "`true`" : "`false`");
    else
        buf_printf(out, "%lld", (long long)json_integer_value(value));
}

void bucket_props_markdown(struct buf *out)
{
    static const char *const changes[] = {
        [CHANGES_always] = "always", [CHANGES_in_part] = "in part", [CHANGES_creation] = "never"};
    static const char *const needs[] = {
        [NEEDS_none] = "", [NEEDS_copies] = "several copies", [NEEDS_backend] = "a backend"};
    buf_puts(out, "| property | values | default | changes | needs | meaning |\n"
                  "|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < ROWS; i++) {
        const struct prop_row *row = &rows[i];
        buf_printf(out, "| `%s` | ", row->name);
        put_values(row, out);
        buf_puts(out, " | ");
        put_default(row, out);
        buf_printf(out, " | %s | %s | ", changes[row->changes], needs[row->needs]);
        put_cell(row->meaning, out);
        buf_puts(out, " |\n");
    }
}

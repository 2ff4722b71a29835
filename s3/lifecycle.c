#include "s3/lifecycle.h"

#include <string.h>

#include "common/clock.h"
#include "common/internal_name.h"
#include "common/parse.h"
#include "s3/document.h"
#include "s3/xml_write.h"

enum { DAYS_MAX = 36500, ID_MAX = 255, ROOM_FIRST = 8 };

struct reading {
    struct arena *arena;
    struct s3_lifecycle *out;
    size_t room;                  /* of the rules */
    struct s3_lifecycle_rule now; /* the rule that is read */
    bool has_status;
    const char *tag_key; /* that waits for its value */
};

/* --- reading ---------------------------------------------------------------------------------- */

static void begin_rule(struct reading *r)
{
    r->now = (struct s3_lifecycle_rule){.size_below = UINT64_MAX, .expire_from_s = INT64_MAX};
    r->has_status = false;
}

static enum s3_error twice(struct s3_failure *why)
{
    return s3_fail(why, S3_MALFORMED_XML, "An element is twice in one rule");
}

static enum s3_error take_id(void *ctx, const char *text, struct s3_failure *why)
{
    struct reading *r = ctx;
    if (r->now.id != NULL)
        return twice(why);
    if (strlen(text) > ID_MAX)
        return s3_fail(why, S3_INVALID_ARGUMENT, "A rule's ID has %d bytes at most", ID_MAX);
    for (size_t i = 0; i < r->out->count; i++) {
        const char *other = r->out->rules[i].id;
        if (other != NULL && *text != '\0' && strcmp(other, text) == 0)
            return s3_fail(why, S3_INVALID_ARGUMENT, "Two rules have the ID '%.64s'", text);
    }
    r->now.id = arena_strdup(r->arena, text);
    return S3_OK;
}

static enum s3_error take_status(void *ctx, const char *text, struct s3_failure *why)
{
    struct reading *r = ctx;
    r->now.is_enabled = strcmp(text, "Enabled") == 0;
    if (r->has_status || (!r->now.is_enabled && strcmp(text, "Disabled") != 0))
        return s3_fail(why, S3_MALFORMED_XML, "A <Status> is Enabled or Disabled");
    r->has_status = true;
    return S3_OK;
}

static enum s3_error take_prefix(void *ctx, const char *text, struct s3_failure *why)
{
    struct reading *r = ctx;
    if (r->now.prefix != NULL)
        return twice(why);
    r->now.prefix = arena_strdup(r->arena, text);
    return S3_OK;
}

static enum s3_error take_filter(void *ctx, const char *text, struct s3_failure *why)
{
    struct reading *r = ctx;
    r->now.has_filter = true;
    return document_empty(ctx, text, why);
}

static enum s3_error take_filter_prefix(void *ctx, const char *text, struct s3_failure *why)
{
    struct reading *r = ctx;
    r->now.has_filter = true;
    return take_prefix(ctx, text, why);
}

static enum s3_error take_size_above(void *ctx, const char *text, struct s3_failure *why)
{
    struct reading *r = ctx;
    if (r->now.has_size_above)
        return twice(why);
    r->now.has_filter = r->now.has_size_above = true;
    return parse_u64(text, &r->now.size_above, NULL) == 0
               ? S3_OK
               : s3_fail(why, S3_INVALID_ARGUMENT, "A size is a number of bytes");
}

static enum s3_error take_size_below(void *ctx, const char *text, struct s3_failure *why)
{
    struct reading *r = ctx;
    if (r->now.size_below != UINT64_MAX)
        return twice(why);
    r->now.has_filter = true;
    if (parse_u64(text, &r->now.size_below, NULL) != 0 || r->now.size_below == 0 ||
        r->now.size_below == UINT64_MAX)
        return s3_fail(why, S3_INVALID_ARGUMENT, "A size is a number of bytes above 0");
    return S3_OK;
}

static enum s3_error take_tag_key(void *ctx, const char *text, struct s3_failure *why)
{
    struct reading *r = ctx;
    r->now.has_filter = true;
    if (r->tag_key != NULL)
        return s3_fail(why, S3_MALFORMED_XML, "A <Tag> has no <Value>");
    r->tag_key = arena_strdup(r->arena, text);
    return S3_OK;
}

static enum s3_error take_tag_value(void *ctx, const char *text, struct s3_failure *why)
{
    struct reading *r = ctx;
    const char *key = r->tag_key;
    if (key == NULL)
        return s3_fail(why, S3_MALFORMED_XML, "In a <Tag> the <Key> comes first");
    r->tag_key = NULL;
    return s3_tags_add(&r->now.tags, S3_OBJECT_TAGS_MAX, key, text, r->arena, why);
}

static enum s3_error read_days(const char *text, uint64_t *days, struct s3_failure *why)
{
    if (*days != 0)
        return twice(why);
    if (parse_u64(text, days, NULL) != 0 || *days == 0 || *days > DAYS_MAX)
        return s3_fail(why, S3_INVALID_ARGUMENT, "Days are a number from 1 to %d", DAYS_MAX);
    return S3_OK;
}

static enum s3_error take_days(void *ctx, const char *text, struct s3_failure *why)
{
    struct reading *r = ctx;
    return read_days(text, &r->now.expire_days, why);
}

static enum s3_error take_abort_days(void *ctx, const char *text, struct s3_failure *why)
{
    struct reading *r = ctx;
    return read_days(text, &r->now.abort_days, why);
}

/* "2030-01-31", or with a time that is midnight UTC: "T00:00:00Z", "T00:00:00.000Z". */
static enum s3_error take_date(void *ctx, const char *text, struct s3_failure *why)
{
    struct reading *r = ctx;
    struct tm tm = {.tm_isdst = 0};
    char again[16];
    if (r->now.expire_from_s != INT64_MAX)
        return twice(why);
    const char *end = strptime(text, "%Y-%m-%d", &tm);
    if (end == NULL ||
        (*end != '\0' && strcmp(end, "T00:00:00Z") != 0 && strcmp(end, "T00:00:00.000Z") != 0))
        return s3_fail(why, S3_INVALID_ARGUMENT, "A date is a midnight UTC: 2030-01-31T00:00:00Z");
    time_t at = timegm(&tm);
    gmtime_r(&at, &tm);
    strftime(again, sizeof again, "%Y-%m-%d", &tm);
    if (strncmp(again, text, strlen(again)) != 0 || at < 0)
        return s3_fail(why, S3_INVALID_ARGUMENT, "There is no such date");
    r->now.expire_from_s = at;
    return S3_OK;
}

static enum s3_error take_marker(void *ctx, const char *text, struct s3_failure *why)
{
    struct reading *r = ctx;
    if (r->now.marker != NULL)
        return twice(why);
    if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
        return s3_fail(why, S3_MALFORMED_XML, "ExpiredObjectDeleteMarker is true or false");
    r->now.marker = arena_strdup(r->arena, text);
    return S3_OK;
}

static enum s3_error check_rule(const struct reading *r, struct s3_failure *why)
{
    const struct s3_lifecycle_rule *rule = &r->now;
    int expirations =
        (rule->expire_days != 0) + (rule->expire_from_s != INT64_MAX) + (rule->marker != NULL);
    if (!r->has_status || r->tag_key != NULL || expirations > 1 ||
        (expirations == 0 && rule->abort_days == 0))
        return s3_fail(why, S3_MALFORMED_XML,
                       "A rule needs a status and an action; an expiration has one of days, a date "
                       "and delete markers");
    if (!rule->has_filter && rule->prefix == NULL)
        return s3_fail(why, S3_MALFORMED_XML,
                       "A rule needs a <Filter> or a <Prefix>; an empty one is for all objects");
    if (rule->abort_days != 0 &&
        (rule->tags.count > 0 || rule->has_size_above || rule->size_below != UINT64_MAX))
        return s3_fail(why, S3_INVALID_REQUEST,
                       "A rule that aborts uploads cannot filter by tags or size");
    if (rule->has_size_above && rule->size_above >= rule->size_below - 1)
        return s3_fail(why, S3_INVALID_REQUEST, "No size is within the bounds of the filter");
    return S3_OK;
}

static void add_rule(struct reading *r)
{
    struct s3_lifecycle *out = r->out;
    if (out->count == r->room) {
        size_t room = r->room > 0 ? 2 * r->room : ROOM_FIRST;
        struct s3_lifecycle_rule *rules = arena_alloc(r->arena, room * sizeof rules[0]);
        if (out->count > 0)
            memcpy(rules, out->rules, out->count * sizeof rules[0]);
        out->rules = rules;
        r->room = room;
    }
    out->rules[out->count++] = r->now;
}

static enum s3_error end_rule(void *ctx, const char *name, struct s3_failure *why)
{
    struct reading *r = ctx;
    (void)name; /* there is nothing but rules on this level */
    enum s3_error e = check_rule(r, why);
    if (e != S3_OK)
        return e;
    if (r->out->count == S3_LIFECYCLE_RULES_MAX)
        return s3_fail(why, S3_INVALID_REQUEST, "A bucket has %d rules at most",
                       S3_LIFECYCLE_RULES_MAX);
    add_rule(r);
    begin_rule(r);
    return S3_OK;
}

static const struct document_leaf leaves[] = {
    {"Rule", "ID", take_id},
    {"Rule", "Status", take_status},
    {"Rule", "Prefix", take_prefix},
    {"Rule", "Filter", take_filter},
    {"Filter", "Prefix", take_filter_prefix},
    {"Filter", "ObjectSizeGreaterThan", take_size_above},
    {"Filter", "ObjectSizeLessThan", take_size_below},
    {"And", "Prefix", take_filter_prefix},
    {"And", "ObjectSizeGreaterThan", take_size_above},
    {"And", "ObjectSizeLessThan", take_size_below},
    {"Tag", "Key", take_tag_key},
    {"Tag", "Value", take_tag_value},
    {"Expiration", "Days", take_days},
    {"Expiration", "Date", take_date},
    {"Expiration", "ExpiredObjectDeleteMarker", take_marker},
    {"AbortIncompleteMultipartUpload", "DaysAfterInitiation", take_abort_days},
    {"Transition", "Days", NULL},
    {"Transition", "Date", NULL},
    {"Transition", "StorageClass", NULL},
    {"NoncurrentVersionExpiration", "NoncurrentDays", NULL},
    {"NoncurrentVersionTransition", "NoncurrentDays", NULL},
    {.name = NULL},
};

static const struct document document = {
    .root = "LifecycleConfiguration", .depth = 6, .leaves = leaves, .leave = end_rule};

enum s3_error s3_lifecycle_parse(const char *body, size_t len, struct arena *arena,
                                 struct s3_lifecycle *out, struct s3_failure *why)
{
    *out = (struct s3_lifecycle){.count = 0};
    struct reading r = {.arena = arena, .out = out};
    begin_rule(&r);
    enum s3_error e = document_read(&document, body, len, &r, why);
    return e == S3_OK && out->count == 0 ? s3_fail(why, S3_MALFORMED_XML, "There is no rule") : e;
}

/* --- writing ---------------------------------------------------------------------------------- */

static void put_conditions(struct buf *out, const struct s3_lifecycle_rule *rule)
{
    if (rule->prefix != NULL)
        xml_put_element(out, "Prefix", rule->prefix);
    if (rule->has_size_above)
        xml_put_number(out, "ObjectSizeGreaterThan", rule->size_above);
    if (rule->size_below != UINT64_MAX)
        xml_put_number(out, "ObjectSizeLessThan", rule->size_below);
    for (size_t i = 0; i < rule->tags.count; i++) {
        xml_put_open(out, "Tag");
        xml_put_element(out, "Key", rule->tags.tags[i].key);
        xml_put_element(out, "Value", rule->tags.tags[i].value);
        xml_put_close(out, "Tag");
    }
}

static void put_filter(struct buf *out, const struct s3_lifecycle_rule *rule)
{
    size_t conditions = (rule->prefix != NULL) + rule->has_size_above +
                        (rule->size_below != UINT64_MAX) + rule->tags.count;
    if (!rule->has_filter) {
        xml_put_element(out, "Prefix", rule->prefix != NULL ? rule->prefix : "");
        return;
    }
    xml_put_open(out, "Filter");
    if (conditions > 1)
        xml_put_open(out, "And");
    put_conditions(out, rule);
    if (conditions > 1)
        xml_put_close(out, "And");
    xml_put_close(out, "Filter");
}

static void put_actions(struct buf *out, const struct s3_lifecycle_rule *rule)
{
    time_t from = (time_t)rule->expire_from_s;
    char date[24];
    struct tm tm;
    if (rule->expire_days != 0) {
        xml_put_open(out, "Expiration");
        xml_put_number(out, "Days", rule->expire_days);
        xml_put_close(out, "Expiration");
    }
    if (rule->expire_from_s != INT64_MAX) {
        gmtime_r(&from, &tm);
        strftime(date, sizeof date, "%Y-%m-%dT00:00:00Z", &tm);
        xml_put_open(out, "Expiration");
        xml_put_element(out, "Date", date);
        xml_put_close(out, "Expiration");
    }
    if (rule->marker != NULL) {
        xml_put_open(out, "Expiration");
        xml_put_element(out, "ExpiredObjectDeleteMarker", rule->marker);
        xml_put_close(out, "Expiration");
    }
    if (rule->abort_days != 0) {
        xml_put_open(out, "AbortIncompleteMultipartUpload");
        xml_put_number(out, "DaysAfterInitiation", rule->abort_days);
        xml_put_close(out, "AbortIncompleteMultipartUpload");
    }
}

void s3_lifecycle_document(const struct s3_lifecycle *l, struct buf *out)
{
    xml_put_root(out, "LifecycleConfiguration", XML_S3_NAMESPACE);
    for (size_t i = 0; i < l->count; i++) {
        const struct s3_lifecycle_rule *rule = &l->rules[i];
        xml_put_open(out, "Rule");
        if (rule->id != NULL)
            xml_put_element(out, "ID", rule->id);
        put_filter(out, rule);
        xml_put_element(out, "Status", rule->is_enabled ? "Enabled" : "Disabled");
        put_actions(out, rule);
        xml_put_close(out, "Rule");
    }
    xml_put_close(out, "LifecycleConfiguration");
}

/* --- deciding --------------------------------------------------------------------------------- */

bool s3_lifecycle_expires(const struct s3_lifecycle *l)
{
    for (size_t i = 0; i < l->count; i++) {
        const struct s3_lifecycle_rule *r = &l->rules[i];
        if (r->is_enabled && (r->expire_days != 0 || r->expire_from_s != INT64_MAX))
            return true;
    }
    return false;
}

/* The midnight that ends the last of so many days. */
static int64_t midnight_after(int64_t begin_s, uint64_t days, int64_t day_s)
{
    int64_t end = begin_s + (int64_t)days * day_s;
    return (end + day_s - 1) / day_s * day_s;
}

static bool is_over(int64_t begin_s, uint64_t days, const struct s3_lifecycle_now *now)
{
    return now->now_s >= midnight_after(begin_s, days, now->day_s);
}

static bool prefix_fits(const struct s3_lifecycle_rule *rule, const char *key)
{
    return rule->prefix == NULL || strncmp(key, rule->prefix, strlen(rule->prefix)) == 0;
}

/* Contents of images and the like do not expire with all objects of a bucket. */
static bool is_spared(const struct s3_lifecycle_rule *rule, const char *key)
{
    return name_is_internal(key) && (rule->prefix == NULL || !name_is_internal(rule->prefix));
}

static bool tags_fit(const struct s3_lifecycle_rule *rule, const struct s3_tags *tags)
{
    for (size_t i = 0; i < rule->tags.count; i++) {
        const char *value = s3_tags_get(tags, rule->tags.tags[i].key);
        if (value == NULL || strcmp(value, rule->tags.tags[i].value) != 0)
            return false;
    }
    return true;
}

/* All but the tags. */
static bool filter_fits(const struct s3_lifecycle_rule *rule,
                        const struct s3_lifecycle_object *object)
{
    return rule->is_enabled && prefix_fits(rule, object->key) && !is_spared(rule, object->key) &&
           (!rule->has_size_above || object->size > rule->size_above) &&
           (rule->size_below == UINT64_MAX || object->size < rule->size_below);
}

/* INT64_MAX: it expires no objects. */
static int64_t due_at(const struct s3_lifecycle_rule *rule, int64_t modified_s, int64_t day_s)
{
    return rule->expire_days != 0 ? midnight_after(modified_s, rule->expire_days, day_s)
                                  : rule->expire_from_s;
}

static bool is_due(const struct s3_lifecycle_rule *rule, const struct s3_lifecycle_object *object,
                   const struct s3_lifecycle_now *now)
{
    return now->now_s >= due_at(rule, object->modified_s, now->day_s) && filter_fits(rule, object);
}

enum s3_lifecycle_verdict s3_lifecycle_object(const struct s3_lifecycle *l,
                                              const struct s3_lifecycle_object *object,
                                              const struct s3_lifecycle_now *now,
                                              const struct s3_lifecycle_rule **rule)
{
    enum s3_lifecycle_verdict verdict = S3_LIFECYCLE_KEEP;
    for (size_t i = 0; i < l->count && verdict != S3_LIFECYCLE_EXPIRE; i++) {
        const struct s3_lifecycle_rule *r = &l->rules[i];
        if (!is_due(r, object, now))
            continue;
        if (r->tags.count > 0 && object->tags == NULL)
            verdict = S3_LIFECYCLE_NEEDS_TAGS;
        else if (r->tags.count == 0 || tags_fit(r, object->tags))
            verdict = S3_LIFECYCLE_EXPIRE;
        if (verdict == S3_LIFECYCLE_EXPIRE && rule != NULL)
            *rule = r;
    }
    return verdict;
}

bool s3_lifecycle_expiration(const struct s3_lifecycle *l, const struct s3_lifecycle_object *object,
                             int64_t day_s, struct s3_lifecycle_expiration *out)
{
    *out = (struct s3_lifecycle_expiration){.at_s = INT64_MAX};
    for (size_t i = 0; i < l->count; i++) {
        const struct s3_lifecycle_rule *rule = &l->rules[i];
        int64_t at_s = due_at(rule, object->modified_s, day_s);
        if (at_s < out->at_s && filter_fits(rule, object) && tags_fit(rule, object->tags))
            *out = (struct s3_lifecycle_expiration){.at_s = at_s, .rule = rule};
    }
    return out->rule != NULL;
}

void s3_lifecycle_expiration_text(const struct s3_lifecycle_expiration *x, struct buf *out)
{
    const char *id = x->rule->id != NULL ? x->rule->id : "";
    char date[32];
    buf_printf(out, "expiry-date=\"%s\", rule-id=\"", clock_format_http(x->at_s, date));
    buf_put_url_escaped(out, id, strlen(id), "");
    buf_putc(out, '"');
}

bool s3_lifecycle_aborts(const struct s3_lifecycle *l, const char *key, int64_t begun_s,
                         const struct s3_lifecycle_now *now)
{
    for (size_t i = 0; i < l->count; i++) {
        const struct s3_lifecycle_rule *rule = &l->rules[i];
        if (rule->is_enabled && rule->abort_days != 0 && prefix_fits(rule, key) &&
            is_over(begun_s, rule->abort_days, now))
            return true;
    }
    return false;
}

#include "target/node/expiry.h"

#include <string.h>

#include "cluster/documents/settings.h"
#include "common/arena.h"
#include "common/clock.h"
#include "common/mem.h"
#include "target/format/attr_tags.h"
#include "target/format/ec_manifest.h"

enum { ARENA_BYTES = 4096 };

struct expiry {
    struct arena *arena; /* of what follows */
    const char *text;
    struct s3_lifecycle rules;
};

static int parse(const char *text, struct arena *a, struct s3_lifecycle *out, struct error *err)
{
    struct s3_failure why;
    if (s3_lifecycle_parse(text, strlen(text), a, out, &why) == S3_OK)
        return 0;
    return error_set(err, E_CORRUPT, "this release cannot read its lifecycle document: %s",
                     why.message);
}

void expiry_free(struct expiry *x)
{
    if (x == NULL)
        return;
    arena_free(x->arena);
    free(x);
}

int expiry_read(const struct bucket *b, struct expiry **out, struct error *err)
{
    _cleanup_(expiry_freep)
    struct expiry *x = NULL;
    const char *text = b->texts.text[BUCKET_LIFECYCLE];
    *out = NULL;
    if (text == NULL || b->props.backend != NULL)
        return 0;
    x = xcalloc(1, sizeof *x);
    x->arena = arena_new(ARENA_BYTES);
    x->text = arena_strdup(x->arena, text);
    int code = parse(x->text, x->arena, &x->rules, err);
    if (code == 0 && s3_lifecycle_expires(&x->rules))
        *out = steal(x);
    return code;
}

bool expiry_is_of(const struct expiry *x, const struct bucket *b)
{
    const char *text = b->texts.text[BUCKET_LIFECYCLE];
    return text != NULL && b->props.backend == NULL && strcmp(text, x->text) == 0;
}

struct s3_lifecycle_now expiry_now(const struct cluster_state *s)
{
    struct cluster_settings settings;
    cluster_settings_get(&s->config, &settings);
    return (struct s3_lifecycle_now){.now_s = clock_wall_ms() / 1000,
                                     .day_s = (int64_t)(settings.lifecycle_day / 1000)};
}

/* A fraction of a second makes nothing older. */
static int64_t seconds_up(int64_t ms)
{
    return (ms + 999) / 1000;
}

bool expiry_may_take(const struct expiry *x, const char *name, const struct index_record *record,
                     const struct s3_lifecycle_now *now)
{
    const struct s3_lifecycle_object object = {
        .key = name, .size = record->size, .modified_s = seconds_up(record->modified_ms)};
    return !record->tombstone && record->job == NULL &&
           s3_lifecycle_object(&x->rules, &object, now, NULL) != S3_LIFECYCLE_KEEP;
}

bool expiry_takes(const struct expiry *x, const char *name, const struct attr *a,
                  const struct s3_lifecycle_now *now)
{
    struct attr shown = *a;
    if (ec_manifest_show(&shown, NULL) != 0)
        return false;
    struct s3_lifecycle_object object = {
        .key = name, .size = shown.size, .modified_s = seconds_up(shown.modified_ms)};
    enum s3_lifecycle_verdict verdict = s3_lifecycle_object(&x->rules, &object, now, NULL);
    if (verdict != S3_LIFECYCLE_NEEDS_TAGS)
        return verdict == S3_LIFECYCLE_EXPIRE;
    _cleanup_arena_ struct arena *arena = arena_new(ARENA_BYTES);
    struct s3_tags tags;
    attr_tags_read(a, arena, &tags);
    object.tags = &tags;
    return s3_lifecycle_object(&x->rules, &object, now, NULL) == S3_LIFECYCLE_EXPIRE;
}

bool expiry_reads_tags(const struct expiry *x)
{
    for (size_t i = 0; i < x->rules.count; i++) {
        if (x->rules.rules[i].tags.count > 0)
            return true;
    }
    return false;
}

bool expiry_aborts(const struct bucket *b, const char *name, int64_t begun_ms,
                   const struct s3_lifecycle_now *now)
{
    const char *text = b->texts.text[BUCKET_LIFECYCLE];
    struct s3_lifecycle rules;
    if (text == NULL)
        return false;
    _cleanup_arena_ struct arena *a = arena_new(ARENA_BYTES);
    return parse(text, a, &rules, NULL) == 0 &&
           s3_lifecycle_aborts(&rules, name, seconds_up(begun_ms), now);
}

/* What a bucket deletes by itself: <LifecycleConfiguration>, and the decision about one object or
 * upload.  Pure; fuzzed.
 *
 * A rule has a filter (prefix, size, tags; all of it must hold) and actions: objects expire some
 * days after their last write, or from a date on; uploads that are not completed are aborted some
 * days after their begin.  An age is rounded up to the next midnight UTC, as AWS does.  Objects
 * with internal names (common/internal_name.h) expire by rules with an internal prefix alone.  A
 * rule that expires delete markers finds none, as in a bucket of AWS without versions.
 * Transitions and noncurrent versions are S3_NOT_IMPLEMENTED. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "s3/tags.h"

enum { S3_LIFECYCLE_RULES_MAX = 1000 };

struct s3_lifecycle_rule {
    const char *id; /* NULL: none */
    bool is_enabled;
    const char *prefix;              /* NULL: none, as "" */
    bool has_filter;                 /* <Filter>, not the <Prefix> of older documents */
    uint64_t size_above, size_below; /* bytes, both excluded; size_below UINT64_MAX: no bound */
    bool has_size_above;
    struct s3_tags tags;
    uint64_t expire_days;  /* 0: none, as below */
    int64_t expire_from_s; /* a midnight; INT64_MAX: none */
    uint64_t abort_days;
    const char
        *marker; /* ExpiredObjectDeleteMarker; NULL: none.  Without versions it does nothing */
};

struct s3_lifecycle {
    struct s3_lifecycle_rule *rules;
    size_t count;
};

/* Texts are the arena's.  S3_MALFORMED_XML: also no rule, or one without action or status.
 * S3_INVALID_ARGUMENT: days, a date or a size that is none, or an ID that two rules have.
 * S3_INVALID_TAG.  S3_INVALID_REQUEST: a filter by tags or size for uploads, which have none. */
enum s3_error s3_lifecycle_parse(const char *body, size_t len, struct arena *arena,
                                 struct s3_lifecycle *out, struct s3_failure *why);
void s3_lifecycle_document(const struct s3_lifecycle *l, struct buf *out);

/* Is a rule enabled that expires objects? */
bool s3_lifecycle_expires(const struct s3_lifecycle *l);

/* The clock of decisions. */
struct s3_lifecycle_now {
    int64_t now_s;
    int64_t day_s; /* 86400; less in tests */
};

struct s3_lifecycle_object {
    const char *key;
    uint64_t size;
    int64_t modified_s;
    const struct s3_tags *tags; /* NULL: they have not been read */
};

enum s3_lifecycle_verdict { S3_LIFECYCLE_KEEP, S3_LIFECYCLE_EXPIRE, S3_LIFECYCLE_NEEDS_TAGS };

/* NEEDS_TAGS: the object expires if it has the tags of some rule.  *rule: which decided; NULL is
 * fine. */
enum s3_lifecycle_verdict s3_lifecycle_object(const struct s3_lifecycle *l,
                                              const struct s3_lifecycle_object *object,
                                              const struct s3_lifecycle_now *now,
                                              const struct s3_lifecycle_rule **rule);
/* The end of an object that some rule expires. */
struct s3_lifecycle_expiration {
    int64_t at_s; /* when the first rule may delete it; before now where it is due */
    const struct s3_lifecycle_rule *rule;
};

/* False: no rule expires it.  The tags must have been read. */
bool s3_lifecycle_expiration(const struct s3_lifecycle *l, const struct s3_lifecycle_object *object,
                             int64_t day_s, struct s3_lifecycle_expiration *out);
/* The same as x-amz-expiration has it: expiry-date="Fri, 23 Dec 2033 00:00:00 GMT", rule-id="a". */
void s3_lifecycle_expiration_text(const struct s3_lifecycle_expiration *x, struct buf *out);
/* Must an upload that began then be aborted? */
bool s3_lifecycle_aborts(const struct s3_lifecycle *l, const char *key, int64_t begun_s,
                         const struct s3_lifecycle_now *now);

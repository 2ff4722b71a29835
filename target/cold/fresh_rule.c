#include "target/cold/fresh_rule.h"

#include <string.h>

#include "common/parse.h"
#include "target/store/object.h"

struct kept fresh_kept(const struct attr *a)
{
    struct kept k = {.etag = NULL};
    size_t pos = 0;
    const char *name, *value;
    uint64_t seconds;
    while (attr_meta_next(a, &pos, &name, &value)) {
        if (strcmp(name, OBJECT_BACKEND_ETAG) == 0)
            k.etag = value;
        else if (strcmp(name, OBJECT_BACKEND_MODIFIED) == 0 &&
                 parse_u64(value, &seconds, NULL) == 0 && seconds < INT64_MAX)
            k.modified_s = (int64_t)seconds;
    }
    return k;
}

/* A clock that was set back makes nothing fresh for longer. */
static bool is_within(int64_t since_ms, uint64_t interval_ms, int64_t now_ms)
{
    return since_ms > 0 && since_ms <= now_ms && (uint64_t)(now_ms - since_ms) < interval_ms;
}

bool fresh_is_due(const struct bucket_props *p, const struct attr *a, int64_t asked_ms,
                  int64_t now_ms)
{
    if (p->backend == NULL || p->validate == VALIDATE_NEVER || attr_is_pending(a))
        return false;
    if (p->validate == VALIDATE_OPEN)
        return true;
    return !is_within(a->modified_ms, p->validate_interval_ms, now_ms) &&
           !is_within(asked_ms, p->validate_interval_ms, now_ms);
}

/* Of a server that takes no notice of the condition. */
static bool is_same(const struct kept *kept, const struct backend_facts *facts)
{
    if (kept->etag != NULL)
        return strcmp(kept->etag, facts->etag) == 0;
    return kept->modified_s > 0 && kept->modified_s == facts->modified_s;
}

enum freshness fresh_verdict(const struct kept *kept, int code, const struct backend_facts *facts)
{
    switch (code) {
    case 0:
        return facts->status == 304 || is_same(kept, facts) ? FRESH : CHANGED;
    case E_OBJECT_NOT_FOUND:
        return GONE;
    case E_BACKEND:
    case E_BACKEND_BUSY:
    case E_BACKEND_TIMEOUT:
        return UNKNOWN;
    default:
        return REFUSED;
    }
}

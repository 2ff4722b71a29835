#include "target/node/read_range.h"

#include <stdbool.h>
#include <stdio.h>

#include "common/parse.h"
#include "net/http/http.h"

static int parse_parameter(const char *name, const char *text, uint64_t *out, struct error *err)
{
    if (text == NULL)
        return 0;
    int code = parse_u64(text, out, err);
    return code == 0 ? 0 : error_recode(err, code, "parameter '%s'", name);
}

static int out_of_range(const struct read_question *q, struct error *err)
{
    return error_set(err, E_RANGE, "the range is outside the object's %llu bytes",
                     (unsigned long long)q->size);
}

static int pick_by_query(const struct read_question *q, struct read_range *out, struct error *err)
{
    uint64_t offset = 0, length = UINT64_MAX;
    int code = parse_parameter("offset", q->offset, &offset, err);
    if (code == 0)
        code = parse_parameter("length", q->length, &length, err);
    if (code != 0)
        return code;
    if (q->size == 0 && offset == 0) /* who reads piece by piece begins like this */
        return 0;
    if (offset >= q->size || length == 0)
        return out_of_range(q, err);
    uint64_t left = q->size - offset;
    *out = (struct read_range){206, offset, length < left ? length : left};
    return 0;
}

static bool is_unchanged(const struct read_question *q)
{
    char md5[64];
    if (http_if_range_holds(q->if_range, q->etag))
        return true;
    snprintf(md5, sizeof md5, "\"%s\"", q->md5 != NULL ? q->md5 : "");
    return q->md5 != NULL && http_if_range_holds(q->if_range, md5);
}

static int pick_by_header(const struct read_question *q, struct read_range *out, struct error *err)
{
    struct http_range range;
    if (q->range == NULL || !is_unchanged(q))
        return 0;
    switch (http_range_parse(q->range, q->size, &range)) {
    case HTTP_RANGE_NONE:
        return 0;
    case HTTP_RANGE_UNSATISFIABLE:
        return out_of_range(q, err);
    case HTTP_RANGE_OK:
        break;
    }
    *out = (struct read_range){206, range.offset, range.length};
    return 0;
}

int read_range_pick(const struct read_question *q, struct read_range *out, struct error *err)
{
    *out = (struct read_range){200, 0, q->size};
    bool by_query = q->offset != NULL || q->length != NULL;
    return by_query ? pick_by_query(q, out, err) : pick_by_header(q, out, err);
}

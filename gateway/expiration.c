#include "gateway/expiration.h"

#include <string.h>

#include "cluster/documents/settings.h"
#include "cluster/documents/state.h"
#include "cluster/documents/state_holder.h"
#include "common/clock.h"
#include "s3/lifecycle.h"

static int64_t day_of(const struct cluster_state *s)
{
    struct cluster_settings settings;
    cluster_settings_get(&s->config, &settings);
    return (int64_t)(settings.lifecycle_day / 1000);
}

static void reply(struct http_request *req, const struct gateway_call *call,
                  const struct expiration_object *o, const char *document, int64_t day_s)
{
    struct arena *a = http_arena(req);
    const char *modified = target_call_header(o->headers, "Last-Modified");
    const char *text = o->tags != NULL ? o->tags : "";
    _cleanup_buf_ struct buf value = BUF_INIT;
    struct s3_lifecycle rules;
    struct s3_lifecycle_expiration end;
    struct s3_tags tags;
    struct s3_lifecycle_object object = {.key = call->s3.key, .size = o->size, .tags = &tags};
    if (modified == NULL || clock_parse_http(modified, &object.modified_s) != 0 ||
        s3_tags_parse_header(text, S3_OBJECT_TAGS_MAX, a, &tags, NULL) != S3_OK ||
        s3_lifecycle_parse(document, strlen(document), a, &rules, NULL) != S3_OK ||
        !s3_lifecycle_expiration(&rules, &object, day_s, &end))
        return;
    s3_lifecycle_expiration_text(&end, &value);
    http_reply_header(req, "x-amz-expiration", buf_str(&value));
}

void expiration_reply(struct http_request *req, const struct gateway_call *call,
                      const struct expiration_object *object)
{
    _cleanup_state_ const struct cluster_state *s =
        state_current(gateway_config_of(call->gateway)->state);
    const struct bucket *b = bmd_bucket(&s->bmd, call->s3.bucket);
    const char *document = b != NULL ? b->texts.text[BUCKET_LIFECYCLE] : NULL;
    if (document != NULL && b->props.backend == NULL)
        reply(req, call, object, document, day_of(s));
}

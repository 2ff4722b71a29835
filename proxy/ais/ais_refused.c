#include "proxy/ais/ais_refused.h"

#include <string.h>

#include "common/cleanup.h"
#include "common/jsonx.h"
#include "proxy/ais/provider.h"
#include "proxy/primary/proxy.h"

void ais_refused_begin(struct http_request *req)
{
    struct error err;
    error_set(&err, E_UNSUPPORTED,
              "%s '%s' of AIStore's API is not served here (docs/guide/from-aistore.md has the "
              "calls that are)",
              http_method_name(http_method(req)), http_path(req));
    http_reply_error(req, &err);
}

/* A body without an action is refused: what is left of a lost body must not destroy a bucket. */
int ais_read_action(const char *data, size_t len, json_t **out, const char **action,
                    struct error *err)
{
    int code = json_parse(data, len, out, err);
    if (code == 0 && !json_is_object(*out))
        code = error_set(err, E_JSON, "the body must be an object with the field 'action'");
    return code != 0 ? code : json_need_str(*out, "", "action", action, err);
}

int ais_refuse_action(const char *action, struct error *err)
{
    return error_set(err, E_UNSUPPORTED,
                     "action '%.64s' of AIStore's API is not served here "
                     "(docs/guide/from-aistore.md has those that are)",
                     action);
}

int ais_check_refused(const struct http_request *req, const struct ais_refusal *table,
                      struct error *err)
{
    for (; table->parameter != NULL; table++) {
        const char *value = http_query(req, table->parameter);
        bool is_taken = value == NULL || value[0] == '\0' ||
                        (table->unless != NULL && strcmp(value, table->unless) == 0);
        if (!is_taken)
            return error_set(err, E_UNSUPPORTED, "parameter '%s=%.64s': %s is not supported",
                             table->parameter, value, table->what);
    }
    return 0;
}

/* A bucket that is not there is refused by the call itself. */
static bool is_provider(const struct http_request *req, const char *provider)
{
    const struct proxy *p = http_user(req);
    const char *name = http_path_param(req, "bucket");
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    const struct bucket *b = name != NULL ? bmd_bucket(&s->bmd, name) : NULL;
    return b != NULL && provider_fits(b, provider);
}

int ais_check_common(const struct http_request *req, struct error *err)
{
    static const struct ais_refusal table[] = {
        {"namespace", NULL, "a namespace"},
        {NULL},
    };
    const char *provider = http_query(req, "provider");
    bool is_own = provider == NULL || provider[0] == '\0' || strcmp(provider, "ais") == 0;
    if (!is_own && !is_provider(req, provider))
        return error_set(err, E_UNSUPPORTED,
                         "parameter 'provider=%.64s': the bucket has no such backend (every bucket "
                         "is of provider ais)",
                         provider);
    return ais_check_refused(req, table, err);
}

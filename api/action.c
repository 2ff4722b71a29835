#include "api/action.h"

#include "api/failure.h"
#include "common/jsonx.h"

int action_body(const char *action, const char *name, char **body, struct dfc_error *err)
{
    _cleanup_json_ json_t *doc = json_pack("{s:s, s:s}", "action", action, "name", name);
    if (doc == NULL)
        return failure_set(err, DFC_INVALID, E_NAME, "the name is not UTF-8");
    *body = json_text(doc);
    return DFC_OK;
}

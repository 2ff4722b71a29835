/* dfc_login: a password is exchanged for a token. */
#include "api/dfc.h"

#include "api/call.h"
#include "api/failure.h"
#include "api/identity/secret.h"
#include "common/jsonx.h"

int dfc_login(struct dfc_client *c, const char *user, const char *password, char **document,
              struct dfc_error *err)
{
    _cleanup_json_ json_t *doc = json_pack("{s:s, s:s}", "user", user, "password", password);
    if (doc == NULL)
        return failure_set(err, DFC_INVALID, E_INVALID, "the user or the password is not UTF-8");
    _cleanup_(secret_freep)
    char *body = json_text(doc);
    const struct call_small what = {.method = "POST", .body = body, .has_password = true};
    _cleanup_(buf_done)
    struct buf path = BUF_INIT;
    buf_puts(&path, "/v1/auth/token");
    return call_small(c, &what, &path, document, err);
}

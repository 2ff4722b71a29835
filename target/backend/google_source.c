#include "target/backend/google_source.h"

#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "io/file.h"
#include "target/backend/google_key.h"

#define GRANT_STATEMENT "urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer"
#define TOKEN_URI "https://oauth2.googleapis.com/token"
#define METADATA_HOST "metadata.google.internal"
#define METADATA_PATH "/computeMetadata/v1/instance/service-accounts/default/token"

enum {
    FILE_MAX = 1 << 20,
    SERVICE_TIMEOUT_MS = 60 * 1000,
    METADATA_TIMEOUT_MS = 5 * 1000, /* it is next door, or not there */
};

static const char *env_or(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value != NULL && *value != '\0' ? value : otherwise;
}

/* --- files ------------------------------------------------------------------------------------ */

static struct question form_to(const char *url, struct buf *form, struct arena *a)
{
    static const char *const lines[] = {"content-type: application/x-www-form-urlencoded", NULL};
    struct question q = {.who = "the token service",
                         .url = url,
                         .method = HTTP_POST,
                         .headers = lines,
                         .body = arena_strdup(a, buf_str(form)),
                         .timeout_ms = SERVICE_TIMEOUT_MS};
    OPENSSL_cleanse(form->data, form->len);
    return q;
}

static int of_service_account(json_t *doc, const char *text, size_t len, int64_t now_s,
                              struct arena *a, struct question *out, struct error *err)
{
    struct google_key key = {.email = ""};
    _cleanup_buf_ struct buf form = BUF_INIT;
    (void)doc;
    int code = google_key_parse(text, len, a, &key, err);
    if (code != 0)
        return code;
    buf_puts(&form, "grant_type=" GRANT_STATEMENT "&assertion=");
    code = google_key_sign(&key, now_s, &form, err);
    OPENSSL_cleanse((char *)(uintptr_t)key.private_key, strlen(key.private_key));
    if (code == 0)
        *out = form_to(key.token_uri, &form, a);
    return code;
}

static int of_authorized_user(json_t *doc, const char *text, size_t len, int64_t now_s,
                              struct arena *a, struct question *out, struct error *err)
{
    static const char *const names[] = {"client_id", "client_secret", "refresh_token"};
    const char *url = TOKEN_URI;
    _cleanup_buf_ struct buf form = BUF_INIT;
    (void)text, (void)len, (void)now_s;
    buf_puts(&form, "grant_type=refresh_token");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = "";
        if (json_need_str(doc, "", names[i], &value, NULL) != 0 || *value == '\0')
            return error_set(err, E_BACKEND_DENIED, "the user's credentials have no %s", names[i]);
        buf_printf(&form, "&%s=", names[i]);
        buf_put_url_escaped(&form, value, strlen(value), "");
    }
    if (json_get_str(doc, "", "token_uri", &url, NULL) != 0 ||
        (strncmp(url, "https://", 8) != 0 && strncmp(url, "http://", 7) != 0))
        return error_set(err, E_BACKEND_DENIED, "token_uri of the key file is no http(s) URL");
    *out = form_to(arena_strdup(a, url), &form, a);
    return 0;
}

int google_question_of_file(const char *text, size_t len, int64_t now_s, struct arena *a,
                            struct question *out, struct error *err)
{
    static const struct {
        const char *type;
        int (*make)(json_t *doc, const char *text, size_t len, int64_t now_s, struct arena *a,
                    struct question *out, struct error *err);
    } rows[] = {{"service_account", of_service_account}, {"authorized_user", of_authorized_user}};
    _cleanup_json_ json_t *doc = NULL;
    const char *type = "";
    if (json_parse(text, len, &doc, NULL) == 0 && json_get_str(doc, "", "type", &type, NULL) == 0) {
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            if (strcmp(type, rows[i].type) == 0)
                return rows[i].make(doc, text, len, now_s, a, out, err);
        }
    }
    return error_set(err, E_BACKEND_DENIED,
                     "the key file is not the JSON of a service account's key, nor of a user's "
                     "login (\"service_account\", \"authorized_user\")");
}

static int of_path(const char *path, int64_t now_s, struct arena *a, struct question *out,
                   struct error *err)
{
    _cleanup_buf_ struct buf text = BUF_INIT;
    struct error why = ERROR_INIT;
    if (file_read_all(path, FILE_MAX, &text, &why) != 0)
        return error_set(err, E_BACKEND_DENIED, "no key: '%s' cannot be read", path);
    int code = google_question_of_file(buf_str(&text), text.len, now_s, a, out, err);
    OPENSSL_cleanse(text.data, text.len);
    return code == 0 ? 0 : error_wrap(err, "'%s'", path);
}

/* What `gcloud auth application-default login` leaves; NULL where nobody has called it. */
static const char *login_path(struct arena *a)
{
    const char *folder = env_or("CLOUDSDK_CONFIG", NULL);
    if (folder == NULL)
        folder = arena_printf(a, "%s/.config/gcloud", env_or("HOME", ""));
    const char *path = arena_printf(a, "%s/application_default_credentials.json", folder);
    return access(path, F_OK) == 0 ? path : NULL;
}

/* --- the metadata server ---------------------------------------------------------------------- */

static struct question of_metadata(struct arena *a)
{
    static const char *const lines[] = {"metadata-flavor: Google", NULL};
    const char *host = env_or("GCE_METADATA_HOST", METADATA_HOST);
    return (struct question){.who = arena_printf(a, "the metadata server '%s'", host),
                             .url = arena_printf(a, "http://%s" METADATA_PATH, host),
                             .method = HTTP_GET,
                             .headers = lines,
                             .body = arena_strdup(a, ""),
                             .timeout_ms = METADATA_TIMEOUT_MS,
                             .is_metadata = true};
}

int google_question_make(struct arena *a, int64_t now_s, struct question *out, struct error *err)
{
    const char *path = env_or("GOOGLE_APPLICATION_CREDENTIALS", NULL);
    if (path == NULL)
        path = login_path(a);
    if (path != NULL)
        return of_path(path, now_s, a, out, err);
    *out = of_metadata(a);
    return 0;
}

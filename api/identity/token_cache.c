#include "api/identity/token_cache.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/identity/private_file.h"
#include "common/auth/mac.h"
#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "common/parse.h"

enum { NAME_BYTES = 16 };

/* ---- where it is ---- */

static const char *filled(const char *text)
{
    return text != NULL && text[0] != '\0' ? text : NULL;
}

/* malloc'ed; NULL: there is no home directory. */
static char *path_of(const char *access, const char *secret)
{
    const char *cache = filled(getenv("XDG_CACHE_HOME"));
    const char *home = filled(getenv("HOME"));
    _cleanup_free_ char *label = xprintf("dfc-token-cache-1\n%s\n", access);
    unsigned char mac[AUTH_MAC_BYTES];
    char name[2 * NAME_BYTES + 1];
    auth_hmac(secret, strlen(secret), label, strlen(label), mac);
    format_hex(mac, NAME_BYTES, name);
    if (cache != NULL)
        return xprintf("%s/dfc/%s.json", cache, name);
    return home != NULL ? xprintf("%s/.cache/dfc/%s.json", home, name) : NULL;
}

void token_cache_init(struct token_cache *t, const char *endpoints, const char *access,
                      const char *secret)
{
    *t = (struct token_cache){path_of(access, secret), xstrdup(endpoints)};
}

void token_cache_done(struct token_cache *t)
{
    free(t->path);
    free(t->endpoints);
    *t = (struct token_cache){NULL, NULL};
}

void token_cache_remove(const char *access, const char *secret)
{
    _cleanup_free_ char *path = path_of(access, secret);
    if (path != NULL)
        unlink(path);
}

/* ---- the file ---- */

/* An object; empty where the file cannot be used. */
static json_t *load(const struct token_cache *t)
{
    _cleanup_(private_text_wipe)
    struct buf text = BUF_INIT;
    json_t *doc = NULL;
    if (private_file_read(t->path, &text, NULL) == DFC_OK)
        json_parse_secret(text.data, text.len, &doc, NULL);
    if (json_is_object(doc))
        return doc;
    json_decref(doc);
    return json_object();
}

static void store(const struct token_cache *t, json_t *doc)
{
    _cleanup_(secret_freep)
    char *text = json_text(doc);
    private_file_write(t->path, text, NULL);
}

/* The text stays the document's.  False: it is none, or has ended. */
static bool row_read(json_t *row, uint64_t now_ms, struct kept_token *out)
{
    const char *text = NULL;
    *out = (struct kept_token){0};
    if (json_need_str(row, "", "token", &text, NULL) != 0 ||
        json_need_u64(row, "", "renew_ms", &out->renew_ms, NULL) != 0 ||
        json_need_u64(row, "", "expires_ms", &out->expires_ms, NULL) != 0)
        return false;
    out->text = (char *)text;
    return out->expires_ms > now_ms && text[strcspn(text, " \r\n")] == '\0';
}

static void remove_ended(json_t *doc, uint64_t now_ms)
{
    const char *endpoints;
    json_t *row;
    void *next;
    json_object_foreach_safe(doc, next, endpoints, row)
    {
        struct kept_token one;
        if (!row_read(row, now_ms, &one))
            json_object_del(doc, endpoints);
    }
}

/* ---- tokens ---- */

bool token_cache_get(const struct token_cache *t, uint64_t now_ms, struct kept_token *out)
{
    if (t->path == NULL)
        return false;
    _cleanup_json_ json_t *doc = load(t);
    if (!row_read(json_object_get(doc, t->endpoints), now_ms, out))
        return false;
    out->text = xstrdup(out->text);
    return true;
}

void token_cache_put(const struct token_cache *t, uint64_t now_ms, const struct kept_token *token)
{
    if (t->path == NULL)
        return;
    _cleanup_json_ json_t *doc = load(t);
    json_t *row =
        json_pack("{s:s, s:I, s:I}", "token", token->text, "renew_ms", (json_int_t)token->renew_ms,
                  "expires_ms", (json_int_t)token->expires_ms);
    remove_ended(doc, now_ms);
    if (row != NULL && json_object_set_new(doc, t->endpoints, row) == 0)
        store(t, doc);
}

void token_cache_drop(const struct token_cache *t, const char *text)
{
    struct kept_token kept;
    if (t->path == NULL)
        return;
    _cleanup_json_ json_t *doc = load(t);
    if (!row_read(json_object_get(doc, t->endpoints), 0, &kept) || strcmp(kept.text, text) != 0)
        return;
    json_object_del(doc, t->endpoints);
    store(t, doc);
}

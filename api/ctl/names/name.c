#include "api/ctl/names/name.h"

#include "api/ctl/names/glob.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/path.h"

#define SCHEME "dfc://"

int object_name_parse(const char *text, struct object_name *out, struct error *err)
{
    const char *plain = strncmp(text, SCHEME, strlen(SCHEME)) == 0 ? text + strlen(SCHEME) : text;
    size_t len = strcspn(plain, "/");
    if (len == 0)
        return error_set(err, E_NAME, "'%s' names no bucket: expected BUCKET/KEY", text);
    if (plain[len - 1] == ':' && plain[len] == '/')
        return error_set(err, E_NAME, "'%s': an object is named BUCKET/KEY or dfc://BUCKET/KEY",
                         text);
    out->bucket = xstrndup(plain, len);
    out->key = xstrdup(plain[len] == '/' ? plain + len + 1 : "");
    return 0;
}

void object_name_done(struct object_name *n)
{
    free(steal(n->bucket));
    free(steal(n->key));
}

void name_note_pattern(const char *key, struct dfc_error *err)
{
    size_t len = strlen(err->message);
    if (glob_is(key) && strcmp(err->code, error_name(E_OBJECT_NOT_FOUND)) == 0)
        snprintf(err->message + len, sizeof err->message - len,
                 "; this command takes no patterns (ls, get, rm and cp do)");
}

void object_name_make_prefix(struct object_name *n)
{
    struct buf key = BUF_INIT;
    buf_puts(&key, "");
    if (n->key[0] != '\0')
        name_join(&key, n->key, "");
    free(n->key);
    n->key = buf_steal(&key);
}

bool names_overlap(const struct object_name *a, const struct object_name *b)
{
    size_t a_len = strlen(a->key), b_len = strlen(b->key);
    return strcmp(a->bucket, b->bucket) == 0 &&
           strncmp(a->key, b->key, a_len < b_len ? a_len : b_len) == 0;
}

const char *name_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

int name_check_local(const char *key, struct error *err)
{
    const char *flaw = path_flaw(key);
    return flaw == NULL
               ? 0
               : error_set(err, E_NAME, "'%s' cannot be a file here: it has %s", key, flaw);
}

void name_join(struct buf *out, const char *prefix, const char *rest)
{
    size_t n = strlen(prefix);
    buf_puts(out, prefix);
    if (n > 0 && prefix[n - 1] != '/')
        buf_putc(out, '/');
    buf_puts(out, rest);
}

#include "cluster/documents/names.h"

#include <string.h>

#include "common/parse.h"

enum { LABEL_MAX = 63, OBJECT_NAME_MAX = 1024 };

static bool is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool is_label(const char *text)
{
    size_t len = strlen(text);
    if (len == 0 || len > LABEL_MAX)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (!is_alnum(text[i]) && strchr("_.-", text[i]) == NULL)
            return false;
    }
    return true;
}

int bucket_name_check(const char *name, struct error *err)
{
    if (is_label(name) && is_alnum(name[0]))
        return 0;
    return error_set(err, E_NAME,
                     "'%.80s' is not a bucket name: 1 to %d letters, digits, '_', '.', '-', the "
                     "first a letter or digit",
                     name, LABEL_MAX);
}

int object_name_check(const char *name, size_t len, struct error *err)
{
    if (len == 0)
        return error_set(err, E_NAME, "an object name must not be empty");
    if (len > OBJECT_NAME_MAX)
        return error_set(err, E_NAME, "an object name of %zu bytes exceeds %d", len,
                         OBJECT_NAME_MAX);
    if (!utf8_valid(name, len))
        return error_set(err, E_NAME, "an object name must be UTF-8 without NUL");
    return 0;
}

int node_id_check(const char *id, struct error *err)
{
    if (is_label(id))
        return 0;
    return error_set(err, E_INVALID,
                     "'%.80s' is not a node id: 1 to %d letters, digits, '_', '.', '-'", id,
                     LABEL_MAX);
}

/* "http://HOST:PORT" */
static bool is_base_url(const char *text, size_t len)
{
    static const char scheme[] = "http://";
    const size_t before = sizeof scheme - 1;
    size_t port = len;
    while (port > before && text[port - 1] >= '0' && text[port - 1] <= '9')
        port--;
    return strncmp(text, scheme, before) == 0 && port < len && port > before + 1 &&
           text[port - 1] == ':' && memchr(text + before, '/', port - before) == NULL;
}

int node_join_check(const char *join, struct error *err)
{
    for (const char *url = join; *join != '\0'; url++) {
        size_t len = strcspn(url, ",");
        if (!is_base_url(url, len))
            return error_set(err, E_INVALID,
                             "--join: '%.*s' is not the control address of a proxy: expected "
                             "http://HOST:PORT",
                             len < 80 ? (int)len : 80, url);
        url += len;
        if (*url == '\0')
            break;
    }
    return 0;
}

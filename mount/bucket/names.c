#include "mount/bucket/names.h"

#include <errno.h>
#include <string.h>

#include "common/mem.h"
#include "common/utf8.h"

#define SCHEME "dfc://"

bool name_is_shown(const char *text, size_t len)
{
    if (len == 0 || len > NAME_MAX_BYTES)
        return false;
    return text[0] != '.' || (len > 1 && (len > 2 || text[1] != '.'));
}

struct name_part name_in(const char *prefix, const char *key)
{
    size_t skip = strlen(prefix);
    if (strncmp(key, prefix, skip) != 0)
        return (struct name_part){.kind = NAME_HIDDEN};
    if (key[skip] == '\0')
        return (struct name_part){.kind = NAME_ITSELF};
    struct name_part part = {.text = key + skip, .len = strcspn(key + skip, "/")};
    part.kind = part.text[part.len] == '/' ? NAME_DIRECTORY : NAME_FILE;
    if (!name_is_shown(part.text, part.len))
        part.kind = NAME_HIDDEN;
    return part;
}

int name_check_key(const char *key)
{
    size_t len = strlen(key);
    if (len > NAME_KEY_MAX)
        return -ENAMETOOLONG;
    return utf8_valid(key, len) ? 0 : -EILSEQ;
}

char *name_file(const char *prefix, const char *name)
{
    return xprintf("%s%s", prefix, name);
}

char *name_directory(const char *prefix, const char *name)
{
    return xprintf("%s%s/", prefix, name);
}

bool name_parse_url(const char *url, char **bucket, char **prefix)
{
    if (strncmp(url, SCHEME, strlen(SCHEME)) != 0)
        return false;
    const char *at = url + strlen(SCHEME);
    size_t len = strcspn(at, "/");
    if (len == 0)
        return false;
    const char *rest = at[len] == '/' ? at + len + 1 : "";
    size_t end = strlen(rest);
    *bucket = xstrndup(at, len);
    *prefix = end == 0 || rest[end - 1] == '/' ? xstrdup(rest) : xprintf("%s/", rest);
    return true;
}

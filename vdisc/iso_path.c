#include "vdisc/iso_path.h"

#include <string.h>

#include "common/arena.h"
#include "common/utf8.h"
#include "vdisc/iso.h"

#define PATH_LENGTH_MAX 4095 /* bytes: what Linux opens */
#define NOT_EXTENDED "/\\?%*:|\"<> $!"

static bool is_portable(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
}

static bool is_allowed(enum iso_names names, unsigned char c)
{
    if (names == ISO_NAMES_PORTABLE)
        return is_portable(c);
    if (names == ISO_NAMES_EXTENDED)
        return c > ' ' && c != 0x7f && strchr(NOT_EXTENDED, c) == NULL;
    return true;
}

static int check_part(const char *path, const char *part, size_t len, enum iso_names names,
                      struct error *err)
{
    if (len == 2 && memcmp(part, "..", 2) == 0)
        return error_set(err, E_IMAGE_NAME, "path '%.200s': a part '..' leads out of the image",
                         path);
    if (len > ISO_NAME_MAX)
        return error_set(err, E_IMAGE_NAME,
                         "path '%.200s': a name of %zu bytes is too long: at most %d bytes", path,
                         len, ISO_NAME_MAX);
    if (!utf8_valid(part, len))
        return error_set(err, E_IMAGE_NAME, "path '%.200s': a name must be UTF-8", path);
    for (size_t i = 0; i < len; i++) {
        if (!is_allowed(names, (unsigned char)part[i]))
            return error_set(err, E_IMAGE_NAME,
                             "path '%.200s': byte 0x%02x is not allowed in names: rename the file "
                             "or allow more characters",
                             path, (unsigned char)part[i]);
    }
    return 0;
}

int iso_path_clean(const char *path, enum iso_names names, struct arena *a, const char **out,
                   struct error *err)
{
    if (strlen(path) > PATH_LENGTH_MAX)
        return error_set(err, E_IMAGE_NAME, "path '%.200s…' has more than %d bytes", path,
                         PATH_LENGTH_MAX);
    char *clean = arena_bytes(a, strlen(path) + 2);
    size_t used = 0;
    for (const char *part = path; *part != '\0';) {
        size_t len = strcspn(part, "/");
        bool dropped = len == 0 || (len == 1 && part[0] == '.');
        if (!dropped) {
            int rc = check_part(path, part, len, names, err);
            if (rc != 0)
                return rc;
            if (used > 0)
                clean[used++] = '/';
            memcpy(clean + used, part, len);
            used += len;
        }
        part += len + (part[len] == '/');
    }
    clean[used] = '\0';
    *out = clean;
    return 0;
}

uint8_t iso_path_rank(char c)
{
    const unsigned char byte = (unsigned char)c;
    return c == '/' ? 1 : c != '\0' && byte < '/' ? (uint8_t)(byte + 1) : byte;
}

int iso_path_compare(const char *a, const char *b)
{
    while (*a != '\0' && *a == *b) {
        a++;
        b++;
    }
    return iso_path_rank(*a) - iso_path_rank(*b);
}

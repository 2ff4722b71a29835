#include "common/backup.h"

#include <string.h>

#include "common/checksum.h"
#include "common/cleanup.h"
#include "common/jsonx.h"

enum { FORMAT = 1 };

static void digest(const json_t *state, char hex[static 2 * CHECKSUM_MAX + 1])
{
    _cleanup_free_ char *text = json_dumps(state, JSON_COMPACT | JSON_SORT_KEYS);
    struct checksum *c = checksum_new(CHECKSUM_SHA256);
    struct checksum_value value;
    checksum_update(c, text, strlen(text));
    checksum_final(c, &value);
    checksum_free(c);
    checksum_hex(&value, hex);
}

bool backup_is(json_t *doc)
{
    return json_object_get(doc, "dfc_backup") != NULL;
}

json_t *backup_wrap(json_t *state, const char *release, int64_t taken_ms)
{
    char hex[2 * CHECKSUM_MAX + 1];
    digest(state, hex);
    return json_pack("{s:i, s:s, s:I, s:{s:s, s:s}, s:O}", "dfc_backup", FORMAT, "release", release,
                     "taken_ms", (json_int_t)taken_ms, "checksum", "type", "sha256", "value", hex,
                     "state", state);
}

int backup_unwrap(json_t *doc, json_t **state, struct error *err)
{
    char hex[2 * CHECKSUM_MAX + 1];
    uint64_t format;
    json_t *checksum = NULL;
    const char *type;
    const char *value;
    int r;
    if (!backup_is(doc))
        return error_set(err, E_INVALID, "this is no backup: it has no field 'dfc_backup'");
    if ((r = json_need_u64(doc, "", "dfc_backup", &format, err)) != 0)
        return r;
    if (format != FORMAT)
        return error_set(err, E_UNSUPPORTED,
                         "the backup has format %llu, and this release reads format %d",
                         (unsigned long long)format, FORMAT);
    *state = NULL;
    if ((r = json_get_object(doc, "", "state", state, err)) != 0 ||
        (r = json_get_object(doc, "", "checksum", &checksum, err)) != 0)
        return r;
    if (*state == NULL || checksum == NULL)
        return error_set(err, E_CORRUPT,
                         "the backup is not whole: 'state' or 'checksum' is missing");
    if ((r = json_need_str(checksum, "checksum", "type", &type, err)) != 0 ||
        (r = json_need_str(checksum, "checksum", "value", &value, err)) != 0)
        return r;
    digest(*state, hex);
    if (strcmp(type, "sha256") == 0 && strcmp(value, hex) == 0)
        return 0;
    return error_set(err, E_CORRUPT,
                     "the backup is damaged, or was changed by hand: its checksum is "
                     "%s, and it says %.80s",
                     hex, value);
}

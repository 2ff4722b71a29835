/* format: a volume's metadata, and its bucket.
 *
 * The bucket gets NAME/format.json, which no other volume may have.  The metadata are last: without
 * them there is no volume, and the command may be repeated. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/dfc.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "mount/bucket/names.h"
#include "mount/meta/engines.h"
#include "mount/program/client.h"
#include "mount/program/config.h"
#include "mount/program/options.h"
#include "mount/program/program.h"
#include "mount/volume/format.h"

enum { TRASH_DAYS = 1 }; /* of a new volume */

static int fail(const struct dfc_error *err)
{
    return program_fail(client_exit_of(err->result), "%s", err->message);
}

/* ---- the bucket ---- */

static int check_empty(struct dfc_client *client, const char *bucket)
{
    struct dfc_error err;
    struct dfc_list *list;
    const struct dfc_entry *e;
    const struct dfc_list_options options = {.page_size = 1};
    if (dfc_list_open(client, bucket, &options, &list, &err) != DFC_OK)
        return fail(&err);
    int code = PROGRAM_OK, rc = dfc_list_next(list, &e, &err);
    if (rc < 0)
        code = fail(&err);
    else if (rc > 0)
        code =
            program_fail(PROGRAM_FAILED, "bucket '%s' has objects, such as '%s': take an empty one",
                         bucket, e->name);
    dfc_list_close(list);
    return code;
}

/* Made where there is none. */
static int need_bucket(struct dfc_client *client, const char *bucket)
{
    struct dfc_error err;
    char *text;
    int rc = dfc_bucket_show(client, bucket, &text, &err);
    if (rc == DFC_OK) {
        dfc_free(text);
        return check_empty(client, bucket);
    }
    if (rc != DFC_NOT_FOUND)
        return fail(&err);
    rc = dfc_bucket_create(client, bucket, "{\"durability\": \"sync\"}", &err);
    return rc == DFC_OK ? PROGRAM_OK : fail(&err);
}

/* ---- the metadata ---- */

/* A volume that is there is not touched. */
static int check_new(const char *url)
{
    struct meta *m;
    struct volume_format f;
    struct error err = ERROR_INIT;
    int rc = engines_open(url, false, &m, &err);
    if (rc == E_NOT_FOUND)
        return PROGRAM_OK;
    if (rc != 0)
        return program_fail(client_exit_of_code(rc), "%s", err.message);
    rc = format_read(m, &f, &err);
    meta_close(m);
    if (rc == E_NOT_FOUND)
        return PROGRAM_OK;
    if (rc != 0)
        return program_fail(client_exit_of_code(rc), "%s", err.message);
    _cleanup_free_ char *shown = engines_shown(url);
    return program_fail(PROGRAM_FAILED, "'%s' has the volume '%s' already: take another place",
                        shown, f.name);
}

static int write_metadata(const char *url, const struct volume_format *f)
{
    struct meta *m;
    struct error err = ERROR_INIT;
    int rc = engines_open(url, true, &m, &err);
    if (rc != 0)
        return program_fail(client_exit_of_code(rc), "%s", err.message);
    rc = format_write(m, f, geteuid(), getegid(), &err);
    meta_close(m);
    return rc == 0 ? PROGRAM_OK : program_fail(client_exit_of_code(rc), "%s", err.message);
}

static int format(const struct options *o, struct dfc_client *client, const char *bucket)
{
    struct volume_format f;
    struct dfc_error err;
    const struct dfc_put_options options = {.if_absent = true, .content_type = "application/json"};
    _cleanup_free_ char *url = xprintf("dfc://%s", bucket);
    format_init(&f, o->name, url);
    f.trash_days = TRASH_DAYS;
    config_take(o, &f);
    int code = need_bucket(client, bucket);
    if (code != PROGRAM_OK)
        return code;
    _cleanup_free_ char *key = xprintf("%s/format.json", f.name);
    _cleanup_free_ char *text = format_text(&f);
    if (dfc_put_memory(client, bucket, key, text, strlen(text), &options, NULL, &err) != DFC_OK)
        return fail(&err);
    code = write_metadata(o->url, &f);
    if (code != PROGRAM_OK && dfc_delete(client, bucket, key, &err) != DFC_OK)
        fail(&err);
    return code;
}

int program_format(const struct options *o)
{
    struct dfc_client *client;
    struct volume_format f;
    struct error err = ERROR_INIT;
    _cleanup_free_ char *bucket = NULL;
    _cleanup_free_ char *prefix = NULL;
    if (!name_parse_url(o->bucket, &bucket, &prefix) || prefix[0] != '\0')
        return program_fail(PROGRAM_USAGE, "--bucket '%s' is not dfc://BUCKET", o->bucket);
    if (strlen(o->name) > VOLUME_NAME_MAX)
        return program_fail(PROGRAM_USAGE, "volume '%s': a name has at most %d bytes", o->name,
                            VOLUME_NAME_MAX);
    format_init(&f, o->name, o->bucket);
    if (format_check(&f, &err) != 0)
        return program_fail(PROGRAM_USAGE, "%s", err.message);
    int code = check_new(o->url);
    if (code != PROGRAM_OK)
        return code;
    code = client_open(o, o->ca_file, 1, &client);
    if (code != PROGRAM_OK)
        return code;
    code = format(o, client, bucket);
    dfc_client_close(client);
    return code;
}

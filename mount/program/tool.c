#include "mount/program/tool.h"

#include <errno.h>
#include <stdlib.h>

#include "mount/bucket/names.h"

int tool_fail(const struct dfc_error *err)
{
    return program_fail(client_exit_of(err->result), "%s", err->message);
}

int tool_open(const struct options *o, struct tool *t)
{
    struct error err = ERROR_INIT;
    _cleanup_free_ char *prefix = NULL;
    *t = (struct tool){0};
    if (engines_open(o->directory, false, &t->meta, &err) != 0 ||
        format_read(t->meta, &t->format, &err) != 0)
        return program_fail(client_exit_of_code(err.code), "%s", err.message);
    if (!name_parse_url(t->format.bucket, &t->bucket, &prefix))
        return program_fail(PROGRAM_FAILED, "the volume's bucket '%s' is not dfc://BUCKET",
                            t->format.bucket);
    return client_open(o, o->ca_file, 1, &t->client);
}

void tool_close(struct tool *t)
{
    volume_close(t->volume);
    if (t->client != NULL)
        dfc_client_close(t->client);
    meta_close(t->meta);
    free(t->bucket);
}

int tool_open_volume(struct tool *t)
{
    struct volume_env env;
    struct error err = ERROR_INIT;
    volume_env_init(&env);
    return volume_open(t->meta, &env, &t->volume, &err) == 0
               ? PROGRAM_OK
               : program_fail(client_exit_of_code(err.code), "%s", err.message);
}

int tool_remove(void *tool, const char *key)
{
    struct dfc_error err;
    struct tool *t = tool;
    int rc = dfc_delete(t->client, t->bucket, key, &err);
    if (rc == DFC_OK || rc == DFC_NOT_FOUND)
        return 0;
    tool_fail(&err);
    return -EIO;
}

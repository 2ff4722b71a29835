/* config: what may be changed of a volume. */
#include "mount/program/config.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/cleanup.h"
#include "mount/meta/engines.h"
#include "mount/program/client.h"
#include "mount/program/options.h"
#include "mount/program/program.h"
#include "mount/volume/format.h"

static int64_t limit_of(uint64_t given)
{
    return given == 0 ? INT64_MAX : (int64_t)given;
}

void config_take(const struct options *o, struct volume_format *f)
{
    if (o->trash_days != OPTIONS_AS_IT_IS)
        f->trash_days = o->trash_days;
    if (o->capacity_bytes != OPTIONS_AS_IT_IS)
        f->max_bytes = limit_of(o->capacity_bytes);
    if (o->inodes != OPTIONS_AS_IT_IS)
        f->max_inodes = limit_of(o->inodes);
}

static void show_limit(const char *name, int64_t limit)
{
    if (limit == INT64_MAX)
        printf("%-10s  no limit\n", name);
    else
        printf("%-10s  %" PRId64 "\n", name, limit);
}

static int change(const struct options *o, struct meta *m)
{
    struct volume_format was, f;
    struct error err = ERROR_INIT;
    int rc = format_read(m, &was, &err);
    f = was;
    config_take(o, &f);
    if (rc == 0 && (f.trash_days != was.trash_days || f.max_bytes != was.max_bytes ||
                    f.max_inodes != was.max_inodes))
        rc = format_change(m, &was, &f, &err);
    if (rc != 0)
        return program_fail(client_exit_of_code(rc), "%s", err.message);
    printf("volume      %s\nbucket      %s\ntrash-days  %" PRIu64 "\n", f.name, f.bucket,
           f.trash_days);
    show_limit("capacity", f.max_bytes);
    show_limit("inodes", f.max_inodes);
    return PROGRAM_OK;
}

int program_config(const struct options *o)
{
    struct meta *m;
    struct error err = ERROR_INIT;
    int rc = engines_open(o->directory, false, &m, &err);
    if (rc != 0)
        return program_fail(client_exit_of_code(rc), "%s", err.message);
    int code = change(o, m);
    meta_close(m);
    return code;
}

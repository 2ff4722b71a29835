/* trash: what was removed from a mounted volume is shown, or comes back. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "mount/fuse/volume_control.h"
#include "mount/program/inside.h"
#include "mount/program/options.h"
#include "mount/program/program.h"

struct trash {
    int fd; /* in the mount */
    const char *directory;
};

/* Each row of the hour, or of all (""), to `take`.  An exit code. */
static int each(const struct trash *t, const char *hour,
                void (*take)(void *context, const char *hour, const struct control_trashed *row),
                void *context)
{
    struct control_trash c = {0};
    snprintf(c.hour, sizeof c.hour, "%s", hour);
    for (;;) {
        int code = inside_ask(t->fd, CONTROL_TRASH, &c, t->directory);
        if (code != PROGRAM_OK || c.ends != 0 || (hour[0] != '\0' && strcmp(hour, c.hour) != 0))
            return code;
        for (uint32_t i = 0; i < c.count; i++)
            take(context, c.hour, &c.rows[i]);
    }
}

static void show(void *context, const char *hour, const struct control_trashed *row)
{
    (void)context;
    if (S_ISDIR(row->type))
        printf("%15s  %s/%s\n", "directory", hour, row->name);
    else
        printf("%15" PRId64 "  %s/%s\n", row->length, hour, row->name);
}

/* ---- restore ---- */

struct name {
    char *text; /* NULL: it came back */
    int64_t removed_ns;
};

struct names {
    struct name *all;
    size_t count, room;
    size_t left;
};

static void remember(void *context, const char *hour, const struct control_trashed *row)
{
    struct names *n = context;
    (void)hour;
    if (n->count == n->room) {
        n->room = 2 * n->room + 64;
        n->all = xrealloc(n->all, n->room * sizeof *n->all);
    }
    n->all[n->count++] = (struct name){xstrdup(row->name), row->removed_ns};
    n->left++;
}

/* Of several files that had one name the last comes back. */
static int newest_first(const void *left, const void *right)
{
    const struct name *a = left, *b = right;
    return (a->removed_ns < b->removed_ns) - (a->removed_ns > b->removed_ns);
}

static int restore_one(const struct trash *t, const char *hour, const char *name, int *error)
{
    struct control_restore c = {0};
    if (snprintf(c.hour, sizeof c.hour, "%s", hour) >= (int)sizeof c.hour ||
        snprintf(c.name, sizeof c.name, "%s", name) >= (int)sizeof c.name)
        return program_fail(PROGRAM_USAGE, "'%s/%s': %s", hour, name, strerror(ENAMETOOLONG));
    int code = inside_ask(t->fd, CONTROL_RESTORE, &c, t->directory);
    *error = c.error;
    return code;
}

static int tell(const char *hour, const char *name, int error)
{
    static const struct {
        int error;
        const char *text;
    } rows[] = {
        {ENOENT, "it is not in the trash, or its directory is gone: restore that first"},
        {EEXIST, "its directory has that name again: rename that first"},
        {EINVAL, "it is a part of a clone that was not completed"},
    };
    const char *text = strerror(error);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].error == error)
            text = rows[i].text;
    }
    return program_fail(inside_exit_of(error), "'%s/%s': %s", hour, name, text);
}

/* Names whose directories are in the trash, too, follow them: so as often as one came back. */
static int restore_names(const struct trash *t, const char *hour, struct names *n)
{
    int error, code = PROGRAM_OK;
    for (size_t before = n->left + 1; code == PROGRAM_OK && n->left < before;) {
        before = n->left;
        for (size_t i = 0; i < n->count && code == PROGRAM_OK; i++) {
            char *name = n->all[i].text;
            if (name == NULL)
                continue;
            code = restore_one(t, hour, name, &error);
            if (code != PROGRAM_OK || error != 0)
                continue;
            printf("%s/%s\n", hour, name);
            free(name);
            n->all[i].text = NULL;
            n->left--;
        }
    }
    for (size_t i = 0; i < n->count && code == PROGRAM_OK; i++) {
        const char *name = n->all[i].text;
        if (name != NULL && restore_one(t, hour, name, &error) == PROGRAM_OK && error != 0)
            tell(hour, name, error);
    }
    return code != PROGRAM_OK ? code : n->left > 0 ? PROGRAM_PARTLY : PROGRAM_OK;
}

static int restore_hour(const struct trash *t, const char *hour)
{
    struct names n = {0};
    int code = each(t, hour, remember, &n);
    if (code == PROGRAM_OK && n.count == 0)
        code = program_fail(PROGRAM_NOT_FOUND, "'%s': the trash has nothing of it", hour);
    if (code == PROGRAM_OK) {
        qsort(n.all, n.count, sizeof *n.all, newest_first);
        code = restore_names(t, hour, &n);
    }
    for (size_t i = 0; i < n.count; i++)
        free(n.all[i].text);
    free(n.all);
    return code;
}

/* HOUR, or HOUR/NAME. */
static int restore(const struct trash *t, const char *what)
{
    int error;
    _cleanup_free_ char *hour = xstrdup(what);
    char *slash = strchr(hour, '/');
    if (hour[0] == '\0' || slash == hour)
        return program_fail(PROGRAM_USAGE, "'%s' names no hour: expected HOUR or HOUR/NAME", what);
    if (slash == NULL)
        return restore_hour(t, hour);
    *slash = '\0';
    int code = restore_one(t, hour, slash + 1, &error);
    if (code == PROGRAM_OK && error != 0)
        code = tell(hour, slash + 1, error);
    if (code == PROGRAM_OK)
        printf("%s\n", what);
    return code;
}

static int run(const struct options *o, const struct trash *t)
{
    int code = PROGRAM_OK;
    if (strcmp(o->paths[0], "ls") == 0)
        return each(t, "", show, NULL);
    for (size_t i = 2; i < o->path_count; i++) {
        int one = restore(t, o->paths[i]);
        code = code != PROGRAM_OK ? code : one;
    }
    return code;
}

int program_trash(const struct options *o)
{
    const bool lists = strcmp(o->paths[0], "ls") == 0;
    if (!lists && strcmp(o->paths[0], "restore") != 0)
        return program_fail(PROGRAM_USAGE, "there is no 'trash %s': expected 'ls' or 'restore'",
                            o->paths[0]);
    if (lists != (o->path_count == 2))
        return program_fail(PROGRAM_USAGE, "expected 'trash ls DIR' or 'trash restore DIR NAME…'");
    const struct trash t = {
        .fd = open(o->paths[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC),
        .directory = o->paths[1],
    };
    struct stat st;
    if (t.fd < 0 || fstat(t.fd, &st) != 0)
        return program_fail(inside_exit_of(errno), "'%s': %s", t.directory, strerror(errno));
    int code =
        st.st_ino == VOLUME_ROOT
            ? run(o, &t)
            : program_fail(PROGRAM_USAGE, "'%s' is not the root of a mounted volume: name that",
                           t.directory);
    close(t.fd);
    return code;
}

/* quota: limits of directories of a volume, by the volume's metadata: it may be mounted or not. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "mount/meta/engines.h"
#include "mount/program/client.h"
#include "mount/program/options.h"
#include "mount/program/program.h"
#include "mount/volume/check/repair.h"
#include "mount/volume/trees/trees.h"

struct run {
    const struct options *o;
    struct meta *m;
    struct volume_format format;
    struct volume *v;
};

/* ---- paths ---- */

static int say_path(const char *path, int error)
{
    static const struct {
        int error, code;
        const char *text;
    } rows[] = {
        {ENOENT, PROGRAM_NOT_FOUND, "there is no such directory in the volume"},
        {ENOTDIR, PROGRAM_USAGE, "it is no directory"},
        {ENODATA, PROGRAM_NOT_FOUND, "it has no quota"},
        {EEXIST, PROGRAM_FAILED, "a directory above has a quota: quotas are not nested"},
        {EBUSY, PROGRAM_FAILED, "a directory below has a quota: quotas are not nested"},
        {EFBIG, PROGRAM_FAILED, "the files below are longer in sum than a quota counts"},
        {EINVAL, PROGRAM_USAGE,
         "the root has no quota: limit the volume with 'fs config', or name a directory"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].error == error)
            return program_fail(rows[i].code, "'%s': %s", path, rows[i].text);
    }
    return program_fail(PROGRAM_FAILED, "'%s': %s", path, strerror(error));
}

/* From the root of the volume, with or without a slash before. */
static int find_path(const struct run *r, const char *path, uint64_t *ino)
{
    _cleanup_free_ char *text = xstrdup(path);
    char *rest = text;
    *ino = VOLUME_ROOT;
    for (char *name; (name = strsep(&rest, "/")) != NULL;) {
        struct volume_inode found;
        if (name[0] == '\0')
            continue;
        int rc = volume_lookup(r->v, *ino, name, &found);
        if (rc == 0 && !attr_is_directory(&found.attr))
            rc = -ENOTDIR;
        if (rc != 0)
            return say_path(path, -rc);
        *ino = found.ino;
    }
    return PROGRAM_OK;
}

/* The name that the directory has for an inode; malloc'ed, or NULL. */
static char *name_in(const struct run *r, uint64_t directory, uint64_t ino)
{
    struct arena *arena = arena_new(4096);
    char after[META_NAME_MAX + 1] = "";
    char *found = NULL;
    bool more = true;
    while (more && found == NULL) {
        struct volume_name *names;
        size_t count;
        arena_reset(arena);
        if (volume_readdir(r->v, directory, after, 500, arena, &names, &count, &more) != 0 ||
            count == 0)
            break;
        for (size_t i = 0; i < count && found == NULL; i++)
            found = names[i].ino == ino ? xstrdup(names[i].name) : NULL;
        snprintf(after, sizeof after, "%s", names[count - 1].name);
    }
    arena_free(arena);
    return found;
}

/* malloc'ed.  A directory that is moved meanwhile has its number alone. */
static char *path_of(const struct run *r, uint64_t ino)
{
    char *path = xstrdup("");
    for (uint64_t at = ino; at != VOLUME_ROOT;) {
        struct attr a;
        _cleanup_free_ char *name = NULL;
        if (volume_getattr(r->v, at, &a) == 0)
            name = name_in(r, a.parent, at);
        if (name == NULL) {
            free(path);
            return xprintf("inode %" PRIu64, ino);
        }
        char *longer = xprintf("/%s%s", name, path);
        free(path);
        path = longer;
        at = a.parent;
    }
    return path;
}

/* ---- verbs ---- */

static void limit_text(int64_t limit, char out[static 32])
{
    if (limit >= VOLUME_QUOTA_NO_LIMIT)
        snprintf(out, 32, "no limit");
    else
        snprintf(out, 32, "%" PRId64, limit);
}

static void show(const struct run *r, const struct volume_quota *q)
{
    char bytes[32], inodes[32];
    _cleanup_free_ char *path = path_of(r, q->directory);
    limit_text(q->bytes_limit, bytes);
    limit_text(q->inodes_limit, inodes);
    printf("%20" PRId64 " %20s %12" PRId64 " %12s  %s%s\n", q->bytes, bytes, q->inodes, inodes,
           path, q->whole ? "" : "  (a part is counted: set it again)");
}

static void show_head(void)
{
    printf("%20s %20s %12s %12s  %s\n", "BYTES", "CAPACITY", "INODES", "LIMIT", "DIRECTORY");
}

static int64_t limit_given(uint64_t given)
{
    return given == OPTIONS_AS_IT_IS ? VOLUME_QUOTA_AS_IT_IS
           : given == 0              ? VOLUME_QUOTA_NO_LIMIT
                                     : (int64_t)given;
}

static int set(struct run *r, const char *path, uint64_t directory)
{
    struct volume_quota q;
    const struct volume_quota_limits limits = {
        .inodes = limit_given(r->o->inodes),
        .bytes = limit_given(r->o->capacity_bytes),
    };
    if (r->o->inodes == OPTIONS_AS_IT_IS && r->o->capacity_bytes == OPTIONS_AS_IT_IS)
        return program_fail(PROGRAM_USAGE,
                            "a limit is missing: give --capacity, --inodes, or both");
    int rc = volume_quota_set(r->v, directory, &limits, NULL, &q);
    if (rc != 0)
        return say_path(path, -rc);
    show_head();
    show(r, &q);
    return PROGRAM_OK;
}

static int get(struct run *r, const char *path, uint64_t directory)
{
    struct volume_quota q;
    int rc = volume_quota_of(r->v, directory, &q);
    if (rc != 0)
        return say_path(path, -rc);
    show_head();
    show(r, &q);
    return PROGRAM_OK;
}

static int rm(struct run *r, const char *path, uint64_t directory)
{
    int rc = volume_quota_remove(r->v, directory);
    return rc == 0 ? PROGRAM_OK : say_path(path, -rc);
}

static int ls(struct run *r)
{
    struct volume_quota *all;
    size_t count;
    struct arena *arena = arena_new(4096);
    int rc = volume_quota_list(r->v, arena, &all, &count);
    if (rc == 0)
        show_head();
    for (size_t i = 0; i < count && rc == 0; i++)
        show(r, &all[i]);
    arena_free(arena);
    return rc == 0 ? PROGRAM_OK
                   : program_fail(PROGRAM_FAILED, "the quotas cannot be read: %s", strerror(-rc));
}

/* Two looks, as fsck: a volume may be in use. */
static int look(struct run *r, struct check *c)
{
    struct check again;
    struct error err = ERROR_INIT;
    int rc = check_run(c, r->m, &r->format, &err);
    check_keep_quotas(c);
    if (rc == 0 && c->count > 0) {
        rc = check_run(&again, r->m, &r->format, &err);
        check_keep_common(c, &again);
        check_done(&again);
    }
    return rc == 0 ? PROGRAM_OK : program_fail(client_exit_of_code(err.code), "%s", err.message);
}

static int open_volume(struct run *r)
{
    struct volume_env env;
    struct error err = ERROR_INIT;
    volume_env_init(&env);
    return volume_open(r->m, &env, &r->v, &err) == 0
               ? PROGRAM_OK
               : program_fail(client_exit_of_code(err.code), "%s", err.message);
}

/* The session begins after the looks: they may take longer than one lives without a heartbeat. */
static int check(struct run *r)
{
    struct check c;
    size_t left = 0;
    int code = look(r, &c);
    if (code == PROGRAM_OK && r->o->repair && c.count > 0)
        code = open_volume(r);
    for (size_t i = 0; i < c.count && code == PROGRAM_OK; i++) {
        _cleanup_free_ char *text = check_text(&c.findings[i]);
        int rc = r->o->repair ? repair_finding(r->v, &c.findings[i]) : -EINPROGRESS;
        printf("%s%s\n",
               rc == 0              ? "repaired: "
               : rc == -EINPROGRESS ? ""
               : rc == -ENOTSUP     ? "cannot be repaired: "
                                    : "not repaired, run the check again: ",
               text);
        left += rc != 0;
    }
    if (code == PROGRAM_OK)
        printf("%llu inodes: %zu findings are left\n", (unsigned long long)c.inodes, left);
    check_done(&c);
    return code == PROGRAM_OK && left > 0 ? PROGRAM_PARTLY : code;
}

static const struct {
    const char *name;
    int (*of_path)(struct run *r, const char *path, uint64_t directory);
    int (*of_volume)(struct run *r);
} verbs[] = {
    {"set", set, NULL}, {"get", get, NULL},     {"rm", rm, NULL},
    {"ls", NULL, ls},   {"check", NULL, check},
};
enum { VERBS = sizeof verbs / sizeof *verbs };

static int run_verb(struct run *r, size_t i)
{
    uint64_t directory;
    struct error err = ERROR_INIT;
    if (engines_open(r->o->paths[1], false, &r->m, &err) != 0 ||
        format_read(r->m, &r->format, &err) != 0)
        return program_fail(client_exit_of_code(err.code), "%s", err.message);
    int code = verbs[i].of_volume != check ? open_volume(r) : PROGRAM_OK;
    if (code != PROGRAM_OK)
        return code;
    if (verbs[i].of_volume != NULL)
        return verbs[i].of_volume(r);
    code = find_path(r, r->o->paths[2], &directory);
    return code == PROGRAM_OK ? verbs[i].of_path(r, r->o->paths[2], directory) : code;
}

int program_quota(const struct options *o)
{
    struct run r = {.o = o};
    size_t i = 0;
    while (i < VERBS && strcmp(verbs[i].name, o->paths[0]) != 0)
        i++;
    if (i == VERBS)
        return program_fail(PROGRAM_USAGE,
                            "there is no 'quota %s': expected 'set', 'get', 'rm', 'ls' or 'check'",
                            o->paths[0]);
    if ((verbs[i].of_path != NULL) != (o->path_count == 3))
        return program_fail(PROGRAM_USAGE, "expected 'quota %s META-URL%s'", verbs[i].name,
                            verbs[i].of_path != NULL ? " PATH" : "");
    int code = run_verb(&r, i);
    volume_close(r.v);
    meta_close(r.m);
    return code;
}

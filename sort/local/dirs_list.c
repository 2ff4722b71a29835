/* What shards there are below a directory, and what they may be called. */
#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

#include "common/buf.h"
#include "common/mem.h"
#include "common/path.h"
#include "sort/local/dirs_parts.h"

static bool text_begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool text_ends(const char *text, const char *with)
{
    size_t len = strlen(text);
    size_t n = strlen(with);
    return len >= n && strcmp(text + len - n, with) == 0;
}

static bool has_hidden_part(const char *name)
{
    return text_begins(name, DIRS_HIDDEN) || strstr(name, "/" DIRS_HIDDEN) != NULL;
}

int dirs_check_name(const char *from, const char *name, struct error *err)
{
    const char *flaw = path_flaw(name);
    if (flaw == NULL && has_hidden_part(name))
        flaw = "a part that begins with '" DIRS_HIDDEN "', as a sort's own directories do";
    if (flaw == NULL)
        return 0;
    return error_set(err, E_INVALID,
                     "%s makes the name '%s', which cannot be a file below a directory: it has "
                     "%s; choose a name without",
                     from, name, flaw);
}

/* --- listing ---------------------------------------------------------------------------------- */

struct listing {
    const struct dirs *dirs;
    const struct sort_spec *spec;
    bool (*owns)(void *owner, const char *name);
    void *owner;
    int (*each)(void *arg, const struct sort_shard_info *info, struct error *err);
    void *arg;
};

static int list_one(const struct listing *l, const char *name, uint64_t place, struct error *err)
{
    if (!l->owns(l->owner, name))
        return 0;
    int rc = dirs_check_name("field 'input_format'", name, err);
    if (rc != 0)
        return rc;
    _cleanup_free_ char *path = xprintf("%s/%s", l->dirs->in, name);
    struct stat st;
    bool missing = stat(path, &st) != 0;
    if (missing && errno != ENOENT && errno != ENOTDIR)
        return error_errno(err, errno, "look at '%s'", path);
    if (!missing && !S_ISREG(st.st_mode))
        return error_set(err, E_SHARD_UNSUPPORTED, "'%s' is no file", path);
    struct sort_shard_info info = {
        .name = name,
        .place = place,
        .size = missing ? 0 : (uint64_t)st.st_size,
        .missing = missing,
    };
    return l->each(l->arg, &info, err);
}

static int list_template(const struct listing *l, struct error *err)
{
    const struct name_template *t = l->spec->input_template;
    _cleanup_(buf_done)
    struct buf name = BUF_INIT;
    int rc = 0;
    for (uint64_t i = 0; rc == 0 && i < template_count(t); i++) {
        buf_clear(&name);
        template_name(t, i, &name);
        rc = list_one(l, buf_str(&name), i, err);
    }
    return rc;
}

static int list_prefixed(void *arg, const char *name, struct error *err)
{
    const struct listing *l = arg;
    bool wanted =
        text_begins(name, l->spec->input_prefix) && text_ends(name, l->spec->input_extension);
    return wanted ? list_one(l, name, 0, err) : 0;
}

int dirs_list(const struct dirs *d, const struct sort_spec *spec,
              bool (*owns)(void *owner, const char *name), void *owner,
              int (*each)(void *arg, const struct sort_shard_info *info, struct error *err),
              void *arg, struct error *err)
{
    struct listing l = {
        .dirs = d, .spec = spec, .owns = owns, .owner = owner, .each = each, .arg = arg};
    if (spec->input_kind == SORT_INPUT_TEMPLATE)
        return list_template(&l, err);
    if (spec->input_kind == SORT_INPUT_PREFIX)
        return dirs_walk(d->in, list_prefixed, &l, err);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < spec->input_name_count; i++)
        rc = list_one(&l, spec->input_names[i], i, err);
    return rc;
}

/* --- walking ---------------------------------------------------------------------------------- */

/* A directory that is being walked, and those above it. */
struct level {
    const struct level *up;
    dev_t dev;
    ino_t ino;
};

struct walk {
    const char *dir;
    int (*each)(void *arg, const char *name, struct error *err);
    void *arg;
};

static int walk_below(const struct walk *w, const char *within, const struct level *up,
                      struct error *err);

/* What a sort that was killed has left behind is nobody's input. */
static int walk_entry(const struct walk *w, const char *within, const char *entry,
                      const struct level *up, struct error *err)
{
    struct stat st;
    _cleanup_free_ char *name = xprintf("%s%s", within, entry);
    _cleanup_free_ char *path = xprintf("%s/%s", w->dir, name);
    if (strcmp(entry, ".") == 0 || strcmp(entry, "..") == 0 || text_begins(entry, DIRS_HIDDEN))
        return 0;
    if (stat(path, &st) != 0 && (errno != ENOENT || lstat(path, &st) != 0))
        return error_errno(err, errno, "look at '%s'", path);
    if (!S_ISDIR(st.st_mode))
        return w->each(w->arg, name, err);
    const struct level level = {.up = up, .dev = st.st_dev, .ino = st.st_ino};
    for (const struct level *l = up; l != NULL; l = l->up) {
        if (l->dev == st.st_dev && l->ino == st.st_ino)
            return error_set(err, E_INVALID, "'%s' is a symbolic link to a directory above it",
                             path);
    }
    _cleanup_free_ char *below = xprintf("%s/", name);
    return walk_below(w, below, &level, err);
}

static int walk_below(const struct walk *w, const char *within, const struct level *up,
                      struct error *err)
{
    _cleanup_free_ char *path = xprintf("%s/%s", w->dir, within);
    DIR *dir = opendir(path);
    if (dir == NULL)
        return error_errno(err, errno, "list '%s'", path);
    int rc = 0;
    for (struct dirent *d; rc == 0 && (d = readdir(dir)) != NULL;)
        rc = walk_entry(w, within, d->d_name, up, err);
    closedir(dir);
    return rc;
}

int dirs_walk(const char *dir, int (*each)(void *arg, const char *name, struct error *err),
              void *arg, struct error *err)
{
    const struct walk w = {.dir = dir, .each = each, .arg = arg};
    struct stat st;
    if (stat(dir, &st) != 0)
        return error_errno(err, errno, "look at '%s'", dir);
    const struct level top = {.dev = st.st_dev, .ino = st.st_ino};
    return walk_below(&w, "", &top, err);
}

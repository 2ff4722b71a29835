#include "sort/sim_input.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

#include "common/cleanup.h"
#include "common/mem.h"

static int pin_one(const struct sim_input *in, const char *name, uint64_t place, struct error *err)
{
    if (!in->owns(in->owner, name))
        return 0;
    _cleanup_free_ char *path = xprintf("%s/%s", in->dir, name);
    struct stat st;
    bool missing = stat(path, &st) != 0;
    struct sort_shard_info info = {
        .name = name,
        .place = place,
        .size = missing ? 0 : (uint64_t)st.st_size,
        .missing = missing,
    };
    return in->each(in->arg, &info, err);
}

static int pin_template(const struct sim_input *in, const struct name_template *t,
                        struct error *err)
{
    _cleanup_(buf_done)
    struct buf name = BUF_INIT;
    int rc = 0;
    for (uint64_t i = 0; rc == 0 && i < template_count(t); i++) {
        buf_clear(&name);
        template_name(t, i, &name);
        rc = pin_one(in, buf_str(&name), i, err);
    }
    return rc;
}

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

/* Objects are files; a slash in a name is a directory. */
static int pin_directory(const struct sim_input *in, const struct sort_spec *spec,
                         const char *within, struct error *err)
{
    _cleanup_free_ char *path = xprintf("%s/%s", in->dir, within);
    DIR *dir = opendir(path);
    if (dir == NULL)
        return error_errno(err, errno, "list '%s'", path);
    int rc = 0;
    for (struct dirent *d; rc == 0 && (d = readdir(dir)) != NULL;) {
        if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
            continue;
        _cleanup_free_ char *name = xprintf("%s%s", within, d->d_name);
        _cleanup_free_ char *below = xprintf("%s/", name);
        if (d->d_type == DT_DIR)
            rc = pin_directory(in, spec, below, err);
        else if (text_begins(name, spec->input_prefix) && text_ends(name, spec->input_extension))
            rc = pin_one(in, name, 0, err);
    }
    closedir(dir);
    return rc;
}

int sim_input_list(const struct sim_input *in, const struct sort_spec *spec, struct error *err)
{
    if (spec->input_kind == SORT_INPUT_TEMPLATE)
        return pin_template(in, spec->input_template, err);
    if (spec->input_kind == SORT_INPUT_PREFIX)
        return pin_directory(in, spec, "", err);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < spec->input_name_count; i++)
        rc = pin_one(in, spec->input_names[i], i, err);
    return rc;
}

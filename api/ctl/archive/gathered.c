#include "api/ctl/archive/gathered.h"

#include <stdlib.h>
#include <string.h>

#include "api/ctl/archive/local_file.h"
#include "api/ctl/files/walk.h"
#include "api/ctl/interrupt.h"
#include "api/ctl/names/name.h"

static void add(struct gathered *g, const char *path, const char *member)
{
    struct error e = ERROR_INIT;
    struct shard_file *f = NULL;
    int rc = shard_plan_add_plain(&g->plan, path, member, &f, &e);
    if (rc == 0)
        rc = local_file_note(f, &e);
    if (rc != 0)
        tally_fail_common(g->tally, path, &e);
    else
        g->bytes += f->size;
}

static bool file_found(void *context, const char *path, const char *below, uint64_t size)
{
    (void)size;
    add(context, path, below);
    return !interrupted();
}

static void problem(void *context, const char *path, const struct error *err)
{
    struct gathered *g = context;
    tally_fail_common(g->tally, path, err);
}

void gathered_add(struct gathered *g, const char *source)
{
    const struct walk_visitor visitor = {file_found, problem, g};
    if (walk_is_directory(source))
        walk_directory(source, &visitor);
    else
        add(g, source, name_base(source));
}

static int by_member(const void *left, const void *right)
{
    const struct shard_file *a = left, *b = right;
    return strcmp(a->member, b->member);
}

void gathered_end(struct gathered *g)
{
    struct error e;
    if (g->plan.count == 0)
        return;
    qsort(g->plan.files, g->plan.count, sizeof *g->plan.files, by_member);
    for (size_t i = 1; i < g->plan.count; i++) {
        const struct shard_file *a = &g->plan.files[i - 1], *b = &g->plan.files[i];
        if (strcmp(a->member, b->member) != 0)
            continue;
        error_set(&e, E_EXISTS, "'%s' has the same name in the archive: '%s'", a->path, a->member);
        tally_fail_common(g->tally, b->path, &e);
    }
}

void gathered_done(struct gathered *g)
{
    shard_plan_done(&g->plan);
}

/* archive extract: the files of one archive, below a directory. */
#include "api/ctl/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/ctl/archive/opened.h"
#include "api/ctl/files/landing.h"
#include "api/ctl/names/name.h"
#include "api/ctl/tally.h"
#include "common/mem.h"

struct extraction {
    struct ctl *ctl;
    struct opened archive;
    int root;
    struct tally *tally;
    struct progress *bar;
};

static int open_root(const char *path, int *root, struct error *err)
{
    if (mkdir(path, 0777) != 0 && errno != EEXIST)
        return error_errno(err, errno, "make directory '%s'", path);
    *root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return *root >= 0 ? 0 : error_errno(err, errno, "open directory '%s'", path);
}

/* "tar -C d ." writes "./a". */
static const char *below(const char *path)
{
    while (strncmp(path, "./", 2) == 0)
        path += 2;
    return path;
}

/* What keeps this member alone from its place is counted; EXIT_OK, unless the archive fails. */
static int extract_file(struct extraction *x, const struct unarchiver_member *m)
{
    struct error e = ERROR_INIT;
    _cleanup_(landing_done)
    struct landing l = LANDING_INIT;
    const char *key = below(m->path);
    if (name_check_local(key, &e) != 0 || landing_open_below(&l, x->root, key, &e) != 0) {
        tally_fail_common(x->tally, m->path, &e);
        return EXIT_OK;
    }
    _cleanup_free_ char *name = xstrdup(m->path);
    l.modified_ms = m->mtime * 1000;
    int code = opened_copy(x->ctl, &x->archive, l.fd);
    if (code != EXIT_OK)
        return code;
    off_t size = lseek(l.fd, 0, SEEK_CUR);
    if (landing_commit(&l, &e) != 0)
        tally_fail_common(x->tally, name, &e);
    else
        tally_done(x->tally, (uint64_t)size);
    progress_add(x->bar, size, 1);
    return EXIT_OK;
}

static int extract_member(struct extraction *x, const struct unarchiver_member *m)
{
    struct error e;
    if (m->type == '0')
        return extract_file(x, m);
    if (m->type == '5')
        return EXIT_OK;
    error_set(&e, E_INVALID, "it is no file: links and devices are not extracted");
    tally_fail_common(x->tally, m->path, &e);
    return EXIT_OK;
}

static int extract_all(struct extraction *x)
{
    struct unarchiver_member m;
    int code = EXIT_OK;
    while (code == EXIT_OK && opened_next(x->ctl, &x->archive, &m, &code) > 0)
        code = extract_member(x, &m);
    return code;
}

int archive_extract(struct ctl *ctl, const struct args *args)
{
    struct error e = ERROR_INIT;
    struct extraction x = {.ctl = ctl, .root = -1};
    const char *path = args->word_count > 1 ? args->words[1] : ".";
    int code = opened_open(ctl, args, &x.archive);
    if (code == EXIT_OK && open_root(path, &x.root, &e) != 0)
        code = ctl_fail_common(ctl, &e, EXIT_FAILED);
    if (code == EXIT_OK) {
        x.bar = progress_new(ctl, "extract");
        x.tally = tally_new(ctl, "extract", x.bar);
        code = extract_all(&x);
        progress_free(x.bar);
        int counted = tally_end(x.tally);
        code = code != EXIT_OK ? code : counted;
    }
    cleanup_close_(&x.root);
    opened_done(&x.archive);
    return code;
}

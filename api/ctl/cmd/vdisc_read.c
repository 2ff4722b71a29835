/* vdisc cat, cp, export: bytes of an image. */
#include "api/ctl/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/ctl/cmd/vdisc_open.h"
#include "api/ctl/files/landing.h"
#include "api/ctl/files/walk.h"
#include "api/ctl/names/name.h"
#include "common/cleanup.h"
#include "common/mem.h"

/* --- sinks ------------------------------------------------------------------------------------ */

struct writing {
    int fd;
    int errnum;
    bool sparse; /* zeros of whole pieces become holes */
    uint64_t at;
};

static bool all_zero(const char *bytes, size_t len)
{
    return len > 0 && bytes[0] == 0 && memcmp(bytes, bytes + 1, len - 1) == 0;
}

static int write_piece(void *context, const void *data, size_t size)
{
    struct writing *w = context;
    const char *at = data;
    w->at += size;
    if (w->sparse && all_zero(at, size) && lseek(w->fd, (off_t)size, SEEK_CUR) >= 0)
        return 0;
    while (size > 0) {
        ssize_t n = write(w->fd, at, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            w->errnum = errno;
            return -1;
        }
        at += n;
        size -= (size_t)n;
    }
    return 0;
}

static int fail_copy(struct ctl *ctl, const struct writing *w, const struct dfc_error *err,
                     const char *what)
{
    struct error e = ERROR_INIT;
    if (w->errnum == 0)
        return ctl_fail(ctl, err, what);
    error_errno(&e, w->errnum, "%s: write", what);
    return ctl_fail_common(ctl, &e, EXIT_FAILED);
}

static int copy_all(struct ctl *ctl, struct vdisc *v, struct writing *w)
{
    const struct dfc_sink sink = {.write = write_piece, .context = w};
    struct dfc_error err;
    if (vdisc_copy(v, 0, vdisc_table_size(vdisc_table_of(v)), &sink, &err) == DFC_OK)
        return EXIT_OK;
    return fail_copy(ctl, w, &err, "export");
}

static int copy_file(struct ctl *ctl, struct vdisc *v, const struct iso_found *f, int fd,
                     const char *path)
{
    struct writing w = {.fd = fd};
    const struct dfc_sink sink = {.write = write_piece, .context = &w};
    struct dfc_error err;
    if (vdisc_copy_file(v, f->lba, f->size, &sink, &err) == DFC_OK)
        return EXIT_OK;
    _cleanup_free_ char *what = xprintf("read '%s'", path);
    return fail_copy(ctl, &w, &err, what);
}

static int refuse_kind(struct ctl *ctl, const char *path, const char *is)
{
    struct error e;
    error_set(&e, E_INVALID, "'%s' is %s, not a file", path, is);
    return ctl_fail_common(ctl, &e, EXIT_USAGE);
}

static int find_file(struct ctl *ctl, const struct vdisc *v, const char *path, struct iso_found *f)
{
    int code = vdisc_find(ctl, v, path, f);
    if (code != EXIT_OK || f->kind == ISO_FILE)
        return code;
    return refuse_kind(ctl, path, f->kind == ISO_LINK ? "a link" : "a directory");
}

int vdisc_cat(struct ctl *ctl, const struct args *args)
{
    _cleanup_(vdisc_closep)
    struct vdisc *v = NULL;
    struct iso_found f;
    int code = vdisc_open_named(ctl, args->words[0], &v);
    fflush(ctl->out);
    for (size_t i = 1; code == EXIT_OK && i < args->word_count; i++) {
        code = find_file(ctl, v, args->words[i], &f);
        if (code == EXIT_OK)
            code = copy_file(ctl, v, &f, STDOUT_FILENO, args->words[i]);
    }
    return code;
}

/* --- cp --------------------------------------------------------------------------------------- */

struct copying {
    struct ctl *ctl;
    struct vdisc *v;
    int root;
    uint64_t files, bytes;
    int code;
};

static int land(struct copying *c, struct landing *l, const struct iso_found *f, const char *path)
{
    struct error e = ERROR_INIT;
    int code = copy_file(c->ctl, c->v, f, l->fd, path);
    if (code != EXIT_OK)
        return code;
    l->modified_ms = f->mtime_s * 1000;
    if (landing_commit(l, &e) != 0)
        return ctl_fail_common(c->ctl, &e, EXIT_FAILED);
    c->files++;
    c->bytes += f->size;
    return EXIT_OK;
}

static int copy_one(struct copying *c, const struct iso_found *f, const char *path, const char *to)
{
    struct error e = ERROR_INIT;
    _cleanup_(landing_done)
    struct landing l = LANDING_INIT;
    if (landing_open_path(&l, to, &e) != 0)
        return ctl_fail_common(c->ctl, &e, EXIT_FAILED);
    return land(c, &l, f, path);
}

/* A path of the image is one below the directory: no name has a slash or is "..".  Links that are
 * there already are not followed, whether of an earlier copy or of this image. */
static int copy_below(void *context, const char *path, const struct iso_found *f, struct error *err)
{
    struct copying *c = context;
    if (f->kind == ISO_DIRECTORY)
        return landing_directory_below(c->root, path, err);
    if (f->kind == ISO_LINK)
        return landing_link_below(c->root, path, f->target, err);
    _cleanup_(landing_done)
    struct landing l = LANDING_INIT;
    int rc = landing_open_below(&l, c->root, path, err);
    if (rc != 0)
        return rc;
    c->code = land(c, &l, f, path);
    return c->code == EXIT_OK ? 0 : error_set(err, E_ABORTED, "reported already");
}

static int copy_tree(struct copying *c, const struct iso_found *directory, const char *to)
{
    struct error e = ERROR_INIT;
    if (mkdir(to, 0777) != 0 && errno != EEXIST)
        error_errno(&e, errno, "make directory '%s'", to);
    _cleanup_close_ int root = e.code == 0 ? open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (root < 0 && e.code == 0)
        error_errno(&e, errno, "open directory '%s'", to);
    if (e.code != 0)
        return ctl_fail_common(c->ctl, &e, EXIT_FAILED);
    c->root = root;
    if (iso_reader_walk(vdisc_reader(c->v), directory, copy_below, c, &e) == 0)
        return EXIT_OK;
    return c->code != EXIT_OK ? c->code : vdisc_fail(c->ctl, c->v, &e, "copy");
}

static int copy_named(struct copying *c, const struct iso_found *f, const char *path,
                      const char *to)
{
    struct buf below = BUF_INIT;
    if (!walk_is_directory(to))
        return copy_one(c, f, path, to);
    name_join(&below, to, f->name);
    int code = copy_one(c, f, path, buf_str(&below));
    buf_done(&below);
    return code;
}

int vdisc_cp(struct ctl *ctl, const struct args *args)
{
    const char *path = args->words[1], *to = args->words[2];
    char size[24];
    _cleanup_(vdisc_closep)
    struct vdisc *v = NULL;
    struct iso_found f;
    int code = vdisc_open_named(ctl, args->words[0], &v);
    if (code == EXIT_OK)
        code = vdisc_find(ctl, v, path, &f);
    if (code != EXIT_OK)
        return code;
    struct copying c = {.ctl = ctl, .v = v};
    if (f.kind == ISO_DIRECTORY && !args->given[F_recursive])
        return ctl_usage(ctl, "'%s' is a directory: add --recursive", path);
    if (f.kind == ISO_LINK)
        return refuse_kind(ctl, path, "a link");
    code = f.kind == ISO_DIRECTORY ? copy_tree(&c, &f, to) : copy_named(&c, &f, path, to);
    if (code != EXIT_OK)
        return code;
    if (ctl->json)
        ctl_print_json(ctl, json_pack("{s:I, s:I}", "files", (json_int_t)c.files, "bytes",
                                      (json_int_t)c.bytes));
    else
        ctl_say(ctl, "%llu file%s, %s", (unsigned long long)c.files, c.files == 1 ? "" : "s",
                ctl_size(ctl, c.bytes, size));
    return EXIT_OK;
}

/* --- export ----------------------------------------------------------------------------------- */

static int export_to(struct ctl *ctl, struct vdisc *v, const char *path)
{
    const uint64_t size = vdisc_table_size(vdisc_table_of(v));
    struct error e = ERROR_INIT;
    struct stat st;
    char text[24];
    _cleanup_(landing_done)
    struct landing l = LANDING_INIT;
    if (landing_open_path(&l, path, &e) != 0)
        return ctl_fail_common(ctl, &e, EXIT_FAILED);
    struct writing w = {.fd = l.fd, .sparse = l.directory >= 0};
    int code = copy_all(ctl, v, &w);
    if (code != EXIT_OK)
        return code;
    bool is_file = fstat(l.fd, &st) == 0 && S_ISREG(st.st_mode);
    if (is_file && ftruncate(l.fd, (off_t)size) != 0)
        error_errno(&e, errno, "set the size of '%s'", path);
    if (e.code != 0 || landing_commit(&l, &e) != 0)
        return ctl_fail_common(ctl, &e, EXIT_FAILED);
    if (ctl->json)
        ctl_print_json(ctl, json_pack("{s:s, s:I}", "path", path, "size", (json_int_t)size));
    else
        ctl_say(ctl, "%s  %s", path, ctl_size(ctl, size, text));
    return EXIT_OK;
}

int vdisc_export(struct ctl *ctl, const struct args *args)
{
    _cleanup_(vdisc_closep)
    struct vdisc *v = NULL;
    if (!args->given[F_to])
        return ctl_usage(ctl, "'vdisc export' needs -o FILE.iso");
    int code = vdisc_open_named(ctl, args->words[0], &v);
    if (code != EXIT_OK)
        return code;
    if (strcmp(args->text[F_to], "-") != 0)
        return export_to(ctl, v, args->text[F_to]);
    struct writing w = {.fd = STDOUT_FILENO};
    fflush(ctl->out);
    return copy_all(ctl, v, &w);
}

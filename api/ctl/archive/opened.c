#include "api/ctl/archive/opened.h"

#include <errno.h>
#include <unistd.h>

#include "api/ctl/names/name.h"
#define PIECE 65536

int opened_fail(struct ctl *ctl, const struct opened *o, const struct error *err)
{
    struct dfc_error e = {.result = DFC_OK};
    object_reader_failure(o->reader, &e);
    return e.result != DFC_OK ? ctl_fail(ctl, &e, NULL) : ctl_fail_common(ctl, err, EXIT_FAILED);
}

static int open_archive(struct ctl *ctl, struct opened *o)
{
    const struct unarchiver_source source = object_reader_source(o->reader);
    struct error e = ERROR_INIT;
    int rc = source.seek(source.ctx, 0, &e);
    if (rc == 0)
        rc = unarchiver_open(&source, &o->limits, &o->archive, &e);
    return rc == 0 ? EXIT_OK : opened_fail(ctl, o, &e);
}

int opened_open(struct ctl *ctl, const struct args *args, struct opened *o)
{
    const char *name = args->words[0];
    struct error e = ERROR_INIT;
    struct dfc_error err;
    o->limits = (struct unarchiver_limits)UNARCHIVER_LIMITS;
    if (args->given[F_formats] &&
        unarchiver_formats_parse(args->text[F_formats], &o->limits.formats, &e) != 0)
        return ctl_usage(ctl, "--formats: %s", e.message);
    _cleanup_(object_name_done)
    struct object_name n = {0};
    if (object_name_parse(name, &n, &e) != 0)
        return ctl_fail_common(ctl, &e, EXIT_USAGE);
    if (n.key[0] == '\0')
        return ctl_usage(ctl, "'%s' names no object: it must be BUCKET/KEY", name);
    if (object_reader_open(ctl->client, n.bucket, n.key, &o->reader, &err) != DFC_OK)
        return ctl_fail(ctl, &err, "archive");
    return open_archive(ctl, o);
}

int opened_again(struct ctl *ctl, struct opened *o)
{
    unarchiver_free(steal(o->archive));
    return open_archive(ctl, o);
}

void opened_done(struct opened *o)
{
    unarchiver_free(o->archive);
    object_reader_close(o->reader);
}

int opened_next(struct ctl *ctl, struct opened *o, struct unarchiver_member *m, int *code)
{
    struct error e = ERROR_INIT;
    int rc = unarchiver_next(o->archive, m, &e);
    *code = rc < 0 ? opened_fail(ctl, o, &e) : EXIT_OK;
    return rc;
}

static int write_all(int fd, const char *data, size_t len, struct error *err)
{
    while (len > 0) {
        ssize_t n = write(fd, data, len);
        if (n < 0 && errno != EINTR)
            return error_errno(err, errno, "write the member");
        data += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

int opened_copy(struct ctl *ctl, struct opened *o, int fd)
{
    char piece[PIECE];
    struct error e = ERROR_INIT;
    ssize_t n;
    while ((n = unarchiver_read(o->archive, piece, sizeof piece, &e)) > 0) {
        if (write_all(fd, piece, (size_t)n, &e) != 0)
            return ctl_fail_common(ctl, &e, EXIT_FAILED);
    }
    return n < 0 ? opened_fail(ctl, o, &e) : EXIT_OK;
}

/* dump and load: a volume's metadata as a file of JSON lines, and back, into any engine. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mount/bucket/names.h"
#include "mount/program/tool.h"
#include "mount/volfs/dump_file.h"
#include "mount/volfs/objects.h"
#include "mount/volume/dump.h"

#define SCHEME "dfc://"

/* ---- dump ---- */

static int save(const struct options *o, FILE *to, struct dump_tally *tally)
{
    struct meta *m;
    struct error err = ERROR_INIT;
    struct volume_format format;
    if (engines_open(o->url, false, &m, &err) != 0)
        return program_fail(client_exit_of_code(err.code), "%s", err.message);
    int rc = format_read(m, &format, &err);
    if (rc == 0)
        rc = dump_save(m, to, tally, &err);
    meta_close(m);
    return rc == 0 ? PROGRAM_OK : program_fail(client_exit_of_code(rc), "%s", err.message);
}

/* A file that is not whole is removed. */
int program_dump(const struct options *o)
{
    struct dump_tally tally;
    const char *path = o->directory;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    FILE *to = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (to == NULL)
        return program_fail(PROGRAM_FAILED, "make '%s': %s", path, strerror(errno));
    int code = save(o, to, &tally);
    bool written = fflush(to) == 0 && fsync(fd) == 0;
    int errnum = errno;
    written &= fclose(to) == 0;
    if (code == PROGRAM_OK && !written)
        code = program_fail(PROGRAM_FAILED, "write '%s': %s", path, strerror(errnum));
    if (code == PROGRAM_OK)
        printf("%llu keys\n", (unsigned long long)tally.keys);
    else if (unlink(path) != 0)
        program_fail(code, "remove '%s': %s", path, strerror(errno));
    return code;
}

/* ---- load ---- */

/* The greatest slice that the bucket has, and one more: the dump may be older than the bucket. */
static int find_next(const struct options *o, const char *volume, const char *url, uint64_t *next)
{
    struct dfc_client *client;
    struct dfc_error err;
    struct dfc_list *list;
    const struct dfc_entry *e;
    uint64_t slice, block, bytes;
    _cleanup_free_ char *bucket = NULL;
    _cleanup_free_ char *none = NULL;
    _cleanup_free_ char *prefix = xprintf("%s/b/", volume);
    const struct dfc_list_options options = {.prefix = prefix};
    if (!name_parse_url(url, &bucket, &none))
        return program_fail(PROGRAM_FAILED, "the volume's bucket '%s' is not dfc://BUCKET", url);
    int code = client_open(o, o->ca_file, 1, &client);
    if (code != PROGRAM_OK)
        return code;
    int rc = dfc_list_open(client, bucket, &options, &list, &err);
    if (rc == DFC_OK) {
        while ((rc = dfc_list_next(list, &e, &err)) > 0) {
            if (objects_parse(volume, e->name, &slice, &block, &bytes) && slice >= *next)
                *next = slice + 1;
        }
        dfc_list_close(list);
    }
    code = rc == DFC_OK ? PROGRAM_OK : tool_fail(&err);
    dfc_client_close(client);
    return code;
}

/* A file without a name, of bytes of the bucket; -1: it was said, and *code is set. */
static int fetch(const struct options *o, const char *url, int *code)
{
    struct dfc_client *client;
    struct dfc_error err;
    const char *name = url + strlen(SCHEME);
    const char *slash = strchr(name, '/');
    if (slash == NULL || slash == name || slash[1] == '\0') {
        *code = program_fail(PROGRAM_USAGE, "'%s' is no dfc://BUCKET/OBJECT", url);
        return -1;
    }
    _cleanup_free_ char *bucket = xstrndup(name, (size_t)(slash - name));
    FILE *to = tmpfile();
    int fd = to != NULL ? fcntl(fileno(to), F_DUPFD_CLOEXEC, 0) : -1;
    if (to != NULL)
        fclose(to);
    *code = fd >= 0 ? client_open(o, o->ca_file, 1, &client)
                    : program_fail(PROGRAM_FAILED, "a temporary file: %s", strerror(errno));
    if (*code == PROGRAM_OK) {
        if (dfc_get_fd(client, bucket, slash + 1, fd, NULL, NULL, &err) != DFC_OK)
            *code = tool_fail(&err);
        else if (lseek(fd, 0, SEEK_SET) != 0)
            *code = program_fail(PROGRAM_FAILED, "a temporary file: %s", strerror(errno));
        dfc_client_close(client);
    }
    if (*code == PROGRAM_OK)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* NULL: it was said, and *code is set. */
static FILE *open_dump(const struct options *o, const char *path, int *code)
{
    const bool is_object = strncmp(path, SCHEME, strlen(SCHEME)) == 0;
    _cleanup_close_ int fd = is_object ? fetch(o, path, code) : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && is_object)
        return NULL;
    FILE *from = fd >= 0 ? dump_file_read(fd) : NULL;
    *code = from != NULL ? PROGRAM_OK
                         : program_fail(errno == ENOENT ? PROGRAM_NOT_FOUND : PROGRAM_FAILED,
                                        "open '%s': %s", path, strerror(errno));
    return from;
}

static int load(const struct options *o, FILE *from, uint64_t next)
{
    struct meta *m;
    struct dump_tally tally;
    struct error err = ERROR_INIT;
    rewind(from);
    int rc = engines_open(o->url, true, &m, &err);
    if (rc == 0) {
        rc = dump_load(m, from, next, &tally, &err);
        meta_close(m);
    }
    if (rc != 0)
        return program_fail(client_exit_of_code(rc), "%s", err.message);
    printf("%llu keys\n", (unsigned long long)tally.keys);
    return PROGRAM_OK;
}

int program_load(const struct options *o)
{
    struct volume_format format;
    struct error err = ERROR_INIT;
    uint64_t next = 1;
    int code;
    FILE *from = open_dump(o, o->directory, &code);
    if (from == NULL)
        return code;
    if (dump_format(from, &format, &err) != 0)
        code = program_fail(PROGRAM_FAILED, "'%s': %s", o->directory, err.message);
    if (code == PROGRAM_OK)
        code = find_next(o, format.name, format.bucket, &next);
    if (code == PROGRAM_OK)
        code = load(o, from, next);
    fclose(from);
    return code;
}

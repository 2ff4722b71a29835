/* The pieces that are there at the start, of files.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cache/files_parts.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/fault.h"
#include "common/mem.h"

struct scan {
    const struct files_scanner *scanner;
    bool ended;
    struct files_seen *seen;
    size_t count, room;
    uint64_t set;      /* of the directory that is read */
    int64_t booted_ms; /* when the machine started */
};

/* The foot of a whole that is not there: it was being made, or removed, at a kill. */
static void remove_lone_foot(int directory, const char *name)
{
    struct stat st;
    struct piece_id id;
    const char *end = strrchr(name, '.');
    if (end == NULL || strcmp(end, FILES_FOOT) != 0)
        return;
    _cleanup_free_ char *whole = xstrndup(name, (size_t)(end - name));
    if (piece_name_parse(whole, &id) && fstatat(directory, whole, &st, AT_SYMLINK_NOFOLLOW) != 0 &&
        errno == ENOENT)
        unlinkat(directory, name, 0);
}

static int64_t time_of(const struct stat *st)
{
    return (int64_t)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000;
}

/* After a loss of power nobody knows what a disk has. */
static int64_t proved_at(const struct scan *s, int directory, const char *whole)
{
    struct stat st;
    _cleanup_free_ char *foot = files_foot_path(whole);
    if (fstatat(directory, foot, &st, AT_SYMLINK_NOFOLLOW) != 0 || time_of(&st) < s->booted_ms)
        return 0;
    return time_of(&st);
}

static int scan_add(struct scan *s, int directory, const char *name)
{
    struct stat st;
    struct files_seen found = {.set = s->set};
    remove_lone_foot(directory, name);
    if (!piece_name_parse(name, &found.id))
        return 0;
    if (fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 0 : -errno;
    if (!S_ISREG(st.st_mode))
        return 0;
    found.bytes = files_bytes_of(&st);
    found.written_ms = time_of(&st);
    if (found.id.index == PIECE_WHOLE)
        found.proved_ms = proved_at(s, directory, name);
    if (s->count == s->room) {
        s->room = s->room == 0 ? 1024 : 2 * s->room;
        s->seen = xrealloc(s->seen, s->room * sizeof *s->seen);
    }
    s->seen[s->count++] = found;
    return 0;
}

static void look_on(struct scan *s, int rc)
{
    if (!s->ended)
        s->ended = !s->scanner->goes_on(s->scanner->context, rc);
}

/* each() for every name in the directory `name` of `at`, until the scan ends. */
static int scan_names(struct scan *s, int at, const char *name,
                      int (*each)(struct scan *s, int directory, const char *name))
{
    const int fault = fault_errno("cache.scan");
    if (fault != 0)
        return -fault;
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return errno == ENOTDIR || errno == ENOENT || errno == ELOOP ? 0 : -errno;
    DIR *d = fdopendir(fd);
    if (d == NULL) {
        int rc = -errno;
        close(fd);
        return rc;
    }
    int rc = 0;
    while (!s->ended) {
        errno = 0;
        const struct dirent *e = readdir(d);
        rc = -errno;
        if (e == NULL)
            break;
        if (e->d_name[0] != '.')
            look_on(s, each(s, dirfd(d), e->d_name));
    }
    closedir(d);
    return s->ended ? 0 : rc;
}

static int each_part(struct scan *s, int directory, const char *name)
{
    return scan_names(s, directory, name, scan_add);
}

static int each_set(struct scan *s, int directory, const char *name)
{
    char again[20];
    if (sscanf(name, "%16" SCNx64, &s->set) != 1)
        return 0;
    snprintf(again, sizeof again, "%016" PRIx64, s->set);
    return strcmp(again, name) == 0 ? scan_names(s, directory, name, each_part) : 0;
}

static int by_time(const void *left, const void *right)
{
    const struct files_seen *a = left, *b = right;
    return (a->written_ms > b->written_ms) - (a->written_ms < b->written_ms);
}

void files_scan(struct files *f, const struct files_scanner *scanner)
{
    struct scan s = {
        .scanner = scanner,
        .booted_ms = clock_wall_ms() - (int64_t)clock_boot_ms(),
    };
    _cleanup_free_ char *pieces = xprintf("%s/pieces", f->path);
    look_on(&s, scan_names(&s, AT_FDCWD, pieces, each_set));
    if (s.count > 0)
        qsort(s.seen, s.count, sizeof *s.seen, by_time);
    for (size_t i = 0; i < s.count; i++)
        scanner->seen(scanner->context, &s.seen[i]);
    free(s.seen);
}

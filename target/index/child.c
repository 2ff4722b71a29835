#include "target/index/child.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/log.h"
#include "common/parse.h"
#include "io/file.h"

enum { MAPS_BYTES_MAX = 16 << 20 };

/* --- cutting off ------------------------------------------------------------------------------ */

struct mapping {
    unsigned long begin, end, offset;
    char path[4096];
};

/* Of a line of /proc/self/maps: is it shared, writable, of a file below `dir`? */
static bool parse_mapping(const char *line, const char *dir, struct mapping *m)
{
    char perms[8];
    size_t len = strlen(dir);
    if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %4095[^\n]", &m->begin, &m->end, perms, &m->offset,
               m->path) != 5)
        return false;
    return perms[1] == 'w' && perms[3] == 's' && strncmp(m->path, dir, len) == 0 &&
           m->path[len] == '/';
}

/* An open descriptor of the file, which may not be to be opened any more; -1: none. */
static int find_fd(const char *path)
{
    DIR *dir = opendir("/proc/self/fd");
    int found = -1;
    char link[4096], name[64];
    for (const struct dirent *e; dir != NULL && found < 0 && (e = readdir(dir)) != NULL;) {
        snprintf(name, sizeof name, "/proc/self/fd/%.20s", e->d_name);
        ssize_t n = readlink(name, link, sizeof link - 1);
        uint64_t fd;
        if (n < 0)
            continue;
        link[n] = '\0';
        if (strcmp(link, path) == 0 && parse_u64(e->d_name, &fd, NULL) == 0)
            found = (int)fd;
    }
    if (dir != NULL)
        closedir(dir);
    return found;
}

/* With what it holds, where the file system still lets us; else empty, or as it is. */
static void make_private(const struct mapping *m, bool or_empty)
{
    void *at = (void *)m->begin; /* NOLINT: where the kernel says that it is */
    size_t len = m->end - m->begin;
    int fd = find_fd(m->path), prot = PROT_READ | PROT_WRITE;
    /* First elsewhere: a mapping that fails in place takes the old one away all the same. */
    void *copy = fd >= 0 ? mmap(NULL, len, prot, MAP_PRIVATE, fd, (off_t)m->offset) : MAP_FAILED;
    if (copy != MAP_FAILED &&
        mremap(copy, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, at) != MAP_FAILED)
        return;
    if (or_empty &&
        mmap(at, len, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
        log_error("index not cut off from its disk", lstr("path", m->path));
}

static void cut_off(const char *dir, bool or_empty)
{
    struct mapping m;
    _cleanup_buf_ struct buf maps = BUF_INIT;
    if (file_read_all("/proc/self/maps", MAPS_BYTES_MAX, &maps, NULL) != 0)
        return;
    char *rest = maps.data;
    for (char *line; rest != NULL && (line = strsep(&rest, "\n")) != NULL;) {
        if (parse_mapping(line, dir, &m))
            make_private(&m, or_empty);
    }
}

void index_child_cut_off(const char *dir)
{
    cut_off(dir, true);
}

/* --- counting --------------------------------------------------------------------------------- */

struct answer {
    uint64_t objects, bytes;
};

/* The signal's handlers are the parent's, with what they would write to. */
static _Noreturn void read_and_tell(struct index *x, const char *dir, int to)
{
    struct answer a;
    cut_off(dir, false);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGBUS, SIG_DFL);
    signal(SIGSEGV, SIG_DFL);
    if (index_sum(x, 0, &a.objects, &a.bytes, NULL) != 0 || write(to, &a, sizeof a) != sizeof a)
        _exit(1);
    _exit(0);
}

static int take_answer(int from, uint64_t timeout_ms, struct answer *a, struct error *err)
{
    struct pollfd p = {.fd = from, .events = POLLIN};
    int ready = poll(&p, 1, (int)timeout_ms);
    if (ready == 0)
        return error_set(err, E_TIMEOUT, "the index was not read within %llu ms",
                         (unsigned long long)timeout_ms);
    if (ready < 0 || read(from, a, sizeof *a) != sizeof *a)
        return error_set(err, E_IO, "the index cannot be read");
    return 0;
}

int index_child_sum(struct index *x, const char *dir, uint64_t timeout_ms, uint64_t *objects,
                    uint64_t *bytes, struct error *err)
{
    int ends[2];
    struct answer a = {0};
    if (pipe2(ends, O_CLOEXEC) != 0)
        return error_errno(err, errno, "pipe");
    pid_t child = fork();
    if (child == 0)
        read_and_tell(x, dir, ends[1]);
    close(ends[1]);
    int code =
        child > 0 ? take_answer(ends[0], timeout_ms, &a, err) : error_errno(err, errno, "fork");
    close(ends[0]);
    if (child > 0) {
        kill(child, SIGKILL);
        if (code != E_TIMEOUT) /* one that hangs in the kernel ends when it can */
            waitpid(child, NULL, 0);
    }
    *objects = a.objects;
    *bytes = a.bytes;
    return code;
}

/* vdisc serve: nbdkit with the plugin of dfc does the work; this process becomes nbdkit. */
#include "api/ctl/commands.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/mem.h"

#define PROGRAM "nbdkit"
#define PLUGIN "nbdkit-dfc-vdisc-plugin.so"
#define THREADS "64" /* requests of all connections at once; most of them wait */
#define ADDRESS "127.0.0.1"
#define PORT "10809"

/* Flags that are parameters of the plugin under the same names. */
static const enum flag_id passed[] = {F_endpoint,   F_profile,     F_ca_file,      F_insecure,
                                      F_retries,    F_parallel,    F_cache_dir,    F_cache_size,
                                      F_cache_free, F_buffer_size, F_max_readahead};
#define PASSED (sizeof passed / sizeof *passed)

/* Beside dfcctl, or where it is installed; malloc'ed; NULL: it is missing. */
static char *find_plugin(void)
{
    static const char *const places[] = {"", "../libexec/dfc/"};
    char self[PATH_MAX];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n <= 0)
        return NULL;
    self[n] = '\0';
    *strrchr(self, '/') = '\0';
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        _cleanup_free_ char *path = xprintf("%s/%s" PLUGIN, self, places[i]);
        if (access(path, R_OK) == 0)
            return steal(path);
    }
    return NULL;
}

static void put_listener(const struct args *args, char **argv, size_t *count)
{
    if (args->given[F_socket]) {
        argv[(*count)++] = xprintf("--unix=%s", args->text[F_socket]);
        return;
    }
    argv[(*count)++] = xstrdup("--ipaddr=" ADDRESS);
    argv[(*count)++] = xprintf("--port=%s", args->given[F_port] ? args->text[F_port] : PORT);
}

/* NULL-terminated, malloc'ed as a whole and one by one. */
static char **arguments(const struct args *args, const char *plugin)
{
    static const char *const first[] = {PROGRAM, "--foreground", "--readonly",
                                        ("--threads=" THREADS)};
    size_t count = 0;
    char **argv = xcalloc(sizeof first / sizeof *first + PASSED + 6, sizeof *argv);
    for (size_t i = 0; i < sizeof first / sizeof *first; i++)
        argv[count++] = xstrdup(first[i]);
    put_listener(args, argv, &count);
    argv[count++] = xstrdup(plugin);
    argv[count++] = xprintf("url=%s", args->words[0]);
    for (size_t i = 0; i < PASSED; i++) {
        const char *name = flag_table[passed[i]].name;
        if (args->given[passed[i]])
            argv[count++] = flag_wants_value(&flag_table[passed[i]])
                                ? xprintf("%s=%s", name, args->text[passed[i]])
                                : xprintf("%s=true", name);
    }
    return argv;
}

static int fail(struct ctl *ctl, const char *what)
{
    struct dfc_error err = {.result = DFC_LOCAL, .code = "io"};
    snprintf(err.message, sizeof err.message, "%s", what);
    return ctl_fail(ctl, &err, NULL);
}

/* Whether a process listens there; errno says why not. */
static bool is_live(const struct sockaddr_un *address)
{
    _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return fd >= 0 &&
           (connect(fd, (const struct sockaddr *)address, sizeof *address) == 0 || errno == EAGAIN);
}

/* nbdkit leaves its socket behind.  The one of an earlier server is removed; NULL, or what is in
 * the way, malloc'ed. */
static char *clear_socket(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat st;
    if (strlen(path) >= sizeof address.sun_path)
        return xprintf("socket '%s': the path has more than %zu bytes: take a shorter one", path,
                       sizeof address.sun_path - 1);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (lstat(path, &st) != 0)
        return errno == ENOENT ? NULL : xprintf("socket '%s': %s", path, strerror(errno));
    if (!S_ISSOCK(st.st_mode))
        return xprintf("'%s' exists, and is no socket: take another path", path);
    if (is_live(&address))
        return xprintf("socket '%s': a process serves it already: end that process, or take "
                       "another path",
                       path);
    if (errno != ECONNREFUSED || (unlink(path) != 0 && errno != ENOENT))
        return xprintf("socket '%s' of an earlier server: %s", path, strerror(errno));
    return NULL;
}

int vdisc_serve(struct ctl *ctl, const struct args *args)
{
    if (args->given[F_socket] && args->given[F_port])
        return ctl_usage(ctl, "'vdisc serve' takes --socket or --port, not both");
    _cleanup_free_ char *plugin = find_plugin();
    if (plugin == NULL)
        return fail(ctl, "the plugin " PLUGIN " is missing: install it (a build has it if Debian's "
                         "package nbdkit-plugin-dev is there)");
    _cleanup_free_ char *in_the_way =
        args->given[F_socket] ? clear_socket(args->text[F_socket]) : NULL;
    if (in_the_way != NULL)
        return fail(ctl, in_the_way);
    char **argv = arguments(args, plugin);
    fflush(ctl->out);
    execvp(PROGRAM, argv);
    const int errnum = errno;
    for (char **at = argv; *at != NULL; at++)
        free(*at);
    free(argv);
    _cleanup_free_ char *what =
        errnum == ENOENT ? xstrdup("the program " PROGRAM " is missing: install the package nbdkit")
                         : xprintf("run " PROGRAM ": %s", strerror(errnum));
    return fail(ctl, what);
}

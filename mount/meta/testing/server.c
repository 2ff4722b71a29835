#include "mount/meta/testing/server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/rng.h"

enum { PORTS_FROM = 20000, PORTS = 12000, START_MS = 60000 };

struct server redis_server = {
    .name = "redis",
    .url = "redis://127.0.0.1:%u/0",
    .commit = "EVALSHA",
    .commit_size = 7,
    .is_installed = "command -v redis-server",
    .prepare = "",
    .start = "exec redis-server --port $1 --bind 127.0.0.1 --dir \"$0\" --appendonly yes "
             "--appendfsync always --save ''",
    .answers = "redis-cli -p $1 ping | grep -q PONG",
};

/* It does not run as root. */
#define AS_POSTGRES                                             \
    "bin=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1); as=; " \
    "[ $(id -u) != 0 ] || as='setpriv --reuid=postgres --regid=postgres --clear-groups'; "

struct server postgres_server = {
    .name = "postgres",
    .url = "postgres://dfc@127.0.0.1:%u/postgres",
    .commit = "\0dfc7", /* a portal without a name, and POSTGRES_COMMIT */
    .commit_size = 5,
    .is_installed = "ls /usr/lib/postgresql/*/bin/postgres && command -v setpriv",
    .prepare = AS_POSTGRES "[ -z \"$as\" ] || chown postgres \"$0\"; "
                           "$as $bin/initdb -D \"$0/data\" -A trust -N -U dfc --no-locale -E UTF8",
    .start = AS_POSTGRES "exec $as $bin/postgres -D \"$0/data\" -p $1 "
                         "-c listen_addresses=127.0.0.1 -c unix_socket_directories= ",
    .answers = AS_POSTGRES "$bin/pg_isready -q -h 127.0.0.1 -p $1",
};

static struct server *to_end[2]; /* with the test program */

static void end_all(void)
{
    for (size_t i = 0; i < sizeof to_end / sizeof *to_end; i++) {
        if (to_end[i] != NULL)
            server_kill(to_end[i]);
    }
}

static void give_up(const struct server *s, const char *what)
{
    fprintf(stderr, "server of the test, %s: %s\n", s->name, what);
    exit(1);
}

static pid_t spawn(const struct server *s, const char *command)
{
    char port[16];
    snprintf(port, sizeof port, "%u", s->port);
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int null = open("/dev/null", O_WRONLY);
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO); /* a pipe of the test must not stay open behind it */
    execl("/bin/sh", "sh", "-c", command, s->directory, port, (char *)NULL);
    _exit(127);
}

static bool succeeds(const struct server *s, const char *command)
{
    int status = 0;
    pid_t pid = spawn(s, command);
    return waitpid(pid, &status, 0) == pid && status == 0;
}

void server_shell(const struct server *s, const char *command)
{
    if (!succeeds(s, command))
        give_up(s, command);
}

struct server *server_named(const char *name)
{
    struct server *const all[] = {&redis_server, &postgres_server};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (strcmp(name, all[i]->name) == 0)
            return all[i];
    }
    return NULL;
}

bool server_is_installed(const struct server *s)
{
    return succeeds(s, s->is_installed);
}

/* ---- start ---- */

static bool is_free(unsigned port)
{
    const struct sockaddr_in at = {
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    const int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    bool bound = fd >= 0 && bind(fd, (const struct sockaddr *)&at, sizeof at) == 0;
    close(fd);
    return bound;
}

/* Several times: what a killed server leaves behind may be in its way for a moment. */
static bool start_on_port(struct server *s)
{
    const uint64_t end = clock_ms() + START_MS;
    s->pid = spawn(s, s->start);
    while (clock_ms() < end) {
        if (waitpid(s->pid, NULL, WNOHANG) == s->pid) {
            if (!is_free(s->port))
                return false;
            s->pid = spawn(s, s->start);
        }
        if (succeeds(s, s->answers))
            return true;
        usleep(5000);
    }
    give_up(s, "no answer");
    return false;
}

static void start_anew(struct server *s)
{
    snprintf(s->directory, sizeof s->directory, "/tmp/dfc-%s-test.XXXXXX", s->name);
    if (mkdtemp(s->directory) == NULL)
        give_up(s, "no directory");
    server_shell(s, s->prepare);
    for (unsigned tries = 0; tries < 50; tries++) {
        uint32_t luck;
        random_bytes(&luck, sizeof luck);
        s->port = PORTS_FROM + luck % PORTS;
        if (is_free(s->port) && start_on_port(s))
            return;
    }
    give_up(s, "no port");
}

void server_start(struct server *s)
{
    const size_t at = s == &postgres_server ? 1 : 0;
    if (to_end[0] == NULL && to_end[1] == NULL)
        atexit(end_all);
    to_end[at] = s;
    server_kill(s);
    if (s->directory[0] == '\0')
        start_anew(s);
    else if (!start_on_port(s))
        give_up(s, "its port was taken");
}

/* Its connections are closed then. */
static void wait_until_dead(pid_t pid)
{
    char path[64], text[256], state = 'R';
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    while (state != 'Z') { /* whose parent it was may not wait for it */
        FILE *f = fopen(path, "re");
        if (f == NULL)
            return;
        const char *name_end = fgets(text, sizeof text, f) != NULL ? strrchr(text, ')') : NULL;
        if (name_end != NULL)
            state = name_end[2];
        fclose(f);
        usleep(1000);
    }
}

/* A stopped server makes no new ones. */
static void kill_children(pid_t pid)
{
    char path[64];
    int child;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    FILE *f = fopen(path, "re");
    while (f != NULL && fscanf(f, "%d", &child) == 1) {
        kill(child, SIGKILL);
        wait_until_dead(child);
    }
    if (f != NULL)
        fclose(f);
}

void server_kill(struct server *s)
{
    if (s->pid > 0) {
        kill(s->pid, SIGSTOP);
        kill_children(s->pid);
        kill(s->pid, SIGKILL);
        waitpid(s->pid, NULL, 0);
    }
    s->pid = 0;
}

/* ---- files ---- */

void server_save_files(struct server *s)
{
    server_shell(s, "rm -rf \"$0.saved\" && cp -a \"$0\" \"$0.saved\"");
}

void server_back_to_them(struct server *s)
{
    server_shell(s, "rm -rf \"$0\" && cp -a \"$0.saved\" \"$0\"");
}

void server_remove(struct server *s)
{
    server_kill(s);
    server_shell(s, "rm -rf \"$0\" \"$0.saved\"");
    s->directory[0] = '\0';
}

const char *server_url(const struct server *s)
{
    static char url[96];
    snprintf(url, sizeof url, s->url, s->port); /* NOLINT: the format is one of the table's */
    return url;
}

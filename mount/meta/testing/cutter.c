#include "mount/meta/testing/cutter.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/mem.h"

enum { CONNECTIONS = 64 };

static struct {
    const struct server *server;
    int listener, stop[2];
    pthread_t accepts, threads[CONNECTIONS];
    unsigned count;
    _Atomic int mode;
} cutter;

static struct sockaddr_in address(unsigned port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
}

/* False: the connection ends. */
static bool pass(int from, int to)
{
    char bytes[65536];
    ssize_t got = recv(from, bytes, sizeof bytes, 0);
    return got > 0 && send(to, bytes, (size_t)got, MSG_NOSIGNAL) == got;
}

static bool pass_request(int client, int server)
{
    char bytes[65536];
    ssize_t got = recv(client, bytes, sizeof bytes - 1, 0);
    if (got <= 0)
        return false;
    const bool commit =
        memmem(bytes, (size_t)got, cutter.server->commit, cutter.server->commit_size) != NULL;
    const int mode = commit ? atomic_exchange(&cutter.mode, CUTTER_PASS) : CUTTER_PASS;
    if (mode == CUTTER_REQUEST)
        return false;
    if (send(server, bytes, (size_t)got, MSG_NOSIGNAL) != got)
        return false;
    /* The reply is waited for, so that the command has been done. */
    if (mode == CUTTER_REPLY)
        recv(server, bytes, sizeof bytes, 0);
    return mode == CUTTER_PASS;
}

static void *serve(void *arg)
{
    const struct sockaddr_in at = address(cutter.server->port);
    _cleanup_close_ int client = *(int *)arg;
    _cleanup_close_ int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    free(arg);
    bool goes_on = connect(server, (const struct sockaddr *)&at, sizeof at) == 0;
    while (goes_on) {
        struct pollfd fds[] = {
            {client, POLLIN, 0}, {server, POLLIN, 0}, {cutter.stop[0], POLLIN, 0}};
        if (poll(fds, 3, -1) < 0)
            continue;
        goes_on = fds[2].revents == 0;
        if (goes_on && fds[0].revents != 0)
            goes_on = pass_request(client, server);
        if (goes_on && fds[1].revents != 0)
            goes_on = pass(server, client);
    }
    return NULL;
}

static void *accept_all(void *arg)
{
    (void)arg;
    for (;;) {
        struct pollfd fds[] = {{cutter.listener, POLLIN, 0}, {cutter.stop[0], POLLIN, 0}};
        if (poll(fds, 2, -1) < 0)
            continue;
        if (fds[1].revents != 0 || cutter.count == CONNECTIONS)
            return NULL;
        int *client = xmalloc(sizeof *client);
        *client = accept(cutter.listener, NULL, NULL);
        pthread_create(&cutter.threads[cutter.count++], NULL, serve, client);
    }
}

unsigned cutter_start(const struct server *server)
{
    struct sockaddr_in at = address(0);
    socklen_t size = sizeof at;
    cutter.server = server;
    cutter.count = 0;
    cutter.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(cutter.listener, (const struct sockaddr *)&at, sizeof at) != 0 ||
        listen(cutter.listener, 16) != 0 || pipe(cutter.stop) != 0)
        return 0;
    getsockname(cutter.listener, (struct sockaddr *)&at, &size);
    cutter_set(CUTTER_PASS);
    pthread_create(&cutter.accepts, NULL, accept_all, NULL);
    return ntohs(at.sin_port);
}

void cutter_set(enum cutter_mode mode)
{
    atomic_store(&cutter.mode, mode);
}

void cutter_stop(void)
{
    close(cutter.stop[1]);
    pthread_join(cutter.accepts, NULL);
    for (unsigned i = 0; i < cutter.count; i++)
        pthread_join(cutter.threads[i], NULL);
    close(cutter.stop[0]);
    close(cutter.listener);
}

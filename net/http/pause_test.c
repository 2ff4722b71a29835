/* A reactor that stood still reads what waits in its sockets before it judges them by the clock. */
#include "net/http/server.h"

#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"
#include "net/http/reactor.h"
#include "net/testing/hello_fixture.h"

enum { MANY = REACTOR_EVENTS + 50, TRIES = 7 };

static sem_t stands, goes_on;

static void stand(struct http_request *req)
{
    sem_post(&stands);
    sem_wait(&goes_on);
    hello(req);
}

static const struct http_route routes[] = {
    {.name = "hello",
     .method = HTTP_GET,
     .pattern = "/hello",
     .nets = 1,
     .right = RIGHT_NONE,
     .begin = hello},
    {.name = "stand",
     .method = HTTP_GET,
     .pattern = "/stand",
     .nets = 1,
     .right = RIGHT_NONE,
     .begin = stand},
    {.name = NULL},
};

static void start(uint64_t head_ms)
{
    static const struct http_route *const tables[] = {routes, NULL};
    const struct http_server_config config = {
        .node = "n1",
        .address = "127.0.0.1",
        .net = NET_PUBLIC,
        .threads = 1,
        .connections_max = 10 * MANY,
        .connection_memory = 32 * 1024,
        .idle_timeout_s = 600,
        .head_timeout_ms = head_ms,
        .routes = tables,
    };
    struct error err = ERROR_INIT;
    if (http_server_new(&config, &server, &err) != 0)
        fail_msg("%s", err.message);
    port = http_server_port(server);
}

static void stop_server(void)
{
    http_server_free(server);
    server = NULL;
}

static void ask(struct wire *w, const char *path)
{
    wire_print(w, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path);
}

/* `count` connections that have said nothing, all in the reactor's hands: it takes them in the
 * order in which they came, and has answered the last. */
static void open_silent(struct wire *w, int count, struct wire *last)
{
    for (int i = 0; i < count; i++)
        w[i] = wire_open(port);
    *last = wire_open(port);
    ask(last, "/hello");
    read_hello(last);
}

static void wait_until(uint64_t ms)
{
    while (clock_ms() < ms)
        sched_yield();
}

static void all_are_answered(struct wire *w, int count)
{
    for (int i = 0; i < count; i++) {
        read_hello(&w[i]);
        wire_close(&w[i]);
    }
}

/* False: this machine was so slow that the silent ones' time was over before the reactor stood. */
static bool stood_in_time(uint64_t head_ms)
{
    static struct wire w[MANY];
    struct wire last;
    start(head_ms);
    uint64_t begin = clock_ms();
    open_silent(w, MANY, &last);
    ask(&last, "/stand");
    sem_wait(&stands);
    bool in_time = clock_ms() < begin + head_ms;
    for (int i = 0; in_time && i < MANY; i++)
        ask(&w[i], "/hello");
    wait_until(in_time ? clock_ms() + head_ms : 0);
    sem_post(&goes_on);
    read_hello(&last);
    if (in_time)
        all_are_answered(w, MANY);
    for (int i = 0; !in_time && i < MANY; i++)
        wire_close(&w[i]);
    wire_close(&last);
    stop_server();
    return in_time;
}

/* More than one look at the sockets brings. */
static void test_a_reactor_that_stood_reads_first(void **state)
{
    (void)state;
    uint64_t head_ms = 500;
    for (int i = 0; !stood_in_time(head_ms); i++, head_ms *= 2)
        assert_true(i < TRIES);
}

/* --- a process that is stopped ---------------------------------------------------------------- */

static _Noreturn void serve(uint64_t head_ms, int out)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    start(head_ms);
    ssize_t n = write(out, &port, sizeof port);
    (void)n; /* who reads it fails */
    for (;;)
        pause();
}

static pid_t start_process(uint64_t head_ms)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        serve(head_ms, ends[1]);
    assert_int_equal(read(ends[0], &port, sizeof port), sizeof port);
    close(ends[0]);
    close(ends[1]);
    return pid;
}

static bool stopped_in_time(uint64_t head_ms)
{
    struct wire silent, last;
    int status;
    pid_t pid = start_process(head_ms);
    uint64_t begin = clock_ms();
    open_silent(&silent, 1, &last);
    assert_int_equal(kill(pid, SIGSTOP), 0);
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(WIFSTOPPED(status));
    bool in_time = clock_ms() < begin + head_ms;
    if (in_time)
        ask(&silent, "/hello");
    wait_until(in_time ? clock_ms() + head_ms : 0);
    assert_int_equal(kill(pid, SIGCONT), 0);
    if (in_time)
        read_hello(&silent);
    wire_close(&silent);
    wire_close(&last);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return in_time;
}

static void test_a_process_that_was_stopped_reads_first(void **state)
{
    (void)state;
    uint64_t head_ms = 500;
    for (int i = 0; !stopped_in_time(head_ms); i++, head_ms *= 2)
        assert_true(i < TRIES);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    sem_init(&stands, 0, 0);
    sem_init(&goes_on, 0, 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_process_that_was_stopped_reads_first),
        cmocka_unit_test(test_a_reactor_that_stood_reads_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

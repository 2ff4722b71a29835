/* Files as replies, of which nothing, or not all, is in memory: who waits for the disk, and who
 * does not. */
#include "net/http/server.h"

#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"
#include "common/fault.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "common/parse.h"
#include "common/rng.h"
#include "io/reader.h"
#include "net/testing/certificate.h"
#include "net/testing/wire.h"
#include "net/tls/tls.h"

enum { SIZE = 3 * READER_PIECE_BYTES + 12345, QUEUE = 3 };

static enum http_layer layer;
static struct tls *tls; /* or NULL */
static struct http_server *server;
static struct reader *reader;
static uint16_t port;
static int file_fd = -1;
static char data[SIZE];
static atomic_uint asked;
static atomic_uint ended;

static void on_end(void *arg)
{
    (void)arg;
    ended++;
}

static uint64_t query_u64(struct http_request *req, const char *name, uint64_t fallback)
{
    uint64_t value = fallback;
    const char *text = http_query(req, name);
    if (text != NULL)
        assert_int_equal(parse_u64(text, &value, NULL), 0);
    return value;
}

static void file(struct http_request *req)
{
    uint64_t offset = query_u64(req, "offset", 0);
    uint64_t length = query_u64(req, "length", SIZE - offset);
    http_on_end(req, on_end, NULL);
    http_reply_header(req, "X-Note", "file");
    http_reply_file(req, offset > 0 ? 206 : 200, dup(file_fd), offset, length, reader_ref(reader));
    asked++;
}

static void hello(struct http_request *req)
{
    http_reply_data(req, 200, "text/plain", "hello", 5);
}

static const struct http_route routes[] = {
    {.name = "file",
     .method = HTTP_GET,
     .pattern = "/file",
     .nets = 1,
     .right = RIGHT_NONE,
     .begin = file,
     .query = HTTP_PARAMETERS({"offset", "bytes"}, {"length", "bytes"})},
    {.name = "file_head",
     .method = HTTP_HEAD,
     .pattern = "/file",
     .nets = 1,
     .right = RIGHT_NONE,
     .begin = file,
     .query = HTTP_PARAMETERS({"offset", "bytes"}, {"length", "bytes"})},
    {.name = "hello",
     .method = HTTP_GET,
     .pattern = "/hello",
     .nets = 1,
     .right = RIGHT_NONE,
     .begin = hello},
    {.name = NULL},
};

/* One reader's thread, so that it can be held up. */
static int setup(void **state)
{
    (void)state;
    static const struct http_route *const tables[] = {routes, NULL};
    const struct http_server_config config = {.node = "n1",
                                              .address = "127.0.0.1",
                                              .net = NET_PUBLIC,
                                              .threads = 2,
                                              .connections_max = 100,
                                              .connection_memory = 32 * 1024,
                                              .idle_timeout_s = 30,
                                              .layer = layer,
                                              .tls = tls,
                                              .tls_handshakes_max = 100,
                                              .routes = tables};
    char path[] = "/tmp/dfc-http-file-test-XXXXXX";
    struct error err = ERROR_INIT;
    asked = ended = 0;
    file_fd = mkstemp(path);
    assert_true(file_fd >= 0);
    unlink(path);
    random_bytes(data, sizeof data);
    assert_int_equal(write(file_fd, data, SIZE), SIZE);
    if (reader_new("/tmp", 1, QUEUE, &reader, &err) != 0 ||
        http_server_new(&config, &server, &err) != 0)
        fail_msg("%s", err.message);
    port = http_server_port(server);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    http_server_free(server);
    reader_close(reader);
    close(file_fd);
    fault_configure("", NULL);
    return 0;
}

static void arm(const char *spec)
{
    assert_int_equal(fault_configure(spec, NULL), 0);
}

static void wait_for_count(atomic_uint *counter, unsigned value)
{
    for (uint64_t end = clock_ms() + 20000; *counter != value && clock_ms() < end;)
        sched_yield();
    assert_int_equal(*counter, value);
}

/* --- the reader held up ----------------------------------------------------------------------- */

struct hold {
    sem_t begun, go_on;
};

static void wait_for(sem_t *sem)
{
    while (sem_wait(sem) != 0)
        ; /* EINTR */
}

static void held(void *arg)
{
    struct hold *h = arg;
    sem_post(&h->begun);
    wait_for(&h->go_on);
}

static void hold_reader(struct hold *h)
{
    sem_init(&h->begun, 0, 0);
    sem_init(&h->go_on, 0, 0);
    assert_int_equal(reader_submit(reader, held, h, NULL), 0);
    wait_for(&h->begun);
}

/* --- asking ----------------------------------------------------------------------------------- */

static void assert_bytes(struct wire_reply *r, size_t offset, size_t length)
{
    assert_true(r->complete);
    assert_int_equal(r->body.len, length);
    if (length > 0 && memcmp(r->body.data, data + offset, length) != 0)
        fail_msg("other bytes than %zu to %zu", offset, offset + length);
}

static void ask_range(struct wire *w, size_t offset, size_t length)
{
    wire_print(w, "GET /file?offset=%zu&length=%zu HTTP/1.1\r\nHost: x\r\n\r\n", offset, length);
}

static void read_range(struct wire *w, size_t offset, size_t length)
{
    struct wire_reply r;
    wire_read(w, false, &r);
    assert_int_equal(r.status, offset > 0 ? 206 : 200);
    assert_string_equal(wire_header(&r, "X-Note"), "file");
    assert_bytes(&r, offset, length);
    wire_reply_done(&r);
}

static void read_error(struct wire *w, int status, const char *code)
{
    struct wire_reply r;
    wire_read(w, false, &r);
    assert_int_equal(r.status, status);
    _cleanup_json_ json_t *doc = NULL;
    assert_int_equal(json_parse(r.body.data, r.body.len, &doc, NULL), 0);
    assert_string_equal(json_string_value(json_object_get(doc, "code")), code);
    assert_null(wire_header(&r, "X-Note"));
    wire_reply_done(&r);
}

static void get_hello(struct wire *w)
{
    struct wire_reply r;
    wire_get(w, "GET", "/hello", &r);
    assert_int_equal(r.status, 200);
    wire_reply_done(&r);
}

static void ask_all_ranges(void)
{
    static const size_t ranges[][2] = {{0, SIZE},
                                       {0, 1},
                                       {0, 0},
                                       {5, 32768},
                                       {5, 32769},
                                       {READER_PIECE_BYTES - 1, 2 * READER_PIECE_BYTES + 1},
                                       {READER_PIECE_BYTES, READER_PIECE_BYTES},
                                       {SIZE - 1, 1},
                                       {SIZE - 40000, 40000}};
    struct wire w = wire_open(port);
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        ask_range(&w, ranges[i][0], ranges[i][1]);
        read_range(&w, ranges[i][0], ranges[i][1]);
    }
    struct wire_reply r;
    wire_get(&w, "HEAD", "/file", &r);
    assert_int_equal(r.status, 200);
    assert_int_equal(strtol(wire_header(&r, "Content-Length"), NULL, 10), SIZE);
    wire_reply_done(&r);
    get_hello(&w);
    wire_close(&w);
}

/* --- tests ------------------------------------------------------------------------------------ */

static void test_the_same_bytes_hot_and_cold(void **state)
{
    (void)state;
    ask_all_ranges();
    arm("disk.cold=EAGAIN");
    ask_all_ranges();
    /* Every second look says that it is there. */
    arm("disk.cold=EAGAIN@2");
    ask_all_ranges();
    arm("");
    fsync(file_fd);
    posix_fadvise(file_fd, 0, 0, POSIX_FADV_DONTNEED);
    ask_all_ranges();
}

/* More clients wait for the disk than there are HTTP threads, and others are served. */
static void test_others_do_not_wait_for_the_disk(void **state)
{
    (void)state;
    struct hold h;
    struct wire cold[QUEUE];
    static const size_t lengths[QUEUE] = {100, SIZE, 50000};
    arm("disk.cold=EAGAIN");
    hold_reader(&h);
    for (int i = 0; i < QUEUE; i++) {
        cold[i] = wire_open(port);
        ask_range(&cold[i], 0, lengths[i]);
    }
    struct wire others[4];
    for (int i = 0; i < 4; i++) {
        others[i] = wire_open(port);
        get_hello(&others[i]);
        get_hello(&others[i]);
    }
    wait_for_count(&asked, QUEUE); /* the queue is full */
    wire_print(&others[0], "GET /file HTTP/1.1\r\nHost: x\r\n\r\n");
    read_error(&others[0], 503, "overloaded");
    arm("");
    wire_print(&others[1], "GET /file HTTP/1.1\r\nHost: x\r\n\r\n");
    read_range(&others[1], 0, SIZE); /* what is in memory does not wait, either */
    wait_for_count(&ended, 2);
    arm("disk.cold=EAGAIN");
    sem_post(&h.go_on);
    for (int i = 0; i < QUEUE; i++) {
        read_range(&cold[i], 0, lengths[i]);
        wire_close(&cold[i]);
    }
    for (int i = 0; i < 4; i++)
        wire_close(&others[i]);
}

static void test_a_disk_that_fails(void **state)
{
    (void)state;
    struct wire w = wire_open(port);
    arm("disk.cold=EAGAIN,disk.read=EIO");
    ask_range(&w, 0, 100);
    read_error(&w, 500, "io_error");
    ask_range(&w, 0, SIZE);
    read_error(&w, 500, "io_error");
    arm("disk.cold=EAGAIN");
    ask_range(&w, SIZE - 10, 20); /* not what the caller had seen */
    read_error(&w, 500, "corrupt");
    ask_range(&w, SIZE - 10, 50000);
    read_error(&w, 500, "corrupt");
    if (layer == HTTP_LAYER_MICROHTTPD) { /* it reads what follows the first piece by itself */
        wire_close(&w);
        return;
    }
    arm("disk.cold=EAGAIN,disk.read=EIO@40+"); /* a piece is read in 32 parts */
    ask_range(&w, 0, SIZE);
    struct wire_reply r;
    wire_read(&w, false, &r);
    assert_int_equal(r.status, 200);
    assert_false(r.complete);
    assert_int_equal(r.body.len, READER_PIECE_BYTES);
    wire_reply_done(&r);
    wire_close(&w);
}

static void test_clients_that_leave(void **state)
{
    (void)state;
    enum { ROUNDS = 20 };
    static struct hold h[ROUNDS]; /* the last may be at work when this returns */
    arm("disk.cold=EAGAIN");
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct wire w = wire_open(port);
        ask_range(&w, 0, SIZE);
        if (i % 2 == 0) { /* in the middle of it */
            char head[10];
            assert_int_equal(wire_recv_plain(&w, head, sizeof head), sizeof head);
        }
        hold_reader(&h[i]);
        wire_close(&w);
        sem_post(&h[i].go_on);
        wait_for_count(&ended, i + 1);
    }
}

static void *free_server(void *arg)
{
    http_server_free(server);
    *(atomic_bool *)arg = true;
    return NULL;
}

/* Else the end has begun: 503, or the connection was given up. */
static bool is_served(struct wire *w)
{
    static const char ask[] = "GET /hello HTTP/1.1\r\nHost: test\r\n\r\n";
    if (!wire_try_send(w, ask, sizeof ask - 1) || !wire_is_open(w))
        return false;
    struct wire_reply r;
    wire_read(w, false, &r);
    int status = r.status;
    wire_reply_done(&r);
    return status == 200;
}

/* The end waits for what the disk owes. */
static void end_while_a_disk_is_slow(bool in_the_middle)
{
    static struct hold h; /* the reader may be at it when this returns */
    struct wire idle = wire_open(port);
    struct wire w = wire_open(port);
    get_hello(&idle);
    arm("disk.cold=EAGAIN");
    if (!in_the_middle)
        hold_reader(&h);
    ask_range(&w, 0, SIZE);
    if (in_the_middle) {
        char byte;
        assert_int_equal(wire_recv_plain(&w, &byte, 1), 1);
        hold_reader(&h);
    } else {
        wait_for_count(&asked, 1);
    }
    atomic_bool freed = false;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, free_server, &freed), 0);
    while (!in_the_middle && is_served(&idle))
        ;
    assert_true(in_the_middle || !freed);
    sem_post(&h.go_on);
    pthread_join(thread, NULL);
    server = NULL;
    assert_int_equal(ended, 1);
    wire_close(&w);
    wire_close(&idle);
}

static void test_the_end_before_the_first_piece(void **state)
{
    (void)state;
    end_while_a_disk_is_slow(false);
}

static void test_the_end_in_the_middle(void **state)
{
    (void)state;
    end_while_a_disk_is_slow(true);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static int run(const char *name, enum http_layer which)
{
    const struct CMUnitTest tests[] = {
        TEST(test_the_same_bytes_hot_and_cold),
        TEST(test_others_do_not_wait_for_the_disk),
        TEST(test_a_disk_that_fails),
        TEST(test_clients_that_leave),
        TEST(test_the_end_before_the_first_piece),
        TEST(test_the_end_in_the_middle),
    };
    layer = which;
    return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int main(void)
{
    int failed = run("epoll", HTTP_LAYER_EPOLL) + run("microhttpd", HTTP_LAYER_MICROHTTPD);
    tls = certificate_tls();
    wire_speaks_tls = true;
    failed += run("tls", HTTP_LAYER_EPOLL);
    tls_free(tls);
    return failed;
}

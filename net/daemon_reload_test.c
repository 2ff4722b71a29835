#include "net/daemon_reload.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "io/file.h"
#include "net/testing/certificate.h"
#include "net/tls/tls.h"

enum { DAY_S = 24 * 3600, END_MS = 20000 };

struct values {
    char *log_level;
};

static const struct param_row rows[] = {
    {"log_level", PARAM_text, offsetof(struct values, log_level), "off", "", "", "how much"},
    {.name = NULL},
};

/* A daemon that always has something else to do. */
struct busy {
    struct tls *tls;
    int64_t first_s; /* of its first certificate */
    uint64_t end_ms;
    int stop_fd;
};

static void work(void *ctx)
{
    const struct busy *b = ctx;
    usleep(1000);
    if (tls_expires_s(b->tls) != b->first_s || clock_ms() > b->end_ms)
        assert_int_equal(eventfd_write(b->stop_fd, 1), 0);
}

static void a_certificate_is_renewed_however_busy_it_is(void **state)
{
    (void)state;
    char dir[] = "/tmp/dfc-reload-test-XXXXXX";
    char cert[64], key[64];
    char program[] = "daemon";
    char *argv[] = {program, NULL};
    struct values values = {.log_level = NULL};
    struct busy b = {.end_ms = clock_ms() + END_MS, .stop_fd = eventfd(0, EFD_CLOEXEC)};
    _cleanup_close_ int never_empty = eventfd(1, EFD_CLOEXEC);
    log_set_level(LOG_OFF);
    assert_non_null(mkdtemp(dir));
    snprintf(cert, sizeof cert, "%s/a.crt", dir);
    snprintf(key, sizeof key, "%s/a.key", dir);
    certificate_write(dir, "a", 0, DAY_S);
    assert_int_equal(tls_new(cert, key, &b.tls, NULL), 0);
    b.first_s = tls_expires_s(b.tls);
    certificate_write(dir, "a", 0, 30 * DAY_S);
    const struct daemon_reload r = {.rows = rows,
                                    .values = &values,
                                    .size = sizeof values,
                                    .argc = 1,
                                    .argv = argv,
                                    .tls = b.tls,
                                    .tls_reload_ms = 100,
                                    .key_file = "",
                                    .log_file = "",
                                    .other_fd = never_empty,
                                    .other = work,
                                    .ctx = &b};
    daemon_serve(b.stop_fd, &r);
    assert_true(tls_expires_s(b.tls) > b.first_s);
    tls_free(b.tls);
    close(b.stop_fd);
    assert_int_equal(file_remove_tree(dir, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_certificate_is_renewed_however_busy_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

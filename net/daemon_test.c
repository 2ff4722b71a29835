#include "net/daemon.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "io/file.h"

static struct daemon_config good(void)
{
    return (struct daemon_config){
        .id = "t1", .log_level = "off", .log_format = "text", .log_file = "", .faults = ""};
}

static void assert_refused(struct daemon_config config, const char *words)
{
    struct error err = ERROR_INIT;
    int fd;
    assert_int_equal(daemon_begin(&config, &fd, &err), E_INVALID);
    assert_non_null(strstr(err.message, words));
}

static void test_wrong_words_are_refused(void **state)
{
    (void)state;
    struct daemon_config config = good();
    config.log_level = "loud";
    assert_refused(config, "'loud'");
    config = good();
    config.log_format = "xml";
    assert_refused(config, "'xml'");
    config = good();
    config.faults = "no.such.point=EIO";
    assert_refused(config, "no.such.point");
}

/* Many connections, and a file for each: the soft limit is a shell's. */
static void test_descriptors_as_many_as_may_be(void **state)
{
    (void)state;
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    rlim_t hard = limit.rlim_max;
    limit.rlim_cur = hard / 2;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    struct daemon_config config = good();
    _cleanup_close_ int fd = -1;
    assert_int_equal(daemon_begin(&config, &fd, NULL), 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(limit.rlim_cur, hard);
    assert_int_equal(limit.rlim_max, hard);
}

static void test_signals_are_waited_for(void **state)
{
    (void)state;
    struct daemon_config config = good();
    _cleanup_close_ int fd = -1;
    int other[2];
    assert_int_equal(daemon_begin(&config, &fd, NULL), 0);
    assert_int_equal(pipe(other), 0);
    assert_int_equal(write(other[1], "x", 1), 1);
    assert_false(daemon_await(fd, other[0])); /* something else came first */
    assert_int_equal(kill(getpid(), SIGTERM), 0);
    assert_true(daemon_await(fd, -1));
    assert_true(daemon_await(fd, other[0])); /* it stays said */
    close(other[0]);
    assert_int_equal(write(other[1], "x", 1), -1); /* and nobody died of SIGPIPE */
    close(other[1]);
}

static void test_the_ready_file_comes_and_goes(void **state)
{
    (void)state;
    char dir[] = "/tmp/dfc-daemon-XXXXXX";
    assert_non_null(mkdtemp(dir));
    char sub[64], path[96];
    snprintf(sub, sizeof sub, "%s/a/b", dir);
    snprintf(path, sizeof path, "%s/ready.json", sub);
    _cleanup_json_ json_t *doc = json_pack("{s:i}", "pid", 7);
    assert_int_equal(daemon_write_ready(sub, doc, NULL), 0);
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    assert_int_equal(file_read_all(path, 100, &text, NULL), 0);
    assert_string_equal(text.data, "{\"pid\":7}");
    daemon_remove_ready(sub);
    assert_int_equal(access(path, F_OK), -1);
    daemon_remove_ready(sub); /* absent is fine */
    assert_int_equal(file_remove_tree(dir, NULL), 0);
}

static void assert_url(bool tls, const char *host, const char *want)
{
    _cleanup_free_ char *url = daemon_url(tls, host, 80);
    assert_string_equal(url, want);
}

static void test_urls(void **state)
{
    (void)state;
    assert_url(false, "127.0.0.1", "http://127.0.0.1:80");
    assert_url(true, "node7", "https://node7:80");
    assert_url(false, "::1", "http://[::1]:80");
    assert_url(true, "[fe80::1]", "https://[fe80::1]:80");
}

static void assert_no_tls(const char *cert, const char *key, const char *why)
{
    struct error err = ERROR_INIT;
    struct tls *tls;
    assert_int_equal(daemon_tls_new(cert, key, &tls, &err), E_INVALID);
    assert_non_null(strstr(err.message, why));
}

static void test_certificate_and_key(void **state)
{
    (void)state;
    struct tls *tls;
    assert_int_equal(daemon_tls_new("", "", &tls, NULL), 0);
    assert_null(tls);
    assert_no_tls("a.crt", "", "--tls-key is missing");
    assert_no_tls("", "a.key", "--tls-cert is missing");
}

static void test_hosts(void **state)
{
    (void)state;
    assert_string_equal(daemon_address("", "10.0.0.1"), "10.0.0.1");
    assert_string_equal(daemon_address("10.1.0.1", "10.0.0.1"), "10.1.0.1");
    assert_string_equal(daemon_host("", "10.0.0.1", "", true), "10.0.0.1");
    assert_string_equal(daemon_host("", "0.0.0.0", "node7", true), "node7");
    assert_string_equal(daemon_host("10.1.0.1", "0.0.0.0", "node7", true), "10.1.0.1");
    assert_string_equal(daemon_host("10.1.0.1", "0.0.0.0", "node7", false), "node7");
    assert_string_equal(daemon_host("10.1.0.1", "127.0.0.1", "", false), "10.1.0.1");
    assert_string_equal(daemon_host("::", "127.0.0.1", "node7", true), "node7");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wrong_words_are_refused),
        cmocka_unit_test(test_descriptors_as_many_as_may_be),
        cmocka_unit_test(test_signals_are_waited_for),
        cmocka_unit_test(test_the_ready_file_comes_and_goes),
        cmocka_unit_test(test_certificate_and_key),
        cmocka_unit_test(test_urls),
        cmocka_unit_test(test_hosts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

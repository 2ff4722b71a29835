#include "common/param.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/cleanup.h"

/* A daemon's table in small. */
#define TEST_PARAMS                                                               \
    PARAM(size, http_memory, "256KiB", "4KiB", "64MiB", "memory for one request") \
    PARAM(duration, keepalive, "5s", "100ms", "", "between keepalives")           \
    PARAM(count, threads, "4", "1", "64", "threads | workers")                    \
    PARAM(percent, full, "90%", "1%", "99%", "how full")                          \
    PARAM(boolean, verify, "yes", "", "", "verify on read")                       \
    PARAM(text, node_id, "", "", "", "the node's name")

struct values {
#define PARAM(type, name, def, min, max, help) param_##type##_t name;
    TEST_PARAMS
#undef PARAM
};

static const struct param_row rows[] = {
#define PARAM(type, name, def, min, max, help) \
    {#name, PARAM_##type, offsetof(struct values, name), def, min, max, help},
    TEST_PARAMS
#undef PARAM
    {NULL},
};

static int teardown(void **state)
{
    (void)state;
    unsetenv("DFC_HTTP_MEMORY");
    unsetenv("DFC_THREADS");
    unsetenv("DFC_NODE_ID");
    return 0;
}

static void defaults(void **state)
{
    (void)state;
    struct values v = {0};
    assert_int_equal(params_defaults(rows, &v, NULL), 0);
    assert_int_equal(v.http_memory, 256 << 10);
    assert_int_equal(v.keepalive, 5000);
    assert_int_equal(v.threads, 4);
    assert_int_equal(v.full, 90);
    assert_true(v.verify);
    assert_string_equal(v.node_id, "");
    params_free(rows, &v);
    assert_null(v.node_id);
}

static void defaults_of_a_wrong_table_fail(void **state)
{
    (void)state;
    static const struct param_row out_of_bounds[] = {
        {"threads", PARAM_count, offsetof(struct values, threads), "0", "1", "", "x"}, {NULL}};
    static const struct param_row bad_bound[] = {
        {"threads", PARAM_count, offsetof(struct values, threads), "2", "one", "", "x"}, {NULL}};
    struct values v = {0};
    struct error err;
    assert_int_equal(params_defaults(out_of_bounds, &v, &err), E_INVALID);
    assert_int_equal(params_defaults(bad_bound, &v, &err), E_INVALID);
    assert_non_null(strstr(err.message, "'one'"));
}

static void setting_replaces(void **state)
{
    (void)state;
    struct values v = {0};
    assert_int_equal(params_defaults(rows, &v, NULL), 0);
    assert_int_equal(params_set(rows, &v, "http_memory", "64MiB", "s", NULL), 0);
    assert_int_equal(params_set(rows, &v, "keepalive", "7d", "s", NULL), 0);
    assert_int_equal(params_set(rows, &v, "threads", "64", "s", NULL), 0);
    assert_int_equal(params_set(rows, &v, "verify", "off", "s", NULL), 0);
    assert_int_equal(params_set(rows, &v, "node_id", "t1", "s", NULL), 0);
    assert_int_equal(params_set(rows, &v, "node_id", "t2", "s", NULL), 0);
    assert_int_equal(v.http_memory, 64 << 20);
    assert_int_equal(v.keepalive, 7 * 86400000);
    assert_int_equal(v.threads, 64);
    assert_false(v.verify);
    assert_string_equal(v.node_id, "t2");
    params_free(rows, &v);
}

static void errors_name_source_parameter_and_bounds(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *text;
        const char *message;
    } bad[] = {
        {"http_memory", "1KiB",
         "file: parameter 'http_memory': '1KiB' is out of bounds: at least 4KiB, at most 64MiB"},
        {"http_memory", "64.1MiB",
         "file: parameter 'http_memory': '64.1MiB' is out of bounds: at least 4KiB, at most 64MiB"},
        {"http_memory", "much",
         "file: parameter 'http_memory': 'much' is not a size such as 512, 64KiB or 1.5GiB"},
        {"keepalive", "99", "file: parameter 'keepalive': '99' is out of bounds: at least 100ms"},
        {"keepalive", "213503982334d", "file: parameter 'keepalive': '213503982334d' is too large"},
        {"threads", "0", "file: parameter 'threads': '0' is out of bounds: at least 1, at most 64"},
        {"threads", "65",
         "file: parameter 'threads': '65' is out of bounds: at least 1, at most 64"},
        {"threads", "-1", "file: parameter 'threads': '-1' is not a whole number, 0 or more"},
        {"threads", "18446744073709551616",
         "file: parameter 'threads': '18446744073709551616' is out of bounds: at least 1, at most "
         "64"},
        {"http_memory", "99999999999999999999GiB",
         "file: parameter 'http_memory': '99999999999999999999GiB' is out of bounds: at least "
         "4KiB, at most 64MiB"},
        {"verify", "maybe", "file: parameter 'verify': 'maybe' is neither true nor false"},
        {"thread", "1", "file: no parameter is called 'thread'; did you mean 'threads'?"},
    };
    struct values v = {0};
    assert_int_equal(params_defaults(rows, &v, NULL), 0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct error err = ERROR_INIT;
        assert_int_equal(params_set(rows, &v, bad[i].name, bad[i].text, "file", &err), E_INVALID);
        assert_string_equal(err.message, bad[i].message);
    }
    assert_int_equal(v.http_memory, 256 << 10);
    assert_int_equal(v.threads, 4);
    params_free(rows, &v);
}

static int set_json(struct values *v, const char *text, struct error *err)
{
    _cleanup_(json_decrefp)
    json_t *obj = json_loads(text, JSON_DECODE_ANY, NULL);
    assert_non_null(obj);
    return params_from_json(rows, v, obj, "dfc.json", err);
}

static void values_from_json(void **state)
{
    (void)state;
    struct values v = {0};
    struct error err = ERROR_INIT;
    assert_int_equal(params_defaults(rows, &v, NULL), 0);
    assert_int_equal(set_json(&v,
                              "{\"http_memory\":\"1MiB\",\"keepalive\":250,\"verify\":false,"
                              "\"node_id\":\"t7\",\"threads\":\"8\"}",
                              &err),
                     0);
    assert_true(v.http_memory == 1 << 20 && v.keepalive == 250 && !v.verify && v.threads == 8);
    assert_string_equal(v.node_id, "t7");
    assert_int_equal(set_json(&v, "{\"threads\":1.5}", &err), E_INVALID);
    assert_string_equal(err.message,
                        "dfc.json: parameter 'threads' is neither text nor integer nor boolean");
    assert_int_equal(set_json(&v, "{\"treads\":1}", &err), E_INVALID);
    assert_string_equal(err.message,
                        "dfc.json: no parameter is called 'treads'; did you mean 'threads'?");
    assert_int_equal(set_json(&v, "[]", &err), E_INVALID);
    assert_string_equal(err.message, "dfc.json: not a JSON object");
    params_free(rows, &v);
}

static void values_from_the_environment(void **state)
{
    (void)state;
    struct values v = {0};
    struct error err = ERROR_INIT;
    assert_int_equal(params_defaults(rows, &v, NULL), 0);
    setenv("DFC_HTTP_MEMORY", "8k", 1);
    setenv("DFC_NODE_ID", "env", 1);
    assert_int_equal(params_from_env(rows, &v, &err), 0);
    assert_int_equal(v.http_memory, 8192);
    assert_string_equal(v.node_id, "env");
    setenv("DFC_THREADS", "many", 1);
    assert_int_equal(params_from_env(rows, &v, &err), E_INVALID);
    assert_string_equal(err.message, "environment DFC_THREADS: parameter 'threads': 'many' is not "
                                     "a whole number, 0 or more");
    params_free(rows, &v);
}

static int load(struct values *v, bool *help, struct error *err, int argc, ...)
{
    char *argv[10] = {(char *)(uintptr_t) "dfc-targetd"};
    va_list ap;
    va_start(ap, argc);
    for (int i = 1; i <= argc; i++)
        argv[i] = va_arg(ap, char *);
    va_end(ap);
    return params_load(rows, v, argc + 1, argv, help, err);
}

static void values_from_the_command_line(void **state)
{
    (void)state;
    struct values v = {0};
    struct error err = ERROR_INIT;
    bool help = true;
    int rc = load(&v, &help, &err, 4, "--http-memory=8KiB", "--node-id", "a=b", "--threads=2");
    assert_int_equal(rc, 0);
    assert_false(help);
    assert_int_equal(v.http_memory, 8192);
    assert_string_equal(v.node_id, "a=b");
    assert_int_equal(v.threads, 2);
    assert_int_equal(load(&v, &help, &err, 1, "--node_id="), 0);
    assert_string_equal(v.node_id, "");
    params_free(rows, &v);
}

/* `--verify`, as `--verify=yes`, wherever it stands; a word behind it that is no option is its
 * value. */
static void booleans_need_no_value(void **state)
{
    (void)state;
    static const struct {
        const char *words[3];
        bool verify;
        uint64_t threads;
    } rows_of[] = {
        {{"--verify=no", "--verify", "--threads=2"}, true, 2},
        {{"--threads=2", "--verify=no", "--verify"}, true, 2},
        {{"--verify", "no", "--threads=3"}, false, 3},
        {{"--verify=yes", "--verify", "false"}, false, 4},
    };
    for (size_t i = 0; i < sizeof rows_of / sizeof rows_of[0]; i++) {
        struct values v = {0};
        struct error err = ERROR_INIT;
        bool help;
        const char *const *w = rows_of[i].words;
        assert_int_equal(load(&v, &help, &err, 3, w[0], w[1], w[2]), 0);
        assert_int_equal(v.verify, rows_of[i].verify);
        assert_int_equal(v.threads, rows_of[i].threads);
        params_free(rows, &v);
    }
}

static void bad_command_lines(void **state)
{
    (void)state;
    static const struct {
        const char *word;
        const char *message;
    } bad[] = {
        {"threads=2", "command line: 'threads=2' is not an option"},
        {"-t", "command line: '-t' is not an option"},
        {"--", "command line: '--' is not an option"},
        {"--threads", "command line: '--threads' lacks a value"},
        {"--config", "command line: '--config' lacks a value"},
        {"--no-such=1", "command line: there is no option '--no-such'"},
        {"--node-ids=1", "command line: there is no option '--node-ids'; did you mean --node-id?"},
        {"--http-memory=1", "command line: --http-memory: '1' is out of bounds: at least 4KiB, "
                            "at most 64MiB"},
        {"--verify=maybe", "command line: --verify: 'maybe' is neither true nor false"},
        {"--config=/nonexistent/dfc.json",
         "open '/nonexistent/dfc.json': No such file or directory"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct values v = {0};
        struct error err = ERROR_INIT;
        bool help;
        assert_true(load(&v, &help, &err, 1, bad[i].word) < 0);
        assert_string_equal(err.message, bad[i].message);
        params_free(rows, &v);
    }
}

static void help_wins_over_everything(void **state)
{
    (void)state;
    struct values v = {0};
    bool help = false;
    assert_int_equal(load(&v, &help, NULL, 2, "--no-such=1", "--help"), 0);
    assert_true(help);
    assert_int_equal(v.threads, 4);
    params_free(rows, &v);
}

/* Makes a file with the text and returns its name, which the caller frees. */
static char *temporary_file(const char *text)
{
    char *path = strdup("/tmp/dfc-param-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    return path;
}

static void the_later_source_wins(void **state)
{
    (void)state;
    _cleanup_free_ char *path =
        temporary_file("{\"threads\": 10, \"http_memory\": \"10KiB\", \"keepalive\": \"10s\"}");
    struct values v = {0};
    struct error err = ERROR_INIT;
    bool help;
    setenv("DFC_THREADS", "20", 1);
    setenv("DFC_HTTP_MEMORY", "20KiB", 1);
    int rc = load(&v, &help, &err, 3, "--threads=30", "--config", path);
    unlink(path);
    assert_int_equal(rc, 0);
    assert_int_equal(v.threads, 30);
    assert_int_equal(v.http_memory, 20 << 10);
    assert_int_equal(v.keepalive, 10000);
    assert_true(v.verify);
    params_free(rows, &v);
}

static void a_broken_file_is_named(void **state)
{
    (void)state;
    _cleanup_free_ char *path = temporary_file("{\"threads\": 10,\n \"threads\": 11}");
    struct values v = {0};
    struct error err = ERROR_INIT;
    bool help;
    int rc = load(&v, &help, &err, 2, "--config", path);
    unlink(path);
    assert_int_equal(rc, E_INVALID);
    assert_memory_equal(err.message, path, strlen(path));
    assert_non_null(strstr(err.message, "line 2"));
    params_free(rows, &v);
}

static void values_as_json_load_again(void **state)
{
    (void)state;
    struct values v = {0};
    struct values again = {0};
    assert_int_equal(params_defaults(rows, &v, NULL), 0);
    assert_int_equal(params_set(rows, &v, "node_id", "t9", "s", NULL), 0);
    _cleanup_(json_decrefp)
    json_t *obj = params_json(rows, &v);
    _cleanup_free_ char *text = json_dumps(obj, JSON_COMPACT);
    assert_string_equal(text, "{\"http_memory\":262144,\"keepalive\":5000,\"threads\":4,"
                              "\"full\":90,\"verify\":true,\"node_id\":\"t9\"}");
    assert_int_equal(params_from_json(rows, &again, obj, "json", NULL), 0);
    assert_int_equal(again.http_memory, v.http_memory);
    assert_string_equal(again.node_id, "t9");
    params_free(rows, &v);
    params_free(rows, &again);
}

static void help_and_markdown(void **state)
{
    (void)state;
    _cleanup_(buf_done)
    struct buf help = BUF_INIT;
    _cleanup_(buf_done)
    struct buf table = BUF_INIT;
    params_help(rows, &help);
    assert_non_null(strstr(buf_str(&help), "  --http-memory=SIZE\n"
                                           "        memory for one request\n"
                                           "        default 256KiB, at least 4KiB, at most "
                                           "64MiB\n"));
    assert_non_null(strstr(buf_str(&help), "  --node-id=TEXT\n"
                                           "        the node's name\n"
                                           "        default empty\n"));
    params_markdown(rows, &table);
    assert_string_equal(
        buf_str(&table),
        "| parameter | type | default | min | max | meaning |\n"
        "|---|---|---|---|---|---|\n"
        "| `http_memory` | size | `256KiB` | `4KiB` | `64MiB` | memory for one request |\n"
        "| `keepalive` | duration | `5s` | `100ms` |  | between keepalives |\n"
        "| `threads` | count | `4` | `1` | `64` | threads \\| workers |\n"
        "| `full` | percent | `90%` | `1%` | `99%` | how full |\n"
        "| `verify` | boolean | `yes` |  |  | verify on read |\n"
        "| `node_id` | text |  |  |  | the node's name |\n");
}

static void manual_page(void **state)
{
    (void)state;
    _cleanup_(buf_done)
    struct buf page = BUF_INIT;
    params_man(rows, &page);
    assert_non_null(strstr(buf_str(&page), ".TP\n.B \"\\-\\-http\\-memory=SIZE\"\n"
                                           "memory for one request\n"
                                           "(default 256KiB, at least 4KiB, at most 64MiB)\n"));
    assert_non_null(strstr(buf_str(&page), "(default empty)\n"));
}

static void percentages(void **state)
{
    (void)state;
    struct values v = {0};
    struct error err = ERROR_INIT;
    static const char *const bad[] = {"",    "%",   "101",  "101%", "-1",
                                      "5 %", "5%%", "half", "100",  "0"};
    assert_int_equal(params_defaults(rows, &v, NULL), 0);
    assert_int_equal(params_set(rows, &v, "full", "7%", "test", &err), 0);
    assert_int_equal(v.full, 7);
    assert_int_equal(params_set(rows, &v, "full", "99", "test", &err), 0);
    assert_int_equal(v.full, 99);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(params_set(rows, &v, "full", bad[i], "test", &err), E_INVALID);
    assert_int_equal(v.full, 99);
    _cleanup_(json_decrefp)
    json_t *doc = params_json(rows, &v);
    assert_int_equal(json_integer_value(json_object_get(doc, "full")), 99);
    params_free(rows, &v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(defaults, teardown),
        cmocka_unit_test_teardown(defaults_of_a_wrong_table_fail, teardown),
        cmocka_unit_test_teardown(setting_replaces, teardown),
        cmocka_unit_test_teardown(percentages, teardown),
        cmocka_unit_test_teardown(errors_name_source_parameter_and_bounds, teardown),
        cmocka_unit_test_teardown(values_from_json, teardown),
        cmocka_unit_test_teardown(values_from_the_environment, teardown),
        cmocka_unit_test_teardown(values_from_the_command_line, teardown),
        cmocka_unit_test_teardown(booleans_need_no_value, teardown),
        cmocka_unit_test_teardown(bad_command_lines, teardown),
        cmocka_unit_test_teardown(help_wins_over_everything, teardown),
        cmocka_unit_test_teardown(the_later_source_wins, teardown),
        cmocka_unit_test_teardown(a_broken_file_is_named, teardown),
        cmocka_unit_test_teardown(values_as_json_load_again, teardown),
        cmocka_unit_test_teardown(help_and_markdown, teardown),
        cmocka_unit_test_teardown(manual_page, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

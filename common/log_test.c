#include "common/log.h"

#include <errno.h>
#include <jansson.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/rng.h"

/* Standard error goes into an unnamed file while a test runs. */
struct capture {
    int saved_fd;
    FILE *file;
};

static int setup(void **state)
{
    struct capture *c = calloc(1, sizeof *c);
    c->file = tmpfile();
    c->saved_fd = dup(STDERR_FILENO);
    *state = c;
    log_set_level(LOG_INFO);
    log_set_format(LOG_TEXT);
    log_set_node("t1");
    log_set_request(NULL);
    return c->file != NULL && dup2(fileno(c->file), STDERR_FILENO) == STDERR_FILENO ? 0 : -1;
}

static int teardown(void **state)
{
    struct capture *c = *state;
    dup2(c->saved_fd, STDERR_FILENO);
    close(c->saved_fd);
    fclose(c->file);
    free(c);
    return 0;
}

/* All lines since the last call. */
static char *captured(void **state)
{
    struct capture *c = *state;
    struct stat st;
    assert_return_code(fstat(fileno(c->file), &st), errno);
    char *text = calloc(1, (size_t)st.st_size + 1);
    assert_int_equal(pread(fileno(c->file), text, (size_t)st.st_size, 0), st.st_size);
    assert_return_code(ftruncate(fileno(c->file), 0), errno);
    assert_return_code(lseek(fileno(c->file), 0, SEEK_SET), errno);
    return text;
}

/* What stands behind the time, which is checked for its form. */
static void assert_logged(void **state, const char *want)
{
    static const char form[] = "dddd-dd-ddTdd:dd:dd.dddZ ";
    _cleanup_free_ char *text = captured(state);
    assert_true(strlen(text) > sizeof form - 1);
    for (size_t i = 0; form[i] != '\0'; i++) {
        if (form[i] == 'd')
            assert_in_range(text[i], '0', '9');
        else
            assert_int_equal(text[i], form[i]);
    }
    assert_string_equal(text + sizeof form - 1, want);
}

static void a_line_of_text(void **state)
{
    log_warn("target unreachable", lstr("node", "t3"), li64("silent_ms", -5123));
    assert_logged(state, "WARN t1 target unreachable node=t3 silent_ms=-5123\n");
    log_info("started");
    assert_logged(state, "INFO t1 started\n");
    log_error("e", lu64("u", UINT64_MAX), lbool("yes", true), lbool("no", false));
    assert_logged(state, "ERROR t1 e u=18446744073709551615 yes=true no=false\n");
    log_set_node(NULL);
    log_error("e");
    assert_logged(state, "ERROR - e\n");
}

static void values_are_quoted_where_needed(void **state)
{
    static const struct {
        const char *value;
        const char *want;
    } rows[] = {
        {"plain/text:7", "plain/text:7"},
        {"", "\"\""},
        {"two words", "\"two words\""},
        {"a=b", "\"a=b\""},
        {"say \"x\"", "\"say \\\"x\\\"\""},
        {"back\\slash", "\"back\\\\slash\""},
        {"line\nWARN t1 forged", "\"line\\nWARN t1 forged\""},
        {"\x1b[31m", "\"\\u001b[31m\""},
        {"\x7f", "\"\\u007f\""},
        {"gr\xc3\xbcn", "gr\xc3\xbcn"},
        {"\xff", "\"\\\\xff\""},
        {NULL, "null"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char want[200];
        snprintf(want, sizeof want, "INFO t1 e k=%s\n", rows[i].want);
        log_info("e", lstr("k", rows[i].value));
        assert_logged(state, want);
    }
}

static void an_event_stays_on_its_line(void **state)
{
    log_info("two\nlines");
    assert_logged(state, "INFO t1 two\\nlines\n");
}

static void errors_have_code_and_words(void **state)
{
    struct error err;
    error_set(&err, E_NO_SPACE, "put 'b/o': disk full");
    log_error("put failed", lerr(&err));
    assert_logged(state, "ERROR t1 put failed code=no_space error=\"put 'b/o': disk full\"\n");
}

static void lines_below_the_level_are_dropped(void **state)
{
    log_debug("no");
    log_set_level(LOG_ERROR);
    log_warn("no");
    log_error("yes");
    assert_logged(state, "ERROR t1 yes\n");
    log_set_level(LOG_OFF);
    log_error("no");
    log_set_level(LOG_DEBUG);
    log_debug("yes");
    assert_logged(state, "DEBUG t1 yes\n");
}

static void level_names(void **state)
{
    (void)state;
    static const char *const names[] = {"debug", "info", "warn", "error", "off"};
    for (int i = 0; i < 5; i++) {
        enum log_level level;
        assert_int_equal(log_level_from_name(names[i], &level), 0);
        assert_int_equal(level, i);
    }
    enum log_level level;
    assert_int_equal(log_level_from_name("loud", &level), E_INVALID);
}

static void the_request_is_named(void **state)
{
    log_set_request("r-1");
    log_info("e", lstr("k", "v"));
    assert_logged(state, "INFO t1 e req=r-1 k=v\n");
    log_set_request(NULL);
    log_info("e");
    assert_logged(state, "INFO t1 e\n");
}

static json_t *captured_json(void **state)
{
    json_error_t why;
    _cleanup_free_ char *text = captured(state);
    assert_int_equal(text[strlen(text) - 1], '\n');
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
    json_t *obj = json_loads(text, JSON_REJECT_DUPLICATES, &why);
    if (obj == NULL)
        fail_msg("%s in %s", why.text, text);
    return obj;
}

static void a_line_of_json(void **state)
{
    log_set_format(LOG_JSON);
    log_set_request("r-1");
    log_warn("target \"unreachable\"", lstr("node", "t3"), li64("ms", -5), lbool("b", true),
             lstr("none", NULL));
    json_t *obj = captured_json(state);
    assert_int_equal(json_object_size(obj), 9);
    assert_int_equal(json_string_length(json_object_get(obj, "time")), 24);
    assert_string_equal(json_string_value(json_object_get(obj, "level")), "warn");
    assert_string_equal(json_string_value(json_object_get(obj, "daemon")), "t1");
    assert_string_equal(json_string_value(json_object_get(obj, "event")), "target \"unreachable\"");
    assert_string_equal(json_string_value(json_object_get(obj, "req")), "r-1");
    assert_string_equal(json_string_value(json_object_get(obj, "node")), "t3");
    assert_int_equal(json_integer_value(json_object_get(obj, "ms")), -5);
    assert_true(json_is_true(json_object_get(obj, "b")));
    assert_true(json_is_null(json_object_get(obj, "none")));
    json_decref(obj);
}

static void json_stays_json_whatever_the_bytes(void **state)
{
    struct rng r;
    rng_seed(&r, 9);
    log_set_format(LOG_JSON);
    for (int round = 0; round < 300; round++) {
        char value[100];
        size_t len = rng_below(&r, sizeof value);
        for (size_t i = 0; i < len; i++)
            value[i] = (char)(1 + rng_below(&r, 255));
        value[len] = '\0';
        log_info(value, lstr("k", value));
        json_decref(captured_json(state));
    }
}

static void long_values_are_cut_between_characters(void **state)
{
    for (size_t ascii = 0; ascii < 4; ascii++) {
        char value[LOG_VALUE_MAX + 100];
        memset(value, 'a', ascii);
        for (size_t i = ascii; i + 3 < sizeof value; i += 3)
            memcpy(value + i, "\xe2\x82\xac", 4);
        log_set_format(LOG_JSON);
        log_info("e", lstr("k", value));
        json_t *obj = captured_json(state);
        const char *got = json_string_value(json_object_get(obj, "k"));
        size_t len = strlen(got);
        assert_in_range(len, LOG_VALUE_MAX - 2 + 3, LOG_VALUE_MAX + 3);
        assert_memory_equal(got, value, len - 3);
        assert_string_equal(got + len - 3, "...");
        assert_null(strchr(got, '\\')); /* no half character, which would show as escapes */
        json_decref(obj);
    }
}

static void a_value_of_just_the_limit_is_whole(void **state)
{
    char value[LOG_VALUE_MAX + 1];
    memset(value, 'a', LOG_VALUE_MAX);
    value[LOG_VALUE_MAX] = '\0';
    log_info("e", lstr("k", value));
    _cleanup_free_ char *text = captured(state);
    assert_null(strstr(text, "..."));
    assert_non_null(strstr(text, value));
}

static void errno_is_kept(void **state)
{
    errno = EXDEV;
    log_info("e");
    assert_int_equal(errno, EXDEV);
    free(captured(state));
}

enum { THREADS = 4, LINES = 300 };

static void *log_often(void *name)
{
    log_set_request(name);
    for (int i = 0; i < LINES; i++) {
        log_set_node("t1");
        log_info("event", li64("i", i), lstr("text", "some words to make the line longer"));
    }
    return NULL;
}

static void lines_of_threads_do_not_mix(void **state)
{
    static char names[THREADS][4] = {"r0", "r1", "r2", "r3"};
    pthread_t threads[THREADS];
    int next[THREADS] = {0};
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, log_often, names[i]), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    _cleanup_free_ char *text = captured(state);
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        char *req = strstr(line, " INFO t1 event req=r");
        assert_non_null(req);
        int thread = req[20] - '0';
        char want[100];
        snprintf(want, sizeof want, " i=%d text=\"some words to make the line longer\"",
                 next[thread]++);
        assert_string_equal(req + 21, want);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(next[i], LINES);
}

int main(void)
{
#define LOG_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        LOG_TEST(a_line_of_text),
        LOG_TEST(values_are_quoted_where_needed),
        LOG_TEST(an_event_stays_on_its_line),
        LOG_TEST(errors_have_code_and_words),
        LOG_TEST(lines_below_the_level_are_dropped),
        LOG_TEST(level_names),
        LOG_TEST(the_request_is_named),
        LOG_TEST(a_line_of_json),
        LOG_TEST(json_stays_json_whatever_the_bytes),
        LOG_TEST(long_values_are_cut_between_characters),
        LOG_TEST(a_value_of_just_the_limit_is_whole),
        LOG_TEST(errno_is_kept),
        LOG_TEST(lines_of_threads_do_not_mix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Keys for S3: which source counts, and what it is asked. */
#include "target/backend/aws_source.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/mem.h"
#include "io/file.h"
#include "target/backend/aws_question.h"

/* --- the environment of a test ---------------------------------------------------------------- */

static char folder[] = "/tmp/dfc-aws-test-XXXXXX";

/* Nothing is set but these pairs. */
static void set_env(const char *const *pairs)
{
    static const char *const all[] = {
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_PROFILE",
        "AWS_SHARED_CREDENTIALS_FILE",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_ROLE_ARN",
        "AWS_ROLE_SESSION_NAME",
        "AWS_REGION",
        "AWS_DEFAULT_REGION",
        "AWS_ENDPOINT_URL_STS",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
        "AWS_EC2_METADATA_DISABLED",
        "AWS_EC2_METADATA_SERVICE_ENDPOINT",
        "AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE",
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        unsetenv(all[i]);
    setenv("HOME", "/nowhere", 1);
    for (; *pairs != NULL; pairs += 2)
        setenv(pairs[0], pairs[1], 1);
}

#define ENV(...) set_env((const char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL})

static char *write_file(const char *name, const char *text)
{
    char *path = xprintf("%s/%s", folder, name);
    assert_int_equal(file_replace(path, text, strlen(text), 0600, NULL), 0);
    return path;
}

static int make_folder(void **unused)
{
    (void)unused;
    return mkdtemp(folder) != NULL ? 0 : -1;
}

static int remove_folder(void **unused)
{
    (void)unused;
    return file_remove_tree(folder, NULL);
}

/* --- the file --------------------------------------------------------------------------------- */

static const char *const keys_file = "# comment\n"
                                     "[default]\n"
                                     "aws_access_key_id = AKID1\n"
                                     "aws_secret_access_key=secret1\r\n"
                                     "\n"
                                     "[profile other]\n"
                                     "aws_access_key_id=AKID2\n"
                                     "aws_secret_access_key = secret/2+\n"
                                     "aws_session_token = token2\n"
                                     "region = nowhere\n"
                                     "[half]\n"
                                     "aws_access_key_id = AKID3\n"
                                     "[region]\n"
                                     "region = AKregion\n"
                                     "[space]\n"
                                     "aws_access_key_id = AK ID\n"
                                     "aws_secret_access_key = x\n";

static void keys_of_a_file(void **unused)
{
    (void)unused;
    static const struct {
        const char *section;
        int code;
    } bad[] = {{"half", E_BACKEND_DENIED},
               {"space", E_BACKEND_DENIED},
               {"none", E_NOT_FOUND},
               {"", E_NOT_FOUND},
               {"region", E_NOT_FOUND}};
    struct aws_keys k;
    struct error err = ERROR_INIT;
    assert_int_equal(aws_keys_parse(keys_file, "default", &k, &err), 0);
    assert_string_equal(k.access, "AKID1");
    assert_string_equal(k.secret, "secret1");
    assert_string_equal(k.token, "");
    assert_int_equal(aws_keys_parse(keys_file, "other", &k, &err), 0);
    assert_string_equal(k.secret, "secret/2+");
    assert_string_equal(k.token, "token2");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(aws_keys_parse(keys_file, bad[i].section, &k, &err), bad[i].code);
        assert_null(strstr(err.message, "AK"));
    }
    assert_int_equal(aws_keys_parse("[default", "default", &k, &err), E_NOT_FOUND);
}

/* --- which source ----------------------------------------------------------------------------- */

static void assert_source(const char *profile, enum aws_source wanted, const char *access)
{
    enum aws_source source;
    struct aws_keys k;
    struct error err = ERROR_INIT;
    assert_int_equal(aws_source_find(profile, &source, &k, &err), 0);
    assert_int_equal(source, wanted);
    assert_string_equal(k.access, access);
}

static void assert_no_source(const char *profile, const char *words)
{
    enum aws_source source;
    struct aws_keys k;
    struct error err = ERROR_INIT;
    assert_int_equal(aws_source_find(profile, &source, &k, &err), E_BACKEND_DENIED);
    assert_non_null(strstr(err.message, words));
    assert_null(strstr(err.message, "hidden"));
}

/* From the last of the order to the first, each set beside those that come after it. */
static void the_first_that_is_set(void **unused)
{
    (void)unused;
    _cleanup_free_ char *file = write_file("order", keys_file);
    ENV();
    assert_source("", AWS_INSTANCE, "");
    setenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/x", 1);
    assert_source("", AWS_CONTAINER, "");
    setenv("AWS_SHARED_CREDENTIALS_FILE", file, 1);
    assert_source("", AWS_FILE, "AKID1");
    setenv("AWS_PROFILE", "other", 1);
    assert_source("", AWS_FILE, "AKID2");
    setenv("AWS_WEB_IDENTITY_TOKEN_FILE", "/nowhere/token", 1);
    setenv("AWS_ROLE_ARN", "arn", 1);
    assert_source("", AWS_WEB_IDENTITY, "");
    setenv("AWS_ACCESS_KEY_ID", "AKIDENV", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "hidden", 1);
    assert_source("", AWS_ENV, "AKIDENV");
    assert_source("other", AWS_FILE, "AKID2"); /* what a bucket names comes before all */
    assert_source("default", AWS_FILE, "AKID1");
    assert_no_source("none", "profile 'none'");
}

/* Absent is what nobody has named: a file, a section, a variable without contents. */
static void what_is_absent_is_passed_over(void **unused)
{
    (void)unused;
    _cleanup_free_ char *file = write_file("absent", "[other]\naws_access_key_id = hidden\n"
                                                     "aws_secret_access_key = hidden\n"
                                                     "[default]\nregion = x\n");
    ENV("AWS_ACCESS_KEY_ID", "", "AWS_SECRET_ACCESS_KEY", "", "AWS_SESSION_TOKEN", "hidden",
        "AWS_WEB_IDENTITY_TOKEN_FILE", "", "AWS_ROLE_ARN", "arn", "AWS_PROFILE", "",
        "AWS_SHARED_CREDENTIALS_FILE", file, "AWS_CONTAINER_CREDENTIALS_FULL_URI", "");
    assert_source("", AWS_INSTANCE, "");
    setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere/credentials", 1);
    assert_source("", AWS_INSTANCE, "");
    setenv("AWS_EC2_METADATA_DISABLED", "false", 1);
    assert_source("", AWS_INSTANCE, "");
    setenv("AWS_EC2_METADATA_DISABLED", "TRUE", 1);
    assert_no_source("", "'/nowhere/credentials'");
    assert_no_source("", "AWS_EC2_METADATA_DISABLED");
}

static void what_is_set_and_no_good_is_an_error(void **unused)
{
    (void)unused;
    _cleanup_free_ char *half = write_file("half", "[default]\naws_access_key_id = hidden\n");
    ENV("AWS_ACCESS_KEY_ID", "hidden");
    assert_no_source("", "AWS_ACCESS_KEY_ID is set, and AWS_SECRET_ACCESS_KEY is not");
    ENV("AWS_SECRET_ACCESS_KEY", "hidden");
    assert_no_source("", "AWS_SECRET_ACCESS_KEY is set, and AWS_ACCESS_KEY_ID is not");
    ENV("AWS_ACCESS_KEY_ID", "x", "AWS_SECRET_ACCESS_KEY", "hid\nhidden");
    assert_no_source("", "AWS_SECRET_ACCESS_KEY has a character");
    ENV("AWS_WEB_IDENTITY_TOKEN_FILE", "/x");
    assert_no_source("", "AWS_ROLE_ARN");
    ENV("AWS_PROFILE", "mine");
    assert_no_source("", "profile 'mine'");
    ENV("AWS_SHARED_CREDENTIALS_FILE", half);
    assert_no_source("", "section [default]");
    ENV("AWS_SHARED_CREDENTIALS_FILE", folder);
    assert_no_source("", "cannot be read");
}

/* --- what is asked ---------------------------------------------------------------------------- */

static void a_web_identity(void **unused)
{
    (void)unused;
    _cleanup_free_ char *file = write_file("token", "ey.hidden+/=\n");
    static const struct {
        const char *region, *other, *endpoint, *url;
    } rows[] = {
        {"", "", "", "https://sts.amazonaws.com/"},
        {"eu-west-1", "us-east-2", "", "https://sts.eu-west-1.amazonaws.com/"},
        {"", "us-east-2", "", "https://sts.us-east-2.amazonaws.com/"},
        {"cn-north-1", "", "", "https://sts.cn-north-1.amazonaws.com.cn/"},
        {"eu-west-1", "", "http://127.0.0.1:99/", "http://127.0.0.1:99/"},
        {"", "", "https://minio:9000/sts//", "https://minio:9000/sts/"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        _cleanup_arena_ struct arena *a = arena_new(1024);
        struct question q;
        struct error err = ERROR_INIT;
        ENV("AWS_WEB_IDENTITY_TOKEN_FILE", file, "AWS_ROLE_ARN", "arn:aws:iam::1:role/r",
            "AWS_REGION", rows[i].region, "AWS_DEFAULT_REGION", rows[i].other,
            "AWS_ENDPOINT_URL_STS", rows[i].endpoint, "AWS_ROLE_SESSION_NAME", "me@x");
        assert_int_equal(aws_question_web_identity(a, &q, &err), 0);
        assert_string_equal(q.url, rows[i].url);
        assert_int_equal(q.method, HTTP_POST);
        assert_string_equal(q.body,
                            "Action=AssumeRoleWithWebIdentity&Version=2011-06-15"
                            "&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fr&RoleSessionName=me%40x"
                            "&WebIdentityToken=ey.hidden%2B%2F%3D");
        assert_null(strstr(q.who, "hidden"));
        question_wipe(&q);
        assert_string_equal(q.body, "");
    }
}

static void web_identities_that_cannot_be_asked(void **unused)
{
    (void)unused;
    _cleanup_free_ char *empty = write_file("empty", " \n");
    _cleanup_free_ char *file = write_file("token", "hidden");
    static const char *const urls[] = {"ftp://x",       "sts.amazonaws.com", "http://",
                                       "http://u@x/",   "http://x y",        "http://[::1",
                                       "http://[::1]x", "http://x\\y",       "http://:80"};
    _cleanup_arena_ struct arena *a = arena_new(1024);
    struct question q;
    struct error err = ERROR_INIT;
    ENV("AWS_ROLE_ARN", "arn", "AWS_WEB_IDENTITY_TOKEN_FILE", "/nowhere/token");
    assert_int_equal(aws_question_web_identity(a, &q, &err), E_BACKEND_DENIED);
    assert_non_null(strstr(err.message, "'/nowhere/token' cannot be read"));
    ENV("AWS_ROLE_ARN", "arn", "AWS_WEB_IDENTITY_TOKEN_FILE", empty);
    assert_int_equal(aws_question_web_identity(a, &q, &err), E_BACKEND_DENIED);
    assert_non_null(strstr(err.message, "is empty"));
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        ENV("AWS_ROLE_ARN", "arn", "AWS_WEB_IDENTITY_TOKEN_FILE", file, "AWS_ENDPOINT_URL_STS",
            urls[i]);
        if (aws_question_web_identity(a, &q, &err) != E_BACKEND_DENIED)
            fail_msg("'%s' was taken", urls[i]);
        assert_non_null(strstr(err.message, "AWS_ENDPOINT_URL_STS"));
    }
}

/* Without a name that is given: one that audit logs can be searched for, of STS's characters. */
static void names_of_sessions(void **unused)
{
    (void)unused;
    static const char before[] = "&RoleSessionName=";
    _cleanup_free_ char *file = write_file("token", "hidden");
    _cleanup_arena_ struct arena *a = arena_new(1024);
    struct question q;
    ENV("AWS_WEB_IDENTITY_TOKEN_FILE", file, "AWS_ROLE_ARN", "arn");
    assert_int_equal(aws_question_web_identity(a, &q, NULL), 0);
    const char *name = strstr(q.body, before);
    assert_non_null(name);
    name += strlen(before);
    size_t len = strcspn(name, "&");
    assert_in_range(len, 5, 64);
    assert_memory_equal(name, "dfc-", 4);
    assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789.-_"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
                     len);
}

static int ask_container(const char *relative, const char *full, struct arena *a,
                         struct question *q, struct error *err)
{
    ENV("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", relative, "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        full);
    return aws_question_container(a, q, err);
}

static void where_containers_are_asked(void **unused)
{
    (void)unused;
    static const char *const good[] = {
        "https://anywhere.example/hidden", "http://127.0.0.1/hidden",
        "http://127.9.9.9:80/hidden",      "http://localhost:80/hidden",
        "http://[::1]:80/hidden",          "http://169.254.170.2/hidden",
        "http://169.254.170.23/v1/hidden", "http://[fd00:ec2::23]/hidden"};
    static const char *const bad[] = {"http://anywhere.example/hidden",
                                      "http://127.0.0.1.example/hidden",
                                      "http://127.1/hidden",
                                      "http://0177.0.0.1/hidden",
                                      "http://127.0.0.1@example/hidden",
                                      "http://localhost:x@example/hidden",
                                      "http://localhost.example/hidden",
                                      "http://169.254.170.3/hidden",
                                      "http://169.254.169.254/hidden",
                                      "http://[::2]/hidden",
                                      "http://[::1].example/hidden",
                                      "http://10.0.0.1#@127.0.0.1/hidden",
                                      "http:///hidden",
                                      "http://127.0.0.1/hidden\r\nx: y",
                                      "file:///hidden",
                                      "127.0.0.1/hidden"};
    _cleanup_arena_ struct arena *a = arena_new(1024);
    struct question q;
    struct error err = ERROR_INIT;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_int_equal(ask_container("", good[i], a, &q, &err), 0);
        assert_string_equal(q.url, good[i]);
        assert_null(q.headers[0]);
        assert_null(strstr(q.who, "hidden"));
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (ask_container("", bad[i], a, &q, &err) != E_BACKEND_DENIED)
            fail_msg("'%s' was taken", bad[i]);
        assert_null(strstr(err.message, "hidden"));
    }
    assert_int_equal(ask_container("/v2/hidden?id=1", "http://localhost/x", a, &q, &err), 0);
    assert_string_equal(q.url, "http://169.254.170.2/v2/hidden?id=1");
    assert_non_null(strstr(q.who, "'http://169.254.170.2'"));
    assert_int_equal(ask_container("@example/hidden", "", a, &q, &err), E_BACKEND_DENIED);
    assert_int_equal(ask_container(".example/hidden", "", a, &q, &err), E_BACKEND_DENIED);
}

static void what_containers_show(void **unused)
{
    (void)unused;
    _cleanup_free_ char *file = write_file("authorization", "Bearer fromFile\n");
    _cleanup_free_ char *split = write_file("split", "hidden\r\nx-evil: 1");
    _cleanup_arena_ struct arena *a = arena_new(1024);
    struct question q;
    struct error err = ERROR_INIT;
    ENV("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://localhost/",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN", "Basic abc");
    assert_int_equal(aws_question_container(a, &q, &err), 0);
    assert_string_equal(q.headers[0], "authorization: Basic abc");
    setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", file, 1);
    assert_int_equal(aws_question_container(a, &q, &err), 0);
    assert_string_equal(q.headers[0], "authorization: Bearer fromFile");
    assert_null(q.headers[1]);
    question_wipe(&q);
    assert_string_equal(q.headers[0], "");
    setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", split, 1);
    assert_int_equal(aws_question_container(a, &q, &err), E_BACKEND_DENIED);
    assert_null(strstr(err.message, "hidden"));
    setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "/nowhere/token", 1);
    assert_int_equal(aws_question_container(a, &q, &err), E_BACKEND_DENIED);
}

static void an_instance(void **unused)
{
    (void)unused;
    static const struct {
        const char *endpoint, *mode, *base;
    } rows[] = {
        {"", "", "http://169.254.169.254"},
        {"", "ipv6", "http://[fd00:ec2::254]"},
        {"", "IPv4", "http://169.254.169.254"},
        {"http://127.0.0.1:5/", "IPv6", "http://127.0.0.1:5"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        _cleanup_arena_ struct arena *a = arena_new(1024);
        struct question q;
        ENV("AWS_EC2_METADATA_SERVICE_ENDPOINT", rows[i].endpoint,
            "AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE", rows[i].mode);
        assert_int_equal(aws_question_instance_token(a, &q, NULL), 0);
        assert_int_equal(q.method, HTTP_PUT);
        assert_string_equal(q.url, arena_printf(a, "%s/latest/api/token", rows[i].base));
        assert_string_equal(q.headers[0], "x-aws-ec2-metadata-token-ttl-seconds: 60");
        assert_int_equal(aws_question_instance(a, "t==", NULL, &q, NULL), 0);
        assert_int_equal(q.method, HTTP_GET);
        assert_string_equal(
            q.url, arena_printf(a, "%s/latest/meta-data/iam/security-credentials/", rows[i].base));
        assert_string_equal(q.headers[0], "x-aws-ec2-metadata-token: t==");
        assert_int_equal(aws_question_instance(a, "t==", "my+role", &q, NULL), 0);
        assert_string_equal(q.url,
                            arena_printf(a, "%s/latest/meta-data/iam/security-credentials/%s",
                                         rows[i].base, "my%2Brole"));
    }
    ENV("AWS_EC2_METADATA_SERVICE_ENDPOINT", "169.254.169.254");
    struct question q;
    _cleanup_arena_ struct arena *a = arena_new(1024);
    assert_int_equal(aws_question_instance_token(a, &q, NULL), E_BACKEND_DENIED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_of_a_file),
        cmocka_unit_test(the_first_that_is_set),
        cmocka_unit_test(what_is_absent_is_passed_over),
        cmocka_unit_test(what_is_set_and_no_good_is_an_error),
        cmocka_unit_test(a_web_identity),
        cmocka_unit_test(web_identities_that_cannot_be_asked),
        cmocka_unit_test(names_of_sessions),
        cmocka_unit_test(where_containers_are_asked),
        cmocka_unit_test(what_containers_show),
        cmocka_unit_test(an_instance),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

/* Keys for S3 in answers, words of failures; and answers that are no good. */
#include "target/backend/aws_answer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/cleanup.h"
#include "common/mem.h"

#define NOW_MS 1795230000000 /* 2026-11-21T03:00:00Z */
#define SOON "2026-11-21T03:04:05Z"
#define SOON_MS 1795230245000
#define STS(credentials)                                                                     \
    "<?xml version=\"1.0\"?>\n<AssumeRoleWithWebIdentityResponse "                           \
    "xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><AssumeRoleWithWebIdentityResult>"  \
    "<Audience>x</Audience><AssumedRoleUser><Arn>a</Arn></AssumedRoleUser>" credentials      \
    "<Provider>p</Provider></AssumeRoleWithWebIdentityResult><ResponseMetadata><RequestId>r" \
    "</RequestId></ResponseMetadata></AssumeRoleWithWebIdentityResponse>"
#define KEYS_XML                                                                   \
    "<AccessKeyId>ASIA1</AccessKeyId><SecretAccessKey>hidden/1+</SecretAccessKey>" \
    "<SessionToken>hidden==</SessionToken>"
#define KEYS_JSON \
    "\"AccessKeyId\":\"ASIA1\",\"SecretAccessKey\":\"hidden/1+\",\"Token\":\"hidden==\""

static int read_answer(const char *text, struct aws_keys *k, int64_t *end_ms, struct error *err)
{
    return (*text == '<' ? aws_answer_xml : aws_answer_json)(text, strlen(text), NOW_MS, k, end_ms,
                                                             err);
}

static void keys_that_are_given(void **unused)
{
    (void)unused;
    static const char *const rows[] = {
        STS("<Credentials>" KEYS_XML "<Expiration>" SOON "</Expiration></Credentials>"),
        STS("<Credentials><Expiration>2026-11-21T03:04:05.123Z</Expiration>" KEYS_XML
            "</Credentials>"),
        "{" KEYS_JSON ",\"Expiration\":\"" SOON "\"}",
        "{\"Code\":\"Success\",\"LastUpdated\":\"x\",\"Type\":\"AWS-HMAC\"," KEYS_JSON
        ",\"Expiration\":\"2026-11-21T04:04:05+01:00\"}",
        "{\"RoleArn\":\"a\",\"AccountId\":\"1\"," KEYS_JSON ",\"Expiration\":\"" SOON "\"}",
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct aws_keys k;
        struct error err = ERROR_INIT;
        int64_t end_ms = 0;
        assert_int_equal(read_answer(rows[i], &k, &end_ms, &err), 0);
        assert_string_equal(k.access, "ASIA1");
        assert_string_equal(k.secret, "hidden/1+");
        assert_string_equal(k.token, "hidden==");
        assert_true(end_ms == SOON_MS);
    }
}

static void answers_that_are_no_keys(void **unused)
{
    (void)unused;
    static const struct {
        const char *text, *words;
        int code;
    } rows[] = {
        {"", "no JSON", E_BACKEND},
        {"hidden", "no JSON", E_BACKEND},
        {"[]", "no JSON", E_BACKEND},
        {"\"hidden\"", "no JSON", E_BACKEND},
        {"{" KEYS_JSON ",\"Expiration\":\"" SOON "\"", "no JSON", E_BACKEND},
        {"{" KEYS_JSON "," KEYS_JSON ",\"Expiration\":\"" SOON "\"}", "no JSON", E_BACKEND},
        {"{}", "no AccessKeyId", E_BACKEND},
        {"{\"AccessKeyId\":\"hidden\",\"Token\":\"hidden\",\"Expiration\":\"" SOON "\"}",
         "no SecretAccessKey", E_BACKEND},
        {"{\"AccessKeyId\":\"hidden\",\"SecretAccessKey\":\"hidden\",\"Expiration\":\"" SOON "\"}",
         "no session token", E_BACKEND},
        {"{" KEYS_JSON "}", "no Expiration", E_BACKEND},
        {"{" KEYS_JSON ",\"Expiration\":1795230245}", "no Expiration", E_BACKEND},
        {"{" KEYS_JSON ",\"Expiration\":\"soon\"}", "no time", E_BACKEND},
        {"{" KEYS_JSON ",\"Expiration\":\"2026-11-21T02:59:59Z\"}", "2026-11-21T02:59:59Z",
         E_BACKEND},
        {"{" KEYS_JSON ",\"Expiration\":\"2026-11-21T03:00:00Z\"}", "have ended", E_BACKEND},
        {"{\"AccessKeyId\":\"hid\\nhidden: x\",\"SecretAccessKey\":\"hidden\"}",
         "AccessKeyId has a character", E_BACKEND},
        {"{\"AccessKeyId\":\"x\",\"SecretAccessKey\":\"hidd\xc3\xa4n\"}",
         "SecretAccessKey has a character", E_BACKEND},
        {"{\"Code\":\"Failed\",\"Message\":\"no profile\"}", "Failed: no profile",
         E_BACKEND_DENIED},
        {"<html>hidden</html>", "no AssumeRole", E_BACKEND},
        {STS(""), "no AccessKeyId", E_BACKEND},
        {STS("<Credentials>" KEYS_XML "</Credentials>"), "no Expiration", E_BACKEND},
        {STS("<Keys>" KEYS_XML "<Expiration>" SOON "</Expiration></Keys>"), "no AccessKeyId",
         E_BACKEND},
        {STS("<Credentials>" KEYS_XML "<Expiration>2020-01-01T00:00:00Z</Expiration>"
             "</Credentials>"),
         "have ended", E_BACKEND},
        {"<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult>"
         "<Credentials>" KEYS_XML "<Expiration>" SOON "</Expiration></Credentials>",
         "no AssumeRole", E_BACKEND},
        {"<!DOCTYPE x [<!ENTITY y \"hidden\">]>" STS("<Credentials>" KEYS_XML "</Credentials>"),
         "no AssumeRole", E_BACKEND},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct aws_keys k;
        struct error err = ERROR_INIT;
        int64_t end_ms = 0;
        if (read_answer(rows[i].text, &k, &end_ms, &err) != rows[i].code ||
            strstr(err.message, rows[i].words) == NULL)
            fail_msg("'%s': %s", rows[i].text, err.message);
        assert_null(strstr(err.message, "hidden"));
    }
}

static void keys_that_are_too_long(void **unused)
{
    (void)unused;
    static const struct {
        size_t len;
        int code;
    } rows[] = {{AWS_TOKEN_MAX - 1, 0}, {AWS_TOKEN_MAX, E_BACKEND}, {20000, E_BACKEND}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        _cleanup_free_ char *token = xmalloc(rows[i].len + 1);
        memset(token, 'h', rows[i].len);
        token[rows[i].len] = '\0';
        _cleanup_free_ char *json =
            xprintf("{\"AccessKeyId\":\"a\",\"SecretAccessKey\":\"s\",\"Expiration\":\"" SOON
                    "\",\"Token\":\"%s\"}",
                    token);
        _cleanup_free_ char *xml =
            xprintf(STS("<Credentials><AccessKeyId>a</AccessKeyId><SecretAccessKey>s"
                        "</SecretAccessKey><Expiration>" SOON "</Expiration><SessionToken>%s"
                        "</SessionToken></Credentials>"),
                    token);
        struct aws_keys k;
        struct error err = ERROR_INIT;
        int64_t end_ms;
        assert_int_equal(read_answer(json, &k, &end_ms, &err), rows[i].code);
        assert_int_equal(read_answer(xml, &k, &end_ms, &err), rows[i].code);
        assert_null(strstr(err.message, "hhh"));
    }
}

static void plain_texts(void **unused)
{
    (void)unused;
    char session[AWS_SESSION_MAX], role[AWS_ROLE_MAX], lon[2000];
    static const char *const bad[] = {"../x", "a/b", "a b", "a%2f", "<html>", "a\rb", "a?b"};
    struct error err = ERROR_INIT;
    memset(lon, 'x', sizeof lon);
    assert_int_equal(aws_answer_session("AQAE==\n", 7, session, &err), 0);
    assert_string_equal(session, "AQAE==");
    assert_int_equal(aws_answer_session("", 0, session, &err), E_BACKEND);
    assert_int_equal(aws_answer_session("a b", 3, session, &err), E_BACKEND);
    assert_int_equal(aws_answer_session("a\rb", 3, session, &err), E_BACKEND);
    assert_int_equal(aws_answer_session(lon, AWS_SESSION_MAX - 1, session, &err), 0);
    assert_int_equal(aws_answer_session(lon, AWS_SESSION_MAX, session, &err), E_BACKEND);
    assert_int_equal(aws_answer_role("my-role_1+=,.@\r\nother\n", 21, role, &err), 0);
    assert_string_equal(role, "my-role_1+=,.@");
    assert_int_equal(aws_answer_role(" \n", 2, role, &err), E_BACKEND_DENIED);
    assert_int_equal(aws_answer_role("a\0b", 3, role, &err), E_BACKEND);
    assert_int_equal(aws_answer_role(lon, AWS_ROLE_MAX - 1, role, &err), 0);
    assert_int_equal(aws_answer_role(lon, AWS_ROLE_MAX, role, &err), E_BACKEND);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(aws_answer_role(bad[i], strlen(bad[i]), role, &err), E_BACKEND);
}

static void words_of_failures(void **unused)
{
    (void)unused;
    static const struct {
        const char *body, *words;
        bool is_passing;
    } rows[] = {
        {"<ErrorResponse xmlns=\"x\"><Error><Type>Sender</Type><Code>AccessDenied</Code>"
         "<Message>Not authorized</Message></Error><RequestId>r</RequestId></ErrorResponse>",
         "AccessDenied: Not authorized", false},
        {"<ErrorResponse><Error><Code>IDPCommunicationError</Code></Error></ErrorResponse>",
         "IDPCommunicationError", true},
        {"{\"code\":\"ThrottlingException\",\"message\":\"slow\\ndown\"}",
         "ThrottlingException: slowdown", true},
        {"{\"Code\":\"Failed\",\"Message\":\"m\"}", "Failed: m", false},
        {"{\"message\":\"m\"}", "m", false},
        {"{\"code\":7}", "", false},
        {"<html>no</html>", "", false},
        {"[]", "", false},
        {"", "", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        _cleanup_buf_ struct buf out = BUF_INIT;
        aws_answer_words(rows[i].body, strlen(rows[i].body), &out);
        assert_string_equal(buf_str(&out), rows[i].words);
        assert_int_equal(aws_answer_is_passing(buf_str(&out)), rows[i].is_passing);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_that_are_given),    cmocka_unit_test(answers_that_are_no_keys),
        cmocka_unit_test(keys_that_are_too_long), cmocka_unit_test(plain_texts),
        cmocka_unit_test(words_of_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

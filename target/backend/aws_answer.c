#include "target/backend/aws_answer.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "common/clock.h"
#include "common/jsonx.h"
#include "s3/xml.h"

enum { WORDS_MAX = 200, TIME_MAX = 40 };

/* --- the fields, which both forms have -------------------------------------------------------- */

struct fields {
    struct aws_keys *keys;
    char end[TIME_MAX];
    struct error err; /* of the first that is no good */
};

/* As XML calls them; JSON has Token. */
static void take_field(struct fields *f, const char *name, const char *text)
{
    const struct {
        const char *name;
        char *to;
        size_t size;
    } rows[] = {{"AccessKeyId", f->keys->access, sizeof f->keys->access},
                {"SecretAccessKey", f->keys->secret, sizeof f->keys->secret},
                {"SessionToken", f->keys->token, sizeof f->keys->token},
                {"Expiration", f->end, sizeof f->end}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0] && f->err.code == 0; i++) {
        if (strcmp(name, rows[i].name) == 0)
            aws_keys_take(name, text, strlen(text), rows[i].to, rows[i].size, &f->err);
    }
}

static int check_end(const struct fields *f, int64_t now_ms, int64_t *end_ms, struct error *err)
{
    int64_t end_s;
    char when[32];
    if (clock_parse_rfc3339(f->end, &end_s) != 0)
        return error_set(err, E_BACKEND, "the answer's Expiration is no time");
    *end_ms = end_s * 1000;
    if (*end_ms > now_ms)
        return 0;
    return error_set(err, E_BACKEND,
                     "the keys that it gives have ended at %s, by this node's clock (is that "
                     "right?)",
                     clock_format_rfc3339(*end_ms, when));
}

static int check_fields(const struct fields *f, int64_t now_ms, int64_t *end_ms, struct error *err)
{
    const struct {
        const char *name, *text;
    } rows[] = {{"AccessKeyId", f->keys->access},
                {"SecretAccessKey", f->keys->secret},
                {"session token", f->keys->token},
                {"Expiration", f->end}};
    if (f->err.code != 0)
        return error_set(err, E_BACKEND, "%s", f->err.message);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (*rows[i].text == '\0')
            return error_set(err, E_BACKEND, "the answer has no %s", rows[i].name);
    }
    return check_end(f, now_ms, end_ms, err);
}

/* --- XML -------------------------------------------------------------------------------------- */

static void credentials_leaf(void *ctx, const char *in, const char *name, const char *text)
{
    if (strcmp(in, "Credentials") == 0)
        take_field(ctx, name, text);
}

int aws_answer_xml(const char *body, size_t len, int64_t now_ms, struct aws_keys *out,
                   int64_t *end_ms, struct error *err)
{
    *out = (struct aws_keys){.token = ""};
    struct fields f = {.keys = out};
    const struct xml_reader r = {.root = "AssumeRoleWithWebIdentityResponse",
                                 .depth = XML_DEPTH_MAX,
                                 .leaf = credentials_leaf,
                                 .ctx = &f};
    if (!xml_read(&r, body, len))
        return error_set(err, E_BACKEND, "the answer is no AssumeRoleWithWebIdentityResponse");
    return check_fields(&f, now_ms, end_ms, err);
}

/* --- JSON ------------------------------------------------------------------------------------- */

/* A field's text, "" without one. */
static const char *text_of(json_t *doc, const char *name)
{
    const char *text = "";
    return json_get_str(doc, "", name, &text, NULL) == 0 ? text : "";
}

int aws_answer_json(const char *body, size_t len, int64_t now_ms, struct aws_keys *out,
                    int64_t *end_ms, struct error *err)
{
    static const char *const names[] = {"AccessKeyId", "SecretAccessKey", "Expiration"};
    _cleanup_json_ json_t *doc = NULL;
    *out = (struct aws_keys){.token = ""};
    struct fields f = {.keys = out};
    if (json_parse(body, len, &doc, NULL) != 0 || !json_is_object(doc))
        return error_set(err, E_BACKEND, "the answer is no JSON object");
    const char *code = text_of(doc, "Code");
    if (*code != '\0' && strcmp(code, "Success") != 0) {
        _cleanup_buf_ struct buf words = BUF_INIT;
        aws_answer_words(body, len, &words);
        return error_set(err, E_BACKEND_DENIED, "it has no keys: %s", buf_str(&words));
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        take_field(&f, names[i], text_of(doc, names[i]));
    take_field(&f, "SessionToken", text_of(doc, "Token"));
    return check_fields(&f, now_ms, end_ms, err);
}

/* --- plain texts ------------------------------------------------------------------------------ */

/* The first line, without the blanks at its end. */
static size_t line_of(const char *body, size_t len)
{
    size_t n = 0;
    while (n < len && body[n] != '\n')
        n++;
    while (n > 0 && isspace((unsigned char)body[n - 1]))
        n--;
    return n;
}

int aws_answer_session(const char *body, size_t len, char out[static AWS_SESSION_MAX],
                       struct error *err)
{
    size_t n = line_of(body, len);
    if (n > 0 && aws_keys_take("the token", body, n, out, AWS_SESSION_MAX, NULL) == 0)
        return 0;
    return error_set(err, E_BACKEND, "the answer is no token");
}

int aws_answer_role(const char *body, size_t len, char out[static AWS_ROLE_MAX], struct error *err)
{
    size_t n = line_of(body, len);
    if (n == 0)
        return error_set(err, E_BACKEND_DENIED, "it has no role for this instance");
    if (n >= AWS_ROLE_MAX)
        return error_set(err, E_BACKEND, "the answer is no name of a role");
    for (size_t i = 0; i < n; i++) {
        if (!isalnum((unsigned char)body[i]) && memchr("+=,.@_-", body[i], 7) == NULL)
            return error_set(err, E_BACKEND, "the answer is no name of a role");
    }
    memcpy(out, body, n);
    out[n] = '\0';
    return 0;
}

/* --- failures --------------------------------------------------------------------------------- */

struct words {
    char code[WORDS_MAX], message[WORDS_MAX];
};

static void keep_printable(char out[static WORDS_MAX], const char *text)
{
    size_t n = 0;
    for (; *text != '\0' && n < WORDS_MAX - 1; text++) {
        if (*text >= ' ' && *text <= '~')
            out[n++] = *text;
    }
    out[n] = '\0';
}

static void error_leaf(void *ctx, const char *in, const char *name, const char *text)
{
    struct words *w = ctx;
    if (strcmp(in, "Error") == 0 && strcmp(name, "Code") == 0)
        keep_printable(w->code, text);
    if (strcmp(in, "Error") == 0 && strcmp(name, "Message") == 0)
        keep_printable(w->message, text);
}

static const char *either(const char *one, const char *other)
{
    return *one != '\0' ? one : other;
}

static void words_of_json(const char *body, size_t len, struct words *w)
{
    _cleanup_json_ json_t *doc = NULL;
    if (json_parse(body, len, &doc, NULL) != 0 || !json_is_object(doc))
        return;
    keep_printable(w->code, either(text_of(doc, "Code"), text_of(doc, "code")));
    keep_printable(w->message, either(text_of(doc, "Message"), text_of(doc, "message")));
}

void aws_answer_words(const char *body, size_t len, struct buf *out)
{
    struct words w = {.code = ""};
    const struct xml_reader r = {
        .root = "ErrorResponse", .depth = XML_DEPTH_MAX, .leaf = error_leaf, .ctx = &w};
    if (!xml_read(&r, body, len))
        words_of_json(body, len, &w);
    buf_printf(out, "%s%s%s", w.code, *w.code != '\0' && *w.message != '\0' ? ": " : "", w.message);
}

bool aws_answer_is_passing(const char *words)
{
    static const char *const codes[] = {"IDPCommunicationError", "RequestLimitExceeded",
                                        "Throttling", "InternalFailure", "ServiceUnavailable"};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        if (strncmp(words, codes[i], strlen(codes[i])) == 0)
            return true;
    }
    return false;
}

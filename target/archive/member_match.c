#include "target/archive/member_match.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>

#include "common/mem.h"

typedef int match_fn(struct member_match *m, const char *name, size_t len, struct error *err);

struct member_match {
    match_fn *match;
    char *text;
    size_t len;
    pcre2_code *code; /* of an expression; else NULL */
    pcre2_match_context *limits;
    pcre2_match_data *found;
};

static int has_prefix(struct member_match *m, const char *name, size_t len, struct error *err)
{
    (void)err;
    return len >= m->len && memcmp(name, m->text, m->len) == 0;
}

static int has_suffix(struct member_match *m, const char *name, size_t len, struct error *err)
{
    (void)err;
    return len >= m->len && memcmp(name + len - m->len, m->text, m->len) == 0;
}

static int has_within(struct member_match *m, const char *name, size_t len, struct error *err)
{
    (void)err;
    return memmem(name, len, m->text, m->len) != NULL;
}

static int has_key(struct member_match *m, const char *name, size_t len, struct error *err)
{
    (void)err;
    const char *slash = memrchr(name, '/', len);
    const char *base = slash != NULL ? slash + 1 : name;
    const char *dot = memchr(base, '.', len - (size_t)(base - name));
    const size_t key_len = dot != NULL ? (size_t)(dot - name) : len;
    return key_len == m->len && memcmp(name, m->text, key_len) == 0;
}

static int has_expression(struct member_match *m, const char *name, size_t len, struct error *err)
{
    char why[128];
    int rc = pcre2_match(m->code, (PCRE2_SPTR)name, len, 0, 0, m->found, m->limits);
    if (rc >= 0 || rc == PCRE2_ERROR_NOMATCH)
        return rc >= 0;
    pcre2_get_error_message(rc, (PCRE2_UCHAR *)why, sizeof why);
    return error_set(err, E_INVALID, "parameter 'match': the expression '%s' cannot be sought: %s",
                     m->text, why);
}

static const struct {
    const char *mode;
    match_fn *match;
} modes[] = {
    {"prefix", has_prefix}, {"suffix", has_suffix},     {"substr", has_within},
    {"wdskey", has_key},    {"regexp", has_expression},
};

static int compile(struct member_match *m, struct error *err)
{
    char why[128];
    int rc;
    PCRE2_SIZE at;
    const uint32_t options = PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C;
    m->code = pcre2_compile((PCRE2_SPTR)m->text, m->len, options, &rc, &at, NULL);
    if (m->code == NULL) {
        pcre2_get_error_message(rc, (PCRE2_UCHAR *)why, sizeof why);
        return error_set(err, E_INVALID,
                         "parameter 'match': the expression '%s' is wrong at byte %zu: %s", m->text,
                         (size_t)at, why);
    }
    m->limits = pcre2_match_context_create(NULL);
    m->found = pcre2_match_data_create_from_pattern(m->code, NULL);
    if (m->limits == NULL || m->found == NULL)
        return error_set(err, E_OVERLOAD, "there is no memory for the expression");
    pcre2_set_match_limit(m->limits, MEMBER_MATCH_STEPS);
    pcre2_set_depth_limit(m->limits, MEMBER_MATCH_STEPS);
    pcre2_set_heap_limit(m->limits, MEMBER_MATCH_KIB);
    return 0;
}

static match_fn *find_mode(const char *mode)
{
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        if (strcmp(modes[i].mode, mode) == 0)
            return modes[i].match;
    }
    return NULL;
}

int member_match_new(const char *mode, const char *text, struct member_match **out,
                     struct error *err)
{
    match_fn *match = find_mode(mode);
    const size_t len = strlen(text);
    if (match == NULL)
        return error_set(err, E_INVALID,
                         "parameter 'mode' is '%.32s': it must be prefix, suffix, substr, wdskey "
                         "or regexp",
                         mode);
    if (len == 0 || len > MEMBER_MATCH_BYTES)
        return error_set(err, E_INVALID, "parameter 'match' must have 1 to %d bytes",
                         MEMBER_MATCH_BYTES);
    _cleanup_(member_match_freep)
    struct member_match *m = xcalloc(1, sizeof *m);
    m->match = match;
    m->text = xstrdup(text);
    m->len = len;
    int code = match == has_expression ? compile(m, err) : 0;
    if (code == 0)
        *out = steal(m);
    return code;
}

void member_match_free(struct member_match *m)
{
    if (m == NULL)
        return;
    pcre2_match_data_free(m->found);
    pcre2_match_context_free(m->limits);
    pcre2_code_free(m->code);
    free(m->text);
    free(m);
}

int member_match(struct member_match *m, const char *name, size_t len, struct error *err)
{
    return m->match(m, name, len, err);
}

#include "common/template.h"

#include <assert.h>

#include "common/mem.h"

struct range {
    uint64_t first;
    uint64_t step;
    uint64_t count;
    unsigned width;  /* digits at least, zeros filling; 0 as 1 */
    bool variable;   /* its greatest number has more digits than that */
    size_t tail;     /* digits that follow a variable range before anything else does */
    const char *gap; /* the literal text after it, in `text` */
    size_t gap_len;
};

struct name_template {
    enum template_kind kind;
    char *text;
    char *prefix;
    uint64_t count;
    size_t ranges_count;
    struct range ranges[TEMPLATE_RANGES_MAX];
};

/* Parsing */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int bad_template(const struct name_template *t, const char *at, const char *what,
                        struct error *err)
{
    return error_set(err, E_SPEC, "template '%s', byte %zu: %s", t->text, (size_t)(at - t->text),
                     what);
}

/* The number at *at, below 2^63, and how many digits it is written with. */
static int take_number(const struct name_template *t, const char **at, uint64_t *value,
                       unsigned *digits, struct error *err)
{
    const char *c = *at;
    for (*value = 0; is_digit(*c); c++) {
        uint64_t digit = (uint64_t)(*c - '0');
        if (*value > ((uint64_t)INT64_MAX - digit) / 10)
            return bad_template(t, *at, "the number is too large", err);
        *value = *value * 10 + digit;
    }
    if (c == *at)
        return bad_template(t, *at, "a number is expected here", err);
    if (c - *at > TEMPLATE_WIDTH_MAX)
        return bad_template(t, *at, "the number has too many digits", err);
    *digits = (unsigned)(c - *at);
    *at = c;
    return 0;
}

static bool take_dots(const char **at)
{
    if (strncmp(*at, "..", 2) != 0)
        return false;
    *at += 2;
    return true;
}

/* "{0001..0010..2}", *at behind the brace; moves behind the closing one. */
static int take_bash(const struct name_template *t, const char **at, struct range *r,
                     struct error *err)
{
    const char *open = *at;
    uint64_t last = 0;
    unsigned first_digits = 0;
    unsigned last_digits = 0;
    unsigned step_digits = 0;
    int rc = take_number(t, at, &r->first, &first_digits, err);
    if (rc == 0 && !take_dots(at))
        rc = bad_template(t, *at, "'..' is expected here", err);
    if (rc == 0)
        rc = take_number(t, at, &last, &last_digits, err);
    r->step = 1;
    if (rc == 0 && take_dots(at))
        rc = take_number(t, at, &r->step, &step_digits, err);
    if (rc != 0)
        return rc;
    if (**at != '}')
        return bad_template(t, *at, "'}' is expected here", err);
    *at += 1;
    if (r->first > last)
        return bad_template(t, open, "the first number is greater than the second", err);
    if (r->step == 0)
        return bad_template(t, open, "the step is 0", err);
    r->count = (last - r->first) / r->step + 1;
    r->width = first_digits < last_digits ? first_digits : last_digits;
    return 0;
}

/* "@0010", *at behind the '@'. */
static int take_at(const struct name_template *t, const char **at, struct range *r,
                   struct error *err)
{
    uint64_t last;
    int rc = take_number(t, at, &last, &r->width, err);
    if (rc != 0)
        return rc;
    r->step = 1;
    r->count = last + 1;
    return 0;
}

/* "%d" or "%06d", *at behind the '%'. */
static int take_fmt(const struct name_template *t, const char **at, struct range *r,
                    struct error *err)
{
    const char *open = *at;
    uint64_t width = 0;
    unsigned digits = 0;
    int rc = 0;
    if (**at == '0') {
        *at += 1;
        rc = take_number(t, at, &width, &digits, err);
    }
    if (rc != 0)
        return rc;
    if (**at != 'd')
        return bad_template(t, open, "'d' or a width such as '06d' is expected here", err);
    *at += 1;
    if (width > TEMPLATE_WIDTH_MAX)
        return bad_template(t, open, "the width is too large", err);
    if (strchr(*at, '%') != NULL)
        return bad_template(t, strchr(*at, '%'), "a template has at most one '%'", err);
    r->step = 1;
    r->count = UINT64_MAX;
    r->width = (unsigned)width;
    return 0;
}

typedef int take_fn(const struct name_template *t, const char **at, struct range *r,
                    struct error *err);

/* In the order in which they are looked for. */
static const struct notation {
    enum template_kind kind;
    char mark;
    take_fn *take;
} notations[] = {
    {TEMPLATE_BASH, '{', take_bash},
    {TEMPLATE_AT, '@', take_at},
    {TEMPLATE_FMT, '%', take_fmt},
};

static unsigned digits_of(uint64_t value)
{
    unsigned digits = 1;
    for (; value >= 10; value /= 10)
        digits++;
    return digits;
}

/* All ranges of the text, which has at least one mark. */
static int take_ranges(struct name_template *t, const struct notation *n, struct error *err)
{
    const char *mark = strchr(t->text, n->mark);
    while (mark != NULL) {
        if (t->ranges_count == TEMPLATE_RANGES_MAX)
            return bad_template(t, mark, "too many ranges", err);
        struct range *r = &t->ranges[t->ranges_count++];
        const char *at = mark + 1;
        int rc = n->take(t, &at, r, err);
        if (rc != 0)
            return rc;
        r->variable = digits_of(r->first + (r->count - 1) * r->step) > r->width;
        r->gap = at;
        mark = strchr(at, n->mark);
        r->gap_len = mark != NULL ? (size_t)(mark - at) : strlen(at);
    }
    return 0;
}

static int count_names(struct name_template *t, struct error *err)
{
    t->count = 1;
    for (size_t i = 0; i < t->ranges_count; i++) {
        bool over = __builtin_mul_overflow(t->count, t->ranges[i].count, &t->count);
        if (over || (t->count == UINT64_MAX && t->kind != TEMPLATE_FMT))
            return bad_template(t, t->text, "it makes too many names", err);
    }
    return 0;
}

/* A run of digits in a name is cut into its parts by length, which works when all of them but one
 * have a fixed one.  From the right, so that what follows is known. */
static int find_tails(struct name_template *t, struct error *err)
{
    size_t run = 0; /* digits from here to the end of the run */
    bool run_varies = false;
    for (size_t i = t->ranges_count; i-- > 0;) {
        struct range *r = &t->ranges[i];
        size_t lead = 0;
        while (lead < r->gap_len && is_digit(r->gap[lead]))
            lead++;
        bool run_ends = lead < r->gap_len;
        run = run_ends ? lead : run + lead;
        run_varies = run_varies && !run_ends;
        if (r->variable && run_varies)
            return bad_template(
                t, r->gap, "the ranges on both sides need a separator or padding with zeros", err);
        r->tail = run;
        run_varies = run_varies || r->variable;
        run += r->variable ? 0 : r->width;
    }
    return 0;
}

static int parse_text(struct name_template *t, struct error *err)
{
    size_t len = strlen(t->text);
    for (size_t i = 0; i < sizeof notations / sizeof notations[0]; i++) {
        const struct notation *n = &notations[i];
        const char *mark = strchr(t->text, n->mark);
        if (mark == NULL)
            continue;
        t->kind = n->kind;
        t->prefix = xstrndup(t->text, (size_t)(mark - t->text));
        int rc = take_ranges(t, n, err);
        if (rc == 0)
            rc = count_names(t, err);
        return rc != 0 ? rc : find_tails(t, err);
    }
    t->prefix = xstrndup(t->text, len > 0 && t->text[len - 1] == '*' ? len - 1 : len);
    return 0;
}

int template_parse(const char *text, struct name_template **out, struct error *err)
{
    if (strnlen(text, TEMPLATE_TEXT_MAX + 1) > TEMPLATE_TEXT_MAX)
        return error_set(err, E_SPEC, "the template is longer than %d bytes", TEMPLATE_TEXT_MAX);
    _cleanup_(template_freep)
    struct name_template *t = xcalloc(1, sizeof *t);
    t->text = xstrdup(text);
    int rc = parse_text(t, err);
    if (rc == 0)
        *out = steal(t);
    return rc;
}

struct name_template *template_literal(const char *name)
{
    struct name_template *t = xcalloc(1, sizeof *t);
    *t = (struct name_template){
        .kind = TEMPLATE_BASH, .text = xstrdup(name), .prefix = xstrdup(name), .count = 1};
    return t;
}

void template_free(struct name_template *t)
{
    if (t == NULL)
        return;
    free(t->prefix);
    free(t->text);
    free(t);
}

enum template_kind template_kind(const struct name_template *t)
{
    return t->kind;
}

uint64_t template_count(const struct name_template *t)
{
    return t->count;
}

const char *template_prefix(const struct name_template *t)
{
    return t->prefix;
}

const char *template_text(const struct name_template *t)
{
    return t->text;
}

/* Names */

void template_name(const struct name_template *t, uint64_t i, struct buf *out)
{
    uint64_t turns[TEMPLATE_RANGES_MAX];
    assert(i < t->count);
    for (size_t k = t->ranges_count; k-- > 0;) {
        turns[k] = i % t->ranges[k].count;
        i /= t->ranges[k].count;
    }
    buf_puts(out, t->prefix);
    for (size_t k = 0; k < t->ranges_count; k++) {
        const struct range *r = &t->ranges[k];
        buf_printf(out, "%0*llu", (int)r->width,
                   (unsigned long long)(r->first + turns[k] * r->step));
        buf_append(out, r->gap, r->gap_len);
    }
}

/* How many of the digits at `at` are the range's number; 0 where it cannot be one. */
static size_t number_length(const struct range *r, const char *at)
{
    size_t digits = strspn(at, "0123456789");
    if (!r->variable)
        return digits >= r->width ? r->width : 0;
    if (digits <= r->tail || digits - r->tail < r->width)
        return 0;
    size_t len = digits - r->tail;
    return len > r->width && len > 1 && at[0] == '0' ? 0 : len;
}

/* The turn of the range whose number stands at *at, which moves behind the gap; UINT64_MAX where
 * it has none. */
static uint64_t range_turn(const struct range *r, const char **at)
{
    size_t len = number_length(r, *at);
    uint64_t value = 0;
    for (size_t i = 0; i < len; i++) {
        uint64_t digit = (uint64_t)((*at)[i] - '0');
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, digit, &value))
            return UINT64_MAX;
    }
    const char *gap = *at + len;
    if (len == 0 || value < r->first || strncmp(gap, r->gap, r->gap_len) != 0)
        return UINT64_MAX;
    *at = gap + r->gap_len;
    uint64_t turn = (value - r->first) / r->step;
    return turn < r->count && (value - r->first) % r->step == 0 ? turn : UINT64_MAX;
}

uint64_t template_index(const struct name_template *t, const char *name)
{
    size_t prefix_len = strlen(t->prefix);
    if (t->kind == TEMPLATE_PREFIX || strncmp(name, t->prefix, prefix_len) != 0)
        return UINT64_MAX;
    const char *at = name + prefix_len;
    uint64_t index = 0;
    for (size_t k = 0; k < t->ranges_count; k++) {
        uint64_t turn = range_turn(&t->ranges[k], &at);
        if (turn == UINT64_MAX)
            return UINT64_MAX;
        index = index * t->ranges[k].count + turn;
    }
    return *at == '\0' ? index : UINT64_MAX;
}

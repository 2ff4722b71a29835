/* The compiler goes through a pattern once and writes steps; what a quantifier needs in front of
 * what it repeats is made by moving that up by one step.  {m,n} copies its steps.  Jumps are
 * relative, so that pieces can be moved and copied as they are. */
#include "sort/spec/pattern_parts.h"

#include <string.h>

#include "common/mem.h"

#define DEPTH_MAX 50 /* of groups */
#define NOWHERE SIZE_MAX

struct parser {
    struct patterns *set;
    const unsigned char *text;
    size_t len, at;
    unsigned depth;
    struct error *err;
};

static int refuse(const struct parser *p, const char *why)
{
    return error_set(p->err, E_SPEC, "byte %zu of the pattern: %s", p->at + 1, why);
}

static bool more(const struct parser *p)
{
    return p->at < p->len;
}

static bool next_is(const struct parser *p, char c)
{
    return more(p) && p->text[p->at] == (unsigned char)c;
}

static bool accept(struct parser *p, char c)
{
    bool yes = next_is(p, c);
    p->at += yes;
    return yes;
}

static int room_for(struct parser *p, size_t steps)
{
    struct patterns *set = p->set;
    if (set->step_count + steps > PATTERNS_STEPS_MAX)
        return error_set(p->err, E_TOO_LARGE, "the patterns are too large together");
    if (set->step_count + steps > set->step_room) {
        set->step_room = 2 * (set->step_count + steps);
        set->steps = xrealloc(set->steps, set->step_room * sizeof *set->steps);
    }
    return 0;
}

static int put(struct parser *p, struct step step)
{
    int rc = room_for(p, 1);
    if (rc == 0)
        p->set->steps[p->set->step_count++] = step;
    return rc;
}

/* In front of what has been written from `at` on. */
static int put_before(struct parser *p, size_t at, struct step step)
{
    int rc = room_for(p, 1);
    if (rc != 0)
        return rc;
    struct step *steps = p->set->steps;
    memmove(steps + at + 1, steps + at, (p->set->step_count - at) * sizeof *steps);
    steps[at] = step;
    p->set->step_count++;
    return 0;
}

static void class_add(struct class *c, unsigned from, unsigned to)
{
    for (unsigned i = from; i <= to; i++)
        c->bits[i / 64] |= UINT64_C(1) << (i % 64);
}

static void class_invert(struct class *c)
{
    for (int i = 0; i < 4; i++)
        c->bits[i] = ~c->bits[i];
}

static void class_join(struct class *c, const struct class *more_bits)
{
    for (int i = 0; i < 4; i++)
        c->bits[i] |= more_bits->bits[i];
}

static int put_class(struct parser *p, const struct class *c)
{
    struct patterns *set = p->set;
    if (set->class_count == set->class_room) {
        set->class_room = 2 * set->class_room + 16;
        set->classes = xrealloc(set->classes, set->class_room * sizeof *set->classes);
    }
    set->classes[set->class_count] = *c;
    return put(p, (struct step){.kind = STEP_CLASS, .value = (uint32_t)set->class_count++});
}

/* \d and its like; false for a letter that is none of them. */
static bool named_class(unsigned char letter, struct class *c)
{
    *c = (struct class){{0}};
    switch (letter | 0x20) {
    case 'd':
        class_add(c, '0', '9');
        break;
    case 'w':
        class_add(c, '0', '9');
        class_add(c, 'A', 'Z');
        class_add(c, 'a', 'z');
        class_add(c, '_', '_');
        break;
    case 's':
        class_add(c, '\t', '\r');
        class_add(c, ' ', ' ');
        break;
    default:
        return false;
    }
    if ((letter & 0x20) == 0)
        class_invert(c);
    return true;
}

/* What follows a backslash: a class, or the one byte that it is. */
static int parse_escape(struct parser *p, struct class *c, int *byte)
{
    if (!more(p))
        return refuse(p, "a backslash with nothing behind it");
    unsigned char letter = p->text[p->at];
    *byte = -1;
    if (named_class(letter, c)) {
        p->at++;
        return 0;
    }
    bool word = (letter >= '0' && letter <= '9') ||
                ((letter | 0x20) >= 'a' && (letter | 0x20) <= 'z') || letter >= 0x80;
    if (word)
        return refuse(p, "an escape that is not known here");
    *byte = letter;
    p->at++;
    return 0;
}

/* One end of a range in brackets. */
static int parse_class_byte(struct parser *p, struct class *c, int *byte)
{
    if (!more(p))
        return refuse(p, "brackets without an end");
    if (accept(p, '\\'))
        return parse_escape(p, c, byte);
    if (next_is(p, '[') && p->at + 1 < p->len && strchr(":.=", p->text[p->at + 1]) != NULL)
        return refuse(p, "a named class in brackets");
    *byte = p->text[p->at++];
    return 0;
}

static int parse_class_item(struct parser *p, struct class *c)
{
    struct class named = {{0}};
    int from = -1;
    int to = -1;
    int rc = parse_class_byte(p, &named, &from);
    if (rc != 0)
        return rc;
    if (from < 0) {
        class_join(c, &named);
        return next_is(p, '-') && p->at + 1 < p->len && p->text[p->at + 1] != ']'
                   ? refuse(p, "a range that begins with a class")
                   : 0;
    }
    to = from;
    if (next_is(p, '-') && p->at + 1 < p->len && p->text[p->at + 1] != ']') {
        p->at++;
        rc = parse_class_byte(p, &named, &to);
    }
    if (rc == 0 && to < from)
        rc = refuse(p, "a range that ends before it begins");
    if (rc == 0)
        class_add(c, (unsigned)from, (unsigned)to);
    return rc;
}

static int parse_class(struct parser *p)
{
    struct class c = {{0}};
    bool inverted = accept(p, '^');
    int rc;
    do
        rc = parse_class_item(p, &c); /* the first may be a ']' */
    while (rc == 0 && !accept(p, ']'));
    if (rc != 0)
        return rc;
    if (inverted)
        class_invert(&c);
    return put_class(p, &c);
}

static int parse_alternatives(struct parser *p);

static int parse_group(struct parser *p)
{
    if (accept(p, '?') && !accept(p, ':'))
        return refuse(p, "only groups (…) and (?:…) are supported; no look-ahead, no flags");
    if (++p->depth > DEPTH_MAX)
        return refuse(p, "groups nested too deep");
    int rc = parse_alternatives(p);
    p->depth--;
    if (rc == 0 && !accept(p, ')'))
        rc = refuse(p, "a group without an end");
    return rc;
}

static int put_dot(struct parser *p)
{
    struct class c = {{0}};
    class_add(&c, '\n', '\n');
    class_invert(&c);
    return put_class(p, &c);
}

static int put_escape(struct parser *p)
{
    struct class c = {{0}};
    int byte = -1;
    int rc = parse_escape(p, &c, &byte);
    if (rc != 0)
        return rc;
    return byte < 0 ? put_class(p, &c)
                    : put(p, (struct step){.kind = STEP_BYTE, .value = (uint32_t)byte});
}

/* *anchor: what can be repeated no more. */
static int parse_one(struct parser *p, bool *anchor)
{
    unsigned char c = p->text[p->at];
    *anchor = c == '^' || c == '$';
    if (strchr("*+?{}", c) != NULL && c != '\0')
        return refuse(p, "a repetition of nothing; '\\' before it makes it a plain one");
    p->at++;
    switch (c) {
    case '^':
        return put(p, (struct step){.kind = STEP_BEGIN});
    case '$':
        return put(p, (struct step){.kind = STEP_END});
    case '(':
        return parse_group(p);
    case '[':
        return parse_class(p);
    case '.':
        return put_dot(p);
    case '\\':
        return put_escape(p);
    default:
        return put(p, (struct step){.kind = STEP_BYTE, .value = c});
    }
}

static int parse_number(struct parser *p, unsigned *out)
{
    unsigned n = 0;
    size_t first = p->at;
    for (; more(p) && p->text[p->at] >= '0' && p->text[p->at] <= '9'; p->at++) {
        n = n * 10 + (p->text[p->at] - '0');
        if (n > PATTERN_REPEATS_MAX)
            return refuse(p, "too many repetitions");
    }
    if (p->at == first)
        return refuse(p, "a number of repetitions was expected");
    *out = n;
    return 0;
}

#define WITHOUT_END UINT32_MAX

/* "2}", "2,}", "2,5}": behind the brace. */
static int parse_braces(struct parser *p, unsigned *least, unsigned *most)
{
    int rc = parse_number(p, least);
    *most = *least;
    if (rc == 0 && accept(p, ',')) {
        *most = WITHOUT_END;
        if (!next_is(p, '}'))
            rc = parse_number(p, most);
    }
    if (rc == 0 && !accept(p, '}'))
        rc = refuse(p, "'}' was expected");
    if (rc == 0 && *most < *least)
        rc = refuse(p, "fewer repetitions at most than at least");
    return rc;
}

/* `len` steps once more at the end. */
static int put_copy(struct parser *p, const struct step *piece, size_t len)
{
    int rc = room_for(p, len);
    if (rc != 0 || len == 0)
        return rc;
    memcpy(p->set->steps + p->set->step_count, piece, len * sizeof *piece);
    p->set->step_count += len;
    return 0;
}

/* x? is split, x; x* is split, x, back to the split. */
static int put_optional(struct parser *p, const struct step *piece, size_t len, bool again)
{
    int32_t over = (int32_t)len + 1 + again;
    int rc = put(p, (struct step){.kind = STEP_SPLIT, .to = over});
    if (rc == 0)
        rc = put_copy(p, piece, len);
    if (rc == 0 && again)
        rc = put(p, (struct step){.kind = STEP_JUMP, .to = -(int32_t)len - 1});
    return rc;
}

/* x+ is x and a split that leads back to it: with a copy pluses in pluses would double each time.
 */
static int put_again(struct parser *p, const struct step *piece, size_t len, unsigned least)
{
    return least == 0 ? put_optional(p, piece, len, true)
                      : put(p, (struct step){.kind = STEP_SPLIT, .to = -(int32_t)len});
}

/* What {m,n} write, be it kept or not: they make much of a few bytes, and what a pattern that is
 * refused in the end has written, or one that is repeated no times, is counted nowhere else. */
static int count_copies(struct parser *p, size_t len, unsigned copies)
{
    p->set->copied += (uint64_t)len * copies;
    return p->set->copied <= PATTERNS_COPIES_MAX
               ? 0
               : error_set(p->err, E_TOO_LARGE, "the patterns' repetitions are too large together");
}

static int repeat(struct parser *p, size_t begin, unsigned least, unsigned most)
{
    size_t len = p->set->step_count - begin;
    _cleanup_free_ struct step *piece = xcalloc(len + 1, sizeof *piece);
    if (len > 0)
        memcpy(piece, p->set->steps + begin, len * sizeof *piece);
    p->set->step_count = begin;
    unsigned copies = most == WITHOUT_END ? least : most;
    int rc = copies > 1 ? count_copies(p, len, copies) : 0;
    for (unsigned i = 0; rc == 0 && i < least; i++)
        rc = put_copy(p, piece, len);
    if (most == WITHOUT_END)
        return rc != 0 ? rc : put_again(p, piece, len, least);
    for (unsigned i = least; rc == 0 && i < most; i++)
        rc = put_optional(p, piece, len, false);
    return rc;
}

static int parse_quantifier(struct parser *p, size_t begin, bool anchor)
{
    unsigned least = 0;
    unsigned most = WITHOUT_END;
    size_t at = p->at;
    int rc = 0;
    if (accept(p, '+'))
        least = 1;
    else if (accept(p, '?'))
        most = 1;
    else if (accept(p, '{'))
        rc = parse_braces(p, &least, &most);
    else if (!accept(p, '*'))
        return 0;
    if (rc == 0 && anchor) {
        p->at = at;
        return refuse(p, "an anchor cannot be repeated");
    }
    accept(p, '?'); /* as few as possible: the same, for whether there is a match */
    if (rc == 0 && more(p) && strchr("*+?{", p->text[p->at]) != NULL)
        return refuse(p, "a repetition of a repetition");
    return rc != 0 ? rc : repeat(p, begin, least, most);
}

static int parse_sequence(struct parser *p)
{
    int rc = 0;
    while (rc == 0 && more(p) && !next_is(p, '|') && !next_is(p, ')')) {
        size_t begin = p->set->step_count;
        bool anchor = false;
        rc = parse_one(p, &anchor);
        if (rc == 0)
            rc = parse_quantifier(p, begin, anchor);
    }
    return rc;
}

/* Jumps of alternatives lead behind the last of them.  Until that is there each has its distance
 * from the one before it. */
static int put_jump(struct parser *p, size_t *last)
{
    size_t at = p->set->step_count;
    int32_t back = *last != NOWHERE ? (int32_t)(at - *last) : 0;
    *last = at;
    return put(p, (struct step){.kind = STEP_JUMP, .to = back});
}

static void aim_jumps(struct parser *p, size_t last)
{
    while (last != NOWHERE) {
        struct step *jump = &p->set->steps[last];
        size_t before = jump->to != 0 ? last - (size_t)jump->to : NOWHERE;
        jump->to = (int32_t)(p->set->step_count - last);
        last = before;
    }
}

/* a|b|c is split, a, jump, split, b, jump, c. */
static int parse_alternatives(struct parser *p)
{
    size_t begin = p->set->step_count;
    size_t jump = NOWHERE;
    int rc = parse_sequence(p);
    while (rc == 0 && accept(p, '|')) {
        int32_t len = (int32_t)(p->set->step_count - begin);
        rc = put_before(p, begin, (struct step){.kind = STEP_SPLIT, .to = len + 2});
        if (rc == 0)
            rc = put_jump(p, &jump);
        begin = p->set->step_count;
        if (rc == 0)
            rc = parse_sequence(p);
    }
    if (rc == 0)
        aim_jumps(p, jump);
    return rc;
}

int pattern_compile(struct patterns *set, const char *text, size_t len, uint32_t value,
                    struct error *err)
{
    struct parser p = {.set = set, .text = (const unsigned char *)text, .len = len, .err = err};
    int rc = parse_alternatives(&p);
    if (rc == 0 && more(&p))
        rc = refuse(&p, "a ')' without its '('");
    return rc != 0 ? rc : put(&p, (struct step){.kind = STEP_MATCH, .value = value});
}

/* The compiler goes through a pattern once and writes steps; what a quantifier needs in front of
 * what it repeats is made by moving that up by one step.  {m,n} copies its steps.  Jumps are
 * relative, so that pieces can be moved and copied as they are. */
#include "sort/pattern.h"

#include <assert.h>
#include <string.h>

#include "common/mem.h"

#define DEPTH_MAX 50 /* of groups */

enum step_kind { STEP_BYTE, STEP_CLASS, STEP_SPLIT, STEP_JUMP, STEP_BEGIN, STEP_END, STEP_MATCH };

struct step {
    enum step_kind kind;
    int32_t to;     /* split (the other way is the next step), jump: relative */
    uint32_t value; /* byte, number of a class, of a match */
};

struct class
{
    uint64_t bits[4];
};

struct patterns {
    struct step *steps;
    size_t step_count, step_room;
    struct class *classes;
    size_t class_count, class_room;
    uint32_t *begins; /* first step of each pattern */
    size_t count;
};

bool pattern_is(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (text[i] != '\0' && strchr("\\^$*+?()[]{}|", text[i]) != NULL)
            return true;
    }
    return false;
}

struct patterns *patterns_new(void)
{
    return xcalloc(1, sizeof(struct patterns));
}

void patterns_free(struct patterns *p)
{
    if (p == NULL)
        return;
    free(p->steps);
    free(p->classes);
    free(p->begins);
    free(p);
}

size_t patterns_count(const struct patterns *p)
{
    return p->count;
}

size_t patterns_bytes(const struct patterns *p)
{
    return sizeof *p + p->step_room * sizeof *p->steps + p->class_room * sizeof *p->classes +
           p->count * sizeof *p->begins;
}

/* --- compiling -------------------------------------------------------------------------------- */

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

static bool class_has(const struct class *c, unsigned char byte)
{
    return (c->bits[byte / 64] >> (byte % 64) & 1) != 0;
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
        return refuse(p, "a kind of group that is not known here");
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

/* The steps from `from` on, `len` of them, once more at the end. */
static int put_copy(struct parser *p, const struct step *piece, size_t len)
{
    int rc = room_for(p, len);
    if (rc != 0)
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

static int repeat(struct parser *p, size_t begin, unsigned least, unsigned most)
{
    size_t len = p->set->step_count - begin;
    _cleanup_free_ struct step *piece = xcalloc(len + 1, sizeof *piece);
    if (len > 0)
        memcpy(piece, p->set->steps + begin, len * sizeof *piece);
    p->set->step_count = begin;
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < least; i++)
        rc = put_copy(p, piece, len);
    if (most == WITHOUT_END)
        return rc != 0 ? rc : put_optional(p, piece, len, true);
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

/* a|b is split, a, jump, b: each further alternative wraps what there is so far. */
static int parse_alternatives(struct parser *p)
{
    size_t begin = p->set->step_count;
    int rc = parse_sequence(p);
    while (rc == 0 && accept(p, '|')) {
        int32_t len = (int32_t)(p->set->step_count - begin);
        rc = put_before(p, begin, (struct step){.kind = STEP_SPLIT, .to = len + 2});
        size_t jump = p->set->step_count;
        if (rc == 0)
            rc = put(p, (struct step){.kind = STEP_JUMP});
        if (rc == 0)
            rc = parse_sequence(p);
        if (rc == 0)
            p->set->steps[jump].to = (int32_t)(p->set->step_count - jump);
    }
    return rc;
}

static int compile(struct parser *p, uint32_t value)
{
    int rc = parse_alternatives(p);
    if (rc == 0 && more(p))
        rc = refuse(p, "a ')' without its '('");
    return rc != 0 ? rc : put(p, (struct step){.kind = STEP_MATCH, .value = value});
}

int patterns_add(struct patterns *set, const char *text, size_t len, uint32_t value,
                 struct error *err)
{
    struct parser p = {.set = set, .text = (const unsigned char *)text, .len = len, .err = err};
    size_t steps = set->step_count;
    size_t classes = set->class_count;
    if (set->count == PATTERNS_MAX)
        return error_set(err, E_TOO_LARGE, "there are more than %d patterns", PATTERNS_MAX);
    if (len > PATTERN_BYTES_MAX)
        return error_set(err, E_SPEC, "a pattern of more than %d bytes", PATTERN_BYTES_MAX);
    int rc = compile(&p, value);
    if (rc != 0) {
        set->step_count = steps;
        set->class_count = classes;
        return rc;
    }
    set->begins = xrealloc(set->begins, (set->count + 1) * sizeof *set->begins);
    set->begins[set->count++] = (uint32_t)steps;
    return 0;
}

/* --- searching -------------------------------------------------------------------------------- */

/* Steps that the automaton stands at: a set that is emptied at no cost. */
struct front {
    uint32_t *dense;
    uint32_t count;
    uint32_t *sparse;
};

struct pattern_search {
    const struct patterns *set;
    struct front now, next;
    uint32_t *stack;
    uint32_t found[2];
};

static void front_init(struct front *f, size_t steps)
{
    f->dense = xcalloc(steps, sizeof *f->dense);
    f->sparse = xcalloc(steps, sizeof *f->sparse);
}

struct pattern_search *pattern_search_new(const struct patterns *p)
{
    if (p->count == 0)
        return NULL;
    struct pattern_search *s = xcalloc(1, sizeof *s);
    s->set = p;
    front_init(&s->now, p->step_count);
    front_init(&s->next, p->step_count);
    s->stack = xcalloc(2 * p->step_count + 1, sizeof *s->stack);
    return s;
}

void pattern_search_free(struct pattern_search *s)
{
    if (s == NULL)
        return;
    free(s->now.dense);
    free(s->now.sparse);
    free(s->next.dense);
    free(s->next.sparse);
    free(s->stack);
    free(s);
}

static bool front_add(struct front *f, uint32_t step)
{
    uint32_t i = f->sparse[step];
    if (i < f->count && f->dense[i] == step)
        return false;
    f->sparse[step] = f->count;
    f->dense[f->count++] = step;
    return true;
}

static void note_match(struct pattern_search *s, uint32_t value)
{
    if (s->found[0] == PATTERN_NONE)
        s->found[0] = value;
    else if (s->found[0] != value)
        s->found[1] = value;
}

/* The step, and all that can be reached from it without a byte. */
static void enter(struct pattern_search *s, struct front *f, uint32_t first, bool begin, bool end)
{
    size_t depth = 0;
    s->stack[depth++] = first;
    while (depth > 0) {
        uint32_t at = s->stack[--depth];
        const struct step *step = &s->set->steps[at];
        if (!front_add(f, at))
            continue;
        uint32_t target = (uint32_t)((int64_t)at + step->to);
        if (step->kind == STEP_MATCH)
            note_match(s, step->value);
        else if (step->kind == STEP_JUMP)
            s->stack[depth++] = target;
        else if (step->kind == STEP_SPLIT)
            s->stack[depth++] = target;
        if (step->kind == STEP_SPLIT || (step->kind == STEP_BEGIN && begin) ||
            (step->kind == STEP_END && end))
            s->stack[depth++] = at + 1;
    }
}

static bool takes(const struct patterns *set, const struct step *step, unsigned char byte)
{
    return step->kind == STEP_BYTE
               ? step->value == byte
               : step->kind == STEP_CLASS && class_has(&set->classes[step->value], byte);
}

static void swap_fronts(struct pattern_search *s)
{
    struct front f = s->now;
    s->now = s->next;
    s->next = f;
    s->next.count = 0;
}

void pattern_find(struct pattern_search *s, const char *name, size_t len, uint32_t found[2])
{
    s->found[0] = s->found[1] = PATTERN_NONE;
    s->now.count = s->next.count = 0;
    for (size_t i = 0; i <= len && s->found[1] == PATTERN_NONE; i++) {
        for (size_t k = 0; k < s->set->count; k++)
            enter(s, &s->now, s->set->begins[k], i == 0, i == len);
        for (uint32_t k = 0; i < len && k < s->now.count; k++) {
            uint32_t at = s->now.dense[k];
            if (takes(s->set, &s->set->steps[at], (unsigned char)name[i]))
                enter(s, &s->next, at + 1, false, i + 1 == len);
        }
        swap_fronts(s);
    }
    found[0] = s->found[0];
    found[1] = s->found[1];
}

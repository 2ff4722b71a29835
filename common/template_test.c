#include "common/template.h"

#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>

#include "common/rng.h"

static struct name_template *parsed(const char *text)
{
    struct name_template *t = NULL;
    struct error err = ERROR_INIT;
    if (template_parse(text, &t, &err) != 0)
        fail_msg("%s", err.message);
    return t;
}

static const char *name_of(const struct name_template *t, uint64_t i, struct buf *b)
{
    buf_clear(b);
    template_name(t, i, b);
    return buf_str(b);
}

/* Text, kind, number of names, and the first, second and last of them. */
static const struct {
    const char *text;
    enum template_kind kind;
    uint64_t count;
    const char *first;
    const char *second;
    const char *last;
} good[] = {
    {"shard-{00000..00999}.tar", TEMPLATE_BASH, 1000, "shard-00000.tar", "shard-00001.tar",
     "shard-00999.tar"},
    {"{1..2}", TEMPLATE_BASH, 2, "1", "2", "2"},
    {"{1..02}", TEMPLATE_BASH, 2, "1", "2", "2"},
    {"{01..2}", TEMPLATE_BASH, 2, "1", "2", "2"},
    {"{08..100}", TEMPLATE_BASH, 93, "08", "09", "100"},
    {"{0..100}", TEMPLATE_BASH, 101, "0", "1", "100"},
    {"{1..02}}", TEMPLATE_BASH, 2, "1}", "2}", "2}"},
    {"p-{0010..0111..2}-s", TEMPLATE_BASH, 51, "p-0010-s", "p-0012-s", "p-0110-s"},
    {"p-{0010..0013..2}-gap-{1..2}-s", TEMPLATE_BASH, 4, "p-0010-gap-1-s", "p-0010-gap-2-s",
     "p-0012-gap-2-s"},
    {"p-{0010..0013..2}-gap-{1..2..3}-s", TEMPLATE_BASH, 2, "p-0010-gap-1-s", "p-0012-gap-1-s",
     "p-0012-gap-1-s"},
    {"s-{0..100..2}-@5%d", TEMPLATE_BASH, 51, "s-0-@5%d", "s-2-@5%d", "s-100-@5%d"},
    {"{00..11}{0..11}", TEMPLATE_BASH, 144, "000", "001", "1111"},
    {"{0..11}1{00..11}2", TEMPLATE_BASH, 144, "01002", "01012", "111112"},
    {"{5..5}", TEMPLATE_BASH, 1, "5", NULL, "5"},
    {"{9223372036854775806..9223372036854775807}", TEMPLATE_BASH, 2, "9223372036854775806",
     "9223372036854775807", "9223372036854775807"},
    {"shard-@1000.tar", TEMPLATE_AT, 1001, "shard-0000.tar", "shard-0001.tar", "shard-1000.tar"},
    {"pref@9", TEMPLATE_AT, 10, "pref0", "pref1", "pref9"},
    {"@0010", TEMPLATE_AT, 11, "0000", "0001", "0010"},
    {"pref@1-gap-@002-%d", TEMPLATE_AT, 6, "pref0-gap-000-%d", "pref0-gap-001-%d",
     "pref1-gap-002-%d"},
    {"@0", TEMPLATE_AT, 1, "0", NULL, "0"},
    {"out-%06d.tar", TEMPLATE_FMT, UINT64_MAX, "out-000000.tar", "out-000001.tar",
     "out-18446744073709551614.tar"},
    {"%d", TEMPLATE_FMT, UINT64_MAX, "0", "1", "18446744073709551614"},
    {"a%00d", TEMPLATE_FMT, UINT64_MAX, "a0", "a1", "a18446744073709551614"},
    {"%024d", TEMPLATE_FMT, UINT64_MAX, "000000000000000000000000", "000000000000000000000001",
     "000018446744073709551614"},
};

static void good_templates(void **state)
{
    (void)state;
    _cleanup_(buf_done)
    struct buf b = BUF_INIT;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        _cleanup_(template_freep)
        struct name_template *t = parsed(good[i].text);
        assert_int_equal(template_kind(t), good[i].kind);
        assert_true(template_count(t) == good[i].count);
        assert_string_equal(template_text(t), good[i].text);
        assert_string_equal(name_of(t, 0, &b), good[i].first);
        if (good[i].second != NULL)
            assert_string_equal(name_of(t, 1, &b), good[i].second);
        assert_string_equal(name_of(t, good[i].count - 1, &b), good[i].last);
        assert_true(template_index(t, good[i].last) == good[i].count - 1);
    }
}

static void a_literal_is_its_only_name(void **state)
{
    (void)state;
    static const char *const names[] = {"all.tar", "a{0..9}.tar", "a%d*", "@1"};
    _cleanup_(buf_done)
    struct buf b = BUF_INIT;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        _cleanup_(template_freep)
        struct name_template *t = template_literal(names[i]);
        assert_int_equal(template_count(t), 1);
        assert_string_equal(name_of(t, 0, &b), names[i]);
        assert_int_equal(template_index(t, names[i]), 0);
        assert_true(template_index(t, "a1.tar") == UINT64_MAX);
    }
}

static void prefixes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *prefix;
    } rows[] = {
        {"", ""},
        {"*", ""},
        {"train/", "train/"},
        {"train/shard-*", "train/shard-"},
        {"a*b", "a*b"},
        {"lone}brace", "lone}brace"},
        {"a-{0..9}", "a-"},
        {"a-@9", "a-"},
        {"a-%d", "a-"},
        {"{0..9}", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        _cleanup_(template_freep)
        struct name_template *t = parsed(rows[i].text);
        assert_string_equal(template_prefix(t), rows[i].prefix);
        assert_string_equal(template_text(t), rows[i].text);
        if (template_kind(t) == TEMPLATE_PREFIX) {
            assert_int_equal(template_count(t), 0);
            assert_true(template_index(t, rows[i].text) == UINT64_MAX);
        }
    }
}

static void bad_templates(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t byte;
        const char *why;
    } rows[] = {
        {"p-{001..009-s", 11, "'}' is expected here"},
        {"p-{002..001}-s", 3, "the first number is greater than the second"},
        {"p-{-001..009}-s", 3, "a number is expected here"},
        {"p-{001..009..-1}-s", 13, "a number is expected here"},
        {"p-{001..009..0}-s", 3, "the step is 0"},
        {"p-{0010..0111..2s}-s", 16, "'}' is expected here"},
        {"p-{0010..0111s..2}-s", 13, "'}' is expected here"},
        {"p-{0010s..0111..2}-s", 7, "'..' is expected here"},
        {"p-{00..10..0111..2}-s", 15, "'}' is expected here"},
        {"p-{010..}-s", 8, "a number is expected here"},
        {"p-{..009}-s", 3, "a number is expected here"},
        {"p-{}-s", 3, "a number is expected here"},
        {"{", 1, "a number is expected here"},
        {"{{1..2}}", 1, "a number is expected here"},
        {"{1..2{3..4}}", 5, "'}' is expected here"},
        {"{a..z}", 1, "a number is expected here"},
        {"{1.2}", 2, "'..' is expected here"},
        {"{0..9223372036854775808}", 4, "the number is too large"},
        {"{0..9}{0..9223372036854775807}", 0, "it makes too many names"},
        {"{0..4294967295}-{0..4294967295}", 0, "it makes too many names"},
        {"{0..11}{0..11}", 7, "the ranges on both sides need a separator or padding with zeros"},
        {"{0..11}1{00..11}2{0..11}x", 7,
         "the ranges on both sides need a separator or padding with zeros"},
        {"@1@1@1@1@1@1@1@1@1@1@1@1@1@1@1@1@1", 32, "too many ranges"},
        {"p-@-0001-s", 3, "a number is expected here"},
        {"p-@@0010-s", 3, "a number is expected here"},
        {"p-@d@0010-s", 3, "a number is expected here"},
        {"@", 1, "a number is expected here"},
        {"p-%06-s", 3, "'d' or a width such as '06d' is expected here"},
        {"p-%0-6d-s", 4, "a number is expected here"},
        {"p-%0d-s", 4, "a number is expected here"},
        {"p-%6d-s", 3, "'d' or a width such as '06d' is expected here"},
        {"p-%06d-%", 7, "a template has at most one '%'"},
        {"p-%%06d-s", 3, "'d' or a width such as '06d' is expected here"},
        {"p-%06d-%06d", 7, "a template has at most one '%'"},
        {"p-%0256d", 3, "the width is too large"},
        {"%", 1, "'d' or a width such as '06d' is expected here"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct name_template *t = NULL;
        struct error err = ERROR_INIT;
        char want[512];
        snprintf(want, sizeof want, "template '%s', byte %zu: %s", rows[i].text, rows[i].byte,
                 rows[i].why);
        assert_int_equal(template_parse(rows[i].text, &t, &err), E_SPEC);
        assert_string_equal(err.message, want);
        assert_null(t);
    }
}

static void long_texts_are_refused(void **state)
{
    (void)state;
    static char text[TEMPLATE_TEXT_MAX + 2];
    struct name_template *t = NULL;
    memset(text, 'a', TEMPLATE_TEXT_MAX + 1);
    assert_int_equal(template_parse(text, &t, NULL), E_SPEC);
    text[TEMPLATE_TEXT_MAX] = '\0';
    assert_int_equal(template_parse(text, &t, NULL), 0);
    template_free(t);
    memset(text, '0', 300);
    text[0] = '@';
    assert_int_equal(template_parse(text, &t, NULL), E_SPEC);
    template_free(NULL);
}

static void other_names_have_no_index(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *name;
    } rows[] = {
        {"s-{000..100}.tar", "s-101.tar"},
        {"s-{000..100}.tar", "s-1.tar"},
        {"s-{000..100}.tar", "s-0001.tar"},
        {"s-{000..100}.tar", "s-001.ta"},
        {"s-{000..100}.tar", "s-001.tarx"},
        {"s-{000..100}.tar", "s-.tar"},
        {"s-{000..100}.tar", "x-001.tar"},
        {"s-{000..100}.tar", "s-001"},
        {"s-{000..100}.tar", ""},
        {"s-{000..100}.tar", "s-0x1.tar"},
        {"{0..100}", "01"},
        {"{0..100}", "00"},
        {"{0..100}", "101"},
        {"{0..100}", ""},
        {"{0..100}", "-1"},
        {"{0..100}", "18446744073709551616"},
        {"{0..100}", "99999999999999999999999"},
        {"{10..20..3}", "11"},
        {"{10..20..3}", "20"},
        {"{10..20..3}", "09"},
        {"{1..2}-{1..2}", "1-"},
        {"{1..2}-{1..2}", "1-3"},
        {"{1..2}-{1..2}", "1-2-"},
        {"{00..11}{0..11}", "00"},
        {"{00..11}{0..11}", "0001"},
        {"{00..11}{0..11}", "0012"},
        {"{00..11}{0..11}", "00111"},
        {"{0..11}1{00..11}2", "11111112"},
        {"%06d", "00000"},
        {"%06d", "0000000"},
        {"%06d", "0123456"},
        {"%d", "18446744073709551615"},
        {"%d", "00"},
        {"%d", "1 "},
        {"@10", "11"},
        {"@10", "1"},
        {"@10", "010"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        _cleanup_(template_freep)
        struct name_template *t = parsed(rows[i].text);
        uint64_t index = template_index(t, rows[i].name);
        if (index != UINT64_MAX)
            fail_msg("'%s' makes '%s' at %llu", rows[i].text, rows[i].name,
                     (unsigned long long)index);
    }
}

/* Random templates */

static void put_random_gap(struct rng *r, struct buf *out)
{
    static const char alphabet[] = "0123456789-.xy/";
    for (uint64_t n = rng_below(r, 4); n > 0; n--)
        buf_putc(out, alphabet[rng_below(r, sizeof alphabet - 1)]);
}

static void put_random_number(struct rng *r, struct buf *out, uint64_t value)
{
    buf_printf(out, "%0*llu", (int)rng_below(r, 5), (unsigned long long)value);
}

static void put_random_range(struct rng *r, struct buf *out, enum template_kind kind)
{
    uint64_t scale = 1;
    for (uint64_t n = rng_below(r, 8); n > 0; n--)
        scale *= 10;
    uint64_t first = rng_below(r, scale);
    if (kind == TEMPLATE_AT) {
        buf_putc(out, '@');
        put_random_number(r, out, first);
        return;
    }
    buf_putc(out, '{');
    put_random_number(r, out, first);
    buf_puts(out, "..");
    put_random_number(r, out, first + rng_below(r, scale));
    if (rng_below(r, 2))
        buf_printf(out, "..%llu", (unsigned long long)(1 + rng_below(r, scale)));
    buf_putc(out, '}');
}

static void put_random_template(struct rng *r, struct buf *out)
{
    enum template_kind kind = (enum template_kind)(TEMPLATE_BASH + rng_below(r, 3));
    put_random_gap(r, out);
    if (kind == TEMPLATE_FMT) {
        buf_printf(out, "%%0%dd", (int)rng_below(r, 30));
        put_random_gap(r, out);
        return;
    }
    for (uint64_t n = 1 + rng_below(r, 3); n > 0; n--) {
        put_random_range(r, out, kind);
        put_random_gap(r, out);
    }
}

/* An index, most often near an end, where mistakes live. */
static uint64_t random_index(struct rng *r, uint64_t count)
{
    uint64_t near = rng_below(r, count < 200 ? count : 200);
    switch (rng_below(r, 3)) {
    case 0:
        return near;
    case 1:
        return count - 1 - near;
    default:
        return rng_below(r, count);
    }
}

/* A name with one byte changed, left out or doubled either is not made, or is made at the index
 * that the inverse says. */
static void check_changed_name(struct rng *r, const struct name_template *t, const char *name)
{
    _cleanup_(buf_done)
    struct buf changed = BUF_INIT;
    _cleanup_(buf_done)
    struct buf again = BUF_INIT;
    size_t at = rng_below(r, strlen(name) + 1);
    buf_append(&changed, name, at);
    buf_putc(&changed, (char)('0' + rng_below(r, 10)));
    const char *rest = name + at;
    size_t skip = rng_below(r, 3);
    buf_puts(&changed, rest + (skip < strlen(rest) ? skip : strlen(rest)));
    uint64_t index = template_index(t, buf_str(&changed));
    if (index == UINT64_MAX)
        return;
    assert_true(index < template_count(t));
    assert_string_equal(name_of(t, index, &again), buf_str(&changed));
}

static void check_round_trips(struct rng *r, const struct name_template *t)
{
    _cleanup_(buf_done)
    struct buf name = BUF_INIT;
    for (int i = 0; i < 40; i++) {
        uint64_t index = random_index(r, template_count(t));
        uint64_t back = template_index(t, name_of(t, index, &name));
        if (back != index)
            fail_msg("'%s': %llu gives '%s', which gives %llu", template_text(t),
                     (unsigned long long)index, buf_str(&name), (unsigned long long)back);
        check_changed_name(r, t, buf_str(&name));
    }
}

static void the_index_of_a_name_is_its_index(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, 2026);
    int taken = 0;
    for (int round = 0; round < 4000; round++) {
        _cleanup_(buf_done)
        struct buf text = BUF_INIT;
        put_random_template(&r, &text);
        struct name_template *t = NULL;
        if (template_parse(buf_str(&text), &t, NULL) != 0)
            continue;
        taken++;
        check_round_trips(&r, t);
        template_free(t);
    }
    assert_in_range(taken, 2500, 4000);
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Every template that is taken makes distinct names: all of them, by sorting. */
static void names_are_unique(void **state)
{
    (void)state;
    enum { MOST = 3000 };
    struct rng r;
    rng_seed(&r, 7);
    for (int round = 0; round < 600; round++) {
        _cleanup_(buf_done)
        struct buf text = BUF_INIT;
        struct name_template *t = NULL;
        put_random_template(&r, &text);
        if (template_parse(buf_str(&text), &t, NULL) != 0)
            continue;
        static char *names[MOST];
        uint64_t count = template_count(t) < MOST ? template_count(t) : 0;
        for (uint64_t i = 0; i < count; i++) {
            struct buf name = BUF_INIT;
            template_name(t, i, &name);
            names[i] = buf_steal(&name);
        }
        qsort(names, count, sizeof names[0], compare_texts);
        for (uint64_t i = 1; i < count; i++)
            assert_string_not_equal(names[i - 1], names[i]);
        for (uint64_t i = 0; i < count; i++)
            free(names[i]);
        template_free(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_templates),
        cmocka_unit_test(a_literal_is_its_only_name),
        cmocka_unit_test(prefixes),
        cmocka_unit_test(bad_templates),
        cmocka_unit_test(long_texts_are_refused),
        cmocka_unit_test(other_names_have_no_index),
        cmocka_unit_test(the_index_of_a_name_is_its_index),
        cmocka_unit_test(names_are_unique),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

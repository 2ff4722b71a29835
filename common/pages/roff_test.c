#include "common/pages/roff.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "common/cleanup.h"

static void nothing_in_a_text_is_a_request(void **state)
{
    (void)state;
    const struct {
        const char *text;
        const char *written;
    } rows[] = {
        {"", "\n"},
        {"plain", "plain\n"},
        {".so /etc/passwd", "\\&.so /etc/passwd\n"},
        {"a\n'b", "a\n\\&'b\n"},
        {"a.b 'c'", "a.b 'c'\n"},
        {"--flag C:\\x", "\\-\\-flag C:\\ex\n"},
        {"\xc3\xa9t\xc3\xa9", "\xc3\xa9t\xc3\xa9\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        _cleanup_(buf_done)
        struct buf out = BUF_INIT;
        roff_text(&out, rows[i].text);
        assert_string_equal(buf_str(&out), rows[i].written);
    }
}

static void a_page(void **state)
{
    (void)state;
    _cleanup_(buf_done)
    struct buf out = BUF_INIT;
    roff_head(&out, "dfc-x", 8, "does nothing");
    roff_subpart(&out, "a \"b\" c");
    roff_item(&out, "--x Y");
    roff_text(&out, "text");
    roff_paragraph(&out, "more");
    roff_verbatim(&out, "$ x\n.y");
    assert_string_equal(buf_str(&out), ".TH DFC-X 8 \"\" \"dfc " DFC_VERSION "\" \"dfc\"\n"
                                       ".ad l\n.SH \"NAME\"\ndfc\\-x \\- does nothing\n"
                                       ".SS \"a \\(dqb\\(dq c\"\n"
                                       ".TP\n.B \"\\-\\-x Y\"\ntext\n"
                                       ".PP\nmore\n"
                                       ".PP\n.RS 4\n.nf\n$ x\n\\&.y\n.fi\n.RE\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_in_a_text_is_a_request),
        cmocka_unit_test(a_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

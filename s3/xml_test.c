#include "s3/xml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "s3/xml_write.h"

/* "in.name=text;" of each leaf, "/name;" of each end of an element of the second level. */
static void note_leaf(void *ctx, const char *in, const char *name, const char *text)
{
    buf_printf(ctx, "%s.%s=%s;", in, name, text);
}

static void note_leave(void *ctx, const char *name)
{
    buf_printf(ctx, "/%s;", name);
}

static bool read_as(const char *body, unsigned depth, bool is_strict, struct buf *notes)
{
    const struct xml_reader r = {.root = "R",
                                 .depth = depth,
                                 .leaf = note_leaf,
                                 .leave = note_leave,
                                 .ctx = notes,
                                 .is_strict = is_strict};
    buf_clear(notes);
    return xml_read(&r, body, strlen(body));
}

static void leaves_come_with_the_element_around_them(void **unused)
{
    (void)unused;
    _cleanup_buf_ struct buf notes = BUF_INIT;
    assert_true(read_as("<R><a>1</a><b><c>2</c><d>&lt;3</d></b></R>", 3, false, &notes));
    assert_string_equal(buf_str(&notes), "R.a=1;/a;b.c=2;b.d=<3;/b;");
}

static void a_tolerant_reader_passes_over_what_is_too_deep(void **unused)
{
    (void)unused;
    _cleanup_buf_ struct buf notes = BUF_INIT;
    assert_true(read_as("<R><b><c>2<d>3</d></c></b></R>", 3, false, &notes));
    assert_string_equal(buf_str(&notes), "/b;");
}

static void a_strict_reader_refuses_it(void **unused)
{
    (void)unused;
    _cleanup_buf_ struct buf notes = BUF_INIT;
    assert_false(read_as("<R><b><c><d>3</d></c></b></R>", 3, true, &notes));
    assert_true(read_as("<R><b><c><d>3</d></c></b></R>", 4, true, &notes));
}

static void a_strict_reader_refuses_a_long_text(void **unused)
{
    (void)unused;
    _cleanup_buf_ struct buf notes = BUF_INIT, body = BUF_INIT;
    buf_puts(&body, "<R><a>");
    for (int i = 0; i <= XML_TEXT_MAX; i++)
        buf_putc(&body, 'x');
    buf_puts(&body, "</a></R>");
    assert_true(read_as(buf_str(&body), 3, false, &notes));
    assert_string_equal(buf_str(&notes), "/a;");
    assert_false(read_as(buf_str(&body), 3, true, &notes));
}

static void other_roots_types_and_torn_documents_are_refused(void **unused)
{
    (void)unused;
    static const char *const bad[] = {
        "",
        "<S><a>1</a></S>",
        "<R><a>1</a>",
        "<R>",
        "<!DOCTYPE R [<!ENTITY e \"x\">]><R><a>1</a></R>",
    };
    _cleanup_buf_ struct buf notes = BUF_INIT;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(read_as(bad[i], 3, true, &notes));
}

static void what_is_written_is_escaped(void **unused)
{
    (void)unused;
    _cleanup_buf_ struct buf out = BUF_INIT;
    xml_put_root(&out, "R", XML_S3_NAMESPACE);
    xml_put_element(&out, "a", "<x> & \"y\"\x01\r");
    xml_put_number(&out, "n", UINT64_MAX);
    xml_put_bool(&out, "b", true);
    xml_put_close(&out, "R");
    assert_string_equal(buf_str(&out), "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                                       "<R xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
                                       "<a>&lt;x&gt; &amp; &quot;y&quot;&#x1;&#xd;</a>"
                                       "<n>18446744073709551615</n><b>true</b></R>");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leaves_come_with_the_element_around_them),
        cmocka_unit_test(a_tolerant_reader_passes_over_what_is_too_deep),
        cmocka_unit_test(a_strict_reader_refuses_it),
        cmocka_unit_test(a_strict_reader_refuses_a_long_text),
        cmocka_unit_test(other_roots_types_and_torn_documents_are_refused),
        cmocka_unit_test(what_is_written_is_escaped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

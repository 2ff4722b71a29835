#include "mount/bucket/names.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void expect(const char *prefix, const char *key, enum name_kind kind, const char *text)
{
    struct name_part part = name_in(prefix, key);
    assert_int_equal(part.kind, kind);
    if (text == NULL)
        return;
    assert_int_equal(part.len, strlen(text));
    assert_memory_equal(part.text, text, part.len);
}

static void keys_are_split_at_slashes(void **state)
{
    (void)state;
    expect("", "a", NAME_FILE, "a");
    expect("", "a/b/c", NAME_DIRECTORY, "a");
    expect("a/", "a/b/c", NAME_DIRECTORY, "b");
    expect("a/b/", "a/b/c", NAME_FILE, "c");
    expect("a/", "a/", NAME_ITSELF, NULL);
    expect("", "a/", NAME_DIRECTORY, "a");
    expect("", "größe/ö", NAME_DIRECTORY, "größe");
    expect("", "...", NAME_FILE, "...");
    expect("", ".a", NAME_FILE, ".a");
    expect("", "..a", NAME_FILE, "..a");
}

static void some_components_are_hidden(void **state)
{
    (void)state;
    char longest[NAME_MAX_BYTES + 2];
    memset(longest, 'x', sizeof longest);
    longest[NAME_MAX_BYTES + 1] = '\0';
    expect("", longest, NAME_HIDDEN, NULL);
    longest[NAME_MAX_BYTES] = '\0';
    expect("", longest, NAME_FILE, longest);
    expect("", "/a", NAME_HIDDEN, NULL);
    expect("a/", "a//b", NAME_HIDDEN, NULL);
    expect("", ".", NAME_HIDDEN, NULL);
    expect("", "..", NAME_HIDDEN, NULL);
    expect("", "./a", NAME_HIDDEN, NULL);
    expect("a/", "a/../b", NAME_HIDDEN, NULL);
    expect("a/", "b", NAME_HIDDEN, NULL); /* not below the prefix */
}

static void names_of_objects_have_limits(void **state)
{
    (void)state;
    char key[NAME_KEY_MAX + 2];
    memset(key, 'x', sizeof key);
    key[NAME_KEY_MAX] = '\0';
    assert_int_equal(name_check_key(key), 0);
    key[NAME_KEY_MAX] = 'x';
    key[NAME_KEY_MAX + 1] = '\0';
    assert_int_equal(name_check_key(key), -ENAMETOOLONG);
    assert_int_equal(name_check_key("gr\xc3\xb6\xc3\x9f"
                                    "e"),
                     0);
    assert_int_equal(name_check_key("\xff"), -EILSEQ);
}

static void expect_url(const char *url, const char *bucket, const char *prefix)
{
    char *b = NULL, *p = NULL;
    assert_true(name_parse_url(url, &b, &p));
    assert_string_equal(b, bucket);
    assert_string_equal(p, prefix);
    free(b);
    free(p);
}

static void urls_have_a_bucket_and_a_prefix(void **state)
{
    (void)state;
    char *b, *p;
    expect_url("dfc://photos", "photos", "");
    expect_url("dfc://photos/", "photos", "");
    expect_url("dfc://photos/train", "photos", "train/");
    expect_url("dfc://photos/train/a/", "photos", "train/a/");
    assert_false(name_parse_url("photos", &b, &p));
    assert_false(name_parse_url("dfc://", &b, &p));
    assert_false(name_parse_url("dfc:///a", &b, &p));
    assert_false(name_parse_url("s3://photos", &b, &p));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_split_at_slashes),
        cmocka_unit_test(some_components_are_hidden),
        cmocka_unit_test(names_of_objects_have_limits),
        cmocka_unit_test(urls_have_a_bucket_and_a_prefix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

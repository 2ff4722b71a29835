#include "api/ctl/args.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static int parse(struct args *a, struct error *err, const char *const *words)
{
    int argc = 0;
    while (words[argc] != NULL)
        argc++;
    return args_parse(a, argc, (char *const *)words, err);
}

#define PARSE(...) parse(&a, &err, (const char *const[]){"dfcctl", __VA_ARGS__, NULL})

static void commands_and_words(void **state)
{
    (void)state;
    struct args a;
    struct error err;
    assert_int_equal(PARSE("object", "put", "x", "b/k"), 0);
    assert_string_equal(a.command->verb, "put");
    assert_int_equal(a.word_count, 2);
    assert_string_equal(a.words[1], "b/k");
    assert_null(a.words[2]);
    args_done(&a);
    assert_int_equal(PARSE("put", "x", "b/k"), 0);
    assert_ptr_equal(a.command, command_find("object", "put"));
    args_done(&a);
    assert_int_equal(PARSE("version"), 0);
    assert_string_equal(a.command->noun, "version");
    args_done(&a);
    assert_int_equal(PARSE("job"), 0);
    assert_null(a.command);
    assert_string_equal(a.noun, "job");
    args_done(&a);
    assert_int_equal(parse(&a, &err, (const char *const[]){"dfcctl", NULL}), 0);
    assert_true(a.command == NULL && a.noun == NULL);
    args_done(&a);
}

/* -o is the format, or what a command writes. */
static void the_two_meanings_of_o(void **state)
{
    (void)state;
    struct args a;
    struct error err;
    assert_int_equal(PARSE("vdisc", "export", "b/i.vdsc", "-o", "x.iso", "-ojson"), 0);
    assert_string_equal(a.text[F_to], "x.iso");
    assert_string_equal(a.text[F_output], "json");
    args_done(&a);
    assert_int_equal(PARSE("vdisc", "export", "b/i.vdsc", "--to", "json"), 0);
    assert_string_equal(a.text[F_to], "json");
    assert_false(a.given[F_output]);
    args_done(&a);
    assert_int_equal(PARSE("ls", "-oxml", "b"), E_INVALID);
    assert_non_null(strstr(err.message, "'xml' is none of table|json"));
    args_done(&a);
    assert_int_equal(PARSE("ls", "b", "-o"), E_INVALID);
    assert_non_null(strstr(err.message, "needs a value"));
    args_done(&a);
}

static void flags_in_every_form(void **state)
{
    (void)state;
    struct args a;
    struct error err;
    assert_int_equal(PARSE("-qj4", "--output", "json", "get", "-r", "--offset=1KiB", "--length",
                           "7", "b/k", "--if-match="),
                     0);
    assert_true(a.given[F_quiet] && a.given[F_recursive]);
    assert_int_equal(a.number[F_parallel], 4);
    assert_string_equal(a.text[F_output], "json");
    assert_int_equal(a.number[F_offset], 1024);
    assert_int_equal(a.number[F_length], 7);
    assert_string_equal(a.text[F_if_match], "");
    args_done(&a);
    assert_int_equal(PARSE("ls", "--watch", "--", "-b"), 0);
    assert_int_equal(a.number[F_watch], 2000);
    assert_string_equal(a.words[0], "-b");
    args_done(&a);
    assert_int_equal(PARSE("ls", "-w", "b"), 0); /* "b" is no value of -w */
    assert_int_equal(a.word_count, 1);
    args_done(&a);
    assert_int_equal(PARSE("ls", "-w0.5", "b"), 0);
    assert_int_equal(a.number[F_watch], 500);
    args_done(&a);
    assert_int_equal(PARSE("put", "-", "b/k", "-m", "a=1", "-mb=2", "--meta=c=3"), 0);
    assert_int_equal(a.list_count[F_meta], 3);
    assert_string_equal(a.list[F_meta][2], "c=3");
    assert_string_equal(a.words[0], "-");
    args_done(&a);
    assert_int_equal(PARSE("job", "wait", "j", "--timeout", "5m"), 0);
    assert_int_equal(a.number[F_timeout], 300000);
    args_done(&a);
}

static void mistakes_are_named(void **state)
{
    (void)state;
    struct args a;
    struct error err;
#define REFUSED(words, ...)                              \
    do {                                                 \
        assert_int_equal(PARSE(__VA_ARGS__), E_INVALID); \
        assert_string_equal(err.message, words);         \
        args_done(&a);                                   \
    } while (0)
    REFUSED("there is no command 'objet'; did you mean 'object'?", "objet");
    REFUSED("there is no command 'quux'; try 'dfcctl help'", "quux");
    REFUSED("there is no command 'mb'; it is 'bucket create' here", "mb", "photos");
    REFUSED("there is no command 'stat'; it is 'object head' here", "stat", "photos/a");
    REFUSED("there is no command 'download'; it is 'object get' here", "download", "b/o");
    REFUSED("there is no command 'health'; it is 'cluster health' here", "health");
    REFUSED("there is no command 'status'; it is 'cluster status' or 'ring status' or 'sort "
            "status' here",
            "status");
    REFUSED("there is no command 'head'; it is 'object head' here", "head", "photos/a");
    REFUSED("there is no 'job sho'; did you mean 'job show'?", "job", "sho");
    REFUSED("there is no 'bucket delete'; it is 'bucket rm' here", "bucket", "delete", "b");
    REFUSED("there is no 'bucket list'; it is 'bucket ls' here", "bucket", "list");
    REFUSED("there is no 'node frobnicate'; there are ls, show, logs, maintenance, ok-to-stop, "
            "decommission, rm",
            "node", "frobnicate");
    REFUSED("there is no flag --prefx; did you mean --prefix?", "ls", "--prefx=a");
    REFUSED("there is no flag --frobnicate", "ls", "--frobnicate");
    REFUSED("there is no flag -X", "ls", "-X");
    REFUSED("'object ls' does not take --copies", "ls", "--copies=2");
    REFUSED("--limit needs a value: N", "ls", "--limit");
    REFUSED("--quiet takes no value", "ls", "--quiet=yes");
    REFUSED("--output: 'xml' is none of table|json", "ls", "-oxml");
    REFUSED("--output: 'tab' is none of table|json", "ls", "-o", "tab");
    REFUSED("'bucket create' needs: BUCKET", "bucket", "create");
    REFUSED("'version': 'x' is one word too many; it takes: nothing", "version", "x");
    REFUSED("--watch: '0' is not a number of seconds (0.1 to 86400)", "ls", "--watch=0");
    assert_int_equal(PARSE("bucket", "create", "--help"), 0); /* help forgives */
    args_done(&a);
}

/* The table itself: what every reader of it relies on. */
static void the_table_is_sound(void **state)
{
    (void)state;
    for (const struct command *c = commands; c->noun != NULL; c++) {
        assert_non_null(c->run);
        assert_non_null(c->summary);
        assert_true(c->min_words <= c->max_words);
        assert_true(noun_exists(c->noun) || c->noun[0] == '_');
        assert_ptr_equal(command_find(c->noun, c->verb), c);
        assert_true(c->alias == NULL || !noun_exists(c->alias));
        for (const enum flag_id *id = c->flags; *id != F_END; id++) {
            for (const enum flag_id *common = common_flags; *common != F_END; common++)
                assert_int_not_equal(*id, *common);
        }
        for (size_t i = 0; c->examples[i] != NULL; i++)
            assert_true(
                strncmp(c->examples[i], c->noun, strlen(c->noun)) == 0 ||
                (c->alias != NULL && strncmp(c->examples[i], c->alias, strlen(c->alias)) == 0));
    }
    for (size_t i = 0; i < F_COUNT_; i++) {
        const struct flag *f = &flag_table[i];
        assert_ptr_equal(flag_find(f->name, strlen(f->name)), f);
        assert_true(f->letter == '\0' || flag_find_letter(f->letter) == f);
        assert_true((f->type == FLAG_choice) == (f->choices[0] != '\0'));
        assert_true(f->type == FLAG_bool || f->arg[0] != '\0');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commands_and_words),    cmocka_unit_test(flags_in_every_form),
        cmocka_unit_test(the_two_meanings_of_o), cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(the_table_is_sound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

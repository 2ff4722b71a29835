/* sort-harness: SortDataset over plain directories, with any number of targets in one process.
 *
 *     sort-harness --targets N --spec FILE --in DIR --out DIR
 *                  [--memory SIZE] [--threads N] [--salt N] [--status FILE]
 *
 * Exit 0, or 1 with "code: message" on stderr and nothing left in the output directory; 2 for a
 * wrong command line.  A shuffle without a seed uses seed 0. */
#include <getopt.h>

#include "common/buf.h"
#include "common/jsonx.h"
#include "common/parse.h"
#include "io/descriptors.h"
#include "io/file.h"
#include "sort/rows/arrangement.h"
#include "sort/testing/sim.h"

#define SPEC_BYTES_MAX (16 * 1024 * 1024)

struct options {
    uint64_t targets, memory, threads, salt;
    const char *spec, *in, *out, *status;
};

static int usage(void)
{
    fputs("usage: sort-harness --targets N --spec FILE --in DIR --out DIR [--memory SIZE] "
          "[--threads N] [--salt N] [--status FILE]\n",
          stderr);
    return 2;
}

static int parse_option(struct options *o, int name, const char *text, struct error *err)
{
    switch (name) {
    case 'n':
        return parse_u64(text, &o->targets, err);
    case 'm':
        return parse_size(text, &o->memory, err);
    case 't':
        return parse_u64(text, &o->threads, err);
    case 'a':
        return parse_u64(text, &o->salt, err);
    case 's':
        o->spec = text;
        return 0;
    case 'i':
        o->in = text;
        return 0;
    case 'o':
        o->out = text;
        return 0;
    case 'r':
        o->status = text;
        return 0;
    default:
        return error_set(err, E_INVALID, "unknown option");
    }
}

static int parse_command(struct options *o, int argc, char **argv)
{
    static const struct option names[] = {
        {"targets", required_argument, NULL, 'n'},
        {"spec", required_argument, NULL, 's'},
        {"in", required_argument, NULL, 'i'},
        {"out", required_argument, NULL, 'o'},
        {"memory", required_argument, NULL, 'm'},
        {"threads", required_argument, NULL, 't'},
        {"salt", required_argument, NULL, 'a'},
        {"status", required_argument, NULL, 'r'},
        {NULL, 0, NULL, 0},
    };
    for (int name; (name = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        struct error err = ERROR_INIT;
        if (parse_option(o, name, optarg, &err) != 0) {
            fprintf(stderr, "%s\n", err.message);
            return -1;
        }
    }
    bool whole = o->spec != NULL && o->in != NULL && o->out != NULL && optind == argc;
    return whole && o->targets >= 1 && o->targets <= ARRANGEMENT_MAX ? 0 : -1;
}

static int read_spec(const char *path, struct sort_spec **spec, struct error *err)
{
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    _cleanup_json_ json_t *doc = NULL;
    int rc = file_read_all(path, SPEC_BYTES_MAX, &text, err);
    if (rc == 0)
        rc = json_parse(buf_str(&text), text.len, &doc, err);
    return rc != 0 ? rc : sort_spec_parse(doc, spec, err);
}

static int write_status(const char *path, const struct sim *s, struct error *err)
{
    if (path == NULL)
        return 0;
    _cleanup_json_ json_t *status = sim_status(s);
    _cleanup_free_ char *text = json_text(status);
    return file_replace(path, text, strlen(text), 0644, err);
}

static int run(const struct options *o, struct error *err)
{
    _cleanup_(sort_spec_freep)
    struct sort_spec *spec = NULL;
    int rc = read_spec(o->spec, &spec, err);
    if (rc != 0)
        return rc;
    struct sim_config config = {
        .targets = (unsigned)o->targets,
        .spec = spec,
        .in_dir = o->in,
        .out_dir = o->out,
        .memory_bytes = o->memory,
        .threads = (unsigned)o->threads,
        .salt = o->salt,
    };
    _cleanup_(sim_freep)
    struct sim *s = sim_new(&config);
    rc = sim_run(s, err);
    return rc != 0 ? rc : write_status(o->status, s, err);
}

int main(int argc, char **argv)
{
    struct options o = {.memory = 128 * 1024 * 1024, .threads = 4};
    if (parse_command(&o, argc, argv) != 0)
        return usage();
    descriptors_raise();
    struct error err = ERROR_INIT;
    if (run(&o, &err) == 0)
        return 0;
    fprintf(stderr, "%s: %s\n", error_name(err.code), err.message);
    return 1;
}

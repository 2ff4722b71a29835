/* Any text is a pattern or is refused, and any name matches or not, as a simpler search finds; an
 * expression ends within its bounds.  The input: a mode, the pattern, a NUL, the name. */
#include "target/archive/member_match.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const modes[] = {"prefix", "suffix", "substr", "wdskey", "regexp"};
enum { MODES = sizeof modes / sizeof *modes };

static bool is_at(const char *name, size_t len, size_t at, const char *text, size_t text_len)
{
    for (size_t i = 0; i < text_len; i++) {
        if (at + i >= len || name[at + i] != text[i])
            return false;
    }
    return true;
}

static bool is_within(const char *name, size_t len, const char *text, size_t text_len)
{
    for (size_t at = 0; at + text_len <= len; at++) {
        if (is_at(name, len, at, text, text_len))
            return true;
    }
    return false;
}

static size_t key_length(const char *name, size_t len)
{
    size_t key = len;
    for (size_t i = len; i > 0 && name[i - 1] != '/'; i--)
        key = name[i - 1] == '.' ? i - 1 : key;
    return key;
}

static bool wanted(unsigned mode, const char *name, size_t len, const char *text, size_t text_len)
{
    switch (mode) {
    case 0:
        return is_at(name, len, 0, text, text_len);
    case 1:
        return text_len <= len && is_at(name, len, len - text_len, text, text_len);
    case 2:
        return is_within(name, len, text, text_len);
    default:
        return key_length(name, len) == text_len && is_at(name, len, 0, text, text_len);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_(member_match_freep)
    struct member_match *m = NULL;
    struct error err = ERROR_INIT;
    const uint8_t *nul = size > 1 ? memchr(data + 1, 0, size - 1) : NULL;
    if (nul == NULL)
        return 0;
    const unsigned mode = data[0] % MODES;
    const char *text = (const char *)data + 1, *name = (const char *)nul + 1;
    const size_t len = size - (size_t)(nul + 1 - data);
    if (member_match_new(modes[mode], text, &m, &err) != 0) {
        assert(err.code == E_INVALID && err.message[0] != '\0');
        return 0;
    }
    const int found = member_match(m, name, len, &err);
    assert(found == 0 || found == 1 || (found == E_INVALID && mode == MODES - 1));
    assert(mode == MODES - 1 || found == wanted(mode, name, len, text, strlen(text)));
    return 0;
}

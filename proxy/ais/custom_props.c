#include "proxy/ais/custom_props.h"

#include <stdbool.h>
#include <string.h>

/* RFC 9110, section 5.6.2; '=' is none of them. */
static bool is_name(const char *text)
{
    static const char token[] = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    return text[0] != '\0' && text[strspn(text, token)] == '\0';
}

/* Blanks at its ends would be lost on the way. */
static bool is_value(const char *text, size_t len)
{
    if (strlen(text) != len || (len > 0 && (text[0] == ' ' || text[len - 1] == ' ')))
        return false;
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
            return false;
    }
    return true;
}

int custom_props_check(json_t *props, struct error *err)
{
    const char *name;
    json_t *value;
    if (!json_is_object(props))
        return error_set(err, E_INVALID, "field 'value' must be an object of texts");
    json_object_foreach(props, name, value)
    {
        if (!is_name(name))
            return error_set(err, E_INVALID,
                             "field 'value': '%.64s' can be no name of metadata: it must have "
                             "letters, digits or -_. alone",
                             name);
        if (!json_is_string(value) ||
            !is_value(json_string_value(value), json_string_length(value)))
            return error_set(err, E_INVALID,
                             "field 'value.%.64s' must be a text of one line, without blanks at "
                             "its ends",
                             name);
    }
    return 0;
}

// Selectors of labels and fields, in the syntax of Kubernetes.

#include "fake.h"

#include <string.h>

// Returns a part of a text without white space around it.
static const char *trimmed(const char *begin, const char *end) {
    while (begin < end && *begin == ' ') begin++;
    while (end > begin && end[-1] == ' ') end--;
    return oarlock_fake_format("%.*s", (int)(end - begin), begin);
}

// Returns the next of the texts that commas outside of parentheses separate, and goes behind it; NULL at the
// end.
static const char *next_part(const char **list) {
    if (!**list) return NULL;
    const char *begin = *list;
    int depth = 0;
    for (; **list && (depth || **list != ','); ++*list) depth += (**list == '(') - (**list == ')');
    const char *part = trimmed(begin, *list);
    if (**list) ++*list;
    return part;
}

// Returns the value of a label; NULL if the object has no such label.
static const char *label_of(const char *json, const char *name) {
    const char *value = NULL;
    oarlock_json_string(oarlock_json_member(oarlock_json_at(json, "/metadata/labels"), name), &value);
    return value;
}

static bool is_in(const char *value, const char *list) {
    for (const char *part; value && (part = next_part(&list));) {
        if (!strcmp(part, value)) return true;
    }
    return false;
}

// Splits `name=value`, `name==value` or `name!=value`. Returns false for other texts.
static bool is_equation(const char *text, const char **name, const char **value, bool *is_negated) {
    const char *sign = strchr(text, '=');
    if (!sign || sign == text) return false;
    *is_negated = sign[-1] == '!';
    *name = trimmed(text, sign - *is_negated);
    const char *right = sign + 1 + (sign[1] == '=');
    *value = trimmed(right, right + strlen(right));
    return true;
}

static bool matches_label(const char *json, const char *requirement) {
    const char *list = strchr(requirement, '(');
    const char *name;
    const char *value;
    bool is_negated;
    if (list) {
        size_t len = strcspn(requirement, " ");
        bool is_not = strstr(requirement + len, " notin") != NULL;
        const char *label = label_of(json, oarlock_fake_format("%.*s", (int)len, requirement));
        return is_in(label, trimmed(list + 1, list + strcspn(list, ")"))) != is_not;
    }
    if (is_equation(requirement, &name, &value, &is_negated)) {
        const char *label = label_of(json, name);
        return (label && !strcmp(label, value)) != is_negated;
    }
    is_negated = *requirement == '!';
    return (label_of(json, requirement + is_negated) != NULL) != is_negated;
}

bool oarlock_fake_matches_labels(const char *json, const char *selector) {
    for (const char *part; (part = next_part(&selector));) {
        if (*part && !matches_label(json, part)) return false;
    }
    return true;
}

static bool matches_field(const char *json, const char *requirement) {
    const char *path;
    const char *value;
    bool is_negated;
    if (!is_equation(requirement, &path, &value, &is_negated)) return false;
    text_t pointer = {0};
    for (oarlock_fake_write(&pointer, "/"); *path; path++) {
        oarlock_fake_write(&pointer, "%c", *path == '.' ? '/' : *path);
    }
    const char *json_value = oarlock_json_at(json, pointer.at);
    const char *text = json_value ? json_value : "";
    oarlock_json_string(json_value, &text);
    return !strcmp(text, value) != is_negated;
}

bool oarlock_fake_matches_fields(const char *json, const char *selector) {
    for (const char *part; (part = next_part(&selector));) {
        if (*part && !matches_field(json, part)) return false;
    }
    return true;
}

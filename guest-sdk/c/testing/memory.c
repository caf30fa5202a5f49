// The memory of the host in memory, and its texts.

#include "fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct block {
    struct block *next;
    _Alignas(max_align_t) unsigned char bytes[];
} block_t;

static block_t *blocks;

void *oarlock_fake_alloc(size_t size) {
    block_t *block = malloc(sizeof *block + size);
    if (!block) abort();
    block->next = blocks;
    blocks = block;
    return block->bytes;
}

void oarlock_fake_free(void) {
    while (blocks) {
        block_t *next = blocks->next;
        free(blocks);
        blocks = next;
    }
}

static void write_all(text_t *text, const char *format, va_list arguments) {
    va_list again;
    va_copy(again, arguments);
    size_t added = (size_t)vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (text->size - text->len <= added) {
        text->size = 2 * text->size + added + 1;
        char *grown = oarlock_fake_alloc(text->size);
        if (text->len) memcpy(grown, text->at, text->len);
        text->at = grown;
    }
    vsnprintf(text->at + text->len, added + 1, format, arguments);
    text->len += added;
}

void oarlock_fake_write(text_t *text, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    write_all(text, format, arguments);
    va_end(arguments);
}

const char *oarlock_fake_format(const char *format, ...) {
    text_t text = {0};
    va_list arguments;
    va_start(arguments, format);
    write_all(&text, format, arguments);
    va_end(arguments);
    return text.at;
}

const char *oarlock_fake_text(string_t string) {
    return oarlock_fake_format("%.*s", (int)string.len, string.len ? (const char *)string.ptr : "");
}

void oarlock_fake_append(entry_t **list, entry_t entry) {
    while (*list) list = &(*list)->next;
    *list = oarlock_fake_alloc(sizeof entry);
    **list = entry;
}

void oarlock_fake_misuse(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fflush(stdout);
    fputs("error: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

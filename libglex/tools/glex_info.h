/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * glex_info.h - the sections of glex_info.
 *
 * A section is made once, as a JSON object, and shown from that: as it is, or
 * by its printer.  So text and JSON cannot differ.
 */
#ifndef GLEX_INFO_H
#define GLEX_INFO_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* What was built, with what, for what. */
json_t *info_build(void);
void info_print_build(const json_t *section, FILE *out);

/* The configuration.  pattern: part of the names wanted, in any case; NULL: all.  NULL if it fits none. */
json_t *info_config(const char *pattern);
void info_print_config(const json_t *section, FILE *out);
void info_print_config_full(const json_t *section, FILE *out);

/* The device, its limits, its ports.  NULL, with a sentence on stderr, if it cannot be used. */
json_t *info_device(void);
void info_print_device(const json_t *section, FILE *out);

/* The text of a member; "" if there is none. */
const char *info_text(const json_t *object, const char *member);

/* json_object_set_new that ends the program when there is no memory. */
void info_set(json_t *object, const char *member, json_t *value);

#endif /* GLEX_INFO_H */

/* option_tables.c - defines the tables listed in option_tables.h. */
#include "base/option_tables.h"

#include <string.h>

#define WF__ROW(type, name, def, min, max, unit, help) \
  {#name, WF_OPTION_##type, offsetof(options_type, name), def, min, max, unit, help},
/* The typedef inside the function lets one row macro work for every structure. */
#define WF__DEFINE_TABLE(name, LIST)                                         \
  const wf_option_table *wf__##name##_table(void) {                          \
    typedef wf_##name##_options options_type;                                \
    static const wf_option rows[] = {LIST(WF__ROW)};                         \
    static const wf_option_table table = {#name, sizeof(options_type), rows, \
                                          sizeof rows / sizeof *rows};       \
    return &table;                                                           \
  }
WF__OPTION_TABLES(WF__DEFINE_TABLE)

const wf_option_table *wf_option_table_at(size_t i) {
#define WF__CASE(name, LIST) \
  if (i-- == 0) return wf__##name##_table();
  WF__OPTION_TABLES(WF__CASE)
  return NULL;
}

const wf_option_table *wf_option_table_find(const char *name) {
  const wf_option_table *table;
  for (size_t i = 0; (table = wf_option_table_at(i)) != NULL; i++)
    if (strcmp(table->name, name) == 0) return table;
  return NULL;
}

/* callers.c - a program that is compiled against headers of an older or newer version than the
 * library. change_header.py makes these headers; NEWER is defined if they are the newer ones.
 * Initializes and uses every structure that may grow, and checks that the library does not write
 * beyond the end of the caller's structure. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "structures.h"
#include "warpfst_all.h"

enum { GUARD = 256, MARK = 0x5a };

static int failures;

static void expect(int holds, const char *name, const char *what) {
  if (holds) return;
  printf("%s: %s\n", name, what);
  failures++;
}

static int is_intact(const unsigned char *guard) {
  for (int i = 0; i < GUARD; i++)
    if (guard[i] != MARK) return 0;
  return 1;
}

#define GUARDED(type)           \
  struct {                      \
    type value;                 \
    unsigned char guard[GUARD]; \
  } guarded;                    \
  memset(&guarded, MARK, sizeof guarded)

/* Initializes and checks a structure of options. A newer program also sets the field that this
 * library does not have: the library must refuse it. */
#define CHECK_TABLE(name)                                                                        \
  static void check_table_##name(void) {                                                         \
    GUARDED(wf_##name##_options);                                                                \
    const wf_option_table *table = wf_option_table_find(#name);                                  \
    wf_##name##_options_init(&guarded.value);                                                    \
    expect(is_intact(guarded.guard), #name, "init writes beyond the caller's structure");        \
    expect(guarded.value.struct_size == sizeof guarded.value, #name, "struct_size");             \
    expect(wf_options_check(table, &guarded.value, NULL) == WF_OK, #name, "check refuses");      \
    expect(is_intact(guarded.guard), #name, "check writes beyond the caller's structure");       \
    SET_LATER(guarded.value,                                                                     \
              expect(wf_options_check(table, &guarded.value, NULL) == WF_ERR_UNSUPPORTED, #name, \
                     "a field that the library does not know is ignored"));                      \
  }
#define CHECK_STRUCTURE(name)                                                             \
  static void check_structure_##name(void) {                                              \
    GUARDED(name);                                                                        \
    name##_init(&guarded.value);                                                          \
    expect(is_intact(guarded.guard), #name, "init writes beyond the caller's structure"); \
    expect(guarded.value.struct_size == sizeof guarded.value, #name, "struct_size");      \
  }
#ifdef NEWER
#define SET_LATER(value, then) \
  (value).later = 1;           \
  then
#else
#define SET_LATER(value, then)
#endif
FOR_EACH_TABLE(CHECK_TABLE)
FOR_EACH_STRUCTURE(CHECK_STRUCTURE)

/* Calls that read an options structure or fill an info structure. */
static void use_fst(void) {
  wf_error err = {WF_OK, ""};
  wf_builder *builder;
  wf_fst *fst = NULL, *out = NULL, *none = NULL;
  expect(wf_builder_create(WF_TROPICAL, &builder, &err) == WF_OK, "builder", err.message);
  wf_builder_add_states(builder, 2, NULL, &err);
  wf_builder_set_start(builder, 0, &err);
  wf_builder_set_final(builder, 1, 0, &err);
  wf_builder_add_arc(builder, 0, (wf_arc){1, 0.5f, 1, 2}, &err);
  expect(wf_builder_finish(builder, NULL, NULL, &fst, &err) == WF_OK, "builder", err.message);
  wf_builder_free(builder);
  {
    GUARDED(wf_fst_info);
    wf_fst_info_init(&guarded.value);
    expect(wf_fst_get_info(fst, &guarded.value, &err) == WF_OK, "wf_fst_get_info", err.message);
    expect(guarded.value.num_final == 1, "wf_fst_get_info", "num_final");
    expect(guarded.value.struct_size == sizeof guarded.value, "wf_fst_get_info", "struct_size");
    expect(is_intact(guarded.guard), "wf_fst_get_info", "writes beyond the caller's structure");
    SET_LATER(guarded.value,
              expect(wf_fst_get_info(fst, &guarded.value, &err) == WF_ERR_UNSUPPORTED,
                     "wf_fst_get_info", "a field that is not known is ignored"));
  }
  wf_arcsort_options options;
  wf_arcsort_options_init(&options);
  expect(wf_arcsort(fst, &options, &out, &err) == WF_OK, "wf_arcsort", err.message);
  SET_LATER(options, expect(wf_arcsort(fst, &options, &none, &err) == WF_ERR_UNSUPPORTED,
                            "wf_arcsort", "a field that is not known is ignored"));
  wf_fst_free(out);
  wf_fst_free(none);
  wf_fst_free(fst);
}

static void use_lm(const char *arpa) {
  wf_error err = {WF_OK, ""};
  wf_lm *lm = NULL;
  wf_arpa_options options;
  wf_arpa_options_init(&options);
  struct {
    wf_arpa_stats value;
    unsigned char guard[GUARD];
  } stats;
  memset(&stats, MARK, sizeof stats);
  wf_arpa_stats_init(&stats.value);
  expect(wf_lm_open(arpa, NULL, &options, &lm, &stats.value, NULL, &err) == WF_OK, "wf_lm_open",
         err.message);
  expect(is_intact(stats.guard), "wf_arpa_stats", "written beyond the caller's structure");
  GUARDED(wf_lm_info);
  wf_lm_info_init(&guarded.value);
  expect(wf_lm_get_info(lm, &guarded.value, &err) == WF_OK, "wf_lm_get_info", err.message);
  expect(guarded.value.order > 0, "wf_lm_get_info", "order");
  expect(is_intact(guarded.guard), "wf_lm_get_info", "writes beyond the caller's structure");
  wf_lm_free(lm);
}

int main(int argc, char **argv) {
  (void)argc;
#define CALL_TABLE(name) check_table_##name();
#define CALL_STRUCTURE(name) check_structure_##name();
  FOR_EACH_TABLE(CALL_TABLE)
  FOR_EACH_STRUCTURE(CALL_STRUCTURE)
  use_fst();
  use_lm(argv[1]);
  printf("%d failures\n", failures);
  return failures > 0;
}

/* cmd_info.c - `warpfst info`: describes an fst file as a table or as JSON. */
#include <inttypes.h>
#include <string.h>

#include "fst_output.h"

static const struct {
  uint32_t bit;
  const char *name, *json;
} properties[] = {
    {WF_PROP_ACCEPTOR, "acceptor", "acceptor"},
    {WF_PROP_ILABEL_SORTED, "input label sorted", "ilabel_sorted"},
    {WF_PROP_OLABEL_SORTED, "output label sorted", "olabel_sorted"},
    {WF_PROP_NO_IEPSILONS, "no input epsilons", "no_iepsilons"},
    {WF_PROP_NO_OEPSILONS, "no output epsilons", "no_oepsilons"},
    {WF_PROP_NO_EPSILONS, "no input/output epsilons", "no_epsilons"},
    {WF_PROP_IDETERMINISTIC, "input deterministic", "ideterministic"},
    {WF_PROP_ODETERMINISTIC, "output deterministic", "odeterministic"},
    {WF_PROP_ACYCLIC, "acyclic", "acyclic"},
    {WF_PROP_TOP_SORTED, "top sorted", "top_sorted"},
    {WF_PROP_ACCESSIBLE, "accessible", "accessible"},
    {WF_PROP_COACCESSIBLE, "coaccessible", "coaccessible"},
    {WF_PROP_UNWEIGHTED, "unweighted", "unweighted"},
    {WF_PROP_EPSILONS_LAST, "emitting arcs first", "epsilons_last"},
};
enum { NUM_PROPERTIES = sizeof properties / sizeof *properties };

static const char *file_type(wf_fst_format format) {
  switch (format) {
    case WF_FORMAT_NATIVE: return "native";
    case WF_FORMAT_OPENFST_VECTOR:
    case WF_FORMAT_OPENFST_VECTOR_LOG64: return "vector";
    case WF_FORMAT_OPENFST_CONST:
    case WF_FORMAT_OPENFST_CONST_LOG64: return "const";
    case WF_FORMAT_OPENFST_COMPACT: return "compact";
    case WF_FORMAT_OPENFST_EDIT: return "edit";
    case WF_FORMAT_OPENFST_NGRAM: return "ngram";
    case WF_FORMAT_OPENFST_LOOKAHEAD: return "lookahead";
  }
  return "unknown";
}

static const char *arc_type(wf_semiring semiring, wf_fst_format format) {
  if (format == WF_FORMAT_OPENFST_VECTOR_LOG64 || format == WF_FORMAT_OPENFST_CONST_LOG64)
    return "log64";
  return semiring == WF_LOG ? "log" : "standard";
}

/* A number of the report. They are printed in the order of fill_counts. */
struct count {
  const char *name, *json;
  int64_t value;
};
enum { NUM_COUNTS = 16 };

static void fill_counts(const wf_fst_view *view, const wf_fst_info *info, struct count *out) {
  const struct count counts[NUM_COUNTS] = {
      {"states", "states", (int64_t)view->num_states},
      {"arcs", "arcs", (int64_t)view->num_arcs},
      {"start state", "start", view->start},
      {"final states", "final_states", (int64_t)info->num_final},
      {"input/output epsilons", "epsilons", (int64_t)info->num_epsilons},
      {"input epsilons", "iepsilons", (int64_t)info->num_iepsilons},
      {"output epsilons", "oepsilons", (int64_t)info->num_oepsilons},
      {"largest input label", "max_ilabel", info->max_ilabel},
      {"largest output label", "max_olabel", info->max_olabel},
      {"most arcs of a state", "max_arcs", (int64_t)info->max_arcs},
      {"accessible states", "accessible_states", (int64_t)info->num_accessible},
      {"coaccessible states", "coaccessible_states", (int64_t)info->num_coaccessible},
      {"connected states", "connected_states", (int64_t)info->num_connected},
      {"connected components", "components", (int64_t)info->num_components},
      {"strongly connected components", "strong_components", (int64_t)info->num_sccs},
      {"bytes of the arrays", "bytes",
       (int64_t)(view->num_states * 12 + 8 + view->num_arcs * sizeof(wf_arc))},
  };
  memcpy(out, counts, sizeof counts);
}

/* Figures that are not whole numbers, and properties that wf_fst_get_properties does not compute.
 */
enum { NUM_MEANS = 2, NUM_FACTS = 4 };
static void fill_facts(const wf_fst_info *info, struct count *facts, double *means) {
  const struct count all[NUM_FACTS] = {
      {"cyclic at the start state", "cyclic_at_start", info->cyclic_at_start},
      {"string", "string", info->is_string},
      {"weighted cycles", "weighted_cycles", info->weighted_cycles},
      {"word aligner", "word_aligner", info->has_word_aligner},
  };
  memcpy(facts, all, sizeof all);
  means[0] = info->ilabel_multiplicity;
  means[1] = info->olabel_multiplicity;
}
static const char *const mean_names[NUM_MEANS][2] = {
    {"input label multiplicity", "ilabel_multiplicity"},
    {"output label multiplicity", "olabel_multiplicity"}};

/* --- token graphs ------------------------------------------------------------------------- */

/* The number of tokens of the input symbol table; 0: it is none of tokens. */
static int32_t num_tokens(const wf_symbols *table) {
  wf_symbols *labels = NULL;
  wf_error err;
  int32_t count = 0;
  if (table != NULL && wf_token_labels(table, 0, &labels, &count, &err) != WF_OK) count = 0;
  wf_symbols_free(labels);
  return count;
}

/* The next class of words, such as <contact> (label #<contact>) or $NAME (label #{$NAME}), from entry
 * *at of the table on; valid until the next call. NULL: none. */
static const char *next_class(const wf_symbols *table, size_t *at) {
  static char name[1024];
  const char *text;
  while (table != NULL && (text = wf_symbols_at(table, (*at)++, NULL)) != NULL) {
    const size_t size = strlen(text);
    if (size > 3 && strncmp(text, "#<", 2) == 0 && text[size - 1] == '>') return text + 1;
    if (size < 4 || strncmp(text, "#{", 2) != 0 || text[size - 1] != '}') continue;
    snprintf(name, sizeof name, "%.*s", (int)(size - 3), text + 2);
    return name;
  }
  return NULL;
}

static void print_ctc_table(const wf_fst *fst, const wf_fst_info *info) {
  const wf_symbols *table = wf_fst_isymbols(fst);
  const char *blank = table != NULL ? wf_symbols_text(table, info->ctc_blank) : NULL, *name;
  const int32_t tokens = num_tokens(table);
  size_t at = 0;
  if (info->ctc_blank == 0) return;
  printf("%-30scorrect, kept as its token graph\n", "CTC topology");
  if (tokens > 0) printf("%-30s%" PRId32 "\n", "tokens", tokens);
  printf("%-30s%s%slabel %" PRId32 "%s\n", "blank", blank != NULL ? blank : "",
         blank != NULL ? " (" : "", info->ctc_blank, blank != NULL ? ")" : "");
  for (size_t i = 0; (name = next_class(table, &at)) != NULL; i++)
    printf("%-30s%s\n", i == 0 ? "classes of words" : "", name);
  printf("%-30s", "the graph that reads frames");
  if (info->num_frame_states > 0)
    printf("%" PRIu64 " states, %" PRIu64 " arcs\n", info->num_frame_states, info->num_frame_arcs);
  else
    printf("in native files only\n");
}

static void print_ctc_json(const wf_fst *fst, const wf_fst_info *info) {
  const wf_symbols *table = wf_fst_isymbols(fst);
  const char *blank = table != NULL ? wf_symbols_text(table, info->ctc_blank) : NULL, *name;
  size_t at = 0;
  if (info->ctc_blank == 0) {
    printf(", \"ctc\": null");
    return;
  }
  printf(", \"ctc\": {\"topology\": \"correct\", \"tokens\": %" PRId32 ", \"blank\": ",
         num_tokens(table));
  if (blank != NULL)
    cli_json_string(stdout, blank);
  else
    printf("null");
  printf(", \"blank_label\": %" PRId32 ", \"classes\": [", info->ctc_blank);
  for (size_t i = 0; (name = next_class(table, &at)) != NULL; i++) {
    if (i > 0) printf(", ");
    cli_json_string(stdout, name);
  }
  printf("], \"frame_states\": %" PRIu64 ", \"frame_arcs\": %" PRIu64 "}", info->num_frame_states,
         info->num_frame_arcs);
}

/* --- the report --------------------------------------------------------------------------- */

static void print_table(const wf_fst *fst, wf_fst_format format, const struct count *counts,
                        const wf_fst_info *info, uint32_t found) {
  struct count facts[NUM_FACTS];
  double means[NUM_MEANS];
  fill_facts(info, facts, means);
  const wf_symbols *tables[2] = {wf_fst_isymbols(fst), wf_fst_osymbols(fst)};
  printf("%-30s%s\n%-30s%s\n", "file type", file_type(format), "arc type",
         arc_type(wf_fst_get_view(fst).semiring, format));
  for (int i = 0; i < 2; i++) {
    printf("%-30s", i == 0 ? "input symbol table" : "output symbol table");
    if (tables[i] == NULL)
      printf("none\n");
    else
      printf("%s (%zu symbols)\n", wf_symbols_name(tables[i]), wf_symbols_num_entries(tables[i]));
  }
  print_ctc_table(fst, info);
  for (int i = 0; i < NUM_COUNTS; i++)
    printf("%-30s%" PRId64 "\n", counts[i].name, counts[i].value);
  for (int i = 0; i < NUM_MEANS; i++) printf("%-30s%g\n", mean_names[i][0], means[i]);
  for (int i = 0; i < NUM_PROPERTIES; i++)
    printf("%-30s%s\n", properties[i].name, found & properties[i].bit ? "yes" : "no");
  for (int i = 0; i < NUM_FACTS; i++)
    printf("%-30s%s\n", facts[i].name, facts[i].value != 0 ? "yes" : "no");
}

static void print_json(const wf_fst *fst, wf_fst_format format, const struct count *counts,
                       const wf_fst_info *info, uint32_t found) {
  struct count facts[NUM_FACTS];
  double means[NUM_MEANS];
  fill_facts(info, facts, means);
  const wf_symbols *tables[2] = {wf_fst_isymbols(fst), wf_fst_osymbols(fst)};
  printf("{\"file_type\": \"%s\", \"arc_type\": \"%s\"", file_type(format),
         arc_type(wf_fst_get_view(fst).semiring, format));
  for (int i = 0; i < 2; i++) {
    printf(", \"%s\": ", i == 0 ? "isymbols" : "osymbols");
    if (tables[i] == NULL) {
      printf("null");
    } else {
      printf("{\"name\": ");
      cli_json_string(stdout, wf_symbols_name(tables[i]));
      printf(", \"size\": %zu}", wf_symbols_num_entries(tables[i]));
    }
  }
  print_ctc_json(fst, info);
  for (int i = 0; i < NUM_COUNTS; i++)
    printf(", \"%s\": %" PRId64, counts[i].json, counts[i].value);
  for (int i = 0; i < NUM_MEANS; i++) printf(", \"%s\": %g", mean_names[i][1], means[i]);
  printf(", \"properties\": {");
  for (int i = 0; i < NUM_PROPERTIES; i++)
    printf("%s\"%s\": %s", i > 0 ? ", " : "", properties[i].json,
           found & properties[i].bit ? "true" : "false");
  for (int i = 0; i < NUM_FACTS; i++)
    printf(", \"%s\": %s", facts[i].json, facts[i].value != 0 ? "true" : "false");
  printf("}}\n");
}

int cmd_info(int argc, char **argv) {
  bool json = false;
  wf_error err;
  cli_parser parser = {.usage = "[FST]",
                       .about = "Describes an fst file: its type, sizes, labels and properties.",
                       .max_args = 1};
  cli_flag_bool(&parser, "json", 0, &json, "one line of JSON instead of a table");
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  wf_fst *fst = NULL;
  wf_fst_format format;
  wf_fst_info info;
  struct count counts[NUM_COUNTS];
  wf_fst_info_init(&info);
  wf_status status =
      wf_fst_read_format(parser.num_args > 0 ? parser.args[0] : "-", &fst, &format, &err);
  if (status == WF_OK) status = wf_fst_get_info(fst, &info, &err);
  uint32_t found = 0;
  if (status == WF_OK) status = wf_fst_get_properties(fst, &found, &err);
  if (status == WF_OK) {
    wf_fst_view view = wf_fst_get_view(fst);
    fill_counts(&view, &info, counts);
    if (json)
      print_json(fst, format, counts, &info, found);
    else
      print_table(fst, format, counts, &info, found);
  }
  wf_fst_free(fst);
  return status == WF_OK ? CLI_OK : cli_fail(&err);
}

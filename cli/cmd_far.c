/* cmd_far.c - `warpfst far create|extract|compilestrings|printstrings|info|equal|isomorphic`:
 * archives of fsts. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "fst_output.h"
#include "parts.h"
#include "print_strings.h"
#include "text_input.h"

/* --- create ------------------------------------------------------------------------------ */

/* The key of a file: its path, as OpenFst's farcreate has it, or its number. */
static void make_key(const char *path, int64_t digits, int number, char *out, size_t size) {
  if (digits > 0)
    snprintf(out, size, "%0*d", (int)digits, number);
  else
    snprintf(out, size, "%s", path);
}

static int add_files(wf_far_writer *writer, const cli_parser *parser, int64_t digits) {
  wf_error err = {0};
  int code = CLI_OK;
  for (int i = 0; i + 1 < parser->num_args && code == CLI_OK; i++) {
    char key[4096];
    wf_fst *fst = NULL;
    make_key(parser->args[i], digits, i + 1, key, sizeof key);
    code = cli_read_fst(parser->args[i], &fst);
    if (code == CLI_OK && wf_far_writer_put(writer, key, fst, &err) != WF_OK) code = cli_fail(&err);
    wf_fst_free(fst);
  }
  return code;
}

static int create(int argc, char **argv) {
  const char *type = "sttable";
  int64_t digits = 0;
  wf_error err = {0};
  cli_parser parser = {
      .usage = "FST... ARCHIVE",
      .about =
          "Writes fsts to an archive. The key of an fst is its path, or its number with "
          "--generate_keys. Keys must be sorted.",
      .min_args = 1,
      .max_args = -1};
  cli_flag_str(&parser, "far_type", 0, &type, "sttable|stlist",
               "layout: with an index, or a plain sequence (default: sttable)");
  cli_flag_i64(&parser, "generate_keys", 0, &digits, "N", "keys are numbers of N digits, from 1");
  cli_flag_range(&parser, "generate_keys", 0, 20);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  if (strcmp(type, "sttable") != 0 && strcmp(type, "stlist") != 0)
    return cli_usage("--far_type: '%s' is not sttable or stlist", type);
  wf_far_writer *writer;
  wf_far_type layout = strcmp(type, "stlist") == 0 ? WF_FAR_STLIST : WF_FAR_STTABLE;
  if (wf_far_writer_open(parser.args[parser.num_args - 1], layout, &writer, &err) != WF_OK)
    return cli_fail(&err);
  code = add_files(writer, &parser, digits);
  if (code != CLI_OK)
    wf_far_writer_abort(writer);
  else if (wf_far_writer_close(writer, &err) != WF_OK)
    code = cli_fail(&err);
  return code;
}

/* --- strings ----------------------------------------------------------------------------- */

struct string_job {
  wf_far_writer *writer;
  cli_token_type type;
  const wf_symbols *symbols;
  int64_t digits; /* of keys */
  bool keep_symbols;
};

static int64_t utf8_code(const uint8_t *at, size_t size) {
  int64_t code = size == 1 ? *at : *at & (0x7F >> size);
  for (size_t i = 1; i < size; i++) code = code << 6 | (at[i] & 0x3F);
  return code;
}

/* The label of the next token of a line, and where the one after it begins. -1: there is none;
 * -2: an error, which is printed. */
static int64_t next_label(const struct string_job *job, const char *path, size_t number,
                          char **at) {
  char *text = *at;
  if (job->type == CLI_BYTES) return *text == '\0' ? -1 : (uint8_t) * (*at)++;
  if (job->type == CLI_UTF8) {
    if (*text == '\0') return -1;
    size_t size = wf__utf8_length((uint8_t *)text, (uint8_t *)text + strlen(text));
    *at = text + size;
    if (size != 0) return utf8_code((const uint8_t *)text, size);
    cli_note("%s:%zu: not UTF-8", path, number);
    return -2;
  }
  text += strspn(text, " \t");
  if (*text == '\0') return -1;
  *at = text + strcspn(text, " \t");
  if (**at != '\0') *(*at)++ = '\0';
  if (job->symbols != NULL) {
    int64_t label = wf_symbols_find(job->symbols, text);
    if (label < 0) cli_note("%s:%zu: symbol '%s' is not in the table", path, number, text);
    return label < 0 ? -2 : label;
  }
  char *stop;
  long long label = strtoll(text, &stop, 10);
  if (*stop == '\0' && label > 0 && label <= INT32_MAX) return label;
  cli_note("%s:%zu: '%s' is not a label, expected a number or --symbols", path, number, text);
  return -2;
}

static wf_status add_string(const struct string_job *job, wf_builder *builder, const char *key,
                            uint32_t last, wf_error *err) {
  const wf_symbols *table = job->keep_symbols ? job->symbols : NULL;
  wf_fst *fst = NULL;
  wf_status status = wf_builder_set_start(builder, 0, err);
  if (status == WF_OK) status = wf_builder_set_final(builder, last, 0, err);
  if (status == WF_OK) status = wf_builder_finish(builder, table, table, &fst, err);
  if (status == WF_OK) status = wf_far_writer_put(job->writer, key, fst, err);
  wf_fst_free(fst);
  return status;
}

static int compile_line(void *user, const char *path, size_t number, char *line) {
  const struct string_job *job = user;
  char key[32], *at = line;
  uint32_t last = 0;
  wf_builder *builder;
  wf_error err = {0};
  line[strcspn(line, "\r\n")] = '\0';
  snprintf(key, sizeof key, "%0*zu", (int)job->digits, number);
  wf_status status = wf_builder_create(WF_TROPICAL, &builder, &err);
  if (status != WF_OK) return cli_fail(&err);
  status = wf_builder_add_states(builder, 1, NULL, &err);
  int64_t label = -1;
  while (status == WF_OK && (label = next_label(job, path, number, &at)) >= 0) {
    wf_arc arc = {.nextstate = last + 1, .ilabel = (int32_t)label, .olabel = (int32_t)label};
    status = wf_builder_add_states(builder, 1, NULL, &err);
    if (status == WF_OK) status = wf_builder_add_arc(builder, last++, arc, &err);
  }
  if (status == WF_OK && label == -1) status = add_string(job, builder, key, last, &err);
  wf_builder_free(builder);
  return status != WF_OK ? cli_fail(&err) : label == -2 ? CLI_INPUT : CLI_OK;
}

static int compile_strings(int argc, char **argv) {
  const char *type = "sttable", *token_type = "symbol", *symbols_path = NULL;
  int64_t digits = 9;
  struct string_job job = {0};
  wf_symbols *symbols = NULL;
  wf_error err = {0};
  cli_parser parser = {.usage = "STRINGS ARCHIVE",
                       .about =
                           "Makes an acceptor of each line of a text and writes them to an "
                           "archive. Their keys are the numbers of the lines.",
                       .min_args = 2,
                       .max_args = 2};
  cli_flag_str(&parser, "far_type", 0, &type, "sttable|stlist",
               "layout: with an index, or a plain sequence (default: sttable)");
  cli_flag_str(&parser, "token-type", 0, &token_type, "symbol|byte|utf8",
               "what labels are: words between blanks, bytes, characters (default: symbol)");
  cli_flag_str(&parser, "symbols", 0, &symbols_path, "FILE",
               "symbol table of the words (default: they are numbers)");
  cli_flag_bool(&parser, "keep_symbols", 0, &job.keep_symbols, "write the table with each fst");
  cli_flag_i64(&parser, "generate_keys", 0, &digits, "N", "keys have N digits (default: 9)");
  cli_flag_range(&parser, "generate_keys", 1, 20);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  if (strcmp(type, "sttable") != 0 && strcmp(type, "stlist") != 0)
    return cli_usage("--far_type: '%s' is not sttable or stlist", type);
  code = cli_token_type_of(token_type, &job.type);
  if (code != CLI_OK) return code;
  if (symbols_path != NULL && wf_symbols_read(symbols_path, &symbols, &err) != WF_OK)
    return cli_fail(&err);
  job.symbols = symbols;
  job.digits = digits;
  wf_far_type layout = strcmp(type, "stlist") == 0 ? WF_FAR_STLIST : WF_FAR_STTABLE;
  if (wf_far_writer_open(parser.args[1], layout, &job.writer, &err) != WF_OK) code = cli_fail(&err);
  if (code == CLI_OK) {
    code = cli_read_lines(parser.args[0], compile_line, &job);
    if (code != CLI_OK)
      wf_far_writer_abort(job.writer);
    else if (wf_far_writer_close(job.writer, &err) != WF_OK)
      code = cli_fail(&err);
  }
  wf_symbols_free(symbols);
  return code;
}

/* --- reading ----------------------------------------------------------------------------- */

struct range {
  const char *begin, *end; /* NULL: no limit */
};

static void flag_range(cli_parser *parser, struct range *range) {
  cli_flag_str(parser, "begin_key", 0, &range->begin, "KEY", "first key to consider");
  cli_flag_str(parser, "end_key", 0, &range->end, "KEY", "last key to consider");
}

/* Reads the next fst in range; *fst NULL: there is none. */
static int next(wf_far *far, const struct range *range, const char **key, wf_fst **fst) {
  wf_error err = {0};
  do {
    if (wf_far_next(far, key, fst, &err) != WF_OK) return cli_fail(&err);
    if (*fst == NULL || range->begin == NULL || strcmp(*key, range->begin) >= 0) break;
    wf_fst_free(*fst);
  } while (true);
  if (*fst != NULL && range->end != NULL && strcmp(*key, range->end) > 0) {
    wf_fst_free(*fst);
    *fst = NULL;
  }
  return CLI_OK;
}

static int open_archive(const char *path, wf_far **out) {
  wf_error err = {0};
  return wf_far_open(path, out, &err) == WF_OK ? CLI_OK : cli_fail(&err);
}

static int extract(int argc, char **argv) {
  const char *prefix = "", *suffix = "";
  struct range range = {NULL, NULL};
  cli_parser parser = {.usage = "ARCHIVE",
                       .about = "Writes each fst of an archive to a file named after its key.",
                       .min_args = 1,
                       .max_args = 1};
  cli_flag_str(&parser, "filename_prefix", 0, &prefix, "TEXT", "put this before each key");
  cli_flag_str(&parser, "filename_suffix", 0, &suffix, "TEXT", "put this after each key");
  flag_range(&parser, &range);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  wf_far *far = NULL;
  wf_fst *fst = NULL;
  const char *key;
  code = open_archive(parser.args[0], &far);
  while (code == CLI_OK && (code = next(far, &range, &key, &fst)) == CLI_OK && fst != NULL) {
    char path[8192];
    /* A key is data of the archive: it may not lead out of the folder of the prefix. */
    if (*key == '\0' || strcmp(key, "..") == 0 || strncmp(key, "../", 3) == 0 || *key == '/' ||
        strstr(key, "/../") != NULL) {
      cli_note("key '%s' does not name a file below the current folder", key);
      code = CLI_INPUT;
    } else if ((size_t)snprintf(path, sizeof path, "%s%s%s", prefix, key, suffix) >= sizeof path) {
      cli_note("key '%.60s...' is too long", key);
      code = CLI_INPUT;
    } else {
      code = cli_write_fst(fst, path, NULL);
    }
    wf_fst_free(fst);
  }
  wf_far_free(far);
  return code;
}

static int print_strings(int argc, char **argv) {
  const char *token_type = "symbol", *symbols_path = NULL;
  struct range range = {NULL, NULL};
  bool print_key = false;
  cli_token_type type;
  wf_symbols *symbols = NULL;
  wf_error err = {0};
  cli_parser parser = {.usage = "ARCHIVE",
                       .about =
                           "Prints the strings of the fsts of an archive: a line for each path, "
                           "with its cost, as `print --strings` does.",
                       .min_args = 1,
                       .max_args = 1};
  cli_flag_str(&parser, "token-type", 0, &token_type, "symbol|byte|utf8",
               "what labels are (default: symbol)");
  cli_flag_str(&parser, "symbols", 0, &symbols_path, "FILE",
               "symbol table of the words (default: that of the first fst that has one)");
  cli_flag_bool(&parser, "print_key", 0, &print_key, "begin each line with the key and a tab");
  flag_range(&parser, &range);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  code = cli_token_type_of(token_type, &type);
  if (code != CLI_OK) return code;
  if (symbols_path != NULL && wf_symbols_read(symbols_path, &symbols, &err) != WF_OK)
    return cli_fail(&err);
  wf_far *far = NULL;
  wf_fst *fst = NULL;
  const char *key;
  code = open_archive(parser.args[0], &far);
  while (code == CLI_OK && (code = next(far, &range, &key, &fst)) == CLI_OK && fst != NULL) {
    /* OpenFst keeps the table with the first fst alone. */
    if (symbols == NULL && wf_fst_isymbols(fst) != NULL)
      symbols = wf_symbols_ref(wf_fst_isymbols(fst));
    const wf_symbols *tables[2] = {symbols, symbols};
    code = cli_print_strings(fst, tables, type, 1000, print_key ? key : NULL, NULL);
    wf_fst_free(fst);
  }
  wf_far_free(far);
  wf_symbols_free(symbols);
  return code;
}

static int info(int argc, char **argv) {
  struct range range = {NULL, NULL};
  bool list = false;
  cli_parser parser = {.usage = "ARCHIVE",
                       .about = "Counts the fsts, states, arcs and final states of an archive.",
                       .min_args = 1,
                       .max_args = 1};
  cli_flag_bool(&parser, "list_fsts", 0, &list, "also print a line for each fst");
  flag_range(&parser, &range);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  wf_far *far = NULL;
  wf_fst *fst = NULL;
  const char *key;
  unsigned long long sums[4] = {0};
  code = open_archive(parser.args[0], &far);
  if (code == CLI_OK && list) printf("%-30s%10s%10s%10s\n", "key", "states", "arcs", "final");
  while (code == CLI_OK && (code = next(far, &range, &key, &fst)) == CLI_OK && fst != NULL) {
    wf_fst_view view = wf_fst_get_view(fst);
    unsigned long long num_final = 0;
    for (uint64_t s = 0; s < view.num_states; s++) num_final += view.final_cost[s] < INFINITY;
    if (list)
      printf("%-30s%10llu%10llu%10llu\n", key, (unsigned long long)view.num_states,
             (unsigned long long)view.num_arcs, num_final);
    sums[0]++;
    sums[1] += view.num_states;
    sums[2] += view.num_arcs;
    sums[3] += num_final;
    wf_fst_free(fst);
  }
  static const char *const names[] = {"fsts", "states", "arcs", "final states"};
  if (code == CLI_OK) {
    printf("%-30s%s\n", "archive type",
           wf_far_get_type(far) == WF_FAR_STLIST ? "stlist" : "sttable");
    for (int i = 0; i < 4; i++) printf("%-30s%llu\n", names[i], sums[i]);
  }
  wf_far_free(far);
  return code;
}

/* --- comparison -------------------------------------------------------------------------- */

typedef wf_status compare_fn(const wf_fst *a, const wf_fst *b, float delta, bool *out_same,
                             wf_error *err);

/* Compares the next fsts of both archives; *more: go on. */
static int compare_next(wf_far *const *fars, const struct range *range, float delta,
                        compare_fn *compare, bool *more) {
  const char *keys[2] = {NULL, NULL};
  wf_fst *fsts[2] = {NULL, NULL};
  wf_error err = {0};
  bool same = false;
  int code = next(fars[0], range, &keys[0], &fsts[0]);
  if (code == CLI_OK) code = next(fars[1], range, &keys[1], &fsts[1]);
  *more = code == CLI_OK && fsts[0] != NULL && fsts[1] != NULL;
  if (code == CLI_OK && !*more && (fsts[0] != NULL || fsts[1] != NULL)) {
    cli_note("only one archive has the key '%s'", fsts[0] != NULL ? keys[0] : keys[1]);
    code = CLI_NO;
  } else if (*more && strcmp(keys[0], keys[1]) != 0) {
    cli_note("key '%s' in the first archive, '%s' in the second", keys[0], keys[1]);
    code = CLI_NO;
  } else if (*more && compare(fsts[0], fsts[1], delta, &same, &err) != WF_OK) {
    code = cli_fail(&err);
  } else if (*more && !same) {
    cli_note("fst '%s': %s", keys[0], err.message);
    code = CLI_NO;
  }
  wf_fst_free(fsts[0]);
  wf_fst_free(fsts[1]);
  return code;
}

static int compare_archives(const char *about, int argc, char **argv, compare_fn *compare) {
  double delta = 1.0 / 1024;
  struct range range = {NULL, NULL};
  cli_parser parser = {.usage = "FIRST SECOND", .about = about, .min_args = 2, .max_args = 2};
  cli_flag_f64(&parser, "delta", 0, &delta, "N",
               "weights that differ by less than this are the same (default: 0.0009765625 nats)");
  flag_range(&parser, &range);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  wf_far *fars[2] = {NULL, NULL};
  code = open_archive(parser.args[0], &fars[0]);
  if (code == CLI_OK) code = open_archive(parser.args[1], &fars[1]);
  bool more = code == CLI_OK;
  while (code == CLI_OK && more) code = compare_next(fars, &range, (float)delta, compare, &more);
  wf_far_free(fars[0]);
  wf_far_free(fars[1]);
  return code;
}

static int equal(int argc, char **argv) {
  return compare_archives(
      "Compares two archives: keys, and fsts state by state and arc by arc. Exit code 1: they "
      "differ.",
      argc, argv, wf_equal);
}
static int isomorphic(int argc, char **argv) {
  return compare_archives(
      "Compares two archives: keys, and fsts up to the numbers of states. Exit code 1: they "
      "differ.",
      argc, argv, wf_isomorphic);
}

int cmd_far(int argc, char **argv) {
  static const cli_part parts[] = {
      {"far create", "write fsts to an archive", create},
      {"far extract", "write each fst of an archive to a file", extract},
      {"far compilestrings", "make an fst of each line of a text", compile_strings},
      {"far printstrings", "print the strings of the fsts", print_strings},
      {"far info", "count fsts, states and arcs", info},
      {"far equal", "are two archives the same, arc by arc?", equal},
      {"far isomorphic", "are two archives the same up to state numbers?", isomorphic},
  };
  return cli_run_part(parts, sizeof parts / sizeof *parts, "PART FILES... [FLAGS]",
                      "Archives of fsts, in OpenFst's formats (FAR: sttable, stlist).", argc, argv);
}

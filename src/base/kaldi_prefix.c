/* kaldi_prefix.c - Kaldi's forms of table names. */
#include "base/kaldi_prefix.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* The options of both directions. Only t and b change anything here. */
static const char *const options[] = {"b",   "t", "o",  "no", "s", "ns", "cs",
                                      "ncs", "p", "np", "bg", "f", "nf"};

static bool is_one(const char *at, size_t size, const char *name) {
  return strlen(name) == size && memcmp(at, name, size) == 0;
}

static bool take_word(const char *at, size_t size, wf__kaldi_prefix *out) {
  bool known = false;
  for (size_t i = 0; i < sizeof options / sizeof *options; i++)
    known |= is_one(at, size, options[i]);
  if (is_one(at, size, "ark")) known = out->archive = true;
  if (is_one(at, size, "scp")) known = out->script = true;
  out->text |= is_one(at, size, "t");
  out->binary |= is_one(at, size, "b");
  return known;
}

wf_status wf__kaldi_prefix_take(const char *text, wf__kaldi_prefix *out, wf_error *err) {
  *out = (wf__kaldi_prefix){.rest = text};
  const char *colon = strchr(text, ':');
  if ((strncmp(text, "ark", 3) != 0 && strncmp(text, "scp", 3) != 0) || colon == NULL ||
      (text[3] != ',' && text[3] != ':'))
    return WF_OK;
  for (const char *at = text;; at++) {
    size_t size = strcspn(at, ",:");
    if (!take_word(at, size, out))
      return wf__fail(err, WF_ERR_ARGUMENT, "%s: unknown option '%.*s' in the prefix", text,
                      (int)size, at);
    at += size;
    if (at == colon) break;
  }
  out->rest = colon + 1;
  return WF_OK;
}

bool wf__kaldi_is_pipe(const char *text) {
  size_t size = strlen(text);
  while (size > 0 && (text[size - 1] == ' ' || text[size - 1] == '\t')) size--;
  return text[strspn(text, " \t")] == '|' || (size > 0 && text[size - 1] == '|');
}

static wf_status refuse_pipe(const char *path, wf_error *err) {
  return wf__fail(err, WF_ERR_UNSUPPORTED,
                  "'%s' is a pipe; commands are not run: end the name of the output in .gz, or "
                  "write to '-' and pipe that, or to >(COMMAND) in bash",
                  path);
}

wf_status wf__kaldi_refuse(const char *path, wf_error *err) {
  wf__kaldi_prefix prefix;
  if (wf__kaldi_is_pipe(path)) return refuse_pipe(path, err);
  WF__TRY(wf__kaldi_prefix_take(path, &prefix, err));
  if (!prefix.archive && !prefix.script) return WF_OK;
  return wf__fail(err, WF_ERR_ARGUMENT,
                  "%s: this output is no table of Kaldi: give '%s' (or './%s' if "
                  "the file has this name)",
                  path, prefix.rest, path);
}

/* Splits "ARCHIVE,SCRIPT" at the last comma. */
static wf_status split(const char *path, const char *rest, wf__kaldi_table *out, wf_error *err) {
  const char *comma = strrchr(rest, ',');
  if (comma == NULL || comma == rest || comma[1] == '\0')
    return wf__fail(err, WF_ERR_ARGUMENT, "%s: expected 'ark,scp:ARCHIVE,SCRIPT'", path);
  out->archive = wf__strndup(rest, (size_t)(comma - rest));
  out->script = wf__strndup(comma + 1, strlen(comma + 1));
  return out->archive != NULL && out->script != NULL
             ? WF_OK
             : wf__fail_memory(err, strlen(rest) + 2, "a path");
}

static wf_status parse(const char *path, wf__kaldi_table *out, wf_error *err) {
  wf__kaldi_prefix prefix;
  WF__TRY(wf__kaldi_prefix_take(path, &prefix, err));
  if (wf__kaldi_is_pipe(prefix.rest)) return refuse_pipe(path, err);
  if (prefix.rest[0] == '\0') return wf__fail(err, WF_ERR_ARGUMENT, "%s: no output path", path);
  out->text = prefix.text;
  out->binary = prefix.binary;
  if (prefix.text && prefix.binary)
    return wf__fail(err, WF_ERR_ARGUMENT, "%s: both text (t) and binary (b)", path);
  if (prefix.script && !prefix.archive)
    return wf__fail(err, WF_ERR_UNSUPPORTED,
                    "%s: a script file alone is no output; give 'ark,scp:ARCHIVE,SCRIPT'", path);
  if (prefix.script) return split(path, prefix.rest, out, err);
  out->archive = wf__strndup(prefix.rest, strlen(prefix.rest));
  return out->archive != NULL ? WF_OK : wf__fail_memory(err, strlen(path), "a path");
}

wf_status wf__kaldi_table_parse(const char *path, wf__kaldi_table *out, wf_error *err) {
  *out = (wf__kaldi_table){0};
  wf_status status = parse(path, out, err);
  if (status != WF_OK) wf__kaldi_table_free(out);
  return status;
}

void wf__kaldi_table_free(wf__kaldi_table *table) {
  free(table->archive);
  free(table->script);
  *table = (wf__kaldi_table){0};
}

/* jsgf_scan.c - the tokens of a grammar in JSGF. */
#include <string.h>
#include <strings.h>

#include "base/utf8.h"
#include "graph/jsgf.h"

#define MAGIC "#JSGF"

wf_status wf__jsgf_fail(const char *path, uint64_t line, wf_error *err, wf_status code,
                        const char *format, ...) {
  va_list args;
  va_start(args, format);
  code = wf__fail_at(err, code, path, "", line, format, args);
  va_end(args);
  return code;
}

static wf_status fail_here(const wf__jsgf_scanner *scanner, wf_error *err, const char *what) {
  return wf__jsgf_fail(scanner->path, scanner->line, err, WF_ERR_FORMAT, "%s", what);
}

/* --- the header -------------------------------------------------------------------------- */

static size_t mark_size(const wf__input *input) {
  const size_t size = sizeof WF__BYTE_ORDER_MARK - 1;
  return input->size >= size && memcmp(input->data, WF__BYTE_ORDER_MARK, size) == 0 ? size : 0;
}

bool wf__jsgf_is(const wf__input *input) {
  const size_t begin = mark_size(input), size = sizeof MAGIC - 1;
  return input->size - begin >= size && memcmp(input->data + begin, MAGIC, size) == 0;
}

/* All bytes must be UTF-8, and no NUL. */
static wf_status check_text(const wf__jsgf_scanner *scanner, bool ascii, wf_error *err) {
  uint64_t line = 1;
  for (const uint8_t *at = (const uint8_t *)scanner->at, *end = (const uint8_t *)scanner->end;
       at < end;) {
    const size_t size = *at < 0x80 ? *at != '\0' : ascii ? 0 : wf__utf8_length(at, end);
    if (size == 0)
      return wf__jsgf_fail(scanner->path, line, err, WF_ERR_FORMAT,
                           "the byte 0x%02x is not %s text", *at, ascii ? "ASCII" : "UTF-8");
    line += *at == '\n';
    at += size;
  }
  return WF_OK;
}

static bool has_name(wf__span text, const char *name) {
  return text.size == strlen(name) && strncasecmp(text.data, name, text.size) == 0;
}

static bool begins_with(wf__span text, const char *name) {
  return text.size >= strlen(name) && strncasecmp(text.data, name, strlen(name)) == 0;
}

/* Character sets that contain ASCII are read if the text is ASCII. */
static wf_status check_charset(const wf__jsgf_scanner *scanner, wf__span name, wf_error *err) {
  if (name.size == 0 || has_name(name, "UTF-8") || has_name(name, "UTF8"))
    return check_text(scanner, false, err);
  if (has_name(name, "ASCII") || has_name(name, "US-ASCII")) return check_text(scanner, true, err);
  if ((begins_with(name, "ISO8859") || begins_with(name, "ISO-8859")) &&
      check_text(scanner, true, err) == WF_OK)
    return WF_OK;
  return wf__jsgf_fail(scanner->path, 1, err, WF_ERR_UNSUPPORTED,
                       "character set '%.*s': only UTF-8 and ASCII are read; convert the file "
                       "(iconv -t UTF-8)",
                       WF__SPAN_ARG(name));
}

wf_status wf__jsgf_scan_header(const wf__input *input, wf__jsgf_scanner *out, wf_error *err) {
  const char *begin = (const char *)input->data + mark_size(input);
  *out = (wf__jsgf_scanner){.at = begin + sizeof MAGIC - 1,
                            .end = (const char *)input->data + input->size,
                            .path = input->path,
                            .line = 1};
  const char *end = out->at;
  while (end < out->end && *end != ';' && *end != '\n' && *end != '\r') end++;
  wf__span rest = {out->at, (size_t)(end - out->at)}, version = {0}, charset = {0};
  wf__next_field(&rest, &version);
  wf__next_field(&rest, &charset);
  if (!has_name(version, "V1.0"))
    return wf__jsgf_fail(out->path, 1, err, WF_ERR_UNSUPPORTED,
                         "found '" MAGIC " %.*s', expected '" MAGIC " V1.0;'",
                         WF__SPAN_ARG(version));
  if (end == out->end || *end != ';')
    return fail_here(out, err, "expected ';' at the end of the line '" MAGIC " V1.0'");
  WF__TRY(check_charset(out, charset, err));
  out->at = end + 1;
  return WF_OK;
}

/* --- what is left out -------------------------------------------------------------------- */

static bool is_space(char c) { return (unsigned char)c <= ' '; }

static char char_at(const wf__jsgf_scanner *scanner, size_t i) {
  return (size_t)(scanner->end - scanner->at) > i ? scanner->at[i] : '\0';
}

static void step(wf__jsgf_scanner *scanner) { scanner->line += *scanner->at++ == '\n'; }

static void skip_line(wf__jsgf_scanner *scanner) {
  while (scanner->at < scanner->end && *scanner->at != '\n' && *scanner->at != '\r') scanner->at++;
}

static wf_status skip_comment(wf__jsgf_scanner *scanner, wf_error *err) {
  const uint64_t line = scanner->line;
  for (scanner->at += 2; scanner->at < scanner->end; step(scanner))
    if (*scanner->at == '*' && char_at(scanner, 1) == '/') {
      scanner->at += 2;
      return WF_OK;
    }
  return wf__jsgf_fail(scanner->path, line, err, WF_ERR_FORMAT,
                       "the comment that begins here has no end, expected '*/'");
}

static wf_status skip_tag(wf__jsgf_scanner *scanner, wf_error *err) {
  const uint64_t line = scanner->line;
  uint64_t depth = 0;
  for (; scanner->at < scanner->end; step(scanner)) {
    if (*scanner->at == '\\' && scanner->end - scanner->at > 1)
      step(scanner);
    else if (*scanner->at == '{')
      depth++;
    else if (*scanner->at == '}' && --depth == 0) {
      scanner->at++;
      return WF_OK;
    }
  }
  return wf__jsgf_fail(scanner->path, line, err, WF_ERR_FORMAT,
                       "the tag that begins here has no end, expected '}'");
}

static wf_status skip_blanks(wf__jsgf_scanner *scanner, wf_error *err) {
  while (scanner->at < scanner->end) {
    const char next = char_at(scanner, 1);
    if (is_space(*scanner->at))
      step(scanner);
    else if (*scanner->at == '{')
      WF__TRY(skip_tag(scanner, err));
    else if (*scanner->at == '/' && next == '/')
      skip_line(scanner);
    else if (*scanner->at == '/' && next == '*')
      WF__TRY(skip_comment(scanner, err));
    else
      break;
  }
  return WF_OK;
}

/* --- tokens ------------------------------------------------------------------------------ */

static wf_status add_char(wf__jsgf_scanner *scanner, wf_error *err) {
  WF__TRY(wf__vec_push(&scanner->text, *scanner->at, "a word of a grammar", err));
  step(scanner);
  return WF_OK;
}

/* A character after \ stands for itself. */
static wf_status scan_escape(wf__jsgf_scanner *scanner, bool quoted, wf_error *err) {
  scanner->at++;
  if (scanner->at == scanner->end || (is_space(*scanner->at) && !quoted))
    return fail_here(scanner, err, "found white space after '\\', expected a character");
  return add_char(scanner, err);
}

static wf_status scan_quoted(wf__jsgf_scanner *scanner, wf_error *err) {
  for (scanner->at++; scanner->at < scanner->end;) {
    if (*scanner->at == '"') {
      scanner->at++;
      scanner->token.kind = WF__JSGF_QUOTED;
      return WF_OK;
    }
    WF__TRY(*scanner->at == '\\' ? scan_escape(scanner, true, err) : add_char(scanner, err));
  }
  return wf__jsgf_fail(scanner->path, scanner->token.line, err, WF_ERR_FORMAT,
                       "the quoted words that begin here have no end, expected '\"'");
}

static wf_status scan_word(wf__jsgf_scanner *scanner, wf_error *err) {
  scanner->token.kind = WF__JSGF_WORD;
  while (scanner->at < scanner->end && !is_space(*scanner->at) &&
         strchr(";=|*+<>()[]{}/\"", *scanner->at) == NULL)
    WF__TRY(*scanner->at == '\\' ? scan_escape(scanner, false, err) : add_char(scanner, err));
  return WF_OK;
}

/* A rule's name <...>, or a weight /.../. */
static wf_status scan_between(wf__jsgf_scanner *scanner, int kind, char close, wf_error *err) {
  const char open = *scanner->at++, *begin = scanner->at;
  while (scanner->at < scanner->end && *scanner->at != close && *scanner->at != '<' &&
         !(is_space(*scanner->at) && (close == '>' || *scanner->at == '\n')))
    scanner->at++;
  scanner->token.kind = kind;
  scanner->token.text = (wf__span){begin, (size_t)(scanner->at - begin)};
  if (char_at(scanner, 0) != close || scanner->token.text.size == 0)
    return wf__jsgf_fail(scanner->path, scanner->line, err, WF_ERR_FORMAT,
                         "found '%c%.*s', expected %s (in a word, write \\%c)", open,
                         WF__SPAN_ARG(scanner->token.text),
                         close == '>' ? "the name of a rule, <name>" : "a weight, /number/", open);
  scanner->at++;
  return WF_OK;
}

wf_status wf__jsgf_scan(wf__jsgf_scanner *scanner, wf_error *err) {
  scanner->text.size = 0;
  WF__TRY(skip_blanks(scanner, err));
  scanner->token = (wf__jsgf_token){.kind = WF__JSGF_END, .line = scanner->line};
  if (scanner->at == scanner->end) return WF_OK;
  switch (*scanner->at) {
    case '"': WF__TRY(scan_quoted(scanner, err)); break;
    case '<': return scan_between(scanner, WF__JSGF_NAME, '>', err);
    case '/': return scan_between(scanner, WF__JSGF_WEIGHT, '/', err);
    default:
      WF__TRY(scan_word(scanner, err));
      if (scanner->text.size == 0) {
        scanner->token.kind = *scanner->at;
        scanner->token.text = (wf__span){scanner->at++, 1};
        return WF_OK;
      }
  }
  scanner->token.text = (wf__span){scanner->text.data, scanner->text.size};
  return WF_OK;
}

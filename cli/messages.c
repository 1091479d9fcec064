/* messages.c - what all subcommands print besides their results: errors, notes, progress. */
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/clock.h"
#include "base/platform.h"
#include "base/utf8.h"
#include "cli.h"

static const char *g_command = "";

const char *cli_command_name(void) { return g_command; }
void cli_set_command(const char *name) { g_command = name; }

static struct {
  char stage[64]; /* what is under way; "": nothing */
  double fraction, began, drawn;
  bool shown;
} g_bar;

static void erase_bar(void) {
  if (g_bar.shown) fprintf(stderr, "\r\033[K");
  g_bar.shown = false;
}

/* Names and keys in messages come from files. Control characters, U+0080 to U+009F included, are
 * printed as '?' so that they cannot control the terminal. */
static void print_message(const char *format, va_list args) {
  char text[4096];
  vsnprintf(text, sizeof text, format, args);
  for (unsigned char *c = (unsigned char *)text; *c != '\0'; c++) {
    bool high = c[0] == 0xC2 && c[1] >= 0x80 && c[1] < 0xA0;
    if ((*c < 0x20 && *c != '\n' && *c != '\t') || *c == 0x7F || high) *c = '?';
    if (high) *++c = '?';
  }
  erase_bar();
  fprintf(stderr, "warpfst%s%s: %s\n", g_command[0] != '\0' ? " " : "", g_command, text);
}

int cli_fail(const wf_error *err) {
  cli_note("%s", err->message[0] != '\0' ? err->message : wf_status_text(err->code));
  switch (err->code) {
    case WF_ERR_ARGUMENT: return CLI_USAGE;
    case WF_ERR_MEMORY:
    case WF_ERR_LIMIT:
    case WF_ERR_NOT_DETERMINIZABLE: return CLI_LIMIT;
    case WF_ERR_DEVICE: return CLI_DEVICE;
    default: return CLI_INPUT;
  }
}

int cli_out_of_memory(void) {
  cli_note("out of memory");
  return CLI_LIMIT;
}

int cli_failure_code(uint64_t num_failed, bool lost_rest, bool no_memory) {
  return no_memory ? CLI_LIMIT : lost_rest ? CLI_INPUT : num_failed > 0 ? CLI_NO : CLI_OK;
}

int cli_usage(const char *format, ...) {
  va_list args;
  va_start(args, format);
  print_message(format, args);
  va_end(args);
  fprintf(stderr, "(see warpfst %s --help)\n", g_command[0] != '\0' ? g_command : "COMMAND");
  return CLI_USAGE;
}

void cli_note(const char *format, ...) {
  va_list args;
  va_start(args, format);
  print_message(format, args);
  va_end(args);
}

/* --- progress ---------------------------------------------------------------------------- */

static void draw_bar(void) {
  double now = cli_now_s();
  g_bar.drawn = now;
  g_bar.shown = true;
  fprintf(stderr, "\r\033[K");
  if (g_bar.fraction >= 0) {
    char bar[25];
    int filled = (int)(g_bar.fraction * 24);
    for (int i = 0; i < 24; i++) bar[i] = i < filled ? '#' : '.';
    bar[24] = '\0';
    fprintf(stderr, "[%s] %3d%% ", bar, (int)(g_bar.fraction * 100));
  }
  fprintf(stderr, "%s", g_bar.stage);
  if (now - g_bar.began >= 2) fprintf(stderr, ", %.0f s", now - g_bar.began);
  fflush(stderr);
}

static bool on_progress(void *user, const char *stage, double fraction) {
  (void)user;
  double now = cli_now_s();
  bool changed = strncmp(stage, g_bar.stage, sizeof g_bar.stage - 1) != 0;
  if (changed) {
    g_bar.began = now;
    snprintf(g_bar.stage, sizeof g_bar.stage, "%s", stage);
  }
  g_bar.fraction = fraction;
  /* a stage may take minutes before it reports again */
  if (changed || fraction >= 1 || now - g_bar.drawn >= 0.1) draw_bar();
  return true;
}

/* Called every few hundredths of a second within long calls. */
static bool on_tick(void *user) {
  (void)user;
  if (g_bar.stage[0] != '\0' && cli_now_s() - g_bar.drawn >= 1) draw_bar();
  return true;
}

wf_progress cli_progress(bool quiet) {
  if (quiet || !wf__is_terminal(WF__STDERR)) return (wf_progress){0};
  wf_set_interrupt(on_tick, NULL);
  return (wf_progress){on_progress, NULL};
}

void cli_progress_end(void) {
  erase_bar();
  g_bar.stage[0] = '\0';
}

void cli_json_string(FILE *out, const char *text) {
  const uint8_t *at = (const uint8_t *)text, *end = at + strlen(text);
  char bytes[8];
  fputc('"', out);
  while (at < end) {
    size_t size = wf__json_escape(&at, end, bytes);
    fwrite(bytes, 1, size, out);
  }
  fputc('"', out);
}

void cli_json_number(FILE *out, const char *format, double value) {
  fprintf(out, isfinite(value) ? format : "null", value);
}

double cli_now_s(void) { return wf__now_s(); }

uint64_t cli_peak_bytes(void) { return wf__peak_bytes(); }

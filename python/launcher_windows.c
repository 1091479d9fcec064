/* launcher_windows.c - the program `warpfst` that pip puts on the PATH of Windows: runs the program
 * in the package without starting Python, and waits for it.
 *
 * PREFIX\Scripts\warpfst.exe belongs to PREFIX\Lib\site-packages\warpfst\bin\warpfst.exe.
 * `transcribe` and `serve` are written in Python: they are run by `python -m warpfst`. */
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <stdio.h>
#include <wchar.h>

enum { MAX_TEXT = 32768 }; /* the most that Windows passes to a program */

/* What follows the name of the program in a command line. */
static const wchar_t *arguments_of(const wchar_t *line) {
  for (int quoted = 0; *line != 0 && (quoted || (*line != L' ' && *line != L'\t')); line++)
    if (*line == L'"') quoted = !quoted;
  while (*line == L' ' || *line == L'\t') line++;
  return line;
}

/* Runs a program with `before` and then this program's arguments. -1: it was not found. */
static int run(const wchar_t *program, const wchar_t *before) {
  static wchar_t line[MAX_TEXT];
  STARTUPINFOW start = {.cb = sizeof start};
  PROCESS_INFORMATION process;
  DWORD code = 3;
  if (GetFileAttributesW(program) == INVALID_FILE_ATTRIBUTES) return -1;
  swprintf(line, MAX_TEXT, L"\"%ls\" %ls%ls", program, before, arguments_of(GetCommandLineW()));
  if (!CreateProcessW(program, line, NULL, NULL, TRUE, 0, NULL, NULL, &start, &process)) return -1;
  SetConsoleCtrlHandler(NULL, TRUE); /* Ctrl-C is for the program */
  WaitForSingleObject(process.hProcess, INFINITE);
  GetExitCodeProcess(process.hProcess, &code);
  return (int)code;
}

int wmain(int argc, wchar_t **argv) {
  static const wchar_t *const pythons[] = {L"Scripts\\python.exe", L"python.exe"};
  static wchar_t prefix[MAX_TEXT], path[MAX_TEXT];
  int code = -1;
  GetModuleFileNameW(NULL, prefix, MAX_TEXT);
  for (int up = 0; up < 2; up++)
    if (wcsrchr(prefix, L'\\') != NULL) *wcsrchr(prefix, L'\\') = 0;
  swprintf(path, MAX_TEXT, L"%ls\\Lib\\site-packages\\warpfst\\bin\\warpfst.exe", prefix);
  if (argc < 2 || (wcscmp(argv[1], L"transcribe") != 0 && wcscmp(argv[1], L"serve") != 0))
    code = run(path, L"");
  for (int i = 0; code == -1 && i < 2; i++) {
    swprintf(path, MAX_TEXT, L"%ls\\%ls", prefix, pythons[i]);
    code = run(path, L"-m warpfst ");
  }
  if (code == -1) fprintf(stderr, "warpfst: cannot find the Python package of this program\n");
  return code == -1 ? 3 : code;
}

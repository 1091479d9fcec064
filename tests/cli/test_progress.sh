# A terminal shows what a long command is doing, every stage of it, and its seconds. With -q: nothing.
# shellcheck shell=bash
source "$SOURCE_DIR/tests/cli/expect.sh"
ctc=$SOURCE_DIR/examples/ctc
python3 -c 'import os; os.openpty()' 2>no_terminal.txt || { echo 'skipped: this system has no pseudo-terminals (/dev/pts)'; exit 77; }
cat >terminal.py <<'PY'
import os, pty, signal, sys, threading
pid, screen = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
def wait():  # a stage of three seconds: the command is stopped in it
    os.kill(pid, signal.SIGSTOP)
    threading.Timer(3, os.kill, (pid, signal.SIGCONT)).start()
seen = b''
while True:
    try:
        part = os.read(screen, 65536)
    except OSError:
        break
    if not part:
        break
    if b'compose L o G' in part and b'compose L o G' not in seen:
        wait()
    seen += part
sys.stdout.write(seen.decode())
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
PY
files=(--tokens="$ctc/tokens_phone.txt" --lexicon="$ctc/lexicon_phone.txt" --lm="$ctc/lm3.arpa.gz" -o terminal.wfst)
for try in 1 2 3 4 5; do # the stop may come too late
  python3 terminal.py "$WARPFST" mkgraph ctc "${files[@]}" >screen.txt
  if grep -q 'compose L o G, [3-9] s' screen.txt || [ "$try" = 5 ]; then break; fi
done
for stage in 'linking n-grams' 'lexicon to L' 'compose L o G' 'determinize LG' 'minimize LG' 'order arcs' 'compose L o G, [3-9] s'; do
  grep -q "$stage" screen.txt || fail "the terminal does not show '$stage'"
done
python3 terminal.py "$WARPFST" mkgraph ctc "${files[@]}" -q >screen.txt
[ ! -s screen.txt ] || fail "-q on a terminal: $(cat screen.txt)"

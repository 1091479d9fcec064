# ./run announces everything that it installs, installs nothing for test-gpu FOLDER, and its help names every verb. Runs in a copy of its files, with stubs
# of the installers that only print their arguments.
# shellcheck shell=bash
fail() { echo "$*" >&2; exit 1; }
mkdir -p stubs/bin tree/tests tree/docs
cp -r "$SOURCE_DIR/run" "$SOURCE_DIR/tools" "$SOURCE_DIR/packaging" tree
cp "$SOURCE_DIR/tests/python-requirements.txt" tree/tests
cp "$SOURCE_DIR/docs/requirements.txt" tree/docs
cd tree || exit
export STUBS=$PWD/../stubs INSTALLED='' CMAKE_VERSION=3.25.1 APT=0 GPU=0
export PATH=$STUBS/bin:$PATH
stub() { # NAME, commands from stdin
  { echo '#!/bin/bash'; cat; } >"$STUBS/bin/$1"
  chmod +x "$STUBS/bin/$1"
}
stub dpkg-query <<<'echo -n "$INSTALLED"'
stub apt-cache <<<'echo "  Depends: clang-14"'
stub apt-get <<'E2'
echo "CALLED apt-get $*" >&2
[[ " $* " != *" source "* ]] || mkdir "${!#}-1.0"
exit $APT
E2
stub sudo <<<'exec "$@"'
stub cmake <<<'echo "cmake version $CMAKE_VERSION"'
stub nvidia-smi <<<'exit $GPU'
stub compute-sanitizer <<<'shift 4; exec "$@"'
stub pip <<'E2' # and uv, which is installed with it
case $* in config* | venv*) ;; *) echo "CALLED pip $*" >&2 ;; esac
case $* in
  *uv==*) cp "$STUBS/bin/pip" "${0%pip}uv" ;;
  venv*) mkdir -p "${!#}/bin"; cp "$STUBS/bin/python3" "${!#}/bin/python" ;;
esac
while [ $# -gt 0 ]; do [ "$1" != --target ] || { mkdir -p "$2/pytriton/tritonserver/bin"; touch "$2/pytriton/tritonserver/bin/tritonserver"; }; shift; done
E2
stub python3 <<'E2'
echo "CALLED python3 $*" >&2
[ "$2" != venv ] || { mkdir -p "$3/bin"; cp "$STUBS/bin/python3" "$3/bin/python"; cp "$STUBS/bin/pip" "$3/bin"; }
E2
code_of() { code=0; "$@" >out.txt 2>err.txt || code=$?; }

# --- verbs and help ----------------------------------------------------------------------------------------------
code_of ./run bogus
[ $code = 2 ] && [ ! -s out.txt ] && grep -q 'no verb "bogus"' err.txt || fail "an unknown verb: exit code $code, $(cat out.txt err.txt)"
for verb in bogus test_packages; do
  code_of ./run setup $verb
  [ $code = 2 ] && [ ! -s out.txt ] && grep -q '^  ./run setup' err.txt || fail "setup of an unknown verb: exit code $code, $(cat out.txt err.txt)"
done
./run >help.txt
./run --help | diff help.txt -
mapfile -t verbs < <(sed -n 's/^  [.]\/run \([a-z-]*\).*/\1/p' help.txt | grep -v '^help$')
[ "$(printf 'do_%s\n' "${verbs[@]//-/_}" | sort)" = "$(sed -n 's/^\(do_[a-z_]*\)() .*/\1/p' tools/run/*.sh | sort)" ] || fail "help and verbs differ: ${verbs[*]}"

rm -rf build
for verb in "${verbs[@]}"; do # help starts nothing
  [ "$verb" != bench ] || continue
  for asked in "$verb --help" "$verb -h" "$verb help" "help $verb"; do
    # shellcheck disable=SC2086
    code_of ./run $asked
    [ $code = 0 ] && grep -q "^  ./run $verb" out.txt && [ "$(grep -c '^  ./run' out.txt)" = 1 ] || fail "./run $asked: exit code $code, $(cat out.txt err.txt)"
    [ ! -s err.txt ] && [ ! -e build ] || fail "./run $asked starts something: $(ls -d build; cat err.txt)"
  done
done

# --- each installation is announced --------------------------------------------------------------------------------
announced() { # every installer call in out.txt must be named by the line before it
  awk '/^== installing/ {line = $0; used = 0}
    /^CALLED (apt-get install|apt-get .* source|pip)/ {calls++; n = split($0, words); if (line == "" || used++ || !index(line, words[n])) bad = 1}
    END {exit bad || !calls}' out.txt
}
for verb in "${verbs[@]}"; do
  [ "$verb" != setup ] || continue
  rm -rf build
  what=()
  [ "$verb" != wheel ] || what=(linux-x86_64)
  ./run setup "$verb" "${what[@]}" >out.txt 2>&1 || fail "setup $verb: exit code $?: $(cat out.txt)"
  announced || fail "setup $verb installs unannounced: $(cat out.txt)"
  tail -1 out.txt | grep -q "./run $verb" || fail "setup $verb ends with $(tail -1 out.txt)"
done
./run setup docs >out.txt 2>&1
! grep 'CALLED pip' out.txt || fail 'a second setup installs Python packages again'
printf 'CALLED apt-get install x\n' >out.txt
! announced || fail 'the check misses an unannounced installation'
printf '== installing y\nCALLED apt-get install x\n' >out.txt
! announced || fail 'the check accepts the announcement of another package'
rm -rf build
CMAKE_VERSION=3.18.4 ./run setup >out.txt 2>&1
announced && grep -q '^== installing .*build/cmake: cmake>=3.22' out.txt || fail "CMake 3.18: $(cat out.txt)"
rm -rf build
INSTALLED='ii ' ./run setup >out.txt 2>&1
! grep -E 'CALLED|installing' out.txt || fail 'setup installs what is already installed'
APT=1
code_of ./run setup
[ $code != 0 ] || fail 'no error if apt-get fails'
APT=0

# --- test-gpu FOLDER -----------------------------------------------------------------------------------------------
mkdir -p packed/python
printf '#!/bin/bash\nexit 0\n' >packed/test_gpu_good
printf '#!/bin/bash\necho broken; exit 3\n' >packed/test_gpu_bad
chmod +x packed/test_gpu_*
export WARPFST_GPU_TOOLS=memcheck
rm "$STUBS/bin/python3"
stub python3 <<<'exit 0'
code_of ./run test-gpu packed
[ $code = 1 ] && [ "$(tail -1 out.txt)" = '3 passed, 2 failed, 0 skipped' ] || fail "test-gpu: exit code $code, $(cat out.txt err.txt)"
! grep CALLED out.txt err.txt || fail 'test-gpu FOLDER installs'
grep -q '^== test_gpu_bad under compute-sanitizer memcheck: exit status 3' err.txt && grep -q '^broken' out.txt || fail "$(cat out.txt err.txt)"
rm packed/test_gpu_bad
WARPFST_GPU_TOOLS='' code_of ./run test-gpu packed
[ $code = 0 ] && [ "$(tail -1 out.txt)" = '2 passed, 0 failed, 0 skipped' ] || fail "test-gpu: exit code $code, $(cat out.txt err.txt)"
GPU=9
code_of ./run test-gpu packed
[ $code = 1 ] && [ "$(tail -1 out.txt)" = '0 passed, 0 failed, 1 skipped' ] || fail "no GPU: exit code $code, $(cat out.txt err.txt)"

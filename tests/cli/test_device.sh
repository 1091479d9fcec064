# The library works without libwarpfst-cuda, loads it when a GPU is asked for, from its own folder or where the loader looks, and says in one line why it was not
# loaded. Stand-ins for libwarpfst-cuda are built here.
# shellcheck shell=bash
fail() { echo "$1" >&2; exit 1; }
grep -q '^WARPFST_SANITIZE:[A-Z]*=.' "$BUILD_DIR/CMakeCache.txt" && { echo 'skipped: with sanitizers'; exit 77; }
build=$(sed -n 's/.*"\(.*\)"/\1/p' "$BUILD_DIR/generated/build_id.h")
name=libwarpfst-cuda.so.${WARPFST_LIB##*.so.} # libwarpfst.so.0.3.0
name=${name%.*}
mkdir lib other
cp "$WARPFST_LIB" lib/libwarpfst.so.0.3
ln -s libwarpfst.so.0.3 lib/libwarpfst.so

# A device whose search cannot be opened, but says so.
cat >device.c <<'END'
#include "base/device.h"
#include "decode/backend.h"
static wf_status open_search(const wf_graph *graph, const wf_transducer *model, const wf_decoder_options *options, void **out, wf_error *err) {
  *out = NULL;
  return wf__fail(err, WF_ERR_DEVICE, "the stand-in has no GPU");
}
static const wf__backend search = {.name = "stand-in", .open = open_search};
static const wf__device device = {.build = BUILD, .search = &search};
__attribute__((constructor)) static void start(void) { wf__device_register(&device); }
END
stand_in() { # FILE BUILD [ARGUMENTS...]
  local file=$1 of=$2
  shift 2
  "${CC:-cc}" -std=gnu11 -Werror -shared -fPIC -I "$SOURCE_DIR/include" -I "$SOURCE_DIR/src" -DBUILD="\"$of\"" device.c lib/libwarpfst.so.0.3 "$@" -o "$file"
}
echo '0 1 1 1
1' >g.txt
printf '<eps> 0\na 1\n' >words.txt
"$WARPFST" compile g.txt -o g.wfst >log.txt 2>&1 || fail "compile: $(cat log.txt)"
says() { # TEXT [FOLDER OF libwarpfst]
  local code=0
  LD_LIBRARY_PATH=$PWD/${2:-lib}${more:+:$PWD/$more} "$WARPFST" decode --device=cuda g.wfst "$SOURCE_DIR/examples/ctc/logp_phone/00003_1.npy" >out.txt 2>err.txt || code=$?
  [ $code -eq 5 ] || fail "exit code $code: $(cat err.txt)"
  [ "$(wc -l <err.txt)" -eq 1 ] || fail "not one line: $(cat err.txt)"
  grep -qF "$1" err.txt || fail "'$1' is not in: $(cat err.txt)"
}

says "device cuda: $name is not beside $PWD/lib/libwarpfst.so.0.3: install the GPU backend (the wheel warpfst-cuda)"
stand_in "lib/$name" "$build"
says 'the stand-in has no GPU'
mkdir link # a link to the library, as in a Python package that is developed
ln -s ../lib/libwarpfst.so.0.3 link/libwarpfst.so.0.3
says 'the stand-in has no GPU' link
mv "lib/$name" other
more=other says 'the stand-in has no GPU'

stand_in "lib/$name" 0.3.0+0123456789ab
says "$PWD/lib/$name is of build 0.3.0+0123456789ab and $PWD/lib/libwarpfst.so.0.3 of build $build: install warpfst and warpfst-cuda of one version"
more=other says 'install warpfst and warpfst-cuda of one version' # that in the library's own folder is the one to mend
echo 'int wf__new(void); int use(void); int use(void) { return wf__new(); }' >>device.c
stand_in "lib/$name" 0.3.1+0123456789ab # calls a function that this library lacks
says 'of build 0.3.1+0123456789ab'

echo text >"lib/$name"
says "$PWD/lib/$name was not loaded by build $build (warpfst and warpfst-cuda must be of one version): $PWD/lib/$name: file too short"
echo 'int driver(void); int driver(void) { return 1; }' >driver.c
"${CC:-cc}" -shared -fPIC -Wl,-soname,libdriver.so.1 driver.c -o libdriver.so.1
sed -i 's/wf__new/driver/g' device.c
stand_in "lib/$name" "$build" libdriver.so.1 -Wl,-rpath,/nowhere
mv libdriver.so.1 gone
says "$PWD/lib/$name was not loaded by build $build (warpfst and warpfst-cuda must be of one version): libdriver.so.1: cannot open shared object file"

# Threads get the same device, not before its library is loaded wholly, and from the folder that was the library's when it was loaded. A second copy of the
# library in a process cannot use the first one's.
mv gone libdriver.so.1
cat >>device.c <<'END'
#include <stdlib.h>
#include <unistd.h>
__attribute__((constructor)) static void be_slow(void) { usleep(100000); setenv("STAND_IN", "loaded", 1); }
END
mkdir copy
cp lib/libwarpfst.so.0.3 copy
stand_in "lib/$name" "$build" "$PWD/libdriver.so.1"
cp "lib/$name" copy
cat >threads.c <<'END'
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "base/device.h"
static const wf__device *(*find)(const char *, wf_error *);
static void *run(void *found) {
  const wf__device *device = find("cuda:1", NULL);
  *(const wf__device **)found = getenv("STAND_IN") != NULL ? device : NULL;
  return NULL;
}
int main(int argc, char **argv) {
  const wf__device *found[8];
  pthread_t threads[8];
  wf_error err = {0};
  *(void **)&find = dlsym(dlopen("lib/libwarpfst.so.0.3", RTLD_NOW), "wf__device_find");
  if (argc != 2 || chdir("/") != 0) return 1;
  for (int i = 0; i < 8; i++) pthread_create(&threads[i], NULL, run, &found[i]);
  for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < 8; i++)
    if (found[i] == NULL || found[i] != found[0]) return 1;
  if (chdir(argv[1]) != 0) return 1;
  *(void **)&find = dlsym(dlopen("copy/libwarpfst.so.0.3", RTLD_NOW), "wf__device_find");
  printf("%d %s\n", find("cuda:1", &err) == NULL, err.message);
  return 0;
}
END
"${CC:-cc}" -std=gnu11 -Wall -Werror -I "$SOURCE_DIR/include" -I "$SOURCE_DIR/src" threads.c -o threads -pthread -ldl
LD_LIBRARY_PATH=$PWD ./threads "$PWD" >out.txt || fail 'threads: no device, or several'
grep -q "^1 device cuda:1: $PWD/copy/$name was loaded for another copy of $PWD/copy/libwarpfst.so.0.3 in this process$" out.txt || fail "another copy: $(cat out.txt)"

# The library that is installed needs no library of CUDA.
! ldd "$WARPFST_LIB" | grep -E 'cuda|stdc\+\+' || fail 'libwarpfst needs CUDA'
